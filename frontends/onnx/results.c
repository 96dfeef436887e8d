/* frontends/onnx/results.c: types and ranks of the results of a node, by what operators/ says of them. */
#include <string.h>

#include "frontends/onnx/types.h"
#include "frontends/onnx/upgrade.h"
#include "graph/results.h"

static int32_t type_of(const heddle__onnx_reader *r, const Onnx__NodeProto *node, const heddle__result *row) {
  if (strcmp(row->attribute, "none") != 0) {
    const int64_t given = heddle__onnx_attr_int(node, row->attribute, 0);
    if (given > 0 && given < INT32_MAX) return (int32_t)given;
  }
  if (row->type >= 0) return row->type;
  const size_t k = (size_t)(-1 - row->type);
  return k < node->n_input ? heddle__onnx_known_of(r, node->input[k]).type : 0;
}

typedef struct node_of {
  const heddle__onnx_reader *r;
  const Onnx__NodeProto *node;
} node_of;

static int32_t rank_of(const void *of, size_t k) {
  const node_of *n = of;
  return heddle__onnx_known_of(n->r, n->node->input[k]).rank;
}

/* Of operand 1, if it is a tensor of the model. */
static int32_t length_of(const void *of) {
  const node_of *n = of;
  const Onnx__TensorProto *t = n->node->n_input > 1 ? heddle__onnx_find_tensor(n->r, n->node->input[1]) : NULL;
  return t != NULL && t->n_dims == 1 && t->dims[0] >= 0 && t->dims[0] < 255 ? (int32_t)t->dims[0] : -1;
}

heddle_status heddle__onnx_learn_node(heddle__onnx_reader *r, const Onnx__NodeProto *node) {
  const Onnx__AttributeProto *axes = heddle__onnx_attr(node, "axes");
  const node_of of = {r, node};
  const heddle__operands operands = {.of = &of,
                                     .count = node->n_input,
                                     .keeps_dims = heddle__onnx_attr_int(node, "keepdims", 1) != 0,
                                     .axes = axes != NULL && axes->n_ints < 255 ? (int32_t)axes->n_ints : -1,
                                     .rank_of = rank_of,
                                     .length_of = length_of};
  heddle_status s = HEDDLE_OK;
  for (size_t k = 0; k < node->n_output && s == HEDDLE_OK; k++) {
    const heddle__result *row = heddle__result_find(node->op_type, k, false);
    s = heddle__onnx_note(r, node->output[k], type_of(r, node, row), heddle__result_rank(row, &operands));
  }
  return s;
}
