/* graph/infer_select.c: operators that take parts of a tensor: Split, Slice, Gather. */
#include "graph/infer.h"

#include <string.h>

heddle_status heddle__infer_split(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                  heddle__known *outputs, int32_t *needs, heddle_error *err) {
  const heddle__known *x = inputs[0], *list = heddle__input(node, inputs, 1);
  uint32_t axis, n = node->n_outputs;
  const bool has_number = heddle__opset_has_attr(node->op, g->opset, "num_outputs");
  int64_t sum = 0;
  heddle_status s = heddle__attr_axis(g, node, 0, x->ndim, false, &axis, err);
  if (s != HEDDLE_OK) return s;
  if (list != NULL) {
    if (list->dtype.code != HEDDLE_DTYPE_INT || list->dtype.bits != 64 || list->ndim != 1 || list->shape[0] != n)
      return heddle__bad_input(g, node, 1, list, err, "int64 [%u], a number for each output", n);
    s = heddle__needs_bytes(g, node, inputs, 1, needs, err);
    if (s != HEDDLE_OK) return s;
  } else if (has_number && heddle__attr_int(node, "num_outputs", 0) != n) {
    return HEDDLE__BAD("it has neither an input split nor num_outputs %u, its number of outputs", n);
  } else if (!has_number && x->shape[axis] % n != 0) {
    return heddle__bad_input(g, node, 0, x, err, "a multiple of %u in dimension %u, for %u equal parts", n, axis, n);
  }
  int64_t size = x->shape[axis], part = size / n + (size % n != 0);
  for (uint32_t k = 0; k < n; k++) {
    int64_t mine = size - sum < part ? size - sum : part;
    if (list != NULL) memcpy(&mine, (const char *)list->data + 8 * (size_t)k, 8);
    if (mine < 0 || mine > size - sum)
      return HEDDLE__BAD("its parts are not the %lld of dimension %u", (long long)size, axis);
    sum += mine;
    outputs[k] = *x;
    outputs[k].data = NULL;
    outputs[k].shape[axis] = mine;
  }
  return sum == size ? HEDDLE_OK : HEDDLE__BAD("its parts are not the %lld of dimension %u", (long long)size, axis);
}

heddle_status heddle__infer_slice(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                  heddle__known *outputs, int32_t *needs, heddle_error *err) {
  const heddle__known *x = inputs[0];
  int64_t list[4][HEDDLE__MAX_NDIM]; /* starts, ends, axes, steps */
  uint32_t count[4];
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < 4 && s == HEDDLE_OK; i++) {
    s = heddle__operand_ints(g, node, inputs, 1 + i, list[i], &count[i], needs, err);
    for (uint32_t k = 0; i >= 2 && count[i] == UINT32_MAX && k < HEDDLE__MAX_NDIM; k++) list[i][k] = i == 2 ? k : 1;
    if (s == HEDDLE_OK && count[i] != count[0] && count[i] != UINT32_MAX)
      s = HEDDLE__BAD("input %u has %u numbers, and input 1 has %u", 1 + i, count[i], count[0]);
  }
  if (s == HEDDLE_OK) s = heddle__axes(g, node, list[2], count[0], x->ndim, NULL, err);
  if (s != HEDDLE_OK) return s;
  outputs[0] = *x;
  outputs[0].data = NULL;
  for (uint32_t i = 0; i < count[0]; i++) {
    int64_t size = x->shape[list[2][i]], from = list[0][i], to = list[1][i], step = list[3][i];
    if (step == 0 || step < -INT64_MAX) return HEDDLE__BAD("a step is %lld", (long long)step);
    if (from < 0) from = from < -size ? -1 : from + size;
    if (to < 0) to = to < -size ? -1 : to + size;
    if (step > 0) {
      from = from < 0 ? 0 : from;
      to = to > size ? size : to;
      outputs[0].shape[list[2][i]] = to > from ? (to - from - 1) / step + 1 : 0;
    } else {
      from = from > size - 1 ? size - 1 : from < 0 && list[0][i] < 0 ? 0 : from;
      to = to > size - 1 ? size - 1 : to;
      outputs[0].shape[list[2][i]] = size > 0 && from > to ? (from - to - 1) / -step + 1 : 0;
    }
  }
  return HEDDLE_OK;
}

heddle_status heddle__infer_gather(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                   heddle__known *outputs, int32_t *needs, heddle_error *err) {
  (void)needs;
  const heddle__known *x = inputs[0], *at = inputs[1];
  uint32_t axis, n = 0;
  heddle_status s = heddle__attr_axis(g, node, 0, x->ndim, false, &axis, err);
  if (s != HEDDLE_OK) return s;
  if (at->dtype.code != HEDDLE_DTYPE_INT || (at->dtype.bits != 32 && at->dtype.bits != 64) || at->dtype.lanes != 1 ||
      at->ndim > HEDDLE__MAX_NDIM - (x->ndim - 1))
    return heddle__bad_input(g, node, 1, at, err, "int32 or int64, and at most %d dimensions in the output",
                             HEDDLE__MAX_NDIM);
  outputs[0].dtype = x->dtype;
  for (uint32_t i = 0; i < axis; i++) outputs[0].shape[n++] = x->shape[i];
  for (uint32_t i = 0; i < at->ndim; i++) outputs[0].shape[n++] = at->shape[i];
  for (uint32_t i = axis + 1; i < x->ndim; i++) outputs[0].shape[n++] = x->shape[i];
  outputs[0].ndim = n;
  return HEDDLE_OK;
}
