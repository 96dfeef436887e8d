/* The reference kernels of each operator, from its line in operators/. */
#include "ref_op.h"

#define ref_plan_none NULL
#define ref_fill_none NULL

const ref_entry ref_table[] = {
#define OPERATOR(domain, op, types, kernel, tail, ...) {ref_plan_##kernel, ref_fill_##tail},
#include "operators/all.def"
};

heddle_status ref_list(heddle_list_fn list, void *sink, heddle_error *err) {
  for (uint32_t i = 0; i < heddle__operator_count; i++) {
    const heddle__operator *op = &heddle__operators[i];
    if (ref_table[i].plan == NULL && !more_has(i)) continue;
    heddle_status s = heddle__operator_list(op, op->types, list, sink, err);
    if (s != HEDDLE_OK) return s;
  }
  return HEDDLE_OK;
}
