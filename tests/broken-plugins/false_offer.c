/* Takes MatMul when asked, and refuses it when it is prepared.
 * caught by: numerics/run:MatMul
 * and by: numerics
 * says: op.prepare of offer 0, which query made */
#include "base.h"

static heddle_status prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                             heddle_error *err) {
  const heddle_pnode *node = region->nodes.data;
  if (strcmp(node->op, "MatMul") == 0)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%s': MatMul is not there after all", node->name);
  return base_op_prepare(dev, region, offer, out, err);
}

#define base_op_prepare prepare
#include "tables.h"
