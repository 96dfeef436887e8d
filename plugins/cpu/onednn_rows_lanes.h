/* The kernels of onednn_rows.c for one size of vectors, given by macros: LANES, vec, NAME, TARGET and the operations that
 * begin with V_. No include guard: it is read once for each. */

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

/* Scaled and masked, into out; the greatest, NaN passed over. */
TARGET static inline float NAME(shift)(float *out, const float *in, const float *mask, float scale, int64_t n) {
  const vec by = V_SET(scale);
  vec most = V_SET(-INFINITY);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    vec x = V_MUL(V_LOAD(in + i), by);
    if (mask != NULL) x = V_ADD(x, V_LOAD(mask + i));
    V_STORE(out + i, x);
    most = V_MAX(x, most);
  }
  float greatest = NAME(most_of)(most);
  for (; i < n; i++) {
    out[i] = in[i] * scale;
    if (mask != NULL) out[i] += mask[i];
    greatest = out[i] > greatest ? out[i] : greatest;
  }
  return greatest;
}

TARGET static void NAME(softmax)(float *out, const float *in, const float *mask, float scale, int64_t n) {
  enum { BLOCK = 4096 }; /* elements that are summed in float32 */
  const float greatest = NAME(shift)(out, in, mask, scale, n);
  const vec most = V_SET(greatest);
  double sum = 0;
  int64_t i = 0;
  for (; n - i >= LANES;) {
    const int64_t end = n - i < BLOCK ? n - LANES : i + BLOCK - LANES;
    vec part = V_SET(0.0f);
    for (; i <= end; i += LANES) {
      const vec e = NAME(exponential)(V_MAX(V_SET(-110.0f), V_SUB(V_LOAD(out + i), most)));
      V_STORE(out + i, e);
      part = V_ADD(part, e);
    }
    sum += (double)NAME(sum_of)(part);
  }
  if (i < n) { /* the rest of the row, in a vector of its own */
    float rest[LANES];
    for (int k = 0; k < LANES; k++) rest[k] = i + k < n ? out[i + k] - greatest : -INFINITY;
    V_STORE(rest, NAME(exponential)(V_MAX(V_SET(-110.0f), V_LOAD(rest))));
    for (int k = 0; i + k < n; k++) sum += (double)(out[i + k] = rest[k]);
  }
  const float less = (float)(1.0 / sum);
  const vec by = V_SET(less);
  for (i = 0; i + LANES <= n; i += LANES) V_STORE(out + i, V_MUL(V_LOAD(out + i), by));
  for (; i < n; i++) out[i] *= less;
}
