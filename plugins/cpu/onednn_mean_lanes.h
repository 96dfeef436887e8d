/* The sums of onednn_mean.c for one size of vectors. No include guard: it is read once for each. Numbers are added in
 * float32 a few at a time, and what comes of these in double. */

/* The sums of 4 vectors of channels: a pixel's lie side by side, those of the next `step` floats behind. */
TARGET static void NAME(sum_columns)(const float *x, int64_t pixels, int64_t step, double *sums) {
  enum { FEW = 16 };
  float part[4 * LANES];
  for (int i = 0; i < 4 * LANES; i++) sums[i] = 0;
  for (int64_t from = 0; from < pixels; from += FEW) {
    const int64_t n = pixels - from < FEW ? pixels - from : FEW;
    vec a = V_SET(0), b = V_SET(0), c = V_SET(0), d = V_SET(0);
    for (int64_t i = 0; i < n; i++, x += step) {
      a = V_ADD(a, V_LOAD(x));
      b = V_ADD(b, V_LOAD(x + LANES));
      c = V_ADD(c, V_LOAD(x + 2 * LANES));
      d = V_ADD(d, V_LOAD(x + 3 * LANES));
    }
    V_STORE(part, a);
    V_STORE(part + LANES, b);
    V_STORE(part + 2 * LANES, c);
    V_STORE(part + 3 * LANES, d);
    for (int i = 0; i < 4 * LANES; i++) sums[i] += (double)part[i];
  }
}

/* The sums of one vector's channels, of which `step` is the number of floats to the next pixel. */
TARGET static void NAME(sum_column)(const float *x, int64_t pixels, int64_t step, double *sums) {
  enum { FEW = 64 };
  float part[LANES];
  for (int i = 0; i < LANES; i++) sums[i] = 0;
  for (int64_t from = 0; from < pixels; from += FEW) {
    const int64_t n = pixels - from < FEW ? pixels - from : FEW;
    vec a = V_SET(0), b = V_SET(0), c = V_SET(0), d = V_SET(0);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4, x += 4 * step) {
      a = V_ADD(a, V_LOAD(x));
      b = V_ADD(b, V_LOAD(x + step));
      c = V_ADD(c, V_LOAD(x + 2 * step));
      d = V_ADD(d, V_LOAD(x + 3 * step));
    }
    for (; i < n; i++, x += step) a = V_ADD(a, V_LOAD(x));
    V_STORE(part, V_ADD(V_ADD(a, b), V_ADD(c, d)));
    for (int k = 0; k < LANES; k++) sums[k] += (double)part[k];
  }
}

/* The sum of numbers that lie side by side. */
TARGET static double NAME(sum_row)(const float *x, int64_t n) {
  const int64_t whole = n / LANES;
  double sums[LANES], sum = 0;
  NAME(sum_column)(x, whole, LANES, sums);
  for (int i = 0; i < LANES; i++) sum += sums[i];
  for (int64_t i = whole * LANES; i < n; i++) sum += (double)x[i];
  return sum;
}
