/* executor/precedent.c: keeps which nodes formed regions, for later plans of the same class of shapes. */
#include "executor/precedent.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"
#include "executor/model.h"

enum { MOST_PRECEDENTS = 64 }; /* a model's: classes are few, since a dimension has one for each power of two */

/* ---- made of a plan */

void heddle__precedent_release(heddle__precedent *p) {
  if (p == NULL || atomic_fetch_sub_explicit(&p->references, 1, memory_order_acq_rel) != 1) return;
  heddle__free(p->key);
  heddle__free(p->device);
  heddle__free(p->group_of);
  heddle__free(p->idle);
  heddle__free(p->first);
  heddle__free(p->nodes);
  heddle__free(p);
}

static bool is_group(const heddle__region *r) {
  return r->kind == HEDDLE__REGION_OP && r->n_nodes > 1;
}

static bool allocate(heddle__precedent *p, const heddle__plan *plan, size_t key_bytes) {
  uint32_t n_nodes = 0, n_groups = 0;
  for (uint32_t i = 0; i < plan->n_regions; i++) {
    if (!is_group(&plan->regions[i])) continue;
    n_nodes += plan->regions[i].n_nodes;
    n_groups++;
  }
  p->key = heddle__alloc(key_bytes, 1);
  p->device = heddle__alloc(plan->n_placed, sizeof *p->device);
  p->group_of = heddle__alloc(plan->n_placed, sizeof *p->group_of);
  p->idle = heddle__alloc(plan->n_placed, sizeof *p->idle);
  p->first = heddle__alloc((size_t)n_groups + 1, sizeof *p->first);
  p->nodes = heddle__alloc(n_nodes, sizeof *p->nodes);
  return p->key != NULL && p->device != NULL && p->group_of != NULL && p->idle != NULL && p->first != NULL &&
         p->nodes != NULL;
}

static heddle__precedent *make(const heddle__order *order, const heddle__plan *plan) {
  heddle__precedent *p = heddle__alloc(1, sizeof *p);
  if (p == NULL) return NULL;
  atomic_init(&p->references, 1);
  if (!allocate(p, plan, order->class_bytes)) {
    heddle__precedent_release(p);
    return NULL;
  }
  p->graph = plan->req.graph;
  memcpy(p->key, order->class_key, order->class_bytes);
  p->key_bytes = order->class_bytes;
  for (uint32_t i = 0; i < plan->n_placed; i++) {
    p->device[i] = plan->placed[i].device;
    p->group_of[i] = HEDDLE__NONE;
  }
  uint32_t at = 0;
  for (uint32_t i = 0; i < plan->n_regions; i++) {
    const heddle__region *r = &plan->regions[i];
    if (r->kind == HEDDLE__REGION_OP && r->n_nodes == 1) p->idle[r->nodes[0]] = true;
    if (!is_group(r)) continue;
    for (uint32_t k = 0; k < r->n_nodes; k++) {
      p->group_of[r->nodes[k]] = p->n_groups;
      p->nodes[at++] = r->nodes[k];
    }
    p->first[++p->n_groups] = at;
  }
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    if (plan->steps[i].kind != HEDDLE__STEP_OP) continue;
    const heddle__region *r = &plan->regions[plan->steps[i].region];
    if (r->n_nodes == 1) p->idle[r->nodes[0]] = false;
  }
  return p;
}

/* ---- the model's list, last made first */

static bool is_of(const heddle__precedent *p, const heddle__order *o, const heddle_graph *graph) {
  return p->graph == graph && p->key_bytes == o->class_bytes && memcmp(p->key, o->class_key, p->key_bytes) == 0;
}

/* What places by measurement, by limits or by a library's functions looks at the shapes themselves, and a graph with
 * another head is the order's own. */
bool heddle__precedent_usable(const heddle__order *o) {
  const heddle__request *r = &o->req;
  return r->graph != &o->view && r->placer == NULL && r->limits == NULL && r->library == NULL;
}

heddle__precedent *heddle__precedent_find(heddle_model *m, const heddle__order *order) {
  heddle__precedent *found = NULL;
  if (!HEDDLE_HAS_RANGES || !heddle__precedent_usable(order)) return NULL;
  pthread_mutex_lock(&m->lock);
  for (heddle__precedent *p = m->precedents; p != NULL && found == NULL; p = p->next)
    if (is_of(p, order, order->req.graph)) found = p;
  if (found != NULL) atomic_fetch_add_explicit(&found->references, 1, memory_order_relaxed);
  pthread_mutex_unlock(&m->lock);
  return found;
}

void heddle__precedent_learn(heddle_model *m, const heddle__order *order, const heddle__plan *plan) {
  heddle__precedent *mine = NULL, *dropped = NULL;
  if (HEDDLE_HAS_RANGES && heddle__precedent_usable(order)) mine = make(order, plan);
  if (!HEDDLE_HAS_RANGES || mine == NULL) return;
  uint32_t count = 0;
  pthread_mutex_lock(&m->lock);
  mine->next = m->precedents;
  m->precedents = mine;
  for (heddle__precedent **link = &mine->next; *link != NULL && dropped == NULL;) {
    heddle__precedent *p = *link;
    if (!is_of(p, order, mine->graph) && ++count < MOST_PRECEDENTS) {
      link = &p->next;
      continue;
    }
    *link = p->next;
    dropped = p;
  }
  pthread_mutex_unlock(&m->lock);
  heddle__precedent_release(dropped);
}

/* ---- followed by a plan */

uint32_t heddle__precedent_device(const heddle__plan *plan, uint32_t node, uint32_t wanted) {
  const heddle__precedent *p = plan->req.precedent;
  if (!HEDDLE_HAS_RANGES || p == NULL || (p->group_of[node] == HEDDLE__NONE && !p->idle[node])) return HEDDLE__NONE;
  return p->device[node] == (wanted != HEDDLE__NONE ? wanted : 0) ? p->device[node] : HEDDLE__NONE;
}

static heddle_status depart(const heddle__plan *plan, uint32_t node, heddle_error *err) {
  return heddle__fail(err, HEDDLE_EUNSUPPORTED, "node '%s' is on another device than for earlier shapes",
                      plan->req.graph->nodes[node].name);
}

/* The nodes as they are in the plan's memory. */
static heddle_status take_nodes(const heddle__grouping *all, const uint32_t *from, uint32_t count, const uint32_t **out,
                                heddle_error *err) {
  uint32_t *nodes = heddle__plan_alloc(all->plan, count, sizeof *nodes);
  if (nodes == NULL) return heddle__no_memory(err, "regions");
  for (uint32_t i = 0; i < count; i++) {
    nodes[i] = from[i];
    if (all->group_of[from[i]] == HEDDLE__NONE) return depart(all->plan, from[i], err);
  }
  *out = nodes;
  return HEDDLE_OK;
}

heddle_status heddle__precedent_join(heddle__grouping *all, heddle_error *err) {
  heddle__plan *plan = all->plan;
  const heddle__precedent *p = plan->req.precedent;
  for (uint32_t i = 0; i < plan->n_placed; i++)
    if (plan->placed[i].device != p->device[i]) return depart(plan, i, err);
  for (uint32_t i = 0; i < p->n_groups; i++) {
    const uint32_t count = p->first[i + 1] - p->first[i], device = p->device[p->nodes[p->first[i]]];
    const uint32_t *nodes = NULL;
    heddle__answer answer;
    heddle_status s = take_nodes(all, &p->nodes[p->first[i]], count, &nodes, err);
    if (s == HEDDLE_OK) s = heddle__ask_build(plan, nodes, count, all->users, &answer, err);
    if (s == HEDDLE_OK) s = heddle__ask(plan, device, &answer, err);
    if (s != HEDDLE_OK) return s;
    heddle__group_join(all, nodes, count, &answer);
  }
  return HEDDLE_OK;
}

heddle_status heddle__precedent_idle(heddle__plan *plan, heddle__answer *answer, heddle_error *err) {
  const heddle_pregion *r = answer->ask;
  heddle__offer *o = heddle__plan_alloc(plan, 1, sizeof *o);
  heddle_layout *in = heddle__plan_alloc(plan, r->n_inputs, sizeof *in);
  heddle_layout *out = heddle__plan_alloc(plan, r->n_outputs, sizeof *out);
  uint32_t *flags = heddle__plan_alloc(plan, r->n_inputs, sizeof *flags);
  int32_t *in_place = heddle__plan_alloc(plan, 0, sizeof *in_place);
  if (o == NULL || in == NULL || out == NULL || flags == NULL || in_place == NULL)
    return heddle__no_memory(err, "an offer");
  for (uint32_t i = 0; i < r->n_inputs; i++) flags[i] = HEDDLE_INPUT_ABSORBED;
  *o = (heddle__offer){.input_layouts = in,
                       .output_layouts = out,
                       .input_flags = flags,
                       .in_place = in_place,
                       .extends = in_place,
                       .workspace_align = 1};
  answer->offers = o;
  answer->n_offers = 1;
  return HEDDLE_OK;
}
