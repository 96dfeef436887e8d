/* Products of many rows with weights of few bits, for AVX-512: some columns of the weights become floats for a piece of the
 * depth at a time, which stays in the nearest cache, and are multiplied with all rows. Up to 14 rows by 32 columns stay in
 * registers meanwhile. */
#include "nbits.h"

#include <stddef.h>

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)

#include <immintrin.h>

#define WIDE __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))
#define INSIDE static inline __attribute__((always_inline, target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))

enum { MOST_ROWS = 14, LANES = 16 };

#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)

/* rows of a, a_step apart, times a tile of depth rows of NBITS_TILE; added to out where more is set. */
typedef struct operands {
  const float *a, *tile;
  float *out;
  int64_t a_step, depth;
  bool more;
} operands;

INSIDE void multiply(const operands *o, const int rows) {
  const float *a = o->a, *w = o->tile;
  float *out = o->out;
#define DECLARE(i) \
  __m512 x##i = rows > i && o->more ? _mm512_loadu_ps(out + i * NBITS_TILE) : _mm512_setzero_ps(), \
         y##i = rows > i && o->more ? _mm512_loadu_ps(out + i * NBITS_TILE + LANES) : _mm512_setzero_ps(); \
  const float *a##i = rows > i ? a + i * o->a_step : NULL;
  EACH_ROW(DECLARE)
  for (int64_t k = 0; k < o->depth; k++, w += NBITS_TILE) {
    const __m512 w0 = _mm512_loadu_ps(w), w1 = _mm512_loadu_ps(w + LANES);
#define STEP(i) \
  if (rows > i) { \
    const __m512 b = _mm512_set1_ps(a##i[k]); \
    x##i = _mm512_fmadd_ps(b, w0, x##i); \
    y##i = _mm512_fmadd_ps(b, w1, y##i); \
  }
    EACH_ROW(STEP)
  }
#define KEEP(i) \
  if (rows > i) { \
    _mm512_storeu_ps(out + i * NBITS_TILE, x##i); \
    _mm512_storeu_ps(out + i * NBITS_TILE + LANES, y##i); \
  }
  EACH_ROW(KEEP)
}

#define ROWS(n) \
  WIDE static void multiply_##n(const operands *o) { \
    multiply(o, n); \
  }
ROWS(1)
ROWS(2)
ROWS(3)
ROWS(4)
ROWS(5)
ROWS(6)
ROWS(7)
ROWS(8)
ROWS(9)
ROWS(10)
ROWS(11)
ROWS(12)
ROWS(13)
ROWS(14)

static void multiply_rows(operands o, int64_t rows) {
  static void (*const by_rows[MOST_ROWS + 1])(const operands *) = {
      NULL,       multiply_1, multiply_2,  multiply_3,  multiply_4,  multiply_5,  multiply_6, multiply_7,
      multiply_8, multiply_9, multiply_10, multiply_11, multiply_12, multiply_13, multiply_14};
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

/* Weights first to first + depth of 16 rows; columns behind the last are those of the last. first is a multiple of a block,
 * or of a tile's depth. */
WIDE static void fill_half(const nbits_rows *w, int64_t bits, int64_t columns, int64_t first, int64_t depth,
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
