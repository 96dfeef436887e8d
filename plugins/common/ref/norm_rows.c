/* The loops of normalisations, compiled for AVX-512, AVX2, and the least that there is. */
#include "norm_rows.h"

#include "types.h"

#include <math.h>
#include <stddef.h>

enum { LANES = 32 };

#define ROWS(kind) \
  { \
    kind##_sum, kind##_sizes, kind##_squares, kind##_shift, kind##_scale, kind##_add_columns, kind##_divisors, \
        kind##_divide \
  }

#define TARGET
#define ELEMENT float
#define NAME(x) plain_f32_##x
#include "norm_loops.h"
#define ELEMENT double
#define NAME(x) plain_f64_##x
#include "norm_loops.h"
#undef TARGET

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)

#define TARGET __attribute__((target("avx2,fma")))
#define ELEMENT float
#define NAME(x) narrow_f32_##x
#include "norm_loops.h"
#define ELEMENT double
#define NAME(x) narrow_f64_##x
#include "norm_loops.h"
#undef TARGET

#define TARGET __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))
#define ELEMENT float
#define NAME(x) wide_f32_##x
#include "norm_loops.h"
#define ELEMENT double
#define NAME(x) wide_f64_##x
#include "norm_loops.h"
#undef TARGET

const ref_norm_rows *ref_norm_rows_of(bool wide) {
  static const ref_norm_rows rows[][2] = {
      {ROWS(plain_f32), ROWS(plain_f64)}, {ROWS(narrow_f32), ROWS(narrow_f64)}, {ROWS(wide_f32), ROWS(wide_f64)}};
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return &rows[2][wide];
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &rows[1][wide] : &rows[0][wide];
}

#else

const ref_norm_rows *ref_norm_rows_of(bool wide) {
  static const ref_norm_rows rows[2] = {ROWS(plain_f32), ROWS(plain_f64)};
  return &rows[wide];
}

#endif
