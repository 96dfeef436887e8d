/* graph/infer_matmul.c: MatMul, as numpy's with stacks of matrices, and Gemm, which is two-dimensional with transposes
 * and a third input that broadcasts one way. */
#include "graph/infer.h"

static bool is_product_type(heddle_dtype d) {
  bool wide = d.bits == 32 || d.bits == 64;
  return d.lanes == 1 && (d.code == HEDDLE_DTYPE_FLOAT || d.code == HEDDLE_DTYPE_BFLOAT ||
                          (wide && (d.code == HEDDLE_DTYPE_INT || d.code == HEDDLE_DTYPE_UINT)));
}

static heddle_status check_types(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                 heddle_error *err) {
  if (!is_product_type(inputs[0]->dtype))
    return heddle__bad_input(g, node, 0, inputs[0], err, "a floating-point type, or integers of 32 or 64 bits");
  heddle_status s = heddle__same_dtype(g, node, 1, inputs, err);
  if (s == HEDDLE_OK && node->n_inputs > 2) s = heddle__same_dtype(g, node, 2, inputs, err);
  return s;
}

heddle_status heddle__infer_matmul(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                   heddle__known *outputs, int32_t *needs, heddle_error *err) {
  (void)needs;
  char type[128];
  const heddle__known *a = inputs[0], *b = inputs[1];
  heddle__known *y = &outputs[0];
  heddle_status s = check_types(g, node, inputs, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = 0; i < 2; i++)
    if (inputs[i]->ndim == 0) return heddle__bad_input(g, node, i, inputs[i], err, "one dimension or more");
  int64_t inner = a->shape[a->ndim - 1], rows = b->shape[b->ndim == 1 ? 0 : b->ndim - 2];
  if (inner != rows)
    return heddle__bad_input(g, node, 1, b, err, "%lld rows, since input 0 (%s) has as many columns", (long long)inner,
                             heddle__type_words(a->dtype, a->ndim, a->shape, type));
  uint32_t a_stack = a->ndim > 2 ? a->ndim - 2 : 0, b_stack = b->ndim > 2 ? b->ndim - 2 : 0;
  y->dtype = a->dtype;
  if (!heddle__broadcast(a->shape, a_stack, b->shape, b_stack, y->shape, &y->ndim))
    return heddle__bad_input(g, node, 1, b, err, "leading dimensions that broadcast with those of input 0 (%s)",
                             heddle__type_words(a->dtype, a->ndim, a->shape, type));
  if (a->ndim > 1) y->shape[y->ndim++] = a->shape[a->ndim - 2];
  if (b->ndim > 1) y->shape[y->ndim++] = b->shape[b->ndim - 1];
  return HEDDLE_OK;
}

heddle_status heddle__infer_gemm(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                 heddle__known *outputs, int32_t *needs, heddle_error *err) {
  (void)needs;
  const heddle__known *a = inputs[0], *b = inputs[1], *c = node->n_inputs > 2 ? inputs[2] : NULL;
  heddle__known *y = &outputs[0];
  heddle_status s = check_types(g, node, inputs, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = 0; i < 2; i++)
    if (inputs[i]->ndim != 2) return heddle__bad_input(g, node, i, inputs[i], err, "two dimensions");
  int a_turned = heddle__attr_int(node, "transA", 0) != 0, b_turned = heddle__attr_int(node, "transB", 0) != 0;
  int64_t inner = a->shape[!a_turned];
  if (b->shape[b_turned] != inner)
    return heddle__bad_input(g, node, 1, b, err, "%lld in dimension %d, as in dimension %d of input 0",
                             (long long)inner, b_turned, !a_turned);
  y->dtype = a->dtype;
  y->ndim = 2;
  y->shape[0] = a->shape[a_turned];
  y->shape[1] = b->shape[!b_turned];
  if (c == NULL) return HEDDLE_OK;
  int64_t both[HEDDLE__MAX_NDIM];
  uint32_t ndim;
  bool fits = heddle__broadcast(c->shape, c->ndim, y->shape, 2, both, &ndim) && ndim == 2 && both[0] == y->shape[0] &&
              both[1] == y->shape[1];
  if (!fits)
    return heddle__bad_input(g, node, 2, c, err, "a shape that broadcasts to [%lld, %lld]", (long long)y->shape[0],
                             (long long)y->shape[1]);
  return HEDDLE_OK;
}
