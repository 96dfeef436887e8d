/* Included by norm_rows.c for each type and kind of vectors: ELEMENT, TARGET, NAME(x). */
#define SUM_OF(name, parameters, value) \
  TARGET static double NAME(name) parameters { \
    const ELEMENT *x = from; \
    double lanes[LANES] = {0}, all = 0; \
    int64_t i = 0; \
    for (; i + LANES <= n; i += LANES) \
      for (int l = 0; l < LANES; l++) { \
        const double a = (double)x[i + l]; \
        lanes[l] += value; \
      } \
    for (; i < n; i++) { \
      const double a = (double)x[i]; \
      all += value; \
    } \
    for (int l = 0; l < LANES; l++) all += lanes[l]; \
    return all; \
  }

SUM_OF(sum, (const void *from, int64_t n), a)
SUM_OF(sizes, (const void *from, int64_t n), fabs(a))
SUM_OF(squares, (const void *from, int64_t n, double mean), (a - mean) * (a - mean))

TARGET static void NAME(shift)(const void *from, int64_t n, double mean, double times, double plus, void *to) {
  const ELEMENT *x = from, middle = (ELEMENT)mean, factor = (ELEMENT)times, added = (ELEMENT)plus;
  ELEMENT *out = to;
  REF_IVDEP
  for (int64_t i = 0; i < n; i++) out[i] = (x[i] - middle) * factor + added;
}

TARGET static void NAME(scale)(const void *from, int64_t n, double mean, double times, const void *scale,
                               const void *bias, void *to) {
  const ELEMENT *x = from, *s = scale, *b = bias, middle = (ELEMENT)mean, factor = (ELEMENT)times;
  ELEMENT *out = to;
  if (b != NULL) {
    REF_IVDEP
    for (int64_t i = 0; i < n; i++) out[i] = (x[i] - middle) * factor * s[i] + b[i];
  } else {
    REF_IVDEP
    for (int64_t i = 0; i < n; i++) out[i] = (x[i] - middle) * factor * s[i];
  }
}

TARGET static void NAME(add_columns)(const void *from, int64_t n, bool squares, double *sums) {
  const ELEMENT *x = from;
  for (int64_t i = 0; i < n && squares; i++) sums[i] += (double)x[i] * (double)x[i];
  for (int64_t i = 0; i < n && !squares; i++) sums[i] += fabs((double)x[i]);
}

/* Single elements are multiplied in double by an inverse, which rounds as the division does but for halves. */
enum { NAME(inverse) = sizeof(ELEMENT) == sizeof(float) };
TARGET static void NAME(divide)(const void *from, int64_t n, const double *by, int64_t apart, void *to) {
  const ELEMENT *x = from;
  ELEMENT *out = to;
  const double one = by[0];
  if (apart == 0) {
    REF_IVDEP
    for (int64_t i = 0; i < n; i++) out[i] = (ELEMENT)(NAME(inverse) ? (double)x[i] * one : (double)x[i] / one);
  } else {
    REF_IVDEP
    for (int64_t i = 0; i < n; i++) out[i] = (ELEMENT)(NAME(inverse) ? (double)x[i] * by[i] : (double)x[i] / by[i]);
  }
}

TARGET static void NAME(divisors)(double *sums, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const double by = sums[i] == 0 ? (double)INFINITY : sums[i];
    sums[i] = NAME(inverse) ? 1 / by : by;
  }
}

#undef SUM_OF
#undef ELEMENT
#undef NAME
