/* tools/bench.c: heddle bench: how long a run of a model takes, or a call of a compiled function. measure.c has the rule
 * of repeats and numbers. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "against.h"
#include "bench_call.h"
#include "measure.h"
#include "session.h"
#include "text.h"

#define RUN "run" /* what --func calls the run of a model */

static const option known[] = {
    OPTIONS_OF_RUNS,
    {"random", OPTION_FLAG, NULL, offsetof(options, random), "makes up inputs that are not given (as it does anyway)"},
    {"func", OPTION_TEXT, "NAME", offsetof(options, func),
     "times this function of the library, called with --input's values; run, the default, is the model's run"},
    {"repeat", OPTION_COUNT, "R", offsetof(options, repeat), "measurements; 5 by default"},
    {"number", OPTION_COUNT, "N", offsetof(options, number), "runs in a measurement, at first; 5 by default"},
    {"min-repeat-ms", OPTION_NUMBER, "T", offsetof(options, min_repeat_ms),
     "N grows, and stays grown, until a measurement takes T milliseconds"},
    {"limit-zero-time-iterations", OPTION_COUNT, "N", offsetof(options, zero_limit),
     "most measurements in which no time passes; 100 by default"},
    {"cooldown-interval-ms", OPTION_NUMBER, "T", offsetof(options, cooldown_ms),
     "sleeps so long between groups of measurements"},
    {"repeats-to-cooldown", OPTION_COUNT, "N", offsetof(options, repeats_to_cooldown),
     "measurements in such a group; 1 by default"},
    {"end-to-end", OPTION_FLAG, NULL, offsetof(options, end_to_end),
     "times setting inputs and reading outputs too; always of the model's run, whatever --func says"},
    OPTION_IN_FLIGHT("also times a stream of runs of which N are under way at any time"),
    OPTION_PROGRAMS,
    {"timer", OPTION_TEXT, "CLOCK", offsetof(options, timer),
     "host: around the runs; device: by the devices' clocks, from first to last operator; CUDA, ROCm: device by "
     "default"},
    {"threads", OPTION_COUNT, "N", offsetof(options, threads), "threads for devices that compute on the host"},
    {"timeout", OPTION_NUMBER, "S", offsetof(options, timeout),
     "gives up when a run, or bringing the constants to devices, takes S seconds"},
    {"json", OPTION_FLAG, NULL, offsetof(options, json), "one JSON object; times in seconds"},
    OPTION_AGAINST("onnxruntime: by turns with ONNX Runtime, and which operators lose; needs the Python packages"),
    OPTION_SET,
    OPTION_TRUST,
    OPTION_KEY,
    OPTION_HELP,
    OPTION_END};

typedef struct bench {
  session s;
  bench_call call; /* --func: of a function; else s has the model */
  bool is_call;
  bool by_device;         /* times are those of the devices' clocks */
  heddle_tensor **inputs; /* end to end: a value for each input that is no parameter, else NULL */
  heddle_tensor **outputs;
  uint32_t n_inputs, n_outputs;
  double *results; /* seconds a run, one a repeat; then scratch, then those of a stream of runs, and scratch */
  uint64_t number; /* of runs in the last measurement */
  uint64_t stream_number;
  uint64_t timeout_ns;
} bench;

/* ---- what is measured, and how */

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_ms(void *ctx, double ms) {
  struct timespec t = {(time_t)(ms / 1e3), (long)(fmod(ms, 1e3) * 1e6)};
  (void)ctx;
  while (nanosleep(&t, &t) != 0) {}
}

static void tell(void *ctx, uint64_t i, uint64_t n) {
  (void)ctx;
  progress("measurement %" PRIu64 " of %" PRIu64, i + 1, n);
}

static heddle_status set_inputs(bench *b, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; b->inputs != NULL && i < b->n_inputs && s == HEDDLE_OK; i++)
    if (b->inputs[i] != NULL) s = heddle_executor_set_input(b->s.ex, i, b->inputs[i], err);
  return s;
}

static heddle_status get_outputs(bench *b, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; b->outputs != NULL && i < b->n_outputs && s == HEDDLE_OK; i++)
    s = heddle_executor_get_output(b->s.ex, i, b->outputs[i], err);
  return s;
}

static heddle_status once(void *ctx, heddle_error *err) {
  bench *b = ctx;
  if (b->is_call) return bench_call_once(&b->call, err);
  heddle_status s = set_inputs(b, err);
  if (s == HEDDLE_OK) s = heddle_executor_run(b->s.ex, b->timeout_ns, err);
  return s == HEDDLE_OK ? get_outputs(b, err) : s;
}

static heddle_status start_one(bench *b, heddle_error *err) {
  heddle_status s = set_inputs(b, err);
  return s == HEDDLE_OK ? heddle_executor_start(b->s.ex, err) : s;
}

static heddle_status end_one(bench *b, heddle_error *err) {
  heddle_status s = heddle_executor_wait(b->s.ex, b->timeout_ns, err);
  return s == HEDDLE_OK ? get_outputs(b, err) : s;
}

/* The stream is full before the clock starts and when it stops: each run that ends meanwhile is followed by another. */
static heddle_status time_stream(void *ctx, uint64_t number, uint64_t *ns, heddle_error *err) {
  bench *b = ctx;
  const uint64_t n = b->s.o->in_flight;
  heddle_status s = HEDDLE_OK;
  uint64_t start = 0;
  for (uint64_t i = 0; i < n && s == HEDDLE_OK; i++) s = start_one(b, err);
  for (uint64_t i = 0; i < n + number && s == HEDDLE_OK; i++) {
    if (i == n) start = now_ns();
    s = end_one(b, err);
    if (s == HEDDLE_OK) s = start_one(b, err);
  }
  *ns = now_ns() - start;
  for (uint64_t i = 0; i < n && s == HEDDLE_OK; i++) s = end_one(b, err);
  return s;
}

static heddle_status time_by_host(void *ctx, uint64_t number, uint64_t *ns, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  uint64_t start = now_ns();
  for (uint64_t i = 0; i < number && s == HEDDLE_OK; i++) s = once(ctx, err);
  *ns = now_ns() - start;
  return s;
}

/* From the begin of the first operator to the end of the last: copies between them count, those before and after do
 * not. */
static uint64_t span_of(const heddle_profile_entry *e, size_t n) {
  static const char *const moves[] = {"h2d", "d2h", "d2d", "peer", "host_copy", "release", "acquire"};
  uint64_t first = UINT64_MAX, last = 0;
  for (size_t i = 0; i < n; i++) {
    bool is_move = false;
    for (size_t k = 0; k < sizeof moves / sizeof moves[0]; k++) is_move = is_move || strcmp(e[i].op, moves[k]) == 0;
    if (is_move) continue;
    if (e[i].start_ns < first) first = e[i].start_ns;
    if (e[i].end_ns > last) last = e[i].end_ns;
  }
  return last > first ? last - first : 0;
}

static heddle_status time_by_device(void *ctx, uint64_t number, uint64_t *ns, heddle_error *err) {
  bench *b = ctx;
  heddle_status s = HEDDLE_OK;
  *ns = 0;
  for (uint64_t i = 0; i < number && s == HEDDLE_OK; i++) {
    const heddle_profile_entry *entries = NULL;
    size_t n = 0;
    s = heddle_executor_profile(b->s.ex, &entries, &n, err);
    if (s == HEDDLE_OK) *ns += span_of(entries, n);
  }
  return s;
}

/* --timer; without it the devices' clocks where the first device is one of CUDA's or ROCm's, as TVM has it. */
static bool wants_device_timer(const bench *b) {
  const options *o = b->s.o;
  heddle_device_info info = {.struct_size = sizeof info};
  if (o->timer != NULL) return strcmp(o->timer, "device") == 0;
  if (o->end_to_end || heddle_model_device_count(b->s.model) == 0 ||
      heddle_device_get_info(heddle_model_device(b->s.model, 0), &info, NULL) != HEDDLE_OK)
    return false;
  return info.type == HEDDLE_DEVICE_CUDA || info.type == HEDDLE_DEVICE_ROCM;
}

/* ---- end to end */

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

/* The name of input i where its value was made up, else NULL. */
static const char *made_up_name(const bench *b, uint32_t i) {
  heddle_io_info info = {.struct_size = sizeof info};
  if (b->is_call) return i < b->call.n_made_up ? b->call.made_up[i] : NULL;
  if (!session_is_random(&b->s, i) || heddle_executor_input_info(b->s.ex, i, &info, NULL) != HEDDLE_OK) return NULL;
  return info.name;
}

static json_t *random_names(const bench *b) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < (b->is_call ? b->call.n_made_up : b->n_inputs); i++)
    if (made_up_name(b, i) != NULL) json_array_append_new(list, json_words(made_up_name(b, i)));
  return list;
}

static const heddle_module *library_of(const bench *b) {
  return b->is_call ? b->s.library : heddle_model_library(b->s.model);
}

/* Bytes that the executor holds, and scratch memory of compiled code, at most so far. */
static void memory_of(const bench *b, uint64_t *held, uint64_t *scratch) {
  heddle_executor_stats stats = {.struct_size = sizeof stats};
  heddle_module_info info = {.struct_size = sizeof info};
  const heddle_module *library = library_of(b);
  *held = !b->is_call && heddle_executor_get_stats(b->s.ex, &stats, NULL) == HEDDLE_OK ? stats.device_bytes : 0;
  *scratch = library != NULL && heddle_module_get_info(library, &info, NULL) == HEDDLE_OK ? info.scratch_bytes : 0;
}

static json_t *device_names(const bench *b) {
  json_t *list = json_array();
  if (b->is_call && b->call.device != NULL) json_array_append_new(list, json_words(heddle_device_name(b->call.device)));
  else if (b->is_call) json_array_append_new(list, json_string("host"));
  for (size_t i = 0; !b->is_call && i < heddle_model_device_count(b->s.model); i++)
    json_array_append_new(list, json_words(heddle_device_name(heddle_model_device(b->s.model, i))));
  return list;
}

static json_t *list_of(const double *results, uint64_t n) {
  json_t *list = json_array();
  for (uint64_t i = 0; i < n; i++) json_array_append_new(list, json_real(results[i]));
  return list;
}

/* A stream of runs; null where there was none. */
static json_t *stream_json(const bench *b, const measure_summary *m) {
  const options *o = b->s.o;
  if (o->in_flight == 1) return json_null();
  return json_pack("{sf sf sf sf sf so sI}", "mean", m->mean, "median", m->median, "std", m->std, "min", m->min, "max",
                   m->max, "results", list_of(b->results + 2 * o->repeat, o->repeat), "number",
                   (json_int_t)b->stream_number);
}

static int report_json(const bench *b, const measure_summary *m, const measure_summary *stream) {
  const options *o = b->s.o;
  uint64_t held, scratch;
  memory_of(b, &held, &scratch);
  return print_json("bench",
                    json_pack("{so so so sf sf sf sf sf so sI sI sb ss so sI sI sI so}", "model", json_words(o->model),
                              "func", json_words(b->is_call ? o->func : RUN), "devices", device_names(b), "mean",
                              m->mean, "median", m->median, "std", m->std, "min", m->min, "max", m->max, "results",
                              list_of(b->results, o->repeat), "repeat", (json_int_t)o->repeat, "number",
                              (json_int_t)b->number, "end_to_end", (int)o->end_to_end, "timer",
                              b->by_device ? "device" : "host", "random_inputs", random_names(b), "memory_bytes",
                              (json_int_t)held, "scratch_bytes", (json_int_t)scratch, "in_flight",
                              (json_int_t)o->in_flight, "stream", stream_json(b, stream)));
}

static void report_memory(const bench *b) {
  uint64_t held, scratch;
  char text[32];
  memory_of(b, &held, &scratch);
  bytes_text(held, text);
  if (!b->is_call) print("memory %s", text);
  bytes_text(scratch, text);
  if (library_of(b) != NULL) print("%sscratch memory of compiled code %s at most", b->is_call ? "" : ", ", text);
  print("\n");
}

static void print_summary(const measure_summary *m) {
  print("%12s%12s%12s%12s%12s\n", "mean", "median", "max", "min", "std");
  print("%12.4f%12.4f%12.4f%12.4f%12.4f\n", m->mean * 1e3, m->median * 1e3, m->max * 1e3, m->min * 1e3, m->std * 1e3);
}

static void report_text(const bench *b, const measure_summary *m, const measure_summary *stream) {
  const options *o = b->s.o;
  for (uint32_t i = 0; i < (b->is_call ? b->call.n_made_up : b->n_inputs); i++)
    if (made_up_name(b, i) != NULL) print("input %s is made up\n", made_up_name(b, i));
  if (b->is_call)
    print("%" PRIu64 " x %" PRIu64 " calls of %s on %s, milliseconds a call:\n", o->repeat, b->number, o->func,
          b->call.device != NULL ? heddle_device_name(b->call.device) : "the host");
  else
    print("%" PRIu64 " x %" PRIu64 " runs%s, milliseconds a run%s:\n", o->repeat, b->number,
          o->end_to_end ? " with inputs set and outputs read" : "", b->by_device ? " by the devices' clocks" : "");
  print_summary(m);
  if (o->in_flight > 1) {
    print("%" PRIu64 " x %" PRIu64 " runs of a stream with %" PRIu64
          " in flight, milliseconds a run (%.1f runs a second):"
          "\n",
          o->repeat, b->stream_number, o->in_flight, stream->median > 0 ? 1 / stream->median : 0);
    print_summary(stream);
  }
  report_memory(b);
}

/* ---- the command */

static int open_model(bench *b, const options *o) {
  int status = session_model(&b->s, "bench", o);
  if (status == DONE) status = session_executor(&b->s, true);
  if (status != DONE) return status;
  b->n_inputs = heddle_executor_input_count(b->s.ex);
  b->n_outputs = heddle_executor_output_count(b->s.ex);
  b->by_device = wants_device_timer(b);
  b->timeout_ns = session_timeout(&b->s);
  return o->end_to_end ? prepare_copies(b) : DONE;
}

static int bench_it(bench *b, const options *o) {
  heddle_error err = {0};
  const measure_rule rule = {.repeat = o->repeat,
                             .number = o->number,
                             .min_repeat_ms = o->min_repeat_ms,
                             .zero_limit = o->zero_limit,
                             .cooldown_ms = o->cooldown_ms,
                             .repeats_to_cooldown = o->repeats_to_cooldown};
  measure_subject subject = {
      .ctx = b, .warm_up = once, .time = b->by_device ? time_by_device : time_by_host, .sleep = sleep_ms, .tell = tell};
  b->results = calloc(o->repeat, 4 * sizeof *b->results);
  if (b->results == NULL) return fail_text("bench", "out of memory");
  heddle_status s = measure(&rule, &subject, b->results, &b->number, &err);
  subject.time = time_stream;
  double *stream_results = b->results + 2 * o->repeat;
  if (s == HEDDLE_OK && o->in_flight > 1) s = measure(&rule, &subject, stream_results, &b->stream_number, &err);
  progress_end();
  if (s != HEDDLE_OK) return b->is_call ? fail("bench", &err) : session_run_failed(&b->s, s, &err);
  measure_summary m = measure_summarise(b->results, b->results + o->repeat, o->repeat);
  measure_summary stream = measure_summarise(stream_results, stream_results + o->repeat, o->repeat);
  if (o->json) return report_json(b, &m, &stream);
  report_text(b, &m, &stream);
  return DONE;
}

static int wrong_words(const options *o, bool is_call) {
  const char *why = NULL;
  if (o->repeat == 0 || o->number == 0 || o->repeats_to_cooldown == 0 || o->zero_limit == 0 || o->repeat > 1000000)
    why =
        "--repeat (at most a million), --number, --repeats-to-cooldown and --limit-zero-time-iterations are at least 1";
  if (o->timer != NULL && strcmp(o->timer, "host") != 0 && strcmp(o->timer, "device") != 0)
    why = "--timer is host or device";
  bool by_device = o->timer != NULL && strcmp(o->timer, "device") == 0;
  if (by_device && o->end_to_end) why = "--end-to-end is timed by the host's clock; leave out --timer device";
  if (by_device && is_call) why = "calls of --func are timed by the host's clock; leave out --timer device";
  if (by_device && o->in_flight > 1) why = "a stream of runs is timed by the host's clock; leave out --timer device";
  if (is_call && o->in_flight > 1) why = "--in-flight is about runs of a model; leave it out with --func";
  if (is_call && (o->params != NULL || o->model_name != NULL || o->place.count > 0 || o->timeout > 0 ||
                  o->memory != NULL || o->on_failure != NULL || o->state != NULL))
    why = "--params, --model, --place, --memory, --on-failure, --state and --timeout are about runs of a model; leave "
          "them out "
          "with --func";
  if (why == NULL) return DONE;
  print_error("heddle bench: %s\n", why);
  return WRONG_WORDS;
}

static int run_bench(const options *o) {
  bench b = {0};
  if (o->against != NULL) return against_run("bench", o);
  b.is_call = o->func != NULL && strcmp(o->func, RUN) != 0 && !o->end_to_end;
  int status = wrong_words(o, b.is_call);
  if (status != DONE) return status;
  status = b.is_call ? bench_call_open(&b.call, &b.s, o) : open_model(&b, o);
  if (status == DONE) status = bench_it(&b, o);
  for (uint32_t i = 0; b.inputs != NULL && i < b.n_inputs; i++) heddle_tensor_release(b.inputs[i]);
  for (uint32_t i = 0; b.outputs != NULL && i < b.n_outputs; i++) heddle_tensor_release(b.outputs[i]);
  free(b.inputs);
  free(b.outputs);
  free(b.results);
  if (b.is_call) bench_call_finish(&b.call);
  return session_finish(&b.s, status);
}

const command bench_command = {
    "bench",
    "how long a run takes",
    "Runs a model once without timing it, then --repeat times: runs it --number times and takes the time of one run\n"
    "from that. Inputs that are not given are made up, always the same ones, and named in what is printed.\n"
    "With --func NAME it calls a function of a compiled library instead; the values of --input are then its arguments, "
    "in\n"
    "their order: FILE.npy, a number, or a dtype and a shape, such as a=float32:16x32, for made-up values.",
    known,
    true,
    run_bench};
