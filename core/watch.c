/* core/watch.c: a thread's list of watches. The list lies on stacks; only its head is the thread's. */
#include "core/watch.h"

#include <stddef.h>

#include "core/context.h"
#include "core/error.h"

static _Thread_local const heddle__watch *innermost;

void heddle__watch_enter(heddle__watch *w) {
  w->outer = innermost;
  innermost = w;
}

void heddle__watch_leave(const heddle__watch *w) {
  innermost = w->outer;
}

heddle_status heddle__watch_asks(void) {
  uint64_t now = 0;
  for (const heddle__watch *w = innermost; w != NULL; w = w->outer) {
    if (w->attention != NULL && atomic_load_explicit(w->attention, memory_order_relaxed) != 0 && w->cancelled(w->user))
      return HEDDLE_ECANCELED;
    if (w->deadline_ns == HEDDLE_FOREVER) continue;
    if (now == 0) now = heddle__now_ns();
    if (now >= w->deadline_ns) return HEDDLE_ETIMEOUT;
  }
  return HEDDLE_OK;
}

heddle_status heddle__watch_check(const char *what, heddle_error *err) {
  const heddle_status s = innermost != NULL ? heddle__watch_asks() : HEDDLE_OK;
  if (s == HEDDLE_OK) return s;
  return heddle__fail(err, s, s == HEDDLE_ETIMEOUT ? "%s has not ended within its time" : "%s was cancelled", what);
}

const heddle__watch *heddle__watch_now(void) {
  return innermost;
}

const heddle__watch *heddle__watch_adopt(const heddle__watch *w) {
  const heddle__watch *before = innermost;
  innermost = w;
  return before;
}
