/* GroupQueryAttention of domain "heddle": the geometry that gqa.c leaves for its kernels, which are in float32 (gqa_fast.c)
 * and in float64. */
#ifndef HEDDLE_PLUGINS_COMMON_MORE_GQA_H
#define HEDDLE_PLUGINS_COMMON_MORE_GQA_H

#include "more.h"

/* Operands, and results. */
enum {
  GQA_Q,
  GQA_K,
  GQA_V,
  GQA_PAST_K,
  GQA_PAST_V,
  GQA_ENDS,
  GQA_TOTAL,
  GQA_COS,
  GQA_SIN,
  GQA_POSITIONS,
  GQA_BIAS,
  GQA_SINK,
  GQA_K_SCALE,
  GQA_V_SCALE,
  GQA_Q_NORM,
  GQA_K_NORM
};
enum { GQA_Y, GQA_PRESENT_K, GQA_PRESENT_V };

/* more_op.i: SHARE queries' heads have one of keys; PAST and ROOM rows of a cache, before and after; HALF: pairs of a head that are
 * rotated; BITS of a number of a cache, 0: not quantised; PER: scales of a quantised cache, 1 or one for each channel. */
enum {
  GQA_BATCH,
  GQA_LENGTH,
  GQA_HEADS,
  GQA_KV_HEADS,
  GQA_SHARE,
  GQA_SIZE,
  GQA_PAST,
  GQA_ROOM,
  GQA_FIRST,
  GQA_WINDOW,
  GQA_HALF,
  GQA_INTERLEAVED,
  GQA_CAUSAL,
  GQA_SMOOTH,
  GQA_PACKED,
  GQA_BITS,
  GQA_K_PER,
  GQA_V_PER,
  GQA_ROW_BYTES,
  GQA_BIAS_ROWS, /* dimensions 0, 1 and 3 of the bias */
  GQA_BIAS_HEADS,
  GQA_BIAS_KEYS
};
/* more_op.f */
enum { GQA_SCALE, GQA_SOFTCAP, GQA_EPSILON };

static inline bool gqa_has(const more_op *m, const more_args *a, uint32_t k) {
  return k < m->n_in && a->in[k] != NULL;
}

/* Rows of row b's cache that are valid after this step, and before it, whatever the operand says. */
static inline int64_t gqa_end(const more_op *m, const more_args *a, int64_t b) {
  const int64_t end = more_get_int(&m->in[GQA_ENDS], a->in[GQA_ENDS], b) + 1, room = m->i[GQA_ROOM];
  return end < 1 ? 1 : end > room ? room : end;
}

static inline int64_t gqa_past(const more_op *m, int64_t end) {
  const int64_t past = m->i[GQA_FIRST] ? 0 : end - m->i[GQA_LENGTH];
  return past < 0 ? 0 : past;
}

/* Keys that query s sees: [first, last). */
static inline void gqa_seen(const more_op *m, int64_t end, int64_t s, int64_t *first, int64_t *last) {
  const int64_t at = gqa_past(m, end) + s + 1, window = m->i[GQA_WINDOW];
  *last = m->i[GQA_CAUSAL] == 0 || at > end ? end : at;
  *first = window > 0 && *last > window ? *last - window : 0;
}

/* Where new token s of row b stands. */
static inline int64_t gqa_position(const more_op *m, const more_args *a, int64_t b, int64_t s, int64_t past) {
  if (!gqa_has(m, a, GQA_POSITIONS)) return past + s;
  return more_get_int(&m->in[GQA_POSITIONS], a->in[GQA_POSITIONS], b * m->i[GQA_LENGTH] + s);
}

/* Where head h of a new token begins: of queries (k 0), keys or values. */
static inline int64_t gqa_new_at(const more_op *m, uint32_t k, int64_t b, int64_t s, int64_t h) {
  const int64_t heads = k == GQA_Q ? m->i[GQA_HEADS] : m->i[GQA_KV_HEADS], row = b * m->i[GQA_LENGTH] + s;
  const int64_t all = m->i[GQA_HEADS] + 2 * m->i[GQA_KV_HEADS];
  const int64_t before = k == GQA_Q ? 0 : m->i[GQA_HEADS] + (k == GQA_V ? m->i[GQA_KV_HEADS] : 0);
  return (m->i[GQA_PACKED] ? row * all + before + h : row * heads + h) * m->i[GQA_SIZE];
}

/* What is added to the score of query s of head h and key j; 0 without a bias. */
static inline double gqa_bias(const more_op *m, const more_args *a, int64_t b, int64_t h, int64_t s, int64_t j) {
  if (!gqa_has(m, a, GQA_BIAS)) return 0;
  const more_value *v = &m->in[GQA_BIAS];
  if (j >= v->shape[3]) return 0;
  const int64_t row = ((v->shape[0] > 1 ? b : 0) * v->shape[1] + (v->shape[1] > 1 ? h : 0)) * v->shape[2] + s;
  return more_get(v, a->in[GQA_BIAS], row * v->shape[3] + j);
}

/* gqa_fast.c */
void gqa_run_fast(const more_op *m, const more_args *a, int64_t first, int64_t last);
int64_t gqa_fast_bytes(const more_op *m);

#endif
