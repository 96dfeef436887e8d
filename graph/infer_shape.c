/* graph/infer_shape.c: operators that arrange the same elements anew: Reshape, Flatten, Concat.
 * The shape operand of Reshape must be known on the host; where it is not, that is reported. */
#include "graph/infer.h"

#include <string.h>

#include "core/alloc.h"

/* Product of dimensions [first, end), which is known not to overflow where no dimension is 0. */
static heddle_status product(const heddle_graph *g, const heddle__node *node, const heddle__known *x, uint32_t first,
                             uint32_t end, int64_t *out, heddle_error *err) {
  uint64_t n = 1;
  for (uint32_t i = first; i < end; i++)
    if (!heddle__mul(n, (uint64_t)x->shape[i], &n) || n > INT64_MAX)
      return heddle__node_fail(g, node, err, HEDDLE_ELIMIT, "dimensions %u to %u of input 0 multiply to more than 2^63",
                               first, end - 1);
  *out = (int64_t)n;
  return HEDDLE_OK;
}

heddle_status heddle__infer_reshape(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                    heddle__known *outputs, int32_t *needs, heddle_error *err) {
  const heddle__known *x = inputs[0], *shape = inputs[1];
  heddle__known *y = &outputs[0];
  int64_t total = 0, rest = 1, guess = -1;
  bool allow_zero = heddle__attr_int(node, "allowzero", 0) != 0;
  if (shape->dtype.code != HEDDLE_DTYPE_INT || shape->dtype.bits != 64 || shape->dtype.lanes != 1 || shape->ndim != 1 ||
      shape->shape[0] > HEDDLE__MAX_NDIM)
    return heddle__bad_input(g, node, 1, shape, err, "int64 [n] with n at most %d", HEDDLE__MAX_NDIM);
  if (shape->data == NULL && shape->shape[0] > 0) {
    if (needs != NULL) *needs = 1;
    return heddle__node_fail(g, node, err, HEDDLE_EUNSUPPORTED,
                             "its output's shape is the value of input 1, which is "
                             "not known");
  }
  heddle_status s = product(g, node, x, 0, x->ndim, &total, err);
  if (s != HEDDLE_OK) return s;
  y->dtype = x->dtype;
  y->ndim = (uint32_t)shape->shape[0];
  for (uint32_t i = 0; i < y->ndim; i++) {
    int64_t dim;
    memcpy(&dim, (const char *)shape->data + i * sizeof dim, sizeof dim);
    if (dim == 0 && !allow_zero) {
      if (i >= x->ndim)
        return heddle__bad_input(g, node, 0, x, err, "dimension %u, which a 0 of the shape refers to", i);
      dim = x->shape[i];
    }
    if (dim < -1 || (dim == -1 && guess >= 0))
      return heddle__node_fail(g, node, err, HEDDLE_EFORMAT,
                               "its shape has %lld in place %u, expected 0 or more, or one "
                               "-1",
                               (long long)dim, i);
    y->shape[i] = dim;
    uint64_t n = (uint64_t)rest;
    if (dim == -1) guess = i;
    else if (!heddle__mul(n, (uint64_t)dim, &n) || n > INT64_MAX)
      return heddle__node_fail(g, node, err, HEDDLE_ELIMIT, "its shape multiplies to more than 2^63");
    rest = (int64_t)n;
  }
  if (guess >= 0 && rest > 0 && total % rest == 0) {
    y->shape[guess] = total / rest;
    rest = total;
  }
  bool guessed = guess < 0 || y->shape[guess] >= 0;
  if (guessed && rest == total) return HEDDLE_OK;
  char type[128];
  return heddle__bad_input(g, node, 0, x, err, "as many elements as the new shape has: %s",
                           heddle__type_words(y->dtype, y->ndim, y->shape, type));
}

heddle_status heddle__infer_flatten(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                    heddle__known *outputs, int32_t *needs, heddle_error *err) {
  (void)needs;
  uint32_t axis;
  const heddle__known *x = inputs[0];
  heddle_status s = heddle__attr_axis(g, node, 1, x->ndim, true, &axis, err);
  if (s != HEDDLE_OK) return s;
  outputs[0].dtype = x->dtype;
  outputs[0].ndim = 2;
  s = product(g, node, x, 0, axis, &outputs[0].shape[0], err);
  return s == HEDDLE_OK ? product(g, node, x, axis, x->ndim, &outputs[0].shape[1], err) : s;
}

heddle_status heddle__infer_concat(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                   heddle__known *outputs, int32_t *needs, heddle_error *err) {
  (void)needs;
  uint32_t axis;
  const heddle__known *x = inputs[0];
  heddle__known *y = &outputs[0];
  if (heddle__attr(node, "axis") == NULL)
    return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "it has no axis, which it needs");
  heddle_status s = heddle__attr_axis(g, node, 0, x->ndim, false, &axis, err);
  if (s != HEDDLE_OK) return s;
  *y = *x;
  y->data = NULL;
  for (uint32_t i = 1; i < node->n_inputs; i++) {
    s = heddle__same_dtype(g, node, i, inputs, err);
    if (s != HEDDLE_OK) return s;
    if (inputs[i]->ndim != x->ndim) return heddle__bad_input(g, node, i, inputs[i], err, "%u dimensions", x->ndim);
    for (uint32_t d = 0; d < x->ndim; d++)
      if (d != axis && inputs[i]->shape[d] != x->shape[d])
        return heddle__bad_input(g, node, i, inputs[i], err, "%lld in dimension %u, as in input 0",
                                 (long long)x->shape[d], d);
    if (inputs[i]->shape[axis] > INT64_MAX - y->shape[axis])
      return heddle__bad_input(g, node, i, inputs[i], err, "a sum below 2^63 in dimension %u", axis);
    y->shape[axis] += inputs[i]->shape[axis];
  }
  return HEDDLE_OK;
}
