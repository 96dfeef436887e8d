/* tests/executor/test_flight.c: several runs of one executor in flight: which values each has, whose outputs are shown,
 * memory of the caller's, shapes that differ, and what else may be asked meanwhile.
 * labels: threads
 */
#include "executor/flight_rig.h"

static void runs_are_told_in_order(void **state) {
  (void)state;
  for (uint32_t n = 1; n <= 4; n++) {
    ride t;
    set_up(&t, "sim.delay_us=100", mixed, 3, n);
    uint32_t started = 0, ended = 0;
    while (ended < 24) {
      while (started < 24 && started - ended < n) start_with(&t, (int)started++ % 4);
      if (started - ended == n && n > 1) { /* one alone may have ended by now, and is then not pending */
        FAILS(heddle_executor_start(t.ex, &err), HEDDLE_EBUSY);
        SAYS("runs in flight are pending; wait for one");
        FAILS(heddle_executor_set_input(t.ex, 0, t.x[0], &err), HEDDLE_EBUSY);
      }
      if (n > 1) FAILS(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err), HEDDLE_EBUSY);
      end_with(&t, (int)ended++ % 4);
    }
    assert_int_equal(heddle_executor_poll(t.ex), HEDDLE_OK);
    OK(heddle_executor_wait(t.ex, 0, &err)); /* nothing is pending: the last result */
    assert_true(shows(t.ex, 23 % 4));
    assert_int_equal(stat_runs(t.ex), 24);
    tear_down(&t);
  }
}

static void values_stay(const char *settings) {
  ride t;
  set_up(&t, settings, mixed, 3, 3);
  give(&t, 2); /* before the first start, and never again */
  for (int i = 0; i < 3; i++) start(&t);
  for (int i = 0; i < 3; i++) end_with(&t, 2);
  for (int i = 0; i < 2; i++) start(&t);
  start_with(&t, 1); /* this run alone, and those after it */
  for (int i = 0; i < 2; i++) end_with(&t, 2);
  start(&t);
  end_with(&t, 1);
  end_with(&t, 1);
  give(&t, 0); /* what is set again before the start counts */
  give(&t, 3);
  for (int i = 0; i < 7; i++) {
    OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
    assert_true(shows(t.ex, 3));
  }
  heddle_tensor *x = NULL;
  OK(heddle_executor_get_input(t.ex, 0, &x, &err));
  assert_true(data_of(x)[0] == 4);
  heddle_tensor_release(x);
  tear_down(&t);
}

static void values_stay_from_run_to_run(void **state) {
  (void)state;
  values_stay("");
  if (!is_sim()) return;
  values_stay("sim.coherent=0;sim.delay_us=50");
  values_stay("sim.unified=1;sim.coherent=0");
  values_stay("sim.import=0");
}

static void outputs_are_those_waited_for(void **state) {
  (void)state;
  ride t;
  heddle_tensor *y = NULL, *own = floats(shape, 1, 0, 0);
  set_up(&t, "", mixed, 3, 2);
  FAILS(heddle_executor_view_output(t.ex, 0, &y, &err), HEDDLE_EINVAL);
  SAYS("no finished run");
  start_with(&t, 0);
  start_with(&t, 1);
  while (heddle_executor_poll(t.ex) == HEDDLE_EBUSY) nap(100);
  FAILS(heddle_executor_view_output(t.ex, 0, &y, &err), HEDDLE_EBUSY); /* ended, and not waited for */
  OK(heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err));
  OK(heddle_executor_get_output(t.ex, 0, own, &err));
  assert_true(holds(data_of(own), 0));
  OK(heddle_executor_view_output(t.ex, 0, &y, &err));
  assert_true(holds(data_of(y), 0));
  while (stat_runs(t.ex) < 2) nap(100);
  assert_true(holds(data_of(y), 0)); /* the other run wrote elsewhere */
  heddle_tensor_release(y);
  start_with(&t, 2);
  FAILS(heddle_executor_get_output(t.ex, 0, own, &err), HEDDLE_EBUSY);
  SAYS("read those before");
  end_with(&t, 1);
  end_with(&t, 2);
  heddle_tensor_release(own);
  tear_down(&t);
}

static void memory_of_the_caller_takes_turns(void **state) {
  (void)state;
  for (int on_sim = 0; on_sim < 2; on_sim++) {
    ride t;
    heddle_tensor *out[2] = {floats(shape, 1, 0, 0), floats(shape, 1, 0, 0)};
    set_up(&t, "", on_sim ? mixed : only_cpu, on_sim ? 3 : 1, 2);
    OK(heddle_executor_bind_output(t.ex, 0, out[0], &err));
    OK(heddle_executor_bind_input(t.ex, 0, t.x[0], &err));
    start(&t);
    FAILS(heddle_executor_bind_output(t.ex, 0, out[0], &err), HEDDLE_EINVAL); /* both runs would write it */
    SAYS("overlaps the memory of output");
    FAILS(heddle_executor_bind_output(t.ex, 0, t.x[0], &err), HEDDLE_EINVAL); /* the first run reads it */
    SAYS("bound to input 'x'");
    FAILS(heddle_executor_bind_input(t.ex, 0, out[0], &err), HEDDLE_EINVAL);
    SAYS("overlaps the memory of output");
    OK(heddle_executor_bind_output(t.ex, 0, out[1], &err));
    OK(heddle_executor_bind_input(t.ex, 0, t.x[1], &err));
    start(&t);
    end_with(&t, 0);
    assert_true(holds(data_of(out[0]), 0));
    give(&t, 2);
    start(&t); /* into the first again */
    end_with(&t, 1);
    assert_true(holds(data_of(out[1]), 1));
    OK(heddle_executor_bind_output(t.ex, 0, NULL, &err));
    start_with(&t, 3);
    end_with(&t, 2);
    assert_true(holds(data_of(out[0]), 2));
    end_with(&t, 3);
    assert_true(holds(data_of(out[1]), 1)); /* the executor's own memory was used */
    heddle_tensor_release(out[0]);
    heddle_tensor_release(out[1]);
    tear_down(&t);
  }
}

static void shapes_differ_in_flight(void **state) {
  (void)state;
  ride t;
  set_up(&t, "", mixed, 3, 3);
  for (int turn = 0; turn < 6; turn++) {
    for (int64_t n = 1; n <= 3; n++) {
      heddle_tensor *x = floats((int64_t[]){n + turn % 2}, 1, 1, 1), *w = floats((int64_t[]){n + turn % 2}, 1, 7, 0);
      OK(heddle_executor_set_input_by_name(t.ex, "x", x, &err));
      OK(heddle_executor_set_input_by_name(t.ex, "w", w, &err));
      start(&t);
      heddle_tensor_release(x);
      heddle_tensor_release(w);
    }
    for (int64_t n = 1; n <= 3; n++) {
      heddle_tensor *y = NULL;
      OK(heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err));
      OK(heddle_executor_view_output(t.ex, 0, &y, &err));
      assert_int_equal(heddle_tensor_shape(y)[0], n + turn % 2);
      for (int64_t i = 0; i < n; i++) assert_true(data_of(y)[i] == (float)LENGTH * (float)(1 + i) + 7);
      heddle_tensor_release(y);
    }
  }
  tear_down(&t);
}

static void facts_and_other_runs(void **state) {
  (void)state;
  ride t;
  heddle_tensor *value = NULL;
  const heddle_profile_entry *entries = NULL;
  size_t n = 0;
  char *text = NULL;
  heddle_io_info info = {.struct_size = sizeof info};
  set_up(&t, "", mixed, 3, 2);
  assert_int_equal(heddle_executor_input_count(t.ex), 2);
  assert_int_equal(heddle_executor_output_count(t.ex), 1);
  assert_int_equal(heddle_executor_input_index(t.ex, "w"), 1);
  assert_int_equal(heddle_executor_output_index(t.ex, "a8"), 0);
  assert_int_equal(heddle_executor_output_index(t.ex, "none"), -1);
  start_with(&t, 0);
  FAILS(heddle_executor_run_to(t.ex, "a0", 0, &value, &err), HEDDLE_EBUSY);
  FAILS(heddle_executor_profile(t.ex, &entries, &n, &err), HEDDLE_EBUSY);
  SAYS("1 of 2 runs in flight are pending");
  OK(heddle_executor_input_info(t.ex, 0, &info, &err));
  assert_int_equal(info.shape[0], COUNT);
  OK(heddle_executor_explain(t.ex, HEDDLE_EXPLAIN_TEXT, &text, &err)); /* of the run that would be started next */
  assert_non_null(strstr(text, "in flight 2 runs"));
  heddle_free(text);
  start(&t);
  OK(heddle_executor_output_info(t.ex, 0, &info, &err));
  assert_int_equal(info.shape[0], COUNT);
  FAILS(heddle_executor_explain(t.ex, HEDDLE_EXPLAIN_TEXT, &text, &err), HEDDLE_EBUSY);
  end_with(&t, 0);
  end_with(&t, 0);
  OK(heddle_executor_run_to(t.ex, "a0", 0, &value, &err));
  assert_true(data_of(value)[0] == 101);
  heddle_tensor_release(value);
  give(&t, 1);
  OK(heddle_executor_profile(t.ex, &entries, &n, &err));
  assert_true(n >= LENGTH);
  assert_true(shows(t.ex, 1));
  tear_down(&t);
}

static void options_are_checked(void **state) {
  (void)state;
  ride t;
  set_up(&t, "", only_cpu, 1, 0);
  heddle_model *m = NULL;
  heddle_model_options o = {.struct_size = sizeof o, .devices = "cpu", .in_flight = 65};
  FAILS(heddle_model_create(t.ctx, t.graph, NULL, &o, &m, &err), HEDDLE_EINVAL);
  SAYS("65 runs in flight; there can be 64");
  char *text = NULL; /* of an executor for which nothing was asked */
  give(&t, 1);
  OK(heddle_executor_explain(t.ex, HEDDLE_EXPLAIN_JSON, &text, &err));
  assert_non_null(strstr(text, "\"in_flight\":1,"));
  heddle_free(text);
  start(&t);
  end_with(&t, 1);
  tear_down(&t);
}

/* N times the memory of one run, but for the constants. */
static void memory_is_counted(void **state) {
  (void)state;
  uint64_t bytes[4] = {0};
  for (uint32_t n = 1; n <= 3; n++) {
    static const char *const names[] = {"w"};
    heddle_executor_stats stats = {.struct_size = sizeof stats};
    heddle_model_options o = {.struct_size = sizeof o, .devices = "sim:0", .in_flight = n};
    heddle_params *params = NULL;
    heddle_model *m = NULL;
    heddle_executor *ex = NULL;
    ride t;
    set_up(&t, "", &mixed[1], 1, 1);
    OK(heddle_params_create(names, &t.w, 1, &params, &err));
    OK(heddle_model_create(t.ctx, t.graph, params, &o, &m, &err));
    OK(heddle_executor_create(m, &ex, &err));
    OK(heddle_executor_set_input(ex, 0, t.x[2], &err));
    for (uint32_t i = 0; i < n; i++) OK(heddle_executor_start(ex, &err));
    for (uint32_t i = 0; i < n; i++) OK(heddle_executor_wait(ex, HEDDLE_FOREVER, &err));
    assert_true(shows(ex, 2));
    OK(heddle_executor_get_stats(ex, &stats, &err));
    bytes[n] = stats.device_bytes;
    assert_int_equal(bytes[n], n * bytes[1]);
    assert_int_equal(stats.runs, n);
    OK(heddle_executor_load_params(ex, params, &err)); /* w is an input now, of each run */
    for (uint32_t i = 0; i < n; i++) OK(heddle_executor_start(ex, &err));
    for (uint32_t i = 0; i < n; i++) {
      OK(heddle_executor_wait(ex, HEDDLE_FOREVER, &err));
      assert_true(shows(ex, 2));
    }
    heddle_executor_release(ex);
    heddle_model_release(m);
    heddle_params_release(params);
    tear_down(&t);
  }
}

CASES(CASE_TWICE(runs_are_told_in_order), CASE_ALL(values_stay_from_run_to_run),
      CASE_TWICE(outputs_are_those_waited_for), CASE(memory_of_the_caller_takes_turns),
      CASE_TWICE(shapes_differ_in_flight), CASE(facts_and_other_runs), CASE(options_are_checked),
      CASE(memory_is_counted))
