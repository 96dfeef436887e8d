/* core/pool.c: the thread pool behind heddle_host.run_parallel.
 * One job has the workers at a time. A plain job that finds them taken runs on its caller's thread alone; a gang, whose
 * tasks must all run at once, waits for its turn. A job is handed over with atomics while the workers look out for it,
 * as they do for a short time behind each job; the lock is only for those who sleep. Who looks out offers its core to
 * others every microsecond, so that it delays no thread that has work. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/context.h"
#include "core/error.h"
#include "core/thread.h"
#include "core/watch.h"

/* The state of the job, in one word: how many workers it still wants, how many it has, whether its owner sleeps until
 * they are done, and whether the pool ends. */
#define TICKET UINT64_C(1)
#define ACTIVE (UINT64_C(1) << 24)
#define OWNER_SLEEPS (UINT64_C(1) << 48)
#define STOP (UINT64_C(1) << 49)
#define TICKETS (ACTIVE - 1)
#define WORKERS ((OWNER_SLEEPS - 1) & ~TICKETS)

enum { LINE = 64, LOOKS = 32 }; /* bytes of a cache line; looks at the word between two at the clock */

/* Written by the job's owner before it opens the job, read by those that have a ticket. word, which idle workers read
 * all the time, and next have cache lines of their own. */
struct heddle__pool {
  pthread_mutex_t lock; /* a leaf: no task runs with it held */
  pthread_cond_t wake;  /* workers: tickets or stop */
  pthread_cond_t done;  /* the owner of the job: no ticket and no worker left */
  pthread_cond_t admit; /* gangs: the workers are free */
  uint64_t spin_ns;     /* how long a waiting thread spins before it sleeps */
  uint32_t threads;
  uint32_t started;           /* workers that run; changed by the owner of the job only */
  pid_t pid;                  /* of the process that started them */
  atomic_bool taken;          /* a thread owns the job */
  _Atomic(uint32_t) gangs;    /* that wait for it; plain jobs do not overtake them */
  _Atomic(uint32_t) sleepers; /* workers that wait for wake */
  heddle_task_fn task;
  void *arg;
  const heddle__watch *watch; /* of the owner: its tasks' too */
  uint32_t n;
  bool gang;
  char before_word[LINE];
  _Atomic(uint64_t) word;
  char before_next[LINE];
  _Atomic(uint32_t) next;
  char behind_next[LINE];
  pthread_t workers[];
};

/* Whether this thread runs a task of some pool: then a call is nested, and runs alone so that it cannot wait for the
 * threads that wait for it. */
static _Thread_local bool inside;

static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* ---------------------------------------------------------------- workers */

/* A ticket where there is one: the job stays open until leave. */
static bool enter(heddle__pool *pool) {
  uint64_t word = atomic_load(&pool->word);
  while ((word & TICKETS) != 0)
    if (atomic_compare_exchange_weak(&pool->word, &word, word - TICKET + ACTIVE)) return true;
  return false;
}

static void leave(heddle__pool *pool) {
  const uint64_t before = atomic_fetch_sub(&pool->word, ACTIVE);
  if ((before & OWNER_SLEEPS) == 0 || (before & (WORKERS | TICKETS)) != ACTIVE) return;
  pthread_mutex_lock(&pool->lock);
  pthread_cond_signal(&pool->done);
  pthread_mutex_unlock(&pool->lock);
}

static bool stops(heddle__pool *pool) {
  return (atomic_load(&pool->word) & STOP) != 0;
}

/* A ticket, waited for; false when the pool ends. A worker counts itself as a sleeper before it looks for the last
 * time, and an owner looks for sleepers when the job is open: one of the two sees the other. */
static bool await_ticket(heddle__pool *pool) {
  bool mine = enter(pool);
  if (!mine && pool->spin_ns > 0) {
    const uint64_t end = heddle__now_ns() + pool->spin_ns;
    do {
      for (int i = 0; i < LOOKS && !mine && !stops(pool); i++) {
        relax();
        mine = enter(pool);
      }
      if (!mine) sched_yield();
    } while (!mine && !stops(pool) && heddle__now_ns() < end);
  }
  if (mine) return true;
  pthread_mutex_lock(&pool->lock);
  atomic_fetch_add(&pool->sleepers, 1);
  while (!stops(pool) && !(mine = enter(pool))) pthread_cond_wait(&pool->wake, &pool->lock);
  atomic_fetch_sub(&pool->sleepers, 1);
  pthread_mutex_unlock(&pool->lock);
  return mine;
}

static void work(heddle__pool *pool, heddle_task_fn task, void *arg, uint32_t n, bool gang) {
  inside = true;
  for (;;) {
    uint32_t i = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
    if (i >= n) break;
    task(arg, i, n);
    if (gang) break; /* one task a thread */
  }
  inside = false;
}

static void *worker(void *arg) {
  heddle__pool *pool = arg;
  while (await_ticket(pool)) {
    heddle__watch_adopt(pool->watch);
    work(pool, pool->task, pool->arg, pool->n, pool->gang);
    heddle__watch_adopt(NULL);
    leave(pool);
  }
  return NULL;
}

/* ---------------------------------------------------------------- the pool */

heddle_status heddle__pool_create(uint32_t threads, uint64_t spin_ns, heddle__pool **out, heddle_error *err) {
  if (threads == 0) threads = 1;
  uint64_t bytes = sizeof(heddle__pool) + (uint64_t)(threads - 1) * sizeof(pthread_t);
  heddle__pool *pool = heddle__alloc(1, (size_t)bytes);
  if (pool == NULL) return heddle__no_memory(err, "the thread pool");
  heddle_status s = heddle__cond_init(&pool->lock, &pool->wake, err);
  if (s != HEDDLE_OK) {
    heddle__free(pool);
    return s;
  }
  if (pthread_cond_init(&pool->done, NULL) != 0 || pthread_cond_init(&pool->admit, NULL) != 0) {
    heddle__free(pool);
    return heddle__no_memory(err, "the thread pool");
  }
  pool->threads = threads;
  pool->spin_ns = spin_ns;
  pool->pid = getpid();
  *out = pool;
  return HEDDLE_OK;
}

void heddle__pool_release(heddle__pool *pool) {
  if (pool == NULL) return;
  if (pool->pid == getpid()) { /* after a fork there are no workers here, and the lock may stay taken */
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_or(&pool->word, STOP);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (uint32_t i = 0; i < pool->started; i++) pthread_join(pool->workers[i], NULL);
    pthread_cond_destroy(&pool->admit);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
  }
  heddle__free(pool);
}

uint32_t heddle__pool_threads(const heddle__pool *pool) {
  return pool->threads;
}

/* ---------------------------------------------------------------- jobs */

static bool try_take(heddle__pool *pool) {
  bool free = false;
  return atomic_compare_exchange_strong(&pool->taken, &free, true);
}

/* Takes the workers: a gang waits for them, a plain job does not. */
static bool take(heddle__pool *pool, bool gang) {
  if (!gang) return atomic_load(&pool->gangs) == 0 && try_take(pool);
  pthread_mutex_lock(&pool->lock);
  atomic_fetch_add(&pool->gangs, 1);
  while (!try_take(pool)) pthread_cond_wait(&pool->admit, &pool->lock);
  atomic_fetch_sub(&pool->gangs, 1);
  pthread_mutex_unlock(&pool->lock);
  return true;
}

static void give(heddle__pool *pool) {
  atomic_store(&pool->taken, false);
  if (atomic_load(&pool->gangs) == 0) return;
  pthread_mutex_lock(&pool->lock);
  pthread_cond_signal(&pool->admit);
  pthread_mutex_unlock(&pool->lock);
}

static void start_workers(heddle__pool *pool, uint32_t wanted) {
  while (pool->started < wanted &&
         heddle__thread_start(&pool->workers[pool->started], worker, pool, "the thread pool", NULL) == HEDDLE_OK)
    pool->started++;
}

static void open_job(heddle__pool *pool, uint32_t helpers) {
  atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
  atomic_store(&pool->word, helpers * TICKET);
  if (atomic_load(&pool->sleepers) == 0) return;
  pthread_mutex_lock(&pool->lock); /* who counts as a sleeper and holds it has not begun to sleep */
  pthread_mutex_unlock(&pool->lock);
  if (helpers == pool->started) pthread_cond_broadcast(&pool->wake);
  else
    for (uint32_t i = 0; i < helpers; i++) pthread_cond_signal(&pool->wake);
}

static bool is_busy(heddle__pool *pool) {
  return (atomic_load(&pool->word) & (TICKETS | WORKERS)) != 0;
}

/* Waits for the workers. It looks out for no longer than the owner itself has worked: a worker that needs more is held
 * up by something else, and may need this core. */
static void close_job(heddle__pool *pool, bool gang, uint64_t began) {
  if (!gang) atomic_fetch_and(&pool->word, ~TICKETS); /* a worker that has not come by now is not needed */
  if (is_busy(pool) && pool->spin_ns > 0) {
    const uint64_t now = heddle__now_ns(), mine = now - began;
    const uint64_t end = now + (mine < pool->spin_ns ? mine : pool->spin_ns);
    do {
      for (int i = 0; i < LOOKS && is_busy(pool); i++) relax();
      if (is_busy(pool)) sched_yield();
    } while (is_busy(pool) && heddle__now_ns() < end);
  }
  if (!is_busy(pool)) return;
  pthread_mutex_lock(&pool->lock);
  atomic_fetch_or(&pool->word, OWNER_SLEEPS);
  while (is_busy(pool)) pthread_cond_wait(&pool->done, &pool->lock);
  atomic_fetch_and(&pool->word, ~OWNER_SLEEPS);
  pthread_mutex_unlock(&pool->lock);
}

void heddle__pool_run(heddle__pool *pool, uint32_t n, uint32_t flags, heddle_task_fn task, void *arg,
                      uint32_t *granted) {
  bool gang = (flags & HEDDLE_PARALLEL_CONCURRENT) != 0;
  if (n > 1 && (inside || (gang && pool->threads == 1))) n = 1;
  if (granted != NULL) *granted = n;
  if (n <= 1 || pool->threads == 1 || !take(pool, gang)) {
    bool before = inside;
    inside = true;
    for (uint32_t i = 0; i < n; i++) task(arg, i, n);
    inside = before;
    return;
  }
  uint32_t helpers = n - 1 < pool->threads - 1 ? n - 1 : pool->threads - 1;
  start_workers(pool, helpers);
  if (helpers > pool->started) helpers = pool->started;
  if (gang) {
    n = helpers + 1;
    if (granted != NULL) *granted = n;
  }
  const uint64_t began = pool->spin_ns > 0 ? heddle__now_ns() : 0;
  pool->task = task;
  pool->arg = arg;
  pool->watch = heddle__watch_now();
  pool->n = n;
  pool->gang = gang;
  open_job(pool, helpers);
  work(pool, task, arg, n, gang);
  close_job(pool, gang, began);
  give(pool);
}
