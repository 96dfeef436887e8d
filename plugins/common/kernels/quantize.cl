/* QuantizeLinear and DequantizeLinear. Scales and zero points are one for all (n is 1), or one for each place of an axis of
 * n places, of inner elements each, or one for each block of such places. */
#include "portable.cl"

#define SCALE_OF(i) \
  (p.mode == 0 ? 0 : p.block == 0 ? i / AT(p.inner) % AT(p.n) \
   : (i / AT(p.inner) / AT(p.n) * AT(p.blocks) + i / AT(p.inner) % AT(p.n) / AT(p.block)) * AT(p.inner) + i % AT(p.inner))

/* A quotient as the precision has it. */
#define PRECISELY(x) \
  (p.rounding == 1   ? CAST(K_C(T0), CAST(float, x)) \
   : p.rounding == 2 ? CAST(K_C(T0), ROUND(f16, CAST(float, x))) \
   : p.rounding == 3 ? CAST(K_C(T0), ROUND(bf16, CAST(float, x))) \
                      : ROUND(T0, x))

//! quotient: f32 f64 f16 bf16
#ifdef K_quotient
/* What QuantizeLinear to float8 and float4 stores. */
KERNEL_2_1(quotient, k_quantize, T0, x0, T0, x1, K_W(T0), y) {
  K_EACH(i, p.count);
  const K_C(T0) q = GET(T0, x0[i]) / GET(T0, x1[SCALE_OF(i)]);
  y[i] = PRECISELY(q);
}
#endif

//! quantize: f32 f64 f16 bf16; i8 i16 u8 u16
#ifdef K_quantize
/* Numbers beyond 2^17 saturate whatever the zero point is. NaN gives 0. */
KERNEL_3_1(quantize, k_quantize, T0, x0, T0, x1, T1, x2, T1, y) {
  K_EACH(i, p.count);
  const IDX s = SCALE_OF(i);
  const K_C(T0) most = CAST(K_C(T0), 131072), quotient = GET(T0, x0[i]) / GET(T0, x1[s]);
  const K_C(T0) v = RINT(PRECISELY(quotient));
  const bool is_nan = IS_NAN(T0, v);
  const int whole = CAST(int, is_nan ? CAST(K_C(T0), 0) : v > most ? most : v < -most ? -most : v);
  const int low = CAST(int, p.least), high = CAST(int, p.most), sum = whole + CAST(int, GET(T1, x2[s]));
  y[i] = PUT(T1, CAST(K_C(T1), is_nan ? 0 : sum < low ? low : sum > high ? high : sum));
}
#endif

//! dequantize_wide: u32 i64 u64; f32 f64 f16 bf16
//! dequantize_wide: i8 i16 i32 u8 u16; f64
#ifdef K_dequantize_wide
KERNEL_3_1(dequantize_wide, k_quantize, T0, x0, T1, x1, T0, x2, T1, y) {
  K_EACH(i, p.count);
  const IDX s = SCALE_OF(i);
  const double v = CAST(double, GET(T0, x0[i])) - CAST(double, GET(T0, x2[s]));
  y[i] = PUT(T1, CAST(K_C(T1), v * CAST(double, GET(T1, x1[s]))));
}
#endif

//! dequantize: i8 i16 i32 u8 u16; f32 f16 bf16
#ifdef K_dequantize
KERNEL_3_1(dequantize, k_quantize, T0, x0, T1, x1, T0, x2, T1, y) {
  K_EACH(i, p.count);
  const IDX s = SCALE_OF(i);
  /* In two parts of 16 bits, which floats have exactly, as of 32 bits their difference may have 33. */
  const int a = CAST(int, GET(T0, x0[i])), b = CAST(int, GET(T0, x2[s]));
  const float high = CAST(float, (a >> 16) - (b >> 16)), low = CAST(float, (a & 0xffff) - (b & 0xffff));
  y[i] = PUT(T1, (high * 65536.0f + low) * GET(T1, x1[s]));
}
#endif

//! dequantize_real: f32; f32 f64 f16 bf16
#ifdef K_dequantize_real
KERNEL_3_1(dequantize_real, k_quantize, T0, x0, T1, x1, T0, x2, T1, y) {
  K_EACH(i, p.count);
  const IDX s = SCALE_OF(i);
  y[i] = PUT(T1, CAST(K_C(T1), x0[i] - x2[s]) * GET(T1, x1[s]));
}
#endif
