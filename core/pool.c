/* core/pool.c: the thread pool behind heddle_host.run_parallel.
 * One job has the workers at a time. A plain job that finds them taken runs on its caller's thread alone; a gang, whose
 * tasks must all run at once, waits for its turn. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/pool.h"
#include "core/thread.h"

struct heddle__pool {
  pthread_mutex_t lock; /* guards all below but next; a leaf: no task runs with it held */
  pthread_cond_t wake;  /* workers: tickets or stop */
  pthread_cond_t done;  /* the owner of the job: no ticket and no worker left */
  pthread_cond_t admit; /* gangs: the workers are free */
  uint32_t threads;
  uint32_t started; /* workers that run; changed by the owner of the job only */
  pid_t pid;        /* of the process that started them */
  bool taken;       /* somebody owns the job */
  uint32_t gangs;   /* that wait for it; plain jobs do not overtake them */
  bool stop;
  uint32_t tickets; /* workers that the job still wants */
  uint32_t active;  /* workers that have one */
  heddle_task_fn task;
  void *arg;
  uint32_t n;
  bool gang;
  _Atomic(uint32_t) next;
  pthread_t workers[];
};

/* Whether this thread runs a task of some pool: then a call is nested, and runs alone so that it cannot wait for the
 * threads that wait for it. */
static _Thread_local bool inside;

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
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    while (pool->tickets == 0 && !pool->stop) pthread_cond_wait(&pool->wake, &pool->lock);
    if (pool->stop) break;
    pool->tickets--;
    pool->active++;
    heddle_task_fn task = pool->task;
    void *task_arg = pool->arg;
    uint32_t n = pool->n;
    bool gang = pool->gang;
    pthread_mutex_unlock(&pool->lock);
    work(pool, task, task_arg, n, gang);
    pthread_mutex_lock(&pool->lock);
    pool->active--;
    if (pool->active == 0 && pool->tickets == 0) pthread_cond_signal(&pool->done);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

heddle_status heddle__pool_create(uint32_t threads, heddle__pool **out, heddle_error *err) {
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
  pool->pid = getpid();
  *out = pool;
  return HEDDLE_OK;
}

void heddle__pool_release(heddle__pool *pool) {
  if (pool == NULL) return;
  if (pool->pid == getpid()) { /* after a fork the workers are not in this process, and the lock may be held for ever */
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
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

/* Takes the workers: a gang waits for them, a plain job does not. */
static bool take(heddle__pool *pool, bool gang) {
  pthread_mutex_lock(&pool->lock);
  pool->gangs += gang;
  while (gang && pool->taken) pthread_cond_wait(&pool->admit, &pool->lock);
  pool->gangs -= gang;
  bool mine = !pool->taken && (gang || pool->gangs == 0);
  if (mine) pool->taken = true;
  pthread_mutex_unlock(&pool->lock);
  return mine;
}

static void start_workers(heddle__pool *pool, uint32_t wanted) {
  while (pool->started < wanted &&
         heddle__thread_start(&pool->workers[pool->started], worker, pool, "the thread pool", NULL) == HEDDLE_OK)
    pool->started++;
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

  pthread_mutex_lock(&pool->lock);
  pool->task = task;
  pool->arg = arg;
  pool->n = n;
  pool->gang = gang;
  pool->tickets = helpers;
  atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
  pthread_mutex_unlock(&pool->lock);
  if (helpers == pool->started) pthread_cond_broadcast(&pool->wake);
  else
    for (uint32_t i = 0; i < helpers; i++) pthread_cond_signal(&pool->wake);
  work(pool, task, arg, n, gang);

  pthread_mutex_lock(&pool->lock);
  if (!gang) pool->tickets = 0; /* whoever has not come by now is not needed */
  while (pool->tickets > 0 || pool->active > 0) pthread_cond_wait(&pool->done, &pool->lock);
  pool->taken = false;
  pthread_cond_signal(&pool->admit);
  pthread_mutex_unlock(&pool->lock);
}
