/* DFT and STFT by their definitions, and DynamicQuantizeLinear, which looks through all of its operand. */
#include "portable.cl"

//! dft: f32 f64 f16 bf16
#ifdef K_dft
/* Operand 1: a window, where mode has 8. Operand 2: the cosine and sine of 2 pi j / points for each j. mode: 1 operand 0 is
 * complex, 2 inverse, 4 one-sided; of both there is no imaginary part. An item has a bin of a line or frame. */
KERNEL_3_1(dft, k_signal, T0, x0, T0, x1, K_W(T0), x2, T0, y) {
  K_EACH(u, p.count);
  const int mode = CAST(int, p.mode);
  const bool pairs = (mode & 1) != 0, inverse = (mode & 2) != 0, one_sided = (mode & 4) != 0, windowed = (mode & 8) != 0;
  const IDX n = AT(p.points), inner = AT(p.inner), bins = AT(p.bins), frames = AT(p.frames), size = AT(p.size);
  const IDX k = u / inner % bins, line = u / inner / bins;
  const IDX start = frames > 0 ? line / frames * size + line % frames * AT(p.step) : line * size * inner + u % inner;
  const IDX there = frames > 0 ? n : size;
  IDX turn = 0;
  K_SUM(T0, re);
  K_SUM(T0, im);
  for (IDX j = 0; j < n; j++) {
    const bool mirror = inverse && one_sided && j > n / 2;
    const IDX from = mirror ? n - j : j;
    if (from < there) {
      const IDX at = start + from * inner;
      K_C(T0) a = GET(T0, x0[pairs ? 2 * at : at]), b = NUM(0);
      if (pairs) b = mirror ? -GET(T0, x0[2 * at + 1]) : GET(T0, x0[2 * at + 1]);
      if (windowed) {
        const K_C(T0) w = GET(T0, x1[j]);
        a = a * w;
        b = b * w;
      }
      const K_C(T0) c = x2[2 * turn], s = inverse ? x2[2 * turn + 1] : -x2[2 * turn + 1];
      K_SUM_ADD(T0, re, a * c - b * s);
      K_SUM_ADD(T0, im, a * s + b * c);
    }
    turn += k;
    if (turn >= n) turn -= n;
  }
  const K_C(T0) by = inverse ? NUM(n) : NUM(1);
  const K_C(T0) real_part = (re - re_rest) / by, other_part = (im - im_rest) / by;
  if (inverse && one_sided) {
    y[u] = PUT(T0, real_part);
  } else {
    y[2 * u] = PUT(T0, real_part);
    y[2 * u + 1] = PUT(T0, other_part);
  }
}
#endif

/* The operand is looked through in PARTS parts. */
#define PARTS 256

//! dynamic_limits: f32
#ifdef K_dynamic_limits
/* The least and the greatest number of every part, and 0. NaN is none. */
KERNEL_1_1(dynamic_limits, k_general, T0, x0, T0, y) {
  K_EACH(u, PARTS);
  float least = 0.0f, most = 0.0f;
  for (IDX i = u; i < AT(p.count); i += PARTS) {
    const float v = x0[i];
    least = v < least ? v : least;
    most = v > most ? v : most;
  }
  y[2 * u] = least;
  y[2 * u + 1] = most;
}
#endif

//! dynamic_scale: f32; f32 u8
#ifdef K_dynamic_scale
/* Of the limits in x0 the scale (mode 0) or the zero point (1); count is 1. */
KERNEL_1_1(dynamic_scale, k_general, T0, x0, T1, y) {
  K_EACH(u, p.count);
  float least = 0.0f, most = 0.0f;
  for (int i = 0; i < PARTS; i++) {
    least = x0[2 * i] < least ? x0[2 * i] : least;
    most = x0[2 * i + 1] > most ? x0[2 * i + 1] : most;
  }
  const float scale = (most - least) / 255.0f, zero = scale != 0.0f ? RINT((0.0f - least) / scale) : 0.0f;
  const float part = zero == zero ? (zero < 0.0f ? 0.0f : zero > 255.0f ? 255.0f : zero) : 0.0f;
  y[u] = PUT(T1, CAST(K_C(T1), p.mode != 0 ? part : scale));
}
#endif

//! dynamic_quantize: f32
#ifdef K_dynamic_quantize
/* x1: the scale and the zero point, which dynamic_fold leaves behind the limits. */
KERNEL_2_1(dynamic_quantize, k_general, T0, x0, T0, x1, u8, y) {
  K_EACH(i, p.count);
  const float scale = x1[2 * PARTS], zero = x1[2 * PARTS + 1], q = x0[i] / scale;
  const float low = q < -zero ? -zero : q > 255.0f - zero ? 255.0f - zero : q;
  y[i] = PUT(u8, CAST(uint, scale == 0.0f || k_nan(q) ? 0.0f : RINT(low) + zero));
}
#endif

//! dynamic_fold: f32
#ifdef K_dynamic_fold
/* Writes the scale and the zero point behind the limits that y has. x0 is not read. */
KERNEL_1_1(dynamic_fold, k_general, T0, x0, T0, y) {
  K_EACH(u, p.count);
  float least = 0.0f, most = 0.0f;
  for (int i = 0; i < PARTS; i++) {
    least = y[2 * i] < least ? y[2 * i] : least;
    most = y[2 * i + 1] > most ? y[2 * i + 1] : most;
  }
  const float scale = (most - least) / 255.0f, zero = scale != 0.0f ? RINT((0.0f - least) / scale) : 0.0f;
  y[2 * PARTS] = scale;
  y[2 * PARTS + 1] = k_nan(zero) || zero < 0.0f ? 0.0f : zero > 255.0f ? 255.0f : zero;
}
#endif
