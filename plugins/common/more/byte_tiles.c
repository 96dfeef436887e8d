/* Bytes are widened to 16 bits, less their zero point; a step multiplies two of the depth and adds them up. */
#include "byte_tiles.h"

#include <string.h>

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)

#include <immintrin.h>

#define NARROW __attribute__((target("avx2")))

enum { ROWS = 4, COLS = 16, DEPTH = 256 }; /* of a tile; of the depth at once */

/* Rows of the left operand, of an even number of elements: those behind the last are 0. */
NARROW static void copy_left(const byte_block *b, int64_t from, int64_t n, int16_t to[BYTE_ROWS][DEPTH], int32_t *all) {
  for (int64_t r = 0; r < b->rows; r++) {
    const uint8_t *x = b->left + r * b->depth + from;
    const int8_t *with_sign = (const int8_t *)x;
    int32_t sum = 0;
    for (int64_t k = 0; k < n && b->left_signed; k++) to[r][k] = (int16_t)(with_sign[k] - b->zero[r]);
    for (int64_t k = 0; k < n && !b->left_signed; k++) to[r][k] = (int16_t)(x[k] - b->zero[r]);
    for (int64_t k = 0; k < n; k++) sum += to[r][k];
    all[r] += sum;
    if (n % 2 != 0) to[r][n] = 0;
  }
}

NARROW static inline __m256i widened(const byte_block *b, __m128i x) {
  return b->right_signed ? _mm256_cvtepi8_epi16(x) : _mm256_cvtepu8_epi16(x);
}

/* Columns of the right operand: for each two of the depth, the two of each column side by side. */
NARROW static void copy_right(const byte_block *b, int64_t from, int64_t n, int64_t col, int16_t to[DEPTH * COLS]) {
  const int64_t some = b->cols - col < COLS ? b->cols - col : COLS;
  for (int64_t k = 0; k < n; k += 2, to += 2 * COLS) {
    const uint8_t *x = b->right + (from + k) * b->right_row + col;
    __m128i first, second = _mm_setzero_si128();
    if (some == COLS) {
      first = _mm_loadu_si128((const void *)x);
      if (k + 1 < n) second = _mm_loadu_si128((const void *)(x + b->right_row));
    } else {
      uint8_t rest[2][COLS] = {{0}};
      memcpy(rest[0], x, (size_t)some);
      if (k + 1 < n) memcpy(rest[1], x + b->right_row, (size_t)some);
      first = _mm_loadu_si128((const void *)rest[0]);
      second = _mm_loadu_si128((const void *)rest[1]);
    }
    _mm256_storeu_si256((void *)to, widened(b, _mm_unpacklo_epi8(first, second)));
    _mm256_storeu_si256((void *)(to + COLS), widened(b, _mm_unpackhi_epi8(first, second)));
  }
}

static inline __m256i pair_of(const int16_t *row, int64_t k) NARROW;
static inline __m256i pair_of(const int16_t *row, int64_t k) {
  int32_t pair;
  memcpy(&pair, row + k, sizeof pair);
  return _mm256_set1_epi32(pair);
}

#define STEP(r) \
  { \
    const __m256i x = pair_of(left[r], k); \
    low##r = _mm256_add_epi32(low##r, _mm256_madd_epi16(x, y)); \
    high##r = _mm256_add_epi32(high##r, _mm256_madd_epi16(x, z)); \
  }
#define LOAD(r) \
  __m256i low##r = _mm256_loadu_si256((const void *)sums[r]), high##r = _mm256_loadu_si256((const void *)(sums[r] + 8));
#define STORE(r) \
  _mm256_storeu_si256((void *)sums[r], low##r); \
  _mm256_storeu_si256((void *)(sums[r] + 8), high##r);

NARROW static void tile(int16_t left[ROWS][DEPTH], const int16_t *right, int64_t n, int32_t *const sums[ROWS]) {
  LOAD(0) LOAD(1) LOAD(2) LOAD(3) for (int64_t k = 0; k < n; k += 2, right += 2 * COLS) {
    const __m256i y = _mm256_loadu_si256((const void *)right), z = _mm256_loadu_si256((const void *)(right + COLS));
    STEP(0) STEP(1) STEP(2) STEP(3)
  }
  STORE(0) STORE(1) STORE(2) STORE(3)
}

bool byte_tiles_here(void) {
  return __builtin_cpu_supports("avx2");
}

void byte_tiles_run(const byte_block *b, int32_t sums[BYTE_ROWS][BYTE_COLS], int32_t *all) {
  int16_t left[BYTE_ROWS][DEPTH], right[DEPTH * COLS];
  const int64_t rows = (b->rows + ROWS - 1) / ROWS * ROWS;
  memset(all, 0, (size_t)b->rows * sizeof *all);
  memset(sums, 0, (size_t)rows * sizeof *sums);
  if (rows > b->rows) memset(left[b->rows], 0, (size_t)(rows - b->rows) * sizeof *left);
  for (int64_t k = 0; k < b->depth; k += DEPTH) {
    const int64_t n = b->depth - k < DEPTH ? b->depth - k : DEPTH;
    copy_left(b, k, n, left, all);
    for (int64_t c = 0; c < b->cols; c += COLS) {
      copy_right(b, k, n, c, right);
      for (int64_t r = 0; r < rows; r += ROWS) {
        int32_t *const to[ROWS] = {sums[r] + c, sums[r + 1] + c, sums[r + 2] + c, sums[r + 3] + c};
        tile(left + r, right, n, to);
      }
    }
  }
}

#else

bool byte_tiles_here(void) {
  return false;
}

void byte_tiles_run(const byte_block *b, int32_t sums[BYTE_ROWS][BYTE_COLS], int32_t *all) {
  (void)b, (void)sums, (void)all;
}

#endif
