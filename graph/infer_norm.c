/* graph/infer_norm.c: normalisations, whose first output is shaped as their first input, and Dropout. */
#include "graph/infer.h"

#include <string.h>

/* Inputs [first, n_inputs) are vectors of a number for each channel. */
static heddle_status per_channel(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                 heddle__known *outputs, heddle_error *err) {
  const heddle__known *x = inputs[0];
  if (x->ndim < 2) return heddle__bad_input(g, node, 0, x, err, "two dimensions or more: [N, C, ...]");
  for (uint32_t i = 1; i < node->n_inputs; i++) {
    heddle_status s = heddle__float_dtype(g, node, i, inputs, err);
    if (s != HEDDLE_OK) return s;
    if (inputs[i]->ndim != 1 || inputs[i]->shape[0] != x->shape[1])
      return heddle__bad_input(g, node, i, inputs[i], err, "[%lld], a number for each channel", (long long)x->shape[1]);
  }
  return heddle__infer_float(g, node, inputs, outputs, NULL, err);
}

heddle_status heddle__infer_batch_norm(const heddle_graph *g, const heddle__node *node,
                                       const heddle__known *const *inputs, heddle__known *outputs, int32_t *needs,
                                       heddle_error *err) {
  (void)needs;
  const bool trains = heddle__attr_int(node, "training_mode", 0) != 0;
  if (!trains && node->n_outputs > 1)
    return heddle__node_fail(g, node, err, HEDDLE_EUNSUPPORTED, "it has several outputs, which training_mode 1 has");
  const heddle_status s = per_channel(g, node, inputs, outputs, err);
  for (uint32_t k = 1; k < node->n_outputs && s == HEDDLE_OK; k++) { /* mean and variance, with those of the batch */
    outputs[k] = *inputs[3];
    outputs[k].data = NULL;
  }
  return s;
}

heddle_status heddle__infer_instance_norm(const heddle_graph *g, const heddle__node *node,
                                          const heddle__known *const *inputs, heddle__known *outputs, int32_t *needs,
                                          heddle_error *err) {
  (void)needs;
  return per_channel(g, node, inputs, outputs, err);
}

heddle_status heddle__infer_layer_norm(const heddle_graph *g, const heddle__node *node,
                                       const heddle__known *const *inputs, heddle__known *outputs, int32_t *needs,
                                       heddle_error *err) {
  uint32_t axis, ndim;
  int64_t both[HEDDLE__MAX_NDIM];
  const heddle__known *x = inputs[0];
  heddle_status s = heddle__attr_axis(g, node, -1, x->ndim, false, &axis, err);
  if (s == HEDDLE_OK) s = heddle__infer_float(g, node, inputs, outputs, needs, err);
  for (uint32_t i = 1; i < node->n_inputs && s == HEDDLE_OK; i++) {
    s = heddle__same_dtype(g, node, i, inputs, err);
    if (s != HEDDLE_OK || inputs[i] == NULL) continue;
    if (!heddle__broadcast(inputs[i]->shape, inputs[i]->ndim, x->shape, x->ndim, both, &ndim) || ndim != x->ndim ||
        memcmp(both, x->shape, ndim * sizeof *both) != 0)
      s = heddle__bad_input(g, node, i, inputs[i], err, "a shape that broadcasts to that of input 0");
  }
  for (uint32_t k = 1; k < node->n_outputs && s == HEDDLE_OK; k++) { /* mean, and 1 over the deviation */
    outputs[k] = outputs[0];
    if (!heddle__onnx_dtype(heddle__attr_int(node, "stash_type", 1), &outputs[k].dtype))
      return HEDDLE__BAD("its stash_type is not a type");
    for (uint32_t i = axis; i < x->ndim; i++) outputs[k].shape[i] = 1;
  }
  return s;
}

heddle_status heddle__infer_lrn(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                heddle__known *outputs, int32_t *needs, heddle_error *err) {
  if (inputs[0]->ndim < 2) return heddle__bad_input(g, node, 0, inputs[0], err, "two dimensions or more: [N, C, ...]");
  if (heddle__attr_int(node, "size", 0) < 1) return HEDDLE__BAD("it has no size of 1 or more, which it needs");
  return heddle__infer_float(g, node, inputs, outputs, needs, err);
}

heddle_status heddle__infer_dropout(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                    heddle__known *outputs, int32_t *needs, heddle_error *err) {
  const heddle__known *training = heddle__input(node, inputs, 2);
  if (training != NULL) {
    uint64_t bytes;
    if (training->dtype.code != HEDDLE_DTYPE_BOOL ||
        heddle__tensor_bytes(training->dtype, training->ndim, training->shape, &bytes, NULL) != HEDDLE_OK || bytes != 1)
      return heddle__bad_input(g, node, 2, training, err, "one bool");
    heddle_status s = heddle__needs_bytes(g, node, inputs, 2, needs, err); /* each mode has a kernel of its own */
    if (s != HEDDLE_OK) return s;
  }
  heddle_status s = heddle__infer_float(g, node, inputs, outputs, needs, err);
  if (s == HEDDLE_OK && node->n_outputs > 1) {
    outputs[1] = outputs[0];
    outputs[1].dtype = HEDDLE__BOOL;
  }
  return s;
}
