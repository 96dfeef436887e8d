/* The operands of a product of square matrices are swapped.
 * caught by: numerics/run:MatMul
 * and by: numerics/%:MatMul
 * says: [17,17] */
#include "base.h"

static heddle_status bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands, heddle_plaunch **out,
                          heddle_error *err) {
  heddle_status status = base_op_bind(op, stream, operands, out, err);
  if (status != HEDDLE_OK || op->kind != BASE_MATMUL || op->m != op->k || op->k != op->n) return status;
  const float *a = (*out)->a;
  (*out)->a = (*out)->b;
  (*out)->b = a;
  return HEDDLE_OK;
}

#define base_op_bind bind
#include "tables.h"
