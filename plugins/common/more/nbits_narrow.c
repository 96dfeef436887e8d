/* Products of many rows with weights that become floats, for AVX2: as nbits_tiles.c, but any function fills rows of weights, which
 * are turned into columns here. Half of a tile stays in the nearest cache for all rows; 6 rows by 16 columns stay in registers. */
#include "nbits.h"

#include <stddef.h>
#include <string.h>

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma")))

enum { MOST_ROWS = 6, LANES = 8, HALF = NBITS_TILE / 2, TILE_STEP = HALF };

#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define VEC __m256
#define LOAD _mm256_loadu_ps
#define STORE _mm256_storeu_ps
#define ZERO _mm256_setzero_ps
#define SET _mm256_set1_ps
#define FMADD _mm256_fmadd_ps
#include "nbits_product.h"

/* Eight rows, NBITS_DEEPEST apart, to columns of numbers HALF apart. */
TARGET static void turn(const float *from, int64_t depth, float *to) {
  int64_t k = 0;
  for (; k + LANES <= depth; k += LANES) {
    __m256 r[LANES], s[LANES];
    for (int i = 0; i < LANES; i++) r[i] = _mm256_loadu_ps(from + i * NBITS_DEEPEST + k);
    for (int i = 0; i < LANES; i += 2) {
      s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
      s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < LANES; i += 4) {
      r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
      r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xee);
      r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
      r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
      _mm256_storeu_ps(to + (k + i) * HALF, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
      _mm256_storeu_ps(to + (k + i + 4) * HALF, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
  }
  for (; k < depth; k++)
    for (int i = 0; i < LANES; i++) to[k * HALF + i] = from[i * NBITS_DEEPEST + k];
}

void nbits_multiply_narrow(nbits_fill fill, const void *of, int64_t columns, const float *a, int64_t rows,
                           int64_t depth, float *tile, float *out) {
  float *piece = tile + NBITS_DEEPEST * HALF;
  for (int64_t k = 0; k < depth; k += NBITS_DEEPEST) {
    const int64_t count = depth - k < NBITS_DEEPEST ? depth - k : NBITS_DEEPEST;
    for (int64_t first = 0; first < columns; first += HALF) {
      for (int64_t n = first; n < first + HALF; n += LANES) {
        for (int64_t i = 0; i < LANES; i++) {
          if (n + i < columns) fill(of, n + i, k, count, piece + i * NBITS_DEEPEST);
          else memset(piece + i * NBITS_DEEPEST, 0, (size_t)count * sizeof *piece);
        }
        turn(piece, count, tile + (n - first));
      }
      multiply_rows((operands){a + k, tile, out + first, depth, count, k > 0}, rows);
    }
  }
}

bool nbits_has_narrow(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && !nbits_has_tiles();
}

#else

void nbits_multiply_narrow(nbits_fill fill, const void *of, int64_t columns, const float *a, int64_t rows,
                           int64_t depth, float *tile, float *out) {
  (void)fill, (void)of, (void)columns, (void)a, (void)rows, (void)depth, (void)tile, (void)out;
}

bool nbits_has_narrow(void) {
  return false;
}

#endif
