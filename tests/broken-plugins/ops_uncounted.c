/* Ops are not counted among the live objects.
 * caught by: numerics/counts
 * says: with an op */
#include "base.h"

static heddle_status prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                             heddle_error *err) {
  const heddle_status status = base_op_prepare(dev, region, offer, out, err);
  if (status == HEDDLE_OK) atomic_fetch_sub(&dev->live_objects, 1);
  return status;
}

static void release(heddle_pop *op) {
  if (op != NULL) atomic_fetch_add(&op->dev->live_objects, 1);
  base_op_free(op);
}

#define base_op_prepare prepare
#define base_op_free release
#include "tables.h"
