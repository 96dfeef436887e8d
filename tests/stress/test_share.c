/* tests/stress/test_share.c: two executors of one model, used by four threads: constants are shared, results are not.
 * One thread of an executor sets inputs, starts or runs, and reads; the other waits, polls and sometimes cancels.
 * labels: threads timeout: 300
 */
#include <pthread.h>
#include <stdatomic.h>

#include "cases.h"

#include "core/alloc.h"
#include "job.h"

enum { EXECUTORS = 2 };

typedef struct pair {
  heddle_executor *executor;
  unsigned number, rounds, cancels;
  atomic_bool over;
  heddle_status status; /* the owner's */
  heddle_error err;
  heddle_status watched; /* the watcher's */
  heddle_error watch_err;
  float x[JOB_SIZE], d[JOB_SIZE];
  pthread_t threads[2];
} pair;

static void *owns(void *arg) {
  pair *p = arg;
  heddle_status s = HEDDLE_OK;
  for (unsigned i = 0; i < p->rounds && s == HEDDLE_OK; i++) {
    s = job_set(p->executor, p->x, (float)(i * 10 + p->number), &p->err);
    if (s != HEDDLE_OK) break;
    if (i % 3 == 0) {
      s = heddle_executor_run(p->executor, JOB_LONG, &p->err);
    } else {
      s = heddle_executor_start(p->executor, &p->err);
      if (s == HEDDLE_OK && i % 3 == 1) /* looks in from time to time */
        while (heddle_executor_wait(p->executor, 50000, &p->err) == HEDDLE_ETIMEOUT) {}
      if (s == HEDDLE_OK) s = heddle_executor_wait(p->executor, JOB_LONG, &p->err);
    }
    if (s == HEDDLE_ECANCELED && p->cancels > 0) {
      s = HEDDLE_OK;
      continue;
    }
    if (s == HEDDLE_OK) s = job_read(p->executor, p->d, &p->err);
    if (s == HEDDLE_OK) s = job_check(p->x, p->d, &p->err);
  }
  p->status = s;
  atomic_store(&p->over, true);
  return NULL;
}

static void *watches(void *arg) {
  pair *p = arg;
  for (unsigned i = 0; !atomic_load(&p->over) && p->watched == HEDDLE_OK; i++) {
    heddle_status s = heddle_executor_wait(p->executor, i % 2 == 0 ? JOB_SECOND : 100000, &p->watch_err);
    if (s == HEDDLE_ETIMEOUT || (s == HEDDLE_ECANCELED && p->cancels > 0)) s = HEDDLE_OK;
    p->watched = s;
    s = heddle_executor_poll(p->executor);
    if (s != HEDDLE_OK && s != HEDDLE_EBUSY) p->watched = s;
    if (p->cancels > 0 && i % p->cancels == 0) heddle_executor_cancel(p->executor, &p->watch_err);
  }
  return NULL;
}

static void share(const char *delay_us, uint32_t flags, unsigned rounds, unsigned cancels) {
  size_t before = heddle__alloc_live();
  heddle_context *ctx = NULL;
  heddle_error err;
  job shared = {0};
  static pair pairs[EXECUTORS];
  heddle_setting settings[3] = {{"log", "off"}};
  size_t n = 1 + job_delay(settings + 1, delay_us);
  if (heddle_context_create(settings, n, NULL, NULL, &ctx, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  if (job_model(ctx, &shared, NULL, flags, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  for (unsigned i = 0; i < EXECUTORS; i++) {
    pairs[i].number = i;
    pairs[i].rounds = rounds;
    pairs[i].cancels = cancels;
    if (heddle_executor_create(shared.model, &pairs[i].executor, &err) != HEDDLE_OK) fail_msg("%s", err.text);
    assert_int_equal(pthread_create(&pairs[i].threads[0], NULL, owns, &pairs[i]), 0);
    assert_int_equal(pthread_create(&pairs[i].threads[1], NULL, watches, &pairs[i]), 0);
  }
  for (unsigned i = 0; i < EXECUTORS; i++)
    for (int k = 0; k < 2; k++) pthread_join(pairs[i].threads[k], NULL);
  for (unsigned i = 0; i < EXECUTORS; i++) {
    pair *p = &pairs[i];
    if (p->status != HEDDLE_OK) fail_msg("executor %u: status %d: %s", i, p->status, p->err.text);
    if (p->watched != HEDDLE_OK) fail_msg("who watches executor %u: status %d: %s", i, p->watched, p->watch_err.text);
    heddle_executor_release(p->executor);
  }
  job_drop(&shared);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), before);
}

static void at_full_speed(void **state) {
  (void)state;
  share("0", 0, 400, 0);
}

static void step_by_step(void **state) {
  (void)state;
  share("0", HEDDLE_MODEL_NO_CAPTURE, 300, 0);
}

static void with_slow_devices(void **state) {
  (void)state;
  share("500", 0, 100, 0);
}

static void with_cancels(void **state) {
  (void)state;
  share("200", 0, 150, 7);
}

CASES(CASE_TWICE(at_full_speed), CASE_TWICE(step_by_step), CASE_TWICE(with_slow_devices), CASE_TWICE(with_cancels))
