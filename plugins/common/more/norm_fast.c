/* RMSNormalization of float32 rows with a scale for each column, with the widest vectors of the CPU; and the rows of
 * MeanVarianceNormalization. */
#include "more.h"

#include <math.h>

enum { LANES = 16 };

#define INSIDE static inline __attribute__((always_inline))

INSIDE void row_any(const float *restrict x, const float *restrict scale, float *restrict y, int64_t n, float epsilon) {
  float lanes[LANES] = {0}, square = 0;
  int64_t k = 0;
  for (; k + LANES <= n; k += LANES)
    for (int i = 0; i < LANES; i++) lanes[i] += x[k + i] * x[k + i];
  for (; k < n; k++) square += x[k] * x[k];
  for (int i = 0; i < LANES; i++) square += lanes[i];
  const float inverse = 1.0F / sqrtf(square / (float)n + epsilon);
  for (k = 0; k < n; k++) y[k] = x[k] * inverse * scale[k];
}

typedef void (*row_fn)(const float *x, const float *scale, float *y, int64_t n, float epsilon);

#define MAKE(name, target) \
  target static void name(const float *x, const float *scale, float *y, int64_t n, float epsilon) { \
    row_any(x, scale, y, n, epsilon); \
  }
MAKE(row_plain, )

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
MAKE(row_wide, __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma"))))
MAKE(row_narrow, __attribute__((target("avx2,fma"))))

static row_fn find_row(void) {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return row_wide;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? row_narrow : row_plain;
}
#else
static row_fn find_row(void) {
  return row_plain;
}
#endif

void more_run_rms_rows(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t n = m->i[0];
  const row_fn row = find_row();
  int64_t work = 0;
  for (int64_t r = first; r < last; r++) {
    if (more_tick(m, &work, 2 * n)) return;
    row((const float *)a->in[0] + r * n, a->in[1], (float *)a->out[0] + r * n, n, (float)m->f[0]);
  }
}

/* ---------------------------------------------------------------- MeanVarianceNormalization */

/* In float64, LANES sums side by side. */
#define ROW(T) \
  static double sum_##T(const void *from, int64_t n, double mean, bool squares) { \
    const T *x = from; \
    double lanes[LANES] = {0}, sum = 0; \
    int64_t k = 0; \
    for (; k + LANES <= n; k += LANES) \
      for (int i = 0; i < LANES; i++) { \
        const double d = (double)x[k + i] - mean; \
        lanes[i] += squares ? d * d : d; \
      } \
    for (; k < n; k++) { \
      const double d = (double)x[k] - mean; \
      sum += squares ? d * d : d; \
    } \
    for (int i = 0; i < LANES; i++) sum += lanes[i]; \
    return sum; \
  } \
  static void scale_##T(const void *from, void *to, int64_t n, double mean, double by) { \
    const T *restrict x = from; \
    T *restrict y = to; \
    for (int64_t k = 0; k < n; k++) y[k] = (T)(((double)x[k] - mean) * by); \
  }
ROW(float)
ROW(double)

double more_row_sum(int type, const void *x, int64_t n) {
  return type == REF_TYPE_F32 ? sum_float(x, n, 0, false) : sum_double(x, n, 0, false);
}

double more_row_square(int type, const void *x, int64_t n, double mean) {
  return type == REF_TYPE_F32 ? sum_float(x, n, mean, true) : sum_double(x, n, mean, true);
}

void more_row_scale(int type, const void *x, void *y, int64_t n, double mean, double by) {
  (type == REF_TYPE_F32 ? scale_float : scale_double)(x, y, n, mean, by);
}
