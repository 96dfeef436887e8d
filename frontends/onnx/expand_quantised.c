/* frontends/onnx/expand_quantised.c: operators on quantised numbers as the operators on floats between DequantizeLinear and
 * QuantizeLinear, which the optimiser folds into operators on bytes where it has them. */
#include <string.h>

#include "frontends/onnx/expand.h"

enum { MAX_RANK = 8 };

/* Float numbers of operand k, whose scale and zero point follow it. */
static const char *dequantised(expansion *e, size_t k) {
  return x_3(e, "DequantizeLinear", x_in(e, k), x_in(e, k + 1), x_in(e, k + 2));
}

/* Result 0: y by scale and zero point operands k and k + 1; where that is absent, as numbers of the type of an operand. */
static void give_quantised(expansion *e, const char *y, size_t k, const char *like) {
  const char *zero = x_in(e, k + 1);
  if (zero[0] == '\0') {
    const int32_t type = x_known(e, like).type;
    if (type != ONNX_INT8 && type != ONNX_UINT8)
      x_refuse(e, "the type of '%s' is not known, and no zero point has it", like);
    zero = x_zero_of(e, type);
  }
  x_give(e, 0, x_3(e, "QuantizeLinear", y, x_in(e, k), zero));
}

/* ONNX's operators of the same name, whose axis is 1 too. Types that these take only in later opsets are no matter. */
void expand_quantise(expansion *e) {
  const char *y = x_3(e, e->node->op_type, x_in(e, 0), x_in(e, 1), x_in(e, 2));
  x_keep(e, "axis");
  x_give(e, 0, y);
}

/* A and B with scales and zero points, then those of the result. */
void expand_qlinear_binary(expansion *e) {
  const char *op = strcmp(e->node->op_type, "QLinearAdd") == 0 ? "Add" : "Mul";
  give_quantised(e, x_2(e, op, dequantised(e, 0), dequantised(e, 3)), 6, x_in(e, 0));
}

void expand_qlinear_unary(expansion *e) {
  const char *op = e->node->op_type + strlen("QLinear"), *x = dequantised(e, 0), *y;
  if (strcmp(op, "ReduceMean") == 0) {
    const Onnx__AttributeProto *axes = heddle__onnx_attr(e->node, "axes");
    y = x_2(e, op, x, axes != NULL ? x_whole(e, axes->ints, axes->n_ints) : "");
    x_keep(e, "keepdims");
  } else {
    y = x_1(e, op, x);
    x_keep(e, "alpha");
  }
  give_quantised(e, y, 3, x_in(e, 0));
}

/* ---- images, with channels last or first */

static int32_t rank_of_image(expansion *e, size_t weights) {
  const Onnx__AttributeProto *a = heddle__onnx_attr(e->node, "kernel_shape");
  if (a != NULL && a->n_ints > 0) return (int32_t)a->n_ints + 2;
  const int32_t rank = weights > 0 ? x_rank(e, x_in(e, weights)) : -1;
  return rank > 2 ? rank : x_rank(e, x_in(e, 0));
}

/* x with channels first where the node has them last, or back. */
static const char *moved(expansion *e, const char *x, int32_t rank, bool back) {
  int64_t perm[MAX_RANK] = {0};
  if (x_attr(e, "channels_last", 0) == 0) return x;
  if (rank < 3 || rank > MAX_RANK) {
    x_refuse(e, "the number of dimensions of its image is not known");
    return x;
  }
  for (int32_t d = 1; d + 1 < rank; d++) perm[back ? d : d + 1] = back ? d + 1 : d;
  perm[back ? rank - 1 : 1] = back ? 1 : rank - 1;
  return x_transpose(e, x, perm, (size_t)rank);
}

void expand_qlinear_pool(expansion *e) {
  const bool is_global = strcmp(e->node->op_type, "QLinearGlobalAveragePool") == 0;
  const int32_t rank = rank_of_image(e, 0);
  const char *x = moved(e, dequantised(e, 0), rank, false);
  const char *y = x_1(e, is_global ? "GlobalAveragePool" : "AveragePool", x);
  if (!is_global) x_keep(e, "auto_pad ceil_mode count_include_pad kernel_shape pads strides");
  give_quantised(e, moved(e, y, rank, true), 3, x_in(e, 0));
}

/* ONNX's operator, with channels last or first. */
void expand_qlinear_conv(expansion *e) {
  const char *in[9];
  const int32_t rank = rank_of_image(e, 3);
  for (size_t k = 0; k < 9; k++) in[k] = x_in(e, k);
  in[0] = moved(e, in[0], rank, false);
  const char *y = x_node(e, "QLinearConv", in, 9);
  x_keep(e, "auto_pad dilations group kernel_shape pads strides");
  x_give(e, 0, moved(e, y, rank, true));
}

/* ---- others */

/* Scale and zero point of the result, then three operands for each part. */
void expand_qlinear_concat(expansion *e) {
  const size_t n = (e->node->n_input - 2) / 3;
  const char **parts = heddle__onnx_take(&e->r->arena, (n + 1) * sizeof *parts);
  if (e->node->n_input < 3 || heddle__onnx_attr(e->node, "axis") == NULL) {
    x_refuse(e, "it has no axis, or nothing to join");
    return;
  }
  if (parts == NULL) {
    e->status = heddle__onnx_no_memory(e->r);
    return;
  }
  if (e->node->n_input % 3 != 2) {
    x_refuse(e, "its inputs are not two and three for each part");
    return;
  }
  for (size_t i = 0; i < n; i++) parts[i] = dequantised(e, 2 + 3 * i);
  give_quantised(e, x_concat(e, x_attr(e, "axis", 0), parts, n), 0, x_in(e, 2));
}

/* By the definition of the opset that an attribute gives: before 13, of all dimensions from axis on. */
void expand_qlinear_softmax(expansion *e) {
  const int64_t opset = x_attr(e, "opset", 0), axis = x_attr(e, "axis", opset < 13 ? 1 : -1);
  const char *x = dequantised(e, 0), *y;
  const int32_t rank = x_rank(e, x);
  if (opset < 1) x_refuse(e, "it has no opset");
  if (opset >= 13 || axis == -1 || (rank > 0 && axis == rank - 1)) {
    y = x_1(e, "Softmax", x);
    x_int(e, "axis", axis);
  } else {
    const char *shape = x_1(e, "Shape", x), *flat = x_1(e, "Flatten", x);
    x_int(e, "axis", axis);
    y = x_1(e, "Softmax", flat);
    x_int(e, "axis", -1);
    y = x_2(e, "Reshape", y, shape);
  }
  give_quantised(e, y, 3, x_in(e, 0));
}

/* condition, X, its scale and zero point, Y, its scale and zero point, those of the result */
void expand_qlinear_where(expansion *e) {
  const char *x = dequantised(e, 1), *y = dequantised(e, 4);
  give_quantised(e, x_3(e, "Where", x_in(e, 0), x, y), 7, x_in(e, 1));
}
