/* A tile is some rows of a times some of b, one vector of sums each, which are added up at its end. */
#include "rows.h"

#include <stdbool.h>
#include <stddef.h>

enum { MOST_ROWS = 4, MOST_COLUMNS = 8 };

/* Where the tile's sums go. Columns behind the last are computed as the last again, and not kept. */
static inline void keep(const more_rows *r, int64_t i, int64_t j, int64_t column, float sum) {
  if (j + column < r->n) r->out[i * r->out_step + j + column] = sum + (r->bias != NULL ? r->bias[j + column] : 0);
}

static inline const float *column_at(const more_rows *r, int64_t j) {
  return r->b + (j < r->n ? j : r->n - 1) * r->k;
}

static void product_plain(const more_rows *r) {
  for (int64_t i = 0; i < r->m; i++) {
    for (int64_t j = 0; j < r->n; j++) {
      const float *a = r->a + i * r->a_step, *b = r->b + j * r->k;
      float sum = 0;
      for (int64_t k = 0; k < r->k; k++) sum += a[k] * b[k];
      keep(r, i, j, 0, sum);
    }
  }
}

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)

#include <immintrin.h>

#define WIDE __attribute__((target("avx512f,avx512dq,avx2,fma")))
#define NARROW __attribute__((target("avx2,fma")))
#define INSIDE static inline __attribute__((always_inline))

/* Before loops over a tile's rows and columns: gcc keeps the sums in registers only if none of them is left. */
#ifdef __clang__
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

/* The same of four columns. */
NARROW INSIDE void keep_four(const more_rows *r, int64_t i, int64_t j, __m128 sums) {
  float four[4];
  if (j + 4 <= r->n) {
    if (r->bias != NULL) sums = _mm_add_ps(sums, _mm_loadu_ps(r->bias + j));
    _mm_storeu_ps(r->out + i * r->out_step + j, sums);
    return;
  }
  _mm_storeu_ps(four, sums);
  for (int c = 0; c < 4; c++) keep(r, i, j, c, four[c]);
}

/* Adds 16 products, or as many as the mask says, to each sum. */
WIDE INSIDE void step_wide(const float *const *a, const float *const *b, int64_t k, __mmask16 in, __m512 *sums,
                           const int rows, const int columns) {
  __m512 x[MOST_ROWS];
  UNROLL
  for (int d = 0; d < rows; d++) x[d] = _mm512_maskz_loadu_ps(in, a[d] + k);
  UNROLL
  for (int c = 0; c < columns; c++) {
    const __m512 w = _mm512_maskz_loadu_ps(in, b[c] + k);
    UNROLL
    for (int d = 0; d < rows; d++) sums[d * columns + c] = _mm512_fmadd_ps(x[d], w, sums[d * columns + c]);
  }
}

WIDE INSIDE void tile_wide(const more_rows *r, int64_t i, int64_t j, const int rows, const int columns) {
  __m512 sums[MOST_ROWS * MOST_COLUMNS];
  const float *a[MOST_ROWS], *b[MOST_COLUMNS];
  const int64_t whole = r->k / 16 * 16;
  UNROLL
  for (int d = 0; d < rows; d++) a[d] = r->a + (i + d) * r->a_step;
  UNROLL
  for (int c = 0; c < columns; c++) b[c] = column_at(r, j + c);
  UNROLL
  for (int s = 0; s < rows * columns; s++) sums[s] = _mm512_setzero_ps();
  for (int64_t k = 0; k < whole; k += 16) step_wide(a, b, k, 0xffff, sums, rows, columns);
  if (whole < r->k) step_wide(a, b, whole, (__mmask16)((1U << (r->k - whole)) - 1), sums, rows, columns);
  UNROLL
  for (int d = 0; d < rows; d++) {
    UNROLL
    for (int c = 0; c < columns; c += 4) {
      __m256 half[4];
      UNROLL
      for (int e = 0; e < 4; e++) {
        const __m512 s = sums[d * columns + c + e];
        half[e] = _mm256_add_ps(_mm512_castps512_ps256(s), _mm512_extractf32x8_ps(s, 1));
      }
      const __m256 x = _mm256_hadd_ps(_mm256_hadd_ps(half[0], half[1]), _mm256_hadd_ps(half[2], half[3]));
      keep_four(r, i + d, j + c, _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1)));
    }
  }
}

NARROW INSIDE void tile_narrow(const more_rows *r, int64_t i, int64_t j, const int rows, const int columns) {
  __m256 sums[MOST_ROWS * MOST_COLUMNS];
  const float *b[MOST_COLUMNS];
  const int64_t whole = r->k / 8 * 8;
  UNROLL
  for (int c = 0; c < columns; c++) b[c] = column_at(r, j + c);
  UNROLL
  for (int s = 0; s < rows * columns; s++) sums[s] = _mm256_setzero_ps();
  for (int64_t k = 0; k < whole; k += 8) {
    __m256 a[MOST_ROWS];
    UNROLL
    for (int d = 0; d < rows; d++) a[d] = _mm256_loadu_ps(r->a + (i + d) * r->a_step + k);
    UNROLL
    for (int c = 0; c < columns; c++) {
      const __m256 w = _mm256_loadu_ps(b[c] + k);
      UNROLL
      for (int d = 0; d < rows; d++) sums[d * columns + c] = _mm256_fmadd_ps(a[d], w, sums[d * columns + c]);
    }
  }
  UNROLL
  for (int d = 0; d < rows; d++) {
    UNROLL
    for (int c = 0; c < columns; c += 4) {
      const __m256 *s = &sums[d * columns + c];
      float four[4];
      const __m256 x = _mm256_hadd_ps(_mm256_hadd_ps(s[0], s[1]), _mm256_hadd_ps(s[2], s[3]));
      _mm_storeu_ps(four, _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1)));
      for (int e = 0; e < 4; e++)
        for (int64_t k = whole; k < r->k; k++) four[e] += r->a[(i + d) * r->a_step + k] * b[c + e][k];
      keep_four(r, i + d, j + c, _mm_loadu_ps(four));
    }
  }
}

/* Four rows and two columns: rows of b, which come from afar, are read once for four of a. Sums are added up as above. */
NARROW INSIDE void tile_tall(const more_rows *r, int64_t i, int64_t j) {
  enum { ROWS = 4, COLUMNS = 2 };
  __m256 sums[ROWS][COLUMNS];
  const float *b[COLUMNS] = {column_at(r, j), column_at(r, j + 1)}, *a = r->a + i * r->a_step;
  const int64_t whole = r->k / 8 * 8;
  UNROLL
  for (int s = 0; s < ROWS * COLUMNS; s++) sums[s / COLUMNS][s % COLUMNS] = _mm256_setzero_ps();
  for (int64_t k = 0; k < whole; k += 8) {
    const __m256 x = _mm256_loadu_ps(b[0] + k), y = _mm256_loadu_ps(b[1] + k);
    UNROLL
    for (int d = 0; d < ROWS; d++) {
      const __m256 w = _mm256_loadu_ps(a + d * r->a_step + k);
      sums[d][0] = _mm256_fmadd_ps(w, x, sums[d][0]);
      sums[d][1] = _mm256_fmadd_ps(w, y, sums[d][1]);
    }
  }
  const bool has_bias = r->bias != NULL && j + COLUMNS <= r->n;
  __m128 bias = _mm_setzero_ps();
  if (has_bias) bias = _mm_loadl_pi(bias, (const __m64 *)(const void *)(r->bias + j));
  bias = _mm_movelh_ps(bias, bias);
  UNROLL
  for (int d = 0; d < ROWS; d += 2) {
    float four[4], *out = r->out + (i + d) * r->out_step + j;
    const __m256 x =
        _mm256_hadd_ps(_mm256_hadd_ps(sums[d][0], sums[d][1]), _mm256_hadd_ps(sums[d + 1][0], sums[d + 1][1]));
    __m128 all = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    if (whole < r->k) {
      _mm_storeu_ps(four, all);
      for (int e = 0; e < 4; e++)
        for (int64_t k = whole; k < r->k; k++) four[e] += a[(d + e / 2) * r->a_step + k] * b[e % 2][k];
      all = _mm_loadu_ps(four);
    }
    if (j + COLUMNS <= r->n) {
      all = _mm_add_ps(all, bias);
      _mm_storel_pi((__m64 *)(void *)out, all);
      _mm_storeh_pi((__m64 *)(void *)(out + r->out_step), all);
    } else {
      _mm_storeu_ps(four, all);
      for (int e = 0; e < 4; e += 2) keep(r, i + d + e / 2, j, 0, four[e]);
    }
  }
}

/* Rows of b are read once for so many rows of a; a row alone takes more columns, so that sums need not wait. */
WIDE static void product_wide(const more_rows *r) {
  int64_t i = 0;
  for (; i + 4 <= r->m; i += 4)
    for (int64_t j = 0; j < r->n; j += 4) tile_wide(r, i, j, 4, 4);
  for (; i < r->m; i++)
    for (int64_t j = 0; j < r->n; j += 8) tile_wide(r, i, j, 1, 8);
}

NARROW static void product_narrow(const more_rows *r) {
  int64_t i = 0;
  for (; i + 4 <= r->m; i += 4)
    for (int64_t j = 0; j < r->n; j += 2) tile_tall(r, i, j);
  for (; i + 2 <= r->m; i += 2)
    for (int64_t j = 0; j < r->n; j += 4) tile_narrow(r, i, j, 2, 4);
  for (; i < r->m; i++)
    for (int64_t j = 0; j < r->n; j += 8) tile_narrow(r, i, j, 1, 8);
}

void more_rows_product(const more_rows *r) {
  if (r->n < 1) return;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) product_wide(r);
  else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) product_narrow(r);
  else product_plain(r);
}

#else

void more_rows_product(const more_rows *r) {
  product_plain(r);
}

#endif
