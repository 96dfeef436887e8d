/* executor/partition.c: plugins propose which nodes they want as one region; a proposal joins groups of one node each.
 * Groups are kept in a topological order, after Pearce and Kelly, "A dynamic topological sort algorithm for directed
 * acyclic graphs" (2006): a proposal is checked by walks that stay between its first and its last group in the order,
 * and only what they meet changes its place. */
#include "executor/partition.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/parts.h"
#include "core/registry.h"
#include "executor/recall.h"

void heddle__group_join(heddle__grouping *all, const uint32_t *nodes, uint32_t count, const heddle__answer *answer) {
  uint32_t keep = all->group_of[nodes[0]];
  for (uint32_t i = 1; i < count; i++) {
    all->groups[all->group_of[nodes[i]]].count = 0;
    all->group_of[nodes[i]] = keep;
  }
  all->groups[keep].nodes = nodes;
  all->groups[keep].count = count;
  all->groups[keep].answer = *answer;
}

#if HEDDLE_HAS_FUSION

typedef struct partition {
  heddle__grouping *all;
  uint32_t *asked; /* graph nodes of the region that the plugin was shown */
  uint32_t n_asked;
  uint32_t device;
  /* made for the first proposal: */
  uint32_t *first_user; /* per node: where its users begin in user */
  uint32_t *user;       /* nodes */
  uint32_t *position;   /* per group, each its own: an edge goes from a lower one to a higher one */
  uint32_t *seen;       /* per node, or per group: the last stamp */
  uint64_t *moved;      /* groups with positions, as key_of makes them; or a queue of nodes */
  uint64_t *slots;      /* likewise */
  uint32_t stamp;
  heddle_error failed; /* of a proposal; the plugin may have dropped it */
} partition;

static int compare_keys(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static int compare_nodes(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static uint64_t key_of(const partition *p, uint32_t group) {
  return (uint64_t)p->position[group] << 32 | group;
}

/* ---------------------------------------------------------------- the graph's edges */

/* The node at the other end of the k-th input of a node; HEDDLE__NONE where nothing of the plan is there. */
static uint32_t input_of(const partition *p, uint32_t node, uint32_t k) {
  uint32_t source = p->all->plan->req.graph->nodes[node].inputs[k].node;
  return source == HEDDLE__ABSENT || p->all->group_of[source] == HEDDLE__NONE ? HEDDLE__NONE : source;
}

static uint32_t degree(const partition *p, uint32_t node, bool forward) {
  if (forward) return p->first_user[node + 1] - p->first_user[node];
  return p->all->plan->req.graph->nodes[node].n_inputs;
}

static uint32_t neighbour(const partition *p, uint32_t node, bool forward, uint32_t k) {
  return forward ? p->user[p->first_user[node] + k] : input_of(p, node, k);
}

static void list_users(partition *p) {
  const heddle_graph *g = p->all->plan->req.graph;
  uint32_t *first = p->first_user;
  for (int fill = 0; fill < 2; fill++) {
    for (uint32_t i = 0; i < g->n_nodes; i++) {
      for (uint32_t k = 0; p->all->group_of[i] != HEDDLE__NONE && k < g->nodes[i].n_inputs; k++) {
        uint32_t source = input_of(p, i, k);
        if (source == HEDDLE__NONE) continue;
        if (fill == 0) first[source + 2]++;
        else p->user[first[source + 1]++] = i;
      }
    }
    for (uint32_t i = 0; fill == 0 && i < g->n_nodes; i++) first[i + 2] += first[i + 1];
  }
}

/* The reader of graphs sees to it that nodes come after their inputs, so the first order is that of the numbers. */
static heddle_status start(partition *p, heddle_error *err) {
  if (p->slots != NULL) return HEDDLE_OK;
  const heddle_graph *g = p->all->plan->req.graph;
  size_t n = g->n_nodes, edges = 0;
  for (size_t i = 0; i < n; i++) edges += g->nodes[i].n_inputs;
  p->first_user = heddle__alloc(n + 2, sizeof *p->first_user);
  p->user = heddle__alloc(edges + 1, sizeof *p->user);
  p->position = heddle__alloc(n, sizeof *p->position);
  p->seen = heddle__alloc(n, sizeof *p->seen);
  p->moved = heddle__alloc(n, sizeof *p->moved);
  p->slots = heddle__alloc(n, sizeof *p->slots);
  if (!p->first_user || !p->user || !p->position || !p->seen || !p->moved || !p->slots)
    return heddle__no_memory(err, "proposals");
  list_users(p);
  for (uint32_t i = 0; i < p->all->n_groups; i++) p->position[i] = i;
  return HEDDLE_OK;
}

static void finish(partition *p) {
  heddle__free(p->asked);
  heddle__free(p->first_user);
  heddle__free(p->user);
  heddle__free(p->position);
  heddle__free(p->seen);
  heddle__free(p->moved);
  heddle__free(p->slots);
}

/* ---------------------------------------------------------------- is it a region? */

/* Connected over the graph's edges, in whichever direction. */
static bool connected(partition *p, const uint32_t *nodes, uint32_t count) {
  uint32_t inside = ++p->stamp, reached = ++p->stamp, n = 1;
  uint64_t *queue = p->moved;
  for (uint32_t i = 0; i < count; i++) p->seen[nodes[i]] = inside;
  p->seen[nodes[0]] = reached;
  queue[0] = nodes[0];
  for (uint32_t done = 0; done < 2 * n; done++) { /* each twice: backward, forward */
    uint32_t x = (uint32_t)queue[done / 2];
    for (uint32_t k = 0; k < degree(p, x, done % 2 == 1); k++) {
      uint32_t y = neighbour(p, x, done % 2 == 1, k);
      if (y == HEDDLE__NONE || p->seen[y] != inside) continue;
      p->seen[y] = reached;
      queue[n++] = y;
    }
  }
  return n == count;
}

/* A walk over groups from a proposal, in one direction, as far as a position. */
typedef struct walk {
  bool forward;
  uint32_t bound;   /* not this position, nor beyond it */
  uint32_t members; /* the stamp of the proposal's groups */
  uint32_t stamp;
  uint64_t *found; /* keys of groups */
  uint32_t n;
} walk;

/* What is next to these nodes. false: a group of the proposal is, though they lie outside of it. */
static bool follow(partition *p, walk *w, const uint32_t *nodes, uint32_t count, bool inside) {
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t k = 0; k < degree(p, nodes[i], w->forward); k++) {
      uint32_t y = neighbour(p, nodes[i], w->forward, k);
      if (y == HEDDLE__NONE) continue;
      uint32_t to = p->all->group_of[y];
      p->all->plan->proposal_visits++;
      if (p->seen[to] == w->members) {
        if (!inside) return false;
      } else if (p->seen[to] != w->stamp && (w->forward ? p->position[to] < w->bound : p->position[to] > w->bound)) {
        p->seen[to] = w->stamp;
        w->found[w->n++] = key_of(p, to);
      }
    }
  }
  return true;
}

static bool take_walk(partition *p, walk *w, const uint32_t *nodes, uint32_t count) {
  bool apart = follow(p, w, nodes, count, true);
  for (uint32_t i = 0; apart && i < w->n; i++) {
    const heddle__group *q = &p->all->groups[(uint32_t)w->found[i]];
    apart = follow(p, w, q->nodes, q->count, false);
  }
  return apart;
}

/* false where a path leaves the proposal and enters it again. Such a path would have all its groups between the
 * proposal's first and last, since each edge goes up. Where nothing that comes after the proposal lies there, as with
 * chains, the proposal can have its last place, and there is no need to know what comes before it. */
static bool take_walks(partition *p, const uint32_t *nodes, uint32_t count, walk *forth, walk *back) {
  uint32_t members = ++p->stamp, low = UINT32_MAX, high = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t group = p->all->group_of[nodes[i]], at = p->position[group];
    p->seen[group] = members;
    if (at < low) low = at;
    if (at > high) high = at;
  }
  *forth = (walk){.forward = true, .bound = high, .members = members, .stamp = ++p->stamp, .found = p->moved};
  if (!take_walk(p, forth, nodes, count)) return false;
  *back = (walk){.bound = low, .members = members, .stamp = ++p->stamp, .found = p->moved + forth->n};
  return forth->n == 0 || take_walk(p, back, nodes, count);
}

/* ---------------------------------------------------------------- joining */

/* The places of all that was met and of the proposal are given out again: first to what comes before the proposal, each
 * part in its old order, then to the proposal, last to what comes after. So nothing that comes before goes up, and
 * nothing that comes after goes down. */
static void reorder(partition *p, const uint32_t *nodes, uint32_t count, const walk *forth, const walk *back) {
  const uint32_t *group_of = p->all->group_of;
  uint32_t met = forth->n + back->n, k = 0;
  if (forth->n == 0) {
    p->position[group_of[nodes[0]]] = forth->bound;
    return;
  }
  qsort(forth->found, forth->n, sizeof *forth->found, compare_keys);
  qsort(back->found, back->n, sizeof *back->found, compare_keys);
  memcpy(p->slots, p->moved, met * sizeof *p->slots);
  for (uint32_t i = 0; i < count; i++) p->slots[met + i] = key_of(p, group_of[nodes[i]]);
  qsort(p->slots, met + count, sizeof *p->slots, compare_keys);
  for (uint32_t i = 0; i < back->n; i++) p->position[(uint32_t)back->found[i]] = (uint32_t)(p->slots[k++] >> 32);
  p->position[group_of[nodes[0]]] = (uint32_t)(p->slots[k] >> 32);
  k += count;
  for (uint32_t i = 0; i < forth->n; i++) p->position[(uint32_t)forth->found[i]] = (uint32_t)(p->slots[k++] >> 32);
}

static void refuse(const partition *p, const char *why) {
  heddle__plan *plan = p->all->plan;
  heddle__logf(heddle__context_log(plan->req.ctx), HEDDLE_LOG_WARN, "plan", "%s proposed a region that %s: refused",
               plan->devices[p->device].dev->name, why);
}

/* nodes: the plan's memory. The plugin is asked before anything changes. */
static heddle_status merge(partition *p, const uint32_t *nodes, uint32_t count, heddle_error *err) {
  walk forth, back;
  if (!take_walks(p, nodes, count, &forth, &back)) {
    refuse(p, "a path leaves and enters again");
    return HEDDLE_OK;
  }
  heddle__answer answer;
  heddle_status s = heddle__ask_build(p->all->plan, nodes, count, p->all->users, &answer, err);
  if (s != HEDDLE_OK) return s;
  heddle_error why = {0};
  s = heddle__ask(p->all->plan, p->device, &answer, &why);
  if (s == HEDDLE_EUNSUPPORTED) {
    refuse(p, "it then would not run");
    return HEDDLE_OK;
  }
  if (s != HEDDLE_OK) {
    if (err != NULL) *err = why;
    return s;
  }
  reorder(p, nodes, count, &forth, &back);
  heddle__group_join(p->all, nodes, count, &answer);
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- hearing plugins */

/* Fills in the graph's nodes, ascending. NULL, or what is wrong. */
static const char *take_nodes(const partition *p, const uint32_t *local, uint32_t count, uint32_t *nodes) {
  bool sorted = true;
  for (uint32_t i = 0; i < count; i++) {
    if (local[i] >= p->n_asked) return "names a node it was not shown";
    nodes[i] = p->asked[local[i]];
    if (p->all->groups[p->all->group_of[nodes[i]]].count != 1) return "overlaps another";
    sorted = sorted && (i == 0 || nodes[i] > nodes[i - 1]);
  }
  if (!sorted) qsort(nodes, count, sizeof *nodes, compare_nodes);
  for (uint32_t i = 1; i < count; i++)
    if (nodes[i] == nodes[i - 1]) return "names a node twice";
  return NULL;
}

static heddle_status consider(partition *p, const uint32_t *local, uint32_t count, heddle_error *err) {
  heddle_status s = start(p, err);
  if (s != HEDDLE_OK) return s;
  uint32_t *nodes = heddle__plan_alloc(p->all->plan, count, sizeof *nodes);
  if (nodes == NULL) return heddle__no_memory(err, "a proposal");
  const char *wrong = take_nodes(p, local, count, nodes);
  if (wrong == NULL && !connected(p, nodes, count)) wrong = "is not connected";
  if (wrong == NULL) return merge(p, nodes, count, err);
  refuse(p, wrong);
  return HEDDLE_OK;
}

static heddle_status take_proposal(void *sink, const uint32_t *local, uint32_t count, heddle_error *err) {
  partition *p = sink;
  if (count < 2) return HEDDLE_OK;
  heddle__recall_proposal(p->all->plan->req.recall, local, count);
  if (p->failed.status == HEDDLE_OK) p->failed.status = consider(p, local, count, &p->failed);
  if (p->failed.status != HEDDLE_OK && err != NULL) *err = p->failed;
  return p->failed.status;
}

typedef struct hearing {
  partition *p;
  heddle_device *dev;
  const heddle_pregion *region;
} hearing;

static heddle_status hear(void *ctx, heddle_error *err) {
  const hearing *h = ctx;
  return h->dev->t->op.partition(h->dev->instance, h->dev->index, h->region, take_proposal, h->p, err);
}

static heddle_status hear_device(partition *p, uint32_t device, heddle_error *err) {
  heddle__plan *plan = p->all->plan;
  heddle_device *dev = plan->devices[device].dev;
  if (!plan->devices[device].used || !dev->t->has_op || dev->t->op.partition == NULL || dev->plugin->one_by_one)
    return HEDDLE_OK;
  p->device = device;
  p->n_asked = 0;
  for (uint32_t i = 0; i < plan->n_placed; i++) {
    if (plan->placed[i].device != device || plan->placed[i].ask == NULL) continue;
    if (plan->req.graph->nodes[i].kind == HEDDLE__NODE_OP) p->asked[p->n_asked++] = i;
  }
  if (p->n_asked < 2) return HEDDLE_OK;
  heddle__answer shown;
  heddle_status s = heddle__ask_build(plan, p->asked, p->n_asked, p->all->users, &shown, err);
  if (s != HEDDLE_OK) return s;
  hearing h = {p, dev, shown.ask};
  if (!heddle__recall_partition(plan->req.recall, dev, shown.ask, take_proposal, p, &s, err)) {
    heddle__recall_partition_begin(plan->req.recall, dev, shown.ask);
    s = heddle__ask_open(dev, hear, &h, err);
    heddle__recall_partition_end(plan->req.recall, s);
  }
  if (p->failed.status != HEDDLE_OK) {
    s = p->failed.status;
    if (err != NULL) *err = p->failed;
  }
  return s == HEDDLE_OK ? s : heddle__prefix_on(dev->name, err, s, "partition on %s: ", dev->name);
}

heddle_status heddle__partition(heddle__grouping *all, heddle_error *err) {
  partition p = {.all = all, .asked = heddle__alloc(all->plan->n_placed, sizeof *p.asked)};
  heddle_status s = p.asked != NULL ? HEDDLE_OK : heddle__no_memory(err, "a partition");
  for (uint32_t d = 0; s == HEDDLE_OK && d < all->plan->n_devices; d++) s = hear_device(&p, d, err);
  finish(&p);
  return s;
}

#else /* each node is a step of its own */

heddle_status heddle__partition(heddle__grouping *all, heddle_error *err) {
  (void)all, (void)err;
  return HEDDLE_OK;
}

#endif
