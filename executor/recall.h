/* executor/recall.h: the plan that a package carries: what plugins answered when the package was made, question by question,
 * so that a plan is made again without asking them. All passes run as ever, and the plan is proved as any.
 *
 * Planning is deterministic, so the questions come in the same order. Each is compared with the one that was asked then;
 * where one differs, all that was remembered is dropped and the plan is made by asking. */
#ifndef HEDDLE_EXECUTOR_RECALL_H
#define HEDDLE_EXECUTOR_RECALL_H

#include "executor/ask.h"

struct heddle__order;

typedef struct heddle__recall heddle__recall;

/* For one program: of a model whose package is being made one that keeps, of one whose package has the order's plan one that
 * gives. NULL: neither. */
heddle__recall *heddle__recall_open(heddle_model *m, const struct heddle__order *order);
/* s is how the making of the program ended: what was kept is written where it went well. True: what was given does not fit,
 * and the program is to be made again without. Takes NULL. */
bool heddle__recall_close(heddle__recall *r, heddle_status s);

/* In place of an answer of dev to the question that a region is; may be NULL, which is false. True: *out is the status, with
 * err, and the offers were handed to take. HEDDLE_EINVAL: it is dropped. */
bool heddle__recall_query(heddle__recall *r, const heddle_device *dev, const heddle_pregion *region,
                          heddle_offer_fn take, void *sink, heddle_status *out, heddle_error *err);
/* Keeps an answer, where it keeps. */
void heddle__recall_answer(heddle__recall *r, const heddle_device *dev, const heddle__answer *answer, heddle_status s,
                           const heddle_error *err);

/* Likewise of the proposals of dev for a region. A proposal is kept before the questions about it; end after the last. */
bool heddle__recall_partition(heddle__recall *r, const heddle_device *dev, const heddle_pregion *region,
                              heddle_propose_fn propose, void *sink, heddle_status *out, heddle_error *err);
void heddle__recall_partition_begin(heddle__recall *r, const heddle_device *dev, const heddle_pregion *region);
void heddle__recall_proposal(heddle__recall *r, const uint32_t *nodes, uint32_t count);
void heddle__recall_partition_end(heddle__recall *r, heddle_status s);

#endif
