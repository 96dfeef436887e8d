/* graph/infer_reduce.c: operators that make one element of many along axes: ReduceSum and its kind, ArgMax, TopK. */
#include "graph/infer.h"

heddle_status heddle__infer_reduce(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                   heddle__known *outputs, int32_t *needs, heddle_error *err) {
  const heddle__known *x = inputs[0];
  int64_t axes[HEDDLE__MAX_NDIM];
  uint32_t count = 0, mask, n = 0;
  uint64_t given;
  const int64_t *list = heddle__attr_ints(node, "axes", &given);
  heddle_status s = heddle__number_dtype(g, node, 0, inputs, err);
  if (s == HEDDLE_OK) s = heddle__operand_ints(g, node, inputs, 1, axes, &count, needs, err);
  if (s != HEDDLE_OK) return s;
  if (given > x->ndim)
    return HEDDLE__BAD("axes has %llu numbers for %u dimensions", (unsigned long long)given, x->ndim);
  if (count == UINT32_MAX)
    for (count = 0; count < given; count++) axes[count] = list[count];
  s = heddle__axes(g, node, axes, count, x->ndim, &mask, err);
  if (s != HEDDLE_OK) return s;
  if (count == 0 && heddle__attr_int(node, "noop_with_empty_axes", 0) == 0) mask = UINT32_MAX;
  bool keep = heddle__attr_int(node, "keepdims", 1) != 0;
  outputs[0].dtype = x->dtype;
  for (uint32_t i = 0; i < x->ndim; i++) {
    bool gone = (mask >> i & 1) != 0;
    if (!gone || keep) outputs[0].shape[n++] = gone ? 1 : x->shape[i];
  }
  outputs[0].ndim = n;
  return HEDDLE_OK;
}

heddle_status heddle__infer_arg(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                heddle__known *outputs, int32_t *needs, heddle_error *err) {
  (void)needs;
  const heddle__known *x = inputs[0];
  uint32_t axis, n = 0;
  heddle_status s = heddle__number_dtype(g, node, 0, inputs, err);
  if (s == HEDDLE_OK) s = heddle__attr_axis(g, node, 0, x->ndim, false, &axis, err);
  if (s != HEDDLE_OK) return s;
  if (x->shape[axis] == 0) return heddle__bad_input(g, node, 0, x, err, "an element or more in dimension %u", axis);
  outputs[0].dtype = HEDDLE__INT64;
  for (uint32_t i = 0; i < x->ndim; i++)
    if (i != axis || heddle__attr_int(node, "keepdims", 1) != 0) outputs[0].shape[n++] = i == axis ? 1 : x->shape[i];
  outputs[0].ndim = n;
  return HEDDLE_OK;
}

heddle_status heddle__infer_top_k(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                  heddle__known *outputs, int32_t *needs, heddle_error *err) {
  const heddle__known *x = inputs[0];
  int64_t k[HEDDLE__MAX_NDIM];
  uint32_t axis, count;
  heddle_status s = heddle__number_dtype(g, node, 0, inputs, err);
  if (s == HEDDLE_OK) s = heddle__attr_axis(g, node, -1, x->ndim, false, &axis, err);
  if (s == HEDDLE_OK) s = heddle__operand_ints(g, node, inputs, 1, k, &count, needs, err);
  if (s != HEDDLE_OK) return s;
  if (count != 1 || k[0] < 0 || k[0] > x->shape[axis])
    return HEDDLE__BAD("K is %lld, expected 0 to %lld, the size of dimension %u", count == 1 ? (long long)k[0] : -1,
                       (long long)x->shape[axis], axis);
  outputs[0] = *x;
  outputs[0].data = NULL;
  outputs[0].shape[axis] = k[0];
  if (node->n_outputs > 1) {
    outputs[1] = outputs[0];
    outputs[1].dtype = HEDDLE__INT64;
  }
  return HEDDLE_OK;
}
