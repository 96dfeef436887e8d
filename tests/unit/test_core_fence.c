/* Fences and wakers: values, failures, handles that outlive their fence, and sleeping threads.
 * labels: threads */
#include <pthread.h>
#include <time.h>

#include "cases.h"
#include "core/context.h"
#include "core/fence.h"
#include "core/thread.h"

static void a_signal_raises_the_value(void **state) {
  (void)state;
  heddle__fence *f;
  assert_int_equal(heddle__fence_create(NULL, &f, NULL), HEDDLE_OK);
  heddle_pfence h = heddle__fence_handle(f);
  assert_true(h != 0);
  assert_int_equal(heddle__fence_query(h, 1), HEDDLE_EBUSY);
  heddle__fence_signal(h, 5);
  heddle__fence_signal(h, 3); /* smaller: changes nothing */
  assert_true(heddle__fence_reached(f, 5));
  assert_false(heddle__fence_reached(f, 6));
  assert_int_equal(heddle__fence_query(h, 5), HEDDLE_OK);
  heddle__fence_free(f);
}

static void a_late_signal_is_ignored(void **state) {
  (void)state;
  heddle__fence *f, *g;
  assert_int_equal(heddle__fence_create(NULL, &f, NULL), HEDDLE_OK);
  heddle_pfence old = heddle__fence_handle(f);
  heddle__fence_free(f);
  assert_int_equal(heddle__fence_create(NULL, &g, NULL), HEDDLE_OK);
  assert_ptr_equal(f, g); /* the slot is used again */
  heddle__fence_signal(old, 100);
  heddle__fence_fail(old, HEDDLE_EDEVICE, "late");
  heddle__fence_signal(0, 1);
  heddle__fence_signal(UINT64_MAX, 1);
  assert_false(heddle__fence_reached(g, 1));
  assert_int_equal(heddle__fence_failed(g), HEDDLE_OK);
  assert_int_equal(heddle__fence_query(old, 1), HEDDLE_ECANCELED);
  heddle__fence_free(g);
}

static void a_failure_keeps_its_first_words(void **state) {
  (void)state;
  heddle__fence *f;
  heddle_error err;
  assert_int_equal(heddle__fence_create(NULL, &f, NULL), HEDDLE_OK);
  heddle_pfence h = heddle__fence_handle(f);
  heddle__fence_signal(h, 2);
  heddle__fence_fail(h, HEDDLE_EDEVICE, "the bus\ncaught fire");
  heddle__fence_fail(h, HEDDLE_EFAILED, "second");
  assert_int_equal(heddle__fence_query(h, 3), HEDDLE_EDEVICE);
  assert_int_equal(heddle__fence_query(h, 2), HEDDLE_OK); /* what was reached before stays so */
  assert_int_equal(heddle__fence_error(f, &err), HEDDLE_EDEVICE);
  assert_string_equal(err.text, "the bus caught fire");
  heddle__fence_reset(f);
  assert_int_equal(heddle__fence_failed(f), HEDDLE_OK);
  assert_true(heddle__fence_reached(f, 2));
  heddle__fence_free(f);
}

enum { ROUNDS = 2000 };

typedef struct pair {
  heddle__waker waker[2];
  heddle__fence *fence[2];
} pair;

/* Waits for fence i to reach value; false when it failed or a second passed. */
static bool await(pair *p, int i, uint64_t value) {
  uint64_t deadline = heddle__now_ns() + 5000000000u;
  for (;;) {
    unsigned seen = atomic_load(&p->waker[i].epoch);
    if (heddle__fence_reached(p->fence[i], value)) return true;
    if (heddle__fence_failed(p->fence[i]) != HEDDLE_OK) return false;
    if (!heddle__waker_wait(&p->waker[i], seen, deadline)) return false;
  }
}

static void *answer(void *arg) {
  pair *p = arg;
  for (uint64_t k = 1; k <= ROUNDS && await(p, 1, k); k++) heddle__fence_signal(heddle__fence_handle(p->fence[0]), k);
  return NULL;
}

static void setup(pair *p) {
  for (int i = 0; i < 2; i++) {
    assert_int_equal(heddle__waker_init(&p->waker[i], NULL), HEDDLE_OK);
    assert_int_equal(heddle__fence_create(&p->waker[i], &p->fence[i], NULL), HEDDLE_OK);
  }
}

static void teardown(pair *p) {
  for (int i = 0; i < 2; i++) {
    heddle__fence_free(p->fence[i]);
    heddle__waker_finish(&p->waker[i]);
  }
}

static void no_wake_up_is_lost(void **state) {
  (void)state;
  pair p;
  pthread_t thread;
  setup(&p);
  assert_int_equal(heddle__thread_start(&thread, answer, &p, "test", NULL), HEDDLE_OK);
  for (uint64_t k = 1; k <= ROUNDS; k++) {
    heddle__fence_signal(heddle__fence_handle(p.fence[1]), k);
    assert_true(await(&p, 0, k));
  }
  pthread_join(thread, NULL);
  teardown(&p);
}

static void *fail_it(void *arg) {
  pair *p = arg;
  nanosleep(&(struct timespec){0, 20000000}, NULL);
  heddle__fence_fail(heddle__fence_handle(p->fence[0]), HEDDLE_EFAILED, "no luck");
  return NULL;
}

static void a_failure_wakes_the_waiter(void **state) {
  (void)state;
  pair p;
  pthread_t thread;
  setup(&p);
  assert_int_equal(heddle__thread_start(&thread, fail_it, &p, "test", NULL), HEDDLE_OK);
  assert_false(await(&p, 0, 1));
  assert_int_equal(heddle__fence_failed(p.fence[0]), HEDDLE_EFAILED);
  pthread_join(thread, NULL);
  teardown(&p);
}

static void a_deadline_passes(void **state) {
  (void)state;
  heddle__waker w;
  assert_int_equal(heddle__waker_init(&w, NULL), HEDDLE_OK);
  uint64_t t0 = heddle__now_ns();
  assert_false(heddle__waker_wait(&w, 0, t0 + 10000000));
  assert_true(heddle__now_ns() - t0 >= 10000000);
  heddle__waker_wake(&w);
  assert_true(heddle__waker_wait(&w, 0, 0));
  heddle__waker_finish(&w);
}

static atomic_bool storming;

static void *storm(void *arg) {
  heddle_pfence *handles = arg;
  while (atomic_load(&storming))
    for (int i = 0; i < 64; i++) heddle__fence_signal(__atomic_load_n(&handles[i], __ATOMIC_RELAXED), UINT64_MAX);
  return NULL;
}

/* A stale handle is signalled all the while that its slot is freed and taken again: no new fence may see it. */
static void reuse_under_fire(void **state) {
  (void)state;
  static heddle_pfence stale[64];
  pthread_t thread;
  atomic_store(&storming, true);
  assert_int_equal(heddle__thread_start(&thread, storm, stale, "test", NULL), HEDDLE_OK);
  for (int k = 0; k < 3000; k++) {
    heddle__waker w;
    heddle__fence *f;
    assert_int_equal(heddle__waker_init(&w, NULL), HEDDLE_OK);
    assert_int_equal(heddle__fence_create(&w, &f, NULL), HEDDLE_OK);
    heddle_pfence h = heddle__fence_handle(f);
    assert_false(heddle__fence_reached(f, 1));
    heddle__fence_free(f);
    heddle__waker_finish(&w);
    __atomic_store_n(&stale[k % 64], h, __ATOMIC_RELAXED);
  }
  atomic_store(&storming, false);
  pthread_join(thread, NULL);
}

CASES(CASE(a_signal_raises_the_value), CASE(a_late_signal_is_ignored), CASE(a_failure_keeps_its_first_words),
      CASE(no_wake_up_is_lost), CASE(a_failure_wakes_the_waiter), CASE(a_deadline_passes), CASE(reuse_under_fire))
