/* frontends/onnx/expand_attention.c: attention of domain com.microsoft, as the product, the softmax and the product that the
 * optimiser makes one region of. Queries, keys and values are [batch, heads, length, size]; masks add a number, which is not
 * minus infinity, to scores. */
#include <math.h>

#include "frontends/onnx/expand.h"

typedef struct heads {
  const char *q, *k, *v;      /* k and v with what the past has */
  const char *batch, *length; /* int64 of shape [1]: of the queries */
  const char *total;          /* of the keys */
  int64_t n, size;            /* size of a query; -1: not known */
} heads;

static const int64_t swapped[4] = {0, 2, 1, 3};

/* [batch, length, n * size] to [batch, n, length, size]. */
static const char *by_heads(expansion *e, const char *x, int64_t n) {
  return x_transpose(e, x_reshape(e, x, (const int64_t[]){0, 0, n, -1}, 4), swapped, 4);
}

/* 0 where ok, mask_filter_value where not. */
static const char *filter(expansion *e, const char *ok, const char *like) {
  const char *value = x_number(e, like, x_attr_float(e, "mask_filter_value", -10000));
  return x_3(e, "Where", ok, x_number(e, like, 0), value);
}

/* A mask of one number a row: how many keys it has, and where there are more numbers, where they begin: [batch] or
 * [2 * batch]. Zeros behind make two of both. */
static const char *by_ends(expansion *e, const heads *h, const char *mask) {
  const char *zeros = x_2(e, "Expand", x_zero_of(e, ONNX_INT64), h->batch), *twice = x_2(e, "Add", h->batch, h->batch);
  const char *all = x_concat(e, 0, (const char *[]){x_cast(e, mask, ONNX_INT64), zeros}, 2);
  const char *ends = x_slice(e, all, x_one(e, 0), h->batch, 0), *starts = x_slice(e, all, h->batch, twice, 0);
  const char *places = x_range(e, h->total);
  const char *before = x_2(e, "Less", places, x_unsqueeze(e, ends, 1));
  const char *behind = x_2(e, "GreaterOrEqual", places, x_unsqueeze(e, starts, 1));
  return x_2(e, "And", before, behind); /* [batch, total] */
}

/* What is added to scores for a mask of integers; "": nothing. */
static const char *mask_of(expansion *e, const heads *h, const char *mask) {
  if (mask[0] == '\0') return "";
  const int32_t rank = x_rank(e, mask);
  if (rank < 1 || rank > 3) {
    x_refuse(e, rank < 0 ? "the number of dimensions of its mask is not known" : "its mask has %d dimensions",
             (int)rank);
    return "";
  }
  const char *ok = rank == 1 ? by_ends(e, h, mask) : x_2(e, "Greater", mask, x_zero_of(e, x_type(e, mask)));
  ok = x_2(e, "Unsqueeze", ok, rank == 3 ? x_one(e, 1) : x_whole(e, (const int64_t[]){1, 2}, 2));
  return filter(e, ok, h->q);
}

/* No query reads a key behind its own place. */
static const char *causal(expansion *e, const heads *h) {
  const char *past = x_2(e, "Sub", h->total, h->length);
  const char *query = x_unsqueeze(e, x_2(e, "Add", x_range(e, h->length), past), 1);
  const char *ok = x_2(e, "LessOrEqual", x_range(e, h->total), query); /* [length, total] */
  const bool is_half = x_type(e, h->q) == ONNX_FLOAT16;
  return x_3(e, "Where", ok, x_number(e, h->q, 0), x_number(e, h->q, is_half ? -65504.0F : -3.402823466e+38F));
}

/* [batch, heads, length, size of a value] */
static const char *attend(expansion *e, const heads *h, const char *mask, const char *bias) {
  const float scale = x_attr_float(e, "scale", 0);
  static const int64_t last[4] = {0, 1, 3, 2};
  const char *factor;
  if (scale != 0) {
    factor = x_number(e, h->q, scale);
  } else if (h->size > 0) {
    factor = x_number(e, h->q, (float)(1 / sqrt((double)h->size)));
  } else {
    const char *size = x_cast(e, x_dim(e, h->q, -1), ONNX_FLOAT);
    factor = x_cast(e, x_1(e, "Reciprocal", x_1(e, "Sqrt", size)), x_type(e, h->q));
  }
  const char *add = x_sum(e, mask_of(e, h, mask), bias);
  if (x_attr(e, "unidirectional", 0) != 0) add = x_sum(e, add, causal(e, h));
  const char *score = x_2(e, "MatMul", h->q, x_transpose(e, h->k, last, 4));
  score = x_2(e, "Mul", score, factor);
  score = x_1(e, "Softmax", x_sum(e, score, add));
  x_int(e, "axis", -1);
  return x_2(e, "MatMul", score, h->v);
}

/* [batch, n, length, size] to [batch, length, n * size]. */
static const char *joined(expansion *e, const char *y) {
  return x_reshape(e, x_transpose(e, y, swapped, 4), (const int64_t[]){0, 0, -1}, 3);
}

static int64_t heads_wanted(expansion *e) {
  const int64_t n = x_attr(e, "num_heads", 0);
  if (n < 1) x_refuse(e, "num_heads is %lld", (long long)n);
  return n;
}

/* ---- Attention: input, weights, bias, mask_index, past, attention_bias, past_sequence_length */

/* Q, K and V from one product. */
static void project(expansion *e, const char *all, const char *out[3]) {
  const Onnx__AttributeProto *sizes = heddle__onnx_attr(e->node, "qkv_hidden_sizes");
  if (sizes == NULL || sizes->n_ints == 0) {
    x_split(e, all, 2, out, 3);
    return;
  }
  if (sizes->n_ints != 3 || sizes->ints[0] < 1 || sizes->ints[1] != sizes->ints[0] || sizes->ints[2] < 1)
    x_refuse(e, "qkv_hidden_sizes are not three sizes, of which the first two are equal");
  x_split_by(e, all, 2, x_whole(e, sizes->ints, sizes->n_ints), out, 3);
}

/* all: what the product gives. */
static void attention(expansion *e, const char *all, const char *mask, const char *past, const char *bias) {
  const char *part[3] = {"", "", ""};
  heads h = {.n = heads_wanted(e)};
  if (x_attr(e, "do_rotary", 0) != 0) x_refuse(e, "do_rotary is not supported");
  if (x_attr(e, "past_present_share_buffer", 0) != 0)
    x_refuse(e, "a past that shares its memory with the present is not supported");
  project(e, all, part);
  if (!x_ok(e)) return;
  const Onnx__AttributeProto *sizes = heddle__onnx_attr(e->node, "qkv_hidden_sizes");
  const int64_t columns = x_known_dim(e, x_in(e, 1), 1);
  if (sizes != NULL && sizes->n_ints > 0) h.size = sizes->ints[0] / h.n;
  else h.size = columns > 0 ? columns / 3 / h.n : -1;
  h.q = by_heads(e, part[0], h.n);
  h.k = by_heads(e, part[1], h.n);
  h.v = by_heads(e, part[2], h.n);
  if (past[0] != '\0') {
    const char *both[2];
    x_split(e, past, 0, both, 2);
    h.k = x_concat(e, 2, (const char *[]){x_2(e, "Squeeze", both[0], x_one(e, 0)), h.k}, 2);
    h.v = x_concat(e, 2, (const char *[]){x_2(e, "Squeeze", both[1], x_one(e, 0)), h.v}, 2);
  }
  h.batch = x_dim(e, x_in(e, 0), 0);
  h.length = x_dim(e, x_in(e, 0), 1);
  h.total = x_dim(e, h.k, 2);
  x_give(e, 0, joined(e, attend(e, &h, mask, bias)));
  if (x_wants(e, 1)) x_give(e, 1, x_concat(e, 0, (const char *[]){x_unsqueeze(e, h.k, 0), x_unsqueeze(e, h.v, 0)}, 2));
}

void expand_attention(expansion *e) {
  if (x_has(e, 6)) x_refuse(e, "a past that shares its memory with the present is not supported");
  const char *all = x_sum(e, x_2(e, "MatMul", x_in(e, 0), x_in(e, 1)), x_in(e, 2));
  attention(e, all, x_in(e, 3), x_in(e, 4), x_in(e, 5));
}

/* input, weights, bias, input_scale, weight_scale, mask_index, input_zero, weight_zero, past: of quantised numbers, whose
 * product is of floats. */
void expand_qattention(expansion *e) {
  const char *sum = x_node(e, "MatMulInteger", (const char *[]){x_in(e, 0), x_in(e, 1), x_in(e, 6), x_in(e, 7)}, 4);
  const char *all = x_2(e, "Mul", x_cast(e, sum, ONNX_FLOAT), x_2(e, "Mul", x_in(e, 3), x_in(e, 4)));
  attention(e, x_sum(e, all, x_in(e, 2)), x_in(e, 5), x_in(e, 8), "");
}

/* ---- MultiHeadAttention: query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value, ... */

/* The part of the bias from column `from`, which is moved on, for an operand that has as many columns. */
static const char *add_bias(expansion *e, const char *x, const char **from, int64_t *begin) {
  if (!x_has(e, 3)) return x;
  const int64_t columns = x_known_dim(e, x, 2);
  *begin = columns > 0 && *begin >= 0 ? *begin + columns : -1;
  const char *to = *begin >= 0 ? x_one(e, *begin) : x_2(e, "Add", *from, x_dim(e, x, 2));
  const char *y = x_2(e, "Add", x, x_slice(e, x_in(e, 3), *from, to, 0));
  *from = to;
  return y;
}

void expand_multi_head_attention(expansion *e) {
  heads h = {.n = heads_wanted(e)};
  const char *query = x_in(e, 0), *key = x_in(e, 1), *value = x_in(e, 2), *at = x_one(e, 0);
  int64_t begin = 0;
  if (!x_has(e, 1) || !x_has(e, 2)) x_refuse(e, "packed queries, keys and values are not supported");
  if (x_has(e, 8) || x_has(e, 9)) x_refuse(e, "a past that shares its memory with the present is not supported");
  if (x_has(e, 6) != x_has(e, 7)) x_refuse(e, "past_key and past_value come together");
  const bool is_cross = x_rank(e, key) == 4; /* keys and values of an encoder, by heads already */
  h.batch = x_dim(e, query, 0);
  h.length = x_dim(e, query, 1);
  if (x_ok(e)) h.size = x_known_dim(e, query, 2) / h.n;
  h.q = by_heads(e, add_bias(e, query, &at, &begin), h.n);
  h.k = is_cross ? key : by_heads(e, add_bias(e, key, &at, &begin), h.n);
  h.v = is_cross ? value : by_heads(e, add_bias(e, value, &at, &begin), h.n);
  if (x_has(e, 6)) {
    h.k = x_concat(e, 2, (const char *[]){x_in(e, 6), h.k}, 2);
    h.v = x_concat(e, 2, (const char *[]){x_in(e, 7), h.v}, 2);
  }
  h.total = x_dim(e, h.k, 2);
  x_give(e, 0, joined(e, attend(e, &h, x_in(e, 4), x_in(e, 5))));
  x_give(e, 1, h.k);
  x_give(e, 2, h.v);
}
