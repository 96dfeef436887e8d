/* Resize: an item has one element of the result, the sum over all taps of all dimensions. cells: for each place of each
 * dimension that is resized the first element, OUTSIDE for none, and the weights. V0: dimensions. Integers and float64 are
 * computed in float64. */
#define K_STORED
#include "portable.cl"

#define OUTSIDE (-2147483647 - 1)

/* Declares row, where the cells of each dimension are, and outside. */
#define PLACES \
  IDX rest = id, row[V0]; \
  bool outside = false; \
  UNROLL for (int d = V0 - 1; d >= 0; d--) { \
    const IDX dim = AT(p.out_[d]), place = rest % dim; \
    rest /= dim; \
    row[d] = p.taps[d] == 0 ? place : AT(p.at[d]) + place * (1 + AT(p.taps[d])); \
    outside = outside || (p.taps[d] != 0 && cells[row[d]] == OUTSIDE); \
  }

/* Declares from and weight, of a real type, of tap t. */
#define TAP(real, t) \
  IDX left = t, from = 0, step = 1; \
  real weight = 1.0f; \
  UNROLL for (int d = V0 - 1; d >= 0; d--) { \
    const IDX taps = AT(p.taps[d]), size = AT(p.in_[d]); \
    IDX at = row[d]; \
    if (taps != 0) { \
      const IDX k = left % taps; \
      left /= taps; \
      weight *= K_FLOAT(CAST(uint, cells[row[d] + 1 + k])); \
      at = AT(cells[row[d]]) + k; \
      at = at < 0 ? 0 : at >= size ? size - 1 : at; \
    } \
    from += at * step; \
    step *= size; \
  }

//! resize: f32
#ifdef K_resize
KERNEL_2_1(resize, k_resize, i32, cells, T0, x, T0, y) {
  K_EACH(id, p.count);
  PLACES
  if (outside) {
    y[id] = p.outside;
    return;
  }
  float sum = 0.0f;
  for (IDX t = 0; t < AT(p.sums); t++) {
    TAP(float, t)
    sum += weight * x[from];
  }
  y[id] = sum;
}
#endif

//! resize_any: f64; f64
//! resize_any: i8 i16 i32 i64 u8 u16 u32 u64; f64
#ifdef K_resize_any
#ifndef T0_REAL
K_CUT_FUNCTION
#endif
KERNEL_2_1(resize_any, k_resize, i32, cells, T0, x, T0, y) {
  K_EACH(id, p.count);
  PLACES
  K_C(T1) sum = outside ? p.outside : 0.0f;
  for (IDX t = 0; t < AT(p.sums) && !outside; t++) {
    TAP(K_C(T1), t)
    sum += weight * CAST(K_C(T1), GET(T0, x[from]));
  }
#ifdef T0_REAL
  y[id] = sum;
#else
  sum = RINT(sum);
  sum = sum < p.low ? CAST(K_C(T1), p.low) : sum >= p.top ? CAST(K_C(T1), p.top) - 1.0f : sum;
  y[id] = PUT(T0, K_CUT(T0, sum));
#endif
}
#endif

//! resize_pick: w1 w2 w4 w8
#ifdef K_resize_pick
/* Places that are one element each. */
KERNEL_2_1(resize_pick, k_resize, i32, cells, T0, x, T0, y) {
  K_EACH(id, p.count);
  IDX rest = id, from = 0, step = 1;
  UNROLL for (int d = V0 - 1; d >= 0; d--) {
    const IDX dim = AT(p.out_[d]), place = rest % dim;
    rest /= dim;
    from += (p.taps[d] == 0 ? place : AT(cells[AT(p.at[d]) + 2 * place])) * step;
    step *= AT(p.in_[d]);
  }
  y[id] = x[from];
}
#endif
