/* RMS normalisation, of any floating-point type: lines that are side by side, with a scale that broadcasts to the operand. The
 * normalised number is rounded to the operand's type before it is scaled. An item has a line. */
#include "portable.cl"

//! scaled: f32 f64 f16 bf16
#ifdef K_scaled
KERNEL_2_1(scaled, k_scaled, T0, x0, T0, x1, T0, y) {
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
    y[start + j] = PUT(T0, rounded * GET(T0, x1[scale]));
  }
}
#endif
