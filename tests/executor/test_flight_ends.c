/* tests/executor/test_flight_ends.c: how runs in flight end: one passes another that hangs; they fail, are cancelled
 * and released; threads start, wait, poll and cancel.
 * labels: threads
 * timeout: 120
 */
#include <pthread.h>
#include <stdatomic.h>

#include "executor/flight_rig.h"

/* The first command of the first run never ends; the second run overtakes it. Its result is known after the first's. */
static void a_run_passes_one_that_hangs(void **state) {
  (void)state;
  ride t;
  set_up(&t, "sim.hang=1;log=off", mixed, 3, 2);
  start_with(&t, 0);
  FAILS(heddle_executor_wait(t.ex, 300 * MS, &err), HEDDLE_ETIMEOUT);
  SAYS("still pending");
  start_with(&t, 1);
  while (stat_runs(t.ex) == 0) nap(1000); /* the case's time limit is the end of patience */
  assert_int_equal(heddle_executor_poll(t.ex), HEDDLE_EBUSY);
  FAILS(heddle_executor_wait(t.ex, MS, &err), HEDDLE_ETIMEOUT);
  OK(heddle_executor_cancel(t.ex, &err));
  FAILS(heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err), HEDDLE_ECANCELED);
  SAYS("did not end after the failure");
  OK(heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err)); /* this one had ended well */
  FAILS(heddle_executor_start(t.ex, &err), HEDDLE_ETIMEOUT);
  SAYS("cannot be used any more");
  FAILS(heddle_executor_poll(t.ex), HEDDLE_ETIMEOUT);
  FAILS(heddle_executor_cancel(t.ex, &err), HEDDLE_ETIMEOUT);
  let_go(&t); /* what the hung stream may touch is kept */
}

static void cancelling_ends_all(void **state) {
  (void)state;
  ride t;
  set_up(&t, "sim.delay_us=2000", mixed, 3, 3);
  for (int round = 0; round < 8; round++) {
    for (int i = 0; i < 3; i++) start_with(&t, i);
    nap(round * 700);
    OK(heddle_executor_cancel(t.ex, &err));
    for (int i = 0; i < 3; i++) {
      heddle_status s = heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err);
      if (s == HEDDLE_OK) assert_true(shows(t.ex, i));
      else assert_int_equal(s, HEDDLE_ECANCELED);
    }
    assert_int_equal(heddle_executor_poll(t.ex), HEDDLE_OK);
  }
  start_with(&t, 2);
  end_with(&t, 2);
  tear_down(&t);
}

static void released_while_runs_are_pending(void **state) {
  (void)state;
  for (int round = 0; round < 6; round++) {
    ride t;
    set_up(&t, "sim.delay_us=1500", mixed, 3, 3);
    for (int i = 0; i <= round % 3; i++) start_with(&t, i);
    nap(round * 400);
    tear_down(&t);
  }
}

/* A waiting thread gets the failure of its own run, and of no other. */
static void failures_reach_their_run(void **state) {
  (void)state;
  static const char *const kinds[] = {"op.run", "copy.h2d", "copy.d2h", "fence.signal"};
  for (int kind = 0; kind < 4; kind++) {
    int failures = 0;
    for (int device = 0; device < 3; device++)
      for (int n = 1; n < 60; n++) {
        char settings[160];
        ride t;
        snprintf(settings, sizeof settings, "layers=check,fault;log=off;sim.capture=0;fault.fail=%s:%d@%s", kinds[kind],
                 n, mixed[device]);
        set_up(&t, settings, mixed, 3, 2);
        int failed = 0, started = 0;
        for (int i = 0; i < 5; i++) {
          while (started < 5 && started - i < 2) {
            give(&t, started % 4);
            heddle_status begun = heddle_executor_start(t.ex, &err); /* nothing of a run fails in its start */
            assert_int_equal(begun, HEDDLE_OK);
            started++;
          }
          heddle_status s = heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err);
          if (s == HEDDLE_OK) {
            assert_true(shows(t.ex, i % 4));
          } else {
            failed++;
            assert_non_null(strstr(err.text, mixed[device]));
            heddle_tensor *y = NULL;
            FAILS(heddle_executor_view_output(t.ex, 0, &y, &err), HEDDLE_EINVAL);
          }
        }
        tear_down(&t);
        if (failed == 0) break; /* there are fewer calls than n */
        assert_int_equal(failed, 1);
        failures++;
      }
    if (failures < 10) fail_msg("%s failed %d times", kinds[kind], failures);
  }
}

static void a_lost_device_fails_all_that_use_it(void **state) {
  (void)state;
  ride t;
  set_up(&t, "log=off;sim.delay_us=500;sim.fail=run:2@1:async:fault", mixed, 3, 3);
  int started = 0, failed = 0;
  for (heddle_status s = HEDDLE_OK; started < 3 && s == HEDDLE_OK; started += s == HEDDLE_OK) {
    give(&t, started);
    s = heddle_executor_start(t.ex, &err);
    if (s != HEDDLE_OK) assert_int_equal(s, HEDDLE_EDEVICE); /* it is lost by now */
  }
  assert_true(started >= 1);
  for (int i = 0; i < started; i++) {
    heddle_status s = heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err);
    if (s == HEDDLE_OK) {
      assert_true(shows(t.ex, i));
      continue;
    }
    assert_int_equal(s, HEDDLE_EDEVICE);
    SAYS("sim:1");
    failed++;
  }
  assert_true(failed >= 1);
  FAILS(heddle_executor_start(t.ex, &err), HEDDLE_EDEVICE);
  tear_down(&t);
}

static void memory_may_be_out(void **state) {
  (void)state;
  size_t before = heddle__alloc_live();
  for (uint64_t n = 1;; n++) {
    ride t;
    set_up(&t, "log=off", mixed, 3, 1);
    heddle_model_options o = {.struct_size = sizeof o, .devices = "cpu,sim:0,sim:1", .in_flight = 2};
    heddle_model *m = NULL;
    heddle_executor *ex = NULL;
    OK(heddle_model_create(t.ctx, t.graph, NULL, &o, &m, &err));
    heddle__alloc_fail_at(n);
    heddle_status s = heddle_executor_create(m, &ex, &err);
    if (s == HEDDLE_OK) s = heddle_executor_set_input(ex, 0, t.x[1], &err);
    if (s == HEDDLE_OK) s = heddle_executor_set_input(ex, 1, t.w, &err);
    for (int i = 0; i < 2 && s == HEDDLE_OK; i++) s = heddle_executor_start(ex, &err);
    for (int i = 0; i < 2 && s == HEDDLE_OK; i++) s = heddle_executor_wait(ex, HEDDLE_FOREVER, &err);
    heddle__alloc_fail_at(0);
    if (s != HEDDLE_OK) assert_int_equal(s, HEDDLE_ENOMEM);
    else assert_true(shows(ex, 1));
    heddle_executor_release(ex);
    heddle_model_release(m);
    tear_down(&t);
    assert_int_equal(heddle__alloc_live(), before);
    if (s == HEDDLE_OK && n > 20) break;
  }
}

/* ---- threads */

/* What a thread that starts and one that waits share: runs may be started while fewer than so many are unread. */
typedef struct belt {
  ride t;
  pthread_mutex_t lock;
  pthread_cond_t moved;
  int started, read, wrong, n;
} belt;

enum { RUNS = 120 };

static void *feed(void *arg) {
  belt *b = arg;
  heddle_error e;
  for (int i = 0; i < RUNS; i++) {
    pthread_mutex_lock(&b->lock);
    while (b->started - b->read >= b->n) pthread_cond_wait(&b->moved, &b->lock);
    heddle_status s = heddle_executor_set_input(b->t.ex, 0, b->t.x[i % 4], &e);
    if (s == HEDDLE_OK) s = heddle_executor_start(b->t.ex, &e);
    b->wrong += s != HEDDLE_OK;
    b->started++;
    pthread_cond_broadcast(&b->moved);
    pthread_mutex_unlock(&b->lock);
  }
  return NULL;
}

static void one_starts_another_waits(void **state) {
  (void)state;
  for (int on_sim = 0; on_sim < 2; on_sim++) {
    belt b = {.n = 3, .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};
    set_up(&b.t, "sim.delay_us=20", on_sim ? mixed : only_cpu, on_sim ? 3 : 1, 3);
    pthread_t feeder;
    assert_int_equal(pthread_create(&feeder, NULL, feed, &b), 0);
    for (int i = 0; i < RUNS; i++) {
      heddle_error e;
      pthread_mutex_lock(&b.lock);
      while (b.started == i) pthread_cond_wait(&b.moved, &b.lock);
      pthread_mutex_unlock(&b.lock);
      heddle_status s = heddle_executor_wait(b.t.ex, HEDDLE_FOREVER, &e); /* while the other may start */
      pthread_mutex_lock(&b.lock);
      b.wrong += s != HEDDLE_OK || !shows(b.t.ex, i % 4);
      b.read++;
      pthread_cond_broadcast(&b.moved);
      pthread_mutex_unlock(&b.lock);
    }
    pthread_join(feeder, NULL);
    assert_int_equal(b.wrong, 0);
    assert_int_equal(stat_runs(b.t.ex), RUNS);
    tear_down(&b.t);
  }
}

typedef struct onlooker {
  pthread_t thread;
  heddle_executor *ex;
  int kind; /* 0 waits, 1 polls, 2 cancels now and then */
  atomic_bool *stop;
} onlooker;

static void *look_on(void *arg) {
  onlooker *o = arg;
  heddle_error e;
  for (int i = 0; !atomic_load(o->stop); i++) {
    if (o->kind == 0) heddle_executor_wait(o->ex, i % 3 == 0 ? MS / 10 : HEDDLE_FOREVER, &e);
    if (o->kind == 1) heddle_executor_poll(o->ex);
    if (o->kind == 2 && i % 8 == 0) heddle_executor_cancel(o->ex, &e);
    nap(o->kind == 0 ? 0 : 150);
  }
  return NULL;
}

/* Others may wait, poll and cancel whenever they like; who starts finds each run ended or pending, and at the end the
 * executor as good as new. */
static void others_wait_poll_and_cancel(void **state) {
  (void)state;
  ride t;
  atomic_bool stop = false;
  onlooker others[4];
  set_up(&t, "sim.delay_us=50", mixed, 3, 3);
  give(&t, 1);
  for (int i = 0; i < 4; i++) {
    others[i] = (onlooker){.ex = t.ex, .kind = i < 2 ? 0 : i - 1, .stop = &stop};
    assert_int_equal(pthread_create(&others[i].thread, NULL, look_on, &others[i]), 0);
  }
  int started = 0;
  for (int i = 0; i < 400; i++) {
    heddle_status s = heddle_executor_start(t.ex, &err);
    started += s == HEDDLE_OK;
    if (s == HEDDLE_OK) continue;
    assert_int_equal(s, HEDDLE_EBUSY);
    s = heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err);
    if (s != HEDDLE_OK) assert_int_equal(s, HEDDLE_ECANCELED);
  }
  atomic_store(&stop, true);
  for (int i = 0; i < 4; i++) pthread_join(others[i].thread, NULL);
  assert_true(started >= 200);
  for (int i = 0; i < 3; i++) heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err);
  start_with(&t, 3);
  end_with(&t, 3);
  tear_down(&t);
}

CASES(CASE(a_run_passes_one_that_hangs), CASE(cancelling_ends_all), CASE(released_while_runs_are_pending),
      CASE(failures_reach_their_run), CASE(a_lost_device_fails_all_that_use_it), CASE(memory_may_be_out),
      CASE(one_starts_another_waits), CASE(others_wait_poll_and_cancel))
