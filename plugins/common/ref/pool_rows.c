/* The loops of pools, compiled for AVX-512, AVX2, and the least that there is. */
#include "pool_rows.h"
#include "types.h"

#include <math.h>

enum { SPAN = 1024 }; /* elements of a row that are worked on at once */

int64_t ref_pool_places(const ref_window *w) {
  const int64_t reach = (w->kernel[2] - 1) * w->dilation[2] + 1;
  return reach > SPAN ? 0 : (SPAN - reach) / w->stride[2] + 1;
}

#define GREATER_WHOLE(x, y) ((x) > (y) ? (x) : (y))
#define GREATER(x, y) ((x) != (x) ? (x) : GREATER_WHOLE(x, y))
#define SUM(x, y) ((RESULT)(x) + (y))

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
#define WIDE __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2")))
#define NARROW __attribute__((target("avx2")))
#endif

#define ELEMENT float
#define RESULT float
#define START -INFINITY
#define WITH GREATER
#define TARGET
#define NAME f32_plain
#include "pool_loops.h"
#undef TARGET
#ifdef WIDE
#define TARGET NARROW
#define NAME f32_narrow
#include "pool_loops.h"
#undef TARGET
#define TARGET WIDE
#define NAME f32_wide
#include "pool_loops.h"
#undef TARGET
#endif
#undef ELEMENT
#undef RESULT
#undef START
#undef WITH

#define ELEMENT double
#define RESULT double
#define START -(double)INFINITY
#define WITH GREATER
#define TARGET
#define NAME f64_plain
#include "pool_loops.h"
#undef TARGET
#ifdef WIDE
#define TARGET NARROW
#define NAME f64_narrow
#include "pool_loops.h"
#undef TARGET
#define TARGET WIDE
#define NAME f64_wide
#include "pool_loops.h"
#undef TARGET
#endif
#undef ELEMENT
#undef RESULT
#undef START
#undef WITH

#define ELEMENT int8_t
#define RESULT int8_t
#define START INT8_MIN
#define WITH GREATER_WHOLE
#define TARGET
#define NAME i8_plain
#include "pool_loops.h"
#undef TARGET
#ifdef WIDE
#define TARGET NARROW
#define NAME i8_narrow
#include "pool_loops.h"
#undef TARGET
#define TARGET WIDE
#define NAME i8_wide
#include "pool_loops.h"
#undef TARGET
#endif
#undef ELEMENT
#undef RESULT
#undef START
#undef WITH

#define ELEMENT uint8_t
#define RESULT uint8_t
#define START 0
#define WITH GREATER_WHOLE
#define TARGET
#define NAME u8_plain
#include "pool_loops.h"
#undef TARGET
#ifdef WIDE
#define TARGET NARROW
#define NAME u8_narrow
#include "pool_loops.h"
#undef TARGET
#define TARGET WIDE
#define NAME u8_wide
#include "pool_loops.h"
#undef TARGET
#endif
#undef ELEMENT
#undef RESULT
#undef START
#undef WITH

#define ELEMENT float
#define RESULT double
#define START 0
#define WITH SUM
#define TARGET
#define NAME sum_plain
#include "pool_loops.h"
#undef TARGET
#ifdef WIDE
#define TARGET NARROW
#define NAME sum_narrow
#include "pool_loops.h"
#undef TARGET
#define TARGET WIDE
#define NAME sum_wide
#include "pool_loops.h"
#undef TARGET
#endif
#undef ELEMENT
#undef RESULT
#undef START
#undef WITH

#define ELEMENT float
#define RESULT float
#define START 0
#define WITH SUM
#define TARGET
#define NAME few_plain
#include "pool_loops.h"
#undef TARGET
#ifdef WIDE
#define TARGET NARROW
#define NAME few_narrow
#include "pool_loops.h"
#undef TARGET
#define TARGET WIDE
#define NAME few_wide
#include "pool_loops.h"
#undef TARGET
#endif
#undef ELEMENT
#undef RESULT
#undef START
#undef WITH

enum { LANES = 32, HALF = 8 };

#define MOST(name, target) \
  target static float name(const float *x, int64_t n) { \
    float lanes[LANES], most = -INFINITY; \
    int64_t i = 0; \
    for (int l = 0; l < LANES; l++) lanes[l] = -INFINITY; \
    for (; i + LANES <= n; i += LANES) \
      for (int l = 0; l < LANES; l++) lanes[l] = GREATER(x[i + l], lanes[l]); \
    for (; i + HALF <= n; i += HALF) \
      for (int l = 0; l < HALF; l++) lanes[l] = GREATER(x[i + l], lanes[l]); \
    for (; i < n; i++) most = GREATER(x[i], most); \
    for (int l = 0; l < LANES; l++) most = GREATER(lanes[l], most); \
    return most; \
  }

#define MEANS(name, target) \
  target static void name(bool few, const void *sums, const double *counts, double rows, int64_t n, \
                          float *restrict out) { \
    const float *single = sums; \
    const double *wide = sums; \
    for (int64_t i = 0; i < n && few; i++) { \
      const float all = (float)(counts[i] * rows), mean = single[i] / all; \
      out[i] = all > 0 ? mean : 0.0f; \
    } \
    for (int64_t i = 0; i < n && !few; i++) { \
      const double all = counts[i] * rows; \
      const float mean = (float)(wide[i] / all); \
      out[i] = all > 0 ? mean : 0.0f; \
    } \
  }

/* One tap over places that have it inside. */
#define TAP(name, target) \
  target static void name(const float *x, int64_t stride, int32_t at, int64_t n, float *restrict most, \
                          int32_t *restrict where) { \
    for (int64_t i = 0; i < n; i++) { \
      const float v = x[i * stride]; \
      const int better = (v > most[i]) | ((v != v) & (most[i] == most[i])) | (where[i] < 0); \
      most[i] = better ? v : most[i]; \
      where[i] = better ? at + (int32_t)(i * stride) : where[i]; \
    } \
  }

typedef void (*tap_fn)(const float *x, int64_t stride, int32_t at, int64_t n, float *most, int32_t *where);

MOST(most_plain, )
MEANS(means_plain, )
TAP(tap_plain, )

#ifdef WIDE

MOST(most_narrow, NARROW)
MOST(most_wide, WIDE)
MEANS(means_narrow, NARROW)
MEANS(means_wide, WIDE)
TAP(tap_narrow, NARROW)
TAP(tap_wide, WIDE)

/* Of the three that a function is compiled as. */
static int widest(void) {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return 2;
  return __builtin_cpu_supports("avx2") != 0;
}
#define PICK(name) ((ref_pool_row[]){name##_plain, name##_narrow, name##_wide}[widest()])

float ref_pool_max(const float *x, int64_t n) {
  const int have = widest();
  return (have == 2 ? most_wide : have == 1 ? most_narrow : most_plain)(x, n);
}

void ref_pool_means(bool few, const void *sums, const double *counts, double rows, int64_t n, float *out) {
  const int have = widest();
  (have == 2 ? means_wide : have == 1 ? means_narrow : means_plain)(few, sums, counts, rows, n, out);
}

static tap_fn find_tap(void) {
  const int have = widest();
  return have == 2 ? tap_wide : have == 1 ? tap_narrow : tap_plain;
}

#else
#define PICK(name) name##_plain

void ref_pool_means(bool few, const void *sums, const double *counts, double rows, int64_t n, float *out) {
  means_plain(few, sums, counts, rows, n, out);
}

static tap_fn find_tap(void) {
  return tap_plain;
}

float ref_pool_max(const float *x, int64_t n) {
  return most_plain(x, n);
}

#endif

ref_pool_row ref_pool_max_f32_row(void) {
  return PICK(f32);
}

ref_pool_row ref_pool_max_row(int type) {
  switch (type) {
  case REF_TYPE_F32: return PICK(f32);
  case REF_TYPE_F64: return PICK(f64);
  case REF_TYPE_I8: return PICK(i8);
  case REF_TYPE_U8: return PICK(u8);
  default: return NULL;
  }
}

ref_pool_row ref_pool_sum_row(bool few) {
  return few ? PICK(few) : PICK(sum);
}

void ref_pool_where(const ref_window *w, const float *plane, int64_t z, int64_t y, int64_t first, int64_t n, float *out,
                    int32_t *where) {
  const tap_fn tap = find_tap();
  int64_t z0, z1, y0, y1, x0, x1;
  for (int64_t i = 0; i < n; i++) {
    out[i] = -INFINITY;
    where[i] = -1;
  }
  ref_window_taps(w, 0, z, z, &z0, &z1);
  ref_window_taps(w, 1, y, y, &y0, &y1);
  ref_window_taps(w, 2, first, first + n - 1, &x0, &x1);
  for (int64_t kz = z0; kz < z1; kz++) {
    const int64_t iz = z * w->stride[0] + kz * w->dilation[0] - w->pad[0];
    for (int64_t ky = y0; ky < y1; ky++) {
      const int64_t iy = y * w->stride[1] + ky * w->dilation[1] - w->pad[1];
      for (int64_t kx = x0; kx < x1; kx++) {
        int64_t from, to;
        ref_window_range(w, 2, kx, &from, &to);
        from = from > first ? from : first;
        to = to < first + n ? to : first + n;
        const int64_t at = (iz * w->in[1] + iy) * w->in[2] + from * w->stride[2] + kx * w->dilation[2] - w->pad[2];
        if (from < to) tap(plane + at, w->stride[2], (int32_t)at, to - from, out + from - first, where + from - first);
      }
    }
  }
}
