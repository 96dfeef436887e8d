/* An op keeps the shape of its region's first value.
 * caught by: numerics/kept
 * and by: numerics/resize%
 * says: signal 11 */
#include "base.h"

static heddle_status mine_op_prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer,
                                     heddle_pop **out, heddle_error *err) {
  const heddle_status status = base_op_prepare(dev, region, offer, out, err);
  if (status == HEDDLE_OK) (*out)->more = ((const heddle_pvalue *)region->values.data)->shape;
  return status;
}

static heddle_status mine_op_run(heddle_plaunch *launch, heddle_error *err) {
  const int64_t *shape = launch->op->more;
  if (shape[0] < 0) return p_fail(err, HEDDLE_EFAILED, 0, "a shape");
  return base_op_run(launch, err);
}

#define base_op_prepare mine_op_prepare
#define base_op_run mine_op_run
#include "tables.h"
