/* Attention, RotaryEmbedding and Rotary. The table g has what more_setup_attention and more_setup_rotary
 * (plugins/common/more/attention.c), and more_setup_rotate (rotary.c), leave. Steps round as the operands' type does. */
#define K_MATH
#include "portable.cl"

#define Q_HEADS G(1)
#define KV_HEADS G(2)
#define Q_LEN G(3)
#define KV_LEN G(4)
#define PAST G(5)
#define SIZE G(6)
#define V_SIZE G(7)
#define FLAT (g[8] != 0)

/* Where element e of head h at place t of an operand lies, of heads heads, n long, size wide. */
#define OF_HEAD(b, h, t, e, heads, n, size) \
  (FLAT ? (((b) * (n) + (t)) * (heads) + (h)) * (size) + (e) : (((b) * (heads) + (h)) * (n) + (t)) * (size) + (e))

/* Key or value j: of the past, else of now. */
#define CACHED(now, past, b, h, j, e, size) \
  ((j) < PAST ? GET(T0, past[(((b) * KV_HEADS + (h)) * PAST + (j)) * (size) + (e)]) \
              : GET(T0, now[OF_HEAD(b, h, (j) - PAST, e, KV_HEADS, KV_LEN, size)]))

/* A part of the softmax as softmax_precision has it, of whose type g[13] is the number in more/number.h. */
#define INNER(x) \
  (g[13] == 0    ? ROUND(T0, x) \
   : g[13] == 32 ? NUM(ROUND(f16, CAST(float, x))) \
   : g[13] == 33 ? NUM(ROUND(bf16, CAST(float, x))) \
                 : (x))

#if defined(K_attention) || defined(K_attention_scores)
/* Declares valid, how many keys there are, and at, the place of query t among them. lengths: int64 as pairs of words. */
#define REACH(b, t) \
  IDX valid = total, at = (t) + PAST; \
  if (HAS(6)) { \
    const int high = x6[2 * (b) + 1]; \
    const uint low = CAST(uint, x6[2 * (b)]); \
    valid = high < 0 ? 0 : high > 0 || low > CAST(uint, total) ? total : AT(low); \
    at = (t) + valid - Q_LEN; \
  }

#define MASKED(j) \
  ((j) >= valid || (g[9] != 0 && (j) > at) || (g[11] >= 0 && at - (j) > G(11)) || (g[12] >= 0 && (j) - at > G(12)))

/* Declares add, the mask at key j and what reaches no key. */
#define BIAS(b, h, t, j) \
  K_C(T0) add = NUM(MASKED(j) ? -K_INFINITY : 0.0f); \
  if (HAS(3)) { \
    const int dims = CAST(int, G_IN(3, -1)); \
    const IDX last = G_IN(3, dims - 1); \
    if ((j) >= last && last != 1) { \
      add = NUM(-K_INFINITY); \
    } else { \
      IDX where = 0; \
      for (int d = 0; d < dims; d++) { \
        const int k = 4 - dims + d; \
        const IDX n = G_IN(3, d), place = k == 0 ? (b) : k == 1 ? (h) : k == 2 ? (t) : (j); \
        where = where * n + (n == 1 ? 0 : place); \
      } \
      MASK_AT(where) \
    } \
  }
#ifdef T1_REAL
#define MASK_AT(where) add += GET(T1, x3[where]);
#else
#define MASK_AT(where) if (GET(T1, x3[where]) == 0u) add = NUM(-K_INFINITY);
#endif

/* Declares product, of query t and key j, and score, what the softmax takes of it, before the bias. */
#define SCORE(b, h, kv, t, j) \
  K_SUM(T0, dot); \
  for (IDX e = 0; e < SIZE; e++) { \
    const K_C(T0) q = ROUND(T0, GET(T0, x0[OF_HEAD(b, h, t, e, Q_HEADS, Q_LEN, SIZE)]) * scale); \
    K_SUM_ADD(T0, dot, q * ROUND(T0, CACHED(x1, x4, b, kv, j, e, SIZE) * scale)); \
  } \
  const K_C(T0) product = ROUND(T0, dot - dot_rest); \
  const K_C(T0) score = softcap > NUM(0) ? softcap * TANH(product / softcap) : product;

/* Declares most, the greatest score, sum, of the exponentials, and bound, the greatest bias, of query t. */
#define SOFTMAX(b, h, kv, t) \
  K_C(T0) most = NUM(-K_INFINITY), bound = NUM(-K_INFINITY), sum = NUM(0); \
  for (IDX j = 0; j < total; j++) { \
    BIAS(b, h, t, j) \
    SCORE(b, h, kv, t, j) \
    const K_C(T0) v = ROUND(T0, score + add); \
    bound = add > bound ? add : bound; \
    if (v > most) { \
      sum = sum * EXP(most - v) + NUM(1); \
      most = v; \
    } else { \
      sum += v == most ? NUM(v - v == NUM(0) ? 1 : 0) : EXP(v - most); \
    } \
  }
#endif

//! attention: f32; b8 f32
//! attention: f64; b8 f64
//! attention: f16; b8 f16
//! attention: bf16; b8 bf16
#ifdef K_attention
/* An item has up to mode elements of a row of the result. */
KERNEL_8_1(attention, k_general, T0, x0, T0, x1, T0, x2, T1, x3, T0, x4, T0, x5, i32, x6, i32, g, T0, y) {
  K_EACH(u, p.count);
  const IDX pieces = AT(p.step), piece = u % pieces, row = u / pieces;
  const IDX total = PAST + KV_LEN, t = row % Q_LEN, h = row / Q_LEN % Q_HEADS, b = row / Q_LEN / Q_HEADS;
  const IDX kv = h / (Q_HEADS / KV_HEADS), from = piece * 4;
  const K_C(T0) scale = G_NUMBER(T0, 0), softcap = G_NUMBER(T0, 1);
  K_SUM(T0, all0);
  K_SUM(T0, all1);
  K_SUM(T0, all2);
  K_SUM(T0, all3);
  REACH(b, t)
  SOFTMAX(b, h, kv, t)
  for (IDX j = 0; bound != NUM(-K_INFINITY) && j < total; j++) {
    BIAS(b, h, t, j)
    SCORE(b, h, kv, t, j)
    const K_C(T0) part = ROUND(T0, INNER(EXP(ROUND(T0, score + add) - most)) / sum);
    if (part != NUM(0)) {
      K_SUM_ADD(T0, all0, part * CACHED(x2, x5, b, kv, j, from, V_SIZE));
      if (from + 1 < V_SIZE) K_SUM_ADD(T0, all1, part * CACHED(x2, x5, b, kv, j, from + 1, V_SIZE));
      if (from + 2 < V_SIZE) K_SUM_ADD(T0, all2, part * CACHED(x2, x5, b, kv, j, from + 2, V_SIZE));
      if (from + 3 < V_SIZE) K_SUM_ADD(T0, all3, part * CACHED(x2, x5, b, kv, j, from + 3, V_SIZE));
    }
  }
  const IDX to = OF_HEAD(b, h, t, from, Q_HEADS, Q_LEN, V_SIZE);
  y[to] = PUT(T0, all0 - all0_rest);
  if (from + 1 < V_SIZE) y[to + 1] = PUT(T0, all1 - all1_rest);
  if (from + 2 < V_SIZE) y[to + 2] = PUT(T0, all2 - all2_rest);
  if (from + 3 < V_SIZE) y[to + 3] = PUT(T0, all3 - all3_rest);
}
#endif

#ifdef K_attention_flash
/* The same in one pass; between operands and result nothing is rounded. */
#define OF_SHARE(r) (share == 1 ? kv : kv * share + (r) % share)
#define PLACE(r) (share == 1 ? (r) : (r) / share)
#ifdef T1_REAL
#define MASK_OF(x) GET(T1, x)
#else
#define MASK_OF(x) NUM(GET(T1, x) == 0u ? -K_INFINITY : 0.0f)
#endif

#define FLASH_KERNEL \
  KERNEL_8_1(attention_flash, k_general, T0, x0, T0, x1, T0, x2, T1, x3, T0, x4, T0, x5, i32, x6, i32, g, T0, y)
#define FLASH_SETUP \
  const IDX share = Q_HEADS / KV_HEADS, queries = share * Q_LEN, keys = PAST + KV_LEN, size = SIZE, wide = V_SIZE; \
  const K_C(T0) factor = G_NUMBER(T0, 0), softcap = G_NUMBER(T0, 1);
/* mask_b to mask_j: how far apart the mask's numbers for neighbours are; lengths: int64 as pairs of words. */
#define FLASH_HEAD(unit) \
  const IDX b = (unit) / KV_HEADS, kv = (unit) % KV_HEADS; \
  IDX valid = keys, before = PAST, masked = keys, mask_b = 0, mask_h = 0, mask_t = 0, mask_j = 0; \
  if (HAS(6)) { \
    const int high = x6[2 * b + 1]; \
    const uint low = CAST(uint, x6[2 * b]); \
    valid = high < 0 ? 0 : high > 0 || low > CAST(uint, keys) ? keys : AT(low); \
    before = valid - Q_LEN; \
  } \
  if (HAS(3)) { \
    const int dims = CAST(int, G_IN(3, -1)); \
    IDX step = 1; \
    for (int d = dims - 1; d >= 0; d--) { \
      const int k = 4 - dims + d; \
      const IDX n = G_IN(3, d), apart = n == 1 ? 0 : step; \
      if (k == 0) mask_b = apart; \
      if (k == 1) mask_h = apart; \
      if (k == 2) mask_t = apart; \
      if (k == 3) mask_j = apart; \
      if (k == 3 && n != 1) masked = n; \
      step *= n; \
    } \
  }
#define FLASH_REACH(r) \
  const IDX at = PLACE(r) + before; \
  IDX first = 0, end = valid < masked ? valid : masked; \
  if (g[9] != 0 && at < end) end = at + 1; \
  if (g[12] >= 0 && G(12) < end - at) end = at + G(12) + 1; \
  if (g[11] >= 0 && G(11) < at) first = at - G(11);
#define FLASH_BIAS_AT(r) (b * mask_b + OF_SHARE(r) * mask_h + PLACE(r) * mask_t)
#define FLASH_BIAS(at, j) (HAS(3) ? MASK_OF(x3[(at) + (j) * mask_j]) : NUM(0))
#define FLASH_QUERY(r, e) (GET(T0, x0[OF_HEAD(b, OF_SHARE(r), PLACE(r), e, Q_HEADS, Q_LEN, size)]) * factor)
#define FLASH_KEY(j, e) (CACHED(x1, x4, b, kv, j, e, size) * factor)
#define FLASH_VALUE(j, e) CACHED(x2, x5, b, kv, j, e, wide)
#define FLASH_SCORE(x) (softcap > NUM(0) ? softcap * TANH((x) / softcap) : (x))
#define FLASH_SINK_IS false
#define FLASH_SINK(r) NUM(0)
#define FLASH_NONE NUM(K_NAN)
#define FLASH_PUT(r, e, v) y[OF_HEAD(b, OF_SHARE(r), PLACE(r), e, Q_HEADS, Q_LEN, wide)] = PUT(T0, v)
#include "portable_flash.cl"
#endif

//! attention_scores: f32; b8 f32
//! attention_scores: f64; b8 f64
//! attention_scores: f16; b8 f16
//! attention_scores: bf16; b8 bf16
#ifdef K_attention_scores
/* mode: 0 the product, 1 behind softcap, 2 with the mask, 3 the softmax. An item has a row of them for 3, else one. */
KERNEL_8_1(attention_scores, k_general, T0, x0, T0, x1, T0, x2, T1, x3, T0, x4, T0, x5, i32, x6, i32, g, T0, y) {
  K_EACH(u, p.count);
  const IDX total = PAST + KV_LEN, row = p.mode == 3 ? u : u / total;
  const IDX t = row % Q_LEN, h = row / Q_LEN % Q_HEADS, b = row / Q_LEN / Q_HEADS, kv = h / (Q_HEADS / KV_HEADS);
  const K_C(T0) scale = G_NUMBER(T0, 0), softcap = G_NUMBER(T0, 1);
  REACH(b, t)
  if (p.mode != 3) {
    const IDX j = u % total;
    BIAS(b, h, t, j)
    SCORE(b, h, kv, t, j)
    y[u] = PUT(T0, p.mode == 0 ? product : p.mode == 1 ? score : score + add);
  } else {
    SOFTMAX(b, h, kv, t)
    for (IDX j = 0; j < total; j++) {
      BIAS(b, h, t, j)
      SCORE(b, h, kv, t, j)
      y[row * total + j] = PUT(T0, bound == NUM(-K_INFINITY) ? NUM(0) : INNER(EXP(ROUND(T0, score + add) - most)) / sum);
    }
  }
}
#endif

//! attention_cache: w1 w2 w4 w8
#ifdef K_attention_cache
/* The keys (mode 6) or values (7) that there are now: x0 behind those of the past, x1. */
KERNEL_3_1(attention_cache, k_general, T0, x0, T0, x1, i32, g, T0, y) {
  K_EACH(u, p.count);
  const IDX size = G(p.mode), total = PAST + KV_LEN, e = u % size, j = u / size % total;
  const IDX h = u / size / total % KV_HEADS, b = u / size / total / KV_HEADS;
  if (j < PAST) y[u] = x1[((b * KV_HEADS + h) * PAST + j) * size + e];
  else y[u] = x0[OF_HEAD(b, h, j - PAST, e, KV_HEADS, KV_LEN, size)];
}
#endif

//! rotary: f32 f64 f16 bf16
#ifdef K_rotary
/* Operand 3 has rows of the caches, int64 as pairs of words, or int32 where mode is 0. */
KERNEL_5_1(rotary, k_general, T0, x0, T0, x1, T0, x2, i32, x3, i32, g, T0, y) {
  K_EACH(at, p.count);
  const IDX heads = G(0), n = G(1), width = G(2), half_of = G(3) / 2, u = at / width, e = at % width;
  const IDX t = g[5] != 0 ? u % n : u / heads % n, b = u / heads / n;
  IDX row = b * n + t;
  bool known = half_of > 0;
  if (HAS(3)) {
    const int low = x3[p.mode != 0 ? 2 * row : row], high = p.mode != 0 ? x3[2 * row + 1] : low >> 31;
    known = known && high == 0 && low >= 0;
    row = AT(low);
  }
  known = known && row < G_IN(1, -2) / (half_of > 0 ? half_of : 1);
  K_C(T0) v = GET(T0, x0[at]);
  if (known && e < 2 * half_of) {
    const bool pairs = g[4] != 0, second = pairs ? e % 2 != 0 : e >= half_of;
    const IDX pair = pairs ? e / 2 : e % half_of, step = pairs ? 1 : half_of;
    const K_C(T0) c = GET(T0, x1[row * half_of + pair]), s = GET(T0, x2[row * half_of + pair]);
    const K_C(T0) other = GET(T0, x0[second ? at - step : at + step]);
    K_PRECISE K_C(T0) own = c * v;
    K_PRECISE K_C(T0) cross = s * other;
    v = second ? ROUND(T0, cross) + ROUND(T0, own) : ROUND(T0, own) - ROUND(T0, cross);
  }
  y[at] = PUT(T0, v);
}
#endif

//! rotary_of: f32 f64 f16 bf16
#ifdef K_rotary_of
/* Rotary: x1 and x2 broadcast to x0, or have one number for each two of a row. */
KERNEL_4_1(rotary_of, k_general, T0, x0, T0, x1, T0, x2, i32, g, T0, y) {
  K_EACH(at, p.count);
  const IDX half_of = G(1), e = at % G(0);
  const int dims = CAST(int, G_IN(0, -1)), of_c = dims - CAST(int, G_IN(1, -1)), of_s = dims - CAST(int, G_IN(2, -1));
  const bool pairs = g[2] != 0, second = pairs ? e % 2 != 0 : e >= half_of;
  const IDX pair = pairs ? e / 2 : e % half_of, step = pairs ? 1 : half_of;
  IDX left = at, c_at = 0, s_at = 0, c_step = 1, s_step = 1;
  for (int d = dims - 1; d >= 0; d--) {
    const IDX n = G_IN(0, d), full = left % n;
    const bool last = d == dims - 1;
    left /= n;
    if (d >= of_c) {
      const IDX size = G_IN(1, d - of_c);
      if (size != 1) c_at += (last && size != n ? pair : full) * c_step;
      c_step *= size;
    }
    if (d >= of_s) {
      const IDX size = G_IN(2, d - of_s);
      if (size != 1) s_at += (last && size != n ? pair : full) * s_step;
      s_step *= size;
    }
  }
  K_PRECISE K_C(T0) own = GET(T0, x0[at]) * GET(T0, x1[c_at]);
  K_PRECISE K_C(T0) cross = GET(T0, x0[second ? at - step : at + step]) * GET(T0, x2[s_at]);
  y[at] = PUT(T0, second ? own + cross : own - cross);
}
#endif
