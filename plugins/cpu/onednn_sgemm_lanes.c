/* The kernels of onednn_sgemm.h for AVX2. A tile of 6 rows and 16 columns of the result stays in registers for a run
 * of DEPTH products; the columns of b that it needs are packed once for all rows, where there are rows enough for
 * that to pay. */
#include <math.h>

#include "onednn_rows.h"
#include "onednn_sgemm.h"

#define VECTORS_WIDE 0
#include "vectors.h"
#define V_ABS(x) _mm256_andnot_ps(V_SET(-0.0f), x)

#include "onednn_exp_lanes.h"

bool onednn_sgemm_has(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

/* ---------------------------------------------------------------- posts */

TARGET static inline vec exp_of_negative(vec x) { /* x <= 0 or NaN */
  return NAME(exponential)(V_MAX(V_SET(-110.0f), x));
}

/* 1 / (1 + e^-x), without overflow on either side. */
TARGET static inline vec logistic(vec x) {
  const vec e = exp_of_negative(_mm256_or_ps(V_SET(-0.0f), x)), part = V_DIV(V_SET(1.0f), V_ADD(V_SET(1.0f), e));
  return _mm256_blendv_ps(part, V_MUL(e, part), x); /* by the sign of x */
}

/* Near 0 its series, whose next term is below rounding. */
TARGET static inline vec tanh_of(vec x) {
  const vec far = V_SUB(V_ADD(logistic(V_ADD(x, x)), logistic(V_ADD(x, x))), V_SET(1.0f)), square = V_MUL(x, x);
  vec p = V_SET(-1382.0f / 155925.0f);
  p = V_MULADD(p, square, V_SET(62.0f / 2835.0f));
  p = V_MULADD(p, square, V_SET(-17.0f / 315.0f));
  p = V_MULADD(p, square, V_SET(2.0f / 15.0f));
  p = V_MULADD(p, square, V_SET(-1.0f / 3.0f));
  const vec near = V_MULADD(V_MUL(p, square), x, x);
  return _mm256_blendv_ps(far, near, _mm256_cmp_ps(V_ABS(x), V_SET(0.35f), _CMP_LT_OQ));
}

/* x times the normal distribution at x. Its tail is (Abramowitz and Stegun, 7.1.26) a polynomial of t = 1 / (1 + p
 * |x| / sqrt 2) times e^(-x x / 2) / 2, within 8e-8. */
TARGET static inline vec gelu_erf(vec x) {
  const vec size = V_ABS(x), t = V_DIV(V_SET(1.0f), V_MULADD(size, V_SET(0.3275911f * 0.70710678f), V_SET(1.0f)));
  vec p = V_SET(1.061405429f);
  p = V_MULADD(p, t, V_SET(-1.453152027f));
  p = V_MULADD(p, t, V_SET(1.421413741f));
  p = V_MULADD(p, t, V_SET(-0.284496736f));
  p = V_MULADD(p, t, V_SET(0.254829592f));
  const vec e = exp_of_negative(V_MUL(V_MUL(x, x), V_SET(-0.5f)));
  const vec tail = V_MUL(V_MUL(V_MUL(p, t), e), V_SET(0.5f));
  return V_MUL(x, _mm256_blendv_ps(V_SUB(V_SET(1.0f), tail), tail, x));
}

TARGET static inline vec activation(dnnl_alg_kind_t alg, float alpha, float beta, vec x) {
  switch ((int)alg) {
  case dnnl_eltwise_relu:
    if (alpha == 0) return V_MAX(V_SET(0.0f), x); /* and not minus infinity times 0 */
    return _mm256_blendv_ps(V_MUL(x, V_SET(alpha)), x, _mm256_cmp_ps(x, V_SET(0.0f), _CMP_GT_OQ));
  case dnnl_eltwise_clip: return V_MIN(V_SET(beta), V_MAX(V_SET(alpha), x));
  case dnnl_eltwise_hardswish: {
    const vec line = V_MULADD(x, V_SET(alpha), V_SET(beta));
    return V_MUL(x, V_MIN(V_SET(1.0f), V_MAX(V_SET(0.0f), line)));
  }
  case dnnl_eltwise_logistic: return logistic(x);
  case dnnl_eltwise_swish: return V_MUL(x, logistic(V_MUL(x, V_SET(alpha))));
  case dnnl_eltwise_tanh: return tanh_of(x);
  case dnnl_eltwise_gelu_tanh: {
    const vec cube = V_MUL(V_MUL(x, x), x), u = V_MULADD(cube, V_SET(0.044715f), x);
    return V_MUL(x, logistic(V_MUL(u, V_SET(2 * 0.79788456f))));
  }
  default: return gelu_erf(x);
  }
}

TARGET static inline vec binary(dnnl_alg_kind_t alg, vec x, vec y) {
  return alg == dnnl_binary_add   ? V_ADD(x, y)
         : alg == dnnl_binary_mul ? V_MUL(x, y)
         : alg == dnnl_binary_sub ? V_SUB(x, y)
                                  : V_DIV(x, y);
}

/* In place on n elements of a row. */
TARGET static void finish_some(const onednn_sgemm_post *post, float *x, const float *other, int64_t column_stride,
                               int64_t n) {
  for (int64_t i = 0; i < n; i += LANES) {
    const int64_t count = n - i < LANES ? n - i : LANES;
    float part[LANES] = {0}, with[LANES] = {0};
    vec v, y = V_SET(0.0f);
    if (count == LANES) v = V_LOAD(x + i);
    else {
      memcpy(part, x + i, (size_t)count * sizeof *x);
      v = V_LOAD(part);
    }
    if (post->arg != 0 && column_stride == 0) y = V_SET(*other);
    else if (post->arg != 0 && count == LANES) y = V_LOAD(other + i);
    else if (post->arg != 0) {
      memcpy(with, other + i, (size_t)count * sizeof *x);
      y = V_LOAD(with);
    }
    v = post->arg != 0 ? binary(post->alg, v, y) : activation(post->alg, post->alpha, post->beta, v);
    if (count == LANES) V_STORE(x + i, v);
    else {
      V_STORE(part, v);
      memcpy(x + i, part, (size_t)count * sizeof *x);
    }
  }
}

/* ---------------------------------------------------------------- tiles */

enum { ROWS = 6, WIDTH = 2 * LANES, WIDE = 8 * LANES, DEPTH = 256, FEW_ROWS = 12, DOT_ROWS = 2 };

/* out[r][c] = or += sum of a[r][k] b[k][c], for so many rows and vectors of columns. Each sum is a variable of its own:
 * gcc keeps arrays of them in memory. */
#define ROWS_1(DO) DO(0)
#define ROWS_2(DO) ROWS_1(DO) DO(1)
#define ROWS_3(DO) ROWS_2(DO) DO(2)
#define ROWS_4(DO) ROWS_3(DO) DO(3)
#define ROWS_5(DO) ROWS_4(DO) DO(4)
#define ROWS_6(DO) ROWS_5(DO) DO(5)

#define ZERO_2(r) vec s##r##0 = V_SET(0.0f), s##r##1 = s##r##0;
#define ZERO_4(r) ZERO_2(r) vec s##r##2 = s##r##0, s##r##3 = s##r##0;
#define ZERO_8(r) ZERO_4(r) vec s##r##4 = s##r##0, s##r##5 = s##r##0, s##r##6 = s##r##0, s##r##7 = s##r##0;

#define ROW(v) const vec row##v = V_LOAD(b + v * LANES);
#define ROW_2 ROW(0) ROW(1)
#define ROW_4 ROW_2 ROW(2) ROW(3)
#define ROW_8 ROW_4 ROW(4) ROW(5) ROW(6) ROW(7)

#define ADD(r, v) s##r##v = V_MULADD(x##r, row##v, s##r##v);
#define FACTOR(r) const vec x##r = _mm256_broadcast_ss(a + r * a_row);
#define ADDS_2(r) FACTOR(r) ADD(r, 0) ADD(r, 1)
#define ADDS_4(r) ADDS_2(r) ADD(r, 2) ADD(r, 3)
#define ADDS_8(r) ADDS_4(r) ADD(r, 4) ADD(r, 5) ADD(r, 6) ADD(r, 7)

#define PUT(r, v) put(out + r * out_row + v * LANES, s##r##v, add);
#define PUTS_2(r) PUT(r, 0) PUT(r, 1)
#define PUTS_4(r) PUTS_2(r) PUT(r, 2) PUT(r, 3)
#define PUTS_8(r) PUTS_4(r) PUT(r, 4) PUT(r, 5) PUT(r, 6) PUT(r, 7)

TARGET static inline void put(float *to, vec sum, bool add) {
  V_STORE(to, add ? V_ADD(V_LOAD(to), sum) : sum);
}

#define TILE(R, V) \
  TARGET static void tile_##R##_##V(float *out, int64_t out_row, const float *a, int64_t a_row, int64_t a_col, \
                                    const float *b, int64_t b_row, int64_t depth, bool add) { \
    ROWS_##R(ZERO_##V) for (int64_t k = 0; k < depth; \
                            k++, a += a_col, b += b_row){ROW_##V ROWS_##R(ADDS_##V)} ROWS_##R(PUTS_##V) \
  }

TILE(1, 2)
TILE(2, 2)
TILE(3, 2)
TILE(4, 2)
TILE(5, 2)
TILE(6, 2)
TILE(1, 8)
TILE(2, 4)
TILE(3, 4)

typedef void (*tile)(float *out, int64_t out_row, const float *a, int64_t a_row, int64_t a_col, const float *b,
                     int64_t b_row, int64_t depth, bool add);
static const tile tiles[ROWS + 1] = {NULL, tile_1_2, tile_2_2, tile_3_2, tile_4_2, tile_5_2, tile_6_2};

/* What a product is computed with. */
typedef struct job {
  const onednn_sgemm_matrix *m;
  const float *a, *b;
  float *out;
  const onednn_sgemm_post *posts;
  const onednn_sgemm_other *others;
  uint32_t n_posts;
} job;

/* A post on a whole tile's width. */
TARGET static void finish_row(const onednn_sgemm_post *post, float *x, const float *other, int64_t column_stride) {
  vec first = V_LOAD(x), second = V_LOAD(x + LANES);
  if (post->arg != 0) {
    const vec y = column_stride == 0 ? V_SET(*other) : V_LOAD(other);
    first = binary(post->alg, first, y);
    second = binary(post->alg, second, column_stride == 0 ? y : V_LOAD(other + LANES));
  } else {
    first = activation(post->alg, post->alpha, post->beta, first);
    second = activation(post->alg, post->alpha, post->beta, second);
  }
  V_STORE(x, first);
  V_STORE(x + LANES, second);
}

TARGET static void finish(const job *j, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  for (uint32_t i = 0; i < j->n_posts; i++) {
    const onednn_sgemm_post *post = &j->posts[i];
    const onednn_sgemm_other *o = &j->others[i];
    float *x = j->out + row * j->m->out_row + column;
    const float *y = post->arg != 0 ? o->at + row * o->row + column * o->column : NULL;
    for (int64_t r = 0; r < rows; r++, x += j->m->out_row, y += post->arg != 0 ? o->row : 0) {
      if (columns == WIDTH) finish_row(post, x, y, o->column);
      else finish_some(post, x, y, o->column, columns);
    }
  }
}

/* ---------------------------------------------------------------- packing */

/* Eight rows of eight, exchanged with the columns. */
TARGET static void transpose(const float *from, int64_t pitch, float *to) {
  vec r[8], s[8];
  for (int i = 0; i < 8; i++) r[i] = V_LOAD(from + i * pitch);
  for (int i = 0; i < 8; i += 2) {
    s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xee);
    r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xee);
  }
  for (int i = 0; i < 4; i++) {
    V_STORE(to + i * WIDTH, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    V_STORE(to + (i + 4) * WIDTH, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

/* Rows of WIDTH columns, those behind the last as zeros. */
TARGET static void pack(const float *b, int64_t b_row, int64_t b_col, int64_t depth, int64_t width, float *to) {
  if (b_col == 1 && width == WIDTH) {
    for (int64_t k = 0; k < depth; k++, b += b_row, to += WIDTH) {
      V_STORE(to, V_LOAD(b));
      V_STORE(to + LANES, V_LOAD(b + LANES));
    }
    return;
  }
  int64_t k = 0;
  if (b_row == 1 && width == WIDTH)
    for (; k + LANES <= depth; k += LANES) {
      transpose(b + k, b_col, to + k * WIDTH);
      transpose(b + k + LANES * b_col, b_col, to + k * WIDTH + LANES);
    }
  for (; k < depth; k++)
    for (int64_t c = 0; c < WIDTH; c++) to[k * WIDTH + c] = c < width ? b[k * b_row + c * b_col] : 0.0f;
}

/* All rows of the columns [column, column + width), width <= WIDTH. */
TARGET static void packed_columns(const job *j, int64_t column, int64_t width) {
  const onednn_sgemm_matrix *m = j->m;
  _Alignas(64) float panel[DEPTH * WIDTH], edge[ROWS * WIDTH];
  for (int64_t k = 0; k < m->depth; k += DEPTH) {
    const int64_t depth = m->depth - k < DEPTH ? m->depth - k : DEPTH;
    pack(j->b + k * m->b_row + column * m->b_col, m->b_row, m->b_col, depth, width, panel);
    for (int64_t r = 0; r < m->rows; r += ROWS) {
      const int64_t rows = m->rows - r < ROWS ? m->rows - r : ROWS;
      const float *a = j->a + r * m->a_row + k * m->a_col;
      float *out = j->out + r * m->out_row + column;
      if (width == WIDTH) {
        tiles[rows](out, m->out_row, a, m->a_row, m->a_col, panel, WIDTH, depth, k > 0);
      } else {
        tiles[rows](edge, WIDTH, a, m->a_row, m->a_col, panel, WIDTH, depth, false);
        for (int64_t i = 0; i < rows; i++)
          for (int64_t c = 0; c < width; c++)
            out[i * m->out_row + c] = edge[i * WIDTH + c] + (k > 0 ? out[i * m->out_row + c] : 0.0f);
      }
      if (k + depth == m->depth) finish(j, r, rows, column, width);
    }
  }
}

/* Whole vectors of columns of few rows, read where they lie; gives the first column that is left. */
static int64_t direct_columns(const job *j) {
  const onednn_sgemm_matrix *m = j->m;
  int64_t c = 0;
  const tile wide = m->rows == 1 ? tile_1_8 : m->rows == 2 ? tile_2_4 : m->rows == 3 ? tile_3_4 : NULL;
  const int64_t step = m->rows == 1 ? WIDE : WIDE / 2;
  for (; wide != NULL && c + step <= m->columns; c += step)
    wide(j->out + c, m->out_row, j->a, m->a_row, m->a_col, j->b + c, m->b_row, m->depth, false);
  for (; c + WIDTH <= m->columns; c += WIDTH)
    for (int64_t r = 0; r < m->rows; r += ROWS) {
      const int64_t rows = m->rows - r < ROWS ? m->rows - r : ROWS;
      tiles[rows](j->out + r * m->out_row + c, m->out_row, j->a + r * m->a_row, m->a_row, m->a_col, j->b + c, m->b_row,
                  m->depth, false);
    }
  finish(j, 0, m->rows, 0, c);
  return c;
}

void onednn_sgemm_run(const onednn_sgemm_matrix *m, const float *a, const float *b, float *out,
                      const onednn_sgemm_post *posts, const onednn_sgemm_other *others, uint32_t n_posts) {
  const job j = {m, a, b, out, posts, others, n_posts};
  int64_t c = 0;
  if (m->rows <= DOT_ROWS && m->b_row == 1 && m->b_col != 1 && (m->a_col == 1 || m->depth == 1)) {
    onednn_find_dots()(out, m->out_row, a, m->a_row, m->rows, b, m->b_col, m->columns, m->depth);
    finish(&j, 0, m->rows, 0, m->columns);
    return;
  }
  if (m->b_col == 1 && m->rows <= FEW_ROWS) c = direct_columns(&j);
  for (; c < m->columns; c += WIDTH) packed_columns(&j, c, m->columns - c < WIDTH ? m->columns - c : WIDTH);
}
