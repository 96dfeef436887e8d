/* Vectors of float32 as macros, for kernels that are compiled for AVX-512 and for AVX2: VECTORS_WIDE is 1 or 0 where
 * this is included. No include guard: it is read once for each, and files that need no more than one size read it
 * once. */
#include <immintrin.h>

#undef TARGET
#undef INLINE
#undef NAME
#undef LANES
#undef vec
#undef V_LOAD
#undef V_STORE
#undef V_SET
#undef V_ADD
#undef V_SUB
#undef V_MUL
#undef V_DIV
#undef V_MULADD
#undef V_NEG_MULADD
#undef V_MAX
#undef V_MIN
#undef V_MINUS_SIZE
#undef V_BY_SIGN
#undef V_ROUND
#undef V_SCALE

/* V_MAX and V_MIN give the second where one is NaN; V_MINUS_SIZE is -|x|; V_BY_SIGN(x, a, b) is a where x is below 0.
 * */
#if VECTORS_WIDE
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
#define V_DIV _mm512_div_ps
#define V_MULADD _mm512_fmadd_ps
#define V_NEG_MULADD _mm512_fnmadd_ps
#define V_MAX _mm512_max_ps
#define V_MIN _mm512_min_ps
#define V_MINUS_SIZE(x) _mm512_or_ps(x, _mm512_set1_ps(-0.0f))
#define V_BY_SIGN(x, a, b) _mm512_mask_mov_ps(b, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ), a)
#define V_ROUND(x) _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define V_SCALE _mm512_scalef_ps
#else
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
#define V_DIV _mm256_div_ps
#define V_MULADD _mm256_fmadd_ps
#define V_NEG_MULADD _mm256_fnmadd_ps
#define V_MAX _mm256_max_ps
#define V_MIN _mm256_min_ps
#define V_MINUS_SIZE(x) _mm256_or_ps(x, _mm256_set1_ps(-0.0f))
#define V_BY_SIGN(x, a, b) _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ))
#define V_ROUND(x) _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define V_SCALE NAME(scale)

/* p * 2^n in two steps, so that results below the normal range come out right. */
TARGET static inline vec NAME(scale)(vec p, vec n) {
  const __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1), bias = _mm256_set1_epi32(127);
  const __m256i rest = _mm256_sub_epi32(whole, half);
  p = V_MUL(p, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23)));
  return V_MUL(p, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23)));
}
#endif

#define INLINE TARGET static inline __attribute__((always_inline))
