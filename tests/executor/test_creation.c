/* tests/executor/test_creation.c: making an executor on a device that does not do what it said: an operator that it cannot
 * prepare, and an upload that never ends. The error says what to do, and the context can be used afterwards.
 * timeout: 55
 */
#include "executor/rig.h"

/* relu(x + w) with w a constant: the Add is "sum", the Relu "gate". */
typedef struct bench {
  heddle_context *ctx;
  heddle_graph *graph;
  heddle_params *params;
  heddle_model *model;
  heddle_executor *executor;
} bench;

static const int64_t shape[1] = {4};

/* With one setting or two. */
static void set_up(bench *b, const char *key, const char *value, const char *other, const char *other_value) {
  heddle_setting settings[3] = {{"threads", "1"}, {key, value}};
  size_t n = 2;
  if (other != NULL) settings[n++] = (heddle_setting){other, other_value};
  sketch s = {0};
  int x = put_input(&s, "x", "[4]", "\"float32\""), w = put_input(&s, "w", "[4]", "\"float32\"");
  int sum = NODE(&s, "Add", "sum", NULL, x, w);
  put_head(&s, NODE(&s, "Relu", "gate", NULL, sum));
  heddle_tensor *t = floats(shape, 1, 1, 1);
  const char *name = "w";
  *b = (bench){.graph = graph_of(&s)};
  OK(heddle_context_create(settings, n, NULL, NULL, &b->ctx, &err));
  OK(heddle_params_create(&name, &t, 1, &b->params, &err));
  heddle_tensor_release(t);
}

static heddle_status make(bench *b, heddle_model_options o) {
  heddle_executor_release(b->executor);
  heddle_model_release(b->model);
  b->executor = NULL;
  b->model = NULL;
  OK(heddle_model_create(b->ctx, b->graph, b->params, &o, &b->model, &err));
  return heddle_executor_create(b->model, &b->executor, &err);
}

/* x = [-4, -2, 0, 2] and w = [1, 2, 3, 4] make [0, 0, 3, 6]. */
static void check_run(bench *b) {
  static const float expected[4] = {0, 0, 3, 6};
  heddle_tensor *x = floats(shape, 1, -4, 2), *y = floats(shape, 1, 0, 0);
  OK(heddle_executor_set_input(b->executor, 0, x, &err));
  OK(heddle_executor_run(b->executor, 20000 * MS, &err));
  OK(heddle_executor_get_output(b->executor, 0, y, &err));
  for (int i = 0; i < 4; i++) assert_true(data_of(y)[i] == expected[i]);
  heddle_tensor_release(x);
  heddle_tensor_release(y);
}

/* hung: a device keeps what work that does not end may touch, and reports it. */
static void tear_down(bench *b, bool hung) {
  heddle_executor_release(b->executor);
  heddle_model_release(b->model);
  heddle_params_release(b->params);
  heddle_graph_release(b->graph);
  heddle_context_release(b->ctx);
  if (!hung) assert_int_equal(heddle__alloc_live(), 0);
}

#define ON(list) \
  (heddle_model_options) { \
    .struct_size = sizeof(heddle_model_options), .devices = (list) \
  }

static void what_cannot_be_prepared_is_named(void **state) {
  (void)state;
  bench b;
  set_up(&b, "sim.fail", "prepare:2", NULL, NULL);
  assert_int_not_equal(make(&b, ON("sim:0,cpu")), HEDDLE_OK);
  SAYS("plugin 'sim' offered to run node 'gate' (Relu) on sim:0");
  SAYS("--place 'gate=DEVICE'");
  SAYS("leave the plugin out");
  tear_down(&b, false);
}

static void a_region_that_cannot_be_prepared_is_named(void **state) {
  (void)state;
  bench b;
  set_up(&b, "sim.fuse", "1", "sim.fail", "prepare:1");
  assert_int_not_equal(make(&b, ON("sim:0,cpu")), HEDDLE_OK);
  SAYS("node 'sum+gate' (Add and 1 more) on sim:0");
  SAYS("--place 'sum=DEVICE'");
  tear_down(&b, false);
}

/* Doing as the error says is a way out: the rule takes the node away, and the region is none any more. */
static void the_advice_helps(void **state) {
  (void)state;
  bench b;
  set_up(&b, "layers", "fault", "fault.fail", "op.prepare:1+@sim:0");
  const char *rules[] = {"sum=cpu", "gate=cpu"};
  heddle_model_options o = ON("sim:0,cpu");
  assert_int_not_equal(make(&b, o), HEDDLE_OK);
  SAYS("--place 'sum=DEVICE'");
  o.place = rules;
  o.n_place = 1;
  assert_int_not_equal(make(&b, o), HEDDLE_OK);
  SAYS("--place 'gate=DEVICE'");
  o.n_place = 2;
  OK(make(&b, o));
  check_run(&b);
  OK(make(&b, ON("cpu")));
  check_run(&b);
  tear_down(&b, false);
}

/* The time limit of these cases is less than the minute that an upload has by default. */
static void an_upload_that_never_ends_is_given_up(void **state) {
  (void)state;
  bench b;
  set_up(&b, "sim.hang", "1", NULL, NULL);
  heddle_model_options o = ON("sim:0,cpu");
  o.upload_timeout_ns = 200 * MS;
  FAILS(make(&b, o), HEDDLE_ETIMEOUT);
  assert_null(b.executor);
  SAYS("sim:0: upload of constants");
  SAYS("upload_timeout_ns");
  OK(make(&b, ON("cpu")));
  check_run(&b);
  tear_down(&b, true);
}

static void a_setting_says_how_long(void **state) {
  (void)state;
  bench b;
  set_up(&b, "sim.hang", "1", "limit.upload_seconds", "1");
  heddle_model_options o = ON("sim:0,cpu");
  o.struct_size = offsetof(heddle_model_options, upload_timeout_ns); /* of a program built before there was one */
  o.upload_timeout_ns = 1;
  FAILS(make(&b, o), HEDDLE_ETIMEOUT);
  SAYS("limit.upload_seconds");
  tear_down(&b, true);
}

static void a_setting_is_a_number(void **state) {
  (void)state;
  bench b;
  set_up(&b, "limit.upload_seconds", "soon", NULL, NULL);
  heddle_model_options o = ON("cpu");
  FAILS(heddle_model_create(b.ctx, b.graph, b.params, &o, &b.model, &err), HEDDLE_EINVAL);
  SAYS("limit.upload_seconds");
  tear_down(&b, false);
}

CASES(CASE(what_cannot_be_prepared_is_named), CASE(a_region_that_cannot_be_prepared_is_named), CASE(the_advice_helps),
      CASE(an_upload_that_never_ends_is_given_up), CASE(a_setting_says_how_long), CASE(a_setting_is_a_number))
