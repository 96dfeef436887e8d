/* executor/place/simulate.c: how long a run takes under a placement, by the costs of a problem. */
#include "executor/place/problem.h"

bool heddle__bench_start(heddle__bench *b, const heddle__problem *p) {
  b->lane_free = p->alloc(p->n_lanes, sizeof *b->lane_free);
  b->link_free = p->alloc((size_t)p->n_sites * p->n_sites, sizeof *b->link_free);
  b->arrival = p->alloc((size_t)p->n_flows * p->n_sites, sizeof *b->arrival);
  b->count = p->alloc(p->n_groups, sizeof *b->count);
  b->visits = 0;
  return b->lane_free != NULL && b->link_free != NULL && b->arrival != NULL && b->count != NULL;
}

void heddle__bench_finish(heddle__bench *b, const heddle__problem *p) {
  p->free(b->lane_free);
  p->free(b->link_free);
  p->free(b->arrival);
  p->free(b->count);
}

const heddle__cost *heddle__cost_of(const heddle__problem *p, const heddle__bench *b, const uint32_t *place,
                                    uint32_t node) {
  size_t at = (size_t)node * p->n_devices + place[node];
  uint32_t group = p->joint != NULL ? p->group[at] : HEDDLE__NOWHERE;
  return group != HEDDLE__NOWHERE && b->count[group] == p->members[group] ? &p->joint[at] : &p->alone[at];
}

static void count_groups(const heddle__problem *p, heddle__bench *b, const uint32_t *place) {
  for (uint32_t i = 0; i < p->n_groups; i++) b->count[i] = 0;
  for (uint32_t i = 0; p->joint != NULL && i < p->n_nodes; i++) {
    uint32_t group = p->group[(size_t)i * p->n_devices + place[i]];
    if (group != HEDDLE__NOWHERE) b->count[group]++;
  }
}

/* When a value is at a site; the first who asks has it copied there. */
static double arrive(const heddle__problem *p, heddle__bench *b, uint32_t flow, uint32_t home, uint32_t to,
                     double *work) {
  double *there = &b->arrival[(size_t)flow * p->n_sites];
  if (there[to] >= 0) return there[to];
  const heddle__link *link = &p->links[home * p->n_sites + to];
  double *free_at = &b->link_free[home * p->n_sites + to];
  double ns = link->latency_ns + p->flows[flow].bytes * link->ns_per_byte;
  double start = there[home] > *free_at ? there[home] : *free_at;
  *work += ns;
  return there[to] = *free_at = start + ns;
}

double heddle__simulate(const heddle__problem *p, heddle__bench *b, const uint32_t *place, double limit, double *work) {
  double end = 0, sum = 0;
  count_groups(p, b, place);
  for (uint32_t i = 0; i < p->n_lanes; i++) b->lane_free[i] = 0;
  for (uint32_t i = 0; i < p->n_sites * p->n_sites; i++) b->link_free[i] = 0;
  for (size_t i = 0; i < (size_t)p->n_flows * p->n_sites; i++) b->arrival[i] = -1;
  for (uint32_t i = 0; i < p->n_flows; i++)
    if (p->flows[i].producer == HEDDLE__NOWHERE) b->arrival[(size_t)i * p->n_sites] = 0;
  for (uint32_t i = 0; i < p->n_nodes; i++) {
    uint32_t device = place[i], here = p->site[device];
    double start = b->lane_free[p->lane[device]];
    b->visits++;
    for (uint32_t k = p->first_in[i]; k < p->first_in[i + 1]; k++) {
      uint32_t producer = p->flows[p->in[k]].producer;
      uint32_t home = producer == HEDDLE__NOWHERE ? 0 : p->site[place[producer]];
      double there = arrive(p, b, p->in[k], home, here, &sum);
      if (there > start) start = there;
    }
    double ns = heddle__cost_of(p, b, place, i)->ns;
    sum += ns;
    start += ns;
    b->lane_free[p->lane[device]] = start;
    if (start > end) end = start;
    if (end > limit) return end;
    for (uint32_t k = p->first_out[i]; k < p->first_out[i + 1]; k++)
      b->arrival[(size_t)p->out[k] * p->n_sites + here] = start;
  }
  for (uint32_t i = 0; i < p->n_flows; i++) {
    if (!p->flows[i].head) continue;
    uint32_t producer = p->flows[i].producer;
    double there = arrive(p, b, i, producer == HEDDLE__NOWHERE ? 0 : p->site[place[producer]], 0, &sum);
    if (there > end) end = there;
  }
  if (work != NULL) *work = sum;
  return end;
}
