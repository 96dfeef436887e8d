/* frontends/onnx/expand_norm.c: normalisations with a residual, and the embedding of BERT. */
#include "frontends/onnx/expand.h"

/* LayerNormalization of the last dimension, with results 1 and 2 where they are used. */
static void layer_norm(expansion *e, const char *x, const char *scale, const char *bias, float epsilon, bool has_more) {
  const char *out[3] = {"", "", ""};
  const size_t n = has_more && x_wants(e, 2) ? 3 : has_more && x_wants(e, 1) ? 2 : 1;
  x_many(e, "LayerNormalization", (const char *[]){x, scale, bias}, 3, out, n);
  x_int(e, "axis", -1);
  x_float(e, "epsilon", epsilon);
  for (size_t k = 0; k < n; k++) x_give(e, k, out[k]);
}

/* input, skip, gamma, beta, bias: the sum is result 3. */
void expand_skip_layer_norm(expansion *e) {
  const char *sum = x_sum(e, x_2(e, "Add", x_in(e, 0), x_in(e, 1)), x_in(e, 4));
  layer_norm(e, sum, x_in(e, 2), x_in(e, 3), x_attr_float(e, "epsilon", 1e-12F), true);
  x_give(e, 3, sum);
}

static const char *rms_norm(expansion *e, const char *x, const char *scale, float epsilon) {
  const char *y = x_2(e, "RMSNormalization", x, scale);
  x_float(e, "epsilon", epsilon);
  return y;
}

/* input, skip, gamma, bias */
void expand_skip_rms_norm(expansion *e) {
  const char *sum = x_sum(e, x_2(e, "Add", x_in(e, 0), x_in(e, 1)), x_in(e, 3));
  x_give(e, 0, rms_norm(e, sum, x_in(e, 2), x_attr_float(e, "epsilon", 1e-12F)));
  x_give(e, 3, sum);
}

void expand_rms_norm(expansion *e) {
  const char *y = rms_norm(e, x_in(e, 0), x_in(e, 1), x_attr_float(e, "epsilon", 1e-5F));
  x_keep(e, "axis stash_type");
  x_give(e, 0, y);
}

/* Rows of table k. Tables of quantised numbers have scales from operand 8 on and zero points from 13 on. */
static const char *rows(expansion *e, size_t k, const char *ids, bool is_quantised) {
  const char *y = ids[0] != '\0' ? x_2(e, "Gather", x_in(e, k), ids) : x_in(e, k);
  return is_quantised ? x_3(e, "DequantizeLinear", y, x_in(e, k + 6), x_in(e, k + 11)) : y;
}

/* ids, segments, word, position, segment, gamma, beta, mask, positions: ids of words [batch, sequence]. */
static void embed(expansion *e, const char *positions, bool is_quantised) {
  const char *ids = x_in(e, 0), *mask = x_in(e, 7), *count, *places = rows(e, 3, positions, is_quantised);
  if (x_has(e, 1) != x_has(e, 4)) x_refuse(e, "segment_ids and segment_embedding come together");
  if (positions[0] == '\0') places = x_slice(e, places, x_one(e, 0), x_dim(e, ids, 1), 0);
  const char *sum = x_2(e, "Add", rows(e, 2, ids, is_quantised), places);
  if (x_has(e, 1)) sum = x_2(e, "Add", sum, rows(e, 4, x_in(e, 1), is_quantised));
  const char *scale = rows(e, 5, "", is_quantised), *bias = rows(e, 6, "", is_quantised);
  layer_norm(e, sum, scale, bias, x_attr_float(e, "epsilon", 1e-12F), false);
  x_give(e, 2, sum);
  if (!x_wants(e, 1)) return;
  if (mask[0] != '\0') {
    count = x_2(e, "ReduceSum", mask, x_one(e, 1));
    x_int(e, "keepdims", 0);
  } else {
    count = x_2(e, "Expand", x_zero_of(e, ONNX_INT32), x_dim(e, ids, 0));
  }
  count = x_cast(e, count, ONNX_INT32);
  x_known(e, count);
  if (x_ok(e)) e->status = heddle__onnx_note(e->r, count, ONNX_INT32, 1);
  x_give(e, 1, count);
}

void expand_embed_layer_norm(expansion *e) {
  embed(e, x_in(e, 8), false);
}

void expand_qembed_layer_norm(expansion *e) {
  embed(e, "", true);
}

/* x of channels last, or first, with an activation SiLU. */
void expand_group_norm(expansion *e) {
  static const int64_t first[4] = {0, 3, 1, 2}, last[4] = {0, 2, 3, 1};
  const bool is_last = x_attr(e, "channels_last", 1) != 0;
  const char *x = is_last ? x_transpose(e, x_in(e, 0), first, 4) : x_in(e, 0);
  const char *y =
      x_3(e, "GroupNormalization", x, x_cast(e, x_in(e, 1), x_type(e, x)), x_cast(e, x_in(e, 2), x_type(e, x)));
  x_float(e, "epsilon", x_attr_float(e, "epsilon", 1e-5F));
  x_int(e, "num_groups", x_attr(e, "groups", 0));
  if (x_attr(e, "activation", 0) != 0) y = x_2(e, "Mul", y, x_1(e, "Sigmoid", y));
  x_give(e, 0, is_last ? x_transpose(e, y, last, 4) : y);
}
