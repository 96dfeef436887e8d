/* A thread of its own, which nobody waits for, signals the fences.
 * caught by: health/close-quiet
 * and by: fences/% leaks/% threads/% process/% health/% events/%
 * says: host.fence_signal was called after close_instance */
#include "base.h"

#include <signal.h>
#include <stdlib.h>

typedef struct late {
  const heddle_host *host;
  heddle_pfence fence;
  uint64_t value;
} late;

static void *tell(void *arg) {
  const late one = *(late *)arg;
  free(arg);
  base_sleep_ms(30);
  one.host->fence_signal(one.host->ctx, one.fence, one.value);
  return NULL;
}

static bool start(const late *one) {
  pthread_t thread;
  sigset_t all, before;
  late *copy = malloc(sizeof *copy);
  if (copy == NULL) return false;
  *copy = *one;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool started = pthread_create(&thread, NULL, tell, copy) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (started) pthread_detach(thread);
  else free(copy);
  return started;
}

static heddle_status run(heddle_pstream *stream, base_task *task, heddle_error *err) {
  const late one = {stream->dev->host, task->fence, task->value};
  if (base_failed(stream, NULL) != HEDDLE_OK || !start(&one)) return base_run_signal(stream, task, err);
  return HEDDLE_OK;
}

static heddle_status signal_later(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  return base_push_signal(stream, run, fence, value, err);
}

#define base_fence_signal signal_later
#include "tables.h"
