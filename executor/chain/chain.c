/* executor/chain/chain.c: see chain.h. */
#include "executor/chain.h"

#include <stdio.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/trail.h"
#include "executor/flight.h"

/* A caller's stream. */
typedef struct caller {
  heddle_device *dev; /* NULL: there is none */
  heddle_pstream *stream;
  heddle__trail *before; /* one mark, behind the caller's work at the start of a run */
} caller;

struct heddle__chain {
  heddle__trail *trail;
  caller caller;
  caller fresh; /* takes the caller's place once all executors in flight have theirs */
  bool handed;  /* the marks of the present run are recorded */
};

/* ---- begin and end */

static heddle_status make(heddle_executor *ex, heddle_error *err) {
  if (ex->chain != NULL) return HEDDLE_OK;
  heddle__chain *c = heddle__alloc(1, sizeof *c);
  if (c == NULL) return heddle__no_memory(err, "the order of runs");
  heddle_status s = heddle__trail_make(&c->trail, err);
  if (s == HEDDLE_OK) ex->chain = c;
  else heddle__free(c);
  return s;
}

heddle_status heddle__chain_need(heddle_executor *ex, const heddle_tensor *t, heddle_error *err) {
  if (t == NULL || t->uses == NULL || ex->staged != NULL) return HEDDLE_OK;
  return make(ex, err);
}

static void drop_caller(caller *c) {
  heddle_device *dev = c->dev;
  if (dev == NULL) return;
  heddle_context *ctx = dev->ctx;
  dev->t->stream.close(c->stream);
  heddle__trail_release(c->before);
  *c = (caller){NULL, NULL, NULL};
  heddle__device_close(dev);
  heddle_context_release(ctx);
}

void heddle__chain_free(heddle_executor *ex) {
  heddle__chain *c = ex->chain;
  if (c == NULL) return;
  ex->chain = NULL;
  drop_caller(&c->caller);
  heddle__trail_release(c->trail);
  heddle__free(c);
}

void heddle__chain_renew(heddle_executor *ex) {
  heddle__trail *fresh = NULL;
  if (ex->chain == NULL || heddle__trail_make(&fresh, NULL) != HEDDLE_OK) return;
  heddle__trail_release(ex->chain->trail);
  ex->chain->trail = fresh;
}

/* ---- the caller's stream */

static bool is_near(const heddle_device *a, const heddle_device *b) {
  return a->instance == b->instance && a->desc.event_domain == b->desc.event_domain;
}

static bool has_host_work(const heddle__bound *b, const heddle__line *l) {
  const heddle__program *p = b->program;
  for (uint32_t i = l->first; i < l->end; i++)
    for (uint32_t k = 0; k < p->segments[i].count; k++)
      if (p->plan->steps[p->order[p->segments[i].first + k]].kind != HEDDLE__STEP_FINISH) return true;
  return false;
}

/* Every step of a run is work of devices that share events with one, so that the run can follow it and be followed. */
static bool is_near_alone(const heddle__bound *b, const heddle_device *dev) {
  for (uint32_t i = 0; i < b->n_lines; i++) {
    const heddle__line *l = &b->lines[i];
    if (l->is_host ? has_host_work(b, l) : !is_near(l->dev, dev)) return false;
  }
  for (uint32_t i = 0; i < b->n_outputs; i++)
    if (b->outputs[i].lent != NULL) return false;
  for (uint32_t i = 0; i < b->n_inputs; i++)
    if (b->inputs[i].lent != NULL && b->inputs[i].lent->dev != NULL) return false;
  return true;
}

heddle_status heddle__chain_settle(heddle_executor *ex, heddle_error *err) {
  if (ex->chain == NULL || ex->chain->caller.dev == NULL) return HEDDLE_OK;
  const caller *c = &ex->chain->caller;
  heddle_status s = heddle__caller_sync(c->dev, c->stream, HEDDLE_FOREVER, err);
  return s == HEDDLE_OK ? s : heddle__prefix_on(c->dev->name, err, s, "the caller's stream of %s: ", c->dev->name);
}

static heddle_status follow_caller(heddle__bound *b, const caller *c, heddle_error *err) {
  heddle__trail_open(c->before);
  heddle_status s = heddle__trail_mark(c->before, 0, c->stream, err);
  for (uint32_t i = 0; i < b->n_lines && s == HEDDLE_OK; i++) {
    const heddle__line *l = &b->lines[i];
    if (!l->is_host) s = heddle__trail_wait(c->before, l->dev, l->stream, err);
  }
  return s == HEDDLE_OK ? s : heddle__prefix_on(c->dev->name, err, s, "the caller's stream of %s: ", c->dev->name);
}

/* Whether a model's runs may use a device. */
static heddle_status check_device(const heddle_executor *ex, const heddle_device *dev, heddle_error *err) {
  const heddle_model *m = ex->model;
  for (uint32_t i = 0; i < m->n_devices; i++)
    if (m->devices[i] == dev) return HEDDLE_OK;
  char names[300] = "";
  size_t used = 0;
  for (uint32_t i = 0; i < m->n_devices && used < sizeof names; i++) {
    const int n = snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", m->devices[i]->name);
    if (n > 0) used += (size_t)n;
  }
  return heddle__fail_on(dev->name, err, HEDDLE_EINVAL, "%s: the stream is of %s, and the model runs on %s",
                         m->graph->source, dev->name, names);
}

static heddle_status adopt_stream(heddle_executor *ex, heddle_device *dev, uint64_t handle, heddle_error *err) {
  caller c = {NULL, NULL, NULL};
  heddle_status s = make(ex, err);
  if (s == HEDDLE_OK) s = heddle__device_open(dev, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__caller_adopt(dev, handle, &c.stream, err);
  if (s == HEDDLE_OK) s = heddle__trail_make(&c.before, err);
  if (s == HEDDLE_OK) s = heddle__trail_reserve(c.before, 0, dev, err);
  if (s != HEDDLE_OK) {
    heddle__trail_release(c.before);
    if (c.stream != NULL) dev->t->stream.close(c.stream);
    heddle__device_close(dev);
    return s;
  }
  heddle_context_retain(dev->ctx);
  c.dev = dev;
  ex->chain->fresh = c;
  return HEDDLE_OK;
}

/* keep: the fresh stream, or none, takes the place of the one before; else it is dropped. */
static void settle_stream(heddle__chain *c, bool keep) {
  drop_caller(keep ? &c->caller : &c->fresh);
  if (keep) c->caller = c->fresh;
  c->fresh = (caller){NULL, NULL, NULL};
}

static heddle_status may_take(heddle_executor *ex, const heddle_device *dev, heddle_error *err) {
  heddle_status s = heddle__executor_check(ex, err);
  if (s == HEDDLE_OK && ex->staged != NULL)
    s = heddle__fail(err, HEDDLE_EUNSUPPORTED,
                     "%s: the model runs in stages, which the host leads: its runs are not ordered into a stream",
                     ex->model->graph->source);
  return s == HEDDLE_OK && dev != NULL ? check_device(ex, dev, err) : s;
}

heddle_status heddle_executor_use_stream(heddle_executor *whole, heddle_device *dev, uint64_t handle,
                                         heddle_error *err) {
  if (whole == NULL) return heddle__fail(err, HEDDLE_EINVAL, "the executor is NULL");
  heddle_executor *first = NULL, *one;
  heddle_status s = heddle__lane_for(whole, HEDDLE__LANE_ALONE, &first, err);
  if (s == HEDDLE_OK) s = may_take(first, dev, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = 0; s == HEDDLE_OK && dev != NULL && (one = heddle__flight_peer(first, i)) != NULL; i++)
    s = adopt_stream(one, dev, handle, err);
  for (uint32_t i = 0; (one = heddle__flight_peer(first, i)) != NULL; i++)
    if (one->chain != NULL) settle_stream(one->chain, s == HEDDLE_OK);
  return s;
}

/* ---- tensors */

static heddle_status follow_tensor(heddle_executor *ex, const heddle_tensor *t, bool writes, const char *what,
                                   const char *name, heddle_error *err) {
  const heddle__bound *b = ex->bound;
  heddle__trail *own = ex->chain->trail;
  heddle_status s = heddle__uses_check(t->uses, own, writes, err);
  if (s == HEDDLE_OK) s = heddle__uses_note(t->uses, own, writes, err);
  for (uint32_t i = 0; i < b->n_lines && s == HEDDLE_OK; i++) {
    const heddle__line *l = &b->lines[i];
    if (!l->is_host && is_near(l->dev, t->dev)) s = heddle__uses_wait(t->uses, own, writes, l->dev, l->stream, err);
  }
  return s == HEDDLE_OK
             ? s
             : heddle__prefix_on(t->dev->name, err, s, "%s '%s': the tensor on %s: ", what, name, t->dev->name);
}

static heddle_status follow_tensors(heddle_executor *ex, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < ex->n_args && s == HEDDLE_OK; i++) {
    const heddle__arg *a = &ex->args[i];
    if (a->lent && a->value != NULL && a->value->uses != NULL)
      s = follow_tensor(ex, a->value, false, "input", heddle__model_arg(ex->model, i)->name, err);
  }
  for (uint32_t i = 0; i < ex->n_results && s == HEDDLE_OK; i++) {
    const heddle__result *r = &ex->results[i];
    if (r->lent != NULL && r->lent->uses != NULL) s = follow_tensor(ex, r->lent, true, "output", r->name, err);
  }
  return s;
}

/* ---- a run */

heddle_status heddle__chain_begin(heddle_executor *ex, heddle_error *err) {
  heddle__chain *c = ex->chain;
  heddle__bound *b = ex->bound;
  heddle_status s = HEDDLE_OK;
  if (c == NULL) return s;
  c->handed = false;
  b->chain = c;
  heddle__trail_open(c->trail);
  for (uint32_t i = 0; i < b->n_lines && s == HEDDLE_OK; i++)
    if (!b->lines[i].is_host && b->lines[i].t->event.create != NULL)
      s = heddle__trail_reserve(c->trail, i, b->lines[i].dev, err);
  if (s == HEDDLE_OK && c->caller.dev != NULL)
    s = is_near_alone(b, c->caller.dev) ? follow_caller(b, &c->caller, err) : heddle__chain_settle(ex, err);
  if (s == HEDDLE_OK) s = follow_tensors(ex, err);
  if (s != HEDDLE_OK) heddle__chain_end(ex, s);
  return s;
}

void heddle__chain_end(heddle_executor *ex, heddle_status status) {
  if (ex->chain != NULL) heddle__trail_end(ex->chain->trail, status);
}

bool heddle__chain_handed(const heddle__bound *b) {
  return b->chain == NULL || b->chain->handed;
}

static bool is_submitted(const heddle__bound *b) {
  const heddle__program *p = b->program;
  for (uint32_t i = 0; i < b->n_lines; i++) {
    const heddle__line *l = &b->lines[i];
    if (l->next == l->end) continue;
    if (!l->is_host || l->next + 1 < l->end) return false;
    const heddle__segment *seg = &p->segments[l->next];
    if (seg->count != 1 || p->plan->steps[p->order[seg->first]].kind != HEDDLE__STEP_FINISH) return false;
  }
  for (uint32_t i = 0; i < b->n_outputs; i++)
    if (b->outputs[i].lent != NULL) return false; /* the host copies it when the run has ended */
  return true;
}

heddle_status heddle__chain_hand(heddle__bound *b, heddle_error *err) {
  heddle__chain *c = b->chain;
  heddle_status s = HEDDLE_OK;
  if (c == NULL || c->handed || b->all_inline || !is_submitted(b)) return s;
  for (uint32_t i = 0; i < b->n_lines && s == HEDDLE_OK; i++)
    if (!b->lines[i].is_host && b->lines[i].t->event.record != NULL)
      s = heddle__trail_mark(c->trail, i, b->lines[i].stream, err);
  const caller *to = &c->caller;
  if (s == HEDDLE_OK && to->dev != NULL) {
    s = heddle__trail_wait(c->trail, to->dev, to->stream, err);
    if (s == HEDDLE_OK) s = to->dev->t->stream.submit(to->stream, err);
  }
  if (s != HEDDLE_OK) return s;
  c->handed = true;
  heddle__trail_submitted(c->trail);
  return s;
}

void heddle__chain_start(heddle_executor *ex) {
  if (ex->chain != NULL) heddle__drive_hand(&ex->drive, ex->chain->caller.dev != NULL);
}
