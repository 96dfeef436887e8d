/* The exponential function, for one size of vectors: the macros are those of onednn_rows_lanes.h. No include guard:
 * it is read once for each. */

/* e^x for x <= 0 within 1 unit in the last place; 0 below the least denormal number, NaN for NaN. x = n ln 2 + r, and a
 * polynomial of r fitted to the least relative error over |r| <= ln 2 / 2. */
TARGET static inline vec NAME(exponential)(vec x) {
  const vec n = V_ROUND(V_MUL(x, V_SET(1.44269504f)));
  vec r = V_NEG_MULADD(n, V_SET(0.693359375f), x);
  r = V_NEG_MULADD(n, V_SET(-2.12194440e-4f), r);
  vec p = V_SET(1.38145441e-3f);
  p = V_MULADD(p, r, V_SET(8.36874545e-3f));
  p = V_MULADD(p, r, V_SET(4.16683890e-2f));
  p = V_MULADD(p, r, V_SET(1.66665211e-1f));
  p = V_MULADD(p, r, V_SET(4.99999940e-1f));
  p = V_MULADD(p, r, V_SET(1.0f));
  p = V_MULADD(p, r, V_SET(1.0f));
  return V_SCALE(p, n);
}
