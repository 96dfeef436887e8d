/* The vectorised kernels of onednn_rows.h, for AVX-512 and for AVX2, whichever the CPU has. This file is only built with
 * oneDNN, which is for x86-64. */
#include "onednn_rows.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#define VECTORS_WIDE 1
#include "vectors.h"

TARGET static inline float NAME(most_of)(vec x) {
  return _mm512_reduce_max_ps(x);
}

TARGET static inline float NAME(sum_of)(vec x) {
  return _mm512_reduce_add_ps(x);
}

#include "onednn_rows_lanes.h"

#undef VECTORS_WIDE
#define VECTORS_WIDE 0
#include "vectors.h"

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
