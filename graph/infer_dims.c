/* graph/infer_dims.c: operators that change the dimensions of one tensor: Squeeze, Unsqueeze, Expand, Tile, Transpose,
 * Pad. */
#include "graph/infer.h"

#include <string.h>

heddle_status heddle__infer_squeeze(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                    heddle__known *outputs, int32_t *needs, heddle_error *err) {
  const heddle__known *x = inputs[0];
  int64_t axes[HEDDLE__MAX_NDIM];
  uint32_t count, mask = 0, n = 0;
  heddle_status s = heddle__operand_ints(g, node, inputs, 1, axes, &count, needs, err);
  if (s == HEDDLE_OK && count != UINT32_MAX) s = heddle__axes(g, node, axes, count, x->ndim, &mask, err);
  if (s != HEDDLE_OK) return s;
  outputs[0].dtype = x->dtype;
  for (uint32_t i = 0; i < x->ndim; i++) {
    bool named = count == UINT32_MAX ? x->shape[i] == 1 : (mask >> i & 1) != 0;
    if (named && x->shape[i] != 1) return heddle__bad_input(g, node, 0, x, err, "1 in dimension %u, which goes", i);
    if (!named) outputs[0].shape[n++] = x->shape[i];
  }
  outputs[0].ndim = n;
  return HEDDLE_OK;
}

heddle_status heddle__infer_unsqueeze(const heddle_graph *g, const heddle__node *node,
                                      const heddle__known *const *inputs, heddle__known *outputs, int32_t *needs,
                                      heddle_error *err) {
  const heddle__known *x = inputs[0];
  int64_t axes[HEDDLE__MAX_NDIM];
  uint32_t count, mask = 0, n = 0;
  heddle_status s = heddle__operand_ints(g, node, inputs, 1, axes, &count, needs, err);
  if (s != HEDDLE_OK) return s;
  if (count > HEDDLE__MAX_NDIM - x->ndim) return HEDDLE__BAD("it would have more than %d dimensions", HEDDLE__MAX_NDIM);
  outputs[0].dtype = x->dtype;
  outputs[0].ndim = x->ndim + count;
  s = heddle__axes(g, node, axes, count, outputs[0].ndim, &mask, err);
  for (uint32_t i = 0; s == HEDDLE_OK && i < outputs[0].ndim; i++)
    outputs[0].shape[i] = mask >> i & 1 ? 1 : x->shape[n++];
  return s;
}

heddle_status heddle__infer_expand(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                   heddle__known *outputs, int32_t *needs, heddle_error *err) {
  const heddle__known *x = inputs[0];
  int64_t shape[HEDDLE__MAX_NDIM];
  uint32_t count;
  heddle_status s = heddle__operand_ints(g, node, inputs, 1, shape, &count, needs, err);
  for (uint32_t i = 0; s == HEDDLE_OK && i < count; i++) s = heddle__dimension(g, node, shape[i], i, err);
  if (s != HEDDLE_OK) return s;
  outputs[0].dtype = x->dtype;
  if (heddle__broadcast(x->shape, x->ndim, shape, count, outputs[0].shape, &outputs[0].ndim)) return HEDDLE_OK;
  return heddle__bad_input(g, node, 0, x, err, "a shape that broadcasts with the one that input 1 asks for");
}

heddle_status heddle__infer_tile(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                 heddle__known *outputs, int32_t *needs, heddle_error *err) {
  const heddle__known *x = inputs[0];
  int64_t repeats[HEDDLE__MAX_NDIM];
  uint32_t count;
  heddle_status s = heddle__operand_ints(g, node, inputs, 1, repeats, &count, needs, err);
  if (s != HEDDLE_OK) return s;
  if (count != x->ndim) return heddle__bad_input(g, node, 1, inputs[1], err, "a number for each dimension of input 0");
  outputs[0] = *x;
  outputs[0].data = NULL;
  for (uint32_t i = 0; s == HEDDLE_OK && i < count; i++) {
    bool fits = repeats[i] >= 0 && (repeats[i] == 0 || x->shape[i] <= INT64_MAX / 4 / repeats[i]);
    outputs[0].shape[i] = fits ? x->shape[i] * repeats[i] : -1;
    s = heddle__dimension(g, node, outputs[0].shape[i], i, err);
  }
  return s;
}

heddle_status heddle__infer_transpose(const heddle_graph *g, const heddle__node *node,
                                      const heddle__known *const *inputs, heddle__known *outputs, int32_t *needs,
                                      heddle_error *err) {
  (void)needs;
  uint64_t count;
  const heddle__known *x = inputs[0];
  const int64_t *perm = heddle__attr_ints(node, "perm", &count);
  int64_t axes[HEDDLE__MAX_NDIM];
  outputs[0].dtype = x->dtype;
  outputs[0].ndim = x->ndim;
  if (perm != NULL && count != x->ndim)
    return HEDDLE__BAD("perm has %llu numbers, expected %u", (unsigned long long)count, x->ndim);
  for (uint32_t i = 0; i < x->ndim; i++) axes[i] = perm != NULL ? perm[i] : (int64_t)(x->ndim - 1 - i);
  heddle_status s = heddle__axes(g, node, axes, x->ndim, x->ndim, NULL, err);
  for (uint32_t i = 0; s == HEDDLE_OK && i < x->ndim; i++) outputs[0].shape[i] = x->shape[axes[i]];
  return s;
}

heddle_status heddle__infer_pad(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                heddle__known *outputs, int32_t *needs, heddle_error *err) {
  const heddle__known *x = inputs[0], *fill = heddle__input(node, inputs, 2), *list = inputs[1];
  const char *mode = heddle__attr_string(node, "mode", "constant");
  int64_t axes[HEDDLE__MAX_NDIM];
  uint32_t count;
  if (strcmp(mode, "constant") != 0 && strcmp(mode, "reflect") != 0 && strcmp(mode, "edge") != 0)
    return HEDDLE__BAD("its mode is not constant, reflect or edge");
  heddle_status s = fill != NULL ? heddle__same_dtype(g, node, 2, inputs, err) : HEDDLE_OK;
  if (s == HEDDLE_OK) s = heddle__operand_ints(g, node, inputs, 3, axes, &count, needs, err);
  if (s != HEDDLE_OK) return s;
  if (count == UINT32_MAX) {
    count = x->ndim;
    for (uint32_t i = 0; i < count; i++) axes[i] = i;
  }
  s = heddle__axes(g, node, axes, count, x->ndim, NULL, err);
  if (s != HEDDLE_OK) return s;
  if (list->dtype.code != HEDDLE_DTYPE_INT || list->dtype.bits != 64 || list->ndim != 1 || list->shape[0] != 2 * count)
    return heddle__bad_input(g, node, 1, list, err, "int64 [%u], two for each axis", 2 * count);
  s = heddle__needs_bytes(g, node, inputs, 1, needs, err);
  outputs[0] = *x;
  outputs[0].data = NULL;
  for (uint32_t i = 0; s == HEDDLE_OK && i < count; i++) {
    int64_t ends[2], size = x->shape[axes[i]];
    memcpy(&ends[0], (const char *)list->data + i * 8, 8);
    memcpy(&ends[1], (const char *)list->data + (count + i) * 8, 8);
    for (int k = 0; k < 2; k++) {
      bool far = ends[k] > INT32_MAX || ends[k] < -INT32_MAX || size > INT64_MAX / 4;
      if (far || (mode[0] == 'r' && ends[k] >= size && ends[k] > 0) || (mode[0] == 'e' && size == 0 && ends[k] > 0))
        return HEDDLE__BAD("a pad of %lld does not go with the %lld elements of dimension %lld", (long long)ends[k],
                           (long long)size, (long long)axes[i]);
    }
    outputs[0].shape[axes[i]] = size + ends[0] + ends[1];
    s = heddle__dimension(g, node, size + ends[0] + ends[1], (uint32_t)axes[i], err);
  }
  return s;
}
