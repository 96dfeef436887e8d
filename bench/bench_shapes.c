/* bench/bench_shapes.c: one ONNX model whose input has an open second dimension, on the devices of its third argument, as
 * requested on standard input. Of the lines
 *   run LENGTH RUNS       nanoseconds to set an input of that length and to run, the mean over RUNS
 *   output LENGTH RUNS    the same once, and the first output's bytes go to FILE.output
 *   bytes 0 1             the most memory that the process has held, in bytes
 * each is answered with one number. Arguments: FILE WIDTH DEVICES THREADS [PROGRAMS]; the input is float32 of shape
 * (1, LENGTH, WIDTH), its bytes are the first of FILE.input. */
#include <string.h>

#include "bench/bench.h"

enum { MOST_LENGTH = 4096 };

typedef struct subject {
  heddle_executor *ex;
  float *data; /* the bytes of the longest input */
  size_t n;
  int64_t width;
} subject;

static void fail(const char *what) {
  fprintf(stderr, "bench_shapes: %s\n", what);
  exit(1);
}

static void read_input(subject *s, const char *path) {
  char name[1024];
  snprintf(name, sizeof name, "%s.input", path);
  FILE *f = fopen(name, "rb");
  s->data = malloc((size_t)MOST_LENGTH * (size_t)s->width * sizeof *s->data);
  if (f == NULL || s->data == NULL) fail("its input cannot be read");
  s->n = fread(s->data, sizeof *s->data, (size_t)MOST_LENGTH * (size_t)s->width, f);
  fclose(f);
}

static double timed(const subject *s, int64_t length, int runs) {
  heddle_error err;
  heddle_tensor *t;
  const int64_t shape[3] = {1, length, s->width};
  if (length < 1 || (size_t)(length * s->width) > s->n) fail("its input is not that long");
  check(heddle_tensor_wrap(s->data, HEDDLE_FLOAT32, shape, 3, NULL, NULL, NULL, &t, &err), &err);
  const double start = now_ns();
  for (int i = 0; i < runs; i++) {
    check(heddle_executor_set_input(s->ex, 0, t, &err), &err);
    check(heddle_executor_run(s->ex, HEDDLE_FOREVER, &err), &err);
  }
  const double spent = (now_ns() - start) / runs;
  heddle_tensor_release(t);
  return spent;
}

static void write_output(const subject *s, const char *path) {
  heddle_error err;
  heddle_tensor *t;
  char name[1024];
  check(heddle_executor_view_output(s->ex, 0, &t, &err), &err);
  snprintf(name, sizeof name, "%s.output", path);
  FILE *f = fopen(name, "wb");
  const size_t bytes = heddle_tensor_bytes(t);
  if (f == NULL || fwrite(heddle_tensor_data(t), 1, bytes, f) != bytes || fclose(f) != 0)
    fail("its output cannot be written");
  heddle_tensor_release(t);
}

/* Of this program alone: what the system counts as the maximum of a process has that of its parent in it. */
static double most_bytes(void) {
  char line[256];
  long kilobytes = 0;
  FILE *f = fopen("/proc/self/status", "r");
  while (f != NULL && fgets(line, sizeof line, f) != NULL)
    if (sscanf(line, "VmHWM: %ld", &kilobytes) == 1) break;
  if (f != NULL) fclose(f);
  return (double)kilobytes * 1024;
}

int main(int argc, char **argv) {
  subject s = {0};
  heddle_error err;
  heddle_context *ctx;
  heddle_model *m;
  char line[128], what[16];
  long length;
  int runs;
  if (argc < 5 || argc > 6 || (s.width = atol(argv[2])) < 1) {
    fprintf(stderr, "usage: bench_shapes FILE WIDTH DEVICES THREADS [PROGRAMS]\n");
    return 2;
  }
  const heddle_setting one = {"threads", argv[4]};
  const heddle_model_options options = {.struct_size = sizeof options,
                                        .devices = argv[3],
                                        .optimize = "on",
                                        .max_programs = argc == 6 ? (uint32_t)atoi(argv[5]) : 0};
  read_input(&s, argv[1]);
  check(heddle_context_create(&one, 1, NULL, NULL, &ctx, &err), &err);
  check(heddle_model_load(ctx, argv[1], NULL, &options, &m, &err), &err);
  check(heddle_executor_create(m, &s.ex, &err), &err);
  heddle_model_release(m);
  while (fgets(line, sizeof line, stdin) != NULL) {
    double answer;
    if (sscanf(line, "%15s %ld %d", what, &length, &runs) != 3 || runs < 1) fail("a line that is no order");
    if (strcmp(what, "bytes") == 0) {
      answer = most_bytes();
    } else {
      answer = timed(&s, length, runs);
      if (strcmp(what, "output") == 0) write_output(&s, argv[1]);
      else if (strcmp(what, "run") != 0) fail("a line that is no order");
    }
    printf("%.3f\n", answer);
    fflush(stdout);
  }
  heddle_executor_release(s.ex);
  heddle_context_release(ctx);
  free(s.data);
  return 0;
}
