/* Products of a group of result channels back from Winograd's domain, a vector of channels at a time: A^T m A, where A^T has the
 * powers of the points, then bias and what the chain computes on the result.
 * For one size of vectors; no include guard. */
#include "onednn_exp_lanes.h"

/* by times a, and plus. */
#undef TIMES
#define TIMES(by, a, plus) V_MULADD(V_SET(by), a, plus)
#undef KIND

/* From vectors that are step floats apart to ones that are by floats apart. */
INLINE void NAME(along_4)(const float *p, int64_t step, float *y, int64_t by) {
  const vec p1 = V_LOAD(p + step), p2 = V_LOAD(p + 2 * step);
  V_STORE(y, V_ADD(V_LOAD(p), V_ADD(p1, p2)));
  V_STORE(y + by, V_ADD(V_LOAD(p + 3 * step), V_SUB(p1, p2)));
}

INLINE void NAME(along_6)(int m, const float *p, int64_t step, float *y, int64_t by) {
  const float a = 0.75f, b = 1.5f;
  const vec p1 = V_LOAD(p + step), p2 = V_LOAD(p + 2 * step), p3 = V_LOAD(p + 3 * step), p4 = V_LOAD(p + 4 * step);
  const vec sum_a = V_ADD(p1, p2), odd_a = V_SUB(p1, p2);
  const vec sum_b = V_ADD(p3, p4), odd_b = V_SUB(p3, p4);
  const vec last = V_LOAD(p + 5 * step), none = V_SET(0);
  V_STORE(y, V_ADD(V_LOAD(p), V_ADD(sum_a, sum_b)));
  V_STORE(y + by, TIMES(a, odd_a, TIMES(b, odd_b, m == 2 ? last : none)));
  if (m == 2) return;
  V_STORE(y + 2 * by, TIMES(a * a, sum_a, TIMES(b * b, sum_b, none)));
  V_STORE(y + 3 * by, TIMES(a * a * a, odd_a, TIMES(b * b * b, odd_b, last)));
}

INLINE void NAME(along_8)(const float *p, int64_t step, float *y, int64_t by) {
  const vec p1 = V_LOAD(p + step), p2 = V_LOAD(p + 2 * step), p3 = V_LOAD(p + 3 * step), p4 = V_LOAD(p + 4 * step);
  const vec p5 = V_LOAD(p + 5 * step), p6 = V_LOAD(p + 6 * step);
  const vec sum_a = V_ADD(p1, p2), odd_a = V_SUB(p1, p2);
  const vec sum_b = V_ADD(p3, p4), odd_b = V_SUB(p3, p4);
  const vec sum_c = V_ADD(p5, p6), odd_c = V_SUB(p5, p6);
  V_STORE(y, V_ADD(V_ADD(V_LOAD(p), sum_a), V_ADD(sum_b, sum_c)));
  V_STORE(y + by, TIMES(0.5f, odd_a, TIMES(2.0f, odd_c, odd_b)));
  V_STORE(y + 2 * by, TIMES(0.25f, sum_a, TIMES(4.0f, sum_c, sum_b)));
  V_STORE(y + 3 * by, TIMES(0.125f, odd_a, TIMES(8.0f, odd_c, V_ADD(odd_b, V_LOAD(p + 7 * step)))));
}

INLINE void NAME(along)(int tile, int m, const float *p, int64_t step, float *y, int64_t by) {
  if (tile == 4) NAME(along_4)(p, step, y, by);
  else if (tile == 6) NAME(along_6)(m, p, step, y, by);
  else NAME(along_8)(p, step, y, by);
}

/* e^x for x up to 20. */
INLINE vec NAME(exp_of)(vec x) {
  return NAME(exponential)(V_MAX(V_SET(-110.0f), x));
}

INLINE vec NAME(swish)(vec y, float alpha) {
  const vec t = V_MUL(V_SET(alpha), y), e = NAME(exp_of)(V_MINUS_SIZE(t));
  return V_MUL(y, V_DIV(V_BY_SIGN(t, e, V_SET(1.0f)), V_ADD(V_SET(1.0f), e)));
}

/* tanh(log(1 + e)) is n / (n + 2) of n = e^2 + 2 e. */
INLINE vec NAME(mish)(vec y) {
  const vec e = NAME(exp_of)(V_MIN(V_SET(20.0f), y)), n = V_MUL(e, V_ADD(e, V_SET(2.0f)));
  return V_MUL(y, V_DIV(n, V_ADD(n, V_SET(2.0f))));
}

/* A NaN stays one: max and min give their second operand then. */
INLINE vec NAME(finish)(const winograd_plan *plan, const float *const *adds, int64_t at, vec y) {
  const vec none = V_SET(0);
  for (uint32_t i = 0; i < plan->n_posts; i++) {
    const winograd_post *post = &plan->posts[i];
    if (post->kind == WINOGRAD_ADD) {
      y = V_ADD(y, V_LOAD(adds[i] + at));
    } else if (post->kind == WINOGRAD_CLIP) {
      y = V_MIN(V_SET(post->beta), V_MAX(V_SET(post->alpha), y));
    } else if (post->kind == WINOGRAD_SWISH) {
      y = NAME(swish)(y, post->alpha);
    } else if (post->kind == WINOGRAD_MISH) {
      y = NAME(mish)(y);
    } else if (post->kind == WINOGRAD_HARD_SWISH) {
      y = V_MUL(y, V_MIN(V_SET(1.0f), V_MAX(none, TIMES(post->alpha, y, V_SET(post->beta)))));
    } else if (post->alpha == 0) {
      y = V_MAX(none, y);
    } else {
      y = TIMES(post->alpha, V_MIN(none, y), V_MAX(none, y));
    }
  }
  return y;
}

/* tile and m are constants where this is called. */
INLINE void NAME(rows_of)(const winograd_plan *plan, const float *p, int64_t lanes, int64_t from, int64_t rows,
                          vec bias, const float *const *adds, float *dst, int64_t offset, const int tile, const int m) {
  _Alignas(64) float t[MOST * WINOGRAD_MOST_TILE * LANES], y[MOST * LANES];
  for (int64_t row = from; row < from + rows; row++) {
    const int64_t top = row % plan->tiles_y * m, image = row / plan->tiles_y * plan->out_image + offset;
    const int64_t high = plan->out_height - top < m ? plan->out_height - top : m;
    for (int64_t tx = 0; tx < plan->tiles_x; tx++, p += lanes) {
      const int64_t left = tx * m, wide = plan->out_width - left < m ? plan->out_width - left : m;
      for (int j = 0; j < tile; j++)
        NAME(along)(tile, m, p + j * plan->m_point, tile * plan->m_point, t + j * LANES, tile * LANES);
      for (int i = 0; i < high; i++) {
        NAME(along)(tile, m, t + i * tile * LANES, LANES, y, LANES);
        const int64_t at = image + (top + i) * plan->out_row + left * plan->out_pixel;
        for (int j = 0; j < wide; j++) {
          const int64_t pixel = at + j * plan->out_pixel;
          V_STORE(dst + pixel, NAME(finish)(plan, adds, pixel, V_ADD(V_LOAD(y + j * LANES), bias)));
        }
      }
    }
  }
}

#define KIND(tile, m) \
  TARGET static void NAME(rows_of_##tile##_##m)(const winograd_plan *plan, const float *p, int64_t lanes, \
                                                int64_t from, int64_t rows, vec bias, const float *const *adds, \
                                                float *dst, int64_t offset) { \
    NAME(rows_of)(plan, p, lanes, from, rows, bias, adds, dst, offset, tile, m); \
  }
KIND(4, 2)
KIND(6, 4)
KIND(6, 2)
KIND(8, 4)

TARGET static void NAME(winograd_output)(const winograd_plan *plan, const float *m, int64_t from, int64_t rows,
                                         int64_t group, const float *bias, const float *const *adds, float *dst) {
  const int64_t blocks = plan->out_blocks - 2 * group < 2 ? plan->out_blocks - 2 * group : 2;
  for (int64_t i = 0; i < blocks; i++) {
    const int64_t block = 2 * group + i, left = plan->out_channels - block * LANES;
    float some[LANES] = {0};
    if (plan->has_bias) memcpy(some, bias + block * LANES, (size_t)(left < LANES ? left : LANES) * sizeof *some);
    const vec b = V_LOAD(some);
    const float *p = m + i * LANES;
    const int64_t lanes = blocks * LANES, offset = block * plan->out_block;
    if (plan->kind.tile == 4) NAME(rows_of_4_2)(plan, p, lanes, from, rows, b, adds, dst, offset);
    else if (plan->kind.tile == 8) NAME(rows_of_8_4)(plan, p, lanes, from, rows, b, adds, dst, offset);
    else if (plan->kind.m == 4) NAME(rows_of_6_4)(plan, p, lanes, from, rows, b, adds, dst, offset);
    else NAME(rows_of_6_2)(plan, p, lanes, from, rows, b, adds, dst, offset);
  }
}
