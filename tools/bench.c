/* tools/bench.c: heddle bench: how long a run takes. One untimed run first; then each of R repeats times N runs and
 * divides, with N grown until a repeat takes long enough. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "session.h"
#include "text.h"

static const option known[] = {
    OPTION_PARAMS,
    OPTION_LIB,
    OPTION_MODEL_NAME,
    OPTION_DEVICE,
    OPTION_PLACE,
    OPTION_OPTIMIZE,
    OPTION_INPUT,
    {"random", OPTION_FLAG, NULL, offsetof(options, random), "makes up inputs that are not given (as it does anyway)"},
    {"repeat", OPTION_COUNT, "R", offsetof(options, repeat), "measurements; 5 by default"},
    {"number", OPTION_COUNT, "N", offsetof(options, number), "runs in a measurement, at first; 5 by default"},
    {"min-repeat-ms", OPTION_NUMBER, "T", offsetof(options, min_repeat_ms),
     "N grows until a measurement takes T milliseconds"},
    {"limit-zero-time", OPTION_COUNT, "N", offsetof(options, zero_limit),
     "most measurements in which no time passes; 100 by default"},
    {"cooldown-ms", OPTION_NUMBER, "T", offsetof(options, cooldown_ms), "sleeps between groups of measurements"},
    {"repeats-to-cooldown", OPTION_COUNT, "N", offsetof(options, repeats_to_cooldown),
     "measurements in such a group; 1 by default"},
    {"end-to-end", OPTION_FLAG, NULL, offsetof(options, end_to_end), "times setting inputs and reading outputs too"},
    {"threads", OPTION_COUNT, "N", offsetof(options, threads), "threads for devices that compute on the host"},
    {"timeout", OPTION_NUMBER, "S", offsetof(options, timeout),
     "gives up when a run, or bringing the constants to devices, takes S seconds"},
    {"json", OPTION_FLAG, NULL, offsetof(options, json), "one JSON object; times in seconds"},
    OPTION_SET,
    OPTION_HELP,
    OPTION_END};

typedef struct bench {
  session s;
  heddle_tensor **inputs; /* end to end: a value for each input that is no parameter, else NULL */
  heddle_tensor **outputs;
  uint32_t n_inputs, n_outputs;
  double *results; /* seconds a run, one a repeat */
  uint64_t number;
  uint64_t timeout_ns;
} bench;

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_ms(double ms) {
  struct timespec t = {(time_t)(ms / 1e3), (long)(fmod(ms, 1e3) * 1e6)};
  while (nanosleep(&t, &t) != 0) {}
}

static heddle_status once(bench *b, heddle_error *err) {
  heddle_executor *ex = b->s.ex;
  heddle_status s = HEDDLE_OK;
  if (b->inputs != NULL)
    for (uint32_t i = 0; i < b->n_inputs && s == HEDDLE_OK; i++)
      if (b->inputs[i] != NULL) s = heddle_executor_set_input(ex, i, b->inputs[i], err);
  if (s == HEDDLE_OK) s = heddle_executor_run(ex, b->timeout_ns, err);
  if (b->outputs != NULL)
    for (uint32_t i = 0; i < b->n_outputs && s == HEDDLE_OK; i++)
      s = heddle_executor_get_output(ex, i, b->outputs[i], err);
  return s;
}

static heddle_status time_runs(bench *b, uint64_t number, double *seconds, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  uint64_t start = now_ns();
  for (uint64_t i = 0; i < number && s == HEDDLE_OK; i++) s = once(b, err);
  *seconds = (double)(now_ns() - start) / 1e9;
  return s;
}

static heddle_status measure(bench *b, heddle_error *err) {
  const options *o = b->s.o;
  heddle_status s = once(b, err); /* untimed */
  for (uint64_t r = 0; r < o->repeat && s == HEDDLE_OK; r++) {
    if (r > 0 && o->cooldown_ms > 0 && r % o->repeats_to_cooldown == 0) sleep_ms(o->cooldown_ms);
    progress("measurement %" PRIu64 " of %" PRIu64, r + 1, o->repeat);
    double seconds = 0;
    for (uint64_t zeros = 0;;) {
      s = time_runs(b, b->number, &seconds, err);
      if (s != HEDDLE_OK || seconds * 1e3 >= o->min_repeat_ms) break;
      if (seconds <= 0 && ++zeros >= o->zero_limit) break;
      double wanted = seconds > 0 ? o->min_repeat_ms / 1e3 / (seconds / (double)b->number) + 1 : 0;
      if (wanted < (double)b->number * 1.618) wanted = (double)b->number * 1.618;
      b->number = wanted < 1e15 ? (uint64_t)wanted : (uint64_t)1e15;
    }
    b->results[r] = seconds / (double)b->number;
  }
  progress_end();
  return s;
}

/* The inputs as they were set, and room for the outputs, so that both can be copied in each run. */
static int prepare_copies(bench *b) {
  heddle_error err = {0};
  heddle_executor *ex = b->s.ex;
  b->inputs = calloc((size_t)b->n_inputs + 1, sizeof *b->inputs);
  b->outputs = calloc((size_t)b->n_outputs + 1, sizeof *b->outputs);
  if (b->inputs == NULL || b->outputs == NULL) return fail_text("bench", "out of memory");
  for (uint32_t i = 0; i < b->n_inputs; i++) {
    heddle_io_info info = {.struct_size = sizeof info};
    if (heddle_executor_input_info(ex, i, &info, &err) != HEDDLE_OK) return fail("bench", &err);
    if (info.is_param && !b->s.given[i]) continue;
    if (heddle_executor_get_input(ex, i, &b->inputs[i], &err) != HEDDLE_OK) return fail("bench", &err);
  }
  for (uint32_t i = 0; i < b->n_outputs; i++) {
    heddle_io_info info = {.struct_size = sizeof info};
    if (heddle_executor_output_info(ex, i, &info, &err) != HEDDLE_OK) return fail("bench", &err);
    if (info.ndim == UINT32_MAX) return fail_text("bench", "output '%s': its shape is not known", info.name);
    if (heddle_tensor_create(NULL, info.dtype, info.shape, info.ndim, &b->outputs[i], &err) != HEDDLE_OK)
      return fail("bench", &err);
  }
  return DONE;
}

/* ---- what came out */

typedef struct summary {
  double mean, median, std, min, max;
} summary;

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* std is that of the population. sorted is scratch of n. */
static summary summarise(const double *results, double *sorted, size_t n) {
  summary m = {0};
  memcpy(sorted, results, n * sizeof *sorted);
  qsort(sorted, n, sizeof *sorted, by_size);
  for (size_t i = 0; i < n; i++) m.mean += sorted[i] / (double)n;
  for (size_t i = 0; i < n; i++) m.std += (sorted[i] - m.mean) * (sorted[i] - m.mean) / (double)n;
  m.std = sqrt(m.std);
  m.median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
  m.min = sorted[0];
  m.max = sorted[n - 1];
  return m;
}

static json_t *random_names(const bench *b) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < b->n_inputs; i++) {
    heddle_io_info info = {.struct_size = sizeof info};
    if (session_is_random(&b->s, i) && heddle_executor_input_info(b->s.ex, i, &info, NULL) == HEDDLE_OK)
      json_array_append_new(list, json_words(info.name));
  }
  return list;
}

/* Bytes that the executor holds, and scratch memory of compiled code, at most so far. */
static void memory_of(const bench *b, uint64_t *held, uint64_t *scratch) {
  heddle_executor_stats stats = {.struct_size = sizeof stats};
  heddle_module_info info = {.struct_size = sizeof info};
  const heddle_module *library = heddle_model_library(b->s.model);
  *held = heddle_executor_get_stats(b->s.ex, &stats, NULL) == HEDDLE_OK ? stats.device_bytes : 0;
  *scratch = library != NULL && heddle_module_get_info(library, &info, NULL) == HEDDLE_OK ? info.scratch_bytes : 0;
}

static int report_json(const bench *b, const summary *m) {
  const options *o = b->s.o;
  json_t *results = json_array(), *devices = json_array();
  uint64_t held, scratch;
  memory_of(b, &held, &scratch);
  for (uint64_t i = 0; i < o->repeat; i++) json_array_append_new(results, json_real(b->results[i]));
  for (size_t i = 0; i < heddle_model_device_count(b->s.model); i++)
    json_array_append_new(devices, json_words(heddle_device_name(heddle_model_device(b->s.model, i))));
  return print_json("bench",
                    json_pack("{so so sf sf sf sf sf so sI sI sb so sI sI}", "model", json_words(o->model), "devices",
                              devices, "mean", m->mean, "median", m->median, "std", m->std, "min", m->min, "max",
                              m->max, "results", results, "repeat", (json_int_t)o->repeat, "number",
                              (json_int_t)b->number, "end_to_end", (int)o->end_to_end, "random_inputs", random_names(b),
                              "memory_bytes", (json_int_t)held, "scratch_bytes", (json_int_t)scratch));
}

static void report_memory(const bench *b) {
  uint64_t held, scratch;
  char text[32];
  memory_of(b, &held, &scratch);
  bytes_text(held, text);
  printf("memory %s", text);
  bytes_text(scratch, text);
  if (heddle_model_library(b->s.model) != NULL) printf(", scratch memory of compiled code %s at most", text);
  printf("\n");
}

static void report_text(const bench *b, const summary *m) {
  const options *o = b->s.o;
  for (uint32_t i = 0; i < b->n_inputs; i++) {
    heddle_io_info info = {.struct_size = sizeof info};
    if (session_is_random(&b->s, i) && heddle_executor_input_info(b->s.ex, i, &info, NULL) == HEDDLE_OK)
      printf("input %s is made up\n", info.name);
  }
  printf("%" PRIu64 " x %" PRIu64 " runs%s, milliseconds a run:\n", o->repeat, b->number,
         o->end_to_end ? " with inputs set and outputs read" : "");
  printf("%12s%12s%12s%12s%12s\n", "mean", "median", "max", "min", "std");
  printf("%12.4f%12.4f%12.4f%12.4f%12.4f\n", m->mean * 1e3, m->median * 1e3, m->max * 1e3, m->min * 1e3, m->std * 1e3);
  report_memory(b);
}

static int bench_it(bench *b) {
  const options *o = b->s.o;
  heddle_error err = {0};
  int status = session_executor(&b->s, true);
  if (status != DONE) return status;
  b->n_inputs = heddle_executor_input_count(b->s.ex);
  b->n_outputs = heddle_executor_output_count(b->s.ex);
  b->number = o->number;
  b->timeout_ns = session_timeout(&b->s);
  b->results = calloc(o->repeat, 2 * sizeof *b->results);
  if (b->results == NULL) return fail_text("bench", "out of memory");
  if (o->end_to_end) status = prepare_copies(b);
  if (status != DONE) return status;
  heddle_status s = measure(b, &err);
  if (s != HEDDLE_OK) return session_run_failed(&b->s, s, &err);
  summary m = summarise(b->results, b->results + o->repeat, o->repeat);
  if (o->json) return report_json(b, &m);
  report_text(b, &m);
  return DONE;
}

static int run_bench(const options *o) {
  if (o->repeat == 0 || o->number == 0 || o->repeats_to_cooldown == 0 || o->repeat > 1000000) {
    fprintf(stderr, "heddle bench: --repeat (at most a million), --number and --repeats-to-cooldown are at least 1\n");
    return WRONG_WORDS;
  }
  bench b = {0};
  int status = session_model(&b.s, "bench", o);
  if (status == DONE) status = bench_it(&b);
  for (uint32_t i = 0; b.inputs != NULL && i < b.n_inputs; i++) heddle_tensor_release(b.inputs[i]);
  for (uint32_t i = 0; b.outputs != NULL && i < b.n_outputs; i++) heddle_tensor_release(b.outputs[i]);
  free(b.inputs);
  free(b.outputs);
  free(b.results);
  return session_finish(&b.s, status);
}

const command bench_command = {
    "bench",
    "how long a run takes",
    "Runs a model once without timing it, then --repeat times: runs it --number times and takes the time of one run\n"
    "from that. Inputs that are not given are made up, always the same ones, and named in what is printed.",
    known,
    true,
    run_bench};
