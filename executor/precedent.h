/* executor/precedent.h: what an earlier plan of a model found for shapes of the same class: on which devices the nodes run
 * and which form a region together. A plan that follows it asks the plugins about its regions alone, once each, instead
 * of about every node, every proposal and then every region.
 *
 * Shapes are of one class where each dimension of each input has as many binary digits, so that what is a single row, or
 * is large enough for another way, is planned for itself. A plugin's answer still binds: where it refuses a region for
 * the new shapes, the plan is made without a precedent. */
#ifndef HEDDLE_EXECUTOR_PRECEDENT_H
#define HEDDLE_EXECUTOR_PRECEDENT_H

#include <stdatomic.h>

#include "executor/partition.h"
#include "heddle/model.h"

struct heddle__order;

/* Immutable but for what the model's lock guards: next. */
typedef struct heddle__precedent {
  struct heddle__precedent *next;
  atomic_uint references;
  uint32_t n_groups;
  const heddle_graph *graph; /* only compared */
  unsigned char *key;        /* the class */
  size_t key_bytes;
  uint32_t *device;   /* per node of the graph; HEDDLE__NONE: not in the plan */
  uint32_t *group_of; /* per node: HEDDLE__NONE where it is a region of its own */
  bool *idle;         /* per node: a region of its own that no step ran, since only shapes came from it */
  uint32_t *first;    /* per group: where its nodes begin in nodes; one more for the end */
  uint32_t *nodes;
} heddle__precedent;

/* Whether what was found for other shapes may say anything of an order. */
bool heddle__precedent_usable(const struct heddle__order *order);

/* What the model knows of an order's class, with one more reference; NULL: nothing. Any thread. */
heddle__precedent *heddle__precedent_find(heddle_model *m, const struct heddle__order *order);
/* Takes a plan into the model's list, in place of what was there for the class. Where memory is out nothing is learned,
 * and the next plan is made as if it were the first. Any thread. */
void heddle__precedent_learn(heddle_model *m, const struct heddle__order *order, const heddle__plan *plan);
void heddle__precedent_release(heddle__precedent *p); /* takes NULL */

/* For the pass place: the device of a node that forms a region with others, or that no step ran, where it is the first choice of a
 * node without rule and annotation, or that which they say; HEDDLE__NONE: it has to be asked about. */
uint32_t heddle__precedent_device(const heddle__plan *plan, uint32_t node, uint32_t wanted);
/* For the pass regions, in place of heddle__partition: joins the groups. HEDDLE_EUNSUPPORTED where a plugin does not take
 * one of them any more, or a node is on another device now. */
heddle_status heddle__precedent_join(heddle__grouping *all, heddle_error *err);

/* For the pass regions: what a node that no step ran has in place of a plugin's answer: one offer, in which all inputs are
 * absorbed. The pass copies fails with HEDDLE_EUNSUPPORTED where a step is to run it after all. */
heddle_status heddle__precedent_idle(heddle__plan *plan, heddle__answer *answer, heddle_error *err);

#endif
