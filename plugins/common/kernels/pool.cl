/* MaxPool and AveragePool: windows over planes of up to three dimensions. An item has one result. */
#include "portable.cl"

/* Taps of a window that begins at start which lie before end. */
DEVICE IDX taps_before(IDX start, IDX end, IDX window, IDX dilation) {
  const IDX n = end <= start ? 0 : (end - start + dilation - 1) / dilation;
  return n < window ? n : window;
}

/* Declares where the window of result at begins in each dimension, its taps [first, last) that lie in the operand, and the
 * first element of the plane. */
#define WINDOW(at) \
  IDX plane = at, start[K_SPATIAL], first[K_SPATIAL], last[K_SPATIAL]; \
  UNROLL for (int d = K_SPATIAL - 1; d >= 0; d--) { \
    start[d] = plane % AT(p.out_[d]) * AT(p.stride[d]) - AT(p.pad[d]); \
    plane /= AT(p.out_[d]); \
    first[d] = taps_before(start[d], 0, AT(p.window[d]), AT(p.dilation[d])); \
    last[d] = taps_before(start[d], AT(p.in_[d]), AT(p.window[d]), AT(p.dilation[d])); \
  } \
  const IDX base = plane * AT(p.in_[0]) * AT(p.in_[1]) * AT(p.in_[2]);

/* The taps in the operand; place is that of their element in the plane. */
#define EACH_TAP(place) \
  for (IDX kz = first[0]; kz < last[0]; kz++) \
    for (IDX ky = first[1]; ky < last[1]; ky++) \
      for (IDX kx = first[2], \
               place = ((start[0] + kz * AT(p.dilation[0])) * AT(p.in_[1]) + start[1] + ky * AT(p.dilation[1])) * \
                           AT(p.in_[2]) + \
                       start[2] + kx * AT(p.dilation[2]); \
           kx < last[2]; kx++, place += AT(p.dilation[2]))

//! average_pool: f32 f64 f16 bf16
#ifdef K_average_pool
/* The mean of the taps in the operand; include_pad counts those in its padding too. */
KERNEL_1_1(average_pool, k_pool, T0, x0, T0, y) {
  K_EACH(at, p.count);
  WINDOW(at)
  K_C(T0) count = NUM(1); /* padding may be far larger than the operand */
  UNROLL for (int d = 0; d < K_SPATIAL; d++) {
    const IDX end = AT(p.in_[d]) + AT(p.pad_end[d]), padded = taps_before(start[d], end, AT(p.window[d]), AT(p.dilation[d]));
    count = count * NUM(p.include_pad != 0 ? padded : last[d] - first[d]);
  }
  K_SUM(T0, sum);
  EACH_TAP(place) K_SUM_ADD(T0, sum, GET(T0, x0[base + place]));
  y[at] = PUT(T0, count > NUM(0) ? (sum - sum_rest) / count : NUM(0));
}
#endif

#ifdef T0_REAL
#define OR_NAN(condition) || (condition)
#else
#define OR_NAN(condition)
#endif

//! max_pool: f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64
#ifdef K_max_pool
/* NaN wins over numbers and stays. */
KERNEL_1_1(max_pool, k_pool, T0, x0, T0, y) {
  K_EACH(at, p.count);
  WINDOW(at)
  K_C(T0) most = LEAST(T0);
  EACH_TAP(place) {
    const K_C(T0) v = GET(T0, x0[base + place]);
    most = v > most OR_NAN(IS_NAN(T0, v)) ? v : most;
  }
  y[at] = PUT(T0, most);
}
#endif

//! max_pool_where: f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64
#ifdef K_max_pool_where
/* With the place of each maximum in the operand, the first of several, as pairs of words of int64. columns: places in a plane are
 * counted along its first dimension. */
KERNEL_1_2(max_pool_where, k_pool, T0, x0, T0, y, u32, z) {
  K_EACH(at, p.count);
  WINDOW(at)
  K_C(T0) most = LEAST(T0);
  IDX best = -1;
  EACH_TAP(place) {
    const K_C(T0) v = GET(T0, x0[base + place]);
    if (best < 0 || v > most OR_NAN(IS_NAN(T0, v) && !IS_NAN(T0, most))) {
      most = v;
      best = place;
    }
  }
  if (best < 0) best = 0;
  if (p.columns != 0)
    best = best / AT(p.in_[2]) / AT(p.in_[1]) +
           AT(p.in_[0]) * (best / AT(p.in_[2]) % AT(p.in_[1]) + AT(p.in_[1]) * (best % AT(p.in_[2])));
  y[at] = PUT(T0, most);
  z[2 * at] = CAST(uint, base + best);
  z[2 * at + 1] = CAST(uint, (base + best) >> 16 >> 16);
}
#endif
