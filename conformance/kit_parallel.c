/* conformance/kit_parallel.c: host.run_parallel, on threads that are made for each call: a gang of them at a time, and a
 * call from inside a task has one. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "conformance/kit_side.h"

enum { FEWEST = 2, MOST = 4 };

uint32_t kit_parallelism(void) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return cores < FEWEST ? FEWEST : cores > MOST ? MOST : (uint32_t)cores;
}

typedef struct gang {
  pthread_mutex_t lock;
  pthread_cond_t ready;
  bool started;
  heddle_task_fn task;
  void *arg;
  uint32_t n;
  atomic_uint next;
  bool concurrent; /* a thread takes one task, and all have begun before one ends */
} gang;

static _Thread_local bool inside;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void take_tasks(gang *g) {
  inside = true;
  for (uint32_t i; (i = atomic_fetch_add(&g->next, 1)) < g->n;) {
    g->task(g->arg, i, g->n);
    if (g->concurrent) break;
  }
  inside = false;
}

static void *member(void *arg) {
  gang *g = arg;
  pthread_mutex_lock(&g->lock);
  while (!g->started) pthread_cond_wait(&g->ready, &g->lock);
  pthread_mutex_unlock(&g->lock);
  take_tasks(g);
  return NULL;
}

static void run(uint32_t n, bool concurrent, heddle_task_fn task, void *arg, uint32_t *granted) {
  gang g = {.task = task, .arg = arg, .n = n, .concurrent = concurrent};
  pthread_t threads[MOST];
  uint32_t made = 0, wanted = kit_parallelism() - 1;
  if (wanted > n - 1) wanted = n - 1;
  pthread_mutex_init(&g.lock, NULL);
  pthread_cond_init(&g.ready, NULL);
  while (made < wanted && pthread_create(&threads[made], NULL, member, &g) == 0) made++;
  pthread_mutex_lock(&g.lock);
  if (concurrent) g.n = made + 1;
  if (granted != NULL) *granted = g.n;
  g.started = true;
  pthread_cond_broadcast(&g.ready);
  pthread_mutex_unlock(&g.lock);
  take_tasks(&g);
  for (uint32_t i = 0; i < made; i++) pthread_join(threads[i], NULL);
  pthread_cond_destroy(&g.ready);
  pthread_mutex_destroy(&g.lock);
}

void kit_run_parallel(uint32_t n, uint32_t flags, heddle_task_fn task, void *arg, uint32_t *granted) {
  bool concurrent = (flags & HEDDLE_PARALLEL_CONCURRENT) != 0;
  if (n == 0 || n == 1 || inside) {
    if (concurrent && n > 1) n = 1;
    if (granted != NULL) *granted = n;
    for (uint32_t i = 0; i < n; i++) task(arg, i, n);
    return;
  }
  pthread_mutex_lock(&one_at_a_time);
  run(n, concurrent, task, arg, granted);
  pthread_mutex_unlock(&one_at_a_time);
}
