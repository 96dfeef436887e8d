/* executor/fold.h: arithmetic on shapes, done on the host while planning. */
#ifndef HEDDLE_EXECUTOR_FOLD_H
#define HEDDLE_EXECUTOR_FOLD_H

#include "executor/plan.h"

/* Large tensors on the way to a shape, which a plan does not keep. */
typedef struct heddle__fold_room {
  void **blocks;
  uint64_t bytes; /* of all */
  uint32_t n, cap;
  void *given; /* with given_bytes: where the next result goes; else NULL */
  uint64_t given_bytes;
} heddle__fold_room;

/* Where all inputs that the result depends on are known, gives outs[which].data: by itself for small tensors of the
 * operators that shapes are computed with, of float32, float64, int32, int64 or bool, else by a reference
 * kernel; else it leaves it NULL, and the caller that needs the bytes reports it. outs: all outputs of the
 * node, with bytes. The bytes are in the plan's arena where they are few or the plan is to keep them, else in the room.
 * HEDDLE_ENOMEM; HEDDLE_ELIMIT where the room would take more than 1 GiB. */
heddle_status heddle__fold(heddle__plan *plan, heddle__fold_room *room, const heddle__node *node,
                           const heddle__known *const *inputs, heddle__known *outs, uint32_t which, bool keep,
                           heddle_error *err);

/* Frees the room; values whose bytes lie there have none any more. */
void heddle__fold_forget(heddle__plan *plan, heddle__fold_room *room);

/* A number of a tensor: whole holds it where real is false. */
typedef struct heddle__number {
  bool real;
  int64_t whole;
  double value; /* always set */
} heddle__number;

/* fold_number.c: whether an operator is one of those that work element by element and are folded; and one element of
 * the result from one of each of its one to three inputs, false where that cannot be. */
bool heddle__fold_knows(const char *op);
bool heddle__fold_number(const char *op, const heddle__number *in, uint32_t n, heddle__number *out);

#endif
