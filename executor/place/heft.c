/* executor/place/heft.c: a first placement by list scheduling, after Topcuoglu, Hariri and Wu, "Performance-effective
 * and low-complexity task scheduling for heterogeneous computing" (2002): nodes by upward rank, each where it ends
 * earliest. */
#include "executor/place/search.h"

typedef struct ranked {
  double rank;
  uint32_t node;
} ranked;

/* What a node costs on average over the devices that can run it. */
static double mean_cost(const heddle__problem *p, uint32_t node) {
  double sum = 0;
  uint32_t n = 0;
  for (uint32_t d = 0; d < p->n_devices; d++) {
    size_t at = (size_t)node * p->n_devices + d;
    if (!p->can[at]) continue;
    sum += p->joint != NULL && p->group[at] != HEDDLE__NOWHERE ? p->joint[at].ns : p->alone[at].ns;
    n++;
  }
  return n > 0 ? sum / n : 0;
}

static double mean_copy(const heddle__problem *p, double bytes) {
  double sum = 0;
  for (uint32_t i = 0; i < p->n_sites * p->n_sites; i++)
    if (i / p->n_sites != i % p->n_sites) sum += p->links[i].latency_ns + bytes * p->links[i].ns_per_byte;
  return p->n_sites > 1 ? sum / (p->n_sites * p->n_sites) : 0;
}

/* Highest rank first; of equal ones the earlier node. A heap: the number of nodes may be large. */
static bool before(const ranked *a, const ranked *b) {
  return a->rank > b->rank || (a->rank >= b->rank && a->node < b->node);
}

static void sift(ranked *all, uint32_t i, uint32_t n) {
  for (;;) {
    uint32_t k = 2 * i + 1;
    if (k >= n) return;
    if (k + 1 < n && before(&all[k], &all[k + 1])) k++;
    if (!before(&all[i], &all[k])) return;
    ranked x = all[i];
    all[i] = all[k];
    all[k] = x;
    i = k;
  }
}

static void sort(ranked *all, uint32_t n) {
  for (uint32_t i = n / 2; i-- > 0;) sift(all, i, n);
  for (uint32_t end = n; end-- > 1;) {
    ranked x = all[0];
    all[0] = all[end];
    all[end] = x;
    sift(all, 0, end);
  }
}

/* A node's rank: its own cost, and the largest of its users' ranks with the copy to them. */
static void rank_all(const heddle__problem *p, ranked *all) {
  for (uint32_t i = 0; i < p->n_nodes; i++) all[i] = (ranked){0, i};
  for (uint32_t i = p->n_nodes; i-- > 0;) {
    all[i].rank += mean_cost(p, i);
    for (uint32_t k = p->first_in[i]; k < p->first_in[i + 1]; k++) {
      const heddle__flow *f = &p->flows[p->in[k]];
      if (f->producer == HEDDLE__NOWHERE) continue;
      double through = all[i].rank + mean_copy(p, f->bytes);
      if (through > all[f->producer].rank) all[f->producer].rank = through;
    }
  }
}

/* When the node could begin on a device; ends: per node. */
static double begin_at(const heddle__problem *p, const uint32_t *place, const double *ends, const double *lanes,
                       uint32_t node, uint32_t device) {
  double start = lanes[p->lane[device]];
  for (uint32_t k = p->first_in[node]; k < p->first_in[node + 1]; k++) {
    const heddle__flow *f = &p->flows[p->in[k]];
    uint32_t home = f->producer == HEDDLE__NOWHERE ? 0 : p->site[place[f->producer]];
    double there = f->producer == HEDDLE__NOWHERE ? 0 : ends[f->producer];
    const heddle__link *link = &p->links[home * p->n_sites + p->site[device]];
    if (home != p->site[device]) there += link->latency_ns + f->bytes * link->ns_per_byte;
    if (there > start) start = there;
  }
  return start;
}

bool heddle__heft(const heddle__problem *p, uint32_t *place) {
  ranked *all = p->alloc(p->n_nodes, sizeof *all);
  double *ends = p->alloc(p->n_nodes, sizeof *ends), *lanes = p->alloc(p->n_lanes, sizeof *lanes);
  bool good = all != NULL && ends != NULL && lanes != NULL;
  if (good) {
    rank_all(p, all);
    sort(all, p->n_nodes);
  }
  for (uint32_t i = 0; good && i < p->n_nodes; i++) {
    uint32_t node = all[i].node, best = HEDDLE__NOWHERE;
    double best_end = 0;
    for (uint32_t d = 0; d < p->n_devices; d++) {
      size_t at = (size_t)node * p->n_devices + d;
      if (!p->can[at]) continue;
      double ns = p->joint != NULL && p->group[at] != HEDDLE__NOWHERE ? p->joint[at].ns : p->alone[at].ns;
      double end = begin_at(p, place, ends, lanes, node, d) + ns;
      if (best != HEDDLE__NOWHERE && end >= best_end) continue;
      best = d;
      best_end = end;
    }
    place[node] = best;
    ends[node] = lanes[p->lane[best]] = best_end;
  }
  p->free(all);
  p->free(ends);
  p->free(lanes);
  return good;
}
