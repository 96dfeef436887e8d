/* core/fence.h: the host's fences: 64-bit timelines that can fail, in a slab that is never unmapped.
 * A fence wakes at most one waker. A signal to a fence that was freed is ignored, however late it comes. */
#ifndef HEDDLE_CORE_FENCE_H
#define HEDDLE_CORE_FENCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "heddle/status.h"

/* What a driving thread sleeps on. epoch grows with each wake. */
typedef struct heddle__waker {
  pthread_mutex_t lock; /* guards nothing but the sleep; a leaf */
  pthread_cond_t cond;  /* CLOCK_MONOTONIC */
  atomic_uint epoch;
  atomic_uint sleepers;
} heddle__waker;

heddle_status heddle__waker_init(heddle__waker *w, heddle_error *err);
void heddle__waker_finish(heddle__waker *w);
void heddle__waker_wake(heddle__waker *w);
/* Sleeps until epoch differs from seen or until the monotonic time deadline_ns; false on the latter. Pattern: read
 * epoch, look at the fences, wait with the epoch that was read. */
bool heddle__waker_wait(heddle__waker *w, unsigned seen, uint64_t deadline_ns);

/* One slot of the slab. value and failed may be read by any owner of the fence. */
typedef struct heddle__fence {
  atomic_ullong value;
  atomic_int failed; /* a heddle_status once failed, with error filled before */
  atomic_uint generation;
  pthread_mutex_t lock; /* guards waker, error and the change of generation; waker_wake is called under it */
  heddle__waker *waker;
  heddle_error error;
  uint32_t slot;
  uint32_t next_free;
} heddle__fence;

/* Takes a slot; value 0. waker may be NULL and is not owned. free makes the handle stale. Thread-safe. */
heddle_status heddle__fence_create(heddle__waker *waker, heddle__fence **out, heddle_error *err);
void heddle__fence_free(heddle__fence *f); /* takes NULL */
heddle_pfence heddle__fence_handle(const heddle__fence *f);

/* By handle, as the host table has them. Any thread. */
void heddle__fence_signal(heddle_pfence fence, uint64_t value);
void heddle__fence_fail(heddle_pfence fence, heddle_status status, const char *text);
heddle_status heddle__fence_query(heddle_pfence fence, uint64_t value);

/* One atomic load each (acquire): whether value has been reached; whether it has failed. */
static inline bool heddle__fence_reached(heddle__fence *f, uint64_t value) {
  return atomic_load_explicit(&f->value, memory_order_acquire) >= value;
}
static inline heddle_status heddle__fence_failed(heddle__fence *f) {
  return atomic_load_explicit(&f->failed, memory_order_acquire);
}
/* Copies the words of a failed fence. */
heddle_status heddle__fence_error(heddle__fence *f, heddle_error *err);

/* Clears a failure, keeping value: only while nothing can signal it. */
void heddle__fence_reset(heddle__fence *f);

#endif
