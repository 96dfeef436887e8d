/* executor/grow.h: room for one more element in an array of the plan's arena. */
#ifndef HEDDLE_EXECUTOR_GROW_H
#define HEDDLE_EXECUTOR_GROW_H

#include "executor/plan.h"

/* Makes array (of count elements, cap of them allocated) at least count + 1 long; the new ones are zeroed. */
#define HEDDLE__GROW(plan, array, count, cap, err) \
  heddle__plan_grow((plan), (void **)&(array), (count), &(cap), sizeof *(array), (err))

heddle_status heddle__plan_grow(heddle__plan *plan, void **array, uint32_t count, uint32_t *cap, size_t size,
                                heddle_error *err);

#endif
