/* frontends/onnx/expand_product.c: products and convolutions with what ONNX Runtime joins with them. */
#include <string.h>

#include "frontends/onnx/expand.h"

enum { MAX_RANK = 8 };

/* ---- activations */

static float param(const expansion *e, size_t k, float fallback) {
  static const char *const names[] = {"activation_alpha", "activation_beta", "activation_gamma"};
  const Onnx__AttributeProto *a = heddle__onnx_attr(e->node, "activation_params");
  if (a != NULL) return k < a->n_floats ? a->floats[k] : fallback;
  return x_attr_float(e, names[k], fallback);
}

/* The attributes of ONNX's operators, with the defaults there. */
static const struct activation {
  const char *op, *alpha, *beta;
  double alpha_default, beta_default;
} activations[] = {
#define SCALAR_ATTRIBUTES(op, alpha, of_alpha, beta, of_beta) {#op, #alpha, #beta, of_alpha, of_beta},
#include "operators/all.def"
};

static void set(expansion *e, const char *name, size_t k, double otherwise) {
  if (strcmp(name, "none") != 0) x_float(e, name, param(e, k, (float)otherwise));
}

const char *x_activation(expansion *e, const char *x) {
  static const char *const known[] = {"Relu",      "Tanh", "Sigmoid",         "HardSwish",   "Softplus", "Softsign",
                                      "LeakyRelu", "Elu",  "ThresholdedRelu", "HardSigmoid", "Selu"};
  const Onnx__AttributeProto *a = heddle__onnx_attr(e->node, "activation");
  char name[32] = "", shown[44];
  if (a == NULL || a->s.len == 0) return x;
  if (a->s.len < sizeof name) memcpy(name, a->s.data, a->s.len);
  if (strcmp(name, "Clip") == 0)
    return x_3(e, "Clip", x, x_number(e, x, param(e, 0, -3.402823466e+38F)),
               x_number(e, x, param(e, 1, 3.402823466e+38F)));
  for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
    if (strcmp(known[k], name) != 0) continue;
    const char *y = x_1(e, known[k], x);
    for (size_t i = 0; i < sizeof activations / sizeof activations[0]; i++) {
      if (strcmp(activations[i].op, name) != 0) continue;
      set(e, activations[i].alpha, 0, activations[i].alpha_default);
      set(e, activations[i].beta, 1, activations[i].beta_default);
    }
    return y;
  }
  x_refuse(e, "activation '%s' is not supported", heddle__onnx_show(name, shown));
  return "";
}

/* ---- FusedMatMul */

/* The last two dimensions exchanged; with batch dimension 0 moved behind the others first. */
static const char *turned(expansion *e, const char *x, bool is_turned, bool is_batch) {
  int64_t perm[MAX_RANK];
  const int32_t rank = x_rank(e, x);
  if ((!is_turned && !is_batch) || rank == 1) return x;
  if (rank < 2 || rank > MAX_RANK) {
    x_refuse(e, "'%s' is transposed, and its number of dimensions is not known, or not from 2 to %d", x, (int)MAX_RANK);
    return x;
  }
  for (int32_t d = 0; d < rank; d++) perm[d] = d;
  if (is_batch && rank > 2) {
    for (int32_t d = 0; d + 2 < rank; d++) perm[d] = d + 1;
    perm[rank - 2] = 0;
  }
  if (is_turned) {
    const int64_t kept = perm[rank - 1];
    perm[rank - 1] = perm[rank - 2];
    perm[rank - 2] = kept;
  }
  return x_transpose(e, x, perm, (size_t)rank);
}

void expand_fused_matmul(expansion *e) {
  const float alpha = x_attr_float(e, "alpha", 1);
  const bool batch_a = x_attr(e, "transBatchA", 0) != 0, batch_b = x_attr(e, "transBatchB", 0) != 0;
  const bool is_plain = x_attr(e, "transA", 0) == 0 && !batch_a && !batch_b;
  const char *y, *a = x_in(e, 0), *b = x_in(e, 1);
  if (is_plain && x_attr(e, "transB", 0) != 0 && x_rank(e, b) < 0) {
    y = x_2(e, "Einsum", a, b); /* that of any rank, but slower */
    x_text(e, "equation", "...ij,...kj->...ik");
  } else {
    a = turned(e, a, x_attr(e, "transA", 0) != 0, batch_a);
    b = turned(e, b, x_attr(e, "transB", 0) != 0, batch_b);
    y = x_2(e, "MatMul", a, b);
  }
  x_give(e, 0, alpha != 1 ? x_2(e, "Mul", y, x_number(e, y, alpha)) : y);
}

void expand_fused_gemm(expansion *e) {
  const char *y = x_3(e, "Gemm", x_in(e, 0), x_in(e, 1), x_in(e, 2));
  x_keep(e, "alpha beta transA transB");
  x_give(e, 0, x_activation(e, y));
}

/* ---- convolutions */

/* How many dimensions x has, by the kernel's shape, the weights, or what is known of it. */
static int32_t rank_of_image(expansion *e) {
  const Onnx__AttributeProto *a = heddle__onnx_attr(e->node, "kernel_shape");
  if (a != NULL && a->n_ints > 0) return (int32_t)a->n_ints + 2;
  const int32_t rank = x_rank(e, x_in(e, 1));
  return rank > 2 ? rank : x_rank(e, x_in(e, 0));
}

static const char *move_channels(expansion *e, const char *x, int32_t rank, bool to_last) {
  int64_t perm[MAX_RANK] = {0};
  if (rank < 3 || rank > MAX_RANK) {
    x_refuse(e, "the number of dimensions of its image is not known");
    return x;
  }
  for (int32_t d = 1; d + 1 < rank; d++) perm[to_last ? d : d + 1] = to_last ? d + 1 : d;
  perm[to_last ? rank - 1 : 1] = to_last ? 1 : rank - 1;
  return x_transpose(e, x, perm, (size_t)rank);
}

/* x, weights, bias, z: activation(conv(x) + z), with channels first or last. The weights are as Conv has them. */
void expand_fused_conv(expansion *e) {
  const bool is_last = e->node->op_type[0] == 'N';
  const int32_t rank = is_last ? rank_of_image(e) : 0;
  const char *x = is_last ? move_channels(e, x_in(e, 0), rank, false) : x_in(e, 0);
  const char *y = x_3(e, "Conv", x, x_in(e, 1), x_in(e, 2));
  x_keep(e, "auto_pad dilations group kernel_shape pads strides");
  if (x_has(e, 3)) y = x_2(e, "Add", y, is_last ? move_channels(e, x_in(e, 3), rank, false) : x_in(e, 3));
  y = x_activation(e, y);
  x_give(e, 0, is_last ? move_channels(e, y, rank, true) : y);
}
