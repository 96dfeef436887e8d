/* executor/fold.h: arithmetic on shapes, done on the host while planning. */
#ifndef HEDDLE_EXECUTOR_FOLD_H
#define HEDDLE_EXECUTOR_FOLD_H

#include "executor/plan.h"

/* Where all inputs of the node are known and it is an int64 Concat, Add or Mul, gives out->data (in the plan's arena);
 * else leaves it NULL, and whoever needs the bytes says so. Fails only for memory. */
heddle_status heddle__fold(heddle__plan *plan, const heddle__node *node, const heddle__known *const *inputs,
                           heddle__known *out, heddle_error *err);

#endif
