/* modules/tvm/parallel.c: parallel loops of compiled code: a gang on the core's pool whose tasks all run at once, so
 * that a barrier among them holds. Nested loops, and loops where the pool has one thread, are one task on this thread;
 * code divides its work by the number of tasks that it is given. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "modules/tvm/thread.h"

typedef struct gang {
  heddle__lambda lambda;
  void *data;
  heddle__pool *pool;
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t turn;
  int arrived;
  unsigned round;
  int failed; /* task that failed first, or -1; then its thread's failure follows */
  heddle_status status;
  int32_t api_code;
  heddle_error about;
  char words[sizeof((heddle__tvm_thread *)NULL)->error];
} gang;

static void run_task(void *arg, uint32_t i, uint32_t n) {
  gang *g = arg;
  heddle__tvm_thread *self = heddle__tvm_self();
  heddle__pool *before = self->pool;
  heddle__group group = {g, (int32_t)n};
  const void *mark = heddle__tvm_scratch_mark(self);
  self->pool = g->pool;
  int rc = g->lambda((int)i, &group, g->data);
  self->pool = before;
  if (rc == 0) return;
  heddle__tvm_scratch_back(self, mark);
  pthread_mutex_lock(&g->lock);
  if (g->failed < 0) {
    g->failed = (int)i;
    g->status = self->status;
    g->api_code = self->api_code;
    g->about = self->about;
    memcpy(g->words, self->error, sizeof g->words);
    pthread_cond_broadcast(&g->turn); /* no task waits for it at a barrier */
  }
  pthread_mutex_unlock(&g->lock);
  self->error[0] = '\0';
  self->status = HEDDLE_OK;
}

int heddle__tvm_parallel_launch(heddle__lambda lambda, void *data, int num_task) {
  heddle__tvm_thread *self = heddle__tvm_self();
  const heddle__tvm_host *host = heddle__tvm_host_table();
  gang g; /* not zeroed: it has two kilobytes */
  g.lambda = lambda;
  g.data = data;
  g.pool = self->pool;
  g.arrived = 0;
  g.round = 0;
  g.failed = -1;
  uint32_t threads = g.pool != NULL ? host->pool_threads(g.pool) : 1;
  uint32_t n = num_task > 0 && (uint32_t)num_task < threads ? (uint32_t)num_task : threads;
  if (pthread_mutex_init(&g.lock, NULL) != 0 || pthread_cond_init(&g.turn, NULL) != 0) {
    heddle__tvm_say(NULL, "out of memory: a parallel loop");
    return -1;
  }
  if (n <= 1) run_task(&g, 0, 1);
  else host->pool_run(g.pool, n, HEDDLE_PARALLEL_CONCURRENT, run_task, &g, NULL);
  pthread_cond_destroy(&g.turn);
  pthread_mutex_destroy(&g.lock);
  if (g.failed < 0) return 0;
  snprintf(self->error, sizeof self->error, "task %d of a parallel loop: %.880s", g.failed, g.words);
  self->status = g.status;
  self->api_code = g.api_code;
  self->about = g.about;
  return -1;
}

int heddle__tvm_parallel_barrier(int task, heddle__group *group) {
  gang *g = group->sync;
  (void)task;
  pthread_mutex_lock(&g->lock);
  unsigned round = g->round;
  if (++g->arrived == group->num_task) {
    g->arrived = 0;
    g->round++;
    pthread_cond_broadcast(&g->turn);
  }
  while (g->round == round && g->failed < 0) pthread_cond_wait(&g->turn, &g->lock);
  bool broken = g->round == round;
  pthread_mutex_unlock(&g->lock);
  if (!broken) return 0;
  heddle__tvm_say(NULL, "another task failed before the barrier");
  return -1;
}
