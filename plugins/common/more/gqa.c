/* GroupQueryAttention: reads the node, and computes it in float64, which is what other kernels are compared with. */
#include "gqa.h"

#include <math.h>

/* ---------------------------------------------------------------- rows of a cache */

static double cache_at(const more_op *m, const void *cache, uint32_t k, const float *scales, int64_t head, int64_t row,
                       int64_t e) {
  const int64_t size = m->i[GQA_SIZE], per = m->i[k == GQA_PRESENT_K ? GQA_K_PER : GQA_V_PER];
  if (m->i[GQA_BITS] == 0) return more_get(&m->out[k], cache, row * size + e);
  const double scale = scales[per == 1 ? 0 : head * size + e];
  if (m->i[GQA_BITS] == 8) return scale * ((const int8_t *)cache)[row * size + e];
  return scale * ((((const uint8_t *)cache)[row * ((size + 1) / 2) + e / 2] >> (4 * (e % 2)) & 15) - 8);
}

static void cache_put(const more_op *m, void *cache, uint32_t k, const float *scales, int64_t head, int64_t row,
                      int64_t e, double x) {
  const int64_t size = m->i[GQA_SIZE], per = m->i[k == GQA_PRESENT_K ? GQA_K_PER : GQA_V_PER];
  if (m->i[GQA_BITS] == 0) {
    more_put(&m->out[k], cache, row * size + e, x);
    return;
  }
  const double least = m->i[GQA_BITS] == 8 ? -128 : -8, q = rint(x / scales[per == 1 ? 0 : head * size + e]);
  const int whole = isnan(q) ? 0 : (int)fmin(fmax(q, least), -least - 1);
  if (m->i[GQA_BITS] == 8) {
    ((int8_t *)cache)[row * size + e] = (int8_t)whole;
  } else {
    uint8_t *at = (uint8_t *)cache + row * ((size + 1) / 2) + e / 2;
    *at = (uint8_t)(e % 2 == 0 ? whole + 8 : (*at & 15) | (whole + 8) << 4);
  }
}

/* ---------------------------------------------------------------- in float64 */

/* Head h of new token s, normalised and rotated. */
static void new_head(const more_op *m, const more_args *a, uint32_t k, int64_t b, int64_t s, int64_t h, int64_t past,
                     double *out) {
  const uint32_t from = m->i[GQA_PACKED] ? GQA_Q : k, norm = k == GQA_Q ? GQA_Q_NORM : GQA_K_NORM;
  const int64_t at = gqa_new_at(m, k, b, s, h), size = m->i[GQA_SIZE], half = m->i[GQA_HALF];
  double square = 0;
  for (int64_t e = 0; e < size; e++) {
    out[e] = more_get(&m->in[from], a->in[from], at + e);
    square += out[e] * out[e];
  }
  if (k == GQA_V) return;
  for (int64_t e = 0; e < size && gqa_has(m, a, norm); e++)
    out[e] = out[e] / sqrt(square / (double)size + m->f[GQA_EPSILON]) * more_get(&m->in[norm], a->in[norm], e);
  const int64_t place = gqa_position(m, a, b, s, past);
  if (half == 0 || place < 0 || place >= m->in[GQA_COS].shape[0]) return;
  for (int64_t e = 0; e < half; e++) {
    const int64_t one = m->i[GQA_INTERLEAVED] ? 2 * e : e, two = m->i[GQA_INTERLEAVED] ? 2 * e + 1 : e + half;
    const double c = more_get(&m->in[GQA_COS], a->in[GQA_COS], place * half + e),
                 n = more_get(&m->in[GQA_SIN], a->in[GQA_SIN], place * half + e), x = out[one], y = out[two];
    out[one] = x * c - y * n;
    out[two] = y * c + x * n;
  }
}

/* The cache of one head: the past, the new rows behind it, and zeros. */
static void keep(const more_op *m, const more_args *a, uint32_t k, int64_t b, int64_t h, int64_t past, void *cache,
                 double *row) {
  const uint32_t new = k == GQA_PRESENT_K ? GQA_K : GQA_V, old = k == GQA_PRESENT_K ? GQA_PAST_K : GQA_PAST_V;
  const int64_t bytes = m->i[GQA_ROW_BYTES], length = m->i[GQA_LENGTH], room = m->i[GQA_ROOM];
  const float *scales = gqa_has(m, a, new + 11) ? a->in[new + 11] : NULL; /* 12 and 13 */
  if (!gqa_has(m, a, old) || a->in[old] != a->out[k]) {
    const int64_t all = past < m->i[GQA_PAST] ? past : m->i[GQA_PAST];
    memset(cache, 0, (size_t)(room * bytes));
    if (gqa_has(m, a, old))
      memcpy(cache, (const char *)a->in[old] + (b * m->i[GQA_KV_HEADS] + h) * m->i[GQA_PAST] * bytes,
             (size_t)(all * bytes));
  }
  for (int64_t s = 0; s < length && past + s < room; s++) {
    new_head(m, a, new, b, s, h, past, row);
    for (int64_t e = 0; e < m->i[GQA_SIZE]; e++) cache_put(m, cache, k, scales, h, past + s, e, row[e]);
  }
}

static void attend(const more_op *m, const more_args *a, int64_t b, int64_t h, int64_t s, int64_t end,
                   void *const *caches, double *query, double *score) {
  const int64_t size = m->i[GQA_SIZE], kv = h / m->i[GQA_SHARE];
  const float *k_scales = gqa_has(m, a, GQA_K_SCALE) ? a->in[GQA_K_SCALE] : NULL,
              *v_scales = gqa_has(m, a, GQA_V_SCALE) ? a->in[GQA_V_SCALE] : NULL;
  const bool has_sink = gqa_has(m, a, GQA_SINK) || m->i[GQA_SMOOTH];
  const double cap = m->f[GQA_SOFTCAP],
               sink = gqa_has(m, a, GQA_SINK) ? more_get(&m->in[GQA_SINK], a->in[GQA_SINK], h) : 0;
  double most = has_sink ? sink : -(double)INFINITY, sum = 0;
  int64_t first, last;
  gqa_seen(m, end, s, &first, &last);
  new_head(m, a, GQA_Q, b, s, h, gqa_past(m, end), query);
  for (int64_t j = first; j < last; j++) {
    double x = 0;
    for (int64_t e = 0; e < size; e++) x += query[e] * cache_at(m, caches[0], GQA_PRESENT_K, k_scales, kv, j, e);
    x *= m->f[GQA_SCALE];
    if (cap > 0) x = cap * tanh(x / cap);
    score[j] = x + gqa_bias(m, a, b, h, s, j);
    most = fmax(most, score[j]);
  }
  if (isinf(most) && most < 0) most = 0; /* all are masked: a row of zeros */
  if (has_sink) sum = exp(sink - most);
  for (int64_t j = first; j < last; j++) sum += score[j] = exp(score[j] - most);
  for (int64_t e = 0; e < size; e++) {
    double y = 0;
    for (int64_t j = first; j < last; j++)
      y += (sum == 0 ? 0 : score[j] / sum) * cache_at(m, caches[1], GQA_PRESENT_V, v_scales, kv, j, e);
    more_put(&m->out[GQA_Y], a->out[GQA_Y], ((b * m->i[GQA_LENGTH] + s) * m->i[GQA_HEADS] + h) * size + e, y);
  }
}

/* A unit is a head of keys of a row of the batch. */
static void run_exact(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t bytes = m->i[GQA_ROOM] * m->i[GQA_ROW_BYTES], size = m->i[GQA_SIZE];
  double *row = a->scratch, *score = row + size;
  int64_t work = 0;
  for (int64_t u = first; u < last; u++) {
    const int64_t b = u / m->i[GQA_KV_HEADS], kv = u % m->i[GQA_KV_HEADS], end = gqa_end(m, a, b);
    void *caches[2];
    for (uint32_t k = 0; k < 2; k++) {
      char *own = (char *)(score + m->i[GQA_ROOM]) + k * bytes;
      caches[k] = a->out[k + 1] != NULL ? (char *)a->out[k + 1] + u * bytes : own;
      keep(m, a, k + 1, b, kv, gqa_past(m, end), caches[k], row);
    }
    for (int64_t s = 0; s < m->i[GQA_LENGTH] && a->out[GQA_Y] != NULL; s++) {
      for (int64_t g = 0; g < m->i[GQA_SHARE]; g++)
        attend(m, a, b, kv * m->i[GQA_SHARE] + g, s, end, caches, row, score);
      if (more_tick(m, &work, 10 * m->i[GQA_SHARE] * m->i[GQA_ROOM] * size)) return;
    }
  }
}

/* ---------------------------------------------------------------- the node */

static void read_quantised(more_plan *p) {
  int64_t *i = p->m->i;
  const int64_t k = more_choice(p, "k_quant_type", "NONE", "NONE PER_TENSOR PER_CHANNEL"),
                v = more_choice(p, "v_quant_type", "NONE", "NONE PER_TENSOR PER_CHANNEL"),
                bits = more_int(p, "kv_cache_bit_width", 0);
  if ((k == 0) != (v == 0)) more_refuse(p, "keys and values are quantised together");
  if (k != 0 && bits != 4 && bits != 8) more_refuse(p, "kv_cache_bit_width is %lld", (long long)bits);
  if ((k != 0) != more_operand(p, GQA_K_SCALE) || (k != 0) != more_operand(p, GQA_V_SCALE))
    more_refuse(p, "scales of a cache come with a quantised one");
  i[GQA_BITS] = k != 0 ? bits : 0;
  i[GQA_K_PER] = k == 2 ? i[GQA_KV_HEADS] * i[GQA_SIZE] : 1;
  i[GQA_V_PER] = v == 2 ? i[GQA_KV_HEADS] * i[GQA_SIZE] : 1;
  for (uint32_t o = GQA_K_SCALE; o <= GQA_V_SCALE && more_ok(p) && k != 0; o++)
    if (p->m->in[o].type != REF_TYPE_F32 || p->m->in[o].count != i[o == GQA_K_SCALE ? GQA_K_PER : GQA_V_PER])
      more_refuse(p, "operand %u is not float32, one for each scale of its cache", o);
}

static void read_heads(more_plan *p) {
  more_op *m = p->m;
  int64_t *i = m->i;
  const more_value *q = &m->in[GQA_Q];
  more_rank(p, GQA_Q, 3, 3);
  more_real(p, GQA_Q);
  i[GQA_HEADS] = more_int(p, "num_heads", 0);
  i[GQA_KV_HEADS] = more_int(p, "kv_num_heads", 0);
  if (more_operand(p, GQA_K) != more_operand(p, GQA_V)) more_refuse(p, "keys and values come together");
  if (more_operand(p, GQA_PAST_K) != more_operand(p, GQA_PAST_V)) more_refuse(p, "the past has keys and values");
  if (i[GQA_HEADS] < 1 || i[GQA_KV_HEADS] < 1 || i[GQA_HEADS] > 1 << 20 || i[GQA_HEADS] % i[GQA_KV_HEADS] != 0)
    more_refuse(p, "num_heads %lld and kv_num_heads %lld do not go together", (long long)i[GQA_HEADS],
                (long long)i[GQA_KV_HEADS]);
  if (!more_ok(p)) return;
  i[GQA_PACKED] = !more_operand(p, GQA_K);
  const int64_t all = i[GQA_HEADS] + (i[GQA_PACKED] ? 2 * i[GQA_KV_HEADS] : 0);
  if (q->shape[2] % all != 0) more_refuse(p, "operand 0 is not %lld heads wide", (long long)all);
  i[GQA_BATCH] = q->shape[0];
  i[GQA_LENGTH] = q->shape[1];
  i[GQA_SIZE] = q->shape[2] / all;
  i[GQA_SHARE] = i[GQA_HEADS] / i[GQA_KV_HEADS];
  if (i[GQA_SIZE] < 1 || i[GQA_LENGTH] < 1) more_refuse(p, "operand 0 is empty");
  const int64_t keys[] = {i[GQA_BATCH], i[GQA_LENGTH], i[GQA_KV_HEADS] * i[GQA_SIZE]};
  for (uint32_t k = GQA_K; k <= GQA_V; k++) {
    more_shape_is(p, k, 3, keys);
    more_same_type(p, GQA_Q, k);
  }
}

static void read_lengths(more_plan *p) {
  more_op *m = p->m;
  int64_t *i = m->i;
  const int64_t total = more_operand_int(p, GQA_TOTAL, 0),
                bytes = i[GQA_BITS] == 4 ? (i[GQA_SIZE] + 1) / 2 : i[GQA_SIZE];
  if (!more_operand(p, GQA_ENDS) || !more_operand(p, GQA_TOTAL)) more_refuse(p, "operand 5 or 6 is missing");
  more_whole(p, GQA_ENDS);
  if (more_ok(p) && m->in[GQA_ENDS].count != i[GQA_BATCH])
    more_refuse(p, "operand 5 has not a length for each of %lld rows", (long long)i[GQA_BATCH]);
  if (total < 0 || total > INT32_MAX) more_refuse(p, "operand 6 is %lld", (long long)total);
  if (more_operand(p, GQA_PAST_K)) {
    const more_value *past = &m->in[GQA_PAST_K];
    more_rank(p, GQA_PAST_K, 4, 4);
    if (!more_ok(p)) return;
    i[GQA_PAST] = past->shape[2];
    const int64_t shape[] = {i[GQA_BATCH], i[GQA_KV_HEADS], i[GQA_PAST], bytes};
    const int type = i[GQA_BITS] == 8 ? REF_TYPE_I8 : i[GQA_BITS] == 4 ? REF_TYPE_U8 : m->in[GQA_Q].type;
    for (uint32_t k = GQA_PAST_K; k <= GQA_PAST_V; k++) {
      more_shape_is(p, k, 4, shape);
      if (more_ok(p) && m->in[k].type != type) more_refuse(p, "operand %u is of another type than its cache", k);
    }
  }
  i[GQA_FIRST] = i[GQA_LENGTH] == total;
  i[GQA_ROOM] = total > i[GQA_PAST] ? total : i[GQA_PAST];
  if (more_ok(p) && i[GQA_ROOM] < i[GQA_LENGTH])
    more_refuse(p, "a cache of %lld rows has no room for %lld", (long long)i[GQA_ROOM], (long long)i[GQA_LENGTH]);
  i[GQA_ROW_BYTES] = bytes * (i[GQA_BITS] != 0 ? 1 : m->in[GQA_Q].size);
}

static void read_rotary(more_plan *p) {
  more_op *m = p->m;
  int64_t *i = m->i;
  if (more_int(p, "do_rotary", 0) == 0 || !more_ok(p)) return;
  if (!more_operand(p, GQA_COS) || !more_operand(p, GQA_SIN)) more_refuse(p, "it has no caches to rotate by");
  more_rank(p, GQA_COS, 2, 2);
  more_real(p, GQA_COS);
  more_same_shape(p, GQA_COS, GQA_SIN);
  more_same_type(p, GQA_COS, GQA_SIN);
  if (!more_ok(p)) return;
  i[GQA_HALF] = m->in[GQA_COS].shape[1];
  i[GQA_INTERLEAVED] = more_int(p, "rotary_interleaved", 0) != 0;
  if (2 * i[GQA_HALF] > i[GQA_SIZE]) more_refuse(p, "its caches rotate more than a head");
}

static void read_rest(more_plan *p) {
  more_op *m = p->m;
  int64_t *i = m->i;
  const int64_t lengths[] = {i[GQA_BATCH], i[GQA_LENGTH]};
  i[GQA_WINDOW] = more_int(p, "local_window_size", -1);
  i[GQA_CAUSAL] = more_int(p, "causal", 1) != 0;
  i[GQA_SMOOTH] = more_int(p, "smooth_softmax", 0) > 0;
  if (i[GQA_WINDOW] == 0 || i[GQA_WINDOW] < -1) more_refuse(p, "local_window_size is %lld", (long long)i[GQA_WINDOW]);
  if (i[GQA_WINDOW] > 0 && i[GQA_CAUSAL] == 0) more_refuse(p, "local_window_size is of causal attention");
  if (more_int(p, "sliding_window_cache", 0) != 0) more_refuse(p, "sliding_window_cache is not supported");
  if (more_int(p, "qk_output", 0) != 0) more_refuse(p, "qk_output is not supported");
  const double scale = more_float(p, "scale", 0);
  m->f[GQA_SCALE] = scale != 0 ? scale : 1 / sqrt((double)i[GQA_SIZE]);
  m->f[GQA_SOFTCAP] = more_float(p, "softcap", 0);
  if (!isfinite(scale)) more_refuse(p, "scale is no number");
  if (!isfinite(m->f[GQA_SOFTCAP])) more_refuse(p, "softcap is no number");
  m->f[GQA_EPSILON] = more_float(p, "qk_norm_epsilon", 1e-6);
  more_shape_is(p, GQA_POSITIONS, 2, lengths);
  more_whole(p, GQA_POSITIONS);
  for (uint32_t k = GQA_BIAS; k <= GQA_K_NORM; k++) more_real(p, k);
  more_shape_is(p, GQA_SINK, 1, &i[GQA_HEADS]);
  more_shape_is(p, GQA_Q_NORM, 1, &i[GQA_SIZE]);
  more_shape_is(p, GQA_K_NORM, 1, &i[GQA_SIZE]);
  more_rank(p, GQA_BIAS, 4, 4);
  if (!more_operand(p, GQA_BIAS) || !more_ok(p)) return;
  const int64_t *bias = m->in[GQA_BIAS].shape;
  i[GQA_BIAS_ROWS] = bias[0];
  i[GQA_BIAS_HEADS] = bias[1];
  i[GQA_BIAS_KEYS] = bias[3];
  if ((bias[0] != 1 && bias[0] != i[GQA_BATCH]) || (bias[1] != 1 && bias[1] != i[GQA_HEADS]) ||
      bias[2] != i[GQA_LENGTH])
    more_refuse(p, "operand 10 does not fit its queries");
}

void more_setup_gqa(more_plan *p) {
  more_op *m = p->m;
  int64_t *i = m->i;
  read_heads(p);
  read_quantised(p);
  read_lengths(p);
  read_rotary(p);
  read_rest(p);
  if (!more_ok(p)) return;
  const int type = i[GQA_BITS] == 8 ? REF_TYPE_I8 : i[GQA_BITS] == 4 ? REF_TYPE_U8 : m->in[GQA_Q].type;
  const int64_t width = i[GQA_BITS] == 4 ? (i[GQA_SIZE] + 1) / 2 : i[GQA_SIZE];
  const int64_t y[] = {i[GQA_BATCH], i[GQA_LENGTH], i[GQA_HEADS] * i[GQA_SIZE]};
  const int64_t cache[] = {i[GQA_BATCH], i[GQA_KV_HEADS], i[GQA_ROOM], width};
  more_result(p, GQA_Y, m->in[GQA_Q].type, 3, y);
  more_result(p, GQA_PRESENT_K, type, 4, cache);
  more_result(p, GQA_PRESENT_V, type, 4, cache);
  if (!more_ok(p)) return;
  const int64_t units = i[GQA_BATCH] * i[GQA_KV_HEADS];
  const double steps = 2.0 * (double)(units * i[GQA_SHARE] * i[GQA_LENGTH]) * (double)i[GQA_ROOM] * (double)i[GQA_SIZE];
  if (units > 0 && m->in[GQA_Q].type != REF_TYPE_F64) {
    more_loop(p, gqa_run_fast, units, steps);
    m->part_scratch = (uint64_t)gqa_fast_bytes(m);
  } else {
    more_work(p, run_exact, units, steps);
    m->part_scratch =
        (uint64_t)((i[GQA_SIZE] + i[GQA_ROOM]) * (int64_t)sizeof(double) + 2 * i[GQA_ROOM] * i[GQA_ROW_BYTES]);
  }
  m->unsliced = true;
  for (uint32_t k = GQA_PRESENT_K; k <= GQA_PRESENT_V && more_operand(p, GQA_PAST_K) && i[GQA_PAST] == i[GQA_ROOM]; k++)
    m->in_place[k] = (uint8_t)(1 + GQA_PAST_K + k - GQA_PRESENT_K);
  m->extends = true; /* rows before a length are as they were */
}
