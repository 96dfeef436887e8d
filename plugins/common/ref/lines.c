/* Loops over vectors of places, compiled for AVX-512, AVX2 with FMA, and the least that there is. */
#include "lines.h"

#include "types.h"

#include <string.h>

#ifndef HEDDLE_NO_LANES
enum { MOST_BLOCKS = 4, MOST_LINES = 8, MOST_TAPS = 4, MOST_TAP_LINES = 2 };
#else /* a build for its size */
enum { MOST_BLOCKS = 1, MOST_LINES = 1, MOST_TAPS = 1, MOST_TAP_LINES = 1 };
#endif

#define INSIDE static inline __attribute__((always_inline))

#define LANES 4
#define TARGET
#define NAME(x) x##_plain
#include "lines_loops.h"

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
#define LANES 8
#define TARGET __attribute__((target("avx2,fma")))
#define NAME(x) x##_narrow
#include "lines_loops.h"

#define LANES 16
#define TARGET __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))
#define NAME(x) x##_wide
#include "lines_loops.h"

enum { NONE, AVX2, AVX512 };

static int vectors(void) {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return AVX512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? AVX2 : NONE;
}

#define BY_VECTORS(name) (vectors() == AVX512 ? name##_wide : vectors() == AVX2 ? name##_narrow : name##_plain)
#else
#define BY_VECTORS(name) name##_plain
#endif

void ref_lines_sum(const ref_lines *l) {
  BY_VECTORS(sum)(l);
}

void ref_line_taps(const ref_taps *t, const float *in, float *out) {
  BY_VECTORS(taps)(t, in, out);
}

void ref_line_split(const float *in, int64_t n, float *even, float *odd) {
  BY_VECTORS(split)(in, n, even, odd);
}

void ref_line_join(const float *even, const float *odd, int64_t n, float *out) {
  BY_VECTORS(join)(even, odd, n, out);
}

void ref_line_plus(float *acc, const float *line, int64_t n) {
  BY_VECTORS(plus)(acc, line, n);
}

void ref_line_add(double *acc, const double *line, double by, int64_t n) {
  BY_VECTORS(add)(acc, line, by, n);
}

void ref_line_mix(const float *in, const int64_t *at, const double *by, int64_t count, float *out, int64_t n) {
  BY_VECTORS(mix)(in, at, by, count, out, n);
}

void ref_line_round(float *out, const double *acc, int64_t n) {
  BY_VECTORS(round)(out, acc, n);
}
