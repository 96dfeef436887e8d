/* Input tiles into Winograd's domain, a vector of channels at a time: B^T d B, where row i of B^T has the coefficients
 * of the product of (x - point) over all points but point i. Points come in pairs of one magnitude, so that rows of a
 * pair differ in the sign of their odd half only. Coefficients are exact in float32. For one size of vectors; no
 * include guard. */
/* by times a, and plus. */
#undef TIMES
#define TIMES(by, a, plus) V_MULADD(V_SET(by), a, plus)

/* From vectors that are step floats apart to ones that are by floats apart. The points are 1. */
INLINE void NAME(along_4)(const float *d, int64_t step, float *t, int64_t by) {
  const vec d1 = V_LOAD(d + step), d2 = V_LOAD(d + 2 * step);
  V_STORE(t, V_SUB(d2, V_LOAD(d)));
  V_STORE(t + by, V_ADD(d2, d1));
  V_STORE(t + 2 * by, V_SUB(d2, d1));
  V_STORE(t + 3 * by, V_SUB(V_LOAD(d + 3 * step), d1));
}

/* 3/4 and 3/2. */
INLINE void NAME(along_6)(const float *d, int64_t step, float *t, int64_t by) {
  const float a = 0.75f, b = 1.5f, aa = a * a, bb = b * b;
  const vec d1 = V_LOAD(d + step), d2 = V_LOAD(d + 2 * step), d3 = V_LOAD(d + 3 * step), d4 = V_LOAD(d + 4 * step);
  const vec even_a = TIMES(-bb, d2, d4), odd_a = TIMES(-bb, d1, d3);
  const vec even_b = TIMES(-aa, d2, d4), odd_b = TIMES(-aa, d1, d3);
  V_STORE(t, TIMES(aa * bb, V_LOAD(d), TIMES(-(aa + bb), d2, d4)));
  V_STORE(t + by, TIMES(a, odd_a, even_a));
  V_STORE(t + 2 * by, TIMES(-a, odd_a, even_a));
  V_STORE(t + 3 * by, TIMES(b, odd_b, even_b));
  V_STORE(t + 4 * by, TIMES(-b, odd_b, even_b));
  V_STORE(t + 5 * by, TIMES(aa * bb, d1, TIMES(-(aa + bb), d3, V_LOAD(d + 5 * step))));
}

/* 1/2, 1 and 2. */
INLINE void NAME(along_8)(const float *d, int64_t step, float *t, int64_t by) {
  const vec d1 = V_LOAD(d + step), d2 = V_LOAD(d + 2 * step), d3 = V_LOAD(d + 3 * step), d4 = V_LOAD(d + 4 * step);
  const vec d5 = V_LOAD(d + 5 * step), d6 = V_LOAD(d + 6 * step);
  const vec even_a = TIMES(4.0f, d2, TIMES(-5.0f, d4, d6)), odd_a = TIMES(4.0f, d1, TIMES(-5.0f, d3, d5));
  const vec even_b = V_ADD(d2, TIMES(-4.25f, d4, d6)), odd_b = V_ADD(d1, TIMES(-4.25f, d3, d5));
  const vec even_c = TIMES(0.25f, d2, TIMES(-1.25f, d4, d6)), odd_c = TIMES(0.25f, d1, TIMES(-1.25f, d3, d5));
  V_STORE(t, V_SUB(TIMES(5.25f, V_SUB(d2, d4), d6), V_LOAD(d)));
  V_STORE(t + by, TIMES(0.5f, odd_a, even_a));
  V_STORE(t + 2 * by, TIMES(-0.5f, odd_a, even_a));
  V_STORE(t + 3 * by, V_ADD(even_b, odd_b));
  V_STORE(t + 4 * by, V_SUB(even_b, odd_b));
  V_STORE(t + 5 * by, TIMES(2.0f, odd_c, even_c));
  V_STORE(t + 6 * by, TIMES(-2.0f, odd_c, even_c));
  V_STORE(t + 7 * by, V_SUB(TIMES(5.25f, V_SUB(d3, d5), V_LOAD(d + 7 * step)), d1));
}

INLINE void NAME(along)(int tile, const float *d, int64_t step, float *t, int64_t by) {
  if (tile == 4) NAME(along_4)(d, step, t, by);
  else if (tile == 6) NAME(along_6)(d, step, t, by);
  else NAME(along_8)(d, step, t, by);
}

/* Copies a tile whose first pixel is (y, x), and that leaves the image: padding is 0. */
INLINE void NAME(copy)(const winograd_plan *plan, const float *image, int64_t y, int64_t x, int tile, float *to) {
  for (int i = 0; i < tile; i++)
    for (int j = 0; j < tile; j++, to += LANES) {
      const bool there = y + i >= 0 && y + i < plan->height && x + j >= 0 && x + j < plan->width;
      V_STORE(to, there ? V_LOAD(image + (y + i) * plan->in_row + (x + j) * plan->in_pixel) : V_SET(0));
    }
}

/* tile is a constant where this is called. */
INLINE void NAME(rows_of)(const winograd_plan *plan, const float *src, int64_t from, int64_t rows, int64_t block,
                          float *v, const int tile) {
  enum { MOST = WINOGRAD_MOST_TILE * WINOGRAD_MOST_TILE * LANES };
  _Alignas(64) float edge[MOST], t[MOST];
  for (int64_t row = from; row < from + rows; row++) {
    const float *image = src + row / plan->tiles_y * plan->in_image + block * plan->in_block;
    const int64_t y = row % plan->tiles_y * plan->kind.m - plan->top;
    for (int64_t tx = 0; tx < plan->tiles_x; tx++, v += LANES) {
      const int64_t x = tx * plan->kind.m - plan->left;
      if (y >= 0 && x >= 0 && y + tile <= plan->height && x + tile <= plan->width) {
        const float *d = image + y * plan->in_row + x * plan->in_pixel;
        for (int j = 0; j < tile; j++)
          NAME(along)(tile, d + j * plan->in_pixel, plan->in_row, t + j * LANES, tile * LANES);
      } else {
        NAME(copy)(plan, image, y, x, tile, edge);
        for (int j = 0; j < tile; j++) NAME(along)(tile, edge + j * LANES, tile * LANES, t + j * LANES, tile * LANES);
      }
      for (int i = 0; i < tile; i++)
        NAME(along)(tile, t + i * tile * LANES, LANES, v + i * tile * plan->v_point, plan->v_point);
    }
  }
}

TARGET static void NAME(rows_of_4)(const winograd_plan *plan, const float *src, int64_t from, int64_t rows,
                                   int64_t block, float *v) {
  NAME(rows_of)(plan, src, from, rows, block, v, 4);
}

TARGET static void NAME(rows_of_6)(const winograd_plan *plan, const float *src, int64_t from, int64_t rows,
                                   int64_t block, float *v) {
  NAME(rows_of)(plan, src, from, rows, block, v, 6);
}

TARGET static void NAME(rows_of_8)(const winograd_plan *plan, const float *src, int64_t from, int64_t rows,
                                   int64_t block, float *v) {
  NAME(rows_of)(plan, src, from, rows, block, v, 8);
}

TARGET static void NAME(winograd_input)(const winograd_plan *plan, const float *src, int64_t from, int64_t rows,
                                        int64_t block, float *v) {
  if (plan->kind.tile == 4) NAME(rows_of_4)(plan, src, from, rows, block, v);
  else if (plan->kind.tile == 6) NAME(rows_of_6)(plan, src, from, rows, block, v);
  else NAME(rows_of_8)(plan, src, from, rows, block, v);
}
