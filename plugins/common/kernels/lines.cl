/* What goes through a line, or through the elements of a result, one after the other: cumulative sums and products, Hardmax,
 * reductions and normalisations of any type. An item has a line or a result. */
#define K_MATH
#include "portable.cl"

#define LINE(r) (r / AT(p.inner) * AT(p.inner) * AT(p.n) + r % AT(p.inner))

//! cumulate: f32 f64 f16 bf16 u8 u16 u32 u64
#ifdef K_cumulate
/* mode: the product, else the sum. */
KERNEL_1_1(cumulate, k_lines, T0, x0, T0, y) {
  K_EACH(r, p.count);
  const IDX start = LINE(r);
  const K_C(T0) none = CAST(K_C(T0), p.mode != 0 ? 1 : 0);
#ifdef T0_REAL
  K_SUM(T0, sum);
#endif
  K_C(T0) all = none;
  for (IDX j = 0; j < AT(p.n); j++) {
    const IDX at = start + (p.reverse != 0 ? AT(p.n) - 1 - j : j) * AT(p.inner);
    const K_C(T0) v = GET(T0, x0[at]), old = all;
    if (p.mode != 0) {
      all = all * v;
    } else {
#ifdef T0_REAL
      K_SUM_ADD(T0, sum, v);
      all = sum - sum_rest;
#else
      all = all + v;
#endif
    }
    y[at] = PUT(T0, p.exclusive != 0 ? old : all);
  }
}
#endif

//! hardmax: f32 f64 f16 bf16
#ifdef K_hardmax
KERNEL_1_1(hardmax, k_lines, T0, x0, T0, y) {
  K_EACH(r, p.count);
  const IDX start = LINE(r);
  IDX best = 0;
  K_C(T0) most = GET(T0, x0[start]);
  for (IDX j = 1; j < AT(p.n); j++) {
    const K_C(T0) v = GET(T0, x0[start + j * AT(p.inner)]);
    if (v > most || (IS_NAN(T0, v) && !IS_NAN(T0, most))) {
      most = v;
      best = j;
    }
  }
  for (IDX j = 0; j < AT(p.n); j++)
    y[start + j * AT(p.inner)] = PUT(T0, CAST(K_C(T0), j == best ? 1 : 0));
}
#endif

//! lp_normalize: f32 f64 f16 bf16
#ifdef K_lp_normalize
/* mode: the sum of absolute values, else the root of the sum of squares. */
KERNEL_1_1(lp_normalize, k_lines, T0, x0, T0, y) {
  K_EACH(r, p.count);
  const IDX start = LINE(r);
  K_SUM(T0, sum);
  for (IDX j = 0; j < AT(p.n); j++) {
    const K_C(T0) v = GET(T0, x0[start + j * AT(p.inner)]);
    K_SUM_ADD(T0, sum, p.mode != 0 ? ABS(v) : v * v);
  }
  const K_C(T0) size = p.mode != 0 ? sum : sqrt(sum);
  for (IDX j = 0; j < AT(p.n); j++) {
    const K_C(T0) v = GET(T0, x0[start + j * AT(p.inner)]);
    y[start + j * AT(p.inner)] = PUT(T0, size != CAST(K_C(T0), 0) ? v / size : CAST(K_C(T0), 0));
  }
}
#endif

//! mean_variance: f32 f64 f16 bf16
#ifdef K_mean_variance
KERNEL_1_1(mean_variance, k_lines, T0, x0, T0, y) {
  K_EACH(r, p.count);
  const K_C(T0) n = CAST(K_C(T0), p.n);
  IDX start = 0;
  K_PLACE(start, r, 0, p.kept);
  K_SUM(T0, sum);
  K_SUM(T0, spread);
  for (IDX j = 0; j < AT(p.n); j++) {
    IDX at = start;
    K_PLACE(at, j, p.kept, p.dims);
    K_SUM_ADD(T0, sum, GET(T0, x0[at]));
  }
  const K_C(T0) mean = sum / n;
  for (IDX j = 0; j < AT(p.n); j++) {
    IDX at = start;
    K_PLACE(at, j, p.kept, p.dims);
    const K_C(T0) v = GET(T0, x0[at]) - mean;
    K_SUM_ADD(T0, spread, v * v);
  }
  const K_C(T0) size = sqrt(spread / n) + CAST(K_C(T0), 1e-9f);
  for (IDX j = 0; j < AT(p.n); j++) {
    IDX at = start;
    K_PLACE(at, j, p.kept, p.dims);
    y[at] = PUT(T0, (GET(T0, x0[at]) - mean) / size);
  }
}
#endif

//! group_normalize: f32 f64 f16 bf16
#ifdef K_group_normalize
/* A line is a group of one image: kept channels of inner elements each; dims: how many groups. mode: scale and bias are
 * a group's, else a channel's. */
KERNEL_3_1(group_normalize, k_lines, T0, x0, T0, x1, T0, x2, T0, y) {
  K_EACH(r, p.count);
  const K_C(T0) n = CAST(K_C(T0), p.n);
  const IDX start = r * AT(p.n), group = r % AT(p.dims);
  K_SUM(T0, sum);
  K_SUM(T0, spread);
  for (IDX j = 0; j < AT(p.n); j++) K_SUM_ADD(T0, sum, GET(T0, x0[start + j]));
  const K_C(T0) mean = sum / n;
  for (IDX j = 0; j < AT(p.n); j++) {
    const K_C(T0) v = GET(T0, x0[start + j]) - mean;
    K_SUM_ADD(T0, spread, v * v);
  }
  const K_C(T0) less = CAST(K_C(T0), 1) / sqrt(spread / n + CAST(K_C(T0), p.epsilon));
  for (IDX j = 0; j < AT(p.n); j++) {
    const IDX c = p.mode != 0 ? group : group * AT(p.kept) + j / AT(p.inner);
    const K_C(T0) v = (GET(T0, x0[start + j]) - mean) * less;
    y[start + j] = PUT(T0, v * GET(T0, x1[c]) + GET(T0, x2[c]));
  }
}
#endif

//! reduce_whole: i8 i16 i32 i64 u8 u16 u32 u64 b8
#ifdef K_reduce_whole
/* mode: 1 the mean, 2 the product, 3 the greatest, 4 the least, 5 the sum of sizes, 9 of squares, else the sum. inner: what
 * it begins as. */
KERNEL_1_1(reduce_whole, k_lines, T0, x0, T0, y) {
  K_EACH(r, p.count);
  IDX start = 0;
  K_PLACE(start, r, 0, p.kept);
  const K_C(T0) first = CAST(K_C(T0), p.inner); /* 0 for a sum */
  K_C(T0) all = first;
  for (IDX j = 0; j < AT(p.n); j++) {
    IDX at = start;
    K_PLACE(at, j, p.kept, p.dims);
    const K_C(T0) v = GET(T0, x0[at]);
    if (p.mode == 2) all = all * v;
    else if (p.mode == 3) all = j == 0 || v > all ? v : all;
    else if (p.mode == 4) all = j == 0 || v < all ? v : all;
    else if (p.mode == 5) all = all + (v < first ? first - v : v);
    else if (p.mode == 9) all = all + v * v;
    else all = all + v;
  }
  if (p.mode == 1 && p.n > 0) all = all / CAST(K_C(T0), p.n);
  y[r] = PUT(T0, all);
}
#endif

//! reduce_through: i8 i16 i32 i64 u8 u16 u32 u64; f64
#ifdef K_reduce_through
K_CUT_FUNCTION
/* In float64, cut to an integer. mode: 6 the root of the sum of squares, 7 the logarithm of the sum, 8 of exponentials. */
KERNEL_1_1(reduce_through, k_lines, T0, x0, T0, y) {
  K_EACH(r, p.count);
  IDX start = 0;
  K_PLACE(start, r, 0, p.kept);
  K_SUM(T1, sum);
  K_C(T1) most = CAST(K_C(T1), 0);
  for (IDX j = 0; p.mode == 8 && j < AT(p.n); j++) {
    IDX at = start;
    K_PLACE(at, j, p.kept, p.dims);
    const K_C(T1) v = CAST(K_C(T1), GET(T0, x0[at]));
    most = j == 0 || v > most ? v : most;
  }
  for (IDX j = 0; j < AT(p.n); j++) {
    IDX at = start;
    K_PLACE(at, j, p.kept, p.dims);
    const K_C(T1) v = CAST(K_C(T1), GET(T0, x0[at]));
    K_SUM_ADD(T1, sum, p.mode == 6 ? v * v : p.mode == 8 ? EXP(v - most) : v);
  }
  const K_C(T1) all = sum - sum_rest;
  y[r] = PUT(T0, K_CUT(T0, p.mode == 6 ? sqrt(all) : LOG(all) + most));
}
#endif

//! reduce_real: f32 f64 f16 bf16
#ifdef K_reduce_real
/* mode: as in reduce_whole; 1 the mean, 6 the root of the sum of squares. NaN stays. */
KERNEL_1_1(reduce_real, k_lines, T0, x0, T0, y) {
  K_EACH(r, p.count);
  IDX start = 0;
  K_PLACE(start, r, 0, p.kept);
  K_SUM(T0, sum);
  K_C(T0) all = CAST(K_C(T0), 1);
  if (p.mode == 3) all = CAST(K_C(T0), -K_INFINITY);
  if (p.mode == 4) all = CAST(K_C(T0), K_INFINITY);
  for (IDX j = 0; j < AT(p.n); j++) {
    IDX at = start;
    K_PLACE(at, j, p.kept, p.dims);
    const K_C(T0) v = GET(T0, x0[at]);
    if (p.mode == 2) all = all * v;
    else if (p.mode == 3) all = v > all || IS_NAN(T0, v) ? v : all;
    else if (p.mode == 4) all = v < all || IS_NAN(T0, v) ? v : all;
    else if (p.mode == 5) K_SUM_ADD(T0, sum, ABS(v));
    else if (p.mode == 6 || p.mode == 9) K_SUM_ADD(T0, sum, v * v);
    else K_SUM_ADD(T0, sum, v);
  }
  if (p.mode < 2 || p.mode > 4) all = sum - sum_rest;
  if (p.mode == 1) all = all / CAST(K_C(T0), p.n);
  if (p.mode == 6) all = sqrt(all);
  y[r] = PUT(T0, all);
}
#endif

//! reduce_log: f32 f64 f16 bf16
#ifdef K_reduce_log
/* The logarithm of the sum; mode: of exponentials. */
KERNEL_1_1(reduce_log, k_lines, T0, x0, T0, y) {
  K_EACH(r, p.count);
  IDX start = 0;
  K_PLACE(start, r, 0, p.kept);
  K_SUM(T0, sum);
  K_C(T0) most = NUM(p.mode != 0 ? -K_INFINITY : 0.0f);
  for (IDX j = 0; p.mode != 0 && j < AT(p.n); j++) {
    IDX at = start;
    K_PLACE(at, j, p.kept, p.dims);
    const K_C(T0) v = GET(T0, x0[at]);
    most = v > most ? v : most;
  }
  if (ABS(most) == NUM(K_INFINITY)) most = NUM(0);
  for (IDX j = 0; j < AT(p.n); j++) {
    IDX at = start;
    K_PLACE(at, j, p.kept, p.dims);
    const K_C(T0) v = GET(T0, x0[at]);
    K_SUM_ADD(T0, sum, p.mode != 0 ? EXP(v - most) : v);
  }
  const K_C(T0) all = sum - sum_rest;
  y[r] = PUT(T0, LOG(all) + most);
}
#endif

//! softmax_line: f64 f16 bf16
#ifdef K_softmax_line
/* mode: the logarithm. */
KERNEL_1_1(softmax_line, k_lines, T0, x0, T0, y) {
  K_EACH(r, p.count);
  const IDX start = LINE(r);
  K_C(T0) most = NUM(-K_INFINITY);
  K_SUM(T0, sum);
  for (IDX j = 0; j < AT(p.n); j++) {
    const K_C(T0) v = GET(T0, x0[start + j * AT(p.inner)]);
    most = v > most ? v : most;
  }
  for (IDX j = 0; j < AT(p.n); j++) K_SUM_ADD(T0, sum, EXP(GET(T0, x0[start + j * AT(p.inner)]) - most));
  const K_C(T0) all = p.mode != 0 ? LOG(sum) : sum;
  for (IDX j = 0; j < AT(p.n); j++) {
    const K_C(T0) v = GET(T0, x0[start + j * AT(p.inner)]) - most;
    y[start + j * AT(p.inner)] = PUT(T0, p.mode != 0 ? v - all : EXP(v) / all);
  }
}
#endif
