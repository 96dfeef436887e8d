/* executor/program.c: makes a program of a plan: opens devices, prepares operators, places constants, cuts segments.
 * The cache of programs is the model's. */
#include "executor/program.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/watch.h"
#include "executor/copies.h"
#include "executor/optimize.h"
#include "executor/precedent.h"
#include "executor/recall.h"

/* ---- segments */

static bool awaited_by_host(const heddle__plan *plan, const heddle__step *step, const heddle__wait *w) {
  return w->by == HEDDLE__BY_HOST && plan->steps[w->step].stream != step->stream;
}

/* Where the lanes start in order; and the steps in it, by (stream, seq). */
static heddle_status fill_order(heddle__program *p, uint32_t *start, heddle_error *err) {
  const heddle__plan *plan = p->plan;
  uint32_t sum = 0;
  for (uint32_t i = 0; i < plan->n_streams; i++) {
    start[i] = sum;
    sum += plan->streams[i].n_steps;
  }
  bool wrong = sum != plan->n_steps;
  for (uint32_t i = 0; i < plan->n_steps; i++) p->order[i] = HEDDLE__NONE;
  for (uint32_t i = 0; i < plan->n_steps && !wrong; i++) {
    const heddle__step *step = &plan->steps[i];
    wrong = step->stream >= plan->n_streams || step->seq == 0 || step->seq > plan->streams[step->stream].n_steps;
    if (!wrong) p->order[start[step->stream] + step->seq - 1] = i;
  }
  for (uint32_t i = 0; i < plan->n_steps && !wrong; i++) wrong = p->order[i] == HEDDLE__NONE;
  return wrong ? heddle__fail(err, HEDDLE_EINTERNAL, "the plan's streams do not hold each step once") : HEDDLE_OK;
}

static void fill_gates(heddle__program *p, heddle__segment *seg, const heddle__step *step, const uint32_t *ordinals,
                       uint32_t *n_gates) {
  seg->first_gate = *n_gates;
  for (uint32_t k = 0; k < step->n_waits; k++) {
    const heddle__wait *w = &step->waits[k];
    const heddle__step *awaited = &p->plan->steps[w->step];
    if (awaited->stream == step->stream) continue; /* its own order does */
    p->gates[(*n_gates)++] = (heddle__gate){w->by, awaited->stream, awaited->seq, ordinals[w->step], w->step};
  }
  seg->n_gates = *n_gates - seg->first_gate;
}

/* Scratch of cut: per step, its fence value and whether the driver of another stream waits for it. */
typedef struct marks {
  uint32_t *start;
  uint32_t *ordinals;
  bool *ends;
} marks;

static void cut_lane(heddle__program *p, uint32_t lane, const marks *m, uint32_t *n_gates) {
  const heddle__plan *plan = p->plan;
  heddle__lane *l = &p->lanes[lane];
  l->first = p->n_segments;
  heddle__segment *seg = NULL;
  const heddle__foreign *before = NULL;
  for (uint32_t k = 0; k < plan->streams[lane].n_steps; k++) {
    uint32_t at = m->start[lane] + k, id = p->order[at];
    const heddle__step *step = &plan->steps[id];
    const heddle__foreign *by = step->kind == HEDDLE__STEP_OP ? plan->regions[step->region].foreign : NULL;
    if (seg == NULL || step->n_waits > 0 || by != before) { /* foreign steps apart: the others can be recorded */
      seg = &p->segments[p->n_segments++];
      *seg = (heddle__segment){.stream = lane, .first = at, .event_step = HEDDLE__NONE};
      fill_gates(p, seg, step, m->ordinals, n_gates);
    }
    seg->count++;
    before = by;
    if (step->kind <= HEDDLE__STEP_PEER) l->needs_stream = true;
    if (step->event_signal) seg->event_step = id;
    if (step->fence_signal) seg->ordinal = m->ordinals[id];
    if (step->event_signal || step->fence_signal || m->ends[id]) seg = NULL;
  }
  l->end = p->n_segments;
}

static heddle_status cut(heddle__program *p, heddle_error *err) {
  const heddle__plan *plan = p->plan;
  uint32_t n_waits = 0, n_gates = 0;
  for (uint32_t i = 0; i < plan->n_steps; i++) n_waits += plan->steps[i].n_waits;
  p->order = heddle__alloc(plan->n_steps, sizeof *p->order);
  p->segments = heddle__alloc(plan->n_steps, sizeof *p->segments);
  p->gates = heddle__alloc(n_waits, sizeof *p->gates);
  p->lanes = heddle__alloc(plan->n_streams, sizeof *p->lanes);
  marks m = {heddle__alloc(plan->n_streams, sizeof *m.start), heddle__alloc(plan->n_steps, sizeof *m.ordinals),
             heddle__alloc(plan->n_steps, sizeof *m.ends)};
  heddle_status s = HEDDLE_OK;
  if (p->order == NULL || p->segments == NULL || p->gates == NULL || p->lanes == NULL || m.start == NULL ||
      m.ordinals == NULL || m.ends == NULL)
    s = heddle__no_memory(err, "a program's segments");
  if (s == HEDDLE_OK) s = fill_order(p, m.start, err);
  for (uint32_t i = 0; i < plan->n_streams && s == HEDDLE_OK; i++)
    for (uint32_t k = 0; k < plan->streams[i].n_steps; k++) {
      uint32_t id = p->order[m.start[i] + k];
      if (plan->steps[id].fence_signal) m.ordinals[id] = ++p->lanes[i].n_signals;
    }
  for (uint32_t i = 0; i < plan->n_steps && s == HEDDLE_OK; i++)
    for (uint32_t k = 0; k < plan->steps[i].n_waits; k++)
      if (awaited_by_host(plan, &plan->steps[i], &plan->steps[i].waits[k])) m.ends[plan->steps[i].waits[k].step] = true;
  for (uint32_t i = 0; i < plan->n_streams && s == HEDDLE_OK; i++) cut_lane(p, i, &m, &n_gates);
  heddle__free(m.start);
  heddle__free(m.ordinals);
  heddle__free(m.ends);
  return s;
}

void heddle__program_count_copies(heddle__program *p) {
  p->copies = p->bytes_copied = 0;
  for (uint32_t i = 0; i < p->plan->n_steps; i++) {
    const heddle__step *step = &p->plan->steps[i];
    if (step->kind != HEDDLE__STEP_H2D && step->kind != HEDDLE__STEP_D2H && step->kind != HEDDLE__STEP_PEER) continue;
    p->copies++;
    p->bytes_copied += p->plan->instances[step->dst].bytes;
  }
}

/* ---- devices and operators */

static heddle_status open_devices(heddle__program *p, heddle_error *err) {
  const heddle__plan *plan = p->plan;
  for (uint32_t i = 0; i < plan->n_devices; i++) {
    bool used = plan->devices[i].used;
    for (uint32_t k = 0; k < plan->n_allocs && !used; k++) used = plan->spaces[plan->allocs[k].space].device == i;
    for (uint32_t k = 0; k < plan->n_streams && !used; k++) used = plan->streams[k].device == i;
    heddle_status s = used ? heddle__model_open(p->model, plan->devices[i].dev, err) : HEDDLE_OK;
    if (s != HEDDLE_OK) return s;
  }
  return HEDDLE_OK;
}

/* Tests the routes that the plan takes and that are untested; *again: one of them is wrong, and not taken any more. */
static heddle_status test_routes(const heddle__plan *plan, bool *again, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  uint32_t host = heddle__host_device(plan);
  if (host != HEDDLE__NONE && plan->devices[host].dev->desc.import_alignment == 0) host = HEDDLE__NONE;
  *again = false;
  for (uint32_t i = 0; i < plan->n_crossings && s == HEDDLE_OK; i++) {
    const heddle__crossing *c = &plan->crossings[i];
    /* A page is tested between its owner and each of the two; other routes between the two. An inline device stands for
     * the host, from which inputs and to which outputs go; without one these are not tested. */
    uint32_t a = c->from != HEDDLE__NONE ? c->from : host, b = c->to != HEDDLE__NONE ? c->to : host;
    uint32_t ends[2][2] = {{a, b}, {HEDDLE__NONE, HEDDLE__NONE}};
    if (c->page != HEDDLE__NONE) memcpy(ends, (uint32_t[2][2]){{c->page, a}, {c->page, b}}, sizeof ends);
    for (int k = 0; k < 2 && s == HEDDLE_OK; k++) {
      if (ends[k][0] == HEDDLE__NONE || ends[k][1] == HEDDLE__NONE || ends[k][0] == ends[k][1]) continue;
      heddle_device *from = plan->devices[ends[k][0]].dev, *to = plan->devices[ends[k][1]].dev;
      if (heddle__device_inline(from) && heddle__device_inline(to)) continue;
      heddle__routes_recall((heddle_device *[]){from, to}, 2);
      s = heddle__route_test(from, to, c->route, err);
      const heddle__route_note *note = heddle__route_find(from, to, c->route);
      *again = *again || (note != NULL && note->cost.off);
    }
  }
  return s;
}

/* Plans, and opens the plan's devices, until all routes of the plan are good. */
static heddle_status plan_and_open(heddle__program *p, heddle__order *order, heddle_error *err) {
  for (;;) {
    bool again = false;
    heddle_status s = heddle__optimize_plan(p->model, order, &p->plan, err);
    if (s == HEDDLE_OK) s = open_devices(p, err);
    if (s == HEDDLE_OK) s = test_routes(p->plan, &again, err);
    if (s != HEDDLE_OK || !again) return s;
    heddle__plan_free(p->plan);
    p->plan = NULL;
  }
}

/* The offer binds, so this is the plugin's fault, and the user's way out is to do without it. */
static heddle_status complain(const heddle__program *p, const heddle__region *r, heddle_status s, heddle_error *err) {
  const char *dev = p->plan->devices[r->device].dev->name;
  const heddle_pnode *nodes = r->ask->nodes.data;
  int name = (int)strcspn(dev, ":");
  char more[32] = "", rule[200] = "";
  if (r->n_nodes > 1) snprintf(more, sizeof more, " and %u more", (unsigned)r->n_nodes - 1);
  if (r->n_nodes > 0)
    snprintf(rule, sizeof rule, "give it another device (--place '%.120s=DEVICE') or ", nodes[0].name);
  return heddle__at_node(
      heddle__prefix_on(dev, err, s,
                        "plugin '%.*s' offered to run node '%.200s' (%.60s%s) on %s and cannot prepare it; %sleave the "
                        "plugin out of the list of devices: ",
                        name, dev, r->label, nodes[0].op, more, dev, rule),
      err, HEDDLE__NO_NODE, r->label);
}

heddle_status heddle__region_prepare(const heddle__program *p, const heddle__region *r, heddle_pop **out,
                                     heddle_error *err) {
  heddle_device *dev = p->plan->devices[r->device].dev;
  heddle_error why = {0};
  heddle_pop *op = NULL;
  heddle_pdevice *self = r->foreign != NULL ? r->foreign->self : dev->handle;
  heddle_status s = heddle__region_ops(p->plan, r)->prepare(self, r->ask, r->offer, &op, &why);
  if (s == HEDDLE_OK) {
    *out = op;
    return HEDDLE_OK;
  }
  if (s == HEDDLE_EDEVICE) heddle__device_fault(dev, why.api_code, why.text);
  if (err != NULL) *err = why;
  const bool ended = s == HEDDLE_ETIMEOUT || s == HEDDLE_ECANCELED;
  if (s == HEDDLE_ENOMEM || s == HEDDLE_EDEVICE || ended || r->foreign != NULL)
    s = heddle__prefix_on(dev->name, err, s, "node '%.200s' on %s could not be prepared: ", r->label, dev->name);
  if (s == HEDDLE_ENOMEM || s == HEDDLE_EDEVICE || ended || r->foreign != NULL)
    return heddle__at_node(s, err, HEDDLE__NO_NODE, r->label);
  return complain(p, r, s, err);
}

static heddle_status prepare(heddle__program *p, uint32_t region, heddle_error *err) {
  const heddle__region *r = &p->plan->regions[region];
  if (p->root != NULL &&
      (r->ask == p->root->plan->regions[region].ask || (r->offers[r->offer].flags & HEDDLE_OFFER_RESIZES) != 0)) {
    p->ops[region] = p->root->ops[region];
    return HEDDLE_OK;
  }
  return heddle__region_prepare(p, r, &p->ops[region], err);
}

/* What steps run, each once; regions that only shapes came from have none. Under the limit of plans: tables of operators
 * may take long. */
heddle_status heddle__program_prepare(heddle__program *p, heddle_error *err) {
  heddle__watch watch = {.deadline_ns = heddle__model_plan_deadline(p->model)};
  heddle_status s = HEDDLE_OK;
  heddle__watch_enter(&watch);
  for (uint32_t i = 0; s == HEDDLE_OK && i < p->plan->n_steps; i++)
    if (p->plan->steps[i].kind == HEDDLE__STEP_OP) s = prepare(p, p->plan->steps[i].region, err);
  heddle__watch_leave(&watch);
  if (s == HEDDLE_OK) heddle__program_count_copies(p);
  return s;
}

static heddle_status take_constants(heddle__program *p, heddle_error *err) {
  heddle_status s = heddle__constants_acquire(p->model, p->plan, p->packed, err);
  if (s != HEDDLE_ENOMEM || !heddle__constants_forget(p->model)) return s;
  heddle__constants_recycle(p->model, p->packed, p->plan->n_allocs); /* there may be enough memory now */
  return heddle__constants_acquire(p->model, p->plan, p->packed, err);
}

static heddle_status make(heddle_model *m, heddle__order *order, heddle__recall *recall, heddle__program **out,
                          heddle_error *err) {
  heddle__program *p = heddle__alloc(1, sizeof *p);
  if (p == NULL) return heddle__no_memory(err, "a program");
  atomic_init(&p->references, 1);
  p->model = m;
  heddle__precedent *like = recall == NULL ? heddle__precedent_find(m, order) : NULL;
  order->req.recall = recall;
  order->req.precedent = like;
  heddle_status s = plan_and_open(p, order, err);
  order->req.precedent = NULL;
  order->req.recall = NULL;
  if (p->plan != NULL) p->plan->req.recall = NULL;
  heddle__precedent_release(like);
  if (s == HEDDLE_OK) {
    p->ops = heddle__alloc(p->plan->n_regions, sizeof *p->ops);
    p->packed = heddle__alloc(p->plan->n_allocs, sizeof *p->packed);
    if (p->ops == NULL || p->packed == NULL) s = heddle__no_memory(err, "a program");
  }
  if (s == HEDDLE_OK) s = cut(p, err);
  if (s == HEDDLE_OK) s = heddle__program_prepare(p, err);
  if (s == HEDDLE_OK) s = take_constants(p, err);
  if (s != HEDDLE_OK) {
    heddle__program_release(p);
    return s;
  }
  if (!p->plan->followed) heddle__precedent_learn(m, order, p->plan);
  p->order_of = order;
  *out = p;
  return HEDDLE_OK;
}

heddle_status heddle__program_make(heddle_model *m, heddle__order *order, heddle__program **out, heddle_error *err) {
  *out = NULL;
  heddle__recall *recall = heddle__recall_open(m, order);
  heddle_status s = make(m, order, recall, out, err);
  if (!heddle__recall_close(recall, s)) return s;
  if (s == HEDDLE_OK) (*out)->order_of = NULL; /* the next one has it */
  heddle__program_release(*out);
  *out = NULL;
  return make(m, order, NULL, out, err);
}

heddle__program *heddle__program_retain(heddle__program *p) {
  atomic_fetch_add_explicit(&p->references, 1, memory_order_relaxed);
  return p;
}

void heddle__program_forget_late(heddle__program *p) {
  for (uint32_t i = 0; p->late != NULL && i < p->plan->n_regions; i++) {
    heddle_pop *op = atomic_load_explicit(&p->late[i], memory_order_relaxed);
    if (op != NULL) heddle__region_ops(p->plan, &p->plan->regions[i])->op_free(op);
    atomic_store_explicit(&p->late[i], NULL, memory_order_relaxed);
  }
}

void heddle__program_release(heddle__program *p) {
  if (p == NULL || atomic_fetch_sub_explicit(&p->references, 1, memory_order_acq_rel) != 1) return;
  const uint32_t n_allocs = p->plan != NULL ? p->plan->n_allocs : 0;
  const uint32_t n_regions = p->plan != NULL ? p->plan->n_regions : 0;
  for (uint32_t i = 0; p->ops != NULL && i < n_regions; i++)
    if (p->ops[i] != NULL && (p->root == NULL || p->ops[i] != p->root->ops[i]))
      heddle__region_ops(p->plan, &p->plan->regions[i])->op_free(p->ops[i]);
  heddle__program_forget_late(p);
  if (p->has_lock) pthread_mutex_destroy(&p->lock);
  heddle__free((void *)p->late);
  heddle__free(p->ops);
  heddle__plan_free(p->plan);
  heddle__order_free(p->order_of);
  if (p->root != NULL) {
    heddle__program_release(p->root);
  } else {
    if (p->packed != NULL) heddle__constants_recycle(p->model, p->packed, n_allocs);
    heddle__free(p->packed);
    heddle__free(p->order);
    heddle__free(p->segments);
    heddle__free(p->gates);
    heddle__free(p->lanes);
  }
  heddle__free(p);
}

/* ---- words */

static const char *value_name(const heddle__plan *plan, uint32_t instance) {
  if (instance == HEDDLE__NONE || plan->instances[instance].value == HEDDLE__NONE) return "?";
  return plan->values[plan->instances[instance].value].name;
}

static const char *owner_name(const heddle__plan *plan, uint32_t instance) {
  if (instance == HEDDLE__NONE) return "?";
  return plan->devices[plan->spaces[plan->instances[instance].space].device].dev->name;
}

void heddle__program_say(const heddle__program *p, uint32_t id, char *out, size_t size) {
  const heddle__plan *plan = p->plan;
  const heddle__step *step = &plan->steps[id];
  const char *on = step->device != HEDDLE__NONE ? plan->devices[step->device].dev->name : "the host";
  switch (step->kind) {
  case HEDDLE__STEP_OP: snprintf(out, size, "node '%.150s' on %s", plan->regions[step->region].label, on); break;
  case HEDDLE__STEP_H2D: snprintf(out, size, "copy of '%.150s' to %s", value_name(plan, step->src), on); break;
  case HEDDLE__STEP_D2H: snprintf(out, size, "copy of '%.150s' from %s", value_name(plan, step->src), on); break;
  case HEDDLE__STEP_D2D: snprintf(out, size, "copy of '%.150s' within %s", value_name(plan, step->src), on); break;
  case HEDDLE__STEP_PEER:
    snprintf(out, size, "copy of '%.150s' from %s to %s", value_name(plan, step->src), owner_name(plan, step->src), on);
    break;
  case HEDDLE__STEP_HOST_COPY: snprintf(out, size, "host copy of '%.150s'", value_name(plan, step->src)); break;
  case HEDDLE__STEP_RELEASE:
  case HEDDLE__STEP_ACQUIRE:
    snprintf(out, size, "%s of '%.150s' on %s", step->kind == HEDDLE__STEP_RELEASE ? "flush" : "invalidate",
             value_name(plan, step->src), owner_name(plan, step->src));
    break;
  case HEDDLE__STEP_FINISH: snprintf(out, size, "the end of the run"); break;
  }
}

bool heddle__program_calls(const heddle__program *p, uint32_t id) {
  const heddle__step *step = &p->plan->steps[id];
  return step->kind == HEDDLE__STEP_OP && p->plan->regions[step->region].foreign != NULL;
}

void heddle__program_say_waited(const heddle__program *p, uint32_t id, char *out, size_t size) {
  const heddle__plan *plan = p->plan;
  const heddle__step *step = &plan->steps[id];
  if (!heddle__program_calls(p, id)) {
    heddle__program_say(p, id, out, size);
    return;
  }
  const heddle__region *r = &plan->regions[step->region];
  snprintf(out, size, "node '%.80s' (function '%.80s') on %s", r->label,
           r->n_nodes > 0 ? plan->req.graph->nodes[r->nodes[0]].func_name : "?",
           step->device != HEDDLE__NONE ? plan->devices[step->device].dev->name : "the host");
}

heddle_status heddle__program_blame(const heddle__program *p, uint32_t id, heddle_status status, heddle_error *err) {
  const heddle__plan *plan = p->plan;
  const heddle__step *step = &plan->steps[id];
  if (step->kind == HEDDLE__STEP_OP) heddle__at_node(status, err, HEDDLE__NO_NODE, plan->regions[step->region].label);
  return step->device != HEDDLE__NONE ? heddle__at_device(status, err, plan->devices[step->device].dev->name) : status;
}
