/* Of shapes of more than four dimensions the first four count.
 * caught by: numerics/run:Relu
 * and by: numerics/%, regions/%, layouts/%
 * says: float32 */
#include "base.h"

static heddle_status mine_op_prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer,
                                     heddle_pop **out, heddle_error *err) {
  const heddle_status status = base_op_prepare(dev, region, offer, out, err);
  if (status != HEDDLE_OK || (*out)->kind == BASE_MATMUL) return status;
  const heddle_pvalue *value = region->values.data;
  uint64_t n = 1;
  for (int32_t i = 0; i < value->ndim && i < 4; i++) n *= (uint64_t)value->shape[i];
  (*out)->n = n;
  return status;
}

#define base_op_prepare mine_op_prepare
#include "tables.h"
