/* tests/executor/test_survive.c: runs that a device failed, under each policy of a model: what the caller gets, and what cannot
 * be saved. Every call of a run and of a creation fails in tests/python/test_survive.py.
 * labels: threads timeout: 60
 */
#include "core/device.h"
#include "executor/survive_rig.h"

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

/* A device is lost between two runs, and the time of the second is over while it is planned anew: the next goes on with that. */
static void time_is_up_while_planning_anew(void **state) {
  (void)state;
  static const char *const policies[] = {"retry", "failover"};
  for (int i = 0; i < 2; i++) {
    rig t;
    make_plain(&t, "log=error", policies[i], 1);
    set_both(&t, -20);
    OK(heddle_executor_run(t.ex, 20000 * MS, &err));
    heddle__device_fault((heddle_device *)(uintptr_t)heddle_model_device(t.model, 0), 0, "for this case");
    FAILS(heddle_executor_run(t.ex, 1, &err), HEDDLE_ETIMEOUT);
    SAYS("has not ended within its time");
    assert_int_not_equal(heddle_executor_poll(t.ex), HEDDLE_EBUSY);
    OK(heddle_executor_run(t.ex, 20000 * MS, &err));
    check_output(&t, -20);
    assert_int_equal(stats_of(&t).runs, 2);
    end(&t);
  }
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
      CASE(time_is_up_while_planning_anew), CASE(retries_are_counted), CASE(time_is_up_between_tries),
      CASE(cancelled_between_tries), CASE(others_keep_a_lost_device_open), CASE(several_runs_in_flight),
      CASE(while_nobody_waits), CASE(a_run_up_to_a_node), CASE(a_profile_is_of_the_run_that_ended),
      CASE(a_trace_has_a_span), CASE(words_that_are_no_policy))
