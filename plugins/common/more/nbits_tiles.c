/* Products of many rows with weights of few bits, for AVX-512: some columns of the weights become floats for a piece of the
 * depth at a time, which stays in the nearest cache, and are multiplied with all rows. Up to 14 rows by 32 columns stay in
 * registers meanwhile. */
#include "nbits.h"

#include <stddef.h>

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))

enum { MOST_ROWS = 14, LANES = 16, TILE_STEP = NBITS_TILE };

#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)
#define VEC __m512
#define LOAD _mm512_loadu_ps
#define STORE _mm512_storeu_ps
#define ZERO _mm512_setzero_ps
#define SET _mm512_set1_ps
#define FMADD _mm512_fmadd_ps
#include "nbits_product.h"

/* Weights first to first + depth of 16 rows; columns behind the last are those of the last. first is a multiple of a block,
 * or of a tile's depth. */
TARGET static void fill_half(const nbits_rows *w, int64_t bits, int64_t columns, int64_t first, int64_t depth,
                             float *out) {
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i row = _mm512_min_epi32(lane, _mm512_set1_epi32((int)columns - 1));
  const __m512i rows =
      _mm512_mullo_epi64(_mm512_cvtepi32_epi64(_mm512_castsi512_si256(row)), _mm512_set1_epi64(w->q_step));
  const __m512i more_rows =
      _mm512_mullo_epi64(_mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(row, 1)), _mm512_set1_epi64(w->q_step));
  const __m512i scales = _mm512_mullo_epi32(row, _mm512_set1_epi32((int)w->scale_step));
  const __m512i mask = _mm512_set1_epi32((1 << bits) - 1);
  const __m128i by = _mm_cvtsi64_si128(bits);
  const __m512 half = _mm512_set1_ps((float)(1 << (bits - 1)));
  const int64_t each = 32 / bits;
  __m512 scale = _mm512_setzero_ps(), offset = scale;
  int64_t block = -1;
  for (int64_t k = 0; k < depth; k += each) {
    if ((first + k) / w->block != block) {
      block = (first + k) / w->block;
      scale = _mm512_i32gather_ps(scales, w->scales + block, 4);
      offset = half;
      if (w->zeros != NULL) offset = _mm512_add_ps(half, _mm512_i32gather_ps(scales, w->zeros + block, 4));
      offset = _mm512_mul_ps(offset, scale);
    }
    const uint8_t *at = w->q + (first + k) * bits / 8;
    __m512i q = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_i64gather_epi32(rows, at, 1)),
                                   _mm512_i64gather_epi32(more_rows, at, 1), 1);
    const int64_t count = depth - k < each ? depth - k : each;
    for (int64_t j = 0; j < count; j++, out += NBITS_TILE, q = _mm512_srl_epi32(q, by))
      _mm512_storeu_ps(out, _mm512_fmsub_ps(_mm512_cvtepi32_ps(_mm512_and_si512(q, mask)), scale, offset));
  }
}

void nbits_multiply_tiles(const nbits_rows *w, int64_t bits, int64_t columns, const float *a, int64_t rows,
                          int64_t depth, float *tile, float *out) {
  for (int64_t k = 0; k < depth; k += NBITS_TILE_DEPTH) {
    const int64_t count = depth - k < NBITS_TILE_DEPTH ? depth - k : NBITS_TILE_DEPTH;
    nbits_rows right = *w;
    if (columns > LANES) {
      right.q += LANES * w->q_step;
      right.scales += LANES * w->scale_step;
      if (w->zeros != NULL) right.zeros += LANES * w->scale_step;
    }
    fill_half(w, bits, columns < LANES ? columns : LANES, k, count, tile);
    fill_half(&right, bits, columns > LANES ? columns - LANES : columns, k, count, tile + LANES);
    multiply_rows((operands){a + k, tile, out, depth, count, k > 0}, rows);
  }
}

bool nbits_has_tiles(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

#else

void nbits_multiply_tiles(const nbits_rows *w, int64_t bits, int64_t columns, const float *a, int64_t rows,
                          int64_t depth, float *tile, float *out) {
  (void)w, (void)bits, (void)columns, (void)a, (void)rows, (void)depth, (void)tile, (void)out;
}

bool nbits_has_tiles(void) {
  return false;
}

#endif
