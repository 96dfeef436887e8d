/* Optimised models seen from C: every allocation fails once, threads plan one model at the same time, and options of an
 * older size are taken. What the optimisations do is tested from Python. labels: threads
 * timeout: 300 */
#include <pthread.h>

#include "rig.h"

/* Relu(Transpose'(Exp(Transpose(Conv + BatchNormalization)))) twice, which is once, plus a folded constant, and a GELU
 * and a LayerNormalization of it in parts. */
static const char net[] =
    "{\"heddle\": {\"version\": 1, \"opset\": 17, \"optimize\": \"on\"}, \"nodes\": ["
    "{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}, {\"op\": \"null\", \"name\": \"w\", \"inputs\": []},"
    "{\"op\": \"null\", \"name\": \"four\", \"inputs\": []}, {\"op\": \"null\", \"name\": \"half\", \"inputs\": []},"
    "{\"op\": \"Conv\", \"name\": \"conv\", \"inputs\": [[0, 0], [1, 0]]},"
    "{\"op\": \"BatchNormalization\", \"name\": \"bn\", \"inputs\": [[4, 0], [2, 0], [2, 0], [2, 0], [2, 0]]},"
    "{\"op\": \"Transpose\", \"name\": \"t1\", \"attrs\": {\"perm\": [0, 2, 3, 1]}, \"inputs\": [[5, 0]]},"
    "{\"op\": \"Tanh\", \"name\": \"e1\", \"inputs\": [[6, 0]]},"
    "{\"op\": \"Transpose\", \"name\": \"t2\", \"attrs\": {\"perm\": [0, 3, 1, 2]}, \"inputs\": [[7, 0]]},"
    "{\"op\": \"Tanh\", \"name\": \"e2\", \"inputs\": [[5, 0]]},"
    "{\"op\": \"Add\", \"name\": \"sum\", \"inputs\": [[8, 0], [9, 0]]},"
    "{\"op\": \"Exp\", \"name\": \"folded\", \"inputs\": [[3, 0]]},"
    "{\"op\": \"Identity\", \"name\": \"same\", \"inputs\": [[10, 0]]},"
    "{\"op\": \"Mul\", \"name\": \"scaled\", \"inputs\": [[12, 0], [11, 0]]},"
    "{\"op\": \"ReduceMean\", \"name\": \"mean\", \"attrs\": {\"axes\": [-1]}, \"inputs\": [[13, 0]]},"
    "{\"op\": \"Sub\", \"name\": \"centred\", \"inputs\": [[13, 0], [14, 0]]},"
    "{\"op\": \"Mul\", \"name\": \"square\", \"inputs\": [[15, 0], [15, 0]]},"
    "{\"op\": \"ReduceMean\", \"name\": \"var\", \"attrs\": {\"axes\": [-1]}, \"inputs\": [[16, 0]]},"
    "{\"op\": \"Add\", \"name\": \"more\", \"inputs\": [[17, 0], [3, 0]]},"
    "{\"op\": \"Sqrt\", \"name\": \"root\", \"inputs\": [[18, 0]]},"
    "{\"op\": \"Div\", \"name\": \"norm\", \"inputs\": [[15, 0], [19, 0]]},"
    "{\"op\": \"HardSigmoid\", \"name\": \"gate\", \"attrs\": {\"alpha\": 0.16666667, \"beta\": 0.5}, \"inputs\": "
    "[[20, 0]]},"
    "{\"op\": \"Mul\", \"name\": \"y\", \"inputs\": [[20, 0], [21, 0]]}],"
    "\"arg_nodes\": [0, 1, 2, 3], \"heads\": [[22, 0]],"
    "\"node_row_ptr\": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23],"
    "\"attrs\": {\"dltype\": [\"list_str\", [\"float32\", \"float32\", \"float32\", \"float32\", null, null, null, "
    "null,"
    " null, null, null, null, null, null, null, null, null, null, null, null, null, null, null]],"
    "\"shape\": [\"list_shape\", [[1, 2, 5, 5], [4, 2, 3, 3], [4], [], null, null, null, null, null, null, null, null,"
    " null, null, null, null, null, null, null, null, null, null, null]]}}";

typedef struct parts {
  heddle_context *ctx;
  heddle_graph *graph;
  heddle_params *params;
  heddle_tensor *x;
} parts;

static void set_up(parts *t) {
  static const char *const names[] = {"w", "four", "half"};
  heddle_tensor *tensors[3] = {floats((const int64_t[]){4, 2, 3, 3}, 4, -1, 0.03f),
                               floats((const int64_t[]){4}, 1, 1, 0.5f), floats(NULL, 0, 0.5f, 0)};
  t->ctx = context("threads=1");
  OK(heddle_graph_parse(net, sizeof net - 1, "net", NULL, &t->graph, &err));
  OK(heddle_params_create(names, tensors, 3, &t->params, &err));
  t->x = floats((const int64_t[]){1, 2, 5, 5}, 4, -1, 0.04f);
  for (int i = 0; i < 3; i++) heddle_tensor_release(tensors[i]);
}

static void tear_down(parts *t) {
  heddle_tensor_release(t->x);
  heddle_params_release(t->params);
  heddle_graph_release(t->graph);
  heddle_context_release(t->ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

enum { EXPLAINERS = 4, EXPLAINS = 40 };

static void *explains(void *model) {
  heddle_error why;
  uintptr_t wrong = 0;
  for (int i = 0; i < EXPLAINS; i++) {
    char *text = NULL;
    const heddle_explain_format format = i % 2 == 0 ? HEDDLE_EXPLAIN_JSON : HEDDLE_EXPLAIN_TEXT;
    if (heddle_model_explain(model, format, NULL, NULL, 0, &text, &why) != HEDDLE_OK || strlen(text) < 100) wrong++;
    heddle_free(text);
  }
  return (void *)wrong;
}

/* What a plan shares with others of its model, such as the list of what was optimised, is only read. */
static void a_model_is_explained_by_threads_at_once(void **state) {
  (void)state;
  parts t;
  pthread_t threads[EXPLAINERS];
  set_up(&t);
  const heddle_model_options o = {.struct_size = sizeof o, .devices = "cpu"};
  heddle_model *m = NULL;
  assert_int_equal(heddle_model_create(t.ctx, t.graph, t.params, &o, &m, &err), HEDDLE_OK);
  for (int i = 0; i < EXPLAINERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, explains, m), 0);
  for (int i = 0; i < EXPLAINERS; i++) {
    void *wrong = NULL;
    assert_int_equal(pthread_join(threads[i], &wrong), 0);
    assert_null(wrong);
  }
  heddle_model_release(m);
  tear_down(&t);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  parts t;
  set_up(&t);
  const heddle_model_options o = {.struct_size = sizeof o, .devices = "cpu"};
  heddle_device *cpu; /* what its plugin keeps is the context's */
  assert_int_equal(heddle_context_find_device(t.ctx, "cpu", &cpu, &err), HEDDLE_OK);
  size_t live = heddle__alloc_live();
  bool done = false;
  for (uint64_t n = 1; !done && n < 5000; n++) {
    heddle_model *m = NULL;
    char *text = NULL;
    heddle__alloc_fail_at(n);
    heddle_status s = heddle_model_create(t.ctx, t.graph, t.params, &o, &m, &err);
    if (s == HEDDLE_OK) s = heddle_model_explain(m, HEDDLE_EXPLAIN_TEXT, NULL, NULL, 0, &text, &err);
    heddle__alloc_fail_at(0);
    done = s == HEDDLE_OK;
    if (!done && s != HEDDLE_ENOMEM) fail_msg("allocation %d: %s: %s", (int)n, heddle_status_name(s), err.text);
    if (done) { /* each kind was there to fail */
      static const char *const passes[] = {
          "identity: ", "cse: ", "fold: ", "transposes: ", "conv: ", "activation: ", "layer_norm: "};
      for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++)
        if (strstr(text, passes[i]) == NULL) fail_msg("'%s' is not in the plan:\n%s", passes[i], text);
    }
    heddle_free(text);
    heddle_model_release(m);
    if (heddle__alloc_live() != live)
      fail_msg("allocation %d leaks %d blocks", (int)n, (int)(heddle__alloc_live() - live));
  }
  assert_true(done);
  tear_down(&t);
}

typedef struct job {
  const parts *t;
  heddle_model *m;
  float first;
  heddle_status status;
} job;

/* Half of them make a model of their own; each sets a parameter late, which the optimisations have read, and takes it
 * back by a second executor. */
static void *work(void *user) {
  job *j = user;
  heddle_error why = {0};
  heddle_model *own = NULL;
  heddle_executor *ex[2] = {NULL, NULL};
  heddle_tensor *out = NULL, *half = NULL;
  const heddle_model_options o = {.struct_size = sizeof o, .devices = "cpu"};
  heddle_status s = HEDDLE_OK;
  if (j->m == NULL) s = heddle_model_create(j->t->ctx, j->t->graph, j->t->params, &o, &own, &why);
  heddle_model *m = own != NULL ? own : j->m;
  if (s == HEDDLE_OK) s = heddle_tensor_create(NULL, HEDDLE_FLOAT32, NULL, 0, &half, &why);
  for (int i = 0; i < 2 && s == HEDDLE_OK; i++) {
    s = heddle_executor_create(m, &ex[i], &why);
    *(float *)heddle_tensor_data(half) = 0.25f;
    if (s == HEDDLE_OK && i == 0) s = heddle_executor_set_input_by_name(ex[i], "half", half, &why);
    if (s == HEDDLE_OK) s = heddle_executor_set_input_by_name(ex[i], "x", j->t->x, &why);
    if (s == HEDDLE_OK) s = heddle_executor_run(ex[i], HEDDLE_FOREVER, &why);
  }
  if (s == HEDDLE_OK) s = heddle_executor_view_output(ex[1], 0, &out, &why);
  if (s == HEDDLE_OK) j->first = *(const float *)heddle_tensor_data(out);
  heddle_tensor_release(out);
  heddle_tensor_release(half);
  for (int i = 0; i < 2; i++) heddle_executor_release(ex[i]);
  heddle_model_release(own);
  j->status = s;
  return NULL;
}

static void threads_share_an_optimised_model(void **state) {
  (void)state;
  enum { N = 4 };
  parts t;
  set_up(&t);
  heddle_model *m = NULL;
  const heddle_model_options o = {.struct_size = sizeof o, .devices = "cpu"};
  OK(heddle_model_create(t.ctx, t.graph, t.params, &o, &m, &err));
  pthread_t threads[N];
  job jobs[N];
  for (int i = 0; i < N; i++) {
    jobs[i] = (job){&t, i % 2 == 0 ? m : NULL, 0, HEDDLE_OK};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
  }
  for (int i = 0; i < N; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < N; i++) {
    assert_int_equal(jobs[i].status, HEDDLE_OK);
    assert_true(jobs[i].first == jobs[0].first);
  }
  heddle_model_release(m);
  tear_down(&t);
}

/* A caller that was compiled before there was a wish. */
static void options_of_an_older_size(void **state) {
  (void)state;
  parts t;
  set_up(&t);
  heddle_model *m = NULL;
  heddle_model_options o = {.devices = "cpu", .optimize = "nothing"};
  o.struct_size = offsetof(heddle_model_options, optimize);
  OK(heddle_model_create(t.ctx, t.graph, t.params, &o, &m, &err));
  heddle_model_release(m);
  o.struct_size = sizeof o;
  FAILS(heddle_model_create(t.ctx, t.graph, t.params, &o, &m, &err), HEDDLE_EINVAL);
  SAYS("no optimisation 'nothing'");
  assert_null(m);
  tear_down(&t);
}

CASES(CASE(every_allocation_may_fail), CASE_LABELS(a_model_is_explained_by_threads_at_once, "threads"),
      CASE(threads_share_an_optimised_model), CASE(options_of_an_older_size))
