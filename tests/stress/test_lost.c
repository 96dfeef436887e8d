/* tests/stress/test_lost.c: a device that is lost in the middle of a run: the error names device and node, later calls
 * fail at once with the first words, other devices go on, and reopening brings it back once nothing uses it. A device
 * that is lost is sim's alone: no driver here loses one on demand.
 * labels: threads
 */
#include "cases.h"

#include "core/alloc.h"
#include "core/context.h"
#include "core/device.h"
#include "job.h"

static heddle_error err;

static void must(heddle_status s) {
  if (s != HEDDLE_OK) fail_msg("status %d: %s", s, err.text);
}

static void says(const char *part) {
  if (strstr(err.text, part) == NULL) fail_msg("'%s' is not in: %s", part, err.text);
}

/* rule: what sim.fail says of the device; node: must be named, or NULL. */
static void loses(const char *rule, const char *device, uint32_t flags, const char *node) {
  size_t before = heddle__alloc_live();
  const heddle_setting settings[] = {{"log", "off"}, {"sim.fail", rule}};
  heddle_context *ctx = NULL;
  heddle_device *dev = NULL;
  must(heddle_context_create(settings, 2, NULL, NULL, &ctx, &err));
  must(heddle_context_find_device(ctx, device, &dev, &err));
  job j = {0};
  must(job_model(ctx, &j, NULL, flags, &err));
  must(job_executor(&j, 1, &err));
  heddle_status s = HEDDLE_OK;
  for (int i = 0; i < 10 && s == HEDDLE_OK; i++) s = job_run(&j, &err);
  if (s != HEDDLE_EDEVICE) fail_msg("%s: status %d: %s", rule, s, err.text);
  assert_int_equal(err.status, HEDDLE_EDEVICE);
  says(device);
  says("as the setting 'fail' says");
  if (node != NULL) says(node);

  /* later calls: at once, with the first words */
  uint64_t start = job_now();
  assert_int_equal(heddle_device_health(dev, &err), HEDDLE_EDEVICE);
  char first[1016];
  memcpy(first, err.text, sizeof first);
  assert_int_equal(heddle_executor_run(j.executor, JOB_LONG, &err), HEDDLE_EDEVICE);
  says(first);
  job again = {0};
  s = job_model(ctx, &again, NULL, 0, &err);
  if (s == HEDDLE_OK) s = job_executor(&again, 1, &err);
  if (s == HEDDLE_OK) s = job_run(&again, &err);
  assert_int_equal(s, HEDDLE_EDEVICE);
  says(first);
  job_drop(&again);
  if (job_now() - start > JOB_SECOND) fail_msg("failing at once took %.1f s", (double)(job_now() - start) / 1e9);

  /* other devices; and the lost one once it is free */
  must(job_whole(ctx, "cpu", 2, &err));
  must(job_whole(ctx, strcmp(device, "sim:0") == 0 ? "sim:1" : "sim:0", 3, &err));
  must(job_whole(ctx, "sim:2,cpu", 4, &err));
  assert_int_equal(heddle_device_reopen(dev, &err), HEDDLE_EBUSY);
  says(device);
  start = job_now();
  job_drop(&j);
  if (job_now() - start > 4 * JOB_SECOND) fail_msg("release took %.1f s", (double)(job_now() - start) / 1e9);
  must(heddle_device_reopen(dev, &err));
  must(heddle_device_health(dev, &err));
  must(job_whole(ctx, NULL, 5, &err));
  must(job_whole(ctx, device, 6, &err));
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), before);
}

static void when_an_operator_is_put_in(void **state) {
  (void)state;
  loses("run:3@0:fault", "sim:0", HEDDLE_MODEL_NO_CAPTURE, "'b'");
}

static void while_an_operator_runs(void **state) {
  (void)state;
  loses("run:3@0:async:fault", "sim:0", HEDDLE_MODEL_NO_CAPTURE, "'b'");
}

static void while_a_copy_runs(void **state) {
  (void)state;
  loses("h2d:3@0:async:fault", "sim:0", HEDDLE_MODEL_NO_CAPTURE, NULL);
}

static void when_a_segment_is_replayed(void **state) {
  (void)state;
  loses("replay:2@0:fault", "sim:0", 0, NULL);
}

static void while_a_segment_is_replayed(void **state) {
  (void)state;
  loses("replay:2@0:async:fault", "sim:0", 0, NULL);
}

static void when_work_is_signalled(void **state) {
  (void)state;
  loses("signal:3@1:fault", "sim:1", HEDDLE_MODEL_NO_CAPTURE, NULL);
}

/* A call that fails without a fault leaves the device as it was. */
static void a_failure_that_is_no_fault(void **state) {
  (void)state;
  static const char *const sims[] = {"run:3@0", "run:3@0:async", "h2d:2@0:async", "signal:2@1"};
  static const char *const others[] = {"op.run:3@sim:0", "op.run:4@sim:1", "copy.h2d:2@sim:0", "fence.signal:2@sim:1"};
  const char *const *rules = is_sim() ? sims : others;
  for (size_t i = 0; i < sizeof sims / sizeof sims[0]; i++) {
    const heddle_setting settings[] = {{"log", "off"},
                                       {is_sim() ? "sim.fail" : "fault.fail", on(rules[i])},
                                       {"layers", is_sim() ? "" : "fault"},
                                       {unified_key(), "0"}};
    heddle_context *ctx = NULL;
    must(heddle_context_create(settings, is_sim() ? 2 : 4, NULL, NULL, &ctx, &err));
    job j = {0};
    must(job_model(ctx, &j, NULL, HEDDLE_MODEL_NO_CAPTURE, &err));
    must(job_executor(&j, 1, &err));
    unsigned failed = 0;
    for (int k = 0; k < 8; k++) {
      heddle_status s = job_run(&j, &err);
      if (s == HEDDLE_OK) continue;
      failed++;
      if (s != HEDDLE_EFAILED) fail_msg("%s: status %d: %s", rules[i], s, err.text);
      says(on("sim:"));
    }
    if (failed != 1) fail_msg("%s: %u of 8 runs failed", rules[i], failed);
    job_drop(&j);
    heddle_context_release(ctx);
  }
}

CASES(CASE(when_an_operator_is_put_in), CASE(while_an_operator_runs), CASE(while_a_copy_runs),
      CASE(when_a_segment_is_replayed), CASE(while_a_segment_is_replayed), CASE(when_work_is_signalled),
      CASE_TWICE(a_failure_that_is_no_fault))
