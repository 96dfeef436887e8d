/* graph/infer_elementwise.c: operators that give one element for each element, after broadcasting: arithmetic,
 * comparison, logic, activations, Cast; and Softmax, whose output looks the same. */
#include "graph/infer.h"

#include <string.h>

/* Inputs [first, node->n_inputs) broadcast together into output 0. */
static heddle_status broadcast(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                               heddle__known *out, heddle_error *err) {
  const heddle__known *a = inputs[0];
  char type[128];
  out->ndim = a->ndim;
  memcpy(out->shape, a->shape, sizeof a->shape);
  for (uint32_t i = 1; i < node->n_inputs; i++) {
    const heddle__known *b = inputs[i];
    if (heddle__broadcast(out->shape, out->ndim, b->shape, b->ndim, out->shape, &out->ndim)) continue;
    return heddle__bad_input(g, node, i, b, err,
                             "a shape that broadcasts with input 0 (%s): each dimension from the last equal, or 1 in "
                             "one of them",
                             heddle__type_words(a->dtype, a->ndim, a->shape, type));
  }
  return HEDDLE_OK;
}

static heddle_status all_alike(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                               heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 1; i < node->n_inputs && s == HEDDLE_OK; i++) s = heddle__same_dtype(g, node, i, inputs, err);
  return s;
}

heddle_status heddle__infer_arithmetic(const heddle_graph *g, const heddle__node *node,
                                       const heddle__known *const *inputs, heddle__known *outputs, int32_t *needs,
                                       heddle_error *err) {
  (void)needs;
  heddle_status s = heddle__number_dtype(g, node, 0, inputs, err);
  if (s == HEDDLE_OK) s = all_alike(g, node, inputs, err);
  outputs[0].dtype = inputs[0]->dtype;
  return s == HEDDLE_OK ? broadcast(g, node, inputs, &outputs[0], err) : s;
}

heddle_status heddle__infer_power(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                  heddle__known *outputs, int32_t *needs, heddle_error *err) {
  (void)needs;
  heddle_status s = heddle__number_dtype(g, node, 0, inputs, err);
  if (s == HEDDLE_OK) s = heddle__number_dtype(g, node, 1, inputs, err);
  outputs[0].dtype = inputs[0]->dtype;
  return s == HEDDLE_OK ? broadcast(g, node, inputs, &outputs[0], err) : s;
}

heddle_status heddle__infer_compare(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                    heddle__known *outputs, int32_t *needs, heddle_error *err) {
  (void)needs;
  heddle_status s = all_alike(g, node, inputs, err);
  if (s == HEDDLE_OK && strcmp(node->op, "Equal") != 0) s = heddle__number_dtype(g, node, 0, inputs, err);
  outputs[0].dtype = HEDDLE__BOOL;
  return s == HEDDLE_OK ? broadcast(g, node, inputs, &outputs[0], err) : s;
}

heddle_status heddle__infer_logic(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                  heddle__known *outputs, int32_t *needs, heddle_error *err) {
  (void)needs;
  if (inputs[0]->dtype.code != HEDDLE_DTYPE_BOOL) return heddle__bad_input(g, node, 0, inputs[0], err, "bool");
  heddle_status s = all_alike(g, node, inputs, err);
  outputs[0].dtype = HEDDLE__BOOL;
  return s == HEDDLE_OK ? broadcast(g, node, inputs, &outputs[0], err) : s;
}

heddle_status heddle__infer_where(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                  heddle__known *outputs, int32_t *needs, heddle_error *err) {
  (void)needs;
  if (inputs[0]->dtype.code != HEDDLE_DTYPE_BOOL) return heddle__bad_input(g, node, 0, inputs[0], err, "bool");
  if (memcmp(&inputs[1]->dtype, &inputs[2]->dtype, sizeof inputs[1]->dtype) != 0)
    return heddle__bad_input(g, node, 2, inputs[2], err, "the type of input 1");
  outputs[0].dtype = inputs[1]->dtype;
  return broadcast(g, node, inputs, &outputs[0], err);
}

heddle_status heddle__infer_prelu(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                  heddle__known *outputs, int32_t *needs, heddle_error *err) {
  const heddle__known *x = inputs[0];
  heddle_status s = heddle__infer_arithmetic(g, node, inputs, outputs, needs, err);
  if (s != HEDDLE_OK) return s;
  if (outputs[0].ndim == x->ndim && memcmp(outputs[0].shape, x->shape, x->ndim * sizeof *x->shape) == 0)
    return HEDDLE_OK;
  return heddle__bad_input(g, node, 1, inputs[1], err, "a shape that broadcasts to that of input 0");
}

heddle_status heddle__infer_clip(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                 heddle__known *outputs, int32_t *needs, heddle_error *err) {
  heddle_status s = heddle__number_dtype(g, node, 0, inputs, err);
  for (uint32_t i = 1; i < node->n_inputs && s == HEDDLE_OK; i++) {
    s = heddle__same_dtype(g, node, i, inputs, err);
    if (s == HEDDLE_OK && inputs[i] != NULL && inputs[i]->ndim > 0 && (inputs[i]->ndim > 1 || inputs[i]->shape[0] != 1))
      s = heddle__bad_input(g, node, i, inputs[i], err, "one number");
  }
  return s == HEDDLE_OK ? heddle__infer_same(g, node, inputs, outputs, needs, err) : s;
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

heddle_status heddle__infer_number(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                   heddle__known *outputs, int32_t *needs, heddle_error *err) {
  heddle_status s = heddle__number_dtype(g, node, 0, inputs, err);
  return s == HEDDLE_OK ? heddle__infer_same(g, node, inputs, outputs, needs, err) : s;
}

heddle_status heddle__infer_float(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                  heddle__known *outputs, int32_t *needs, heddle_error *err) {
  heddle_status s = heddle__float_dtype(g, node, 0, inputs, err);
  return s == HEDDLE_OK ? heddle__infer_same(g, node, inputs, outputs, needs, err) : s;
}

/* What the expression says is for the device that runs it. */
heddle_status heddle__infer_fused(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                  heddle__known *outputs, int32_t *needs, heddle_error *err) {
  (void)needs;
  if (heddle__attr(node, "expression") == NULL) return HEDDLE__BAD("it has no attribute expression");
  for (uint32_t i = 0; i < node->n_inputs; i++) {
    if (inputs[i] == NULL) return HEDDLE__BAD("input %u is absent, and may not be", i);
    if (memcmp(&inputs[i]->dtype, &HEDDLE__FLOAT32, sizeof(heddle_dtype)) != 0)
      return heddle__bad_input(g, node, i, inputs[i], err, "float32");
  }
  outputs[0].dtype = HEDDLE__FLOAT32;
  return broadcast(g, node, inputs, &outputs[0], err);
}

heddle_status heddle__infer_relu(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                 heddle__known *outputs, int32_t *needs, heddle_error *err) {
  heddle_dtype d = inputs[0]->dtype;
  bool is_int = d.code == HEDDLE_DTYPE_INT && d.lanes == 1;
  if (is_int) return heddle__infer_same(g, node, inputs, outputs, needs, err);
  return heddle__infer_float(g, node, inputs, outputs, needs, err);
}

heddle_status heddle__infer_softmax(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                    heddle__known *outputs, int32_t *needs, heddle_error *err) {
  uint32_t axis;
  heddle_status s = heddle__float_dtype(g, node, 0, inputs, err);
  if (s == HEDDLE_OK) s = heddle__attr_axis(g, node, -1, inputs[0]->ndim, false, &axis, err);
  return s == HEDDLE_OK ? heddle__infer_same(g, node, inputs, outputs, needs, err) : s;
}

heddle_status heddle__infer_cast(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                 heddle__known *outputs, int32_t *needs, heddle_error *err) {
  (void)needs;
  int64_t to = heddle__attr_int(node, "to", 0);
  outputs[0] = *inputs[0];
  outputs[0].data = NULL;
  if (heddle__onnx_dtype(to, &outputs[0].dtype)) return HEDDLE_OK;
  return HEDDLE__BAD("to is %lld, expected the number of an ONNX tensor type of numbers or bool", (long long)to);
}
