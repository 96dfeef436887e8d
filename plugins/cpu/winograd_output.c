/* Products of a group of result channels back from Winograd's domain, 16 channels at a time: A^T m A, where A^T has the
 * powers of the points, then bias and what the chain computes on the result. */
#include "winograd.h"
#include "winograd_lanes.h"

/* The most results of a tile, along one direction. */
enum { MOST = 4 };

/* From vectors that are step floats apart to ones that are by floats apart. */
INLINE void along_4(const float *p, int64_t step, float *y, int64_t by) {
  const __m512 p1 = get(p + step), p2 = get(p + 2 * step);
  put(y, _mm512_add_ps(get(p), _mm512_add_ps(p1, p2)));
  put(y + by, _mm512_add_ps(get(p + 3 * step), _mm512_sub_ps(p1, p2)));
}

INLINE void along_6(int m, const float *p, int64_t step, float *y, int64_t by) {
  const float a = 0.75f, b = 1.5f;
  const __m512 p1 = get(p + step), p2 = get(p + 2 * step), p3 = get(p + 3 * step), p4 = get(p + 4 * step);
  const __m512 sum_a = _mm512_add_ps(p1, p2), odd_a = _mm512_sub_ps(p1, p2);
  const __m512 sum_b = _mm512_add_ps(p3, p4), odd_b = _mm512_sub_ps(p3, p4);
  const __m512 last = get(p + 5 * step), none = _mm512_setzero_ps();
  put(y, _mm512_add_ps(get(p), _mm512_add_ps(sum_a, sum_b)));
  put(y + by, times(a, odd_a, times(b, odd_b, m == 2 ? last : none)));
  if (m == 2) return;
  put(y + 2 * by, times(a * a, sum_a, times(b * b, sum_b, none)));
  put(y + 3 * by, times(a * a * a, odd_a, times(b * b * b, odd_b, last)));
}

INLINE void along_8(const float *p, int64_t step, float *y, int64_t by) {
  const __m512 p1 = get(p + step), p2 = get(p + 2 * step), p3 = get(p + 3 * step), p4 = get(p + 4 * step);
  const __m512 p5 = get(p + 5 * step), p6 = get(p + 6 * step);
  const __m512 sum_a = _mm512_add_ps(p1, p2), odd_a = _mm512_sub_ps(p1, p2);
  const __m512 sum_b = _mm512_add_ps(p3, p4), odd_b = _mm512_sub_ps(p3, p4);
  const __m512 sum_c = _mm512_add_ps(p5, p6), odd_c = _mm512_sub_ps(p5, p6);
  put(y, _mm512_add_ps(_mm512_add_ps(get(p), sum_a), _mm512_add_ps(sum_b, sum_c)));
  put(y + by, times(0.5f, odd_a, times(2.0f, odd_c, odd_b)));
  put(y + 2 * by, times(0.25f, sum_a, times(4.0f, sum_c, sum_b)));
  put(y + 3 * by, times(0.125f, odd_a, times(8.0f, odd_c, _mm512_add_ps(odd_b, get(p + 7 * step)))));
}

INLINE void along(int tile, int m, const float *p, int64_t step, float *y, int64_t by) {
  if (tile == 4) along_4(p, step, y, by);
  else if (tile == 6) along_6(m, p, step, y, by);
  else along_8(p, step, y, by);
}

/* A NaN stays one: max and min give their second operand then. */
INLINE __m512 finish(const winograd_plan *plan, const float *const *adds, int64_t at, __m512 y) {
  const __m512 none = _mm512_setzero_ps();
  for (uint32_t i = 0; i < plan->n_posts; i++) {
    const winograd_post *post = &plan->posts[i];
    if (post->kind == WINOGRAD_ADD) {
      y = _mm512_add_ps(y, _mm512_loadu_ps(adds[i] + at));
    } else if (post->kind == WINOGRAD_CLIP) {
      y = _mm512_min_ps(_mm512_set1_ps(post->beta), _mm512_max_ps(_mm512_set1_ps(post->alpha), y));
    } else if (post->alpha == 0) {
      y = _mm512_max_ps(none, y);
    } else {
      y = times(post->alpha, _mm512_min_ps(none, y), _mm512_max_ps(none, y));
    }
  }
  return y;
}

/* tile and m are constants where this is called. */
INLINE void rows_of(const winograd_plan *plan, const float *p, int64_t lanes, int64_t from, int64_t rows, __m512 bias,
                    const float *const *adds, float *dst, int64_t offset, const int tile, const int m) {
  enum { LANES = WINOGRAD_LANES };
  _Alignas(64) float t[MOST * WINOGRAD_MOST_TILE * LANES], y[MOST * LANES];
  for (int64_t row = from; row < from + rows; row++) {
    const int64_t top = row % plan->tiles_y * m, image = row / plan->tiles_y * plan->out_image + offset;
    const int64_t high = plan->out_height - top < m ? plan->out_height - top : m;
    for (int64_t tx = 0; tx < plan->tiles_x; tx++, p += lanes) {
      const int64_t left = tx * m, wide = plan->out_width - left < m ? plan->out_width - left : m;
      for (int j = 0; j < tile; j++)
        along(tile, m, p + j * plan->m_point, tile * plan->m_point, t + j * LANES, tile * LANES);
      for (int i = 0; i < high; i++) {
        along(tile, m, t + i * tile * LANES, LANES, y, LANES);
        const int64_t at = image + (top + i) * plan->out_row + left * plan->out_pixel;
        for (int j = 0; j < wide; j++) {
          const int64_t pixel = at + j * plan->out_pixel;
          put(dst + pixel, finish(plan, adds, pixel, _mm512_add_ps(get(y + j * LANES), bias)));
        }
      }
    }
  }
}

#define KIND(tile, m) \
  static AVX512 void rows_of_##tile##_##m(const winograd_plan *plan, const float *p, int64_t lanes, int64_t from, \
                                          int64_t rows, __m512 bias, const float *const *adds, float *dst, \
                                          int64_t offset) { \
    rows_of(plan, p, lanes, from, rows, bias, adds, dst, offset, tile, m); \
  }
KIND(4, 2)
KIND(6, 4)
KIND(6, 2)
KIND(8, 4)

AVX512 void winograd_output(const winograd_plan *plan, const float *m, int64_t from, int64_t rows, int64_t group,
                            const float *bias, const float *const *adds, float *dst) {
  const int64_t blocks = plan->out_blocks - 2 * group < 2 ? plan->out_blocks - 2 * group : 2;
  for (int64_t i = 0; i < blocks; i++) {
    const int64_t block = 2 * group + i, left = plan->out_channels - block * WINOGRAD_LANES;
    const __mmask16 there = left >= WINOGRAD_LANES ? 0xffff : (__mmask16)((1U << left) - 1);
    const __m512 b = plan->has_bias ? _mm512_maskz_loadu_ps(there, bias + block * WINOGRAD_LANES) : _mm512_setzero_ps();
    const float *p = m + i * WINOGRAD_LANES;
    const int64_t lanes = blocks * WINOGRAD_LANES, offset = block * plan->out_block;
    if (plan->kind.tile == 4) rows_of_4_2(plan, p, lanes, from, rows, b, adds, dst, offset);
    else if (plan->kind.tile == 8) rows_of_8_4(plan, p, lanes, from, rows, b, adds, dst, offset);
    else if (plan->kind.m == 4) rows_of_6_4(plan, p, lanes, from, rows, b, adds, dst, offset);
    else rows_of_6_2(plan, p, lanes, from, rows, b, adds, dst, offset);
  }
}
