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

#undef SUM_OF
#undef ELEMENT
#undef NAME
