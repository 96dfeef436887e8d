/* tests/placement/test_search.c: the search for a placement on made-up costs: thousands of graphs of at most 8 nodes on
 * three devices against the best of all placements there are, with the whole search and with its improvement alone; what
 * uncertain times do; large graphs.
 * timeout: 120 */
#include "cases.h"
#include "executor/place/problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 256, DEVICES = 3, SITES = 3, MOST_IN = 4 * MOST };

typedef struct graph {
  heddle__problem p;
  bool can[MOST * DEVICES];
  heddle__cost alone[MOST * DEVICES], joint[MOST * DEVICES];
  uint32_t group[MOST * DEVICES], members[MOST];
  uint32_t site[DEVICES], lane[DEVICES];
  heddle__link links[SITES * SITES];
  heddle__flow flows[MOST + 1];
  uint32_t first_in[MOST + 1], in[MOST_IN], first_out[MOST + 1], out[MOST];
  uint32_t prefer[MOST];
} graph;

static void *zeroed(size_t count, size_t size) {
  return calloc(count + 1, size);
}

/* ---- made-up graphs */

static uint64_t state;

static double uniform(void) {
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (double)(state >> 11) / (double)(UINT64_C(1) << 53);
}

static uint32_t below(uint32_t n) {
  return (uint32_t)(uniform() * n);
}

/* Device 0 computes on the host; 1 and 2 are far. flow 0 is the input, flow i + 1 what node i makes. */
static void start(graph *g, uint32_t n) {
  memset(g, 0, sizeof *g);
  g->p = (heddle__problem){.n_nodes = n,
                           .n_devices = DEVICES,
                           .n_sites = SITES,
                           .n_lanes = DEVICES,
                           .n_flows = n + 1,
                           .can = g->can,
                           .alone = g->alone,
                           .site = g->site,
                           .lane = g->lane,
                           .links = g->links,
                           .flows = g->flows,
                           .first_in = g->first_in,
                           .in = g->in,
                           .first_out = g->first_out,
                           .out = g->out,
                           .alloc = zeroed,
                           .free = free};
  for (uint32_t d = 0; d < DEVICES; d++) g->site[d] = g->lane[d] = d;
  g->flows[0] = (heddle__flow){.producer = HEDDLE__NOWHERE};
  for (uint32_t i = 0; i < n; i++) {
    g->first_out[i] = i;
    g->out[i] = i + 1;
    g->flows[i + 1].producer = i;
  }
  g->first_out[n] = n;
}

static void reads(graph *g, uint32_t node, uint32_t flow) {
  uint32_t at = g->first_in[node + 1];
  for (uint32_t k = g->first_in[node]; k < at; k++)
    if (g->in[k] == flow) return;
  g->in[at] = flow;
  g->first_in[node + 1]++;
}

static void next(graph *g, uint32_t node) {
  g->first_in[node + 1] = g->first_in[node];
}

/* Shapes: 0 a chain, 1 a fan, 2 a diamond, 3 two chains, 4 and up at random. Ends are outputs. */
static void connect(graph *g, uint32_t shape) {
  uint32_t n = g->p.n_nodes;
  for (uint32_t i = 0; i < n; i++) {
    next(g, i);
    if (i == 0) reads(g, i, 0);
    else if (shape == 0) reads(g, i, i);
    else if (shape == 1) reads(g, i, 1);
    else if (shape == 2 && i + 1 < n) reads(g, i, 1);
    else if (shape == 3) reads(g, i, i < 2 ? 0 : i - 1);
    else if (shape == 2)
      for (uint32_t k = 1; k < n; k++) reads(g, i, k);
    else
      for (uint32_t k = 1 + below(3); k > 0; k--) reads(g, i, below(i + 1));
  }
  for (uint32_t i = 0; i < n; i++) {
    bool used = false;
    for (uint32_t k = 0; k < g->first_in[n]; k++) used = used || g->in[k] == i + 1;
    g->flows[i + 1].head = !used || (shape > 3 && uniform() < 0.1);
  }
}

/* Copies that cost from next to nothing to far more than the nodes. */
static void cost(graph *g) {
  double copies = pow(10, 3 * uniform() - 2), spread = 0.2 + 3 * uniform();
  for (uint32_t i = 0; i < SITES * SITES; i++)
    if (i / SITES != i % SITES)
      g->links[i] = (heddle__link){.latency_ns = 100 * copies * uniform(), .ns_per_byte = copies * uniform()};
  for (uint32_t i = 0; i <= g->p.n_nodes; i++) g->flows[i].bytes = 10 + 1000 * uniform() * uniform();
  for (uint32_t i = 0; i < g->p.n_nodes; i++) {
    double size = 20 + 1000 * uniform() * uniform();
    uint32_t must = below(DEVICES);
    g->prefer[i] = HEDDLE__NOWHERE;
    for (uint32_t d = DEVICES; d-- > 0;) {
      bool can = d == must || uniform() < 0.9;
      g->can[i * DEVICES + d] = can;
      g->alone[i * DEVICES + d] = (heddle__cost){.ns = size * exp(spread * (uniform() - 0.5))};
      if (can) g->prefer[i] = d;
    }
  }
}

/* ---- the best there is, by counting */

/* The same rules as executor/place/simulate.c, written down again: a table of when which value is where. */
static double takes(const graph *g, const uint32_t *place) {
  double when[MOST + 1][SITES], lane[DEVICES] = {0}, link[SITES][SITES] = {{0}}, end = 0;
  for (uint32_t f = 0; f <= g->p.n_nodes; f++)
    for (uint32_t s = 0; s < SITES; s++) when[f][s] = NAN;
  when[0][0] = 0;
  for (uint32_t i = 0; i <= g->p.n_nodes; i++) {
    bool last = i == g->p.n_nodes;
    uint32_t to = last ? 0 : g->site[place[i]], count = last ? g->p.n_flows : g->first_in[i + 1] - g->first_in[i];
    double ready = last ? 0 : lane[g->lane[place[i]]];
    for (uint32_t k = 0; k < count; k++) {
      uint32_t f = last ? k : g->in[g->first_in[i] + k], from = f == 0 ? 0 : g->site[place[f - 1]];
      if (last && !g->flows[f].head) continue;
      if (isnan(when[f][to])) {
        const heddle__link *l = &g->links[from * SITES + to];
        double begin = fmax(when[f][from], link[from][to]);
        when[f][to] = link[from][to] = begin + l->latency_ns + l->ns_per_byte * g->flows[f].bytes;
      }
      ready = fmax(ready, when[f][to]);
    }
    if (last) return fmax(end, ready);
    lane[g->lane[place[i]]] = when[i + 1][to] = ready + g->alone[i * DEVICES + place[i]].ns;
    end = fmax(end, when[i + 1][to]);
  }
  return end;
}

static double least(const graph *g) {
  uint32_t place[8], all = 1;
  double best = INFINITY;
  for (uint32_t i = 0; i < g->p.n_nodes; i++) all *= DEVICES;
  for (uint32_t k = 0; k < all; k++) {
    bool can = true;
    uint32_t rest = k;
    for (uint32_t i = 0; i < g->p.n_nodes; i++) {
      place[i] = rest % DEVICES;
      rest /= DEVICES;
      can = can && g->can[i * DEVICES + place[i]];
    }
    if (can) best = fmin(best, takes(g, place));
  }
  return best;
}

static heddle__found look(const graph *g, uint64_t most_whole, uint32_t *place, double *single) {
  heddle__found found = {.place = place, .single = single};
  assert_true(heddle__search(&g->p, &(heddle__search_options){.most_whole = most_whole}, g->prefer, &found));
  assert_true(fabs(takes(g, place) - found.ns) <= 1e-6 * found.ns);
  for (uint32_t d = 0; d < DEVICES; d++) {
    uint32_t all[MOST];
    for (uint32_t i = 0; i < g->p.n_nodes; i++) all[i] = g->can[i * DEVICES + d] ? d : g->prefer[i];
    assert_true(fabs(takes(g, all) - single[d]) <= 1e-6 * single[d]);
    if (found.ns > single[d] * (1 + 1e-9)) fail_msg("%g ns is worse than %g on device %u", found.ns, single[d], d);
  }
  return found;
}

/* ---- the cases */

/* Every number of nodes to 8, every shape, many costs. */
static void small(uint64_t most_whole, uint32_t seeds, double *worst, uint32_t *over, uint32_t *cases) {
  static graph g;
  uint32_t place[MOST];
  double single[DEVICES];
  *worst = 1;
  *over = *cases = 0;
  for (uint32_t n = 1; n <= 8; n++)
    for (uint32_t shape = 0; shape < 8; shape++)
      for (uint32_t seed = 0; seed < seeds; seed++) {
        state = ((uint64_t)n << 40) + (shape << 20) + seed + 1;
        start(&g, n);
        connect(&g, shape);
        cost(&g);
        double best = least(&g), ratio = look(&g, most_whole, place, single).ns / best;
        if (ratio < 1 - 1e-9) fail_msg("%g of the best of all placements: the search cheats", ratio);
        if (ratio > *worst) *worst = ratio;
        *over += ratio > 1.05;
        ++*cases;
      }
}

static void small_graphs_get_the_best_there_is(void **s) {
  (void)s;
  double worst;
  uint32_t over, cases;
  small(6561, 60, &worst, &over, &cases);
  print_message("%u graphs: at worst %.6f of the optimum\n", (unsigned)cases, worst);
  assert_true(cases >= 3000 && over == 0 && worst < 1.05);
}

static void improvement_alone_comes_near(void **s) {
  (void)s;
  double worst;
  uint32_t over, cases;
  small(0, 60, &worst, &over, &cases);
  print_message("%u graphs: %u over 5 %%, at worst %.4f of the optimum\n", (unsigned)cases, (unsigned)over, worst);
  assert_true(over * 200 <= cases && worst < 1.5);
}

/* Two chains that a second device could halve, by times that are not sure. */
static void no_flip_without_significance(void **s) {
  (void)s;
  static graph g;
  uint32_t place[MOST];
  double single[DEVICES];
  for (int sure = 0; sure < 2; sure++) {
    start(&g, 8);
    connect(&g, 3);
    for (uint32_t i = 0; i < 8 * DEVICES; i++) {
      g.can[i] = true;
      g.alone[i] = (heddle__cost){.ns = 100, .margin = sure ? 5 : 80, .source = i % DEVICES};
    }
    heddle__found found = look(&g, 6561, place, single);
    assert_true(fabs(single[0] - 800) < 1e-6);
    assert_true(sure ? found.gain > found.doubt : found.gain > 0 && found.gain <= found.doubt);
    assert_true(fabs(found.ns - (sure ? 400 : 800)) < 1e-6);
    for (uint32_t i = 0; i < 8 && !sure; i++) assert_int_equal(place[i], 0);
  }
}

/* A node that gains less than its own times are known by stays where the rest is, though another one leaves. */
static void only_what_is_sure_moves(void **s) {
  (void)s;
  static graph g;
  uint32_t place[MOST];
  double single[DEVICES];
  start(&g, 4);
  connect(&g, 0);
  for (uint32_t i = 0; i < 4 * DEVICES; i++) {
    g.can[i] = i % DEVICES < 2;
    g.alone[i] = (heddle__cost){.ns = 100, .margin = 4, .source = i};
  }
  g.alone[1 * DEVICES + 1].ns = 20;
  g.alone[2 * DEVICES + 1].ns = 98;
  g.alone[0 * DEVICES + 1].ns = g.alone[3 * DEVICES + 1].ns = 200;
  heddle__found found = look(&g, 6561, place, single);
  assert_true(fabs(found.ns - 320) < 1e-6);
  for (uint32_t i = 0; i < 4; i++) assert_int_equal(place[i], i == 1 ? 1 : 0);
}

/* Four nodes that one device makes one step of for 40, and which cost 100 each apart. */
static void groups_stay_together(void **s) {
  (void)s;
  static graph g;
  uint32_t place[MOST];
  double single[DEVICES];
  start(&g, 6);
  connect(&g, 0);
  g.p.joint = g.joint;
  g.p.group = g.group;
  g.p.members = g.members;
  g.p.n_groups = 1;
  g.members[0] = 4;
  for (uint32_t i = 0; i < 6 * DEVICES; i++) {
    bool in = i % DEVICES == 1 && i / DEVICES > 0 && i / DEVICES < 5;
    g.can[i] = i % DEVICES < 2;
    g.alone[i] = (heddle__cost){.ns = i % DEVICES == 1 ? 100 : 30};
    g.joint[i] = (heddle__cost){.ns = 10};
    g.group[i] = in ? 0 : HEDDLE__NOWHERE;
  }
  heddle__found found = {.place = place, .single = single};
  for (uint64_t whole = 0; whole <= 6561; whole += 6561) {
    assert_true(heddle__search(&g.p, &(heddle__search_options){.most_whole = whole}, g.prefer, &found));
    assert_true(fabs(found.ns - 100) < 1e-6 && fabs(single[0] - 180) < 1e-6 && fabs(single[1] - 240) < 1e-6);
    for (uint32_t i = 0; i < 6; i++) assert_int_equal(place[i], i > 0 && i < 5 ? 1 : 0);
  }
}

/* A group that seems slower whole than apart, by times that are not sure, is not taken apart for it. */
static void groups_are_not_split_by_noise(void **s) {
  (void)s;
  static graph g;
  uint32_t place[MOST];
  double single[DEVICES];
  for (int sure = 0; sure < 2; sure++) {
    start(&g, 2);
    connect(&g, 0);
    g.p.joint = g.joint;
    g.p.group = g.group;
    g.p.members = g.members;
    g.p.n_groups = 1;
    g.members[0] = 2;
    for (uint32_t i = 0; i < 2 * DEVICES; i++) {
      g.can[i] = i % DEVICES < 2;
      g.alone[i] = (heddle__cost){.ns = i % DEVICES == 0 ? 50 : 300, .margin = 1, .source = i};
      g.joint[i] = (heddle__cost){.ns = 100, .margin = sure ? 1 : 80, .source = 100};
      g.group[i] = i % DEVICES == 0 ? 0 : HEDDLE__NOWHERE;
    }
    g.alone[1 * DEVICES + 1].ns = 20;
    heddle__found found = {.place = place, .single = single};
    assert_true(heddle__search(&g.p, &(heddle__search_options){.most_whole = 6561}, g.prefer, &found));
    assert_true(fabs(found.ns - (sure ? 70 : 200)) < 1e-6);
    assert_int_equal(place[0], 0);
    assert_int_equal(place[1], sure ? 1 : 0);
  }
}

/* Two devices on one lane gain nothing by each other. */
static void shared_lanes_are_one_worker(void **s) {
  (void)s;
  static graph g;
  uint32_t place[MOST];
  double single[DEVICES];
  start(&g, 8);
  connect(&g, 3);
  g.lane[1] = 0;
  for (uint32_t i = 0; i < 8 * DEVICES; i++) {
    g.can[i] = i % DEVICES < 2;
    g.alone[i] = (heddle__cost){.ns = 100};
  }
  assert_true(fabs(look(&g, 6561, place, single).ns - 800) < 1e-6);
  g.lane[1] = 1;
  assert_true(fabs(look(&g, 6561, place, single).ns - 400) < 1e-6);
}

/* 200 nodes: the same answer twice, and better than any device alone where the graph is wide. */
static void large_graphs_end(void **s) {
  (void)s;
  static graph g;
  static uint32_t a[MOST], b[MOST];
  double single[DEVICES];
  for (uint32_t seed = 1; seed <= 2; seed++) {
    state = seed;
    start(&g, 200);
    connect(&g, 4);
    cost(&g);
    for (uint32_t i = 0; i < SITES * SITES; i++)
      g.links[i].ns_per_byte = g.links[i].latency_ns = i % (SITES + 1) ? 1e-3 : 0;
    double ns = look(&g, 6561, a, single).ns;
    assert_true(ns < 0.7 * fmin(single[0], fmin(single[1], single[2])));
    assert_true(look(&g, 6561, b, single).ns <= ns && memcmp(a, b, sizeof a) == 0);
  }
}

CASES(CASE(small_graphs_get_the_best_there_is), CASE(improvement_alone_comes_near), CASE(no_flip_without_significance),
      CASE(only_what_is_sure_moves), CASE(groups_stay_together), CASE(groups_are_not_split_by_noise),
      CASE(shared_lanes_are_one_worker), CASE(large_graphs_end))
