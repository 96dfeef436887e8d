/* op.resize refuses larger shapes when it has taken them already.
 * caught by: numerics/resize-refused
 * says: refused */
#include "base.h"

static heddle_status mine_op_resize(heddle_plaunch *launch, const heddle_pregion *region, const heddle_pbind *operands,
                                    heddle_error *err) {
  const uint64_t room = launch->op->kind == BASE_MATMUL ? launch->op->m * launch->op->n : launch->op->n;
  const heddle_status status = base_op_resize(launch, region, operands, err);
  const uint64_t needed = launch->op->kind == BASE_MATMUL ? launch->m * launch->n : launch->n;
  if (status != HEDDLE_OK || needed <= room) return status;
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "shapes that are larger than the op's");
}

#define base_op_resize mine_op_resize
#include "tables.h"
