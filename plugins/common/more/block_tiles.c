/* Products of many rows of int8 with weights in blocks, for AVX2: see block_bytes.h. 16 rows of weights are unpacked for
 * BLOCK_MOST of the depth at a time and turned, so that a lane has four neighbours of a column; that tile stays in the nearest
 * cache for all rows. Sums stay in 16 bits as long as they fit. */
#include "block_bytes.h"

#include <stddef.h>

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)

#include "block_vectors.h"

enum { LANES = 8, COLUMNS = NBITS_TILE / 2, PART = BLOCK_SUM, PARTS = BLOCK_MOST / PART, GROUPS = PART / 4, ROWS = 4 };

/* What a weight is at most, and for how many one scale holds: nibbles of 32 and of 16, six bits of 16, and int8 of 32. */
enum { NIBBLES, SHORT_NIBBLES, SIX, FULL };

/* Rows of weights, in order; number = scale * q - less. */
typedef struct piece {
  uint8_t q[LANES][BLOCK_MOST];
  float scales[LANES][2 * PARTS], less[LANES][2 * PARTS];
} piece;

typedef struct tile {
  uint8_t q[PARTS][GROUPS][2][PART];
  float scales[2 * PARTS][COLUMNS], less[2 * PARTS][COLUMNS];
} tile;

_Static_assert(sizeof(piece) + sizeof(tile) <= BYTES_TILE_FLOATS * sizeof(float), "the scratch memory of a tile");

static int kind_of(const nbits_rows *w, int form) {
  switch (form) {
  case BLOCK_NONE: return w->block >= PART ? NIBBLES : SHORT_NIBBLES;
  case BLOCK_Q6_K: return SIX;
  case BLOCK_Q8_0: return FULL;
  default: return NIBBLES;
  }
}

/* ---------------------------------------------------------------- unpacking */

NARROW INSIDE void store_16(uint8_t *to, __m128i x) {
  _mm_storeu_si128((__m128i *)(void *)to, x);
}

NARROW static void read_q4_0(const uint8_t *b, int64_t parts, uint8_t *q, float *scales, float *less) {
  const __m128i low = _mm_set1_epi8(15);
  for (int64_t p = 0; p < parts; p++, b += 18, q += PART) {
    const __m128i x = load_16(b + 2);
    store_16(q, _mm_and_si128(x, low));
    store_16(q + 16, _mm_and_si128(_mm_srli_epi16(x, 4), low));
    scales[p] = half_of(b);
    less[p] = 8.0F * scales[p];
  }
}

NARROW static void read_q8_0(const uint8_t *b, int64_t parts, uint8_t *q, float *scales) {
  for (int64_t p = 0; p < parts; p++, b += 34, q += PART) {
    memcpy(q, b + 2, PART);
    scales[p] = half_of(b);
  }
}

NARROW static void read_q4_k(const uint8_t *b, uint8_t *q, float *scales, float *less) {
  const __m256i low = _mm256_set1_epi8(15);
  __m256 least;
  scales_of(b, half_of(b), half_of(b + 2), scales, &least);
  _mm256_storeu_ps(less, _mm256_sub_ps(_mm256_setzero_ps(), least));
  for (int j = 0; j < 4; j++, q += 2 * PART) {
    const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(b + 16 + 32 * j));
    _mm256_storeu_si256((__m256i *)(void *)q, _mm256_and_si256(x, low));
    _mm256_storeu_si256((__m256i *)(void *)(q + PART), _mm256_and_si256(_mm256_srli_epi16(x, 4), low));
  }
}

NARROW static void read_q6_k(const uint8_t *b, uint8_t *q, float *scales, float *less) {
  const float d = half_of(b + 208);
  for (int s = 0; s < 16; s++) {
    scales[s] = d * (float)(int8_t)b[192 + s];
    less[s] = 32.0F * scales[s];
  }
  for (int n = 0; n < 2; n++, q += 128)
    for (int i = 0; i < 32; i += 16) {
      const __m128i l = load_16(b + 64 * n + i), m = load_16(b + 64 * n + 32 + i), h = load_16(b + 128 + 32 * n + i);
      store_16(q + i, six_bits(l, _mm_slli_epi16(h, 4)));
      store_16(q + 32 + i, six_bits(m, _mm_slli_epi16(h, 2)));
      store_16(q + 64 + i, six_bits(_mm_srli_epi16(l, 4), h));
      store_16(q + 96 + i, six_bits(_mm_srli_epi16(m, 4), _mm_srli_epi16(h, 2)));
    }
}

/* Four bits of MatMulNBits: bytes [first, last) of a row, neighbours in a byte. What is behind the last block is 0. */
NARROW static void read_nibbles(const nbits_rows *w, int64_t n, int64_t k, int64_t count, uint8_t *q, float *scales,
                                float *less) {
  const __m128i low = _mm_set1_epi8(15);
  const int64_t per = w->block < PART ? w->block : PART, left = w->bytes - k / 2,
                bytes = left < count / 2 ? left : count / 2;
  const uint8_t *from = w->q + n * w->q_step + k / 2;
  int64_t i = 0;
  for (; i + 16 <= bytes; i += 16) {
    const __m128i x = load_16(from + i), a = _mm_and_si128(x, low), b = _mm_and_si128(_mm_srli_epi16(x, 4), low);
    store_16(q + 2 * i, _mm_unpacklo_epi8(a, b));
    store_16(q + 2 * i + 16, _mm_unpackhi_epi8(a, b));
  }
  for (; i < bytes; i++) {
    q[2 * i] = from[i] & 15;
    q[2 * i + 1] = from[i] >> 4;
  }
  memset(q + 2 * i, 0, (size_t)(count - 2 * i));
  for (int64_t p = 0; p < count / per; p++) {
    const int64_t block = (k + p * per) / w->block, at = n * w->scale_step + block;
    const bool is_there = block < w->blocks;
    scales[p] = is_there ? w->scales[at] : 0.0F;
    less[p] = is_there ? (8.0F + (w->zeros != NULL ? w->zeros[at] : 0.0F)) * scales[p] : 0.0F;
  }
}

/* Numbers k to k + count of row n; count is a multiple of a part. */
static void unpack(const nbits_rows *w, int form, int64_t n, int64_t k, int64_t count, piece *to, int i) {
  if (form == BLOCK_NONE) {
    read_nibbles(w, n, k, count, to->q[i], to->scales[i], to->less[i]);
    return;
  }
  const block_form *f = block_form_of(form);
  const uint8_t *from = w->q + n * w->q_step + k / f->elements * f->bytes;
  if (form == BLOCK_Q4_0) read_q4_0(from, count / PART, to->q[i], to->scales[i], to->less[i]);
  else if (form == BLOCK_Q8_0) read_q8_0(from, count / PART, to->q[i], to->scales[i]);
  else if (form == BLOCK_Q4_K) read_q4_k(from, to->q[i], to->scales[i], to->less[i]);
  else read_q6_k(from, to->q[i], to->scales[i], to->less[i]);
}

/* ---------------------------------------------------------------- turning */

/* Eight rows of 32 bytes to eight groups of four bytes of each row, 2 * PART apart. */
NARROW INSIDE void turn_part(const uint8_t (*from)[BLOCK_MOST], int64_t at, uint8_t *to) {
  __m256i r[LANES], s[LANES];
  for (int i = 0; i < LANES; i++) r[i] = _mm256_loadu_si256((const __m256i *)(const void *)(from[i] + at));
  for (int i = 0; i < LANES; i += 2) {
    s[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
    s[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < LANES; i += 4) {
    r[i] = _mm256_unpacklo_epi64(s[i], s[i + 2]);
    r[i + 1] = _mm256_unpackhi_epi64(s[i], s[i + 2]);
    r[i + 2] = _mm256_unpacklo_epi64(s[i + 1], s[i + 3]);
    r[i + 3] = _mm256_unpackhi_epi64(s[i + 1], s[i + 3]);
  }
  for (int i = 0; i < 4; i++) {
    __m256i *low = (__m256i *)(void *)(to + (size_t)i * 2 * PART),
            *high = (__m256i *)(void *)(to + (size_t)(i + 4) * 2 * PART);
    _mm256_storeu_si256(low, _mm256_permute2x128_si256(r[i], r[i + 4], 0x20));
    _mm256_storeu_si256(high, _mm256_permute2x128_si256(r[i], r[i + 4], 0x31));
  }
}

/* Columns first to first + COLUMNS; those behind the last are 0. */
NARROW static void fill(const nbits_rows *w, int form, int kind, int64_t first, int64_t columns, int64_t k,
                        int64_t count, piece *p, tile *t) {
  const int scales = (int)(count / PART) * (kind == SHORT_NIBBLES || kind == SIX ? 2 : 1);
  for (int half = 0; half < 2; half++) {
    for (int i = 0; i < LANES; i++) {
      const int64_t n = first + half * LANES + i;
      if (n < columns) {
        unpack(w, form, n, k, count, p, i);
      } else {
        memset(p->q[i], 0, sizeof p->q[i]);
        memset(p->scales[i], 0, sizeof p->scales[i]);
        memset(p->less[i], 0, sizeof p->less[i]);
      }
      for (int s = 0; s < scales; s++) {
        t->scales[s][half * LANES + i] = p->scales[i][s];
        t->less[s][half * LANES + i] = p->less[i][s];
      }
    }
    for (int64_t part = 0; part < count / PART; part++)
      turn_part((const uint8_t(*)[BLOCK_MOST])p->q, part * PART, t->q[part][0][half]);
  }
}

/* ---------------------------------------------------------------- products */

NARROW INSIDE __m256i four_of(const int8_t *q) {
  int32_t four;
  memcpy(&four, q, sizeof four);
  return _mm256_set1_epi32(four);
}

NARROW INSIDE __m256i weights_at(const tile *t, int64_t part, int group, int half) {
  return _mm256_loadu_si256((const __m256i *)(const void *)t->q[part][group][half]);
}

/* Unrolled, gcc adds in another order, and sums leave their registers. */
#define ROLLED _Pragma("GCC unroll 2")

/* Sums of one scale's products with groups [from, from + groups), of `rows` rows by two vectors of columns. */
NARROW INSIDE void sums_of(const tile *t, int64_t part, const bytes_row *r, const int rows, const int kind,
                           const int from, const int groups, __m256i sums[ROWS][2]) {
  const __m256i one = _mm256_set1_epi16(1);
  const int8_t *a[ROWS];
  for (int i = 0; i < rows; i++) {
    a[i] = r[i].q + part * PART;
    sums[i][0] = sums[i][1] = _mm256_setzero_si256();
  }
  if (kind == NIBBLES || kind == SHORT_NIBBLES) { /* 8 pairs of at most 2 * 15 * 127 */
    ROLLED for (int g = from; g < from + groups; g++) {
      const __m256i w[2] = {weights_at(t, part, g, 0), weights_at(t, part, g, 1)};
      for (int i = 0; i < rows; i++) {
        const __m256i b = four_of(a[i] + 4 * g);
        for (int c = 0; c < 2; c++) sums[i][c] = _mm256_add_epi16(sums[i][c], _mm256_maddubs_epi16(w[c], b));
      }
    }
    for (int i = 0; i < rows; i++)
      for (int c = 0; c < 2; c++) sums[i][c] = _mm256_madd_epi16(sums[i][c], one);
  } else if (kind == SIX) { /* 2 pairs of at most 2 * 63 * 127 */
    ROLLED for (int g = from; g < from + groups; g += 2) {
      for (int c = 0; c < 2; c++) {
        const __m256i w = weights_at(t, part, g, c), x = weights_at(t, part, g + 1, c);
        for (int i = 0; i < rows; i++) {
          const __m256i two = _mm256_add_epi16(_mm256_maddubs_epi16(w, four_of(a[i] + 4 * g)),
                                               _mm256_maddubs_epi16(x, four_of(a[i] + 4 * g + 4)));
          sums[i][c] = _mm256_add_epi32(sums[i][c], _mm256_madd_epi16(two, one));
        }
      }
    }
  } else {
    ROLLED for (int g = from; g < from + groups; g++) {
      for (int c = 0; c < 2; c++) {
        const __m256i w = weights_at(t, part, g, c), size = _mm256_abs_epi8(w);
        for (int i = 0; i < rows; i++) {
          const __m256i pair = _mm256_maddubs_epi16(size, _mm256_sign_epi8(four_of(a[i] + 4 * g), w));
          sums[i][c] = _mm256_add_epi32(sums[i][c], _mm256_madd_epi16(pair, one));
        }
      }
    }
  }
}

/* `rows` rows, step bytes apart, times a tile, added to out. */
NARROW INSIDE void multiply(const tile *t, int64_t parts, const bytes_row *first, int64_t step, const int rows,
                            const int kind, float *out) {
  const int each = kind == SHORT_NIBBLES || kind == SIX ? 2 : 1; /* scales of a part */
  bytes_row r[ROWS];
  for (int i = 0; i < rows; i++)
    r[i] = (bytes_row){first->q + i * step, first->scales + i * step / 4, first->sums + i * step / 4,
                       first->halves + i * step / 4};
  for (int64_t p = 0; p < parts; p++)
    for (int h = 0; h < each; h++) {
      const int64_t s = p * each + h;
      __m256i sums[ROWS][2];
      sums_of(t, p, r, rows, kind, h * GROUPS / each, GROUPS / each, sums);
      for (int c = 0; c < 2; c++) {
        const __m256 scale = _mm256_loadu_ps(t->scales[s] + c * LANES), less = _mm256_loadu_ps(t->less[s] + c * LANES);
        for (int i = 0; i < rows; i++) {
          float *to = out + i * NBITS_TILE + c * LANES;
          const __m256 by = _mm256_mul_ps(scale, _mm256_set1_ps(r[i].scales[p]));
          __m256 x = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[i][c]), by, _mm256_loadu_ps(to));
          if (kind != FULL) x = _mm256_fnmadd_ps(less, _mm256_set1_ps(each == 2 ? r[i].halves[s] : r[i].sums[p]), x);
          _mm256_storeu_ps(to, x);
        }
      }
    }
}

#define MAKE(name, kind) \
  NARROW static void multiply_##name(const tile *t, int64_t parts, const bytes_row *r, int64_t step, int rows, \
                                     float *out) { \
    if (rows == 4) multiply(t, parts, r, step, 4, kind, out); \
    else if (rows == 3) multiply(t, parts, r, step, 3, kind, out); \
    else if (rows == 2) multiply(t, parts, r, step, 2, kind, out); \
    else multiply(t, parts, r, step, 1, kind, out); \
  }
MAKE(nibbles, NIBBLES)
MAKE(short_nibbles, SHORT_NIBBLES)
MAKE(six, SIX)
MAKE(full, FULL)

void bytes_multiply_tiles(const nbits_rows *w, int form, int64_t columns, const char *laid, int64_t rows, int64_t depth,
                          float *room, float *out) {
  static void (*const by_kind[])(const tile *, int64_t, const bytes_row *, int64_t, int,
                                 float *) = {[NIBBLES] = multiply_nibbles,
                                             [SHORT_NIBBLES] = multiply_short_nibbles,
                                             [SIX] = multiply_six,
                                             [FULL] = multiply_full};
  piece *p = (piece *)(void *)room;
  tile *t = (tile *)(void *)(p + 1);
  const int kind = kind_of(w, form);
  const int64_t step = bytes_laid(depth), whole = (depth + PART - 1) / PART * PART;
  const bytes_row row = bytes_row_at(laid, depth);
  memset(out, 0, (size_t)(rows * NBITS_TILE) * sizeof *out);
  for (int64_t first = 0; first < columns; first += COLUMNS)
    for (int64_t k = 0; k < whole; k += BLOCK_MOST) {
      const int64_t count = whole - k < BLOCK_MOST ? whole - k : BLOCK_MOST;
      fill(w, form, kind, first, columns, k, count, p, t);
      for (int64_t i = 0; i < rows; i += ROWS) {
        const int some = rows - i < ROWS ? (int)(rows - i) : ROWS;
        const bytes_row r = {row.q + k + i * step, row.scales + k / PART + i * step / 4,
                             row.sums + k / PART + i * step / 4, row.halves + 2 * (k / PART) + i * step / 4};
        by_kind[kind](t, count / PART, &r, step, some, out + i * NBITS_TILE + first);
      }
    }
}

#else

void bytes_multiply_tiles(const nbits_rows *w, int form, int64_t columns, const char *laid, int64_t rows, int64_t depth,
                          float *room, float *out) {
  (void)w, (void)form, (void)columns, (void)laid, (void)rows, (void)depth, (void)room, (void)out;
}

#endif
