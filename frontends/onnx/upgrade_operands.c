/* frontends/onnx/upgrade_operands.c: operators whose attributes became inputs: axes, lengths, bounds. */

#include "frontends/onnx/upgrade.h"

/* The attribute's whole numbers become input i, where it is there. */
static heddle_status ints_to_input(heddle__onnx_reader *r, Onnx__NodeProto *node, const char *name, size_t i) {
  const Onnx__AttributeProto *a = heddle__onnx_attr(node, name);
  if (a == NULL) return HEDDLE_OK;
  heddle_status s = heddle__onnx_set_input(r, node, i, heddle__onnx_new_ints(r, node, name, a->ints, a->n_ints));
  heddle__onnx_drop_attr(node, name);
  return s;
}

HEDDLE__UPGRADE(heddle__upgrade_axes) {
  (void)is_done;
  return ints_to_input(r, node, "axes", 1);
}

HEDDLE__UPGRADE(heddle__upgrade_split) {
  (void)is_done;
  return ints_to_input(r, node, "split", 1);
}

HEDDLE__UPGRADE(heddle__upgrade_clip) {
  static const char *const names[] = {"min", "max"};
  heddle_status s = HEDDLE_OK;
  (void)is_done;
  if (node->n_input < 1) return HEDDLE_OK;
  for (size_t i = 0; i < 2 && s == HEDDLE_OK; i++) {
    const Onnx__AttributeProto *a = heddle__onnx_attr(node, names[i]);
    if (a == NULL) continue; /* the defaults are the ends of float32 */
    s = heddle__onnx_set_input(r, node, i + 1, heddle__onnx_new_scalar(r, node, names[i], node->input[0], a->f));
    heddle__onnx_drop_attr(node, names[i]);
  }
  return s;
}

HEDDLE__UPGRADE(heddle__upgrade_slice) {
  (void)is_done;
  heddle_status s = ints_to_input(r, node, "starts", 1);
  if (s == HEDDLE_OK) s = ints_to_input(r, node, "ends", 2);
  if (s == HEDDLE_OK) s = ints_to_input(r, node, "axes", 3);
  return s;
}

HEDDLE__UPGRADE(heddle__upgrade_pad) {
  (void)is_done;
  if (node->n_input < 1) return HEDDLE_OK;
  float value = heddle__onnx_attr_float(node, "value", 0);
  heddle_status s = ints_to_input(r, node, "pads", 1);
  heddle__onnx_drop_attr(node, "value");
  if (s == HEDDLE_OK && value != 0)
    s = heddle__onnx_set_input(r, node, 2, heddle__onnx_new_scalar(r, node, "value", node->input[0], value));
  return s;
}

HEDDLE__UPGRADE(heddle__upgrade_top_k) {
  const Onnx__AttributeProto *a = heddle__onnx_attr(node, "k");
  const int64_t k = a != NULL ? a->i : 0;
  (void)is_done;
  if (a == NULL && !heddle__onnx_has_attr(r, node->op_type, "k")) return HEDDLE_OK;
  heddle__onnx_drop_attr(node, "k");
  return heddle__onnx_set_input(r, node, 1, heddle__onnx_new_ints(r, node, "k", &k, 1));
}
