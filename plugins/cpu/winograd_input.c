/* Input tiles into Winograd's domain, 16 channels at a time: B^T d B, where row i of B^T has the coefficients of the
 * product of (x - point) over all points but point i. Points come in pairs of one magnitude, so that rows of a pair
 * differ in the sign of their odd half only. Coefficients are exact in float32. */
#include "winograd.h"

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f")))
#define INLINE static inline __attribute__((always_inline, target("avx512f")))

INLINE __m512 times(float by, __m512 a, __m512 plus) {
  return _mm512_fmadd_ps(_mm512_set1_ps(by), a, plus);
}

/* d and t are every step-th and every by-th vector of a row or column. The points are 1. */
INLINE void along_4(const __m512 *d, int step, __m512 *t, int by) {
  t[0] = _mm512_sub_ps(d[2 * step], d[0]);
  t[by] = _mm512_add_ps(d[2 * step], d[step]);
  t[2 * by] = _mm512_sub_ps(d[2 * step], d[step]);
  t[3 * by] = _mm512_sub_ps(d[3 * step], d[step]);
}

/* 3/4 and 3/2. */
INLINE void along_6(const __m512 *d, int step, __m512 *t, int by) {
  const float a = 0.75f, b = 1.5f, aa = a * a, bb = b * b;
  const __m512 d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step];
  const __m512 even_a = times(-bb, d2, d4), odd_a = times(-bb, d1, d3);
  const __m512 even_b = times(-aa, d2, d4), odd_b = times(-aa, d1, d3);
  t[0] = times(aa * bb, d[0], times(-(aa + bb), d2, d4));
  t[by] = times(a, odd_a, even_a);
  t[2 * by] = times(-a, odd_a, even_a);
  t[3 * by] = times(b, odd_b, even_b);
  t[4 * by] = times(-b, odd_b, even_b);
  t[5 * by] = times(aa * bb, d1, times(-(aa + bb), d3, d[5 * step]));
}

/* 1/2, 1 and 2. */
INLINE void along_8(const __m512 *d, int step, __m512 *t, int by) {
  const __m512 d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step], d5 = d[5 * step], d6 = d[6 * step];
  const __m512 even_a = times(4.0f, d2, times(-5.0f, d4, d6)), odd_a = times(4.0f, d1, times(-5.0f, d3, d5));
  const __m512 even_b = _mm512_add_ps(d2, times(-4.25f, d4, d6)), odd_b = _mm512_add_ps(d1, times(-4.25f, d3, d5));
  const __m512 even_c = times(0.25f, d2, times(-1.25f, d4, d6)), odd_c = times(0.25f, d1, times(-1.25f, d3, d5));
  t[0] = _mm512_sub_ps(times(5.25f, _mm512_sub_ps(d2, d4), d6), d[0]);
  t[by] = times(0.5f, odd_a, even_a);
  t[2 * by] = times(-0.5f, odd_a, even_a);
  t[3 * by] = _mm512_add_ps(even_b, odd_b);
  t[4 * by] = _mm512_sub_ps(even_b, odd_b);
  t[5 * by] = times(2.0f, odd_c, even_c);
  t[6 * by] = times(-2.0f, odd_c, even_c);
  t[7 * by] = _mm512_sub_ps(times(5.25f, _mm512_sub_ps(d3, d5), d[7 * step]), d1);
}

INLINE void along(int tile, const __m512 *d, int step, __m512 *t, int by) {
  if (tile == 4) along_4(d, step, t, by);
  else if (tile == 6) along_6(d, step, t, by);
  else along_8(d, step, t, by);
}

/* The pixels of a tile whose first is (y, x), which may lie outside: padding is 0. */
INLINE void load(const winograd_plan *plan, const float *image, int64_t y, int64_t x, int tile, __m512 *d) {
  const bool inside = y >= 0 && x >= 0 && y + tile <= plan->height && x + tile <= plan->width;
  for (int i = 0; i < tile; i++) {
    const bool row = y + i >= 0 && y + i < plan->height;
    const float *at = row ? image + (y + i) * plan->in_row : image;
    for (int j = 0; j < tile; j++) {
      const bool pixel = inside || (row && x + j >= 0 && x + j < plan->width);
      d[i * tile + j] = pixel ? _mm512_loadu_ps(at + (x + j) * plan->in_pixel) : _mm512_setzero_ps();
    }
  }
}

/* tile is a constant where this is called. */
INLINE void rows_of(const winograd_plan *plan, const float *src, int64_t from, int64_t rows, int64_t block, float *v,
                    const int tile) {
  __m512 d[WINOGRAD_MOST_TILE * WINOGRAD_MOST_TILE], t[WINOGRAD_MOST_TILE * WINOGRAD_MOST_TILE];
  __m512 out[WINOGRAD_MOST_TILE];
  for (int64_t row = from; row < from + rows; row++) {
    const float *image = src + row / plan->tiles_y * plan->in_image + block * plan->in_block;
    const int64_t y = row % plan->tiles_y * plan->kind.m - plan->top;
    for (int64_t tx = 0; tx < plan->tiles_x; tx++, v += WINOGRAD_LANES) {
      load(plan, image, y, tx * plan->kind.m - plan->left, tile, d);
      for (int j = 0; j < tile; j++) along(tile, d + j, tile, t + j, tile);
      for (int i = 0; i < tile; i++) {
        along(tile, t + i * tile, 1, out, 1);
        for (int j = 0; j < tile; j++) _mm512_storeu_ps(v + (i * tile + j) * plan->v_point, out[j]);
      }
    }
  }
}

static AVX512 void rows_of_4(const winograd_plan *plan, const float *src, int64_t from, int64_t rows, int64_t block,
                             float *v) {
  rows_of(plan, src, from, rows, block, v, 4);
}

static AVX512 void rows_of_6(const winograd_plan *plan, const float *src, int64_t from, int64_t rows, int64_t block,
                             float *v) {
  rows_of(plan, src, from, rows, block, v, 6);
}

static AVX512 void rows_of_8(const winograd_plan *plan, const float *src, int64_t from, int64_t rows, int64_t block,
                             float *v) {
  rows_of(plan, src, from, rows, block, v, 8);
}

void winograd_input(const winograd_plan *plan, const float *src, int64_t from, int64_t rows, int64_t block, float *v) {
  if (plan->kind.tile == 4) rows_of_4(plan, src, from, rows, block, v);
  else if (plan->kind.tile == 6) rows_of_6(plan, src, from, rows, block, v);
  else rows_of_8(plan, src, from, rows, block, v);
}
