/* frontends/onnx/upgrade_parts.c: operators that graphs have only in plain kernels, made of those that every plugin has
 * and joins with their neighbours: residuals are written as Sum, and Gelu stands behind a matrix product. */
#include <string.h>

#include "frontends/onnx/types.h"
#include "frontends/onnx/upgrade.h"

static bool is_float32(const heddle__onnx_reader *r, const Onnx__NodeProto *node) {
  return node->n_input > 0 && heddle__onnx_known_of(r, node->input[0]).type == ONNX_FLOAT;
}

/* A row of Add, and for Mean of float32 a division by how many there are. */
HEDDLE__UPGRADE(heddle__upgrade_sum) {
  size_t n = node->n_input;
  bool is_mean = strcmp(node->op_type, "Mean") == 0;
  if (n == 0 || node->n_output != 1 || (is_mean && !is_float32(r, node))) return HEDDLE_OK;
  const char *name = heddle__onnx_node_name(node), *sum = node->input[0], *output = node->output[0];
  *is_done = true;
  if (n == 1)
    return heddle__onnx_new_node(r, "Identity", name, sum, NULL, output) != NULL ? HEDDLE_OK
                                                                                 : heddle__onnx_no_memory(r);
  for (size_t i = 1; i < n; i++) {
    bool is_last = i + 1 == n && !is_mean;
    const char *next = is_last ? output : heddle__onnx_new_value(r, node, "sum");
    if (heddle__onnx_new_node(r, "Add", is_last ? name : next, sum, node->input[i], next) == NULL)
      return heddle__onnx_no_memory(r);
    sum = next;
  }
  if (!is_mean) return HEDDLE_OK;
  const char *count = heddle__onnx_new_scalar(r, node, "count", node->input[0], (float)n);
  if (count == NULL || heddle__onnx_new_node(r, "Div", name, sum, count, output) == NULL)
    return heddle__onnx_no_memory(r);
  return HEDDLE_OK;
}

/* Gelu of float32 is that of domain "heddle", with the same attribute; ONNX has none in older opsets. */
HEDDLE__UPGRADE(heddle__upgrade_gelu) {
  (void)is_done;
  if (heddle__schema_find("", node->op_type, heddle__onnx_base(r)) != NULL && is_float32(r, node))
    node->domain = (char *)(uintptr_t) "heddle";
  return HEDDLE_OK;
}
