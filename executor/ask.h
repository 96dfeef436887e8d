/* executor/ask.h: turns nodes of the graph into the region that a plugin is asked about, and keeps what it offers. */
#ifndef HEDDLE_EXECUTOR_ASK_H
#define HEDDLE_EXECUTOR_ASK_H

#include "executor/plan.h"

/* What a plugin was asked and what it said. All memory is the plan's. */
typedef struct heddle__answer {
  heddle_pregion *ask;
  uint32_t *inputs;  /* plan values, one per region input */
  uint32_t *outputs; /* likewise */
  heddle__offer *offers;
  uint32_t n_offers;
} heddle__answer;

/* The region of these nodes (in order), with shapes, attributes and the bytes of constants. Outputs are the values that
 * another node, a head or a kept value uses; users has, per entry, how many uses there are in all. */
heddle_status heddle__ask_build(heddle__plan *plan, const uint32_t *nodes, uint32_t n_nodes, const uint32_t *users,
                                heddle__answer *out, heddle_error *err);

/* The region of one Reorder of value from layout a to layout b. */
heddle_status heddle__ask_reorder(heddle__plan *plan, uint32_t value, heddle_layout a, heddle_layout b,
                                  heddle__answer *out, heddle_error *err);

/* Asks plan device; HEDDLE_OK with offers, HEDDLE_EUNSUPPORTED with the plugin's words. Opens the device where the
 * plugin answers HEDDLE_ENEEDSOPEN. */
heddle_status heddle__ask(heddle__plan *plan, uint32_t device, heddle__answer *answer, heddle_error *err);
heddle_status heddle__ask_device(heddle__plan *plan, heddle_device *dev, heddle__answer *answer, heddle_error *err);

/* place.c: builds the region of one node and asks plan device, or the library whose function the node calls. */
heddle_status heddle__place_ask(heddle__plan *plan, uint32_t node, uint32_t device, heddle__answer *out,
                                heddle_error *err);

/* Asks, and where the answer is HEDDLE_ENEEDSOPEN opens the device and asks once more. Blocks where it opens. */
heddle_status heddle__ask_open(heddle_device *dev, heddle_status (*ask)(void *ctx, heddle_error *err), void *ctx,
                               heddle_error *err);

/* How often each entry is used: by inputs of used nodes, heads, kept values. The plan's memory; NULL without. */
uint32_t *heddle__count_users(heddle__plan *plan);

#endif
