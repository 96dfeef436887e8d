/* An op that cannot be prepared writes to an err that is not there.
 * caught by: errors/no_memory_prepare
 * says: op.prepare */
#include "base.h"

static heddle_status prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                             heddle_error *err) {
  heddle_status status = base_op_prepare(dev, region, offer, out, err);
  if (status != HEDDLE_OK) err->api_code = 5;
  return status;
}

#define base_op_prepare prepare
#include "tables.h"
