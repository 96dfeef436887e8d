/* frontends/onnx/expand_decoder.c: RotaryEmbedding and GroupQueryAttention of domain com.microsoft, as decoders have them. */
#include <math.h>
#include <string.h>

#include "frontends/onnx/expand.h"

static const int64_t swapped[4] = {0, 2, 1, 3};

/* X of [batch, heads, length, size], or of [batch, length, columns] where the node has num_heads; positions [batch, length]. */
static const char *rotated(expansion *e, const char *x, const char *positions, const char *cos, const char *sin) {
  return x_node(e, "RotaryEmbedding", (const char *[]){x, cos, sin, positions}, 4);
}

/* X, position_ids, cos_cache, sin_cache. Without num_heads the size of a head is twice that of the caches. */
void expand_rotary(expansion *e) {
  const char *x = x_in(e, 0), *positions = x_in(e, 1), *y;
  const int32_t rank = x_rank(e, x), of_positions = x_rank(e, positions);
  const int64_t heads = x_attr(e, "num_heads", 0), columns = x_known_dim(e, x_in(e, 2), 1);
  if (x_attr(e, "is_packed_batching", 0) != 0) x_refuse(e, "is_packed_batching is not supported");
  if (rank != 3 && rank != 4) x_refuse(e, "the number of dimensions of its operand is not known to be 3 or 4");
  if (of_positions < 0 || of_positions > 2) x_refuse(e, "the number of dimensions of its positions is not known");
  if (heads < 0 || (heads == 0 && x_attr(e, "rotary_embedding_dim", 0) != 0 && rank == 3))
    x_refuse(e, "num_heads is %lld", (long long)heads);
  if (of_positions < 2) { /* of the first place of all rows */
    const char *length = x_dim(e, x, rank == 3 ? 1 : 2), *batch = x_dim(e, x, 0);
    positions = x_2(e, "Add", x_range(e, length), positions);
    positions = x_2(e, "Expand", positions, x_concat(e, 0, (const char *[]){batch, length}, 2));
  }
  const bool is_cut = rank == 3 && heads == 0;
  if (is_cut && columns > 0) {
    x = x_transpose(e, x_reshape(e, x, (const int64_t[]){0, 0, -1, 2 * columns}, 4), swapped, 4);
  } else if (is_cut) {
    const char *half = x_dim(e, x_in(e, 2), 1), *start = x_whole(e, (const int64_t[]){0, 0, -1}, 3);
    x = x_2(e, "Reshape", x, x_concat(e, 0, (const char *[]){start, x_2(e, "Add", half, half)}, 2));
    x = x_transpose(e, x, swapped, 4);
  }
  y = rotated(e, x, positions, x_in(e, 2), x_in(e, 3));
  x_keep(e, "interleaved rotary_embedding_dim");
  if (heads > 0) x_int(e, "num_heads", heads);
  if (is_cut) y = x_reshape(e, x_transpose(e, y, swapped, 4), (const int64_t[]){0, 0, -1}, 3);
  x_give(e, 0, y);
}

/* ---- GroupQueryAttention */

typedef struct gqa {
  int64_t n, n_kv;
  const char *q, *k, *v;      /* [batch, heads, length, size] */
  const char *batch, *length; /* int64, [1] */
  const char *end;            /* int64, [batch]: how many keys each row has after this step */
  const char *past;           /* int64, [batch]: and had before it */
  const char *capacity;       /* int64, [1]: rows of present */
} gqa;

static void refuse_rest(expansion *e, const gqa *g) {
  static const char *const zeros[] = {"qk_output", "kv_cache_bit_width", "sliding_window_cache", "smooth_softmax"};
  const int64_t window = x_attr(e, "local_window_size", -1);
  for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++)
    if (x_attr(e, zeros[i], 0) > 0) x_refuse(e, "%s is not supported", zeros[i]);
  if (x_has(e, 11)) x_refuse(e, "head_sink is not supported");
  if (x_has(e, 12) || x_has(e, 13)) x_refuse(e, "a quantised cache is not supported");
  if (x_attr(e, "causal", 1) != 1) x_refuse(e, "causal 0 is not supported");
  if (g->n < 1 || g->n_kv < 1 || g->n % g->n_kv != 0)
    x_refuse(e, "num_heads %lld and kv_num_heads %lld do not go together", (long long)g->n, (long long)g->n_kv);
  if (window == 0 || window < -1) x_refuse(e, "local_window_size is %lld", (long long)window);
  if (x_has(e, 1) != x_has(e, 2) || x_has(e, 3) != x_has(e, 4))
    x_refuse(e, "keys and values come together, in what is new and in the past");
  if (x_attr(e, "do_rotary", 0) != 0 && (!x_has(e, 7) || !x_has(e, 8))) x_refuse(e, "it has no caches to rotate by");
}

static const char *by_heads(expansion *e, const char *x, int64_t n) {
  return x_transpose(e, x_reshape(e, x, (const int64_t[]){0, 0, n, -1}, 4), swapped, 4);
}

static const char *flat(expansion *e, const char *x) {
  return x_reshape(e, x_cast(e, x, ONNX_INT64), (const int64_t[]){-1}, 1);
}

/* Lengths: of the first step, where all keys are new, a row's past is empty, and rows may be padded at their end. */
static void read_lengths(expansion *e, gqa *g) {
  const char *total = flat(e, x_in(e, 6)), *zero = x_one(e, 0);
  g->batch = x_dim(e, x_in(e, 0), 0);
  g->length = x_dim(e, x_in(e, 0), 1);
  g->end = x_2(e, "Add", flat(e, x_in(e, 5)), x_one(e, 1));
  const char *is_first = x_2(e, "Equal", total, g->length);
  g->past = x_3(e, "Where", is_first, zero, x_2(e, "Sub", g->end, g->length));
  g->past = x_2(e, "Expand", g->past, g->batch);
  g->capacity = x_has(e, 3) ? x_2(e, "Max", total, x_dim(e, x_in(e, 3), 2)) : total;
}

/* The places of new rows, [batch, length]. */
static const char *places_of(expansion *e, const gqa *g) {
  return x_2(e, "Add", x_unsqueeze(e, g->past, 1), x_range(e, g->length));
}

/* Rows of the past, as many as there is room for, with the new ones behind those that are valid. */
static const char *cached(expansion *e, const gqa *g, const char *past, const char *new) {
  const char *zero = x_number(e, new, 0);
  const char *room = x_2(e, "Sub", g->capacity, past[0] != '\0' ? x_dim(e, past, 2) : g->length);
  const char *pads =
      x_concat(e, 0, (const char *[]){x_whole(e, (const int64_t[]){0, 0, 0, 0, 0, 0}, 6), room, x_one(e, 0)}, 3);
  if (past[0] == '\0') return x_3(e, "Pad", new, pads, zero); /* rows of zeros behind, where there are any */
  const char *y = x_3(e, "TensorScatter", x_3(e, "Pad", past, pads, zero), new, g->past);
  x_int(e, "axis", 2);
  return y;
}

/* What is added to scores, [batch, 1, length, capacity]: minus infinity where a query does not see a key. */
static const char *mask_of(expansion *e, const gqa *g) {
  const int64_t window = x_attr(e, "local_window_size", -1);
  const char *key = x_range(e, g->capacity), *query = x_unsqueeze(e, places_of(e, g), 2); /* [batch, length, 1] */
  const char *ok = x_2(e, "LessOrEqual", key, query);
  const char *ends = x_2(e, "Unsqueeze", g->end, x_whole(e, (const int64_t[]){1, 2}, 2));
  ok = x_2(e, "And", ok, x_2(e, "Less", key, ends));
  if (window > 0) ok = x_2(e, "And", ok, x_2(e, "Greater", key, x_2(e, "Sub", query, x_one(e, window))));
  return x_3(e, "Where", x_unsqueeze(e, ok, 1), x_number(e, g->q, 0), x_number(e, g->q, -INFINITY));
}

/* Queries of the heads that share keys are rows of one product: nothing is repeated. */
static const char *attend(expansion *e, const gqa *g, const char *keys, const char *values) {
  static const int64_t last[4] = {0, 1, 3, 2};
  const float scale = x_attr_float(e, "scale", 0), cap = x_attr_float(e, "softcap", 0);
  const char *size = x_dim(e, g->q, 3), *of_values = x_dim(e, values, 3), *factor;
  const char *start = x_whole(e, (const int64_t[]){0, g->n_kv, -1}, 3);
  const char *q = x_2(e, "Reshape", g->q, x_concat(e, 0, (const char *[]){start, size}, 2));
  if (scale != 0) factor = x_number(e, q, scale);
  else factor = x_cast(e, x_1(e, "Reciprocal", x_1(e, "Sqrt", x_cast(e, size, ONNX_FLOAT))), x_type(e, g->q));
  const char *score = x_2(e, "MatMul", x_2(e, "Mul", q, factor), x_transpose(e, keys, last, 4));
  const char *by_head = x_whole(e, (const int64_t[]){0, g->n}, 2);
  score = x_2(e, "Reshape", score, x_concat(e, 0, (const char *[]){by_head, g->length, g->capacity}, 3));
  if (cap > 0) {
    const char *c = x_number(e, g->q, cap);
    score = x_2(e, "Mul", x_1(e, "Tanh", x_2(e, "Div", score, c)), c);
  }
  score = x_1(e, "Softmax", x_2(e, "Add", x_sum(e, score, x_in(e, 10)), mask_of(e, g)));
  x_int(e, "axis", -1);
  score = x_2(e, "Reshape", score, x_concat(e, 0, (const char *[]){start, g->capacity}, 2));
  const char *y = x_2(e, "MatMul", score, values);
  return x_2(e, "Reshape", y, x_concat(e, 0, (const char *[]){by_head, g->length, of_values}, 3));
}

static const char *rms_norm(expansion *e, const char *x, size_t k) {
  if (!x_has(e, k)) return x;
  const char *y = x_2(e, "RMSNormalization", x, x_in(e, k));
  const float both = x_attr_float(e, "qk_norm_epsilon", 1e-6F);
  x_float(e, "epsilon", x_attr_float(e, k == 14 ? "q_norm_epsilon" : "k_norm_epsilon", both));
  return y;
}

static const char *turned(expansion *e, const gqa *g, const char *x) {
  if (x_attr(e, "do_rotary", 0) == 0) return x;
  const char *y = rotated(e, x, x_has(e, 9) ? x_in(e, 9) : places_of(e, g), x_in(e, 7), x_in(e, 8));
  x_int(e, "interleaved", x_attr(e, "rotary_interleaved", 0));
  const int64_t half = x_known_dim(e, x_in(e, 7), 1), size = x_known_dim(e, x_in(e, 3), 3);
  if (half > 0 && size > 0 && 2 * half < size) x_int(e, "rotary_embedding_dim", 2 * half);
  return y;
}

/* query, key, value, past_key, past_value, seqlens_k, total_sequence_length, cos, sin, position_ids, attention_bias,
 * head_sink, k_scale, v_scale, q_norm_weight, k_norm_weight */
void expand_group_query_attention(expansion *e) {
  gqa g = {.n = x_attr(e, "num_heads", 0), .n_kv = x_attr(e, "kv_num_heads", 0)};
  refuse_rest(e, &g);
  if (!x_ok(e)) return;
  if (x_has(e, 1)) {
    g.q = by_heads(e, x_in(e, 0), g.n);
    g.k = by_heads(e, x_in(e, 1), g.n_kv);
    g.v = by_heads(e, x_in(e, 2), g.n_kv);
  } else {
    const char *part[3], *all = by_heads(e, x_in(e, 0), g.n + 2 * g.n_kv);
    x_split_by(e, all, 1, x_whole(e, (const int64_t[]){g.n, g.n_kv, g.n_kv}, 3), part, 3);
    g.q = part[0];
    g.k = part[1];
    g.v = part[2];
  }
  read_lengths(e, &g);
  g.q = turned(e, &g, rms_norm(e, g.q, 14));
  g.k = turned(e, &g, rms_norm(e, g.k, 15));
  const char *keys = cached(e, &g, x_in(e, 3), g.k), *values = cached(e, &g, x_in(e, 4), g.v);
  const char *y = x_transpose(e, attend(e, &g, keys, values), swapped, 4);
  x_give(e, 0, x_reshape(e, y, (const int64_t[]){0, 0, -1}, 3));
  x_give(e, 1, keys);
  x_give(e, 2, values);
}
