/* tests/executor/test_faults.c: every n-th call of a kind fails, on cpu and two accelerators: each failure is a clean
 * error, leaks nothing, and leaves the context usable: the same work, done again at once, gives the right numbers.
 * What opencl is not asked: views under launches (it takes slices) and flushes (its memory is coherent).
 * labels: threads
 */
#include <string.h>

#include "cases.h"
#include "core/alloc.h"
#include "core/context.h"
#include "core/device.h"
#include "heddle/heddle.h"

static const char graph_json[] =
    "{\"heddle\":{\"version\":1,\"opset\":17},\"nodes\":["
    "{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]},{\"op\":\"null\",\"name\":\"w\",\"inputs\":[]},"
    "{\"op\":\"MatMul\",\"name\":\"a\",\"device\":\"cpu\",\"inputs\":[[0,0,0],[1,0,0]]},"
    "{\"op\":\"MatMul\",\"name\":\"b\",\"device\":\"sim:0\",\"inputs\":[[2,0,0],[1,0,0]]},"
    "{\"op\":\"Add\",\"name\":\"c\",\"device\":\"sim:0\",\"inputs\":[[3,0,0],[2,0,0]]},"
    "{\"op\":\"Relu\",\"name\":\"d\",\"device\":\"sim:0\",\"inputs\":[[4,0,0]]},"
    "{\"op\":\"Mul\",\"name\":\"e\",\"device\":\"sim:1\",\"inputs\":[[5,0,0],[3,0,0]]},"
    "{\"op\":\"Add\",\"name\":\"f\",\"device\":\"sim:1\",\"inputs\":[[6,0,0],[1,0,0]]},"
    "{\"op\":\"Add\",\"name\":\"g\",\"device\":\"cpu\",\"inputs\":[[7,0,0],[4,0,0]]}],"
    "\"arg_nodes\":[0,1],\"heads\":[[8,0,0],[5,0,0]],\"node_row_ptr\":[0,1,2,3,4,5,6,7,8,9],"
    "\"attrs\":{\"dltype\":[\"list_str\",[\"float32\",\"float32\",null,null,null,null,null,null,null]],"
    "\"shape\":[\"list_shape\",[[2,2],[2,2],null,null,null,null,null,null,null]]}}";

static const float x_data[4] = {1, 2, 3, 4}, w_data[4] = {0.5f, -1, 0.25f, 2};

static void expected(float g[4], float d[4]) {
  float a[4], b[4];
  for (int i = 0; i < 2; i++) {
    for (int j = 0; j < 2; j++) a[2 * i + j] = x_data[2 * i] * w_data[j] + x_data[2 * i + 1] * w_data[2 + j];
  }
  for (int i = 0; i < 2; i++) {
    for (int j = 0; j < 2; j++) b[2 * i + j] = a[2 * i] * w_data[j] + a[2 * i + 1] * w_data[2 + j];
  }
  for (int i = 0; i < 4; i++) {
    float c = b[i] + a[i];
    d[i] = c > 0 ? c : 0;
    g[i] = d[i] * b[i] + w_data[i] + c;
  }
}

typedef struct job {
  heddle_graph *graph;
  heddle_params *params;
  heddle_model *model;
  heddle_executor *executor;
  float g[4], d[4];
} job;

static heddle_tensor *wrap(const float *data) {
  static const int64_t shape[2] = {2, 2};
  heddle_tensor *t = NULL;
  heddle_error err;
  heddle_tensor_wrap((void *)(uintptr_t)data, HEDDLE_FLOAT32, shape, 2, NULL, NULL, NULL, &t, &err);
  return t;
}

/* Everything from reading the graph to reading the outputs, twice run. Gives the first failure. */
static heddle_status work(heddle_context *ctx, job *j, uint32_t flags, heddle_error *err) {
  heddle_tensor *w = wrap(w_data), *x = wrap(x_data), *g = wrap(j->g), *d = wrap(j->d);
  const char *name = "w";
  heddle_status s = w && x && g && d ? HEDDLE_OK : HEDDLE_ENOMEM;
  if (s != HEDDLE_OK && err != NULL) strcpy(err->text, "out of memory: a tensor");
  heddle_model_options options = {.struct_size = sizeof options, .devices = on("cpu,sim:0,sim:1"), .flags = flags};
  const char *text = on(graph_json);
  if (s == HEDDLE_OK) s = heddle_graph_parse(text, strlen(text), "faults", NULL, &j->graph, err);
  if (s == HEDDLE_OK) s = heddle_params_create(&name, &w, 1, &j->params, err);
  if (s == HEDDLE_OK) s = heddle_model_create(ctx, j->graph, j->params, &options, &j->model, err);
  if (s == HEDDLE_OK) s = heddle_executor_create(j->model, &j->executor, err);
  if (s == HEDDLE_OK) s = heddle_executor_set_input(j->executor, 0, x, err);
  for (int i = 0; s == HEDDLE_OK && i < 2; i++) s = heddle_executor_run(j->executor, 20000000000u, err);
  if (s == HEDDLE_OK) s = heddle_executor_get_output(j->executor, 0, g, err);
  if (s == HEDDLE_OK) s = heddle_executor_get_output(j->executor, 1, d, err);
  heddle_tensor_release(w);
  heddle_tensor_release(x);
  heddle_tensor_release(g);
  heddle_tensor_release(d);
  return s;
}

static void drop(job *j) {
  heddle_executor_release(j->executor);
  heddle_model_release(j->model);
  heddle_params_release(j->params);
  heddle_graph_release(j->graph);
}

static void check_numbers(const job *j) {
  float g[4], d[4];
  expected(g, d);
  for (int i = 0; i < 4; i++) {
    assert_float_equal(j->g[i], g[i], 1e-4);
    assert_float_equal(j->d[i], d[i], 1e-4);
  }
}

/* Nothing of the device's is alive but what was when we opened it. */
static void check_devices(heddle_context *ctx) {
  for (size_t i = 0; i < heddle_context_device_count(ctx); i++) {
    heddle_device *dev = heddle_context_device(ctx, i);
    heddle_error err;
    if (strncmp(dev->name, "null", 4) == 0) continue;
    if (heddle__device_open(dev, &err) != HEDDLE_OK) fail_msg("%s", err.text);
    for (uint32_t key = HEDDLE_QUERY_LIVE_BUFFERS; key <= HEDDLE_QUERY_LIVE_OBJECTS; key++) {
      int64_t live = -1;
      assert_int_equal(dev->t->device.query(dev->handle, key, &live, &err), HEDDLE_OK);
      if (live != 0) fail_msg("%s: %lld alive of kind %u", dev->name, (long long)live, (unsigned)key);
    }
    heddle__device_close(dev);
  }
}

/* The n-th call of a kind on a device fails, for every n that there is; gives how many did. */
static unsigned on_device(const char *kind, const char *device, uint32_t flags, const char *key, const char *value) {
  size_t before = heddle__alloc_live();
  unsigned failures = 0;
  for (unsigned n = 1; n < 400; n++) {
    char rule[64];
    snprintf(rule, sizeof rule, "%s:%u@%s", kind, n, device);
    heddle_setting settings[] = {{"layers", "check,fault"}, {"fault.fail", rule}, {"log", "off"}, {key, value}};
    heddle_context *ctx = NULL;
    heddle_error err = {0};
    if (heddle_context_create(settings, key != NULL ? 4 : 3, NULL, NULL, &ctx, &err) != HEDDLE_OK) {
      fail_msg("%s: %s", rule, err.text);
    }
    heddle_device *held[3] = {NULL}; /* so that what is left behind would still be there to be counted */
    const char *names[3] = {"cpu", on("sim:0"), on("sim:1")};
    for (int i = 0; i < 3 && strcmp(kind, "device.open") != 0; i++) {
      assert_int_equal(heddle_context_find_device(ctx, names[i], &held[i], &err), HEDDLE_OK);
      assert_int_equal(heddle__device_open(held[i], &err), HEDDLE_OK);
    }
    job first = {0}, again = {0};
    heddle_status s = work(ctx, &first, flags, &err);
    if (s != HEDDLE_OK) {
      failures++;
      if (err.text[0] == '\0' || err.status != s)
        fail_msg("%s: status %d, error %d '%s'", rule, s, err.status, err.text);
    } else {
      check_numbers(&first);
    }
    drop(&first);
    if (s != HEDDLE_OK) { /* the rule is used up */
      heddle_status t = work(ctx, &again, flags, &err);
      if (t != HEDDLE_OK) fail_msg("%s: afterwards: %s", rule, err.text);
      check_numbers(&again);
    }
    drop(&again);
    if (strcmp(kind, "device.open") != 0) check_devices(ctx);
    for (int i = 0; i < 3; i++) {
      if (held[i] != NULL) heddle__device_close(held[i]);
    }
    heddle_context_release(ctx);
    assert_int_equal(heddle__alloc_live(), before);
    if (s == HEDDLE_OK) break;
  }
  return failures;
}

static void scenario(const char *kind, uint32_t flags, const char *key, const char *value) {
  if (!is_sim()) {
    key = unified_key(); /* shared pages would leave no copies that could fail */
    value = "0";
  }
  unsigned failures = on_device(kind, "cpu:0", flags, key, value);
  failures += on_device(kind, on("sim:0"), flags, key, value);
  failures += on_device(kind, on("sim:1"), flags, key, value);
  if (failures == 0) fail_msg("no call '%s' ever failed", kind);
}

#define SCENARIO(name, kind, flags, key, value) \
  static void name(void **state) { \
    (void)state; \
    scenario(kind, flags, key, value); \
  }

SCENARIO(opening_a_device, "device.open", 0, NULL, NULL)
SCENARIO(creating_a_stream, "stream.create", 0, NULL, NULL)
SCENARIO(creating_an_event, "event.create", 0, "sim.peer", "on")
SCENARIO(allocating, "memory.alloc", 0, NULL, NULL)
SCENARIO(allocating_slots, "memory.alloc", HEDDLE_MODEL_SLOTS, NULL, NULL)
SCENARIO(mapping, "memory.map", 0, NULL, NULL)
SCENARIO(importing, "memory.import_host", 0, NULL, NULL)
SCENARIO(viewing, "memory.view", 0, "sim.bare", "1")
SCENARIO(uploading_constants, "copy.write", 0, NULL, NULL)
SCENARIO(copying_to_a_device, "copy.h2d", HEDDLE_MODEL_NO_CAPTURE, NULL, NULL)
SCENARIO(copying_from_a_device, "copy.d2h", HEDDLE_MODEL_NO_CAPTURE, NULL, NULL)
SCENARIO(copying_between_peers, "copy.peer", HEDDLE_MODEL_NO_CAPTURE, NULL, NULL)
SCENARIO(flushing, "memory.flush", 0, "sim.coherent", "0")
SCENARIO(invalidating, "memory.invalidate", 0, "sim.coherent", "0")
SCENARIO(recording_an_event, "event.record", 0, NULL, NULL)
SCENARIO(waiting_for_an_event, "event.wait", 0, NULL, NULL)
SCENARIO(signalling_a_fence, "fence.signal", 0, NULL, NULL)
SCENARIO(asking, "op.query", 0, NULL, NULL)
SCENARIO(preparing, "op.prepare", 0, NULL, NULL)
SCENARIO(binding, "op.bind", 0, NULL, NULL)
SCENARIO(running, "op.run", HEDDLE_MODEL_NO_CAPTURE, NULL, NULL)

/* Every allocation of libheddle's own fails once. */
static void out_of_memory(void **state) {
  (void)state;
  size_t before = heddle__alloc_live();
  heddle_setting settings[] = {{"log", "off"}};
  heddle_context *ctx = NULL;
  heddle_error err = {0};
  assert_int_equal(heddle_context_create(settings, 1, NULL, NULL, &ctx, &err), HEDDLE_OK);
  unsigned failures = 0;
  for (uint64_t n = 1; n < 20000; n++) {
    job j = {0};
    memset(&err, 0, sizeof err);
    heddle__alloc_fail_at(n);
    heddle_status s = work(ctx, &j, 0, &err);
    heddle__alloc_fail_at(0);
    if (s == HEDDLE_OK) check_numbers(&j);
    else if (err.text[0] == '\0') fail_msg("allocation %u: status %d without words", (unsigned)n, s);
    drop(&j);
    if (s == HEDDLE_OK && failures > 0) break;
    failures += s != HEDDLE_OK;
  }
  if (failures < 50) fail_msg("only %u allocations failed", failures);
  check_devices(ctx);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), before);
}

CASES(CASE_TWICE(opening_a_device), CASE_TWICE(creating_a_stream), CASE_PEERS(creating_an_event),
      CASE_TWICE(allocating), CASE_TWICE(allocating_slots), CASE_TWICE(mapping), CASE_TWICE(importing), CASE(viewing),
      CASE_TWICE(uploading_constants), CASE_TWICE(copying_to_a_device), CASE_TWICE(copying_from_a_device),
      CASE_GPUS(copying_between_peers), CASE(flushing), CASE(invalidating), CASE_GPUS(recording_an_event),
      CASE_GPUS(waiting_for_an_event), CASE_ALL(signalling_a_fence), CASE_TWICE(asking), CASE_TWICE(preparing),
      CASE_TWICE(binding), CASE_ALL(running), CASE_ALL(out_of_memory))
