/* The innermost loops of products, compiled for AVX-512, AVX2 with FMA, and the least that there is. */
#include "gemm.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

#define BYTES 16
#define ROWS 4
#define TARGET
#define NUMBER float
#define NAME(x) JOIN(plain_f32, x)
#include "gemm_tiles.h"
#define NUMBER double
#define NAME(x) JOIN(plain_f64, x)
#include "gemm_tiles.h"
#define NUMBER uint32_t
#define NAME(x) JOIN(plain_w32, x)
#include "gemm_tiles.h"
#define NUMBER uint64_t
#define NAME(x) JOIN(plain_w64, x)
#include "gemm_tiles.h"
#undef BYTES
#undef ROWS
#undef TARGET

#define KIND(name, rows) \
  { rows, (int32_t)name##_cols, name##_tile, name##_row, name##_dot }

static const gemm_tiles plain[GEMM_KINDS] = {KIND(plain_f32, 4), KIND(plain_f64, 4), KIND(plain_w32, 4),
                                             KIND(plain_w64, 4)};

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)

#define BYTES 32
#define ROWS 6
#define TARGET __attribute__((target("avx2,fma")))
#define NUMBER float
#define NAME(x) JOIN(narrow_f32, x)
#include "gemm_tiles.h"
#define NUMBER double
#define NAME(x) JOIN(narrow_f64, x)
#include "gemm_tiles.h"
#define NUMBER uint32_t
#define NAME(x) JOIN(narrow_w32, x)
#include "gemm_tiles.h"
#define NUMBER uint64_t
#define NAME(x) JOIN(narrow_w64, x)
#include "gemm_tiles.h"
#undef BYTES
#undef ROWS
#undef TARGET

#define BYTES 64
#define ROWS 8
#define TARGET __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))
#define NUMBER float
#define NAME(x) JOIN(wide_f32, x)
#include "gemm_tiles.h"
#define NUMBER double
#define NAME(x) JOIN(wide_f64, x)
#include "gemm_tiles.h"
#define NUMBER uint32_t
#define NAME(x) JOIN(wide_w32, x)
#include "gemm_tiles.h"
#define NUMBER uint64_t
#define NAME(x) JOIN(wide_w64, x)
#include "gemm_tiles.h"

static const gemm_tiles narrow[GEMM_KINDS] = {KIND(narrow_f32, 6), KIND(narrow_f64, 6), KIND(narrow_w32, 6),
                                              KIND(narrow_w64, 6)};
static const gemm_tiles wide[GEMM_KINDS] = {KIND(wide_f32, 8), KIND(wide_f64, 8), KIND(wide_w32, 8), KIND(wide_w64, 8)};

const gemm_tiles *gemm_tiles_of(int kind) {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return &wide[kind];
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &narrow[kind] : &plain[kind];
}

#else

const gemm_tiles *gemm_tiles_of(int kind) {
  return &plain[kind];
}

#endif
