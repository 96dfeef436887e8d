/* A Sub that follows in a region takes its operands in the wrong order.
 *
 * caught by: regions/compute:residuals
 * says: Sub+Sub
 * and by: regions/%
 */
#define FUSED_FIX swap
#include "fused.h"

static void swap(fused_op *op) {
  for (uint32_t i = 1; i < op->n_steps; i++) {
    fused_step *s = &op->steps[i];
    const int32_t first = s->a;
    if (s->kind != FUSED_SUB) continue;
    s->a = s->b;
    s->b = first;
  }
}

#include "tables.h"
