/* tests/stress/test_pending.c: runs that are cancelled, released in the middle, or wait for a completion that comes late
 * or never: each call returns in time with clear words, and what is left of the context goes on working. A completion
 * that never comes is sim's alone: PoCL cannot be made to hang and then be got rid of.
 * labels: threads
 */
#include <pthread.h>

#include "cases.h"

#include "core/alloc.h"
#include "job.h"

static heddle_error err;

static void must(heddle_status s) {
  if (s != HEDDLE_OK) fail_msg("status %d: %s", s, err.text);
}

static heddle_context *context(const heddle_setting *settings, size_t n) {
  heddle_context *ctx = NULL;
  memset(&err, 0, sizeof err);
  must(heddle_context_create(settings, n, NULL, NULL, &ctx, &err));
  return ctx;
}
#define CONTEXT(...) \
  context((const heddle_setting[]){{"log", "off"}, __VA_ARGS__}, \
          sizeof((const heddle_setting[]){{"log", "off"}, __VA_ARGS__}) / sizeof(heddle_setting))

static heddle_context *late_context(const char *us) {
  heddle_setting settings[3] = {{"log", "off"}};
  return context(settings, 1 + job_delay(settings + 1, us));
}

static void begin(heddle_context *ctx, job *j) {
  must(job_model(ctx, j, NULL, 0, &err));
  must(job_executor(j, 1, &err));
}

static void says(const char *part) {
  if (strstr(err.text, part) == NULL) fail_msg("'%s' is not in: %s", part, err.text);
}

/* ---- late completions */

static void release_in_the_middle(heddle_context *ctx, unsigned wait_ms) {
  job j = {0};
  begin(ctx, &j);
  must(heddle_executor_start(j.executor, &err));
  job_sleep_ms(wait_ms);
  uint64_t start = job_now();
  heddle_executor_release(j.executor);
  j.executor = NULL;
  uint64_t took = job_now() - start;
  if (took > 4 * JOB_SECOND) fail_msg("release took %.1f s", (double)took / 1e9);
  must(job_executor(&j, 2, &err)); /* late signals of the first one reach nothing */
  must(job_run(&j, &err));
  job_drop(&j);
}

static void signals_after_the_release(void **state) {
  (void)state;
  size_t before = heddle__alloc_live();
  heddle_context *ctx = CONTEXT({"layers", "check,fault"}, {"fault.delay_us", "150000"});
  for (unsigned i = 0; i < 4; i++) release_in_the_middle(ctx, 40 * i);
  heddle_context_release(ctx); /* with signals still under way */
  assert_int_equal(heddle__alloc_live(), before);
}

static void work_after_the_release(void **state) {
  (void)state;
  size_t before = heddle__alloc_live();
  heddle_context *ctx = late_context("40000");
  for (unsigned i = 0; i < 8; i++) release_in_the_middle(ctx, 10 * i);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), before);
}

/* ---- lost completions: the stream's own word is believed in the end */

static void a_signal_that_is_lost(void **state) {
  (void)state;
  for (unsigned n = 1; n <= 5; n++) {
    char number[16];
    snprintf(number, sizeof number, "%u", n);
    heddle_context *ctx = CONTEXT({"layers", "fault"}, {"fault.drop_signal", number});
    job j = {0};
    begin(ctx, &j);
    uint64_t start = job_now();
    for (int i = 0; i < 3; i++) must(job_run(&j, &err));
    uint64_t took = job_now() - start;
    if (took > 5 * JOB_SECOND) fail_msg("signal %u lost: three runs took %.1f s", n, (double)took / 1e9);
    job_drop(&j);
    heddle_context_release(ctx);
  }
}

/* ---- completions that never come */

static void hangs_at(unsigned n) {
  char number[16];
  snprintf(number, sizeof number, "%u", n);
  heddle_context *ctx = CONTEXT({"sim.0.hang", number});
  job j = {0};
  must(job_model(ctx, &j, NULL, 0, &err));
  must(job_executor(&j, 1, &err));
  heddle_status s = HEDDLE_OK;
  uint64_t start = 0;
  for (int i = 0; i < 30 && s == HEDDLE_OK; i++) {
    start = job_now();
    s = heddle_executor_run(j.executor, JOB_SECOND / 2, &err);
  }
  assert_int_equal(s, HEDDLE_ETIMEOUT);
  if (job_now() - start > 2 * JOB_SECOND) fail_msg("a run with half a second took more than two");
  says("pending");
  assert_int_equal(heddle_executor_poll(j.executor), HEDDLE_EBUSY);
  assert_int_equal(heddle_executor_run(j.executor, 0, &err), HEDDLE_EBUSY);
  assert_int_equal(heddle_executor_wait(j.executor, JOB_SECOND / 10, &err), HEDDLE_ETIMEOUT);

  /* cancelled, it ends */
  start = job_now();
  must(heddle_executor_cancel(j.executor, &err));
  s = heddle_executor_wait(j.executor, 5 * JOB_SECOND, &err);
  if (job_now() - start > 5 * JOB_SECOND) fail_msg("cancel and wait took more than five seconds");
  assert_int_equal(s, HEDDLE_ECANCELED);
  says("sim:0");
  assert_int_not_equal(heddle_executor_poll(j.executor), HEDDLE_EBUSY);
  heddle_executor_stats stats = {.struct_size = sizeof stats};
  must(heddle_executor_get_stats(j.executor, &stats, &err));
  if (stats.orphan_bytes == 0) fail_msg("memory under a hung stream is not counted");

  /* now it is dead, and reports it at once */
  start = job_now();
  if (heddle_executor_run(j.executor, JOB_SECOND, &err) == HEDDLE_OK) fail_msg("a run went through a hung stream");
  says("sim:0");
  if (job_now() - start > JOB_SECOND / 2) fail_msg("a dead executor thinks about it");

  /* other devices go on */
  must(job_whole(ctx, "cpu", 3, &err));
  must(job_whole(ctx, "sim:1", 4, &err));
  start = job_now();
  job_drop(&j);
  if (job_now() - start > 8 * JOB_SECOND) fail_msg("release took %.1f s", (double)(job_now() - start) / 1e9);
  must(job_whole(ctx, "sim:1", 5, &err));
  start = job_now();
  heddle_context_release(ctx);
  if (job_now() - start > 8 * JOB_SECOND)
    fail_msg("the context's release took %.1f s", (double)(job_now() - start) / 1e9);
}

static void a_completion_that_never_comes(void **state) {
  (void)state;
  hangs_at(20);
}

static void another_that_never_comes(void **state) {
  (void)state;
  hangs_at(21);
}

static void a_third_that_never_comes(void **state) {
  (void)state;
  hangs_at(22);
}

/* Released without a word while it hangs. */
static void release_of_a_hung_run(void **state) {
  (void)state;
  heddle_context *ctx = CONTEXT({"sim.0.hang", "20"});
  job j = {0};
  begin(ctx, &j);
  heddle_status s = HEDDLE_OK;
  for (int i = 0; i < 30 && s == HEDDLE_OK; i++) s = heddle_executor_run(j.executor, JOB_SECOND / 4, &err);
  assert_int_equal(s, HEDDLE_ETIMEOUT);
  uint64_t start = job_now();
  heddle_executor_release(j.executor);
  if (job_now() - start > 4 * JOB_SECOND) fail_msg("release took %.1f s", (double)(job_now() - start) / 1e9);
  j.executor = NULL;
  must(job_whole(ctx, "sim:1", 5, &err));
  job_drop(&j);
  must(job_whole(ctx, "cpu", 6, &err));
  heddle_context_release(ctx);
}

/* A device that hangs while constants are uploaded is an error when the time for uploads is over, not a standstill. */
static void a_hang_while_making(void **state) {
  (void)state;
  heddle_context *ctx = CONTEXT({"sim.0.hang", "1"}, {"limit.upload_seconds", "2"});
  job j = {0};
  uint64_t start = job_now();
  heddle_status s = job_model(ctx, &j, NULL, 0, &err);
  if (s == HEDDLE_OK) s = job_executor(&j, 1, &err);
  assert_int_equal(s, HEDDLE_ETIMEOUT);
  says("sim:0");
  job_drop(&j);
  must(job_whole(ctx, "sim:1", 5, &err));
  heddle_context_release(ctx);
  if (job_now() - start > 15 * JOB_SECOND) fail_msg("it took %.1f s", (double)(job_now() - start) / 1e9);
}

/* ---- cancel */

static void cancel_of_a_pending_run(void **state) {
  (void)state;
  size_t before = heddle__alloc_live();
  heddle_context *ctx = late_context("60000");
  job j = {0};
  begin(ctx, &j);
  unsigned cancelled = 0;
  for (unsigned i = 0; i < 12; i++) {
    must(heddle_executor_start(j.executor, &err));
    job_sleep_ms(i % 4 * 5);
    must(heddle_executor_cancel(j.executor, &err));
    heddle_status s = heddle_executor_wait(j.executor, JOB_LONG, &err);
    if (s == HEDDLE_ECANCELED) cancelled++;
    else must(s); /* it was faster */
    assert_int_equal(heddle_executor_poll(j.executor), HEDDLE_OK);
  }
  if (cancelled < 3) fail_msg("only %u of 12 runs were cancelled", cancelled);
  must(heddle_executor_cancel(j.executor, &err)); /* nothing to cancel */
  must(job_run(&j, &err));
  job_drop(&j);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), before);
}

typedef struct canceller {
  heddle_executor *executor;
  heddle_status status;
} canceller;

static void *cancels(void *arg) {
  canceller *c = arg;
  heddle_error mine;
  job_sleep_ms(30);
  c->status = heddle_executor_cancel(c->executor, &mine);
  return NULL;
}

static void cancel_from_another_thread(void **state) {
  (void)state;
  heddle_context *ctx = late_context("200000");
  job j = {0};
  begin(ctx, &j);
  for (int i = 0; i < 3; i++) {
    canceller c = {j.executor, HEDDLE_EFAILED};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancels, &c), 0);
    heddle_status s = heddle_executor_run(j.executor, HEDDLE_FOREVER, &err);
    pthread_join(thread, NULL);
    assert_int_equal(c.status, HEDDLE_OK);
    if (s != HEDDLE_OK) assert_int_equal(s, HEDDLE_ECANCELED);
  }
  must(job_run(&j, &err));
  job_drop(&j);
  heddle_context_release(ctx);
}

CASES(CASE_TWICE(signals_after_the_release), CASE_TWICE(work_after_the_release), CASE_TWICE(a_signal_that_is_lost),
      CASE(a_completion_that_never_comes), CASE(another_that_never_comes), CASE(a_third_that_never_comes),
      CASE(release_of_a_hung_run), CASE(a_hang_while_making), CASE_TWICE(cancel_of_a_pending_run),
      CASE_TWICE(cancel_from_another_thread))
