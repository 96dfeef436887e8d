/* core/thread.h: how Heddle starts its threads, and the conditions they sleep on.
 * Every thread of Heddle blocks all signals, so that handlers run on the application's threads only. */
#ifndef HEDDLE_CORE_THREAD_H
#define HEDDLE_CORE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "heddle/status.h"

/* Starts a joinable thread. what is for the error's words. */
heddle_status heddle__thread_start(pthread_t *out, void *(*run)(void *), void *arg, const char *what,
                                   heddle_error *err);

/* A condition on the monotonic clock, and its lock; finish both with the pthread calls. */
heddle_status heddle__cond_init(pthread_mutex_t *lock, pthread_cond_t *cond, heddle_error *err);

/* Waits on a condition with its lock held, at most until until_ns of the monotonic clock, UINT64_MAX: without limit.
 * Returns false when that time has passed. */
bool heddle__cond_sleep(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns);

/* How many cores this process may use; at least 1. */
uint32_t heddle__cores(void);

#endif
