/* core/trail/trail.c: trails, and the uses of a tensor. See core/trail.h. */
#include "core/trail.h"

#include <pthread.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"

/* IDLE: no run has work on a device. OPEN: a run has begun. SUBMITTED: the events of the run are recorded. */
enum { IDLE, OPEN, SUBMITTED };

typedef struct mark {
  heddle_device *dev;
  heddle_pevent *event; /* stays until the trail is freed */
  uint64_t run;         /* in which it was recorded last */
} mark;

struct heddle__trail {
  atomic_uint references;
  atomic_int state;
  atomic_int result;    /* of the run that ended last */
  atomic_ullong run;    /* the present one, from 1 */
  pthread_mutex_t lock; /* guards marks; a leaf */
  mark *marks;
  uint32_t n_marks;
  bool is_caller;  /* of a stream of a caller's */
  uint64_t handle; /* its number there */
};

typedef struct use {
  heddle__trail *trail;
  uint64_t run;
  bool writes;
} use;

struct heddle__uses {
  atomic_uint references;
  pthread_mutex_t lock; /* guards what follows; a leaf */
  use *items;
  uint32_t n, cap;
};

/* ---- trails */

heddle_status heddle__trail_make(heddle__trail **out, heddle_error *err) {
  heddle__trail *t = heddle__alloc(1, sizeof *t);
  *out = NULL;
  if (t == NULL || pthread_mutex_init(&t->lock, NULL) != 0) {
    heddle__free(t);
    return heddle__no_memory(err, "the order of runs");
  }
  atomic_init(&t->references, 1);
  *out = t;
  return HEDDLE_OK;
}

heddle__trail *heddle__trail_retain(heddle__trail *trail) {
  atomic_fetch_add_explicit(&trail->references, 1, memory_order_relaxed);
  return trail;
}

void heddle__trail_release(heddle__trail *trail) {
  if (trail == NULL || atomic_fetch_sub_explicit(&trail->references, 1, memory_order_acq_rel) != 1) return;
  for (uint32_t i = 0; i < trail->n_marks; i++) {
    heddle_device *dev = trail->marks[i].dev;
    if (dev == NULL) continue;
    heddle_context *ctx = dev->ctx;
    dev->t->event.free(trail->marks[i].event);
    heddle__device_close(dev);
    heddle_context_release(ctx);
  }
  pthread_mutex_destroy(&trail->lock);
  heddle__free(trail->marks);
  heddle__free(trail);
}

void heddle__trail_open(heddle__trail *trail) {
  atomic_store(&trail->result, HEDDLE_OK);
  atomic_fetch_add(&trail->run, 1);
  atomic_store(&trail->state, OPEN);
}

void heddle__trail_submitted(heddle__trail *trail) {
  atomic_store(&trail->state, SUBMITTED);
}

void heddle__trail_end(heddle__trail *trail, heddle_status status) {
  atomic_store(&trail->result, status);
  atomic_store(&trail->state, IDLE);
}

static heddle_status make_mark(heddle_device *dev, mark *out, heddle_error *err) {
  if (dev->t->event.create == NULL)
    return heddle__fail_on(dev->name, err, HEDDLE_EUNSUPPORTED,
                           "%s has no events, so that nothing can be ordered after its work", dev->name);
  heddle_status s = heddle__device_open(dev, err);
  if (s != HEDDLE_OK) return s;
  s = dev->t->event.create(dev->handle, &out->event, err);
  if (s != HEDDLE_OK) {
    heddle__device_close(dev);
    return heddle__prefix_on(dev->name, err, s, "an event: ");
  }
  out->dev = dev;
  heddle_context_retain(dev->ctx);
  return HEDDLE_OK;
}

/* A mark of another device keeps its event, since a run before may still be waited for: it moves to the end. */
heddle_status heddle__trail_reserve(heddle__trail *trail, uint32_t at, heddle_device *dev, heddle_error *err) {
  if (at < trail->n_marks && trail->marks[at].dev == dev) return HEDDLE_OK;
  mark fresh = {NULL, NULL, 0};
  heddle_status s = make_mark(dev, &fresh, err);
  if (s != HEDDLE_OK) return s;
  const uint32_t n = at < trail->n_marks ? trail->n_marks + 1 : at + 1;
  pthread_mutex_lock(&trail->lock);
  mark *grown = heddle__grow(trail->marks, trail->n_marks, n, sizeof *grown);
  if (grown != NULL) {
    if (at < trail->n_marks) grown[n - 1] = grown[at];
    grown[at] = fresh;
    trail->marks = grown;
    trail->n_marks = n;
  }
  pthread_mutex_unlock(&trail->lock);
  if (grown != NULL) return HEDDLE_OK;
  heddle_context *ctx = dev->ctx;
  dev->t->event.free(fresh.event);
  heddle__device_close(dev);
  heddle_context_release(ctx);
  return heddle__no_memory(err, "the order of runs");
}

heddle_status heddle__trail_mark(heddle__trail *trail, uint32_t at, heddle_pstream *stream, heddle_error *err) {
  mark *m = &trail->marks[at]; /* the owner alone changes the array */
  heddle_status s = m->dev->t->event.record(m->event, stream, err);
  if (s == HEDDLE_OK) s = m->dev->t->stream.submit(stream, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&trail->lock);
  m->run = atomic_load(&trail->run);
  pthread_mutex_unlock(&trail->lock);
  return HEDDLE_OK;
}

static bool reaches(const heddle_device *from, const heddle_device *to) {
  return from != NULL && from->instance == to->instance && from->desc.event_domain == to->desc.event_domain;
}

heddle_status heddle__trail_wait(heddle__trail *trail, heddle_device *dev, heddle_pstream *stream, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; s == HEDDLE_OK; i++) {
    pthread_mutex_lock(&trail->lock);
    const bool more = i < trail->n_marks;
    const mark m = more ? trail->marks[i] : (mark){NULL, NULL, 0};
    pthread_mutex_unlock(&trail->lock);
    if (!more) break;
    if (reaches(m.dev, dev) && m.run == atomic_load(&trail->run)) s = dev->t->event.wait(stream, m.event, err);
  }
  return s;
}

/* ---- uses */

heddle_status heddle__uses_make(heddle__uses **out, heddle_error *err) {
  heddle__uses *u = heddle__alloc(1, sizeof *u);
  *out = NULL;
  if (u == NULL || pthread_mutex_init(&u->lock, NULL) != 0) {
    heddle__free(u);
    return heddle__no_memory(err, "a tensor");
  }
  atomic_init(&u->references, 1);
  *out = u;
  return HEDDLE_OK;
}

heddle__uses *heddle__uses_retain(heddle__uses *uses) {
  if (uses != NULL) atomic_fetch_add_explicit(&uses->references, 1, memory_order_relaxed);
  return uses;
}

void heddle__uses_release(heddle__uses *uses) {
  if (uses == NULL || atomic_fetch_sub_explicit(&uses->references, 1, memory_order_acq_rel) != 1) return;
  for (uint32_t i = 0; i < uses->n; i++) heddle__trail_release(uses->items[i].trail);
  pthread_mutex_destroy(&uses->lock);
  heddle__free(uses->items);
  heddle__free(uses);
}

/* The trail has gone on since, without this memory: nothing of it concerns the memory any more. */
static bool is_over(const use *x) {
  return x->run != atomic_load(&x->trail->run);
}

static bool has_failed(const use *x) {
  return x->writes && atomic_load(&x->trail->state) == IDLE && atomic_load(&x->trail->result) != HEDDLE_OK;
}

/* Drops what is over; failed: and what has failed. Gives their trails, which are released without the lock, in a list. */
static uint32_t sweep(heddle__uses *uses, bool failed, heddle__trail **dropped, uint32_t most) {
  uint32_t kept = 0, n = 0;
  for (uint32_t i = 0; i < uses->n; i++) {
    const use *x = &uses->items[i];
    const bool idle = is_over(x) || (atomic_load(&x->trail->state) == IDLE && (failed || !has_failed(x)));
    if (idle && n < most) dropped[n++] = x->trail;
    else uses->items[kept++] = *x;
  }
  uses->n = kept;
  return n;
}

enum { FEW = 8 };

heddle_status heddle__uses_note(heddle__uses *uses, heddle__trail *trail, bool writes, heddle_error *err) {
  heddle__trail *dropped[FEW];
  uint32_t n_dropped = 0;
  heddle_status s = HEDDLE_OK;
  const uint64_t run = atomic_load(&trail->run);
  use *mine = NULL;
  pthread_mutex_lock(&uses->lock);
  for (uint32_t i = 0; i < uses->n && mine == NULL; i++)
    if (uses->items[i].trail == trail) mine = &uses->items[i];
  if (mine != NULL) {
    mine->writes = writes || (mine->writes && mine->run == run);
    mine->run = run;
  } else {
    if (uses->n == uses->cap) n_dropped = sweep(uses, false, dropped, FEW);
    if (uses->n == uses->cap) {
      const uint32_t cap = uses->cap == 0 ? 4 : 2 * uses->cap;
      use *grown = heddle__grow(uses->items, uses->n, cap, sizeof *grown);
      if (grown == NULL) s = heddle__no_memory(err, "the order of runs");
      else uses->items = grown, uses->cap = cap;
    }
    if (s == HEDDLE_OK) uses->items[uses->n++] = (use){heddle__trail_retain(trail), run, writes};
  }
  pthread_mutex_unlock(&uses->lock);
  for (uint32_t i = 0; i < n_dropped; i++) heddle__trail_release(dropped[i]);
  return s;
}

heddle_status heddle__uses_caller(heddle__uses *uses, uint64_t handle, heddle__trail **out, heddle_error *err) {
  heddle__trail *found = NULL;
  *out = NULL;
  pthread_mutex_lock(&uses->lock);
  for (uint32_t i = 0; i < uses->n && found == NULL; i++) {
    heddle__trail *t = uses->items[i].trail;
    if (t->is_caller && t->handle == handle) found = heddle__trail_retain(t);
  }
  pthread_mutex_unlock(&uses->lock);
  heddle_status s = found == NULL ? heddle__trail_make(&found, err) : HEDDLE_OK;
  if (s != HEDDLE_OK) return s;
  found->is_caller = true;
  found->handle = handle;
  heddle__trail_open(found);
  s = heddle__uses_note(uses, found, true, err);
  if (s == HEDDLE_OK) *out = found;
  else heddle__trail_release(found);
  return s;
}

void heddle__uses_written(heddle__uses *uses) {
  heddle__trail *dropped[FEW];
  uint32_t n;
  if (uses == NULL) return;
  do {
    pthread_mutex_lock(&uses->lock);
    n = sweep(uses, true, dropped, FEW);
    pthread_mutex_unlock(&uses->lock);
    for (uint32_t i = 0; i < n; i++) heddle__trail_release(dropped[i]);
  } while (n == FEW);
}

/* The i-th use that an owner must heed, with a reference to its trail; false: there are no more. */
static bool next(heddle__uses *uses, const heddle__trail *own, bool writes, uint32_t *i, use *out) {
  bool found = false;
  pthread_mutex_lock(&uses->lock);
  for (; *i < uses->n && !found; (*i)++) {
    const use *x = &uses->items[*i];
    found = x->trail != own && (writes || x->writes) && !is_over(x);
    if (!found) continue;
    *out = *x;
    heddle__trail_retain(x->trail);
  }
  pthread_mutex_unlock(&uses->lock);
  return found;
}

heddle_status heddle__uses_check(heddle__uses *uses, const heddle__trail *own, bool writes, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  use x;
  for (uint32_t i = 0; uses != NULL && s == HEDDLE_OK && next(uses, own, writes, &i, &x);) {
    if (atomic_load(&x.trail->state) == OPEN)
      s = heddle__fail(err, HEDDLE_EBUSY,
                       "a pending run of another executor %s it and has work of the host's left: wait for that run",
                       x.writes ? "writes" : "reads");
    else if (has_failed(&x))
      s = heddle__fail(err, HEDDLE_EFAILED,
                       "the run of another executor that was to write it has failed: run that again, or write the "
                       "tensor");
    heddle__trail_release(x.trail);
  }
  return s;
}

heddle_status heddle__uses_wait(heddle__uses *uses, const heddle__trail *own, bool writes, heddle_device *dev,
                                heddle_pstream *stream, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  use x;
  for (uint32_t i = 0; uses != NULL && s == HEDDLE_OK && next(uses, own, writes, &i, &x);) {
    if (atomic_load(&x.trail->state) == SUBMITTED) s = heddle__trail_wait(x.trail, dev, stream, err);
    heddle__trail_release(x.trail);
  }
  return s;
}
