/* Models in stages seen from C: every allocation fails once, runs of the same shapes allocate nothing, a run is left,
 * gone on with and cancelled, threads share a model, and values are kept, asked for and bound. labels: threads
 * timeout: 300 */
#include <math.h>
#include <pthread.h>

#include "rig.h"

/* h = Tanh(x); (a, history) = Loop(m, , h), whose body gives a * w where its condition is true, else a; y = Neg(a). */
static const char net[] =
    "{\"heddle\": {\"version\": 1, \"opset\": 17}, \"nodes\": ["
    "{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}, {\"op\": \"null\", \"name\": \"m\", \"inputs\": []},"
    "{\"op\": \"null\", \"name\": \"w\", \"inputs\": []},"
    "{\"op\": \"Tanh\", \"name\": \"h\", \"inputs\": [[0, 0]]},"
    "{\"op\": \"Loop\", \"name\": \"loop\", \"inputs\": [[1, 0], [-1, 0], [3, 0], [2, 0]], \"attrs\": {\"captured\": 1,"
    " \"body\": {\"nodes\": ["
    "  {\"op\": \"null\", \"name\": \"i\", \"inputs\": []}, {\"op\": \"null\", \"name\": \"c\", \"inputs\": []},"
    "  {\"op\": \"null\", \"name\": \"a\", \"inputs\": []}, {\"op\": \"null\", \"name\": \"w\", \"inputs\": []},"
    "  {\"op\": \"If\", \"name\": \"choice\", \"inputs\": [[1, 0], [2, 0], [3, 0]], \"attrs\": {"
    "   \"then_branch\": {\"nodes\": [{\"op\": \"null\", \"name\": \"a\", \"inputs\": []},"
    "     {\"op\": \"null\", \"name\": \"w\", \"inputs\": []}, {\"op\": \"Mul\", \"name\": \"r\", \"inputs\": [[0, 0], "
    "[1, 0]]}],"
    "    \"arg_nodes\": [0, 1], \"heads\": [[2, 0]], \"node_row_ptr\": [0, 1, 2, 3],"
    "    \"attrs\": {\"dltype\": [\"list_str\", [null, null, null]], \"shape\": [\"list_shape\", [null, null, null]]}},"
    "   \"else_branch\": {\"nodes\": [{\"op\": \"null\", \"name\": \"a\", \"inputs\": []},"
    "     {\"op\": \"null\", \"name\": \"w\", \"inputs\": []}],"
    "    \"arg_nodes\": [0, 1], \"heads\": [[0, 0]], \"node_row_ptr\": [0, 1, 2],"
    "    \"attrs\": {\"dltype\": [\"list_str\", [null, null]], \"shape\": [\"list_shape\", [null, null]]}}}},"
    "  {\"op\": \"Identity\", \"name\": \"go\", \"inputs\": [[1, 0]]}],"
    "  \"arg_nodes\": [0, 1, 2, 3], \"heads\": [[5, 0], [4, 0], [4, 0]], \"node_row_ptr\": [0, 1, 2, 3, 4, 5, 6],"
    "  \"attrs\": {\"dltype\": [\"list_str\", [null, null, null, null, null, null]],"
    "   \"shape\": [\"list_shape\", [null, null, null, null, null, null]]}}}},"
    "{\"op\": \"Neg\", \"name\": \"y\", \"inputs\": [[4, 0]]}],"
    "\"arg_nodes\": [0, 1, 2], \"heads\": [[5, 0], [4, 1]], \"node_row_ptr\": [0, 1, 2, 3, 4, 6, 7],"
    "\"attrs\": {\"dltype\": [\"list_str\", [\"float32\", \"int64\", \"float32\", null, null, null, null]],"
    "\"shape\": [\"list_shape\", [[\"n\"], [], [], null, null, null, null]]}}";

typedef struct parts {
  heddle_context *ctx;
  heddle_graph *graph;
  heddle_params *params;
  heddle_tensor *x, *m;
} parts;

static void set_up(parts *t) {
  static const char *const names[] = {"w"};
  heddle_tensor *w = floats(NULL, 0, 2, 0);
  t->ctx = context("threads=1");
  OK(heddle_graph_parse(net, sizeof net - 1, "net", NULL, &t->graph, &err));
  OK(heddle_params_create(names, &w, 1, &t->params, &err));
  t->x = floats((const int64_t[]){3}, 1, -0.5f, 0.5f);
  OK(heddle_tensor_create(NULL, (heddle_dtype){HEDDLE_DTYPE_INT, 64, 1}, NULL, 0, &t->m, &err));
  heddle_tensor_release(w);
}

static void tear_down(parts *t) {
  heddle_tensor_release(t->m);
  heddle_tensor_release(t->x);
  heddle_params_release(t->params);
  heddle_graph_release(t->graph);
  heddle_context_release(t->ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

static heddle_status give(heddle_executor *ex, const parts *t, int64_t rounds, heddle_error *why) {
  *(int64_t *)heddle_tensor_data(t->m) = rounds;
  heddle_status s = heddle_executor_set_input_by_name(ex, "x", t->x, why);
  return s == HEDDLE_OK ? heddle_executor_set_input_by_name(ex, "m", t->m, why) : s;
}

/* y is -2^rounds * tanh(x), where x is -0.5, 0, 0.5 */
static bool is_right(heddle_executor *ex, int rounds) {
  heddle_tensor *y = NULL, *history = NULL;
  heddle_status s = heddle_executor_view_output(ex, 0, &y, NULL);
  if (s == HEDDLE_OK) s = heddle_executor_view_output(ex, 1, &history, NULL);
  bool right = s == HEDDLE_OK && heddle_tensor_ndim(history) == 2 && heddle_tensor_shape(history)[0] == rounds;
  const float want = 0.46211716f * (float)(1 << rounds);
  if (right) right = fabsf(((const float *)heddle_tensor_data(y))[0] - want) < want * 1e-5f;
  for (int i = 0; i < rounds && right; i++) {
    const float then = -0.46211716f * (float)(2 << i);
    right = fabsf(((const float *)heddle_tensor_data(history))[3 * i] - then) < -then * 1e-5f;
  }
  heddle_tensor_release(y);
  heddle_tensor_release(history);
  return right;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  parts t;
  set_up(&t);
  const heddle_model_options o = {.struct_size = sizeof o, .devices = "cpu"};
  heddle_device *cpu; /* asked for, so that its plugin is loaded before blocks are counted */
  assert_int_equal(heddle_context_find_device(t.ctx, "cpu", &cpu, &err), HEDDLE_OK);
  size_t live = heddle__alloc_live();
  bool done = false;
  for (uint64_t n = 1; !done && n < 5000; n++) {
    heddle_model *m = NULL;
    heddle_graph *graph = NULL;
    heddle_executor *ex = NULL;
    char *text = NULL;
    heddle__alloc_fail_at(n);
    heddle_status s = heddle_graph_parse(net, sizeof net - 1, "net", NULL, &graph, &err);
    if (s == HEDDLE_OK) s = heddle_model_create(t.ctx, graph, t.params, &o, &m, &err);
    if (s == HEDDLE_OK) s = heddle_executor_create(m, &ex, &err);
    if (s == HEDDLE_OK) s = give(ex, &t, 3, &err);
    if (s == HEDDLE_OK) s = heddle_executor_run(ex, HEDDLE_FOREVER, &err);
    if (s == HEDDLE_OK) s = heddle_executor_explain(ex, HEDDLE_EXPLAIN_JSON, &text, &err);
    heddle__alloc_fail_at(0);
    done = s == HEDDLE_OK;
    if (!done && s != HEDDLE_ENOMEM) fail_msg("allocation %d: %s: %s", (int)n, heddle_status_name(s), err.text);
    if (done) assert_true(is_right(ex, 3));
    heddle_free(text);
    heddle_executor_release(ex);
    heddle_model_release(m);
    heddle_graph_release(graph);
    if (heddle__alloc_live() != live)
      fail_msg("allocation %d leaks %d blocks", (int)n, (int)(heddle__alloc_live() - live));
  }
  assert_true(done);
  tear_down(&t);
}

static heddle_executor *executor_of(const parts *t, const char *const *keep, size_t n_keep) {
  heddle_model *m = NULL;
  heddle_executor *ex = NULL;
  const heddle_model_options o = {.struct_size = sizeof o, .devices = "cpu", .keep = keep, .n_keep = n_keep};
  OK(heddle_model_create(t->ctx, t->graph, t->params, &o, &m, &err));
  OK(heddle_executor_create(m, &ex, &err));
  heddle_model_release(m);
  return ex;
}

static void same_shapes_allocate_nothing(void **state) {
  (void)state;
  parts t;
  set_up(&t);
  heddle_executor *ex = executor_of(&t, NULL, 0);
  OK(give(ex, &t, 4, &err));
  for (int i = 0; i < 2; i++) OK(heddle_executor_run(ex, HEDDLE_FOREVER, &err));
  heddle__alloc_fail_at(1);
  heddle_status s = give(ex, &t, 4, &err);
  if (s == HEDDLE_OK) s = heddle_executor_run(ex, HEDDLE_FOREVER, &err);
  heddle__alloc_fail_at(0);
  OK(s);
  assert_true(is_right(ex, 4));
  heddle_executor_release(ex);
  tear_down(&t);
}

static void a_run_is_left_and_cancelled(void **state) {
  (void)state;
  parts t;
  set_up(&t);
  heddle_executor *ex = executor_of(&t, NULL, 0);
  OK(give(ex, &t, INT64_C(1) << 62, &err));
  FAILS(heddle_executor_run(ex, 20 * MS, &err), HEDDLE_ETIMEOUT);
  FAILS(heddle_executor_wait(ex, 20 * MS, &err), HEDDLE_ETIMEOUT);
  assert_int_equal(heddle_executor_poll(ex), HEDDLE_EBUSY);
  OK(heddle_executor_cancel(ex, &err));
  FAILS(heddle_executor_wait(ex, HEDDLE_FOREVER, &err), HEDDLE_ECANCELED);
  OK(give(ex, &t, 5, &err));
  OK(heddle_executor_start(ex, &err));
  OK(heddle_executor_wait(ex, HEDDLE_FOREVER, &err));
  assert_true(is_right(ex, 5));
  OK(give(ex, &t, INT64_C(1) << 62, &err));
  OK(heddle_executor_start(ex, &err)); /* the release ends it */
  heddle_executor_release(ex);
  tear_down(&t);
}

typedef struct job {
  const parts *t;
  heddle_model *m;
  bool right;
} job;

static void *work(void *user) {
  job *j = user;
  heddle_executor *ex = NULL;
  j->right = heddle_executor_create(j->m, &ex, NULL) == HEDDLE_OK;
  for (int i = 0; i < 8 && j->right; i++) {
    heddle_status s = heddle_executor_set_input_by_name(ex, "x", j->t->x, NULL);
    if (s == HEDDLE_OK) s = heddle_executor_set_input_by_name(ex, "m", j->t->m, NULL);
    if (s == HEDDLE_OK && i % 2 == 0) s = heddle_executor_start(ex, NULL);
    if (s == HEDDLE_OK)
      s = i % 2 == 0 ? heddle_executor_wait(ex, HEDDLE_FOREVER, NULL) : heddle_executor_run(ex, HEDDLE_FOREVER, NULL);
    j->right = s == HEDDLE_OK && is_right(ex, 3);
  }
  heddle_executor_release(ex);
  return NULL;
}

static void threads_share_a_model(void **state) {
  (void)state;
  enum { N = 4 };
  parts t;
  set_up(&t);
  *(int64_t *)heddle_tensor_data(t.m) = 3;
  heddle_model *m = NULL;
  const heddle_model_options o = {.struct_size = sizeof o, .devices = "sim,cpu"};
  OK(heddle_model_create(t.ctx, t.graph, t.params, &o, &m, &err));
  pthread_t threads[N];
  job jobs[N];
  for (int i = 0; i < N; i++) {
    jobs[i] = (job){&t, m, false};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
  }
  for (int i = 0; i < N; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < N; i++) assert_true(jobs[i].right);
  heddle_model_release(m);
  tear_down(&t);
}

static void values_are_kept_asked_for_and_bound(void **state) {
  (void)state;
  static const char *const keep[] = {"h", "loop:0"};
  parts t;
  set_up(&t);
  heddle_executor *ex = executor_of(&t, keep, 2);
  heddle_tensor *h = NULL, *mine = NULL, *w = floats(NULL, 0, 3, 0);
  OK(heddle_tensor_create(NULL, HEDDLE_FLOAT32, (const int64_t[]){3}, 1, &mine, &err));
  OK(heddle_executor_bind_output(ex, 0, mine, &err));
  OK(give(ex, &t, 1, &err));
  OK(heddle_executor_run(ex, HEDDLE_FOREVER, &err));
  assert_true(fabsf(((const float *)heddle_tensor_data(mine))[0] - 0.92423431f) < 1e-5f);
  OK(heddle_executor_view_output(ex, 2, &h, &err));
  assert_true(fabsf(((const float *)heddle_tensor_data(h))[0] + 0.46211716f) < 1e-5f);
  heddle_tensor_release(h);
  OK(heddle_executor_run_to(ex, "loop", 0, &h, &err));
  assert_true(fabsf(((const float *)heddle_tensor_data(h))[0] + 0.92423431f) < 1e-5f);
  heddle_tensor_release(h);
  OK(heddle_executor_run_to(ex, "y", 0, &h, &err));
  assert_true(fabsf(((const float *)heddle_tensor_data(h))[2] + 0.92423431f) < 1e-5f);
  heddle_tensor_release(h);
  OK(heddle_executor_set_input_by_name(ex, "w", w, &err)); /* a constant that is captured twice, set anew */
  OK(heddle_executor_run(ex, HEDDLE_FOREVER, &err));
  assert_true(fabsf(((const float *)heddle_tensor_data(mine))[0] - 1.3863515f) < 1e-5f);
  heddle_tensor_release(w);
  heddle_tensor_release(mine);
  heddle_executor_release(ex);
  tear_down(&t);
}

/* Results lie in memory that the next run writes, and what is bound has no value before one. */
static void results_of_stages_are_the_executor_s(void **state) {
  (void)state;
  parts t;
  set_up(&t);
  heddle_executor *ex = executor_of(&t, NULL, 0);
  heddle_tensor *history = NULL, *mine = NULL, *none = NULL;
  heddle_io_info info = {.struct_size = sizeof info};
  OK(heddle_tensor_create(NULL, HEDDLE_FLOAT32, (const int64_t[]){3}, 1, &mine, &err));
  OK(give(ex, &t, 2, &err));
  OK(heddle_executor_run(ex, HEDDLE_FOREVER, &err));
  OK(heddle_executor_view_output(ex, 1, &history, &err));
  assert_int_equal(heddle_executor_bind_output(ex, 0, history, &err), HEDDLE_EINVAL);
  assert_int_equal(heddle_executor_bind_input(ex, 0, history, &err), HEDDLE_EINVAL);
  OK(heddle_executor_bind_output(ex, 0, mine, &err));
  assert_int_equal(heddle_executor_view_output(ex, 0, &none, &err), HEDDLE_EINVAL);
  OK(heddle_executor_output_info(ex, 1, &info, &err));
  OK(heddle_executor_run(ex, HEDDLE_FOREVER, &err));
  OK(heddle_executor_output_info(ex, 1, &info, &err));
  assert_int_equal(info.ndim, 2);
  assert_int_equal(info.shape[0], 2);
  heddle_tensor_release(history);
  heddle_tensor_release(mine);
  heddle_executor_release(ex);
  tear_down(&t);
}

/* What was read is written, read again, and written the same. */
static void graphs_within_graphs_are_written(void **state) {
  (void)state;
  char *a = NULL, *b = NULL;
  size_t n = 0, again = 0;
  heddle_graph *first = NULL, *second = NULL;
  OK(heddle_graph_parse(net, sizeof net - 1, "net", NULL, &first, &err));
  OK(heddle_graph_text(first, &a, &n, &err));
  OK(heddle_graph_parse(a, n, "net", NULL, &second, &err));
  OK(heddle_graph_text(second, &b, &again, &err));
  assert_int_equal(n, again);
  assert_memory_equal(a, b, n);
  heddle_graph_release(first);
  heddle_graph_release(second);
  heddle_free(a);
  heddle_free(b);
}

/* The text of net with one piece in another's place has to be refused with these words. */
static void refused(const char *piece, const char *other, const char *words) {
  static char text[sizeof net + 200];
  const char *at = strstr(net, piece);
  heddle_graph *g = NULL;
  assert_non_null(at);
  int n = snprintf(text, sizeof text, "%.*s%s%s", (int)(at - net), net, other, at + strlen(piece));
  FAILS(heddle_graph_parse(text, (size_t)n, "net", NULL, &g, &err), HEDDLE_EFORMAT);
  SAYS(words);
  assert_null(g);
}

static void graphs_of_a_wrong_form_are_refused(void **state) {
  (void)state;
  refused("\"heads\": [[5, 0], [4, 0], [4, 0]]", "\"heads\": [[5, 0]]", "its graph 'body' has 1 outputs");
  refused("[[1, 0], [-1, 0], [3, 0], [2, 0]]", "[[1, 0], [-1, 0], [3, 0]]", "the node gives it 3");
  refused("\"body\": {", "\"body\": 7, \"other\": {", "expected the object of a graph");
  refused("\"then_branch\"", "\"branch\"", "it has no attribute 'branch'");
  refused("\"body\": {\"nodes\"", "\"body\": {\"heddle\": {\"version\": 1, \"opset\": 14}, \"nodes\"", "of its opset");
  refused("\"heads\": [[2, 0]], \"node", "\"heads\": [[7, 0]], \"node", "node 'loop' (Loop): body: ");
}

/* Each run in flight has stages of its own, and shapes of its own. */
static void runs_in_flight(void **state) {
  (void)state;
  parts t;
  set_up(&t);
  heddle_model *m = NULL;
  heddle_executor *ex = NULL;
  const heddle_model_options o = {.struct_size = sizeof o, .devices = "cpu", .in_flight = 3};
  OK(heddle_model_create(t.ctx, t.graph, t.params, &o, &m, &err));
  OK(heddle_executor_create(m, &ex, &err));
  int started = 0;
  for (int i = 0; i < 12; i++) {
    for (; started < 12 && started - i < 3; started++) {
      OK(give(ex, &t, 1 + started % 5, &err));
      OK(heddle_executor_start(ex, &err));
    }
    if (started - i == 3) FAILS(heddle_executor_start(ex, &err), HEDDLE_EBUSY);
    OK(heddle_executor_wait(ex, HEDDLE_FOREVER, &err));
    assert_true(is_right(ex, 1 + i % 5));
  }
  for (int i = 0; i < 3; i++) OK(heddle_executor_start(ex, &err)); /* with the last values */
  OK(heddle_executor_wait(ex, HEDDLE_FOREVER, &err));
  assert_true(is_right(ex, 2));
  OK(heddle_executor_cancel(ex, &err));
  for (int i = 0; i < 2; i++) {
    heddle_status s = heddle_executor_wait(ex, HEDDLE_FOREVER, &err);
    if (s == HEDDLE_OK) assert_true(is_right(ex, 2));
    else assert_int_equal(s, HEDDLE_ECANCELED);
  }
  OK(heddle_executor_run(ex, HEDDLE_FOREVER, &err));
  assert_true(is_right(ex, 2));
  heddle_executor_release(ex);
  heddle_model_release(m);
  tear_down(&t);
}

CASES(CASE(every_allocation_may_fail), CASE(runs_in_flight), CASE(same_shapes_allocate_nothing),
      CASE(a_run_is_left_and_cancelled), CASE(threads_share_a_model), CASE(values_are_kept_asked_for_and_bound),
      CASE(results_of_stages_are_the_executor_s), CASE(graphs_within_graphs_are_written),
      CASE(graphs_of_a_wrong_form_are_refused))
