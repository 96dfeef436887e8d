/* executor/place/improve.c: local improvement of a placement by moves of one node, two, or many. The order in which
 * moves are tried is fixed, and the first that helps is taken, so that the result depends on the problem alone. */
#include "executor/place/search.h"

enum { FEW_NODES = 24 }; /* up to so many, every two nodes are tried together, wherever they are */

typedef struct movement {
  heddle__trial *t;
  uint32_t *nodes, *before; /* those of the move, and where they were */
  uint32_t count;
  uint32_t *next_of; /* per node: its only user, where that one reads nothing else that nodes make; else NOWHERE */
  uint32_t *by_group, *first_of; /* nodes by group */
  bool *follows;                 /* per node: it is the next_of of another */
} movement;

static bool spent(const heddle__trial *t) {
  return t->bench->visits >= t->most_visits;
}

/* What was changed stays where it helps, and is taken back otherwise. */
static bool settle(movement *m) {
  heddle__trial *t = m->t;
  double work = 0, ns = heddle__simulate(t->p, t->bench, t->place, t->ns * (1 + 1e-9), &work);
  bool better = heddle__less(ns, t->ns) || (ns <= t->ns * (1 + 1e-9) && heddle__less(work, t->work));
  if (better) {
    t->ns = ns;
    t->work = work;
  } else {
    for (uint32_t i = m->count; i-- > 0;) t->place[m->nodes[i]] = m->before[i];
  }
  m->count = 0;
  return better;
}

/* Adds a node to the move, unless it is there already or cannot be; a device can have all, some or none of the nodes. */
static void send(movement *m, uint32_t node, uint32_t device) {
  heddle__trial *t = m->t;
  if (t->place[node] == device || !t->p->can[(size_t)node * t->p->n_devices + device]) return;
  m->nodes[m->count] = node;
  m->before[m->count++] = t->place[node];
  t->place[node] = device;
}

static bool try_one(movement *m, uint32_t node, uint32_t device) {
  send(m, node, device);
  return m->count > 0 && settle(m);
}

/* Both, or nothing is tried: one alone was already. */
static bool try_two(movement *m, uint32_t a, uint32_t to_a, uint32_t b, uint32_t to_b) {
  send(m, a, to_a);
  uint32_t n = m->count;
  if (n == 1) send(m, b, to_b);
  if (m->count == 2) return settle(m);
  if (n == 1) m->t->place[a] = m->before[0];
  m->count = 0;
  return false;
}

static bool try_neighbours(movement *m) {
  const heddle__problem *p = m->t->p;
  bool better = false;
  for (uint32_t i = 0; i < p->n_nodes && p->n_nodes > FEW_NODES; i++)
    for (uint32_t k = p->first_in[i]; k < p->first_in[i + 1]; k++)
      for (uint32_t d = 0; d < p->n_devices && !spent(m->t); d++) {
        uint32_t from = p->flows[p->in[k]].producer;
        if (from != HEDDLE__NOWHERE) better = try_two(m, from, d, i, d) || better;
      }
  for (uint32_t i = 0; i < p->n_nodes && p->n_nodes <= FEW_NODES; i++)
    for (uint32_t j = 0; j < i; j++)
      for (uint32_t d = 0; d < p->n_devices * p->n_devices && !spent(m->t); d++)
        better = try_two(m, i, d / p->n_devices, j, d % p->n_devices) || better;
  return better;
}

static bool try_chains(movement *m) {
  const heddle__problem *p = m->t->p;
  bool better = false;
  for (uint32_t i = 0; i < p->n_nodes; i++) {
    if (m->next_of[i] == HEDDLE__NOWHERE || m->follows[i]) continue;
    for (uint32_t d = 0; d < p->n_devices && !spent(m->t); d++) {
      for (uint32_t x = i; x != HEDDLE__NOWHERE; x = m->next_of[x]) send(m, x, d);
      better = (m->count > 1 && settle(m)) || better;
      if (m->count == 1) m->t->place[m->nodes[0]] = m->before[0];
      m->count = 0;
    }
  }
  return better;
}

static bool try_groups(movement *m) {
  const heddle__problem *p = m->t->p;
  bool better = false;
  for (uint32_t g = 0; g < p->n_groups; g++)
    for (uint32_t d = 0; d < p->n_devices && !spent(m->t); d++) {
      for (uint32_t k = m->first_of[g]; k < m->first_of[g + 1]; k++) send(m, m->by_group[k], d);
      better = (m->count > 0 && settle(m)) || better;
    }
  return better;
}

/* All nodes before one, and all from it on. */
static bool try_halves(movement *m) {
  const heddle__problem *p = m->t->p;
  bool better = false;
  for (uint32_t i = 1; i < p->n_nodes; i++)
    for (uint32_t d = 0; d < 2 * p->n_devices && !spent(m->t); d++) {
      bool early = d < p->n_devices;
      for (uint32_t k = early ? 0 : i; k < (early ? i : p->n_nodes); k++) send(m, k, d % p->n_devices);
      better = (m->count > 0 && settle(m)) || better;
    }
  return better;
}

static void find_chains(movement *m) {
  const heddle__problem *p = m->t->p;
  for (uint32_t i = 0; i < p->n_nodes; i++) m->next_of[i] = HEDDLE__NOWHERE;
  for (uint32_t i = p->n_nodes; i-- > 0;) {
    uint32_t from = HEDDLE__NOWHERE, sources = 0;
    for (uint32_t k = p->first_in[i]; k < p->first_in[i + 1]; k++) {
      uint32_t producer = p->flows[p->in[k]].producer;
      if (producer == HEDDLE__NOWHERE || producer == from) continue;
      from = producer;
      sources++;
    }
    if (sources != 1) continue;
    if (m->next_of[from] != HEDDLE__NOWHERE) m->follows[m->next_of[from]] = false; /* the earlier user continues it */
    m->next_of[from] = i;
    m->follows[i] = true;
  }
}

static void list_groups(movement *m) {
  const heddle__problem *p = m->t->p;
  uint32_t at = 0;
  for (uint32_t g = 0; g < p->n_groups; g++) {
    m->first_of[g] = at;
    at += p->members[g];
  }
  m->first_of[p->n_groups] = at;
  for (uint32_t g = 0; g < p->n_groups; g++) {
    uint32_t n = 0;
    for (size_t k = 0; k < (size_t)p->n_nodes * p->n_devices && n < p->members[g]; k++)
      if (p->group[k] == g) m->by_group[m->first_of[g] + n++] = (uint32_t)(k / p->n_devices);
  }
}

bool heddle__improve(heddle__trial *t) {
  const heddle__problem *p = t->p;
  movement m = {.t = t};
  uint32_t members = 0;
  for (uint32_t g = 0; g < p->n_groups; g++) members += p->members[g];
  m.nodes = p->alloc(p->n_nodes, sizeof *m.nodes);
  m.before = p->alloc(p->n_nodes, sizeof *m.before);
  m.next_of = p->alloc(p->n_nodes, sizeof *m.next_of);
  m.follows = p->alloc(p->n_nodes, sizeof *m.follows);
  m.first_of = p->alloc((size_t)p->n_groups + 1, sizeof *m.first_of);
  m.by_group = p->alloc(members, sizeof *m.by_group);
  bool good = m.nodes && m.before && m.next_of && m.follows && m.first_of && m.by_group;
  if (good) {
    find_chains(&m);
    list_groups(&m);
    heddle__trial_measure(t);
  }
  for (bool better = good; better && !spent(t);) {
    better = false;
    for (uint32_t i = 0; i < p->n_nodes; i++)
      for (uint32_t d = 0; d < p->n_devices && !spent(t); d++) better = try_one(&m, i, d) || better;
    better = try_groups(&m) || better;
    better = try_chains(&m) || better;
    better = try_neighbours(&m) || better;
    if (!better) better = try_halves(&m);
  }
  p->free(m.nodes);
  p->free(m.before);
  p->free(m.next_of);
  p->free(m.follows);
  p->free(m.first_of);
  p->free(m.by_group);
  return good;
}
