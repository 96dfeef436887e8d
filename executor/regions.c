/* executor/regions.c: the pass that groups nodes into regions, one of one node each unless a plugin proposes more, and
 * puts the regions into an order in which they can run. Views become regions without a step. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"
#include "executor/foreign.h"
#include "executor/precedent.h"

/* Kahn's algorithm over the groups, the smallest first node first (a binary heap), so that the order is the file's, or
 * that of the request's rank, wherever it can be. order gets n_groups numbers; false when there is a cycle. */
typedef struct heap {
  uint32_t *items;
  uint32_t count;
  const heddle__group *groups;
  const uint32_t *rank; /* the request's */
} heap;

static bool before(const heap *h, uint32_t a, uint32_t b) {
  uint32_t x = h->groups[a].nodes[0], y = h->groups[b].nodes[0];
  if (h->rank != NULL && h->rank[x] != h->rank[y]) return h->rank[x] < h->rank[y];
  return x < y;
}

static void push(heap *h, uint32_t x) {
  uint32_t i = h->count++;
  while (i > 0 && before(h, x, h->items[(i - 1) / 2])) {
    h->items[i] = h->items[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  h->items[i] = x;
}

static uint32_t pop(heap *h) {
  uint32_t top = h->items[0], x = h->items[--h->count], i = 0;
  for (;;) {
    uint32_t k = 2 * i + 1;
    if (k >= h->count) break;
    if (k + 1 < h->count && before(h, h->items[k + 1], h->items[k])) k++;
    if (!before(h, h->items[k], x)) break;
    h->items[i] = h->items[k];
    i = k;
  }
  h->items[i] = x;
  return top;
}

/* Each edge between two groups counts as often as it occurs, on both sides of the bookkeeping. */
static heddle_status order_groups(const heddle__grouping *b, uint32_t *order, bool *acyclic, heddle_error *err) {
  heddle__plan *plan = b->plan;
  const heddle_graph *g = plan->req.graph;
  uint32_t n = b->n_groups, edges = 0;
  for (uint32_t i = 0; i < g->n_nodes; i++) edges += g->nodes[i].n_inputs;
  uint32_t *waits = heddle__alloc((size_t)n + 1, sizeof *waits);
  uint32_t *first = heddle__alloc((size_t)n + 2, sizeof *first);
  uint32_t *next = heddle__alloc((size_t)edges + 1, sizeof *next);
  uint32_t *items = heddle__alloc((size_t)n + 1, sizeof *items);
  heddle_status s = waits && first && next && items ? HEDDLE_OK : heddle__no_memory(err, "the order of regions");
  for (int fill = 0; s == HEDDLE_OK && fill < 2; fill++) {
    for (uint32_t i = 0; i < g->n_nodes; i++) {
      uint32_t to = b->group_of[i];
      if (to == HEDDLE__NONE) continue;
      for (uint32_t k = 0; k < g->nodes[i].n_inputs; k++) {
        uint32_t source = g->nodes[i].inputs[k].node;
        uint32_t from = source == HEDDLE__ABSENT ? HEDDLE__NONE : b->group_of[source];
        if (from == HEDDLE__NONE || from == to) continue;
        if (fill == 0) {
          first[from + 2]++;
          waits[to]++;
        } else {
          next[first[from + 1]++] = to;
        }
      }
    }
    for (uint32_t i = 0; fill == 0 && i < n; i++) first[i + 2] += first[i + 1];
  }
  if (s == HEDDLE_OK) {
    heap h = {items, 0, b->groups, plan->req.rank};
    uint32_t done = 0;
    for (uint32_t i = 0; i < n; i++) {
      if (waits[i] == 0) push(&h, i);
    }
    while (h.count > 0) {
      uint32_t x = pop(&h);
      order[done++] = x;
      for (uint32_t k = first[x]; k < first[x + 1]; k++) {
        if (--waits[next[k]] == 0) push(&h, next[k]);
      }
    }
    *acyclic = done == n;
  }
  heddle__free(waits);
  heddle__free(first);
  heddle__free(next);
  heddle__free(items);
  return s;
}

/* ---------------------------------------------------------------- the pass */

/* The names of its nodes, joined with '+'. */
static const char *label_of(heddle__plan *plan, const heddle__group *q) {
  const heddle__node *nodes = plan->req.graph->nodes;
  if (q->count == 1) return nodes[q->nodes[0]].name;
  size_t bytes = 0;
  for (uint32_t i = 0; i < q->count; i++) bytes += strlen(nodes[q->nodes[i]].name) + 1;
  char *text = heddle__plan_alloc(plan, bytes, 1), *at = text;
  for (uint32_t i = 0; text != NULL && i < q->count; i++) {
    size_t n = strlen(nodes[q->nodes[i]].name);
    memcpy(at, nodes[q->nodes[i]].name, n);
    at += n;
    *at++ = i + 1 < q->count ? '+' : '\0';
  }
  return text;
}

static heddle_status make_region(const heddle__grouping *b, const heddle__group *q, uint32_t number,
                                 heddle_error *err) {
  heddle__plan *plan = b->plan;
  const heddle_graph *g = plan->req.graph;
  heddle__region *r = &plan->regions[number];
  const heddle__node *first = &g->nodes[q->nodes[0]];
  r->device = q->device;
  r->nodes = q->nodes;
  r->n_nodes = q->count;
  r->stream = first->stream;
  r->label = label_of(plan, q);
  if (r->label == NULL) return heddle__no_memory(err, "a region's name");
  heddle__answer a = q->answer;
  if (q->count == 1) {
    heddle__placed *p = &plan->placed[q->nodes[0]];
    heddle__answer one;
    heddle_status s = heddle__ask_build(plan, q->nodes, 1, NULL, &one, err);
    if (s != HEDDLE_OK) return s;
    a = one;
    a.ask = p->ask != NULL ? p->ask : one.ask;
    a.offers = p->offers;
    a.n_offers = p->n_offers;
    r->unasked = p->ask == NULL && !q->is_view && HEDDLE_HAS_RANGES && plan->req.precedent != NULL;
    if (r->unasked) s = heddle__precedent_idle(plan, &a, err);
    if (s != HEDDLE_OK) return s;
  }
  r->kind = q->is_view ? HEDDLE__REGION_VIEW : HEDDLE__REGION_OP;
  r->ask = q->is_view ? NULL : a.ask;
  r->inputs = a.inputs;
  r->outputs = a.outputs;
  r->n_inputs = q->is_view ? 1 : a.ask->n_inputs; /* of a view: the data; its shape operand was read already */
  r->n_outputs = a.ask->n_outputs;
  r->offers = a.offers;
  r->n_offers = a.n_offers;
  for (uint32_t i = 0; i < q->count; i++) {
    const heddle__node *n = &g->nodes[q->nodes[i]];
    for (uint32_t k = 0; k < n->n_outputs; k++) plan->values[n->first_entry + k].region = number;
  }
  if (first->kind == HEDDLE__NODE_TVM && !q->is_view) heddle__foreign_take(plan, r);
  if (q->is_view) {
    r->inputs[0] = heddle__entry_id(g, first->inputs[0]);
    plan->values[first->first_entry].same_as = plan->values[r->inputs[0]].same_as;
  }
  return HEDDLE_OK;
}

/* A group of its own for each node of the plan, numbered in the order of the nodes. */
static heddle_status make_groups(heddle__grouping *b, heddle_error *err) {
  heddle__plan *plan = b->plan;
  const heddle_graph *g = plan->req.graph;
  uint32_t *self = heddle__plan_alloc(plan, g->n_nodes, sizeof *self);
  b->group_of = heddle__plan_alloc(plan, g->n_nodes, sizeof *b->group_of);
  b->groups = heddle__plan_alloc(plan, g->n_nodes, sizeof *b->groups);
  b->users = heddle__count_users(plan);
  if (!self || !b->group_of || !b->groups || !b->users) return heddle__no_memory(err, "regions");
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    self[i] = i;
    b->group_of[i] = HEDDLE__NONE;
    if (plan->placed[i].device == HEDDLE__NONE) continue;
    b->group_of[i] = b->n_groups;
    b->groups[b->n_groups++] = (heddle__group){.nodes = &self[i],
                                               .count = 1,
                                               .device = plan->placed[i].device,
                                               .is_view = heddle__node_is_view(g, &g->nodes[i])};
  }
  return HEDDLE_OK;
}

/* Closes the gaps that joined groups left. */
static void renumber(heddle__grouping *b) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < b->n_groups; i++) {
    if (b->groups[i].count == 0) continue;
    for (uint32_t k = 0; k < b->groups[i].count; k++) b->group_of[b->groups[i].nodes[k]] = n;
    b->groups[n++] = b->groups[i];
  }
  b->n_groups = n;
}

heddle_status heddle__group_nodes(heddle__plan *plan, heddle__grouping *out, heddle_error *err) {
  *out = (heddle__grouping){.plan = plan};
  heddle_status s = make_groups(out, err);
  if (s != HEDDLE_OK) return s;
  return HEDDLE_HAS_RANGES && plan->req.precedent != NULL ? heddle__precedent_join(out, err)
                                                          : heddle__partition(out, err);
}

heddle_status heddle__pass_regions(heddle__plan *plan, heddle_error *err) {
  const heddle_graph *g = plan->req.graph;
  heddle__grouping b;
  heddle_status s = heddle__group_nodes(plan, &b, err);
  if (s != HEDDLE_OK) return s;
  renumber(&b);
  bool acyclic = true;
  uint32_t *order = heddle__plan_alloc(plan, b.n_groups, sizeof *order);
  plan->n_regions = b.n_groups;
  plan->regions = heddle__plan_alloc(plan, b.n_groups, sizeof *plan->regions);
  if (order == NULL || plan->regions == NULL) return heddle__no_memory(err, "regions");
  s = order_groups(&b, order, &acyclic, err);
  if (s != HEDDLE_OK) return s;
  if (!acyclic) return heddle__fail(err, HEDDLE_EINTERNAL, "%s: the regions are cyclic", g->source);
  for (uint32_t i = 0; s == HEDDLE_OK && i < b.n_groups; i++) s = make_region(&b, &b.groups[order[i]], i, err);
  return s;
}
