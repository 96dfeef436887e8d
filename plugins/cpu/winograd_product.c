/* Products in Winograd's domain: for each position of the tile, tiles x channels times channels x result channels. Up to
 * 14 tiles by 32 channels stay in registers while all input channels go by. docs/decisions/cpu.md compares it with
 * oneDNN's. */
#include "winograd.h"

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f")))
#define INLINE static inline __attribute__((always_inline, target("avx512f")))

enum { MOST_ROWS = 14 };

/* X for each row that the registers have. */
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)

/* step: from one block of v to the next. */
typedef struct operands {
  const float *v, *weights;
  float *out;
  int64_t step, blocks;
} operands;

/* rows and two are constants wherever this is called, so that what they leave out is not compiled. */
INLINE void multiply(const operands *o, const int rows, const bool two) {
  const float *v = o->v, *w = o->weights;
  float *out = o->out;
#define DECLARE(i) __m512 a##i = _mm512_setzero_ps(), b##i = _mm512_setzero_ps();
  EACH_ROW(DECLARE)
  for (int64_t c = 0; c < o->blocks; c++, v += o->step) {
    for (int k = 0; k < WINOGRAD_LANES; k++) {
      const __m512 w0 = _mm512_loadu_ps(w), w1 = two ? _mm512_loadu_ps(w + WINOGRAD_LANES) : w0;
#define STEP(i) \
  if (rows > i) { \
    const __m512 x = _mm512_set1_ps(v[i * WINOGRAD_LANES + k]); \
    a##i = _mm512_fmadd_ps(x, w0, a##i); \
    if (two) b##i = _mm512_fmadd_ps(x, w1, b##i); \
  }
      EACH_ROW(STEP)
      w += two ? WINOGRAD_GROUP : WINOGRAD_LANES;
    }
  }
#define KEEP(i) \
  if (rows > i) { \
    _mm512_storeu_ps(out, a##i); \
    if (two) _mm512_storeu_ps(out + WINOGRAD_LANES, b##i); \
    out += two ? WINOGRAD_GROUP : WINOGRAD_LANES; \
  }
  EACH_ROW(KEEP)
}

#define ROWS(n) \
  static AVX512 void multiply_##n(const operands *o, bool two) { \
    if (two) multiply(o, n, true); \
    else multiply(o, n, false); \
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

void winograd_product(const float *v, int64_t tiles, int64_t blocks, const float *weights, int64_t lanes, float *out) {
  static void (*const by_rows[MOST_ROWS + 1])(const operands *, bool) = {
      NULL,       multiply_1, multiply_2,  multiply_3,  multiply_4,  multiply_5,  multiply_6, multiply_7,
      multiply_8, multiply_9, multiply_10, multiply_11, multiply_12, multiply_13, multiply_14};
  const int64_t passes = (tiles + MOST_ROWS - 1) / MOST_ROWS;
  for (int64_t i = 0; i < passes; i++) {
    const int64_t from = tiles * i / passes, to = tiles * (i + 1) / passes;
    const operands o = {
        .v = v + from * WINOGRAD_LANES,
        .weights = weights,
        .out = out + from * lanes,
        .step = tiles * WINOGRAD_LANES,
        .blocks = blocks,
    };
    by_rows[to - from](&o, lanes == WINOGRAD_GROUP);
  }
}
