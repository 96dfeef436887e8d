/* core/thread.c: starts threads that block all signals; the monotonic clock; how many cores there are.
 * What the threads do lives with their owners. */
#define _GNU_SOURCE /* sched_getaffinity */
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "core/context.h"
#include "core/error.h"
#include "core/thread.h"

heddle_status heddle__thread_start(pthread_t *out, void *(*run)(void *), void *arg, const char *what,
                                   heddle_error *err) {
  sigset_t all, before;
  sigfillset(&all);
  /* The new thread inherits the mask; the caller's is put back at once. */
  int code = pthread_sigmask(SIG_SETMASK, &all, &before);
  if (code == 0) {
    code = pthread_create(out, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
  }
  if (code != 0) return heddle__fail(err, HEDDLE_ENOMEM, "%s: no thread could be started (errno %d)", what, code);
  return HEDDLE_OK;
}

heddle_status heddle__cond_init(pthread_mutex_t *lock, pthread_cond_t *cond, heddle_error *err) {
  pthread_condattr_t attr;
  if (pthread_condattr_init(&attr) != 0) return heddle__no_memory(err, "a condition");
  int code = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  if (code == 0) code = pthread_cond_init(cond, &attr);
  pthread_condattr_destroy(&attr);
  if (code != 0) return heddle__no_memory(err, "a condition");
  if (pthread_mutex_init(lock, NULL) != 0) {
    pthread_cond_destroy(cond);
    return heddle__no_memory(err, "a lock");
  }
  return HEDDLE_OK;
}

uint64_t heddle__now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint32_t heddle__cores(void) {
  cpu_set_t cores;
  const int n = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
  return n < 1 ? 1 : (uint32_t)n;
}

bool heddle__cond_sleep(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns) {
  if (until_ns == UINT64_MAX) {
    pthread_cond_wait(cond, lock);
    return true;
  }
  if (heddle__now_ns() >= until_ns) return false;
  const struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
  return pthread_cond_timedwait(cond, lock, &until) == 0 || heddle__now_ns() < until_ns;
}
