/* executor/place/search.h: what the parts of the search for a placement share. */
#ifndef HEDDLE_EXECUTOR_PLACE_SEARCH_H
#define HEDDLE_EXECUTOR_PLACE_SEARCH_H

#include "executor/place/problem.h"

/* A placement that is being changed, and what it takes. */
typedef struct heddle__trial {
  const heddle__problem *p;
  heddle__bench *bench;
  uint32_t *place;
  double ns, work;
  uint64_t most_visits;
} heddle__trial;

/* heft.c: by earliest ends; false: memory is out. */
bool heddle__heft(const heddle__problem *p, uint32_t *place);

/* improve.c: changes the placement until no move makes it better: less time, or as much and less work. A move sends a
 * node, two, a chain, a group of a device's, or all nodes from one on, to one device. false: memory is out. */
bool heddle__improve(heddle__trial *t);

/* What the placement takes, into the trial. */
static inline void heddle__trial_measure(heddle__trial *t) {
  t->ns = heddle__simulate(t->p, t->bench, t->place, 1e300, &t->work);
}

/* Less by more than rounding. */
static inline bool heddle__less(double a, double b) {
  return a < b - 1e-9 * (b > 0 ? b : 0);
}

#endif
