/* A region of Gemm and Relu leaves the Relu out: its result is that of the Gemm.
 *
 * caught by: regions/compute:products
 * says: Gemm+Relu
 * and by: regions/%
 */
#define FUSED_FIX skip
#include "fused.h"

static void skip(fused_op *op) {
  for (uint32_t i = 1; i < op->n_steps; i++)
    if (op->steps[i].kind == FUSED_RELU && op->steps[i - 1].kind == FUSED_GEMM) op->steps[i].kind = FUSED_COPY;
}

#include "tables.h"
