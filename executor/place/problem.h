/* executor/place/problem.h: where to run each node, as a problem of numbers: what nodes and copies cost, what a
 * placement takes by them, and the search for a good one. It knows nothing of plans and plugins. */
#ifndef HEDDLE_EXECUTOR_PLACE_PROBLEM_H
#define HEDDLE_EXECUTOR_PLACE_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEDDLE__NOWHERE UINT32_MAX

/* The time of something, and how far from it the truth may be; times with the same source are wrong together. */
typedef struct heddle__cost {
  double ns;
  double margin;
  uint32_t source;
} heddle__cost;

/* A copy takes latency_ns + bytes * ns_per_byte; margin is the part of that by which it may be wrong. */
typedef struct heddle__link {
  double latency_ns, ns_per_byte, margin;
} heddle__link;

/* A value that nodes read and write; constants are none. */
typedef struct heddle__flow {
  double bytes;
  uint32_t producer; /* HEDDLE__NOWHERE: on the host from the begin */
  bool head;         /* wanted on the host in the end */
} heddle__flow;

/* Everything is borrowed. Nodes are numbered in the order of the plan, each after those whose results it reads, and each
 * device takes them in that order. A site is a memory: 0 the host's, in which inline devices compute. */
typedef struct heddle__problem {
  uint32_t n_nodes, n_devices, n_sites, n_lanes, n_flows, n_groups;
  const bool *can;           /* [node][device]; at least one a node */
  const heddle__cost *alone; /* [node][device] */
  const heddle__cost *joint; /* [node][device]: its part, where all of its group are on the device; NULL: no groups */
  const uint32_t *group;     /* [node][device]: what the device makes one step of; HEDDLE__NOWHERE: none */
  const uint32_t *members;   /* per group: how many nodes */
  const uint32_t *site;      /* per device */
  const uint32_t *lane;      /* per device: those with the same one do one thing at a time */
  const heddle__link *links; /* [site][site] */
  const heddle__flow *flows;
  const uint32_t *first_in, *in;             /* flows that node i reads: in[first_in[i]] to in[first_in[i + 1]] */
  const uint32_t *first_out, *out;           /* likewise what it writes */
  void *(*alloc)(size_t count, size_t size); /* zeroed */
  void (*free)(void *p);
} heddle__problem;

/* What simulate works in; made once a search. */
typedef struct heddle__bench {
  double *lane_free, *link_free, *arrival; /* arrival: [flow][site]; < 0: not there */
  uint32_t *count;                         /* per group: how many of its nodes are on its device */
  uint64_t visits;                         /* nodes that were looked at, over all simulations */
} heddle__bench;

/* false: memory is out. finish takes what start has left. */
bool heddle__bench_start(heddle__bench *b, const heddle__problem *p);
void heddle__bench_finish(heddle__bench *b, const heddle__problem *p);

/* How long a run takes: nodes in their order, each on its device's lane when its inputs have arrived; each value copied
 * once to each site that wants it, one copy at a time from site to site; heads back on the host. work, which may be NULL,
 * gets the sum of all nodes and copies. Where it takes longer than limit, what it gives is only known to be more. */
double heddle__simulate(const heddle__problem *p, heddle__bench *b, const uint32_t *place, double limit, double *work);

/* The time of a node under a placement, by its group where that is whole there; after a simulation of it. */
const heddle__cost *heddle__cost_of(const heddle__problem *p, const heddle__bench *b, const uint32_t *place,
                                    uint32_t node);

typedef struct heddle__search_options {
  uint64_t most_visits; /* the search ends where it has looked at so many nodes; 0: a default */
  uint64_t most_whole;  /* up to so many placements are simply all tried */
  bool any_gain;        /* margins do not count: the best is taken however unsure it is */
} heddle__search_options;

typedef struct heddle__found {
  uint32_t *place; /* per node; of the caller's */
  double ns;       /* predicted */
  double *single;  /* per device, of the caller's: everything there that can be, the rest on the first that can */
  uint32_t best;   /* of them */
  double gain;     /* over that one, of the best placement that was found, taken or not */
  double doubt;    /* by how much the times that this rests on may be wrong: where gain is not more, it is not taken */
} heddle__found;

/* A placement that takes at most as long as the best single device. The same problem gives the same answer. prefer: per
 * node the device it has by the order of preference. false: memory is out. */
bool heddle__search(const heddle__problem *p, const heddle__search_options *o, const uint32_t *prefer,
                    heddle__found *out);

#endif
