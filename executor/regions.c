/* executor/regions.c: the pass that groups nodes into regions, one of one node each unless a plugin proposes more, and
 * puts the regions into an order in which they can run. Views become regions without a step.
 * A proposal that is not connected, would make the regions cyclic, or overlaps another is refused and logged. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "executor/ask.h"
#include "executor/foreign.h"

typedef struct group {
  uint32_t *nodes; /* ascending */
  uint32_t count;
  uint32_t device;
  bool is_view;
  heddle__answer answer; /* of more than one node; of one node it is in placed */
} group;

typedef struct builder {
  heddle__plan *plan;
  uint32_t *group_of; /* per node; HEDDLE__NONE: not in the plan */
  group *groups;
  uint32_t n_groups;
  const uint32_t *users;
  uint32_t *mark; /* per node, for walks */
  uint32_t stamp;
  uint32_t device;       /* the one that is proposing */
  const uint32_t *asked; /* graph nodes of the region that it was shown */
  uint32_t n_asked;
} builder;

/* Kahn's algorithm over the groups, the smallest first node first (a binary heap), so that the order is the file's
 * wherever it can be. order gets n_groups numbers; false when there is a cycle. */
typedef struct heap {
  uint32_t *items;
  uint32_t count;
  const group *groups;
} heap;

static bool before(const heap *h, uint32_t a, uint32_t b) {
  return h->groups[a].nodes[0] < h->groups[b].nodes[0];
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
static heddle_status order_groups(builder *b, uint32_t *order, bool *acyclic, heddle_error *err) {
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
    heap h = {items, 0, b->groups};
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

/* ---------------------------------------------------------------- proposals */

static void refuse(builder *b, const char *why) {
  heddle__plan *plan = b->plan;
  heddle__logf(heddle__context_log(plan->req.ctx), HEDDLE_LOG_WARN, "plan", "%s proposed a region that %s: refused",
               plan->devices[b->device].dev->name, why);
}

/* Connected over the graph's edges, in whichever direction. nodes are marked with the stamp when reached. */
static bool connected(builder *b, const uint32_t *nodes, uint32_t count) {
  const heddle_graph *g = b->plan->req.graph;
  uint32_t inside = ++b->stamp, reached = ++b->stamp;
  for (uint32_t i = 0; i < count; i++) b->mark[nodes[i]] = inside;
  b->mark[nodes[0]] = reached;
  for (bool grew = true; grew;) {
    grew = false;
    for (uint32_t i = 0; i < count; i++) {
      const heddle__node *n = &g->nodes[nodes[i]];
      for (uint32_t k = 0; k < n->n_inputs; k++) {
        uint32_t source = n->inputs[k].node;
        if (source == HEDDLE__ABSENT || (b->mark[source] != inside && b->mark[source] != reached)) continue;
        if (b->mark[source] == b->mark[nodes[i]]) continue;
        b->mark[source] = b->mark[nodes[i]] = reached;
        grew = true;
      }
    }
  }
  for (uint32_t i = 0; i < count; i++) {
    if (b->mark[nodes[i]] != reached) return false;
  }
  return true;
}

/* Makes one group of the nodes' own groups, if the regions stay acyclic. */
static heddle_status merge(builder *b, const uint32_t *nodes, uint32_t count, heddle_error *err) {
  uint32_t keep = b->group_of[nodes[0]], old_groups = b->n_groups;
  size_t saved = (size_t)old_groups * sizeof *b->groups;
  size_t n_nodes = b->plan->req.graph->n_nodes;
  group *groups = heddle__alloc(old_groups, sizeof *groups);
  uint32_t *group_of = heddle__alloc(n_nodes, sizeof *group_of);
  uint32_t *order = heddle__alloc(old_groups, sizeof *order);
  bool acyclic = false;
  heddle_status s = groups && group_of && order ? HEDDLE_OK : heddle__no_memory(err, "a proposal");
  if (s == HEDDLE_OK) {
    memcpy(groups, b->groups, saved);
    memcpy(group_of, b->group_of, n_nodes * sizeof *group_of);
    uint32_t *list = heddle__plan_alloc(b->plan, count, sizeof *list);
    if (list == NULL) s = heddle__no_memory(err, "a proposal");
    if (s == HEDDLE_OK) {
      memcpy(list, nodes, count * sizeof *list);
      for (uint32_t i = 1; i < count; i++) { /* the last group takes the place of the one that goes */
        uint32_t gone = b->group_of[nodes[i]], last = --b->n_groups;
        if (gone != last) {
          b->groups[gone] = b->groups[last];
          for (uint32_t k = 0; k < b->groups[gone].count; k++) b->group_of[b->groups[gone].nodes[k]] = gone;
        }
        if (keep == last) keep = gone;
      }
      b->groups[keep].nodes = list;
      b->groups[keep].count = count;
      for (uint32_t i = 0; i < count; i++) b->group_of[list[i]] = keep;
      s = order_groups(b, order, &acyclic, err);
    }
    if (s == HEDDLE_OK && acyclic) {
      s = heddle__ask_build(b->plan, list, count, b->users, &b->groups[keep].answer, err);
      heddle_error why = {0};
      if (s == HEDDLE_OK) s = heddle__ask(b->plan, b->device, &b->groups[keep].answer, &why);
      if (s == HEDDLE_EUNSUPPORTED) {
        refuse(b, "it then would not run");
        acyclic = false;
        s = HEDDLE_OK;
      } else if (s != HEDDLE_OK && why.status != 0 && err != NULL) {
        *err = why;
      }
    } else if (s == HEDDLE_OK) {
      refuse(b, "a path leaves and enters again");
    }
    if (s != HEDDLE_OK || !acyclic) {
      memcpy(b->groups, groups, saved);
      memcpy(b->group_of, group_of, n_nodes * sizeof *group_of);
      b->n_groups = old_groups;
    }
  }
  heddle__free(groups);
  heddle__free(group_of);
  heddle__free(order);
  return s;
}

static heddle_status take_proposal(void *sink, const uint32_t *local, uint32_t count, heddle_error *err) {
  builder *b = sink;
  if (count < 2) return HEDDLE_OK;
  uint32_t *nodes = heddle__alloc(count, sizeof *nodes);
  if (nodes == NULL) return heddle__no_memory(err, "a proposal");
  const char *wrong = NULL;
  for (uint32_t i = 0; i < count && wrong == NULL; i++) {
    if (local[i] >= b->n_asked) {
      wrong = "names a node it was not shown";
    } else {
      uint32_t x = b->asked[local[i]], k = i; /* keeps them ascending: plugins propose a few, mostly in order */
      for (; k > 0 && nodes[k - 1] > x; k--) nodes[k] = nodes[k - 1];
      nodes[k] = x;
      if (k > 0 && nodes[k - 1] == x) wrong = "names a node twice";
      else if (b->groups[b->group_of[x]].count != 1) wrong = "overlaps another";
    }
  }
  if (wrong == NULL && !connected(b, nodes, count)) wrong = "is not connected";
  heddle_status s = HEDDLE_OK;
  if (wrong != NULL) refuse(b, wrong);
  else s = merge(b, nodes, count, err);
  heddle__free(nodes);
  return s;
}

static heddle_status hear_proposals(builder *b, uint32_t device, heddle_error *err) {
  heddle__plan *plan = b->plan;
  heddle_device *dev = plan->devices[device].dev;
  if (!dev->t->has_op || dev->t->op.partition == NULL) return HEDDLE_OK;
  uint32_t *asked = heddle__plan_alloc(plan, plan->n_placed, sizeof *asked);
  if (asked == NULL) return heddle__no_memory(err, "a partition");
  b->n_asked = 0;
  for (uint32_t i = 0; i < plan->n_placed; i++) {
    if (plan->placed[i].device != device || plan->placed[i].ask == NULL) continue;
    if (plan->req.graph->nodes[i].kind == HEDDLE__NODE_OP) asked[b->n_asked++] = i;
  }
  if (b->n_asked < 2) return HEDDLE_OK;
  b->asked = asked;
  b->device = device;
  heddle__answer all;
  heddle_status s = heddle__ask_build(plan, asked, b->n_asked, b->users, &all, err);
  if (s != HEDDLE_OK) return s;
  s = dev->t->op.partition(dev->instance, dev->index, all.ask, take_proposal, b, err);
  if (s == HEDDLE_ENEEDSOPEN) {
    s = heddle__device_open(dev, err);
    if (s != HEDDLE_OK) return s;
    s = dev->t->op.partition(dev->instance, dev->index, all.ask, take_proposal, b, err);
    heddle__device_close(dev);
  }
  return s == HEDDLE_OK ? s : heddle__prefix(err, s, "partition on %s: ", dev->name);
}

/* ---------------------------------------------------------------- the pass */

static heddle_status make_region(builder *b, const group *q, uint32_t number, heddle_error *err) {
  heddle__plan *plan = b->plan;
  const heddle_graph *g = plan->req.graph;
  heddle__region *r = &plan->regions[number];
  const heddle__node *first = &g->nodes[q->nodes[0]];
  r->device = q->device;
  r->nodes = q->nodes;
  r->n_nodes = q->count;
  r->stream = first->stream;
  r->label = first->name;
  for (uint32_t i = 1; i < q->count; i++) {
    r->label = heddle__plan_format(plan, "%s+%s", r->label, g->nodes[q->nodes[i]].name);
    if (r->label == NULL) return heddle__no_memory(err, "a region's name");
  }
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

heddle_status heddle__pass_regions(heddle__plan *plan, heddle_error *err) {
  const heddle_graph *g = plan->req.graph;
  builder b = {.plan = plan};
  uint32_t *self = heddle__plan_alloc(plan, g->n_nodes, sizeof *self);
  b.group_of = heddle__plan_alloc(plan, g->n_nodes, sizeof *b.group_of);
  b.groups = heddle__plan_alloc(plan, g->n_nodes, sizeof *b.groups);
  b.mark = heddle__plan_alloc(plan, g->n_nodes, sizeof *b.mark);
  b.users = heddle__count_users(plan);
  uint32_t *order = heddle__plan_alloc(plan, g->n_nodes, sizeof *order);
  if (!self || !b.group_of || !b.groups || !b.mark || !b.users || !order) return heddle__no_memory(err, "regions");
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    self[i] = i;
    b.group_of[i] = HEDDLE__NONE;
    if (plan->placed[i].device == HEDDLE__NONE) continue;
    b.group_of[i] = b.n_groups;
    b.groups[b.n_groups++] = (group){.nodes = &self[i],
                                     .count = 1,
                                     .device = plan->placed[i].device,
                                     .is_view = heddle__node_is_view(g, &g->nodes[i])};
  }
  heddle_status s = HEDDLE_OK;
  for (uint32_t d = 0; s == HEDDLE_OK && d < plan->n_devices; d++) {
    if (plan->devices[d].used) s = hear_proposals(&b, d, err);
  }
  bool acyclic = true;
  if (s == HEDDLE_OK) s = order_groups(&b, order, &acyclic, err);
  if (s != HEDDLE_OK) return s;
  if (!acyclic) return heddle__fail(err, HEDDLE_EINTERNAL, "%s: the regions are cyclic", g->source);
  plan->n_regions = b.n_groups;
  plan->regions = heddle__plan_alloc(plan, b.n_groups, sizeof *plan->regions);
  if (plan->regions == NULL) return heddle__no_memory(err, "regions");
  for (uint32_t i = 0; s == HEDDLE_OK && i < b.n_groups; i++) s = make_region(&b, &b.groups[order[i]], i, err);
  return s;
}
