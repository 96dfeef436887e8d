/* tests/executor/test_survive_hang.c: work that never ends, with and without a watchdog.
 * labels: threads timeout: 60
 */
#include "core/failure.h"
#include "executor/survive_rig.h"

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

CASES(CASE(a_hang_is_not_survived), CASE(a_watchdog_ends_a_hang), CASE(a_reset_lets_a_retry_open_the_device),
      CASE(a_watchdog_names_what_hangs), CASE(a_watchdog_counts_each_work))
