/* RMS and layer normalisation: lines that are side by side, with a scale that broadcasts to the operand. The normalised number is
 * rounded to the operand's type before it is scaled. An item has a line. */
#include "portable.cl"

//! scaled: f32 f64 f16 bf16; f32 f64 f16 bf16
#ifdef K_scaled
KERNEL_2_1(scaled, k_scaled, T0, x0, T1, x1, T1, y) {
  K_EACH(r, p.count);
  const K_C(T0) n = CAST(K_C(T0), p.n);
  const IDX start = r * AT(p.n);
  K_SUM(T0, spread);
  for (IDX j = 0; j < AT(p.n); j++) {
    const K_C(T0) v = GET(T0, x0[start + j]);
    K_SUM_ADD(T0, spread, v * v);
  }
  const K_C(T0) less = CAST(K_C(T0), 1) / sqrt(spread / n + CAST(K_C(T0), p.epsilon));
  for (IDX j = 0; j < AT(p.n); j++) {
    IDX scale = 0, left = start + j;
    for (int d = CAST(int, p.dims) - 1; d >= 0; d--) {
      const IDX digit = left % AT(p.size[d]);
      scale += digit * AT(p.step[d]);
      left /= AT(p.size[d]);
    }
    const K_C(T0) v = GET(T0, x0[start + j]) * less;
    const K_C(T0) rounded = GET(T0, PUT(T0, v));
    y[start + j] = PUT(T1, CAST(K_C(T1), rounded) * GET(T1, x1[scale]));
  }
}
#endif

//! layer: f32 f64 f16 bf16; f32 f64 f16 bf16
#ifdef K_layer
/* Element of operand k, which broadcasts to operand 0, at element i of that. */
#define K_BROADCAST(at, k, i) \
  IDX at = 0, left_##at = i, step_##at = 1; \
  for (int d = CAST(int, G_IN(0, -1)) - 1; d >= 0; d--) { \
    const int e = d - CAST(int, G_IN(0, -1)) + CAST(int, G_IN(k, -1)); \
    if (e >= 0 && G_IN(k, e) != 1) at += left_##at % G_IN(0, d) * step_##at; \
    if (e >= 0) step_##at *= G_IN(k, e); \
    left_##at /= G_IN(0, d); \
  }

/* mode: 0 the result, 1 the mean of each line, 2 the inverse of its deviation. g: the length of a line. */
KERNEL_4_1(layer, k_general, T0, x0, T0, x1, T0, x2, i32, g, T1, y) {
  K_EACH(r, p.count);
  const IDX n = G(0), start = r * n;
  K_SUM(T0, sum);
  K_SUM(T0, spread);
  for (IDX j = 0; j < n; j++) K_SUM_ADD(T0, sum, GET(T0, x0[start + j]));
  const K_C(T0) mean = (sum - sum_rest) / NUM(n);
  for (IDX j = 0; j < n; j++) {
    const K_C(T0) v = GET(T0, x0[start + j]) - mean;
    K_SUM_ADD(T0, spread, v * v);
  }
  const K_C(T0) inverse = NUM(1) / sqrt((spread - spread_rest) / NUM(n) + G_NUMBER(T0, 0));
  if (p.mode != 0) y[r] = PUT(T1, CAST(K_C(T1), p.mode == 1 ? mean : inverse));
  for (IDX j = 0; p.mode == 0 && j < n; j++) {
    K_BROADCAST(scale, 1, start + j)
    K_C(T0) v = ROUND(T0, (GET(T0, x0[start + j]) - mean) * inverse) * GET(T0, x1[scale]);
    if (HAS(2)) {
      K_BROADCAST(bias, 2, start + j)
      v = v + GET(T0, x2[bias]);
    }
    y[start + j] = PUT(T1, CAST(K_C(T1), v));
  }
}
#endif
