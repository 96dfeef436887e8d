/* executor/resize.c: the program of shapes that a root covers. Shapes are inferred, the plugins are asked about the regions
 * whose values changed, and their operators are prepared; nothing is placed, grouped, laid out, stored or proved again.
 *
 * Why the root's proof holds: steps, streams, waits, accesses and offsets are the root's, and no instance has more bytes
 * than there. So the bytes of every access are a part of those of the same access in the root: what overlaps here
 * overlapped there, and was ordered. A read sees its value, since the bytes of an instance are the same for the step that
 * writes and the steps that read it. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "executor/ask.h"
#include "executor/optimize.h"
#include "executor/range.h"
#include "plugins/common/check/offer.h"

typedef struct sizing {
  const heddle__plan *root;
  heddle__plan *plan;
  const bool *open; /* per value: it will change later; NULL: none */
  bool *changed;    /* per value: its shape, or its bytes where they are known */
  uint32_t *users;
} sizing;

static heddle_status refuse(const char *name, const char *why, heddle_error *err) {
  return heddle__fail(err, HEDDLE_EUNSUPPORTED, "'%.200s' %s", name, why);
}

/* ---- values */

static bool differs(const heddle__known *a, const heddle__known *b) {
  if (a->ndim > 0 && memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) != 0) return true;
  return a->data != b->data && memcmp(a->data, b->data, (size_t)a->bytes) != 0; /* of the same shape, so of one size */
}

/* What inference gives takes the place of the root's, whose layouts and numbers stay. Results that nobody reads change
 * too: a kernel writes them. */
static heddle_status take_inferred(sizing *z, heddle_error *err) {
  const heddle__plan *root = z->root;
  heddle__plan *plan = z->plan;
  const heddle__value *inferred = plan->values;
  const uint32_t n = plan->n_values;
  heddle__value *values = heddle__plan_alloc(plan, root->n_values, sizeof *values);
  z->changed = heddle__plan_alloc(plan, root->n_values, sizeof *z->changed);
  if (values == NULL || z->changed == NULL) return heddle__no_memory(err, "a plan's values");
  memcpy(values, root->values, root->n_values * sizeof *values);
  for (uint32_t i = 0; i < n; i++) {
    const heddle__known *mine = &inferred[i].known, *before = &root->values[i].known;
    if (mine->ndim != before->ndim || !heddle__dtype_equal(mine->dtype, before->dtype) ||
        (mine->data == NULL) != (before->data == NULL))
      return refuse(inferred[i].name, "has another form than for the bound", err);
    if (!heddle__is_within(&root->values[i], mine))
      return refuse(inferred[i].name, "changes in a dimension that was planned as fixed", err);
    values[i].known = *mine;
    z->changed[i] = differs(mine, before);
  }
  plan->values = values;
  plan->n_values = root->n_values;
  return HEDDLE_OK;
}

heddle_status heddle__value_measure(heddle__plan *plan, uint32_t value, uint32_t device, heddle_error *err) {
  heddle__value *v = &plan->values[value];
  uint64_t align = 1;
  if (v->layout == 0) {
    v->size = v->known.bytes;
    return HEDDLE_OK;
  }
  const heddle_device *dev = plan->devices[device].dev;
  const heddle_pvalue t = {.struct_size = sizeof t,
                           .dtype = v->known.dtype,
                           .shape = v->known.shape,
                           .layout = v->layout,
                           .ndim = (int32_t)v->known.ndim};
  const heddle_status s = dev->t->layout.bytes(dev->instance, dev->index, &t, &v->size, &align, err);
  if (s != HEDDLE_OK) return heddle__prefix_on(dev->name, err, s, "value '%s' in a layout of %s: ", v->name, dev->name);
  return align <= v->align ? s : refuse(v->name, "needs another alignment than for the bound", err);
}

/* ---- regions */

/* Whether a region has a value among those that are marked. */
static bool has_marked(const sizing *z, const heddle__region *r, const bool *marks) {
  const heddle_graph *g = z->plan->req.graph;
  if (r->kind == HEDDLE__REGION_REORDER) return marks[r->inputs[0]];
  for (uint32_t i = 0; i < r->n_nodes; i++) {
    const heddle__node *n = &g->nodes[r->nodes[i]];
    for (uint32_t k = 0; k < n->n_inputs; k++)
      if (n->inputs[k].node != HEDDLE__ABSENT && marks[heddle__entry_id(g, n->inputs[k])]) return true;
    for (uint32_t k = 0; k < n->n_outputs; k++)
      if (marks[n->first_entry + k]) return true;
  }
  return false;
}

static bool is_changed(const sizing *z, const heddle__region *r) {
  if (has_marked(z, r, z->changed)) return true;
  const bool resizes = r->n_offers > 0 && (r->offers[r->offer].flags & HEDDLE_OFFER_RESIZES) != 0;
  return z->open != NULL && resizes && has_marked(z, r, z->open);
}

/* Whether an offer can be taken where the root took another: storage and layouts are the root's. */
static bool serves(const heddle__offer *o, const heddle__offer *was, const heddle__region *r) {
  if (((o->flags ^ was->flags) & ~HEDDLE_OFFER_RESIZES) != 0 || o->workspace_bytes > was->workspace_bytes ||
      o->workspace_align > was->workspace_align ||
      memcmp(o->input_layouts, was->input_layouts, r->n_inputs * sizeof *o->input_layouts) != 0 ||
      memcmp(o->output_layouts, was->output_layouts, r->n_outputs * sizeof *o->output_layouts) != 0 ||
      memcmp(o->input_flags, was->input_flags, r->n_inputs * sizeof *o->input_flags) != 0)
    return false;
  return offer_has_all(o->in_place, o->n_in_place, was->in_place, was->n_in_place, OFFER_IN_PLACE) &&
         offer_has_all(o->extends, o->n_extends, was->extends, was->n_extends, OFFER_EXTENDS);
}

static void set_layouts(const heddle__plan *plan, const heddle__region *r, heddle_pregion *ask,
                        const heddle__offer *o) {
  heddle_pvalue *values = (heddle_pvalue *)(uintptr_t)ask->values.data;
  for (uint32_t i = 0; i < ask->n_inputs; i++) values[ask->inputs[i]].layout = o->input_layouts[i];
  for (uint32_t i = 0; i < ask->n_outputs; i++) values[ask->outputs[i]].layout = o->output_layouts[i];
  heddle__give_room(plan, r, ask);
}

/* The plugin's offer for the new shapes, which has to fit the root's; the region then is prepared anew. */
static heddle_status choose_again(heddle__plan *plan, heddle__region *r, heddle__answer *a, heddle_error *err) {
  const heddle__offer *was = &r->offers[r->offer];
  heddle_pvalue *values = (heddle_pvalue *)(uintptr_t)a->ask->values.data;
  for (uint64_t i = 0; i < a->ask->values.count && r->kind != HEDDLE__REGION_REORDER; i++) {
    values[i].layout = 0;
    values[i].room = 0;
  }
  const heddle_status s = heddle__ask(plan, r->device, a, err);
  if (s != HEDDLE_OK) return s;
  uint32_t k = 0;
  while (k < a->n_offers && !serves(&a->offers[k], was, r)) k++;
  if (k == a->n_offers) return refuse(r->label, "is offered in another way than for the bound", err);
  set_layouts(plan, r, a->ask, was);
  r->ask = a->ask;
  for (uint32_t i = 0; i < a->n_offers; i++) a->offers[i].flags &= ~HEDDLE_OFFER_RESIZES; /* it is for these shapes */
  r->offers = a->offers;
  r->n_offers = a->n_offers;
  r->offer = k;
  return HEDDLE_OK;
}

/* The region with its new shapes. Where its launches can be resized, the root's operator and offer serve. */
static heddle_status size_region(sizing *z, heddle__region *r, heddle_error *err) {
  heddle__plan *plan = z->plan;
  const heddle__offer *was = &r->offers[r->offer];
  const heddle_pvalue *before = r->ask->values.data;
  heddle__answer a;
  heddle_status s;
  if (r->kind == HEDDLE__REGION_REORDER)
    s = heddle__ask_reorder(plan, r->inputs[0], before[0].layout, before[1].layout, &a, err);
  else s = heddle__ask_build(plan, r->nodes, r->n_nodes, r->n_nodes > 1 ? z->users : NULL, &a, err);
  if (s != HEDDLE_OK) return s;
  if (a.ask->n_inputs != r->n_inputs || a.ask->n_outputs != r->n_outputs)
    return refuse(r->label, "has other operands than for the bound", err);
  if ((was->flags & HEDDLE_OFFER_RESIZES) == 0) return choose_again(plan, r, &a, err);
  set_layouts(plan, r, a.ask, was);
  r->ask = a.ask;
  return HEDDLE_OK;
}

/* In the root's order, in which values come after what they are reordered from. */
static heddle_status size_regions(sizing *z, heddle_error *err) {
  heddle__plan *plan = z->plan;
  heddle__region *regions = heddle__plan_alloc(plan, plan->n_regions, sizeof *regions);
  bool *has_step = heddle__plan_alloc(plan, plan->n_regions, sizeof *has_step);
  z->users = heddle__count_users(plan);
  if (regions == NULL || has_step == NULL || z->users == NULL) return heddle__no_memory(err, "regions");
  if (plan->n_regions > 0) memcpy(regions, plan->regions, plan->n_regions * sizeof *regions);
  plan->regions = regions;
  for (uint32_t i = 0; i < plan->n_steps; i++)
    if (plan->steps[i].kind == HEDDLE__STEP_OP) has_step[plan->steps[i].region] = true;
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < plan->n_values; i++)
    if (plan->values[i].kind == HEDDLE__VALUE_INPUT && z->changed[i])
      plan->values[i].size = plan->values[i].known.bytes;
  for (uint32_t i = 0; i < plan->n_regions && s == HEDDLE_OK; i++) {
    heddle__region *r = &regions[i];
    if (!is_changed(z, r)) continue;
    if (r->kind == HEDDLE__REGION_REORDER) {
      plan->values[r->outputs[0]].known = plan->values[r->inputs[0]].known;
      plan->values[r->outputs[0]].known.data = NULL;
      z->changed[r->outputs[0]] = true;
    }
    if (has_step[i]) s = size_region(z, r, err);
    for (uint32_t k = 0; k < r->n_outputs && s == HEDDLE_OK; k++)
      if (z->changed[r->outputs[k]]) s = heddle__value_measure(plan, r->outputs[k], r->device, err);
  }
  return s;
}

/* ---- instances */

static heddle_status size_instances(sizing *z, heddle_error *err) {
  heddle__plan *plan = z->plan;
  heddle__instance *instances = heddle__plan_alloc(plan, plan->n_instances, sizeof *instances);
  if (instances == NULL) return heddle__no_memory(err, "the values of a plan");
  if (plan->n_instances > 0) memcpy(instances, plan->instances, plan->n_instances * sizeof *instances);
  for (uint32_t i = 0; i < plan->n_instances; i++) {
    heddle__instance *it = &instances[i];
    if (it->value == HEDDLE__NONE || !z->changed[it->value] || heddle__instance_room(plan, i) > 0) continue;
    const heddle__value *v = &plan->values[it->value];
    if (v->size > it->bytes) return refuse(v->name, "needs more memory than for the bound", err);
    it->bytes = v->size;
  }
  plan->instances = instances;
  return HEDDLE_OK;
}

static heddle_status make_plan(const heddle__plan *root, const heddle__order *order, const bool *open,
                               heddle__plan **out, heddle_error *err) {
  heddle__plan *plan = heddle__alloc(1, sizeof *plan);
  if (plan == NULL) return heddle__no_memory(err, "a plan");
  plan->req = root->req;
  plan->req.inputs = order->req.inputs;
  plan->req.open = false;
  plan->req.bounds = root->req.inputs;
  plan->schemas = root->schemas;
  heddle_status s = heddle__pass_infer(plan, err);
  sizing z = {.root = root, .plan = plan, .open = open};
  if (s == HEDDLE_OK) s = take_inferred(&z, err);
  if (s == HEDDLE_OK) {
    heddle__plan whole = *root; /* what is the root's is used where it lies */
    whole.req = plan->req;
    whole.arena = plan->arena;
    whole.values = plan->values;
    whole.local_of = NULL;
    memset(whole.pass_ns, 0, sizeof whole.pass_ns);
    *plan = whole;
    s = size_regions(&z, err);
  }
  if (s == HEDDLE_OK) s = size_instances(&z, err);
  if (s != HEDDLE_OK) {
    heddle__plan_free(plan);
    return s;
  }
  *out = plan;
  return HEDDLE_OK;
}

/* ---- the program */

heddle_status heddle__program_resize(heddle_model *m, heddle__program *root, heddle__order *order, const bool *open,
                                     heddle__program **out, heddle_error *err) {
  *out = NULL;
  heddle__program *p = heddle__alloc(1, sizeof *p);
  if (p == NULL) return heddle__no_memory(err, "a program");
  atomic_init(&p->references, 1);
  p->model = m;
  p->root = heddle__program_retain(root);
  p->packed = root->packed;
  p->order = root->order;
  p->segments = root->segments;
  p->gates = root->gates;
  p->lanes = root->lanes;
  p->n_segments = root->n_segments;
  heddle_status s = make_plan(root->plan, order, open, &p->plan, err);
  if (s == HEDDLE_OK) s = heddle__optimize_check(m, p->plan, err);
  if (s == HEDDLE_OK) {
    p->ops = heddle__alloc(p->plan->n_regions, sizeof *p->ops);
    p->late = heddle__alloc(p->plan->n_regions, sizeof *p->late);
    p->has_lock = pthread_mutex_init(&p->lock, NULL) == 0;
    if (p->ops == NULL || p->late == NULL || !p->has_lock) s = heddle__no_memory(err, "a program");
  }
  if (s == HEDDLE_OK) s = heddle__program_prepare(p, err);
  if (s != HEDDLE_OK) {
    heddle__program_release(p);
    return s;
  }
  p->order_of = order;
  *out = p;
  return HEDDLE_OK;
}

heddle_status heddle__program_late(heddle__program *p, uint32_t region, heddle_error *err) {
  heddle__plan *plan = p->plan;
  pthread_mutex_lock(&p->lock);
  heddle_status s = HEDDLE_OK;
  if (atomic_load_explicit(&p->late[region], memory_order_relaxed) == NULL) {
    heddle__region r = plan->regions[region]; /* what others read stays as it is */
    heddle__answer a = {.ask = heddle__plan_alloc(plan, 1, sizeof *a.ask)};
    heddle_pvalue *values = heddle__plan_alloc(plan, r.ask->values.count, sizeof *values);
    heddle_pop *op = NULL;
    if (a.ask == NULL || values == NULL) s = heddle__no_memory(err, "a region");
    if (s == HEDDLE_OK) {
      *a.ask = *r.ask;
      memcpy(values, r.ask->values.data, r.ask->values.count * sizeof *values);
      a.ask->values.data = values;
      s = choose_again(plan, &r, &a, err);
    }
    if (s == HEDDLE_OK) s = heddle__region_prepare(p, &r, &op, err);
    if (s == HEDDLE_OK) atomic_store_explicit(&p->late[region], op, memory_order_release);
  }
  pthread_mutex_unlock(&p->lock);
  return s;
}

/* ---- what is bound */

/* Whether a step goes on with what is bound for it: its launch is resized, its copy gets another number of bytes. What is
 * bound may be older than the program that ran last: it is there twice where state values change places. Of shapes, those
 * of the root alone never change. */
static bool adapt(heddle__bound *b, heddle__action *a) {
  const heddle__program *p = b->program;
  const heddle__plan *plan = p->plan;
  const heddle__step *step = &plan->steps[a->step];
  if (step->kind == HEDDLE__STEP_OP) {
    const heddle_pregion *ask = plan->regions[step->region].ask;
    const heddle__plan *root = p->root != NULL ? p->root->plan : plan;
    if (a->prepared != heddle__program_op(p, step->region)) return false;
    return (a->sized == ask && ask == root->regions[step->region].ask) ||
           heddle__action_resize(b, a, NULL) == HEDDLE_OK;
  }
  if (step->kind == HEDDLE__STEP_FINISH) return true;
  const uint32_t end = step->dst != HEDDLE__NONE ? step->dst : step->src;
  const uint64_t now = plan->instances[end].bytes;
  if (step->kind == HEDDLE__STEP_RELEASE || step->kind == HEDDLE__STEP_ACQUIRE) {
    a->bytes = b->memory[plan->instances[end].alloc]->coherent ? 0 : now;
    return true;
  }
  if (now != a->bytes && (now == 0 || a->bytes == 0)) return false; /* what is empty has no handle */
  a->bytes = now;
  return true;
}

void heddle__bound_adapt(heddle__bound *b) {
  const heddle__program *program = b->program;
  const bool has_parts = b->n_parts > 0; /* views of buffers have sizes of their own */
  if (b->adapted == b->retargets) return;
  b->adapted = b->retargets;
  for (uint32_t i = 0; i < program->n_segments; i++) {
    heddle__stretch *x = &b->stretches[i];
    x->stale = x->stale || has_parts || x->graph != NULL;
    if (x->graph != NULL && !has_parts) heddle__stretch_forget(b, i);
    else if (x->stale) heddle__stretch_unbind(b, i);
    for (uint32_t k = 0; k < x->count; k++) {
      if (program->plan->steps[x->actions[k].step].kind == HEDDLE__STEP_OP && x->actions[k].launch == NULL) continue;
      if (adapt(b, &x->actions[k])) continue;
      heddle__action_unbind(&x->actions[k]);
      x->stale = true;
    }
    b->stale = b->stale || x->stale;
  }
  heddle__bound_drop_parts(b);
}

void heddle__bound_retarget(heddle__bound *b, heddle__program *program) {
  heddle__program *before = b->program;
  b->program = heddle__program_retain(program);
  b->retargets++;
  heddle__bound_adapt(b);
  heddle__program_release(before);
}

void heddle__bound_forget_late(heddle__bound *b, heddle__program *p) {
  bool any = false;
  for (uint32_t i = 0; p->late != NULL && i < p->plan->n_regions && !any; i++) any = atomic_load(&p->late[i]) != NULL;
  if (!any) return;
  heddle__bound_drop_other(b);
  for (uint32_t i = 0; i < p->n_segments; i++) {
    heddle__stretch *x = &b->stretches[i];
    for (uint32_t k = 0; k < x->count; k++) {
      heddle__action *a = &x->actions[k];
      const heddle__step *step = &p->plan->steps[a->step];
      if (step->kind != HEDDLE__STEP_OP || a->launch == NULL || a->prepared != atomic_load(&p->late[step->region]))
        continue;
      heddle__stretch_forget(b, i);
      heddle__action_unbind(a);
      b->stale = x->stale = true;
    }
  }
  heddle__program_forget_late(p);
}
