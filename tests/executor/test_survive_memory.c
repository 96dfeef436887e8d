/* tests/executor/test_survive_memory.c: what an executor keeps where a device is left out: inputs, parameters, bound memory and
 * kept values; and plans for less memory.
 * labels: threads timeout: 60
 */
#include "executor/survive_rig.h"

static void memory_that_is_out(void **state) {
  (void)state;
  rig t;
  make_plain(&t, "layers=fault;fault.fail=memory.alloc:1@sim:1", "failover", 1); /* fails in creation, once */
  set_both(&t, -20);
  OK(heddle_executor_run(t.ex, 20000 * MS, &err));
  check_output(&t, -20);
  assert_int_equal(stats_of(&t).failovers, 1);
  end(&t);
  make_plain(&t, "layers=fault;fault.fail=memory.alloc:1+@sim:1", "failover", 1); /* never any */
  set_both(&t, -20);
  OK(heddle_executor_run(t.ex, 20000 * MS, &err));
  check_output(&t, -20);
  assert_int_equal(stats_of(&t).failovers, 2);
  end(&t);
}

/* One executor after the other whose memory is out: what their models need does not grow with their number. */
static void many_without_memory(void **state) {
  (void)state;
  rig t;
  uint64_t live = 0;
  make_plain(&t, "log=error;layers=fault;fault.fail=memory.alloc:1+@sim:1", "failover", 1);
  for (int i = 0; i < 20; i++) {
    heddle_executor *other = NULL;
    OK(heddle_executor_create(t.model, &other, &err));
    heddle_executor_release(other);
    if (i == 9) live = heddle__alloc_live();
  }
  assert_int_equal(heddle__alloc_live(), live);
  end(&t);
}

/* An executor that was idle while another's run lost the device finds another plan when it is run. */
static void lost_by_another_executor(void **state) {
  (void)state;
  rig t;
  heddle_executor *mine;
  make_plain(&t, "sim.fail=run:1@0:fault", "failover", 1);
  mine = t.ex;
  OK(heddle_executor_create(t.model, &t.ex, &err));
  set_both(&t, -20);
  OK(heddle_executor_run(t.ex, 20000 * MS, &err));
  check_output(&t, -20);
  heddle_executor_release(t.ex);
  t.ex = mine;
  set_both(&t, 5);
  OK(heddle_executor_run(t.ex, 20000 * MS, &err));
  check_output(&t, 5);
  assert_int_equal(stats_of(&t).failovers, 1);
  end(&t);
}

static void bound_memory_is_read_and_written_again(void **state) {
  (void)state;
  rig t;
  make_plain(&t, "sim.fail=run:2@1:fault,run:4@0:fault", "failover", 1);
  heddle_tensor *x = floats(shape, 1, -20, 1), *w = floats(shape, 1, -40, 0.5f), *y = floats(shape, 1, -1, 0);
  OK(heddle_executor_bind_input(t.ex, 0, x, &err));
  OK(heddle_executor_set_input(t.ex, 1, w, &err));
  OK(heddle_executor_bind_output(t.ex, 0, y, &err));
  for (int i = 0; i < 6; i++) {
    for (int k = 0; k < 64; k++) ((float *)heddle_tensor_data(x))[k] = (float)(i - 20 + k);
    memset(heddle_tensor_data(y), 0xff, 256);
    OK(heddle_executor_run(t.ex, 20000 * MS, &err));
    check_values(data_of(y), (float)(i - 20));
  }
  assert_int_equal(stats_of(&t).failovers, 2);
  heddle_tensor_release(x);
  heddle_tensor_release(w);
  heddle_tensor_release(y);
  end(&t);
}

/* What lies on the lost device went with it. */
static void memory_of_the_lost_device(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    rig t;
    heddle_tensor *x = NULL, *host = floats(shape, 1, -20, 1);
    make_plain(&t, "sim.fail=run:1@0:fault", i == 0 ? "failover" : "retry", 1);
    set_both(&t, -20);
    OK(heddle_tensor_create(heddle_model_device(t.model, 0), HEDDLE_FLOAT32, shape, 1, &x, &err));
    OK(heddle_tensor_copy(x, host, &err));
    OK(heddle_executor_bind_input(t.ex, 0, x, &err));
    FAILS(heddle_executor_run(t.ex, 20000 * MS, &err), HEDDLE_EDEVICE);
    SAYS("'x' is bound to memory of sim:0");
    set_both(&t, -20);
    heddle_tensor_release(x);
    heddle_tensor_release(host);
    OK(heddle_executor_run(t.ex, 20000 * MS, &err));
    check_output(&t, -20);
    end(&t);
  }
}

/* relu(x + w) of any length, x of length n; w is a parameter of one element. */
static void check_shape(heddle_executor *ex, int64_t n, float first, float w) {
  heddle_tensor *x = floats(&n, 1, first, 1), *y = floats(&n, 1, -1, 0);
  OK(heddle_executor_set_input(ex, 0, x, &err));
  OK(heddle_executor_run(ex, 20000 * MS, &err));
  OK(heddle_executor_get_output(ex, 0, y, &err));
  for (int i = 0; i < n; i++) {
    float sum = first + (float)i + w;
    assert_true(data_of(y)[i] == (sum > 0 ? sum : 0));
  }
  heddle_tensor_release(x);
  heddle_tensor_release(y);
}

static void other_shapes_and_parameters(void **state) {
  (void)state;
  rig t;
  sketch s = {0};
  static const int64_t one[1] = {1};
  const char *name = "w";
  heddle_tensor *w = floats(one, 1, 2.5f, 0);
  heddle_params *params = NULL;
  heddle_executor *other = NULL;
  int x = put_input(&s, "x", "[\"n\"]", "\"float32\""), p = put_input(&s, "w", "[1]", "\"float32\"");
  put_head(&s, NODE(&s, "Relu", "y", "sim:1", NODE(&s, "Add", "sum", "sim:0", x, p)));
  OK(heddle_params_create(&name, &w, 1, &params, &err));
  rig_make(&t, "sim.fail=run:5@0:fault", &s,
           &(heddle_model_options){.struct_size = sizeof(heddle_model_options),
                                   .devices = "sim:0,sim:1,cpu",
                                   .flags = plain,
                                   .on_failure = "failover"});
  OK(heddle_executor_load_params(t.ex, params, &err));
  OK(heddle_executor_create(t.model, &other, &err));
  OK(heddle_executor_share_params(other, t.ex, params, &err));
  for (int i = 0; i < 8; i++) {
    check_shape(t.ex, 3 + 4 * (i % 3), (float)-i, 2.5f);
    check_shape(other, 5, (float)-i, 2.5f);
  }
  assert_int_equal(stats_of(&t).failovers, 1);
  heddle_executor_release(other);
  heddle_params_release(params);
  heddle_tensor_release(w);
  end(&t);
}

/* Ten values of 64 KiB that are all kept do not fit; with memory reused they do, and the device is not given up. */
static void with_memory_of(const char *settings, uint64_t failovers, const char *where) {
  rig t;
  sketch s = {0};
  static const int64_t wide[1] = {16384};
  char *text = NULL, name[16];
  int at = put_input(&s, "x", "[16384]", "\"float32\"");
  for (int i = 0; i < 10; i++) {
    snprintf(name, sizeof name, "n%d", i);
    at = NODE(&s, i % 2 == 0 ? "Neg" : "Abs", name, NULL, at);
  }
  put_head(&s, at);
  rig_make(&t, settings, &s,
           &(heddle_model_options){.struct_size = sizeof(heddle_model_options),
                                   .devices = "sim:0,cpu",
                                   .flags = plain | HEDDLE_MODEL_NO_REUSE,
                                   .on_failure = "failover"});
  heddle_tensor *x = floats(wide, 1, -100, 1), *y = floats(wide, 1, 0, 0);
  OK(heddle_executor_set_input(t.ex, 0, x, &err));
  OK(heddle_executor_run(t.ex, 20000 * MS, &err));
  OK(heddle_executor_get_output(t.ex, 0, y, &err));
  for (int i = 0; i < 16384; i++) assert_true(data_of(y)[i] == (i < 100 ? (float)(100 - i) : (float)(i - 100)));
  assert_int_equal(stats_of(&t).failovers, failovers);
  OK(heddle_executor_explain(t.ex, HEDDLE_EXPLAIN_TEXT, &text, &err));
  assert_non_null(strstr(text, where));
  heddle_free(text);
  heddle_tensor_release(x);
  heddle_tensor_release(y);
  end(&t);
}

static void a_plan_for_less_memory(void **state) {
  (void)state;
  with_memory_of("sim.memory_bytes=420000", 1, "nodes     10 on sim:0");
  with_memory_of("sim.memory_bytes=1000", 2, "nodes     10 on cpu:0"); /* there is none so small: without the device */
}

/* A rule for a device that is out holds no longer, those for others do; kept values are kept. */
static void rules_and_kept_values(void **state) {
  (void)state;
  rig t;
  sketch s = {0};
  const char *rules[] = {"sum=sim:0", "gate=cpu"}, *keep[] = {"gate"};
  char *text = NULL;
  draw(&s, NULL, NULL);
  rig_make(&t, "sim.fail=run:2@0:fault", &s,
           &(heddle_model_options){.struct_size = sizeof(heddle_model_options),
                                   .devices = "sim:0,sim:1,cpu",
                                   .place = rules,
                                   .n_place = 2,
                                   .keep = keep,
                                   .n_keep = 1,
                                   .flags = plain,
                                   .on_failure = "failover"});
  set_both(&t, -20);
  for (int i = 0; i < 3; i++) OK(heddle_executor_run(t.ex, 20000 * MS, &err));
  check_output(&t, -20);
  assert_int_equal(stats_of(&t).failovers, 1);
  heddle_tensor *gate = floats(shape, 1, 0, 0);
  OK(heddle_executor_get_output(t.ex, (uint32_t)heddle_executor_output_index(t.ex, "gate"), gate, &err));
  for (int i = 0; i < 64; i++) assert_true(data_of(gate)[i] == ((float)i * 1.5f > 60 ? (float)i * 1.5f - 60 : 0));
  heddle_tensor_release(gate);
  OK(heddle_executor_explain(t.ex, HEDDLE_EXPLAIN_TEXT, &text, &err));
  assert_null(strstr(text, "rule sum"));
  assert_non_null(strstr(text, "rule gate=cpu"));
  heddle_free(text);
  end(&t);
}

CASES(CASE(memory_that_is_out), CASE(many_without_memory), CASE(lost_by_another_executor),
      CASE(bound_memory_is_read_and_written_again), CASE(memory_of_the_lost_device), CASE(other_shapes_and_parameters),
      CASE(a_plan_for_less_memory), CASE(rules_and_kept_values))
