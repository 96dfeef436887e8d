/* Input tiles into Winograd's domain, 16 channels at a time: B^T d B, where row i of B^T has the coefficients of the
 * product of (x - point) over all points but point i. Points come in pairs of one magnitude, so that rows of a pair
 * differ in the sign of their odd half only. Coefficients are exact in float32. */
#include "winograd.h"
#include "winograd_lanes.h"

/* From vectors that are step floats apart to ones that are by floats apart. The points are 1. */
INLINE void along_4(const float *d, int64_t step, float *t, int64_t by) {
  const __m512 d1 = get(d + step), d2 = get(d + 2 * step);
  put(t, _mm512_sub_ps(d2, get(d)));
  put(t + by, _mm512_add_ps(d2, d1));
  put(t + 2 * by, _mm512_sub_ps(d2, d1));
  put(t + 3 * by, _mm512_sub_ps(get(d + 3 * step), d1));
}

/* 3/4 and 3/2. */
INLINE void along_6(const float *d, int64_t step, float *t, int64_t by) {
  const float a = 0.75f, b = 1.5f, aa = a * a, bb = b * b;
  const __m512 d1 = get(d + step), d2 = get(d + 2 * step), d3 = get(d + 3 * step), d4 = get(d + 4 * step);
  const __m512 even_a = times(-bb, d2, d4), odd_a = times(-bb, d1, d3);
  const __m512 even_b = times(-aa, d2, d4), odd_b = times(-aa, d1, d3);
  put(t, times(aa * bb, get(d), times(-(aa + bb), d2, d4)));
  put(t + by, times(a, odd_a, even_a));
  put(t + 2 * by, times(-a, odd_a, even_a));
  put(t + 3 * by, times(b, odd_b, even_b));
  put(t + 4 * by, times(-b, odd_b, even_b));
  put(t + 5 * by, times(aa * bb, d1, times(-(aa + bb), d3, get(d + 5 * step))));
}

/* 1/2, 1 and 2. */
INLINE void along_8(const float *d, int64_t step, float *t, int64_t by) {
  const __m512 d1 = get(d + step), d2 = get(d + 2 * step), d3 = get(d + 3 * step), d4 = get(d + 4 * step);
  const __m512 d5 = get(d + 5 * step), d6 = get(d + 6 * step);
  const __m512 even_a = times(4.0f, d2, times(-5.0f, d4, d6)), odd_a = times(4.0f, d1, times(-5.0f, d3, d5));
  const __m512 even_b = _mm512_add_ps(d2, times(-4.25f, d4, d6)), odd_b = _mm512_add_ps(d1, times(-4.25f, d3, d5));
  const __m512 even_c = times(0.25f, d2, times(-1.25f, d4, d6)), odd_c = times(0.25f, d1, times(-1.25f, d3, d5));
  put(t, _mm512_sub_ps(times(5.25f, _mm512_sub_ps(d2, d4), d6), get(d)));
  put(t + by, times(0.5f, odd_a, even_a));
  put(t + 2 * by, times(-0.5f, odd_a, even_a));
  put(t + 3 * by, _mm512_add_ps(even_b, odd_b));
  put(t + 4 * by, _mm512_sub_ps(even_b, odd_b));
  put(t + 5 * by, times(2.0f, odd_c, even_c));
  put(t + 6 * by, times(-2.0f, odd_c, even_c));
  put(t + 7 * by, _mm512_sub_ps(times(5.25f, _mm512_sub_ps(d3, d5), get(d + 7 * step)), d1));
}

INLINE void along(int tile, const float *d, int64_t step, float *t, int64_t by) {
  if (tile == 4) along_4(d, step, t, by);
  else if (tile == 6) along_6(d, step, t, by);
  else along_8(d, step, t, by);
}

/* Copies a tile whose first pixel is (y, x), and that leaves the image: padding is 0. */
INLINE void copy(const winograd_plan *plan, const float *image, int64_t y, int64_t x, int tile, float *to) {
  for (int i = 0; i < tile; i++)
    for (int j = 0; j < tile; j++, to += WINOGRAD_LANES) {
      const bool there = y + i >= 0 && y + i < plan->height && x + j >= 0 && x + j < plan->width;
      put(to, there ? get(image + (y + i) * plan->in_row + (x + j) * plan->in_pixel) : _mm512_setzero_ps());
    }
}

/* tile is a constant where this is called. */
INLINE void rows_of(const winograd_plan *plan, const float *src, int64_t from, int64_t rows, int64_t block, float *v,
                    const int tile) {
  enum { LANES = WINOGRAD_LANES, MOST = WINOGRAD_MOST_TILE * WINOGRAD_MOST_TILE * LANES };
  _Alignas(64) float edge[MOST], t[MOST];
  for (int64_t row = from; row < from + rows; row++) {
    const float *image = src + row / plan->tiles_y * plan->in_image + block * plan->in_block;
    const int64_t y = row % plan->tiles_y * plan->kind.m - plan->top;
    for (int64_t tx = 0; tx < plan->tiles_x; tx++, v += LANES) {
      const int64_t x = tx * plan->kind.m - plan->left;
      if (y >= 0 && x >= 0 && y + tile <= plan->height && x + tile <= plan->width) {
        const float *d = image + y * plan->in_row + x * plan->in_pixel;
        for (int j = 0; j < tile; j++) along(tile, d + j * plan->in_pixel, plan->in_row, t + j * LANES, tile * LANES);
      } else {
        copy(plan, image, y, x, tile, edge);
        for (int j = 0; j < tile; j++) along(tile, edge + j * LANES, tile * LANES, t + j * LANES, tile * LANES);
      }
      for (int i = 0; i < tile; i++)
        along(tile, t + i * tile * LANES, LANES, v + i * tile * plan->v_point, plan->v_point);
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
