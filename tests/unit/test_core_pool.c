/* The thread pool: every task once, gangs that are really concurrent, nesting, several callers, workers that look out
 * for work and such that sleep.
 * labels: threads */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "cases.h"
#include "core/context.h"
#include "core/thread.h"

enum { SPIN_NS = 50000 };

typedef struct job {
  atomic_uint ran[64];
  atomic_uint arrived;
  atomic_uint nested_n;
  atomic_uint signals_open;
  heddle__pool *pool;
} job;

static void mark(void *arg, uint32_t i, uint32_t n) {
  job *j = arg;
  if (i < n) atomic_fetch_add(&j->ran[i], 1);
}

static void every_task_runs_once(void **state) {
  (void)state;
  heddle__pool *pool;
  assert_int_equal(heddle__pool_create(4, SPIN_NS, &pool, NULL), HEDDLE_OK);
  for (uint32_t n = 0; n <= 64; n++) {
    job j = {.pool = pool};
    uint32_t granted = 99;
    heddle__pool_run(pool, n, 0, mark, &j, &granted);
    assert_int_equal(granted, n);
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(atomic_load(&j.ran[i]), i < n ? 1 : 0);
  }
  heddle__pool_release(pool);
}

/* Returns only when all n are here: it would hang if they did not run at the same time. */
static void meet(void *arg, uint32_t i, uint32_t n) {
  job *j = arg;
  atomic_fetch_add(&j->ran[i], 1);
  atomic_fetch_add(&j->arrived, 1);
  while (atomic_load(&j->arrived) < n) sched_yield();
}

static void *gangs_of(heddle__pool *pool, uint32_t most) {
  for (int k = 0; k < 100; k++) {
    job j = {.pool = pool};
    uint32_t granted = 0;
    heddle__pool_run(pool, 16, HEDDLE_PARALLEL_CONCURRENT, meet, &j, &granted);
    if (granted != most || atomic_load(&j.arrived) != most) return pool;
    job plain = {.pool = pool};
    heddle__pool_run(pool, 16, 0, mark, &plain, NULL);
    for (int i = 0; i < 16; i++)
      if (atomic_load(&plain.ran[i]) != 1) return pool;
  }
  return NULL;
}

static void *gangs(void *pool) {
  return gangs_of(pool, 4);
}

static void *gangs_of_three(void *pool) {
  return gangs_of(pool, 3);
}

static void gangs_of_two_callers_do_not_mix(void **state) {
  (void)state;
  heddle__pool *pool;
  pthread_t other;
  void *bad;
  assert_int_equal(heddle__pool_create(4, SPIN_NS, &pool, NULL), HEDDLE_OK);
  assert_int_equal(heddle__thread_start(&other, gangs, pool, "test", NULL), HEDDLE_OK);
  assert_null(gangs(pool));
  pthread_join(other, &bad);
  assert_null(bad);
  heddle__pool_release(pool);
}

static void nest(void *arg, uint32_t i, uint32_t n) {
  job *j = arg;
  uint32_t granted = 0;
  job inner = {.pool = j->pool};
  (void)i;
  (void)n;
  heddle__pool_run(j->pool, 8, HEDDLE_PARALLEL_CONCURRENT, meet, &inner, &granted);
  atomic_fetch_add(&j->nested_n, granted);
  heddle__pool_run(j->pool, 8, 0, mark, &inner, &granted);
  atomic_fetch_add(&j->nested_n, granted);
}

static void a_nested_call_runs_alone(void **state) {
  (void)state;
  heddle__pool *pool;
  assert_int_equal(heddle__pool_create(3, SPIN_NS, &pool, NULL), HEDDLE_OK);
  job j = {.pool = pool};
  heddle__pool_run(pool, 10, 0, nest, &j, NULL);
  assert_int_equal(atomic_load(&j.nested_n), 20);
  heddle__pool_release(pool);
}

static void one_thread_is_enough(void **state) {
  (void)state;
  heddle__pool *pool;
  assert_int_equal(heddle__pool_create(1, SPIN_NS, &pool, NULL), HEDDLE_OK);
  job j = {.pool = pool};
  uint32_t granted = 0;
  heddle__pool_run(pool, 8, HEDDLE_PARALLEL_CONCURRENT, meet, &j, &granted);
  assert_int_equal(granted, 1);
  heddle__pool_run(pool, 8, 0, mark, &j, &granted);
  assert_int_equal(granted, 8);
  assert_int_equal(heddle__pool_threads(pool), 1);
  heddle__pool_release(pool);
}

static void look_at_mask(void *arg, uint32_t i, uint32_t n) {
  job *j = arg;
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  if (i != 0 && sigismember(&mask, SIGINT) == 0) atomic_fetch_add(&j->signals_open, 1);
  meet(arg, i, n);
}

static void workers_block_signals(void **state) {
  (void)state;
  heddle__pool *pool;
  sigset_t mask;
  assert_int_equal(heddle__pool_create(2, SPIN_NS, &pool, NULL), HEDDLE_OK);
  job j = {.pool = pool};
  heddle__pool_run(pool, 2, HEDDLE_PARALLEL_CONCURRENT, look_at_mask, &j, NULL);
  /* One of the two ran here, with signals open; index 0 or 1. */
  assert_true(atomic_load(&j.signals_open) <= 1);
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  assert_int_equal(sigismember(&mask, SIGINT), 0);
  heddle__pool_release(pool);
}

/* Jobs with pauses between them that are shorter, about as long and longer than workers look out; 0: they never do. */
static void workers_are_found_awake_and_asleep(void **state) {
  static const uint64_t spins[] = {0, 20000, 1000000};
  (void)state;
  for (size_t s = 0; s < sizeof spins / sizeof spins[0]; s++) {
    heddle__pool *pool;
    assert_int_equal(heddle__pool_create(3, spins[s], &pool, NULL), HEDDLE_OK);
    for (long k = 0; k < 300; k++) {
      const struct timespec pause = {0, k % 5 * 10000};
      job j = {.pool = pool};
      uint32_t granted = 0;
      heddle__pool_run(pool, 7, 0, mark, &j, NULL);
      for (int i = 0; i < 7; i++) assert_int_equal(atomic_load(&j.ran[i]), 1);
      if (k % 5 > 0) nanosleep(&pause, NULL);
      job g = {.pool = pool};
      heddle__pool_run(pool, 3, HEDDLE_PARALLEL_CONCURRENT, meet, &g, &granted);
      assert_int_equal(granted, 3);
      assert_int_equal(atomic_load(&g.arrived), 3);
    }
    heddle__pool_release(pool);
  }
}

/* The last task takes longer than its caller looks out for it. */
static void linger(void *arg, uint32_t i, uint32_t n) {
  const struct timespec pause = {0, 3000000};
  meet(arg, i, n);
  if (i == 1) nanosleep(&pause, NULL);
  mark(arg, i + 2, n + 2);
}

static void a_caller_sleeps_for_a_late_worker(void **state) {
  (void)state;
  heddle__pool *pool;
  assert_int_equal(heddle__pool_create(2, SPIN_NS, &pool, NULL), HEDDLE_OK);
  for (int k = 0; k < 10; k++) {
    job j = {.pool = pool};
    heddle__pool_run(pool, 2, HEDDLE_PARALLEL_CONCURRENT, linger, &j, NULL);
    assert_int_equal(atomic_load(&j.ran[2]) + atomic_load(&j.ran[3]), 2);
  }
  heddle__pool_release(pool);
}

static void a_pool_ends_while_workers_look_out(void **state) {
  (void)state;
  for (int k = 0; k < 50; k++) {
    heddle__pool *pool;
    job j = {.pool = NULL};
    assert_int_equal(heddle__pool_create(3, UINT64_C(1000000000), &pool, NULL), HEDDLE_OK);
    heddle__pool_run(pool, 3, HEDDLE_PARALLEL_CONCURRENT, meet, &j, NULL);
    const uint64_t before = heddle__now_ns();
    heddle__pool_release(pool);
    assert_true(heddle__now_ns() - before < UINT64_C(900000000));
  }
}

/* Plain jobs of another thread: a thread that finds the workers taken does its tasks alone. */
static void *plain_jobs(void *arg) {
  heddle__pool *pool = arg;
  for (int k = 0; k < 500; k++) {
    job j = {.pool = pool};
    heddle__pool_run(pool, 5, 0, mark, &j, NULL);
    for (int i = 0; i < 5; i++)
      if (atomic_load(&j.ran[i]) != 1) return arg;
  }
  return NULL;
}

static void plain_jobs_of_three_callers(void **state) {
  (void)state;
  heddle__pool *pool;
  pthread_t others[2];
  void *bad;
  assert_int_equal(heddle__pool_create(3, SPIN_NS, &pool, NULL), HEDDLE_OK);
  assert_int_equal(heddle__thread_start(&others[0], plain_jobs, pool, "test", NULL), HEDDLE_OK);
  assert_int_equal(heddle__thread_start(&others[1], gangs_of_three, pool, "test", NULL), HEDDLE_OK);
  assert_null(plain_jobs(pool));
  for (int i = 0; i < 2; i++) {
    pthread_join(others[i], &bad);
    assert_null(bad);
  }
  heddle__pool_release(pool);
}

static uint64_t cpu_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void idle_workers_sleep(void **state) {
  (void)state;
  const struct timespec pause = {0, 200000000};
  heddle__pool *pool;
  job j = {.pool = NULL};
  assert_int_equal(heddle__pool_create(4, SPIN_NS, &pool, NULL), HEDDLE_OK);
  heddle__pool_run(pool, 4, HEDDLE_PARALLEL_CONCURRENT, meet, &j, NULL);
  const uint64_t before = cpu_ns();
  nanosleep(&pause, NULL);
  assert_true(cpu_ns() - before < 20000000);
  heddle__pool_release(pool);
}

CASES(CASE(every_task_runs_once), CASE(gangs_of_two_callers_do_not_mix), CASE(a_nested_call_runs_alone),
      CASE(one_thread_is_enough), CASE(workers_block_signals), CASE(workers_are_found_awake_and_asleep),
      CASE(a_caller_sleeps_for_a_late_worker), CASE(a_pool_ends_while_workers_look_out),
      CASE(plain_jobs_of_three_callers), CASE(idle_workers_sleep))
