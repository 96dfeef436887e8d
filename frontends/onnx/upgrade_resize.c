/* frontends/onnx/upgrade_resize.c: Upsample, and Resize of opset 10: the coordinates of both are those that later are
 * called asymmetric, and the nearest element is found by rounding down where the tensor grows, up where it shrinks. */
#include <string.h>

#include "frontends/onnx/tensor.h"
#include "frontends/onnx/upgrade.h"

/* How the nearest element is found; NULL where that is not one way for all dimensions. */
static const char *rounding(heddle__onnx_reader *r, const char *scales) {
  float factors[HEDDLE__MAX_NDIM];
  const Onnx__TensorProto *t = heddle__onnx_find_tensor(r, scales);
  int n = t != NULL ? heddle__onnx_floats(r, t, factors, HEDDLE__MAX_NDIM) : -1;
  bool grows = false, shrinks = false;
  for (int i = 0; i < n; i++) {
    grows = grows || factors[i] > 1;
    shrinks = shrinks || factors[i] < 1;
  }
  if (n < 0 || (grows && shrinks)) return NULL;
  return shrinks ? "ceil" : "floor";
}

/* Upsample only grows, whatever its scales turn out to be. */
static heddle_status set_rounding(heddle__onnx_reader *r, Onnx__NodeProto *node, const char *scales, bool grows) {
  const char *mode = grows ? "floor" : rounding(r, scales);
  if (mode != NULL) return heddle__onnx_set_text(r, node, "nearest_mode", mode);
  heddle__onnx_problem(r, node, "its scales are no constant that only grows or only shrinks the input");
  return HEDDLE_OK;
}

/* The operands X, scales become X, no region, scales. */
static heddle_status to_resize(heddle__onnx_reader *r, Onnx__NodeProto *node, const char *scales, bool grows) {
  heddle_status s = heddle__onnx_set_input(r, node, 2, scales);
  if (s != HEDDLE_OK) return s;
  node->input[1] = (char *)(uintptr_t) "";
  node->op_type = (char *)(uintptr_t) "Resize";
  s = heddle__onnx_set_text(r, node, "coordinate_transformation_mode", "asymmetric");
  if (s == HEDDLE_OK && !heddle__onnx_attr_is(node, "mode", "linear") &&
      !heddle__onnx_attr_is(node, "mode", "bilinear"))
    return set_rounding(r, node, scales, grows);
  return s == HEDDLE_OK ? heddle__onnx_set_text(r, node, "mode", "linear") : s;
}

HEDDLE__UPGRADE(heddle__upgrade_resize) {
  (void)is_done;
  return node->n_input == 2 ? to_resize(r, node, node->input[1], false) : HEDDLE_OK;
}

/* The scales are an attribute, or later an operand. */
HEDDLE__UPGRADE(heddle__upgrade_upsample) {
  (void)is_done;
  const Onnx__AttributeProto *scales = heddle__onnx_attr(node, "scales");
  if (!heddle__onnx_has_attr(r, node->op_type, "scales"))
    return node->n_input == 2 ? to_resize(r, node, node->input[1], true) : HEDDLE_OK;
  if (scales == NULL || node->n_input != 1) {
    heddle__onnx_problem(r, node, "it has no scales");
    return HEDDLE_OK;
  }
  const char *value = heddle__onnx_new_floats(r, node, "scales", scales->floats, scales->n_floats);
  heddle__onnx_drop_attr(node, "scales");
  return to_resize(r, node, value, true);
}
