/* op.prepare makes the calling thread round downwards.
 * caught by: process/calls
 * and by: numerics
 * says: op.query or op.prepare changed how the calling thread rounds */
#include "base.h"

#include <fenv.h>

static heddle_status prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                             heddle_error *err) {
  fesetround(FE_DOWNWARD);
  return base_op_prepare(dev, region, offer, out, err);
}

#define base_op_prepare prepare
#include "tables.h"
