/* Vectors of 16 channels, as the transforms into Winograd's domain and back use them; for files that need AVX-512. */
#ifndef HEDDLE_PLUGINS_CPU_WINOGRAD_LANES_H
#define HEDDLE_PLUGINS_CPU_WINOGRAD_LANES_H

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f")))
#define INLINE static inline __attribute__((always_inline, target("avx512f")))

INLINE __m512 times(float by, __m512 a, __m512 plus) {
  return _mm512_fmadd_ps(_mm512_set1_ps(by), a, plus);
}

INLINE __m512 get(const float *from) {
  return _mm512_loadu_ps(from);
}

INLINE void put(float *to, __m512 a) {
  _mm512_storeu_ps(to, a);
}

#endif
