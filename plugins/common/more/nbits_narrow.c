/* Products of many rows with weights that become floats, for AVX2: as nbits_tiles.c, but any function fills rows of weights, which
 * are turned into columns here. Half of a tile stays in the nearest cache for all rows; 6 rows by 16 columns stay in registers. */
#include "nbits.h"

#include <stddef.h>
#include <string.h>

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)

#include <immintrin.h>

#define NARROW __attribute__((target("avx2,fma")))
#define INSIDE static inline __attribute__((always_inline, target("avx2,fma")))

enum { MOST_ROWS = 6, LANES = 8, HALF = NBITS_TILE / 2 };

#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5)

/* rows of a, a_step apart, times depth rows of HALF numbers; added to out where more is set. */
typedef struct operands {
  const float *a, *half;
  float *out;
  int64_t a_step, depth;
  bool more;
} operands;

INSIDE void multiply(const operands *o, const int rows) {
  const float *a = o->a, *w = o->half;
  float *out = o->out;
#define DECLARE(i) \
  __m256 x##i = rows > i && o->more ? _mm256_loadu_ps(out + i * NBITS_TILE) : _mm256_setzero_ps(), \
         y##i = rows > i && o->more ? _mm256_loadu_ps(out + i * NBITS_TILE + LANES) : _mm256_setzero_ps(); \
  const float *a##i = rows > i ? a + i * o->a_step : NULL;
  EACH_ROW(DECLARE)
  for (int64_t k = 0; k < o->depth; k++, w += HALF) {
    const __m256 w0 = _mm256_loadu_ps(w), w1 = _mm256_loadu_ps(w + LANES);
#define STEP(i) \
  if (rows > i) { \
    const __m256 b = _mm256_broadcast_ss(a##i + k); \
    x##i = _mm256_fmadd_ps(b, w0, x##i); \
    y##i = _mm256_fmadd_ps(b, w1, y##i); \
  }
    EACH_ROW(STEP)
  }
#define KEEP(i) \
  if (rows > i) { \
    _mm256_storeu_ps(out + i * NBITS_TILE, x##i); \
    _mm256_storeu_ps(out + i * NBITS_TILE + LANES, y##i); \
  }
  EACH_ROW(KEEP)
}

#define ROWS(n) \
  NARROW static void multiply_##n(const operands *o) { \
    multiply(o, n); \
  }
ROWS(1)
ROWS(2)
ROWS(3)
ROWS(4)
ROWS(5)
ROWS(6)

static void multiply_rows(operands o, int64_t rows) {
  static void (*const by_rows[MOST_ROWS + 1])(const operands *) = {NULL,       multiply_1, multiply_2, multiply_3,
                                                                   multiply_4, multiply_5, multiply_6};
  const int64_t passes = (rows + MOST_ROWS - 1) / MOST_ROWS;
  const float *a = o.a;
  float *out = o.out;
  for (int64_t i = 0; i < passes; i++) {
    const int64_t from = rows * i / passes, to = rows * (i + 1) / passes;
    o.a = a + from * o.a_step;
    o.out = out + from * NBITS_TILE;
    by_rows[to - from](&o);
  }
}

/* Eight rows, NBITS_DEEPEST apart, to columns of numbers HALF apart. */
NARROW static void turn(const float *from, int64_t depth, float *to) {
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
