/* GroupQueryAttention of domain "heddle". The table g has what more_setup_gqa (plugins/common/more/gqa.c) leaves. */
#define K_MATH
#include "portable.cl"

#define LENGTH G(1)
#define HEADS G(2)
#define KV_HEADS G(3)
#define SIZE G(5)
#define PAST G(6)
#define ROOM G(7)
#define HALF_OF G(10)
#define PACKED (g[14] != 0)

/* Declares end and past: valid rows of row b's cache after this step, and before it. */
#define REACH(b, ends) \
  IDX end = AT(ends[b]) + 1; \
  end = end < 1 ? 1 : end > ROOM ? ROOM : end; \
  const IDX past = g[8] != 0 || end < LENGTH ? 0 : end - LENGTH;

//! gqa_new: f32; f32
//! gqa_new: f64; f64
//! gqa_new: f16; f16 f32
//! gqa_new: bf16; bf16 f32
#ifdef K_gqa_new
/* An item has an element of the queries of this step (step 0), normalised and rotated, or of the keys (1) or values (2) of a cache
 * that there are now: those of the past, x1, the new ones, and zeros. x0: queries, or all where they are packed, or new keys or
 * values; x2: lengths; x3, x4: cosines and sines; x5: positions, int64 as pairs of words; x6: weights of the norm. */
KERNEL_8_1(gqa_new, k_general, T0, x0, T0, x1, i32, x2, T0, x3, T0, x4, i32, x5, T0, x6, i32, g, T1, y) {
  K_EACH(u, p.count);
  const IDX kind = AT(p.step), size = SIZE, e = u % size, heads = kind == 0 ? HEADS : KV_HEADS;
  const IDX row = u / size, h = kind == 0 ? row % heads : row / ROOM % heads, b = row / heads / (kind == 0 ? LENGTH : ROOM);
  REACH(b, x2)
  const IDX j = row % ROOM, s = kind == 0 ? row / heads % LENGTH : j - past;
  const IDX half_of = HALF_OF, token = b * LENGTH + s;
  K_C(T0) v = NUM(0);
  if (s < 0) {
    if (HAS(3) && j < PAST) v = GET(T0, x1[((b * heads + h) * PAST + j) * size + e]);
  } else if (s < LENGTH) {
    const IDX before = kind == 0 ? 0 : kind == 1 ? HEADS : HEADS + KV_HEADS;
    const IDX at = (PACKED ? token * (HEADS + 2 * KV_HEADS) + before + h : token * heads + h) * size;
    const bool norms = kind == 0 ? HAS(14) : kind == 1 && HAS(15);
    K_C(T0) factor = NUM(1);
    v = GET(T0, x0[at + e]);
    if (norms) {
      K_SUM(T0, square);
      for (IDX k = 0; k < size; k++) K_SUM_ADD(T0, square, GET(T0, x0[at + k]) * GET(T0, x0[at + k]));
      factor = NUM(1) / sqrt((square - square_rest) / NUM(size) + G_NUMBER(T0, 2));
      v = v * factor * GET(T0, x6[e]);
    }
    IDX place = past + s;
    bool known = kind < 2 && e < 2 * half_of;
    if (known && HAS(9)) {
      known = x5[2 * token + 1] == 0 && x5[2 * token] >= 0;
      place = AT(x5[2 * token]);
    }
    if (known && place < G_IN(7, 0)) {
      const bool pairs = g[11] != 0, second = pairs ? e % 2 != 0 : e >= half_of;
      const IDX pair = pairs ? e / 2 : e % half_of, step = pairs ? 1 : half_of, near = second ? e - step : e + step;
      const K_C(T0) c = GET(T0, x3[place * half_of + pair]), n = GET(T0, x4[place * half_of + pair]);
      K_C(T0) other = GET(T0, x0[at + near]);
      if (norms) other = other * factor * GET(T0, x6[near]);
      v = second ? v * c + other * n : v * c - other * n;
    }
  }
  y[u] = PUT(T1, v);
}
#endif

//! gqa: f32; f32
//! gqa: f64; f64
//! gqa: f16; f32
//! gqa: bf16; f32
#ifdef K_gqa
/* Declares score, of query t at x0[query] and key j. */
#define SCORE(j) \
  K_SUM(T1, dot); \
  for (IDX e = 0; e < size; e++) K_SUM_ADD(T1, dot, x0[query + e] * GET(T0, x1[(cache + (j)) * size + e])); \
  K_C(T1) score = (dot - dot_rest) * G_NUMBER(T1, 0); \
  if (softcap > NUM(0)) score = softcap * TANH(score / softcap); \
  if (HAS(10) && (j) < G(21)) score += GET(T0, x3[bias + (j)]);

/* An item has up to 4 elements of a row of the result. x0: queries; x1, x2: caches; x3: bias; x4: sinks; x5: lengths. */
KERNEL_7_1(gqa, k_general, T1, x0, T0, x1, T0, x2, T0, x3, T0, x4, i32, x5, i32, g, T0, y) {
  K_EACH(u, p.count);
  const IDX pieces = AT(p.step), from = u % pieces * 4, row = u / pieces, size = SIZE;
  const IDX h = row % HEADS, s = row / HEADS % LENGTH, b = row / HEADS / LENGTH;
  REACH(b, x5)
  const IDX last = g[12] == 0 || past + s + 1 > end ? end : past + s + 1, window = G(9);
  const IDX first = window > 0 && last > window ? last - window : 0;
  const IDX query = row * size, cache = (b * KV_HEADS + h / G(4)) * ROOM;
  const IDX bias = HAS(10) ? (((G(19) > 1 ? b : 0) * G(20) + (G(20) > 1 ? h : 0)) * LENGTH + s) * G(21) : 0;
  const K_C(T1) softcap = G_NUMBER(T1, 1);
  K_C(T1) most = NUM(-K_INFINITY), sum = NUM(0);
  if (HAS(11) || g[13] != 0) {
    most = HAS(11) ? GET(T0, x4[h]) : NUM(0);
    sum = NUM(1);
  }
  for (IDX j = first; j < last; j++) {
    SCORE(j)
    if (score > most) {
      sum = sum * EXP(most - score) + NUM(1);
      most = score;
    } else if (score == score) {
      sum += score == most ? NUM(most == NUM(-K_INFINITY) ? 0 : 1) : EXP(score - most);
    } else {
      sum = score;
    }
  }
  K_SUM(T1, all0);
  K_SUM(T1, all1);
  K_SUM(T1, all2);
  K_SUM(T1, all3);
  for (IDX j = first; sum != NUM(0) && j < last; j++) {
    SCORE(j)
    const K_C(T1) part = EXP(score - most) / sum;
    const IDX at = (cache + j) * size + from;
    K_SUM_ADD(T1, all0, part * GET(T0, x2[at]));
    if (from + 1 < size) K_SUM_ADD(T1, all1, part * GET(T0, x2[at + 1]));
    if (from + 2 < size) K_SUM_ADD(T1, all2, part * GET(T0, x2[at + 2]));
    if (from + 3 < size) K_SUM_ADD(T1, all3, part * GET(T0, x2[at + 3]));
  }
  const IDX to = row * size + from;
  y[to] = PUT(T0, all0 - all0_rest);
  if (from + 1 < size) y[to + 1] = PUT(T0, all1 - all1_rest);
  if (from + 2 < size) y[to + 2] = PUT(T0, all2 - all2_rest);
  if (from + 3 < size) y[to + 3] = PUT(T0, all3 - all3_rest);
}
#endif
