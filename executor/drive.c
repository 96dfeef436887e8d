/* executor/drive.c: hands the helm of a run from thread to thread, and reports the end of the run to all waiting
 * threads. On the way of a run that no other thread watches there are a few atomics and no lock; everything else is
 * behind the lock of the drive. A thread that lets go of the helm, or ends a run, looks at watchers afterwards; a
 * thread that wants either counts itself before it looks: one of the two sees the other. */
#include "executor/drive.h"

#include <string.h>
#include <time.h>

#include "core/context.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/thread.h"
#include "core/watch.h"

heddle_status heddle__drive_init(heddle__drive *d, heddle__ended_fn ended, void *user, heddle_error *err) {
  heddle_status s = heddle__waker_init(&d->waker, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__cond_init(&d->lock, &d->cond, err);
  if (s != HEDDLE_OK) {
    heddle__waker_finish(&d->waker);
    return s;
  }
  d->ended = ended;
  d->user = user;
  d->ready = true;
  return HEDDLE_OK;
}

void heddle__drive_stop(heddle__drive *d) {
  if (!d->ready) return;
  pthread_mutex_lock(&d->lock);
  d->quit = true;
  pthread_cond_broadcast(&d->cond);
  bool join = d->has_thread;
  pthread_mutex_unlock(&d->lock);
  if (join) pthread_join(d->thread, NULL);
  d->has_thread = false;
}

void heddle__drive_finish(heddle__drive *d) {
  if (!d->ready) return;
  pthread_cond_destroy(&d->cond);
  pthread_mutex_destroy(&d->lock);
  heddle__waker_finish(&d->waker);
  d->ready = false;
}

void heddle__drive_begin(heddle__drive *d, const heddle__work *work, void *self, bool lengthy,
                         struct heddle__profile *profile) {
  d->work = work;
  d->self = self;
  d->profile = profile;
  atomic_store_explicit(&d->lengthy, lengthy, memory_order_relaxed);
  d->words.text[0] = '\0';
  atomic_store_explicit(&d->run, atomic_load_explicit(&d->run, memory_order_relaxed) + 1, memory_order_relaxed);
  atomic_store_explicit(&d->attention, 0, memory_order_relaxed);
  atomic_store(&d->pending, 1);
}

/* ---- at the helm */

/* How a thread takes part in a run. */
typedef enum part {
  PART_WAIT,   /* drives, if no other thread does */
  PART_ATTEND, /* does not drive */
  PART_SUBMIT, /* drives until what is ready is submitted */
  PART_HAND,   /* drives until all is submitted */
  PART_OWN     /* drives while no other thread wants to: the executor's own thread */
} part;

static bool is_cancelled(heddle__drive *d) {
  return atomic_load(&d->cancel) == atomic_load_explicit(&d->run, memory_order_relaxed);
}

/* Also what kernels ask, through the watch. */
static bool heed_caller(void *user) {
  return is_cancelled(user);
}

static bool heed_own(void *user) {
  heddle__drive *d = user;
  return is_cancelled(d) || atomic_load(&d->wanted) != 0;
}

static bool take_helm(heddle__drive *d) {
  int free = 0;
  return atomic_compare_exchange_strong(&d->driven, &free, 1);
}

static void call_all(heddle__drive *d) {
  pthread_mutex_lock(&d->lock);
  pthread_cond_broadcast(&d->cond);
  pthread_mutex_unlock(&d->lock);
}

static void release_helm(heddle__drive *d) {
  atomic_store(&d->driven, 0);
  if (atomic_load(&d->watchers) != 0) call_all(d);
}

/* Wakes all threads that wait for this run. */
static void deliver(heddle__drive *d, uint64_t run, heddle_status status) {
  pthread_mutex_lock(&d->lock);
  for (heddle__waiter *w = d->waiters; w != NULL; w = w->next) {
    if (w->run != run || w->done) continue;
    w->done = true;
    w->status = status;
    if (status != HEDDLE_OK && w->err != NULL) *w->err = d->error;
  }
  pthread_cond_broadcast(&d->cond);
  pthread_mutex_unlock(&d->lock);
}

static heddle_status end_run(heddle__drive *d, heddle_status status, heddle_error *err) {
  char hung[160];
  bool drained = true;
  if (status != HEDDLE_OK && d->self != NULL) drained = d->work->drain(d->self, &d->waker, hung, sizeof hung);
  status = d->ended(d->user, status, drained ? NULL : hung, &d->words);
  uint64_t run = atomic_load_explicit(&d->run, memory_order_relaxed);
  if (status != HEDDLE_OK) {
    if (err != NULL) *err = d->words;
    pthread_mutex_lock(&d->lock);
    d->error = d->words;
    pthread_mutex_unlock(&d->lock);
  }
  atomic_store_explicit(&d->result, status, memory_order_relaxed);
  atomic_store(&d->pending, 0);
  if (atomic_load(&d->watchers) != 0) deliver(d, run, status);
  return status;
}

/* With the helm held: drives on. RUN_DONE also means that the run failed: status says. */
static heddle__run_end drive(heddle__drive *d, uint64_t deadline_ns, part as, heddle_status *status,
                             heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  heddle__run_end end;
  heddle__watch watch = {.deadline_ns = HEDDLE_FOREVER, /* who is late goes, and the run goes on */
                         .attention = &d->attention,
                         .cancelled = heed_caller,
                         .user = d};
  heddle__watch_enter(&watch);
  do {
    heddle__helm helm = {.waker = &d->waker,
                         .attention = &d->attention,
                         .heed = as == PART_OWN ? heed_own : heed_caller,
                         .user = d,
                         .deadline_ns = deadline_ns,
                         .profile = d->profile,
                         .aim = as == PART_SUBMIT ? HEDDLE__AIM_SUBMIT
                                : as == PART_HAND ? HEDDLE__AIM_HAND
                                                  : HEDDLE__AIM_END,
                         .step = as == PART_OWN && atomic_load(&d->lengthy) ? &d->step : NULL};
    end = d->work->drive(d->self, &helm, &s, &d->words);
    if (end != HEDDLE__RUN_FAILED || d->again == NULL) break;
    s = d->again(d->user, s, &d->words);
    if (s == HEDDLE_OK && deadline_ns != HEDDLE_FOREVER && heddle__now_ns() >= deadline_ns) end = HEDDLE__RUN_LATE;
  } while (s == HEDDLE_OK && end != HEDDLE__RUN_LATE);
  heddle__watch_leave(&watch);
  if (end == HEDDLE__RUN_LATE && (as == PART_SUBMIT || as == PART_HAND)) return end;
  if (end == HEDDLE__RUN_LATE) {
    char what[320];
    const uint32_t step = d->work->say(d->self, what, sizeof what);
    heddle__fail(err, HEDDLE_ETIMEOUT, "the run has not ended within its time (%s) and is still pending", what);
    if (step != HEDDLE__NONE) heddle__program_blame(d->work->program(d->self), step, HEDDLE_ETIMEOUT, err);
    return end;
  }
  if (end == HEDDLE__RUN_STOPPED) {
    if (!is_cancelled(d)) return end;
    s = heddle__fail(&d->words, HEDDLE_ECANCELED, "the run was cancelled");
  }
  *status = end_run(d, s, err);
  return HEDDLE__RUN_DONE;
}

/* ---- waiting */

/* What the last run came to. The lock is held. */
static heddle_status last_result(heddle__drive *d, heddle_error *err) {
  heddle_status s = atomic_load(&d->result);
  if (s != HEDDLE_OK && err != NULL) *err = d->error;
  return s;
}

/* The lock is held. */
static heddle_status late(heddle__drive *d, heddle_error *err) {
  const uint32_t step = atomic_load_explicit(&d->step, memory_order_relaxed);
  char what[256] = "";
  const char *why = "";
  if (d->shown != NULL && step != HEDDLE__NONE) {
    heddle__program_say_waited(d->shown, step, what, sizeof what);
    if (heddle__program_calls(d->shown, step)) why = ": a compiled function cannot be stopped";
  }
  heddle__fail(err, HEDDLE_ETIMEOUT, "the run has not ended within its time%s%s%s%s and is still pending",
               what[0] != '\0' ? " (it is at " : "", what, why, what[0] != '\0' ? ")" : "");
  return what[0] != '\0' ? heddle__program_blame(d->shown, step, HEDDLE_ETIMEOUT, err) : HEDDLE_ETIMEOUT;
}

/* The lock is held, and given up while sleeping. false when the deadline has passed. */
static bool sleep_on(heddle__drive *d, uint64_t deadline_ns) {
  if (deadline_ns > (uint64_t)INT64_MAX) {
    pthread_cond_wait(&d->cond, &d->lock);
    return true;
  }
  struct timespec until = {(time_t)(deadline_ns / 1000000000u), (long)(deadline_ns % 1000000000u)};
  return pthread_cond_timedwait(&d->cond, &d->lock, &until) == 0;
}

static void unlink_waiter(heddle__drive *d, const heddle__waiter *w) {
  for (heddle__waiter **link = &d->waiters; *link != NULL; link = &(*link)->next)
    if (*link == w) {
      *link = w->next;
      return;
    }
}

static heddle_status wait_slowly(heddle__drive *d, uint64_t run, uint64_t deadline_ns, part as, heddle_error *err) {
  heddle__waiter w = {.run = run, .err = err};
  heddle_status s = HEDDLE_OK;
  pthread_mutex_lock(&d->lock);
  w.next = d->waiters;
  d->waiters = &w;
  atomic_fetch_add(&d->watchers, 1);
  for (;;) {
    if (w.done) {
      s = w.status;
      break;
    }
    if (atomic_load(&d->pending) == 0 || atomic_load(&d->run) != run) {
      s = last_result(d, err);
      break;
    }
    if (as != PART_ATTEND && take_helm(d)) {
      pthread_mutex_unlock(&d->lock);
      heddle__run_end end = HEDDLE__RUN_STOPPED;
      if (atomic_load(&d->pending) != 0 && atomic_load(&d->run) == run) end = drive(d, deadline_ns, as, &s, err);
      release_helm(d);
      pthread_mutex_lock(&d->lock);
      if (end == HEDDLE__RUN_DONE) break;
      if (end == HEDDLE__RUN_LATE) {
        s = HEDDLE_ETIMEOUT;
        break;
      }
      continue;
    }
    if (as != PART_ATTEND) {
      atomic_fetch_add(&d->wanted, 1);
      atomic_store(&d->attention, 1);
      if (atomic_load(&d->own_drives)) heddle__waker_wake(&d->waker);
    }
    bool in_time = sleep_on(d, deadline_ns);
    if (as != PART_ATTEND) atomic_fetch_sub(&d->wanted, 1);
    if (!in_time && !w.done) {
      s = late(d, err);
      break;
    }
  }
  unlink_waiter(d, &w);
  atomic_fetch_sub(&d->watchers, 1);
  pthread_cond_broadcast(&d->cond); /* the executor's thread may have made way for this one */
  pthread_mutex_unlock(&d->lock);
  return s;
}

static heddle_status take_part(heddle__drive *d, uint64_t deadline_ns, part as, heddle_error *err) {
  uint64_t run = atomic_load(&d->run); /* before pending is looked at: never the number of a run that began later */
  if (!heddle__drive_pending(d)) {
    if (atomic_load(&d->result) == HEDDLE_OK) return HEDDLE_OK;
    pthread_mutex_lock(&d->lock);
    heddle_status s = last_result(d, err);
    pthread_mutex_unlock(&d->lock);
    return s;
  }
  if (as != PART_ATTEND && take_helm(d)) {
    heddle_status s = HEDDLE_OK;
    heddle__run_end end = HEDDLE__RUN_STOPPED;
    if (atomic_load(&d->pending) != 0 && atomic_load_explicit(&d->run, memory_order_relaxed) == run)
      end = drive(d, deadline_ns, as, &s, err);
    release_helm(d);
    if (end == HEDDLE__RUN_DONE) return s;
    if (end == HEDDLE__RUN_LATE) return HEDDLE_ETIMEOUT;
  }
  return wait_slowly(d, run, deadline_ns, as, err);
}

heddle_status heddle__drive_wait(heddle__drive *d, uint64_t deadline_ns, heddle_error *err) {
  return take_part(d, deadline_ns, PART_WAIT, err);
}

heddle_status heddle__drive_attend(heddle__drive *d, uint64_t deadline_ns, heddle_error *err) {
  const bool attend = deadline_ns != HEDDLE_FOREVER && atomic_load_explicit(&d->lengthy, memory_order_relaxed) &&
                      heddle__drive_pending(d) && heddle__drive_leave(d, NULL) == HEDDLE_OK;
  return take_part(d, deadline_ns, attend ? PART_ATTEND : PART_WAIT, err);
}

void heddle__drive_hand(heddle__drive *d, bool to_hand) {
  const part as = to_hand ? PART_HAND : PART_SUBMIT;
  const uint64_t run = atomic_load(&d->run);
  heddle_status s = HEDDLE_OK;
  if (!take_helm(d)) { /* the executor's thread has it, from the run before or since this one began */
    (void)wait_slowly(d, run, HEDDLE_FOREVER, as, NULL);
    return;
  }
  if (atomic_load(&d->pending) != 0) drive(d, HEDDLE_FOREVER, as, &s, NULL);
  release_helm(d);
}

void heddle__drive_cancel(heddle__drive *d) {
  uint64_t run = atomic_load(&d->run);
  if (!heddle__drive_pending(d)) return;
  atomic_store(&d->cancel, run);
  atomic_store(&d->attention, 1);
  heddle__waker_wake(&d->waker);
  if (!take_helm(d)) return;
  heddle_status s = HEDDLE_OK;
  if (atomic_load(&d->pending) != 0 && atomic_load(&d->run) == run) {
    atomic_store(&d->attention, 1);
    drive(d, HEDDLE_FOREVER, PART_WAIT, &s, NULL);
  }
  release_helm(d);
}

/* ---- the executor's own thread */

static void *own_thread(void *arg) {
  heddle__drive *d = arg;
  pthread_mutex_lock(&d->lock);
  while (!d->quit) {
    if (atomic_load(&d->pending) == 0 || atomic_load(&d->wanted) != 0) {
      pthread_cond_wait(&d->cond, &d->lock);
      continue;
    }
    atomic_fetch_add(&d->watchers, 1);
    if (take_helm(d)) {
      heddle_status s = HEDDLE_OK;
      const bool drives = atomic_load(&d->wanted) == 0 && atomic_load(&d->pending) != 0;
      heddle__program *shown = NULL;
      atomic_store_explicit(&d->step, HEDDLE__NONE, memory_order_relaxed);
      if (drives && d->again == NULL && atomic_load(&d->lengthy)) shown = d->work->program(d->self);
      if (shown != NULL) d->shown = heddle__program_retain(shown);
      pthread_mutex_unlock(&d->lock);
      atomic_store(&d->own_drives, true);
      if (drives) drive(d, HEDDLE_FOREVER, PART_OWN, &s, NULL);
      atomic_store(&d->own_drives, false);
      if (shown != NULL) {
        pthread_mutex_lock(&d->lock);
        d->shown = NULL;
        pthread_mutex_unlock(&d->lock);
        heddle__program_release(shown);
      }
      release_helm(d);
      pthread_mutex_lock(&d->lock);
    } else if (atomic_load(&d->pending) != 0) {
      pthread_cond_wait(&d->cond, &d->lock);
    }
    atomic_fetch_sub(&d->watchers, 1);
  }
  pthread_mutex_unlock(&d->lock);
  return NULL;
}

heddle_status heddle__drive_leave(heddle__drive *d, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  pthread_mutex_lock(&d->lock);
  if (!d->has_thread) {
    s = heddle__thread_start(&d->thread, own_thread, d, "the thread of an executor", err);
    d->has_thread = s == HEDDLE_OK;
  }
  pthread_cond_broadcast(&d->cond);
  pthread_mutex_unlock(&d->lock);
  return s;
}
