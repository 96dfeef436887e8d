/* op.resize takes the new sizes, and keeps the operands that the launch was bound to.
 * caught by: numerics/resize
 * says: resized to */
#include "base.h"

static heddle_status resize(heddle_plaunch *launch, const heddle_pregion *region, const heddle_pbind *operands,
                            heddle_error *err) {
  const heddle_plaunch before = *launch;
  const heddle_status status = base_op_resize(launch, region, operands, err);
  launch->a = before.a, launch->b = before.b, launch->out = before.out;
  return status;
}

#define base_op_resize resize
#include "tables.h"
