/* Attention with its masks and caches, RotaryEmbedding and LinearAttention. */
#include "more.h"

#include <math.h>

/* ---------------------------------------------------------------- Attention */

enum { BATCH, Q_HEADS, KV_HEADS, Q_LEN, KV_LEN, PAST, SIZE, V_SIZE, FLAT, CAUSAL, MODE, LEFT, RIGHT, PRECISION };
enum { SCALE, SOFTCAP };

/* Element e of head h at place t of Q, K or V (operand k), of heads heads, n long, size wide. */
static double of_head(const more_op *m, const void *x, uint32_t k, int64_t b, int64_t h, int64_t t, int64_t e,
                      int64_t heads, int64_t n, int64_t size) {
  const int64_t at = m->i[FLAT] ? ((b * n + t) * heads + h) * size + e : ((b * heads + h) * n + t) * size + e;
  return more_get(&m->in[k], x, at);
}

/* A key or value with those of the past before it. */
static double cached(const more_op *m, const more_args *a, uint32_t k, int64_t b, int64_t h, int64_t t, int64_t e) {
  const int64_t past = m->i[PAST], size = k == 1 ? m->i[SIZE] : m->i[V_SIZE], heads = m->i[KV_HEADS];
  if (t < past) return more_get(&m->in[k + 3], a->in[k + 3], ((b * heads + h) * past + t) * size + e);
  return of_head(m, a->in[k], k, b, h, t - past, e, heads, m->i[KV_LEN], size);
}

/* What is added to the score of query t and key j: a mask, or minus infinity. */
static double bias(const more_op *m, const more_args *a, int64_t b, int64_t h, int64_t t, int64_t j) {
  const int64_t total = m->i[PAST] + m->i[KV_LEN], *i = m->i;
  const bool padded = m->n_in > 6 && a->in[6] != NULL;
  int64_t valid = padded ? more_get_int(&m->in[6], a->in[6], b) : total;
  valid = valid < 0 ? 0 : valid > total ? total : valid;
  const int64_t at = t + (padded ? valid - i[Q_LEN] : i[PAST]);
  double x = 0;
  if (j >= valid || (i[CAUSAL] && j > at) || (i[LEFT] >= 0 && at - j > i[LEFT]) || (i[RIGHT] >= 0 && j - at > i[RIGHT]))
    x = -(double)INFINITY;
  if (m->n_in < 4 || a->in[3] == NULL) return x;
  const more_value *mask = &m->in[3];
  const int64_t place[4] = {b, h, t, j};
  int64_t where = 0;
  if (j >= mask->shape[mask->ndim - 1] && mask->shape[mask->ndim - 1] != 1)
    return -(double)INFINITY; /* a shorter mask */
  for (int32_t d = 0; d < mask->ndim; d++) {
    const int64_t p = place[4 - mask->ndim + d];
    where = where * mask->shape[d] + (mask->shape[d] == 1 ? 0 : p);
  }
  if (mask->type == REF_TYPE_BOOL) return more_get_int(mask, a->in[3], where) != 0 ? x : -(double)INFINITY;
  return x + more_get(mask, a->in[3], where);
}

/* Row t of head h: its scores are in scratch memory. The steps round as the operands' type does. */
static void attend(const more_op *m, const more_args *a, int64_t b, int64_t h, int64_t t, double *query,
                   double *score) {
  const int64_t *i = m->i, total = i[PAST] + i[KV_LEN], kv = h / (i[Q_HEADS] / i[KV_HEADS]);
  const int64_t row = (b * i[Q_HEADS] + h) * i[Q_LEN] + t;
  const int type = m->in[0].type, inner = i[PRECISION] != 0 ? (int)i[PRECISION] : type;
  double most = -(double)INFINITY, greatest_bias = -(double)INFINITY, sum = 0;
  for (int64_t e = 0; e < i[SIZE]; e++) {
    const double x = of_head(m, a->in[0], 0, b, h, t, e, i[Q_HEADS], i[Q_LEN], i[SIZE]);
    query[e] = more_round_to(type, x * m->f[SCALE]);
  }
  for (int64_t j = 0; j < total; j++) {
    double x = 0;
    for (int64_t e = 0; e < i[SIZE]; e++)
      x += query[e] * more_round_to(type, cached(m, a, 1, b, kv, j, e) * m->f[SCALE]);
    x = more_round_to(type, x);
    if (a->out[3] != NULL && i[MODE] == 0) more_put(&m->out[3], a->out[3], row * total + j, x);
    if (m->f[SOFTCAP] > 0) x = m->f[SOFTCAP] * tanh(x / m->f[SOFTCAP]);
    if (a->out[3] != NULL && i[MODE] == 1) more_put(&m->out[3], a->out[3], row * total + j, x);
    const double add = bias(m, a, b, h, t, j);
    greatest_bias = fmax(greatest_bias, add);
    score[j] = more_round_to(type, x + add);
    if (a->out[3] != NULL && i[MODE] == 2) more_put(&m->out[3], a->out[3], row * total + j, score[j]);
    most = fmax(most, score[j]);
  }
  const bool masked = isinf(greatest_bias) && greatest_bias < 0; /* no key at all: a row of zeros */
  for (int64_t j = 0; j < total; j++) {
    score[j] = masked ? 0 : more_round_to(inner, exp(score[j] - most));
    sum += score[j];
  }
  for (int64_t j = 0; j < total; j++) {
    score[j] = masked ? 0 : more_round_to(type, score[j] / sum);
    if (a->out[3] != NULL && i[MODE] == 3) more_put(&m->out[3], a->out[3], row * total + j, score[j]);
  }
  for (int64_t e = 0; e < i[V_SIZE] && a->out[0] != NULL; e++) {
    double y = 0;
    for (int64_t j = 0; j < total; j++) y += score[j] != 0 ? score[j] * cached(m, a, 2, b, kv, j, e) : 0;
    const int64_t at = i[FLAT] ? ((b * i[Q_LEN] + t) * i[Q_HEADS] + h) * i[V_SIZE] + e : row * i[V_SIZE] + e;
    more_put(&m->out[0], a->out[0], at, y);
  }
}

/* A unit is a head of an image, and has scratch memory of its own; the first of those that share keys and values writes
 * the keys and values that there are now. */
static void run_attention(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t *i = m->i, total = i[PAST] + i[KV_LEN], share = i[Q_HEADS] / i[KV_HEADS];
  int64_t work = 0;
  for (int64_t u = first; u < last; u++) {
    const int64_t h = u % i[Q_HEADS], b = u / i[Q_HEADS], kv = h / share;
    double *query = (double *)a->scratch + u * (i[SIZE] + total);
    for (int64_t t = 0; t < i[Q_LEN]; t++) {
      if (more_tick(m, &work, total * (i[SIZE] + i[V_SIZE]))) return;
      attend(m, a, b, h, t, query, query + i[SIZE]);
    }
    for (uint32_t k = 1; k < 3 && h % share == 0; k++) {
      const int64_t size = k == 1 ? i[SIZE] : i[V_SIZE];
      for (int64_t j = 0; a->out[k] != NULL && j < total * size; j++)
        more_put(&m->out[k], a->out[k], (b * i[KV_HEADS] + kv) * total * size + j,
                 cached(m, a, k, b, kv, j / size, j % size));
    }
  }
}

/* Batch, heads, length and width of operand k. */
static void heads_of(more_plan *p, uint32_t k, int64_t heads, int64_t out[4]) {
  const int64_t *x = p->m->in[k].shape;
  more_rank(p, k, p->m->in[0].ndim, p->m->in[0].ndim);
  if (!more_ok(p)) return;
  if (p->m->i[FLAT] && (heads < 1 || x[2] % heads != 0))
    more_refuse(p, "operand %u has not %lld heads", k, (long long)heads);
  if (!more_ok(p)) return;
  out[0] = x[0];
  out[1] = p->m->i[FLAT] ? heads : x[1];
  out[2] = p->m->i[FLAT] ? x[1] : x[2];
  out[3] = p->m->i[FLAT] ? x[2] / heads : x[3];
}

void more_setup_attention(more_plan *p) {
  more_op *m = p->m;
  int64_t q[4] = {0}, k[4] = {0}, v[4] = {0}, *i = m->i;
  more_rank(p, 0, 3, 4);
  for (uint32_t o = 0; o < 3; o++) more_real(p, o);
  more_same_type(p, 0, 1);
  i[FLAT] = m->in[0].ndim == 3;
  heads_of(p, 0, more_int(p, "q_num_heads", 0), q);
  heads_of(p, 1, more_int(p, "kv_num_heads", 0), k);
  heads_of(p, 2, more_int(p, "kv_num_heads", 0), v);
  if (!more_ok(p)) return;
  if (k[0] != q[0] || v[0] != q[0] || k[3] != q[3] || v[1] != k[1] || v[2] != k[2] || k[1] < 1 || q[1] < 1 ||
      q[1] % k[1] != 0)
    more_refuse(p, "its queries, keys and values do not fit each other");
  if (more_operand(p, 4) != more_operand(p, 5)) more_refuse(p, "operands 4 and 5 come together");
  if (more_operand(p, 4) && (m->in[4].ndim != 4 || m->in[5].ndim != 4))
    more_refuse(p, "operands 4 and 5 have four dimensions");
  if (!more_ok(p)) return;
  i[BATCH] = q[0];
  i[Q_HEADS] = q[1];
  i[KV_HEADS] = k[1];
  i[Q_LEN] = q[2];
  i[KV_LEN] = k[2];
  i[SIZE] = q[3];
  i[V_SIZE] = v[3];
  i[PAST] = more_operand(p, 4) ? m->in[4].shape[2] : 0;
  const int64_t total = i[PAST] + i[KV_LEN];
  if ((double)q[1] * (double)v[3] > 0x1p40 || total > (int64_t)1 << 40) more_refuse(p, "its heads are too large");
  if (!more_ok(p)) return;
  const int64_t past_k[] = {q[0], k[1], i[PAST], q[3]}, past_v[] = {q[0], k[1], i[PAST], v[3]};
  const int64_t now_k[] = {q[0], k[1], total, q[3]}, now_v[] = {q[0], k[1], total, v[3]};
  const int64_t flat[] = {q[0], q[2], q[1] * v[3]}, deep[] = {q[0], q[1], q[2], v[3]},
                scores[] = {q[0], q[1], q[2], total};
  more_shape_is(p, 4, 4, past_k);
  more_shape_is(p, 5, 4, past_v);
  more_shape_is(p, 6, 1, q);
  more_same_type(p, 1, 4);
  more_same_type(p, 2, 5);
  more_whole(p, 6);
  if (more_operand(p, 3) && (m->in[3].ndim < 1 || m->in[3].ndim > 4))
    more_refuse(p, "its mask has %d dimensions", m->in[3].ndim);
  for (int32_t d = 0; more_ok(p) && more_operand(p, 3) && d < m->in[3].ndim; d++) {
    const int64_t have = m->in[3].shape[d], want = scores[4 - m->in[3].ndim + d];
    if (have != want && have != 1 && !(d == m->in[3].ndim - 1 && have < want && have > 0))
      more_refuse(p, "dimension %d of its mask is %lld, and not %lld", d, (long long)have, (long long)want);
  }
  i[CAUSAL] = more_int(p, "is_causal", 0) != 0;
  i[MODE] = more_int(p, "qk_matmul_output_mode", 0);
  i[LEFT] = more_int(p, "left_window_size", -1);
  i[RIGHT] = more_int(p, "right_window_size", -1);
  const int64_t precision = more_int(p, "softmax_precision", 0);
  i[PRECISION] = precision != 0 ? more_type_of_onnx(precision) : 0;
  if (precision != 0 && (!more_type_is_real((int)i[PRECISION]) || i[PRECISION] == REF_TYPE_NONE))
    more_refuse(p, "softmax_precision is not a floating-point type");
  if (i[MODE] < 0 || i[MODE] > 3) more_refuse(p, "qk_matmul_output_mode is %lld", (long long)i[MODE]);
  m->f[SOFTCAP] = more_float(p, "softcap", 0);
  const double scale =
      region_attr_find(p->n->node, "scale") != NULL ? more_float(p, "scale", 1) : 1 / sqrt((double)q[3]);
  m->f[SCALE] = more_round_to(m->in[0].type, sqrt(scale));
  more_result(p, 0, m->in[0].type, i[FLAT] ? 3 : 4, i[FLAT] ? flat : deep);
  more_result(p, 1, m->in[1].type, 4, now_k);
  more_result(p, 2, m->in[2].type, 4, now_v);
  more_result(p, 3, m->in[0].type, 4, scores);
  more_scratch(p, (double)(q[0] * q[1]) * ((double)q[3] + (double)total) * sizeof(double));
  more_work(p, run_attention, q[0] * q[1], (double)(q[0] * q[1] * q[2]) * (double)total * (double)(q[3] + v[3]));
}

/* ---------------------------------------------------------------- RotaryEmbedding */

enum { HEADS, LENGTH, WIDTH, ROTATED, INTERLEAVED, DEEP };

static void run_rotary(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t heads = m->i[HEADS], n = m->i[LENGTH], width = m->i[WIDTH], half = m->i[ROTATED] / 2;
  const more_value *x = &m->in[0];
  const int type = x->type;
  for (int64_t u = first; u < last; u++) { /* a head at a place: [B, heads, n] or [B, n, heads] */
    const int64_t t = m->i[DEEP] ? u % n : u / heads % n, b = u / heads / n;
    int64_t row = b * n + t;
    if (a->in[3] != NULL) row = more_get_int(&m->in[3], a->in[3], row);
    const bool known = row >= 0 && half > 0 && row < m->in[1].count / half;
    for (int64_t e = 0; e < width; e++) {
      const int64_t at = u * width + e;
      double y = more_get(x, a->in[0], at);
      if (e < 2 * half && known) {
        const int64_t pair = m->i[INTERLEAVED] ? e / 2 : e % half;
        const bool second = m->i[INTERLEAVED] ? e % 2 != 0 : e >= half;
        const double c = more_get(&m->in[1], a->in[1], row * half + pair),
                     s = more_get(&m->in[2], a->in[2], row * half + pair);
        const int64_t step = m->i[INTERLEAVED] ? 1 : half;
        const double other = more_get(x, a->in[0], second ? at - step : at + step);
        y = second ? more_round_to(type, s * other) + more_round_to(type, c * y)
                   : more_round_to(type, c * y) - more_round_to(type, s * other);
      }
      more_put(&m->out[0], a->out[0], at, y);
    }
  }
}

void more_setup_rotary(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0];
  const int64_t heads = more_int(p, "num_heads", 0), rotated = more_int(p, "rotary_embedding_dim", 0);
  more_rank(p, 0, 3, 4);
  more_real(p, 0);
  more_same_type(p, 0, 1);
  more_same_type(p, 0, 2);
  m->i[INTERLEAVED] = more_int(p, "interleaved", 0) != 0;
  if (!more_ok(p)) return;
  m->i[DEEP] = x->ndim == 4;
  if (!m->i[DEEP] && (heads < 1 || x->shape[2] % heads != 0))
    more_refuse(p, "operand 0 has not %lld heads", (long long)heads);
  if (!more_ok(p)) return;
  m->i[HEADS] = m->i[DEEP] ? x->shape[1] : heads;
  m->i[LENGTH] = m->i[DEEP] ? x->shape[2] : x->shape[1];
  m->i[WIDTH] = m->i[DEEP] ? x->shape[3] : x->shape[2] / heads;
  m->i[ROTATED] = rotated != 0 ? rotated : m->i[WIDTH];
  if (m->i[ROTATED] < 0 || m->i[ROTATED] > m->i[WIDTH] || m->i[ROTATED] % 2 != 0)
    more_refuse(p, "%lld numbers of a head cannot be rotated", (long long)m->i[ROTATED]);
  if (!more_ok(p)) return;
  const int64_t rows[] = {x->shape[0], m->i[LENGTH], m->i[ROTATED] / 2};
  if (more_operand(p, 3)) {
    more_shape_is(p, 3, 2, rows);
    more_whole(p, 3);
    more_rank(p, 1, 2, 2);
    if (more_ok(p) && m->in[1].shape[1] != rows[2]) more_refuse(p, "its caches are not %lld wide", (long long)rows[2]);
  } else {
    more_shape_is(p, 1, 3, rows);
  }
  more_same_shape(p, 1, 2);
  more_result_like(p, 0, 0);
  more_work(p, run_rotary, m->i[WIDTH] > 0 ? x->count / m->i[WIDTH] : 1, 4 * (double)x->count);
}

/* ---------------------------------------------------------------- LinearAttention */

enum { L_BATCH, L_LENGTH, L_Q, L_KV, L_K_SIZE, L_V_SIZE, L_GATED, L_DELTA, L_DECAY_WIDTH, L_BETA_WIDTH };

static void run_linear(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t n = m->i[L_LENGTH], heads = m->i[L_Q], kv = m->i[L_KV], dk = m->i[L_K_SIZE], dv = m->i[L_V_SIZE];
  double *state = a->scratch, *value = state + dk * dv;
  int64_t work = 0;
  (void)first, (void)last;
  for (int64_t u = 0; u < m->i[L_BATCH] * kv; u++) {
    const int64_t b = u / kv, h = u % kv;
    for (int64_t j = 0; j < dk * dv; j++)
      state[j] = a->in[3] != NULL ? more_get(&m->in[3], a->in[3], u * dk * dv + j) : 0;
    for (int64_t t = 0; t < n; t++) {
      const int64_t row = b * n + t;
      if (more_tick(m, &work, dk * dv * (3 + heads / kv))) return;
      for (int64_t d = 0; d < dk && m->i[L_GATED]; d++) {
        const int64_t w = m->i[L_DECAY_WIDTH], at = w == kv ? row * kv + h : row * w + h * dk + d;
        const double decay = exp(more_get(&m->in[4], a->in[4], at));
        for (int64_t e = 0; e < dv; e++) state[d * dv + e] *= decay;
      }
      for (int64_t e = 0; e < dv; e++) {
        value[e] = more_get(&m->in[2], a->in[2], (row * kv + h) * dv + e);
        if (!m->i[L_DELTA]) continue;
        for (int64_t d = 0; d < dk; d++)
          value[e] -= state[d * dv + e] * more_get(&m->in[1], a->in[1], (row * kv + h) * dk + d);
        value[e] *= more_get(&m->in[5], a->in[5], m->i[L_BETA_WIDTH] == 1 ? row : row * kv + h);
      }
      for (int64_t d = 0; d < dk; d++)
        for (int64_t e = 0; e < dv; e++)
          state[d * dv + e] += more_get(&m->in[1], a->in[1], (row * kv + h) * dk + d) * value[e];
      for (int64_t g = h * (heads / kv); g < (h + 1) * (heads / kv) && a->out[0] != NULL; g++) {
        for (int64_t e = 0; e < dv; e++) {
          double y = 0;
          for (int64_t d = 0; d < dk; d++)
            y += more_get(&m->in[0], a->in[0], (row * heads + g) * dk + d) * state[d * dv + e];
          more_put(&m->out[0], a->out[0], (row * heads + g) * dv + e, m->f[0] * y);
        }
      }
    }
    for (int64_t j = 0; j < dk * dv && a->out[1] != NULL; j++)
      more_put(&m->out[1], a->out[1], u * dk * dv + j, state[j]);
  }
}

void more_setup_linear_attention(more_plan *p) {
  more_op *m = p->m;
  int64_t *i = m->i;
  i[L_Q] = more_int(p, "q_num_heads", 0);
  i[L_KV] = more_int(p, "kv_num_heads", 0);
  more_int(p, "chunk_size", 64); /* says how to be fast */
  const int64_t rule = more_choice(p, "update_rule", "gated_delta", "linear gated delta gated_delta");
  i[L_GATED] = rule == 1 || rule == 3;
  i[L_DELTA] = rule >= 2;
  for (uint32_t k = 0; k < 6; k++) {
    more_real(p, k);
    if (k < 3) more_rank(p, k, 3, 3);
  }
  more_same_type(p, 0, 1);
  more_same_type(p, 0, 2);
  if (i[L_Q] < 1 || i[L_KV] < 1 || i[L_Q] > 1 << 20 || i[L_Q] % i[L_KV] != 0)
    more_refuse(p, "its heads do not fit each other");
  if (more_operand(p, 4) != (i[L_GATED] != 0) || more_operand(p, 5) != (i[L_DELTA] != 0))
    more_refuse(p, "its decay or beta does not fit update_rule");
  if (!more_ok(p)) return;
  const int64_t *q = m->in[0].shape, *k = m->in[1].shape, *v = m->in[2].shape;
  i[L_BATCH] = q[0];
  i[L_LENGTH] = q[1];
  i[L_K_SIZE] = q[2] / i[L_Q];
  i[L_V_SIZE] = v[2] / i[L_KV];
  const int64_t keys[] = {q[0], q[1], i[L_KV] * i[L_K_SIZE]}, state[] = {q[0], i[L_KV], i[L_K_SIZE], i[L_V_SIZE]};
  const int64_t out[] = {q[0], q[1], i[L_Q] * i[L_V_SIZE]};
  (void)k;
  more_shape_is(p, 1, 3, keys);
  if (v[0] != q[0] || v[1] != q[1] || v[2] != i[L_KV] * i[L_V_SIZE] || q[2] != i[L_Q] * i[L_K_SIZE])
    more_refuse(p, "its queries, keys and values do not fit each other");
  more_shape_is(p, 3, 4, state);
  for (uint32_t o = 4; o < 6; o++) {
    if (!more_operand(p, o) || !more_ok(p)) continue;
    const int64_t *x = m->in[o].shape;
    const bool fits =
        m->in[o].ndim == 3 && x[0] == q[0] && x[1] == q[1] && (x[2] == i[L_KV] || x[2] == (o == 4 ? keys[2] : 1));
    if (!fits) more_refuse(p, "operand %u has another shape than its heads", o);
    i[o == 4 ? L_DECAY_WIDTH : L_BETA_WIDTH] = x[2];
  }
  const double scale = more_float(p, "scale", 0);
  m->f[0] = scale != 0 ? scale : 1 / sqrt((double)i[L_K_SIZE]);
  more_result(p, 0, m->in[0].type, 3, out);
  more_result(p, 1, more_operand(p, 3) ? m->in[3].type : m->in[0].type, 4, state);
  more_scratch(p, ((double)i[L_K_SIZE] + 1) * (double)i[L_V_SIZE] * sizeof(double));
  more_work(p, run_linear, 1, 4 * (double)m->in[0].count * (double)i[L_V_SIZE]);
}
