/* frontends/onnx/expand_integer.c: products of quantised matrices whose result is of floats, or of another scale. */
#include <string.h>

#include "frontends/onnx/expand.h"

/* A, a_scale, a_zero, B, b_scale, b_zero, C, y_scale, y_zero. C is of int32, in units of a_scale * b_scale; scales and zero
 * points of B are one or one for each column. The product is of floats, for the optimiser to fold; without the scale of a
 * result it is the result. */
void expand_qgemm(expansion *e) {
  const char *a = x_3(e, "DequantizeLinear", x_in(e, 0), x_in(e, 1), x_in(e, 2));
  const char *b = x_3(e, "DequantizeLinear", x_in(e, 3), x_in(e, 4), x_in(e, 5)), *c = "";
  x_int(e, "axis", x_attr(e, "transB", 0) != 0 ? 0 : 1);
  const float alpha = x_attr_float(e, "alpha", 1);
  if (x_has(e, 6)) {
    const char *unit = x_2(e, "Mul", x_in(e, 1), x_in(e, 4));
    if (alpha != 1) unit = x_2(e, "Mul", unit, x_number(e, unit, alpha));
    c = x_2(e, "Mul", x_cast(e, x_in(e, 6), ONNX_FLOAT), unit);
  }
  const char *y = x_3(e, "Gemm", a, b, c);
  x_keep(e, "alpha transA transB");
  if (!x_has(e, 7)) {
    x_give(e, 0, y);
    return;
  }
  const char *zero = x_in(e, 8);
  if (!x_has(e, 8)) {
    const int32_t type = x_known(e, x_in(e, 0)).type;
    if (type == 0) x_refuse(e, "the type of A is not known, and no zero point has it");
    zero = x_zero_of(e, type);
  }
  x_give(e, 0, x_3(e, "QuantizeLinear", y, x_in(e, 7), zero));
}

/* float32 of the integers a and b, times both scales, plus the bias. */
static void give_product(expansion *e, const char *a, const char *b, const char *a_scale, const char *b_scale,
                         const char *a_zero, const char *b_zero, const char *bias) {
  const char *sum = x_node(e, "MatMulInteger", (const char *[]){a, b, a_zero, b_zero}, 4);
  const char *y = x_2(e, "Mul", x_cast(e, sum, ONNX_FLOAT), x_2(e, "Mul", a_scale, b_scale));
  x_give(e, 0, x_sum(e, y, bias));
}

/* A, B, b_scale, b_zero, bias */
void expand_dynamic_quantize_matmul(expansion *e) {
  const char *q[3], *a = x_in(e, 0);
  x_many(e, "DynamicQuantizeLinear", &a, 1, q, 3);
  if (x_ok(e)) e->status = heddle__onnx_note(e->r, q[1], ONNX_FLOAT, 0);
  give_product(e, q[0], x_in(e, 1), q[1], x_in(e, 2), q[2], x_in(e, 3), x_in(e, 4));
}

/* A, B, a_scale, b_scale, a_zero, b_zero, bias */
void expand_matmul_integer_to_float(expansion *e) {
  give_product(e, x_in(e, 0), x_in(e, 1), x_in(e, 2), x_in(e, 3), x_in(e, 4), x_in(e, 5), x_in(e, 6));
}

/* Quantised weights of [directions, rows, columns], whose scales and zero points are [directions] or [directions, columns],
 * as LSTM has them: [directions, columns, rows] of floats. */
static const char *recurrent(expansion *e, size_t k, size_t scale) {
  static const int64_t turned[3] = {0, 2, 1};
  const char *w = x_cast(e, x_in(e, k), ONNX_FLOAT), *by = x_in(e, scale), *zero = x_in(e, scale + 1);
  const int32_t rank = x_rank(e, by);
  if (rank != 1 && rank != 2) x_refuse(e, "the scales of its weights are not known to have one or two dimensions");
  const char *axes = rank == 1 ? x_whole(e, (const int64_t[]){1, 2}, 2) : x_one(e, 1);
  w = x_2(e, "Sub", w, x_2(e, "Unsqueeze", x_cast(e, zero, ONNX_FLOAT), axes));
  return x_transpose(e, x_2(e, "Mul", w, x_2(e, "Unsqueeze", by, axes)), turned, 3);
}

/* X, W, R, B, sequence_lens, initial_h, initial_c, P, W_scale, W_zero, R_scale, R_zero. X and the hidden state are not
 * quantised: that loses nothing. */
void expand_dynamic_quantize_lstm(expansion *e) {
  const char *in[8], *out[3];
  for (size_t k = 0; k < 8; k++) in[k] = x_in(e, k);
  for (size_t k = 8; k < 12; k++)
    if (!x_has(e, k)) x_refuse(e, "input %zu is absent, and may not be", k);
  in[1] = recurrent(e, 1, 8);
  in[2] = recurrent(e, 2, 10);
  x_many(e, "LSTM", in, 8, out, 3);
  x_keep(e, "activation_alpha activation_beta activations clip direction hidden_size input_forget");
  for (size_t k = 0; k < 3; k++) x_give(e, k, out[k]);
}
