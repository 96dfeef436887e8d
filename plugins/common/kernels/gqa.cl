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
#define BITS G(15)

/* Declares end and past: valid rows of row b's cache after this step, and before it. */
#define REACH(b, ends) \
  IDX end = AT(ends[b]) + 1; \
  end = end < 1 ? 1 : end > ROOM ? ROOM : end; \
  const IDX past = g[8] != 0 || end < LENGTH ? 0 : end - LENGTH;

//! gqa_new: f32; f32 i8 u8
//! gqa_new: f64; f64 i8 u8
//! gqa_new: f16; f16 f32 i8 u8
//! gqa_new: bf16; bf16 f32 i8 u8
#ifdef K_gqa_new
/* An item has an element of the queries of this step (step 0), normalised and rotated, or of the keys (1) or values (2) of a cache
 * that there are now: those of the past, x1, the new ones, and zeros. Of a quantised cache it has a byte: a number of 8 bits or two
 * of 4. x0: queries, or all where they are packed, or new keys or values; x2: lengths; x3, x4: cosines and sines; x5: positions,
 * int64 as pairs of words; x6: weights of the norm; x7: scales of the cache. */
KERNEL_9_1(gqa_new, k_general, T0, x0, T1, x1, i32, x2, T0, x3, T0, x4, i32, x5, T0, x6, f32, x7, i32, g, T1, y) {
  K_EACH(u, p.count);
  const IDX kind = AT(p.step), size = SIZE, heads = kind == 0 ? HEADS : KV_HEADS;
  const IDX each = kind != 0 && BITS == 4 ? 2 : 1, width = (size + each - 1) / each;
  const IDX row = u / width, h = kind == 0 ? row % heads : row / ROOM % heads, b = row / heads / (kind == 0 ? LENGTH : ROOM);
  REACH(b, x2)
  const IDX j = row % ROOM, s = kind == 0 ? row / heads % LENGTH : j - past;
  const IDX half_of = HALF_OF, token = b * LENGTH + s;
  if (s < 0 || s >= LENGTH) {
    if (s < 0 && HAS(3) && j < PAST) y[u] = x1[((b * heads + h) * PAST + j) * width + u % width];
    else y[u] = PUT(T1, CAST(K_C(T1), 0));
    return;
  }
  const IDX before = kind == 0 ? 0 : kind == 1 ? HEADS : HEADS + KV_HEADS;
  const IDX at = (PACKED ? token * (HEADS + 2 * KV_HEADS) + before + h : token * heads + h) * size;
  const bool norms = kind == 0 ? HAS(14) : kind == 1 && HAS(15);
  K_C(T0) factor = NUM(1);
  if (norms) {
    K_SUM(T0, square);
    for (IDX k = 0; k < size; k++) K_SUM_ADD(T0, square, GET(T0, x0[at + k]) * GET(T0, x0[at + k]));
    factor = NUM(1) / sqrt((square - square_rest) / NUM(size) + G_NUMBER(T0, 2));
  }
  IDX place = past + s;
  bool known = kind < 2 && half_of > 0;
  if (known && HAS(9)) {
    known = x5[2 * token + 1] == 0 && x5[2 * token] >= 0;
    place = AT(x5[2 * token]);
  }
  known = known && place < G_IN(7, 0);
#ifndef T1_REAL
  int whole = 0;
#endif
  for (IDX e = u % width * each; e < u % width * each + each && e < size; e++) {
    K_C(T0) v = GET(T0, x0[at + e]);
    if (norms) v = v * factor * GET(T0, x6[e]);
    if (known && e < 2 * half_of) {
      const bool pairs = g[11] != 0, second = pairs ? e % 2 != 0 : e >= half_of;
      const IDX pair = pairs ? e / 2 : e % half_of, step = pairs ? 1 : half_of, near = second ? e - step : e + step;
      const K_C(T0) c = GET(T0, x3[place * half_of + pair]), n = GET(T0, x4[place * half_of + pair]);
      K_C(T0) other = GET(T0, x0[at + near]);
      if (norms) other = other * factor * GET(T0, x6[near]);
      v = second ? v * c + other * n : v * c - other * n;
    }
#ifdef T1_REAL
    y[u] = PUT(T1, v);
#else
    const int most = BITS == 4 ? 7 : 127, least = -most - 1;
    const K_C(T0) q = RINT(v / NUM(x7[G(15 + kind) == 1 ? 0 : h * size + e]));
    const int one = IS_NAN(T0, q) ? 0 : q < NUM(least) ? least : q > NUM(most) ? most : CAST(int, q);
    whole |= BITS == 4 ? (one + 8) << (e % 2 != 0 ? 4 : 0) : one;
#endif
  }
#ifndef T1_REAL
  y[u] = PUT(T1, whole);
#endif
}
#endif

#if defined(K_gqa) || defined(K_gqa_flash)
/* Element e of a row of a cache, whose channels have their scales from scales[channel] on, or one for all where per is 1. */
#ifdef T1_REAL
#define CACHED(x, row, e, scales, per) GET(T1, x[(row) * size + (e)])
#else
#define WHOLE(x, row, e) \
  (BITS == 8 ? CAST(int, x[(row) * size + (e)]) \
             : (CAST(int, x[(row) * ((size + 1) / 2) + (e) / 2]) >> ((e) % 2 != 0 ? 4 : 0) & 15) - 8)
#define CACHED(x, row, e, scales, per) NUM(WHOLE(x, row, e)) * NUM(scales[(per) == 1 ? 0 : channel + (e)])
#endif
#endif

//! gqa: f32; f32 i8 u8
//! gqa: f64; f64 i8 u8
//! gqa: f16; f16 i8 u8
//! gqa: bf16; bf16 i8 u8
#ifdef K_gqa
/* Declares score, of query t at x0[query] and key j. */
#define SCORE(j) \
  K_SUM(T0, dot); \
  for (IDX e = 0; e < size; e++) K_SUM_ADD(T0, dot, x0[query + e] * (CACHED(x1, cache + (j), e, x6, G(16)))); \
  K_C(T0) score = (dot - dot_rest) * G_NUMBER(T0, 0); \
  if (softcap > NUM(0)) score = softcap * TANH(score / softcap); \
  if (HAS(10) && (j) < G(21)) score += GET(T0, x3[bias + (j)]);
#define WEIGH(k) K_SUM_ADD(T0, all##k, part * (CACHED(x2, cache + j, from + k, x7, G(17))))

/* An item has up to 4 elements of a row of the result. x0: queries, of K_W(T0); x1, x2: caches; x3: bias; x4: sinks; x5: lengths;
 * x6, x7: scales of the caches. */
KERNEL_9_1(gqa, k_general, K_W(T0), x0, T1, x1, T1, x2, T0, x3, T0, x4, i32, x5, f32, x6, f32, x7, i32, g, T0, y) {
  K_EACH(u, p.count);
  const IDX pieces = AT(p.step), from = u % pieces * 4, row = u / pieces, size = SIZE;
  const IDX h = row % HEADS, s = row / HEADS % LENGTH, b = row / HEADS / LENGTH;
  REACH(b, x5)
  const IDX last = g[12] == 0 || past + s + 1 > end ? end : past + s + 1, window = G(9);
  const IDX first = window > 0 && last > window ? last - window : 0;
  const IDX kv = h / G(4), query = row * size, cache = (b * KV_HEADS + kv) * ROOM;
  const IDX bias = HAS(10) ? (((G(19) > 1 ? b : 0) * G(20) + (G(20) > 1 ? h : 0)) * LENGTH + s) * G(21) : 0;
  const K_C(T0) softcap = G_NUMBER(T0, 1);
#ifndef T1_REAL
  const IDX channel = kv * size;
#endif
  K_C(T0) most = NUM(-K_INFINITY), sum = NUM(0);
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
  K_SUM(T0, all0);
  K_SUM(T0, all1);
  K_SUM(T0, all2);
  K_SUM(T0, all3);
  for (IDX j = first; sum != NUM(0) && j < last; j++) {
    SCORE(j)
    const K_C(T0) part = EXP(score - most) / sum;
    WEIGH(0);
    if (from + 1 < size) WEIGH(1);
    if (from + 2 < size) WEIGH(2);
    if (from + 3 < size) WEIGH(3);
  }
  const IDX to = row * size + from;
  y[to] = PUT(T0, all0 - all0_rest);
  if (from + 1 < size) y[to + 1] = PUT(T0, all1 - all1_rest);
  if (from + 2 < size) y[to + 2] = PUT(T0, all2 - all2_rest);
  if (from + 3 < size) y[to + 3] = PUT(T0, all3 - all3_rest);
}
#endif

#ifdef K_gqa_flash
/* x0: queries, of K_W(T0); x1, x2: caches; x3: bias; x4: sinks; x5: lengths; x6, x7: scales of the caches. */
#define OF_SHARE(r) (share == 1 ? kv : kv * share + (r) % share)
#define PLACE(r) (share == 1 ? (r) : (r) / share)
#define AT_ROW(r) (((b * LENGTH + PLACE(r)) * HEADS + OF_SHARE(r)) * size)
#define CAPPED(x) (softcap > NUM(0) ? softcap * TANH((x) / softcap) : (x))
#define FLASH_KERNEL \
  KERNEL_9_1(gqa_flash, k_general, K_W(T0), x0, T1, x1, T1, x2, T0, x3, T0, x4, i32, x5, f32, x6, f32, x7, i32, g, T0, y)
#define FLASH_SETUP \
  const IDX share = G(4), queries = share * LENGTH, keys = ROOM, size = SIZE, wide = SIZE; \
  const K_C(T0) factor = G_NUMBER(T0, 0), softcap = G_NUMBER(T0, 1);
#ifdef T1_REAL
#define OF_CHANNEL
#else
#define OF_CHANNEL const IDX channel = kv * size;
#endif
#define FLASH_HEAD(unit) \
  const IDX b = (unit) / KV_HEADS, kv = (unit) % KV_HEADS, cache = (unit) * ROOM; \
  OF_CHANNEL \
  REACH(b, x5) \
  const IDX valid = end, window = G(9);
#define FLASH_REACH(r) \
  const IDX next = past + PLACE(r) + 1, end = g[12] == 0 || next > valid ? valid : next; \
  const IDX first = window > 0 && end > window ? end - window : 0;
#define FLASH_BIAS_AT(r) \
  (HAS(10) ? (((G(19) > 1 ? b : 0) * G(20) + (G(20) > 1 ? OF_SHARE(r) : 0)) * LENGTH + PLACE(r)) * G(21) : 0)
#define FLASH_BIAS(at, j) (HAS(10) && (j) < G(21) ? GET(T0, x3[(at) + (j)]) : NUM(0))
#define FLASH_QUERY(r, e) x0[AT_ROW(r) + (e)]
#define FLASH_KEY(j, e) (CACHED(x1, cache + (j), e, x6, G(16)))
#define FLASH_VALUE(j, e) (CACHED(x2, cache + (j), e, x7, G(17)))
#define FLASH_SCORE(x) CAPPED((x) * factor)
#define FLASH_SINK_IS (HAS(11) || g[13] != 0)
#define FLASH_SINK(r) (HAS(11) ? GET(T0, x4[OF_SHARE(r)]) : NUM(0))
#define FLASH_NONE NUM(0)
#define FLASH_PUT(r, e, v) y[AT_ROW(r) + (e)] = PUT(T0, v)
#include "portable_flash.cl"
#endif
