/* The vectorised kernels of onednn_rows.h, for AVX-512 and for AVX2, whichever the CPU has. This file is only built with
 * oneDNN, which is for x86-64. */
#include "onednn_rows.h"

#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#define TARGET __attribute__((target("avx512f,avx512dq,fma")))
#define NAME(x) x##_512
#define LANES 16
#define vec __m512
#define V_LOAD _mm512_loadu_ps
#define V_STORE _mm512_storeu_ps
#define V_SET _mm512_set1_ps
#define V_ADD _mm512_add_ps
#define V_SUB _mm512_sub_ps
#define V_MUL _mm512_mul_ps
#define V_MULADD _mm512_fmadd_ps
#define V_NEG_MULADD _mm512_fnmadd_ps
#define V_MAX _mm512_max_ps /* the second where one is NaN */
#define V_ROUND(x) _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define V_SCALE _mm512_scalef_ps

TARGET static inline float NAME(most_of)(vec x) {
  return _mm512_reduce_max_ps(x);
}

TARGET static inline float NAME(sum_of)(vec x) {
  return _mm512_reduce_add_ps(x);
}

#include "onednn_rows_lanes.h"

#undef TARGET
#undef NAME
#undef LANES
#undef vec
#undef V_LOAD
#undef V_STORE
#undef V_SET
#undef V_ADD
#undef V_SUB
#undef V_MUL
#undef V_MULADD
#undef V_NEG_MULADD
#undef V_MAX
#undef V_ROUND
#undef V_SCALE

#define TARGET __attribute__((target("avx2,fma")))
#define NAME(x) x##_256
#define LANES 8
#define vec __m256
#define V_LOAD _mm256_loadu_ps
#define V_STORE _mm256_storeu_ps
#define V_SET _mm256_set1_ps
#define V_ADD _mm256_add_ps
#define V_SUB _mm256_sub_ps
#define V_MUL _mm256_mul_ps
#define V_MULADD _mm256_fmadd_ps
#define V_NEG_MULADD _mm256_fnmadd_ps
#define V_MAX _mm256_max_ps
#define V_ROUND(x) _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define V_SCALE NAME(scale)

TARGET static inline float NAME(most_of)(vec x) {
  float most, lane[LANES];
  V_STORE(lane, x);
  most = lane[0];
  for (int i = 1; i < LANES; i++) most = lane[i] > most ? lane[i] : most;
  return most;
}

TARGET static inline float NAME(sum_of)(vec x) {
  float lane[LANES];
  V_STORE(lane, x);
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

/* p * 2^n in two steps, so that results below the normal range come out right. */
TARGET static inline vec NAME(scale)(vec p, vec n) {
  const __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1), bias = _mm256_set1_epi32(127);
  const __m256i rest = _mm256_sub_epi32(whole, half);
  p = V_MUL(p, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23)));
  return V_MUL(p, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23)));
}

#include "onednn_rows_lanes.h"

__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) void onednn_narrow(uint16_t *out, const float *in,
                                                                                   int64_t n) {
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 which = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : (__mmask16)0xffff;
    const __m512 wide = _mm512_maskz_loadu_ps(which, in + i);
    _mm256_mask_storeu_epi16(out + i, which, (__m256i)_mm512_cvtneps_pbh(wide));
  }
}

static bool has_512(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
}

static bool has_256(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

onednn_softmax_row onednn_find_softmax(void) {
  return has_512() ? softmax_512 : has_256() ? softmax_256 : NULL;
}

onednn_few_rows onednn_find_dots(void) {
  return has_512() ? dots_512 : has_256() ? dots_256 : NULL;
}

onednn_few_rows onednn_find_sums(void) {
  return has_512() ? sums_512 : has_256() ? sums_256 : NULL;
}
