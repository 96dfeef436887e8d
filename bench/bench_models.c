/* bench/bench_models.c: ONNX models on the plugin cpu, or on the devices of its only argument, as requested on standard
 * input. Of the lines
 *   run FILE THREADS RUNS       nanoseconds of a run, the mean over RUNS; a run that is not timed goes before
 *   output FILE THREADS RUNS    writes the first output's bytes to FILE.output, and answers how many they are
 *   peak - THREADS RUNS         float32 operations a second that the CPU can do (hand_peak.h), 0 where not known
 * each is answered with one number. FILE.input has the bytes of the model's first input. A FILE is loaded once for each
 * number of threads. With arguments FILE THREADS instead, loads that model, runs it once and ends. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/hand_peak.h"
#include "bench/bench.h"

enum { MOST_MODELS = 64, MOST_PATH = 1024 };

typedef struct entry {
  char path[MOST_PATH];
  int threads;
  heddle_context *ctx;
  heddle_executor *ex;
} entry;

static const char *devices = "cpu";

static void fail(const char *what, const char *path) {
  fprintf(stderr, "bench_models: %s: %s\n", path, what);
  exit(1);
}

/* Sets the first input, a float32 tensor, from FILE.input. */
static void set_input(const entry *e) {
  heddle_error err;
  heddle_io_info info = {.struct_size = sizeof info};
  char path[MOST_PATH + 16];
  size_t n = 1;
  uint32_t i = 0;
  do check(heddle_executor_input_info(e->ex, i, &info, &err), &err);
  while (info.is_param && ++i < heddle_executor_input_count(e->ex));
  if (info.is_param || info.ndim == UINT32_MAX) fail("it has no input whose shape is known", e->path);
  for (uint32_t d = 0; d < info.ndim; d++) n *= (size_t)info.shape[d];
  snprintf(path, sizeof path, "%s.input", e->path);
  FILE *f = fopen(path, "rb");
  float *data = malloc(n * sizeof *data);
  if (f == NULL || data == NULL || fread(data, sizeof *data, n, f) != n) fail("its input cannot be read", e->path);
  fclose(f);
  heddle_tensor *t;
  check(heddle_tensor_wrap(data, HEDDLE_FLOAT32, info.shape, info.ndim, NULL, NULL, NULL, &t, &err), &err);
  check(heddle_executor_set_input(e->ex, i, t, &err), &err);
  heddle_tensor_release(t);
  free(data);
}

static void run_entry(const entry *e) {
  heddle_error err;
  check(heddle_executor_run(e->ex, HEDDLE_FOREVER, &err), &err);
}

static void open_model(entry *e, const char *path, int threads) {
  heddle_error err;
  heddle_model *m;
  char count[16];
  snprintf(e->path, sizeof e->path, "%s", path);
  snprintf(count, sizeof count, "%d", threads);
  e->threads = threads;
  const heddle_setting one = {"threads", count};
  heddle_model_options options = {.struct_size = sizeof options, .devices = devices, .optimize = "on"};
  check(heddle_context_create(&one, 1, NULL, NULL, &e->ctx, &err), &err);
  check(heddle_model_load(e->ctx, path, NULL, &options, &m, &err), &err);
  check(heddle_executor_create(m, &e->ex, &err), &err);
  heddle_model_release(m);
  set_input(e);
}

static void close_model(entry *e) {
  if (e->ctx == NULL) return;
  heddle_executor_release(e->ex);
  heddle_context_release(e->ctx);
}

static entry *find_entry(entry *list, const char *path, int threads) {
  int i = 0;
  while (i < MOST_MODELS && list[i].ctx != NULL && (list[i].threads != threads || strcmp(list[i].path, path) != 0)) i++;
  if (i == MOST_MODELS) fail("there are too many models", path);
  if (list[i].ctx == NULL) open_model(&list[i], path, threads);
  return &list[i];
}

static double write_output(const entry *e) {
  heddle_error err;
  heddle_tensor *t;
  char path[MOST_PATH + 16];
  run_entry(e);
  check(heddle_executor_view_output(e->ex, 0, &t, &err), &err);
  const size_t bytes = heddle_tensor_bytes(t);
  snprintf(path, sizeof path, "%s.output", e->path);
  FILE *f = fopen(path, "wb");
  if (f == NULL || fwrite(heddle_tensor_data(t), 1, bytes, f) != bytes || fclose(f) != 0)
    fail("its output cannot be written", e->path);
  heddle_tensor_release(t);
  return (double)bytes;
}

static double timed(const entry *e, int runs) {
  run_entry(e);
  const double start = now_ns();
  for (int i = 0; i < runs; i++) run_entry(e);
  return (now_ns() - start) / runs;
}

int main(int argc, char **argv) {
  static entry models[MOST_MODELS];
  char line[MOST_PATH + 64], what[16], path[MOST_PATH];
  int threads, runs;
  if (argc == 3 && atoi(argv[2]) > 0 && strlen(argv[1]) < MOST_PATH) {
    entry one = {0};
    open_model(&one, argv[1], atoi(argv[2]));
    run_entry(&one);
    close_model(&one);
    return 0;
  }
  if (argc > 2) {
    fprintf(stderr, "usage: bench_models [DEVICES | FILE THREADS]\n");
    return 2;
  }
  if (argc == 2) devices = argv[1];
  while (fgets(line, sizeof line, stdin) != NULL) {
    double answer = 0;
    if (sscanf(line, "%15s %1023s %d %d", what, path, &threads, &runs) != 4 || threads < 1 || runs < 1)
      fail("a line that is no order", line);
    if (strcmp(what, "peak") == 0) answer = hand_peak(threads);
    else if (strcmp(what, "output") == 0) answer = write_output(find_entry(models, path, threads));
    else if (strcmp(what, "run") != 0) fail("a line that is no order", line);
    else answer = timed(find_entry(models, path, threads), runs);
    printf("%.3f\n", answer);
    fflush(stdout);
  }
  for (int i = 0; i < MOST_MODELS; i++) close_model(&models[i]);
  return 0;
}
