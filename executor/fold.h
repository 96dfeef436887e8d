/* executor/fold.h: arithmetic on shapes, done on the host while planning. */
#ifndef HEDDLE_EXECUTOR_FOLD_H
#define HEDDLE_EXECUTOR_FOLD_H

#include "executor/plan.h"

/* Where all inputs that the result depends on are known and the tensors are small, gives out->data (in the plan's arena):
 * by itself for the operators that shapes are computed with, of float32, float64, int32, int64 or bool, else by a kernel of
 * a reference kernel; where that cannot be it leaves out->data NULL, and whoever needs the bytes says so. output: which of
 * the node's outputs out is. Fails only for memory. */
heddle_status heddle__fold(heddle__plan *plan, const heddle__node *node, const heddle__known *const *inputs,
                           uint32_t output, heddle__known *out, heddle_error *err);

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
