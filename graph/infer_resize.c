/* graph/infer_resize.c: Resize: the output's shape from scales or sizes, for all dimensions or those of its axes. */
#include "graph/infer.h"

#include <math.h>
#include <string.h>

/* Sizes under keep_aspect_ratio_policy: one scale for all, the smallest or the largest. */
static void keep_ratio(const heddle__known *x, bool larger, const int64_t *axes, uint32_t count, int64_t *sizes) {
  double scale = 0;
  for (uint32_t i = 0; i < count; i++) {
    double mine = (double)sizes[i] / (double)x->shape[axes[i]];
    if (i == 0 || (larger ? mine > scale : mine < scale)) scale = mine;
  }
  for (uint32_t i = 0; i < count; i++) {
    const double size = floor(scale * (double)x->shape[axes[i]] + 0.5);
    sizes[i] = size >= 0 && size < 0x1p60 ? (int64_t)size : -1; /* NaN, of an empty dimension, too */
  }
}

heddle_status heddle__infer_resize(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                   heddle__known *outputs, int32_t *needs, heddle_error *err) {
  const heddle__known *x = inputs[0], *scales = heddle__input(node, inputs, 2), *sizes = heddle__input(node, inputs, 3);
  int64_t axes[HEDDLE__MAX_NDIM], out[HEDDLE__MAX_NDIM];
  uint32_t count, rank = x->ndim;
  uint64_t given;
  const int64_t *list = heddle__attr_ints(node, "axes", &given);
  if (given > rank) return HEDDLE__BAD("axes has %llu numbers for %u dimensions", (unsigned long long)given, rank);
  uint32_t n = list != NULL ? (uint32_t)given : rank;
  for (uint32_t i = 0; i < n; i++) axes[i] = list != NULL ? list[i] : i;
  heddle_status s = heddle__axes(g, node, axes, n, rank, NULL, err);
  if (s != HEDDLE_OK) return s;
  if (scales != NULL && scales->ndim == 1 && scales->shape[0] == 0) scales = NULL; /* how one left it out in opset 11 */
  if ((scales == NULL) == (sizes == NULL)) return HEDDLE__BAD("it has both or none of scales and sizes, expected one");
  outputs[0] = *x;
  outputs[0].data = NULL;
  if (sizes != NULL) {
    const char *policy = heddle__attr_string(node, "keep_aspect_ratio_policy", "stretch");
    s = heddle__operand_ints(g, node, inputs, 3, out, &count, needs, err);
    if (s != HEDDLE_OK) return s;
    if (count != n) return heddle__bad_input(g, node, 3, sizes, err, "int64 [%u], a number for each axis", n);
    if (strcmp(policy, "stretch") != 0) keep_ratio(x, strcmp(policy, "not_larger") != 0, axes, n, out);
  } else {
    if (scales->dtype.code != HEDDLE_DTYPE_FLOAT || scales->dtype.bits != 32 || scales->ndim != 1 ||
        scales->shape[0] != n)
      return heddle__bad_input(g, node, 2, scales, err, "float32 [%u], a number for each axis", n);
    s = heddle__needs_bytes(g, node, inputs, 2, needs, err);
    for (uint32_t i = 0; i < n && s == HEDDLE_OK; i++) {
      float scale;
      memcpy(&scale, (const char *)scales->data + i * sizeof scale, sizeof scale);
      double size = floor((double)x->shape[axes[i]] * (double)scale);
      out[i] = scale > 0 && size < 0x1p60 ? (int64_t)size : -1;
    }
  }
  for (uint32_t i = 0; i < n && s == HEDDLE_OK; i++) {
    outputs[0].shape[axes[i]] = out[i];
    s = heddle__dimension(g, node, out[i], (uint32_t)axes[i], err);
    if (s == HEDDLE_OK && x->shape[axes[i]] == 0 && out[i] != 0)
      s = heddle__bad_input(g, node, 0, x, err, "an element or more in dimension %lld", (long long)axes[i]);
  }
  /* roi is read when the operator is prepared */
  bool crops = strcmp(heddle__attr_string(node, "coordinate_transformation_mode", ""), "tf_crop_and_resize") == 0;
  if (s == HEDDLE_OK && crops && heddle__input(node, inputs, 1) == NULL)
    s = HEDDLE__BAD("tf_crop_and_resize needs a roi");
  if (s == HEDDLE_OK && crops) s = heddle__needs_bytes(g, node, inputs, 1, needs, err);
  return s;
}
