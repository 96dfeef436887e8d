/* labels: threads
 * Functions of a compiled library from several threads at once: parallel loops share one pool, each thread has its own
 * error and scratch memory; executors of one model run side by side; and memory that is out anywhere is an error. */
#include <pthread.h>
#include <string.h>

#include "cases.h"
#include "core/alloc.h"
#include "heddle/heddle.h"

#define LIBRARY HEDDLE_TEST_BUILD "/tests/tvm_fixture.so"
enum { N = 256, THREADS = 4, ROUNDS = 25 };

static const char *const graph_text =
    "{\"nodes\":[{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]},"
    "{\"op\":\"tvm_op\",\"name\":\"a\",\"attrs\":{\"func_name\":\"total\",\"num_inputs\":\"1\",\"num_outputs\":\"1\","
    "\"flatten_data\":\"0\"},\"inputs\":[[0,0,0]]},"
    "{\"op\":\"tvm_op\",\"name\":\"b\",\"attrs\":{\"func_name\":\"total\",\"num_inputs\":\"1\",\"num_outputs\":\"1\","
    "\"flatten_data\":\"0\"},\"inputs\":[[1,0,0]]}],"
    "\"arg_nodes\":[0],\"heads\":[[2,0,0]],\"node_row_ptr\":[0,1,2,3],"
    "\"attrs\":{\"dltype\":[\"list_str\",[\"float32\",\"float32\",\"float32\"]],"
    "\"shape\":[\"list_shape\",[[256],[256],[256]]],\"storage_id\":[\"list_int\",[0,1,2]]}}";

typedef struct shared {
  heddle_context *ctx;
  heddle_module *library;
  heddle_model *model;
  int first; /* of this thread, what its inputs begin with */
  const char *wrong;
} shared;

static heddle_tensor *filled(int first) {
  const int64_t n = N;
  heddle_tensor *t = NULL;
  if (heddle_tensor_create(NULL, HEDDLE_FLOAT32, &n, 1, &t, NULL) != HEDDLE_OK) return NULL;
  for (int i = 0; i < N; i++) ((float *)heddle_tensor_data(t))[i] = (float)(first + i % 4);
  return t;
}

static float sum_of(int first) {
  return (float)(N * first + N / 4 * 6);
}

static void *call_it(void *arg) {
  shared *s = arg;
  heddle_tensor *x = filled(s->first), *y = filled(0);
  heddle_value values[2] = {{.kind = HEDDLE_VALUE_TENSOR, .of.t = x}, {.kind = HEDDLE_VALUE_TENSOR, .of.t = y}};
  for (int i = 0; i < ROUNDS && s->wrong == NULL; i++) {
    heddle_error err = {0};
    if (heddle_module_call(s->library, "total", values, 2, NULL, &err) != HEDDLE_OK) s->wrong = "total failed";
    else if (((float *)heddle_tensor_data(y))[N - 1] != sum_of(s->first)) s->wrong = "another thread's sum";
    if (heddle_module_call(s->library, "fails", values, 2, NULL, &err) != HEDDLE_EFAILED) s->wrong = "no failure";
    else if (strstr(err.text, "no luck") == NULL) s->wrong = "another failure's words";
  }
  heddle_tensor_release(x);
  heddle_tensor_release(y);
  return NULL;
}

static void *run_it(void *arg) {
  shared *s = arg;
  heddle_error err = {0};
  heddle_executor *ex = NULL;
  heddle_tensor *x = filled(s->first), *out = NULL;
  if (heddle_executor_create(s->model, &ex, &err) != HEDDLE_OK) s->wrong = "no executor";
  for (int i = 0; i < ROUNDS && s->wrong == NULL; i++) {
    if (heddle_executor_set_input(ex, 0, x, &err) != HEDDLE_OK ||
        heddle_executor_run(ex, HEDDLE_FOREVER, &err) != HEDDLE_OK ||
        heddle_executor_view_output(ex, 0, &out, &err) != HEDDLE_OK) {
      s->wrong = "a run failed";
      break;
    }
    if (((float *)heddle_tensor_data(out))[7] != N * sum_of(s->first)) s->wrong = "another executor's sum";
    heddle_tensor_release(out);
  }
  heddle_tensor_release(x);
  heddle_executor_release(ex);
  return NULL;
}

static heddle_status set_up(shared *s, const char *threads, heddle_error *err) {
  heddle_setting settings[] = {{"threads", threads}, {"config", "off"}};
  heddle_model_options options = {.struct_size = sizeof options, .devices = "cpu"};
  heddle_graph *g = NULL;
  *s = (shared){.ctx = NULL};
  heddle_status r = heddle_context_create(settings, 2, NULL, NULL, &s->ctx, err);
  if (r == HEDDLE_OK) r = heddle_module_load(s->ctx, LIBRARY, &s->library, err);
  if (r == HEDDLE_OK) r = heddle_graph_parse(graph_text, strlen(graph_text), "test", NULL, &g, err);
  options.library = s->library;
  if (r == HEDDLE_OK) r = heddle_model_create(s->ctx, g, NULL, &options, &s->model, err);
  heddle_graph_release(g);
  return r;
}

static void tear_down(shared *s) {
  heddle_model_release(s->model);
  heddle_module_release(s->library);
  heddle_context_release(s->ctx);
}

static void many(void *(*work)(void *), const char *threads) {
  shared s, own[THREADS];
  pthread_t started[THREADS];
  heddle_error err = {0};
  heddle_status r = set_up(&s, threads, &err);
  if (r != HEDDLE_OK) fail_msg("%s", err.text);
  for (int i = 0; i < THREADS; i++) {
    own[i] = s;
    own[i].first = i + 1;
    assert_int_equal(pthread_create(&started[i], NULL, work, &own[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(started[i], NULL);
  tear_down(&s);
  for (int i = 0; i < THREADS; i++)
    if (own[i].wrong != NULL) fail_msg("thread %d: %s", i, own[i].wrong);
}

static void calls_from_several_threads(void **state) {
  (void)state;
  many(call_it, "3");
  many(call_it, "1");
}

static void executors_in_several_threads(void **state) {
  (void)state;
  many(run_it, "3");
}

/* Every allocation of loading, planning and running fails once: an error, and nothing is left. */
static void memory_that_is_out(void **state) {
  (void)state;
  heddle_error err = {0};
  shared s;
  assert_int_equal(set_up(&s, "1", &err), HEDDLE_OK); /* what stays for the process is made here */
  s.first = 1;
  run_it(&s);
  assert_null(s.wrong);
  tear_down(&s);
  size_t live = heddle__alloc_live();
  for (uint64_t n = 1, done = 0; !done; n++) {
    assert_true(n < 20000);
    heddle_executor *ex = NULL;
    heddle_tensor *x = filled(1);
    heddle__alloc_fail_at(n);
    heddle_status r = set_up(&s, "1", &err);
    if (r == HEDDLE_OK) r = heddle_executor_create(s.model, &ex, &err);
    if (r == HEDDLE_OK) r = heddle_executor_set_input(ex, 0, x, &err);
    if (r == HEDDLE_OK) r = heddle_executor_run(ex, HEDDLE_FOREVER, &err);
    done = r == HEDDLE_OK;
    heddle__alloc_fail_at(0);
    if (r != HEDDLE_OK && (r != HEDDLE_ENOMEM || strstr(err.text, "memory") == NULL) && r != HEDDLE_ENODEV)
      fail_msg("allocation %d: status %d: %s", (int)n, (int)r, err.text);
    heddle_executor_release(ex);
    heddle_tensor_release(x);
    tear_down(&s);
    if (heddle__alloc_live() != live)
      fail_msg("allocation %d: %d blocks are left", (int)n, (int)(heddle__alloc_live() - live));
  }
}

/* In a row of functions, with a deadline and without: which node failed, in whose words, and that a run can follow. */
static void failure_within_a_row(void **state) {
  (void)state;
  char text[1024];
  shared s;
  heddle_error err = {0};
  heddle_graph *g = NULL;
  heddle_executor *ex = NULL;
  assert_int_equal(set_up(&s, "2", &err), HEDDLE_OK);
  strcpy(text, graph_text);
  char *second = strstr(strstr(text, "total") + 1, "total");
  memcpy(second, "fails", 5);
  heddle_model_release(s.model);
  heddle_model_options options = {.struct_size = sizeof options, .devices = "cpu", .library = s.library};
  assert_int_equal(heddle_graph_parse(text, strlen(text), "test", NULL, &g, &err), HEDDLE_OK);
  assert_int_equal(heddle_model_create(s.ctx, g, NULL, &options, &s.model, &err), HEDDLE_OK);
  heddle_graph_release(g);
  assert_int_equal(heddle_executor_create(s.model, &ex, &err), HEDDLE_OK);
  heddle_tensor *x = filled(1);
  assert_int_equal(heddle_executor_set_input(ex, 0, x, &err), HEDDLE_OK);
  for (int i = 0; i < 4; i++) {
    uint64_t timeout = i % 2 == 0 ? HEDDLE_FOREVER : UINT64_C(60000000000);
    assert_int_equal(heddle_executor_run(ex, timeout, &err), HEDDLE_EFAILED);
    assert_non_null(strstr(err.text, "node 'b' on cpu:0"));
    assert_non_null(strstr(err.text, "function 'fails'"));
    assert_non_null(strstr(err.text, "task 1 of a parallel loop: no luck"));
  }
  heddle_tensor_release(x);
  heddle_executor_release(ex);
  tear_down(&s);
}

CASES(CASE(calls_from_several_threads), CASE(failure_within_a_row), CASE(executors_in_several_threads),
      CASE(memory_that_is_out))
