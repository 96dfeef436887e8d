/* A value that a region uses and that leaves it too is kept inside: the region's result is not written.
 *
 * caught by: regions/compute:branches
 * says: Add+Relu
 * and by: regions/%
 */
#define FUSED_FIX keep_inside
#include "fused.h"

static void keep_inside(fused_op *op) {
  for (uint32_t i = 0; i + 1 < op->n_steps && op->n_values < FUSED_VALUES; i++) {
    const int32_t from = op->steps[i].out, to = (int32_t)op->n_values;
    bool used = false;
    for (uint32_t j = i + 1; j < op->n_steps; j++) {
      if (op->inside[from] || (op->steps[j].a != from && op->steps[j].b != from)) continue;
      used = true;
      if (op->steps[j].a == from) op->steps[j].a = to;
      if (op->steps[j].b == from) op->steps[j].b = to;
    }
    if (!used) continue;
    op->steps[i].out = to;
    op->inside[to] = true;
    op->count[to] = op->count[from];
    op->n_values++;
  }
}

#include "tables.h"
