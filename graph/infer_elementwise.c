/* graph/infer_elementwise.c: Add and Mul with broadcasting, Relu, Softmax, Identity, Reorder: outputs of the inputs'
 * dtype, and of their shape. */
#include "graph/infer.h"

#include "graph/words.h"

static bool is_number(heddle_dtype d) {
  return d.lanes == 1 && (d.code == HEDDLE_DTYPE_INT || d.code == HEDDLE_DTYPE_UINT || d.code == HEDDLE_DTYPE_FLOAT ||
                          d.code == HEDDLE_DTYPE_BFLOAT);
}

heddle_status heddle__infer_arithmetic(const heddle_graph *g, const heddle__node *node,
                                       const heddle__known *const *inputs, heddle__known *outputs, int32_t *needs,
                                       heddle_error *err) {
  (void)needs;
  const heddle__known *a = inputs[0], *b = inputs[1];
  if (!is_number(a->dtype)) return heddle__bad_input(g, node, 0, a, err, "a number type");
  heddle_status s = heddle__same_dtype(g, node, 1, inputs, err);
  if (s != HEDDLE_OK) return s;
  outputs[0].dtype = a->dtype;
  if (!heddle__broadcast(a->shape, a->ndim, b->shape, b->ndim, outputs[0].shape, &outputs[0].ndim)) {
    char type[128];
    return heddle__bad_input(g, node, 1, b, err,
                             "a shape that broadcasts with input 0 (%s): each dimension from the "
                             "last equal, or 1 in one of them",
                             heddle__type_words(a->dtype, a->ndim, a->shape, type));
  }
  return HEDDLE_OK;
}

heddle_status heddle__infer_same(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                 heddle__known *outputs, int32_t *needs, heddle_error *err) {
  (void)g;
  (void)node;
  (void)needs;
  (void)err;
  outputs[0] = *inputs[0];
  outputs[0].data = NULL;
  return HEDDLE_OK;
}

heddle_status heddle__infer_relu(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                 heddle__known *outputs, int32_t *needs, heddle_error *err) {
  heddle_dtype d = inputs[0]->dtype;
  bool is_int = g->opset >= 14 && d.code == HEDDLE_DTYPE_INT && d.lanes == 1; /* integers since opset 14 */
  if (!is_int) {
    heddle_status s = heddle__float_dtype(g, node, 0, inputs, err);
    if (s != HEDDLE_OK) return s;
  }
  return heddle__infer_same(g, node, inputs, outputs, needs, err);
}

heddle_status heddle__infer_softmax(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                    heddle__known *outputs, int32_t *needs, heddle_error *err) {
  uint32_t axis;
  heddle_status s = heddle__float_dtype(g, node, 0, inputs, err);
  if (s == HEDDLE_OK) s = heddle__attr_axis(g, node, -1, inputs[0]->ndim, false, &axis, err);
  return s == HEDDLE_OK ? heddle__infer_same(g, node, inputs, outputs, needs, err) : s;
}
