/* What slides a window over up to three spatial dimensions, in any type: LpPool, convolutions of float64, halves and integers,
 * DeformConv, Col2Im; and their kin. The table g has what more_window (plugins/common/more/window.h) leaves. */
#define K_MATH
#include "portable.cl"

#define SPATIAL g[0]
#define IN(d) G(1 + (d))
#define OUT(d) G(4 + (d))
#define KERNEL_OF(d) G(7 + (d))
#define STRIDE(d) G(10 + (d))
#define DILATION(d) G(13 + (d))
#define PAD(d) G(16 + (d))
#define OWN(k) G(22 + (k))

/* Declares the products of sizes of the input, the result and the window. */
#define WINDOW \
  IDX plane = 1, places = 1, taps = 1; \
  for (int d = 0; d < SPATIAL; d++) { \
    plane *= IN(d); \
    places *= OUT(d); \
    taps *= KERNEL_OF(d); \
  }

/* Declares at, the element of the input at tap of place, and inside, whether there is one. */
#define TAP(place, tap) \
  IDX at = 0, size = 1, k_place = place, k_tap = tap; \
  bool inside = true; \
  for (int d = SPATIAL - 1; d >= 0; d--) { \
    const IDX v = k_place % OUT(d) * STRIDE(d) + k_tap % KERNEL_OF(d) * DILATION(d) - PAD(d); \
    inside = inside && v >= 0 && v < IN(d); \
    at += v * size; \
    size *= IN(d); \
    k_place /= OUT(d); \
    k_tap /= KERNEL_OF(d); \
  }

//! lp_pool: f32 f64 f16 bf16
#ifdef K_lp_pool
/* OWN(1): the power. */
KERNEL_2_1(lp_pool, k_general, T0, x0, i32, g, T0, y) {
  K_EACH(u, p.count);
  WINDOW
  const K_C(T0) power = NUM(OWN(1));
  K_SUM(T0, sum);
  for (IDX t = 0; t < taps; t++) {
    TAP(u % places, t)
    if (inside) {
      const K_C(T0) v = ABS(GET(T0, x0[u / places * plane + at]));
      K_SUM_ADD(T0, sum, OWN(1) == 1 ? v : OWN(1) == 2 ? v * v : POWER(v, power));
    }
  }
  const K_C(T0) all = sum - sum_rest;
  y[u] = PUT(T0, OWN(1) == 1 ? all : OWN(1) == 2 ? sqrt(all) : POWER(all, NUM(1) / power));
}
#endif

//! global_lp_pool: f32 f64 f16 bf16
#ifdef K_global_lp_pool
/* g: the power, and elements of a plane. */
KERNEL_2_1(global_lp_pool, k_general, T0, x0, i32, g, T0, y) {
  K_EACH(u, p.count);
  const K_C(T0) power = NUM(g[0]);
  const IDX n = G(1);
  K_SUM(T0, sum);
  for (IDX j = 0; j < n; j++) {
    const K_C(T0) v = ABS(GET(T0, x0[u * n + j]));
    K_SUM_ADD(T0, sum, g[0] == 1 ? v : g[0] == 2 ? v * v : POWER(v, power));
  }
  const K_C(T0) all = sum - sum_rest;
  y[u] = PUT(T0, g[0] == 1 ? all : g[0] == 2 ? sqrt(all) : POWER(all, NUM(1) / power));
}
#endif

//! unpool: w1 w2 w4 w8
#ifdef K_unpool
/* Of all elements whose index is that of this one the last one wins, as in a loop. g: from 8 on, the shape that indices are
 * of. An item has an element of the result. */
KERNEL_3_1(unpool, k_general, T0, x0, i32, x1, i32, g, T0, y) {
  K_EACH(u, p.count);
  const int dims = CAST(int, G_OUT(0, -1));
  IDX left = u, index = 0, size = 1;
  bool there = true;
  for (int d = dims - 1; d >= 0; d--) {
    const IDX place = left % G_OUT(0, d);
    there = there && place < G(8 + d);
    index += place * size;
    size *= G(8 + d);
    left /= G_OUT(0, d);
  }
  IDX found = -1;
  for (IDX i = 0; there && i < G_IN(0, -2); i++) {
    if (x1[2 * i] == CAST(int, index) && x1[2 * i + 1] == 0) found = i;
  }
  y[u] = found >= 0 ? x0[found] : CAST(K_S(T0), 0);
}
#endif

//! conv_any: f64 f16 bf16 u8 u16 u32 u64
#ifdef K_conv_any
/* OWN: groups, channels of the input and of the result in each. Integers wrap. */
KERNEL_4_1(conv_any, k_general, T0, x0, T0, x1, T0, x2, i32, g, T0, y) {
  K_EACH(u, p.count);
  WINDOW
  const IDX channels = G_OUT(0, 1), c = u / places % channels, per = OWN(1), group = c / OWN(2);
  const IDX base = (u / places / channels * OWN(0) + group) * per * plane;
#ifdef T0_REAL
  K_SUM(T0, sum);
#else
  K_C(T0) sum = NUM(0);
#endif
  for (IDX t = 0; t < taps; t++) {
    TAP(u % places, t)
    for (IDX k = 0; inside && k < per; k++) {
      const K_C(T0) v = GET(T0, x0[base + k * plane + at]) * GET(T0, x1[(c * per + k) * taps + t]);
#ifdef T0_REAL
      K_SUM_ADD(T0, sum, v);
#else
      sum = sum + v;
#endif
    }
  }
#ifdef T0_REAL
  sum = sum - sum_rest;
#endif
  y[u] = PUT(T0, HAS(2) ? sum + GET(T0, x2[c]) : sum);
}
#endif

//! deform_conv: f32 f64 f16 bf16
#ifdef K_deform_conv
/* OWN(6): groups of offsets. */
KERNEL_6_1(deform_conv, k_general, T0, x0, T0, x1, T0, x2, T0, x3, T0, x4, i32, g, T0, y) {
  K_EACH(u, p.count);
  WINDOW
  const IDX channels = G_OUT(0, 1), all = G_IN(0, 1), per = OWN(1), groups = OWN(6), rows = IN(0), cols = IN(1);
  const IDX place = u % places, c = u / places % channels, image = u / places / channels;
  K_SUM(T0, sum);
  for (IDX j = 0; j < per * taps; j++) {
    const IDX k = j / taps, t = j % taps, channel = c / OWN(2) * per + k, group = channel / (all / groups);
    const IDX of_tap = (image * groups + group) * taps + t, base = (image * all + channel) * plane;
    const K_C(T0) h = NUM(place / OUT(1) * STRIDE(0) + t / KERNEL_OF(1) * DILATION(0) - PAD(0)) +
                      GET(T0, x2[2 * of_tap * places + place]);
    const K_C(T0) w = NUM(place % OUT(1) * STRIDE(1) + t % KERNEL_OF(1) * DILATION(1) - PAD(1)) +
                      GET(T0, x2[(2 * of_tap + 1) * places + place]);
    if (h > NUM(-1) && w > NUM(-1) && h < NUM(rows) && w < NUM(cols)) {
      const int top = CAST(int, floor(h)), left = CAST(int, floor(w));
      K_C(T0) v = NUM(0);
      for (int n = 0; n < 4; n++) {
        const int r = top + n / 2, e = left + n % 2;
        if (r >= 0 && e >= 0 && AT(r) < rows && AT(e) < cols)
          v = v + (NUM(1) - ABS(h - NUM(r))) * (NUM(1) - ABS(w - NUM(e))) * GET(T0, x0[base + AT(r) * cols + AT(e)]);
      }
      if (HAS(4)) v = v * GET(T0, x4[of_tap * places + place]);
      K_SUM_ADD(T0, sum, v * GET(T0, x1[(c * per + k) * taps + t]));
    }
  }
  y[u] = PUT(T0, HAS(3) ? GET(T0, x3[c]) + (sum - sum_rest) : sum - sum_rest);
}
#endif

//! col2im: f32 f64 f16 bf16 u8 u16 u32 u64
#ifdef K_col2im
/* An item has an element of the image, which gathers what the columns hold of it. The window is that of the image. */
KERNEL_2_1(col2im, k_general, T0, x0, i32, g, T0, y) {
  K_EACH(u, p.count);
  WINDOW
  const IDX channel = u / plane;
#ifdef T0_REAL
  K_SUM(T0, sum);
#else
  K_C(T0) sum = NUM(0);
#endif
  for (IDX t = 0; t < taps; t++) {
    IDX left = u % plane, rest = t, place = 0, size = 1;
    bool inside = true;
    for (int d = SPATIAL - 1; d >= 0; d--) {
      const IDX v = left % IN(d) + PAD(d) - rest % KERNEL_OF(d) * DILATION(d);
      inside = inside && v >= 0 && v % STRIDE(d) == 0 && v / STRIDE(d) < OUT(d);
      place += v / STRIDE(d) * size;
      size *= OUT(d);
      left /= IN(d);
      rest /= KERNEL_OF(d);
    }
    if (inside) {
      const K_C(T0) v = GET(T0, x0[(channel * taps + t) * places + place]);
#ifdef T0_REAL
      K_SUM_ADD(T0, sum, v);
#else
      sum = sum + v;
#endif
    }
  }
#ifdef T0_REAL
  sum = sum - sum_rest;
#endif
  y[u] = PUT(T0, sum);
}
#endif

#if defined(K_causal_conv) || defined(K_causal_state)
/* Element i of channel u with its state before it. */
#define WITH_STATE(u, i) \
  ((i) >= G(0) - 1 ? GET(T0, x0[(u) * G_IN(0, 2) + (i) - (G(0) - 1)]) \
   : HAS(3)        ? GET(T0, x3[(u) * (G(0) - 1) + (i)]) \
                   : NUM(0))
#endif

//! causal_conv: f32 f64 f16 bf16
#ifdef K_causal_conv
/* g: the taps, and whether a SiLU follows. */
KERNEL_5_1(causal_conv, k_general, T0, x0, T0, x1, T0, x2, T0, x3, i32, g, T0, y) {
  K_EACH(i, p.count);
  const IDX n = G_IN(0, 2), u = i / n, t = i % n, taps = G(0), c = u % G_IN(0, 1);
  K_SUM(T0, sum);
  if (HAS(2)) K_SUM_ADD(T0, sum, GET(T0, x2[c]));
  for (IDX k = 0; k < taps; k++) K_SUM_ADD(T0, sum, WITH_STATE(u, t + k) * GET(T0, x1[c * taps + k]));
  const K_C(T0) all = ROUND(T0, sum - sum_rest);
  y[i] = PUT(T0, g[1] != 0 ? all / (NUM(1) + EXP(-all)) : all);
}
#endif

//! causal_state: f32 f64 f16 bf16
#ifdef K_causal_state
KERNEL_5_1(causal_state, k_general, T0, x0, T0, x1, T0, x2, T0, x3, i32, g, T0, y) {
  K_EACH(i, p.count);
  const IDX state = G(0) - 1, u = i / state;
  y[i] = PUT(T0, WITH_STATE(u, G_IN(0, 2) + i % state));
}
#endif
