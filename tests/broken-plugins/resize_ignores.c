/* op.resize takes the new operands, and keeps the sizes of the bound.
 * caught by: numerics/resize
 * says: resized to */
#include "base.h"

static heddle_status resize(heddle_plaunch *launch, const heddle_pregion *region, const heddle_pbind *operands,
                            heddle_error *err) {
  const heddle_status status = base_op_resize(launch, region, operands, err);
  if (status != HEDDLE_OK) return status;
  launch->m = launch->op->m, launch->k = launch->op->k, launch->n = launch->op->n;
  return HEDDLE_OK;
}

#define base_op_resize resize
#include "tables.h"
