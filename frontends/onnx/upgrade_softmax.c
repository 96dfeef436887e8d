/* frontends/onnx/upgrade_softmax.c: Softmax, LogSoftmax and Hardmax before opset 13: the input is seen as a matrix, the
 * dimensions before axis by those from axis on, and the operator is applied to each row of it. */
#include "frontends/onnx/types.h"
#include "frontends/onnx/upgrade.h"

HEDDLE__UPGRADE(heddle__upgrade_softmax) {
  int64_t axis = heddle__onnx_attr_int(node, "axis", 1);
  if (node->n_input != 1 || node->n_output != 1) return HEDDLE_OK; /* refused when the graph is checked */
  int32_t rank = heddle__onnx_known_of(r, node->input[0]).rank;
  heddle_status s = heddle__onnx_set_int(r, node, "axis", -1);
  if (s != HEDDLE_OK || axis == -1 || (rank > 0 && axis == rank - 1)) return s; /* a row is the last dimension */

  const char *name = heddle__onnx_node_name(node), *input = node->input[0], *output = node->output[0];
  const char *flat = heddle__onnx_new_value(r, node, "flat"), *shape = heddle__onnx_new_value(r, node, "shape");
  const char *rows = heddle__onnx_new_value(r, node, "rows");
  Onnx__NodeProto *flatten = heddle__onnx_new_node(r, "Flatten", flat, input, NULL, flat);
  if (flatten == NULL || shape == NULL || rows == NULL) return heddle__onnx_no_memory(r);
  s = heddle__onnx_set_int(r, flatten, "axis", axis);
  node->input[0] = (char *)(uintptr_t)flat;
  node->output[0] = (char *)(uintptr_t)rows;
  node->name = (char *)(uintptr_t)name;
  if (s == HEDDLE_OK) s = heddle__onnx_add_node(r, node);
  if (s == HEDDLE_OK && (heddle__onnx_new_node(r, "Shape", shape, input, NULL, shape) == NULL ||
                         heddle__onnx_new_node(r, "Reshape", output, rows, shape, output) == NULL))
    s = heddle__onnx_no_memory(r);
  *is_done = true;
  return s;
}
