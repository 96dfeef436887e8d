/* tests/executor/test_survive.c: runs that a device failed, under each policy of a model: what the caller gets, what the
 * executor keeps, and what cannot be saved. Every call of a run and of a creation fails in tests/python/test_survive.py.
 * labels: threads timeout: 60
 */
#include "core/context.h"
#include "core/failure.h"
#include "executor/rig.h"

/* sum = x + w on sim:0, gate = relu(sum) on sim:1, out = gate * x on cpu, as annotated; w is an input too. */
static const int64_t shape[1] = {64};

static void draw(sketch *s, const char *first, const char *second) {
  int x = put_input(s, "x", "[64]", "\"float32\""), w = put_input(s, "w", "[64]", "\"float32\"");
  int sum = NODE(s, "Add", "sum", first, x, w), gate = NODE(s, "Relu", "gate", second, sum);
  put_head(s, NODE(s, "Mul", "out", "cpu", gate, x));
}

static void make(rig *t, const char *settings, const char *policy, uint32_t in_flight) {
  sketch s = {0};
  draw(&s, "sim:0", "sim:1");
  rig_make(t, settings, &s,
           &(heddle_model_options){.struct_size = sizeof(heddle_model_options),
                                   .devices = "sim:0,sim:1,cpu",
                                   .on_failure = policy,
                                   .in_flight = in_flight});
}

static void set_both(rig *t, float first) {
  heddle_tensor *x = floats(shape, 1, first, 1), *w = floats(shape, 1, -40, 0.5f);
  OK(heddle_executor_set_input(t->ex, 0, x, &err));
  OK(heddle_executor_set_input(t->ex, 1, w, &err));
  heddle_tensor_release(x);
  heddle_tensor_release(w);
}

/* relu(x + w) * x, by hand. */
static void check_values(const float *got, float first) {
  for (int i = 0; i < 64; i++) {
    float x = first + (float)i, sum = x + (-40 + 0.5f * (float)i), gate = sum > 0 ? sum : 0;
    if (got[i] != gate * x) fail_msg("element %d is %g, expected %g", i, (double)got[i], (double)(gate * x));
  }
}

static void check_output(rig *t, float first) {
  heddle_tensor *y = floats(shape, 1, 0, 0);
  OK(heddle_executor_get_output(t->ex, 0, y, &err));
  check_values(data_of(y), first);
  heddle_tensor_release(y);
}

static heddle_executor_stats stats_of(rig *t) {
  heddle_executor_stats s = {.struct_size = sizeof s};
  OK(heddle_executor_get_stats(t->ex, &s, &err));
  return s;
}

static void end(rig *t) {
  rig_end(t);
  assert_int_equal(heddle__alloc_live(), 0);
}

/* Steps are submitted one by one, so that the calls can be counted. */
static const uint32_t plain = HEDDLE_MODEL_NO_CAPTURE;

static void make_plain(rig *t, const char *settings, const char *policy, uint32_t in_flight) {
  sketch s = {0};
  draw(&s, "sim:0", "sim:1");
  rig_make(t, settings, &s,
           &(heddle_model_options){.struct_size = sizeof(heddle_model_options),
                                   .devices = "sim:0,sim:1,cpu",
                                   .flags = plain,
                                   .on_failure = policy,
                                   .in_flight = in_flight});
}

static void without_a_policy_it_is_an_error(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    rig t;
    make_plain(&t, "sim.fail=run:1@0:fault", i == 0 ? NULL : "error", 1);
    set_both(&t, -20);
    FAILS(heddle_executor_run(t.ex, 20000 * MS, &err), HEDDLE_EDEVICE);
    SAYS("node 'sum' on sim:0");
    assert_int_equal(stats_of(&t).retries + stats_of(&t).failovers, 0);
    end(&t);
  }
}

static void a_lost_device_is_left_out(void **state) {
  (void)state;
  rig t;
  make_plain(&t, "sim.fail=run:2@0:fault", "failover", 1);
  set_both(&t, -20);
  for (int i = 0; i < 4; i++) {
    OK(heddle_executor_run(t.ex, 20000 * MS, &err));
    check_output(&t, -20);
    assert_int_equal(stats_of(&t).failovers, i > 0);
  }
  set_both(&t, 3); /* what is set anew goes where it runs now */
  OK(heddle_executor_run(t.ex, 20000 * MS, &err));
  check_output(&t, 3);
  char *text = NULL;
  OK(heddle_executor_explain(t.ex, HEDDLE_EXPLAIN_TEXT, &text, &err));
  assert_non_null(strstr(text, "devices   sim:1, cpu:0"));
  assert_non_null(strstr(text, "on failure failover"));
  heddle_free(text);
  end(&t);
}

static void one_device_after_the_other(void **state) {
  (void)state;
  rig t;
  make_plain(&t, "sim.fail=run:2@0:fault,run:5@1:fault", "failover", 1);
  set_both(&t, -20);
  for (int i = 0; i < 6; i++) {
    OK(heddle_executor_run(t.ex, 20000 * MS, &err));
    check_output(&t, -20);
  }
  assert_int_equal(stats_of(&t).failovers, 2);
  assert_int_equal(stats_of(&t).runs, 6);
  end(&t);
}

static void no_device_is_left(void **state) {
  (void)state;
  rig t;
  sketch s = {0};
  draw(&s, "sim:0", "sim:0");
  rig_make(&t, "sim.fail=run:1@0:fault", &s,
           &(heddle_model_options){.struct_size = sizeof(heddle_model_options),
                                   .devices = "sim:0",
                                   .flags = plain | HEDDLE_MODEL_IGNORE_ANNOTATIONS,
                                   .on_failure = "failover"});
  set_both(&t, 1);
  for (int i = 0; i < 2; i++) {
    FAILS(heddle_executor_run(t.ex, 20000 * MS, &err), HEDDLE_EDEVICE);
    SAYS("no failover: no other device is left");
    if (i == 0) SAYS("node 'sum' on sim:0");
  }
  end(&t);
}

/* A failed call leaves the device as it is: the same again, and without it where that fails too. */
static void a_failed_call_is_tried_again_first(void **state) {
  (void)state;
  rig t;
  make_plain(&t, "layers=fault;fault.fail=op.run:2@sim:0", "failover", 1);
  set_both(&t, -20);
  for (int i = 0; i < 3; i++) OK(heddle_executor_run(t.ex, 20000 * MS, &err));
  check_output(&t, -20);
  assert_int_equal(stats_of(&t).retries, 1);
  assert_int_equal(stats_of(&t).failovers, 0);
  end(&t);
  make_plain(&t, "layers=fault;fault.fail=op.run:2+@sim:0", "failover", 1);
  set_both(&t, -20);
  for (int i = 0; i < 3; i++) OK(heddle_executor_run(t.ex, 20000 * MS, &err));
  check_output(&t, -20);
  assert_int_equal(stats_of(&t).retries, 1);
  assert_int_equal(stats_of(&t).failovers, 1);
  end(&t);
}

static void a_retry_opens_the_device_anew(void **state) {
  (void)state;
  rig t;
  make_plain(&t, "sim.fail=run:2@0:fault,run:6@0:async", "retry", 1);
  set_both(&t, -20);
  for (int i = 0; i < 6; i++) {
    OK(heddle_executor_run(t.ex, 20000 * MS, &err));
    check_output(&t, -20);
  }
  assert_int_equal(stats_of(&t).retries, 2);
  assert_int_equal(stats_of(&t).failovers, 0);
  OK(heddle_device_health(heddle_model_device(t.model, 0), &err));
  end(&t);
}

static void retries_are_counted(void **state) {
  (void)state;
  rig t;
  make_plain(&t, "sim.fail=run:1@0,run:2@0,run:3@0", "retry:2", 1);
  set_both(&t, -20);
  FAILS(heddle_executor_run(t.ex, 20000 * MS, &err), HEDDLE_EFAILED);
  SAYS("no retry: it was tried 2 times more");
  SAYS("node 'sum' on sim:0");
  OK(heddle_executor_run(t.ex, 20000 * MS, &err)); /* the next run has its own tries */
  check_output(&t, -20);
  assert_int_equal(stats_of(&t).retries, 2);
  end(&t);
}

/* A time limit is over between two tries, too; the run goes on with the next wait. */
static void time_is_up_between_tries(void **state) {
  (void)state;
  rig t;
  make_plain(&t, "layers=fault;fault.fail=op.run:1+@sim:0", "retry:1000", 1);
  set_both(&t, -20);
  FAILS(heddle_executor_run(t.ex, 1, &err), HEDDLE_ETIMEOUT);
  assert_int_equal(heddle_executor_poll(t.ex), HEDDLE_EBUSY);
  assert_true(stats_of(&t).retries < 1000);
  FAILS(heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err), HEDDLE_EFAILED);
  SAYS("no retry: it was tried 1000 times more");
  end(&t);
}

/* Also where no thread waits: tries end with cancel, and with the executor's release. */
static void cancelled_between_tries(void **state) {
  (void)state;
  const struct timespec nap = {0, 3000000};
  for (int i = 0; i < 2; i++) {
    rig t;
    make_plain(&t, "log=off;layers=fault;fault.fail=op.run:1+@sim:0", "retry:1000", 1);
    set_both(&t, -20);
    OK(heddle_executor_start(t.ex, &err));
    nanosleep(&nap, NULL);
    if (i == 0) {
      OK(heddle_executor_cancel(t.ex, &err));
      FAILS(heddle_executor_wait(t.ex, 20000 * MS, &err), HEDDLE_ECANCELED);
      assert_true(stats_of(&t).retries < 1000);
    }
    end(&t);
  }
}

static void others_keep_a_lost_device_open(void **state) {
  (void)state;
  rig t;
  heddle_executor *other = NULL;
  make_plain(&t, "sim.fail=run:1@0:fault", "retry", 1);
  OK(heddle_executor_create(t.model, &other, &err));
  set_both(&t, -20);
  FAILS(heddle_executor_run(t.ex, 20000 * MS, &err), HEDDLE_EDEVICE);
  SAYS("while others use the model");
  heddle_executor_release(other);
  OK(heddle_executor_run(t.ex, 20000 * MS, &err)); /* now it is alone */
  check_output(&t, -20);
  end(&t);
}

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

static void several_runs_in_flight(void **state) {
  (void)state;
  rig t;
  make_plain(&t, "sim.fail=run:3@0:fault,run:9@1:fault", "failover", 3);
  set_both(&t, -20);
  for (int i = 0; i < 3; i++) OK(heddle_executor_start(t.ex, &err));
  for (int i = 0; i < 12; i++) {
    OK(heddle_executor_wait(t.ex, 20000 * MS, &err));
    check_output(&t, (float)(i < 3 ? -20 : i - 23));
    set_both(&t, (float)(i - 20));
    OK(heddle_executor_start(t.ex, &err));
  }
  for (int i = 0; i < 3; i++) OK(heddle_executor_wait(t.ex, 20000 * MS, &err));
  assert_true(stats_of(&t).failovers >= 2);
  assert_int_equal(stats_of(&t).runs, 15);
  end(&t);
}

static void while_nobody_waits(void **state) {
  (void)state;
  rig t;
  make_plain(&t, "sim.delay_us=300;sim.fail=run:2@0:async:fault", "failover", 1);
  set_both(&t, -20);
  for (int i = 0; i < 4; i++) {
    OK(heddle_executor_start(t.ex, &err));
    heddle_io_info info = {.struct_size = sizeof info};
    while (heddle_executor_poll(t.ex) == HEDDLE_EBUSY) { /* what may be asked meanwhile has its answers */
      OK(heddle_executor_output_info(t.ex, 0, &info, &err));
      OK(heddle_executor_input_info(t.ex, 0, &info, &err));
      assert_int_equal(info.shape[0], 64);
      (void)stats_of(&t);
    }
    OK(heddle_executor_wait(t.ex, 20000 * MS, &err));
    check_output(&t, -20);
  }
  assert_int_equal(stats_of(&t).failovers, 1);
  end(&t);
}

static void a_run_up_to_a_node(void **state) {
  (void)state;
  rig t;
  heddle_tensor *gate = NULL;
  make_plain(&t, "sim.fail=run:1@1:fault", "failover", 1);
  set_both(&t, -20);
  OK(heddle_executor_run_to(t.ex, "gate", 0, &gate, &err));
  for (int i = 0; i < 64; i++) assert_true(data_of(gate)[i] == ((float)i * 1.5f > 60 ? (float)i * 1.5f - 60 : 0));
  heddle_tensor_release(gate);
  OK(heddle_executor_run(t.ex, 20000 * MS, &err));
  check_output(&t, -20);
  end(&t);
}

static void a_profile_is_of_the_run_that_ended(void **state) {
  (void)state;
  rig t;
  const heddle_profile_entry *entries;
  size_t n = 0;
  bool on_lost = false;
  make(&t, "sim.fail=run:3@0:fault", "failover", 1); /* recorded, run, then step by step */
  set_both(&t, -20);
  OK(heddle_executor_profile(t.ex, &entries, &n, &err));
  OK(heddle_executor_profile(t.ex, &entries, &n, &err));
  OK(heddle_executor_profile(t.ex, &entries, &n, &err));
  for (size_t i = 0; i < n; i++) on_lost = on_lost || strcmp(entries[i].device, "sim:0") == 0;
  assert_true(n >= 3 && !on_lost);
  check_output(&t, -20);
  end(&t);
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

static void a_trace_has_a_span(void **state) {
  (void)state;
  rig t;
  static char text[1 << 16];
  char path[] = "/tmp/heddle-survive-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  make_plain(&t, "sim.fail=run:2@0:fault", "failover", 1);
  set_both(&t, -20);
  OK(heddle_trace_begin(t.ctx, &err));
  for (int i = 0; i < 3; i++) OK(heddle_executor_run(t.ex, 20000 * MS, &err));
  OK(heddle_trace_write(t.ctx, path, &err));
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  text[fread(text, 1, sizeof text - 1, f)] = '\0';
  fclose(f);
  unlink(path);
  assert_non_null(strstr(text, "\"failover\""));
  end(&t);
}

/* Completions that never come are no failure: the time of the run is. */
static void a_hang_is_not_survived(void **state) {
  (void)state;
  rig t;
  make_plain(&t, "sim.hang=2", "failover", 1);
  set_both(&t, -20);
  FAILS(heddle_executor_run(t.ex, 100 * MS, &err), HEDDLE_ETIMEOUT);
  assert_int_equal(heddle_executor_poll(t.ex), HEDDLE_EBUSY);
  assert_int_equal(stats_of(&t).failovers, 0);
  heddle_executor_release(t.ex);
  heddle_model_release(t.model);
  heddle_graph_release(t.graph);
  heddle_context_release(t.ctx); /* what the hung work may touch is kept */
}

/* The run of which work hangs; what that may touch is kept, and counted until the model is released. */
static void with_a_hang(const char *settings, uint32_t flags, uint64_t *took_ns) {
  rig t;
  sketch s = {0};
  draw(&s, "sim:0", "sim:1");
  uint64_t start = heddle__now_ns();
  rig_make(&t, settings, &s,
           &(heddle_model_options){.struct_size = sizeof(heddle_model_options),
                                   .devices = "sim:0,sim:1,cpu",
                                   .flags = flags,
                                   .on_failure = "failover"});
  set_both(&t, -20);
  for (int i = 0; i < 3; i++) {
    OK(heddle_executor_run(t.ex, 20000 * MS, &err));
    check_output(&t, -20);
  }
  assert_true(stats_of(&t).failovers <= 2); /* each device may hang */
  *took_ns = heddle__now_ns() - start;
  heddle_executor_release(t.ex);
  heddle_model_release(t.model);
  heddle_graph_release(t.graph);
  heddle_context_release(t.ctx);
}

static void a_watchdog_ends_a_hang(void **state) {
  (void)state;
  static const uint32_t flags[] = {0, HEDDLE_MODEL_NO_CAPTURE, HEDDLE_MODEL_NO_CAPTURE | HEDDLE_MODEL_SLOTS};
  uint64_t whole_ns = 0, took_ns, longest_ns = 0;
  with_a_hang("log=off", 0, &whole_ns);
  for (int i = 0; i < 3; i++)
    for (int command = 1; command <= 12; command++) {
      char settings[128];
      snprintf(settings, sizeof settings, "log=off;sim.hang=%d;sim.watchdog_ms=30", command);
      with_a_hang(settings, flags[i], &took_ns);
      if (took_ns > longest_ns) longest_ns = took_ns;
    }
  if (longest_ns > whole_ns + 15000 * MS) fail_msg("a failover took %.1f s", (double)longest_ns / 1e9);
}

/* The plugin resets the device, so that each retry can open it again, and no memory is kept. */
static void a_reset_lets_a_retry_open_the_device(void **state) {
  (void)state;
  for (int command = 1; command <= 6; command++) {
    rig t;
    char settings[160];
    snprintf(settings, sizeof settings, "log=off;sim.0.hang=%d;sim.watchdog_ms=40", command);
    make_plain(&t, settings, "retry:3", 1);
    set_both(&t, -20);
    heddle_status s = heddle_executor_run(t.ex, 20000 * MS, &err);
    /* The device hangs at that command after each open, so a retry is of no use; but each one opens it again. */
    if (s != HEDDLE_OK) {
      SAYS("it was tried 3 times more");
      assert_int_equal(stats_of(&t).retries, 3);
    }
    assert_int_equal(stats_of(&t).orphan_bytes, 0);
    heddle_executor_release(t.ex);
    heddle_model_release(t.model);
    heddle_graph_release(t.graph);
    heddle_context_release(t.ctx);
  }
}

/* The one that hangs is named, not the one that waits for it on another device; without a policy too. */
static void a_watchdog_names_what_hangs(void **state) {
  (void)state;
  for (int device = 0; device < 2; device++) {
    rig t;
    char settings[160];
    snprintf(settings, sizeof settings, "log=off;sim.%d.hang=%d;sim.watchdog_ms=40", device, device == 0 ? 3 : 1);
    make_plain(&t, settings, NULL, 1);
    set_both(&t, -20);
    FAILS(heddle_executor_run(t.ex, 20000 * MS, &err), HEDDLE_EDEVICE);
    SAYS(device == 0 ? "sim:0: " : "sim:1: ");
    SAYS("over its watchdog_ms of 40");
    assert_string_equal(heddle__failed_device(&err), device == 0 ? "sim:0" : "sim:1");
    FAILS(heddle_executor_run(t.ex, 20000 * MS, &err), HEDDLE_EDEVICE);
    heddle_executor_release(t.ex);
    heddle_model_release(t.model);
    heddle_graph_release(t.graph);
    heddle_context_release(t.ctx);
  }
}

/* Slow work that keeps its limit is none of a watchdog's business, however long all of it takes. */
static void a_watchdog_counts_each_work(void **state) {
  (void)state;
  rig t;
  make_plain(&t, "sim.delay_us=30000;sim.0.watchdog_ms=10000;sim.1.watchdog_ms=0", NULL, 1);
  set_both(&t, -20);
  OK(heddle_executor_run(t.ex, 20000 * MS, &err));
  check_output(&t, -20);
  end(&t);
  heddle_context *ctx = NULL;
  heddle_model *m = NULL;
  sketch sum = {0};
  draw(&sum, "sim:0", "sim:1");
  heddle_graph *g = graph_of(&sum);
  OK(heddle_context_create((heddle_setting[]){{"sim.1.watchdog_ms", "soon"}, {"log", "off"}}, 2, NULL, NULL, &ctx,
                           &err));
  heddle_model_options o = {.struct_size = sizeof o, .devices = "sim:0,sim:1,cpu"};
  FAILS(heddle_model_create(ctx, g, NULL, &o, &m, &err), HEDDLE_ENODEV);
  SAYS("watchdog_ms");
  heddle_graph_release(g);
  heddle_context_release(ctx);
}

static void words_that_are_no_policy(void **state) {
  (void)state;
  static const char *const bad[] = {"again", "retry:0", "retry:", "retry:1001", "retry:9999999999", "retry:1x", ""};
  heddle_context *ctx = NULL;
  OK(heddle_context_create(&(heddle_setting){"run.on_failure", "sometimes"}, 1, NULL, NULL, &ctx, &err));
  sketch s = {0};
  heddle_model *m = NULL;
  draw(&s, NULL, NULL);
  heddle_graph *g = graph_of(&s);
  heddle_model_options o = {.struct_size = sizeof o, .devices = "cpu", .flags = HEDDLE_MODEL_IGNORE_ANNOTATIONS};
  FAILS(heddle_model_create(ctx, g, NULL, &o, &m, &err), HEDDLE_EINVAL);
  SAYS("'sometimes' (from call)");
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    o.on_failure = bad[i];
    FAILS(heddle_model_create(ctx, g, NULL, &o, &m, &err), HEDDLE_EINVAL);
    SAYS("retry:N");
  }
  o.on_failure = "retry:1000";
  OK(heddle_model_create(ctx, g, NULL, &o, &m, &err));
  heddle_model_release(m);
  heddle_graph_release(g);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

CASES(CASE(without_a_policy_it_is_an_error), CASE(a_lost_device_is_left_out), CASE(one_device_after_the_other),
      CASE(no_device_is_left), CASE(a_failed_call_is_tried_again_first), CASE(a_retry_opens_the_device_anew),
      CASE(retries_are_counted), CASE(time_is_up_between_tries), CASE(cancelled_between_tries),
      CASE(others_keep_a_lost_device_open), CASE(memory_that_is_out), CASE(many_without_memory),
      CASE(lost_by_another_executor), CASE(bound_memory_is_read_and_written_again), CASE(memory_of_the_lost_device),
      CASE(several_runs_in_flight), CASE(while_nobody_waits), CASE(a_run_up_to_a_node),
      CASE(a_profile_is_of_the_run_that_ended), CASE(other_shapes_and_parameters), CASE(a_plan_for_less_memory),
      CASE(rules_and_kept_values), CASE(a_trace_has_a_span), CASE(a_hang_is_not_survived), CASE(a_watchdog_ends_a_hang),
      CASE(a_reset_lets_a_retry_open_the_device), CASE(a_watchdog_names_what_hangs), CASE(a_watchdog_counts_each_work),
      CASE(words_that_are_no_policy))
