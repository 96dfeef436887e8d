/* core/watch.h: what limits the work that a thread does now: a deadline and a cancellation, for code that has neither in
 * its arguments. Who drives a run, or plans, enters a watch; kernels and passes ask. Watches nest: an inner one adds to
 * the outer ones and lifts nothing. The tasks of a thread pool's job are under the watches of the job's owner. */
#ifndef HEDDLE_CORE_WATCH_H
#define HEDDLE_CORE_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>

#include "heddle/executor.h"

typedef struct heddle__watch {
  const struct heddle__watch *outer;
  uint64_t deadline_ns;         /* HEDDLE_FOREVER: none */
  const atomic_uint *attention; /* NULL, or not 0 where cancelled is to be asked */
  bool (*cancelled)(void *user);
  void *user;
} heddle__watch;

/* The watch, on the caller's stack, is the thread's until leave, which is on the same thread and in reverse order. */
void heddle__watch_enter(heddle__watch *w);
void heddle__watch_leave(const heddle__watch *w);

/* HEDDLE_ECANCELED or HEDDLE_ETIMEOUT where the work of this thread is to end early, and from then on while the watch
 * lasts; else HEDDLE_OK. Costs a look at the clock. */
heddle_status heddle__watch_asks(void);

/* The same with an error whose text begins with what ("planning"). */
heddle_status heddle__watch_check(const char *what, heddle_error *err);

/* For a pool: the thread's watches, and another thread's in their place; gives what they were. */
const heddle__watch *heddle__watch_now(void);
const heddle__watch *heddle__watch_adopt(const heddle__watch *w);

#endif
