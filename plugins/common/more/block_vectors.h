/* What products with blocks have in common in AVX2: included inside of what has it (block_lanes.c, block_bytes.c, block_tiles.c). */
#ifndef HEDDLE_PLUGINS_COMMON_MORE_BLOCK_VECTORS_H
#define HEDDLE_PLUGINS_COMMON_MORE_BLOCK_VECTORS_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define NARROW __attribute__((target("avx2,fma,f16c")))
#define INSIDE static inline __attribute__((always_inline))

NARROW INSIDE float half_of(const uint8_t *at) {
  return _cvtsh_ss((uint16_t)(at[0] | at[1] << 8));
}

NARROW INSIDE float total(__m256 x) {
  __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  y = _mm_add_ps(y, _mm_movehl_ps(y, y));
  return _mm_cvtss_f32(_mm_add_ss(y, _mm_shuffle_ps(y, y, 1)));
}

NARROW INSIDE __m128i load_16(const uint8_t *at) {
  return _mm_loadu_si128((const __m128i *)(const void *)at);
}

/* Scales and minima of a block, of six bits each, as eight floats; minus m times the minima. */
NARROW INSIDE void scales_of(const uint8_t *b, float d, float m, float *scales, __m256 *least) {
  uint32_t w[3];
  memcpy(w, b + 4, sizeof w);
  const uint32_t six = 0x3f3f3f3fU, four = 0x0f0f0f0fU, two = 0x30303030U;
  const uint32_t s0 = w[0] & six, m0 = w[1] & six, s1 = (w[2] & four) | (w[0] >> 2 & two),
                 m1 = (w[2] >> 4 & four) | (w[1] >> 2 & two);
  const __m128i s = _mm_set_epi32(0, 0, (int)s1, (int)s0), l = _mm_set_epi32(0, 0, (int)m1, (int)m0);
  _mm256_storeu_ps(scales, _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(s)), _mm256_set1_ps(d)));
  *least = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(l)), _mm256_set1_ps(-m));
}

/* 16 integers of a nibble and two bits above it, from 0 on. */
NARROW INSIDE __m128i six_bits(__m128i nibble, __m128i above) {
  return _mm_or_si128(_mm_and_si128(nibble, _mm_set1_epi8(15)), _mm_and_si128(above, _mm_set1_epi8(0x30)));
}

#endif
