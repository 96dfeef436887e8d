/* Rows of floats as int8, and products of them with a row in blocks as it lies: see block_bytes.h. A pair of products stays within 16
 * bits: at most 2 * 128 * 127. */
#include "block_bytes.h"

#include <math.h>
#include <stddef.h>

#include "plugins/common/halves.h"

enum { PART = BLOCK_SUM, HALF = BLOCK_SUM / 2 };

bool bytes_has(int form) {
  const block_form *f = block_form_of(form);
  return bytes_here() && f != NULL && f->elements >= PART;
}

int64_t bytes_laid(int64_t count) {
  const int64_t padded = block_padded(count);
  return padded + padded / PART * 4 * (int64_t)sizeof(float);
}

bytes_row bytes_row_at(const char *laid, int64_t count) {
  const int64_t padded = block_padded(count), parts = padded / PART;
  float *scales = (float *)(void *)(uintptr_t)(laid + padded);
  return (bytes_row){(int8_t *)(uintptr_t)laid, scales, scales + parts, scales + 2 * parts};
}

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)

#include "block_vectors.h"

bool bytes_here(void) {
  return halves_by_eight() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

/* ---------------------------------------------------------------- rows */

/* Below, 127 / most is not finite. */
#define LEAST 0x1p-119F

NARROW INSIDE float most_of(__m256 x) {
  __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  y = _mm_max_ps(y, _mm_movehl_ps(y, y));
  return _mm_cvtss_f32(_mm_max_ss(y, _mm_shuffle_ps(y, y, 1)));
}

NARROW INSIDE void lay_part(const float *a, const bytes_row *r, int64_t part) {
  const __m256 sign = _mm256_set1_ps(-0.0F);
  __m256 x[4], most = _mm256_setzero_ps(), nothing = most;
  __m256i q[4];
  for (int i = 0; i < 4; i++) {
    x[i] = _mm256_loadu_ps(a + 8 * i);
    most = _mm256_max_ps(most, _mm256_andnot_ps(sign, x[i]));
    nothing = _mm256_add_ps(nothing, _mm256_sub_ps(x[i], x[i])); /* NaN of what is not finite */
  }
  const float top = most_of(most);
  const bool finite = total(nothing) == 0.0F;
  const float inverse = finite && top > LEAST ? 127.0F / top : 0.0F;
  const float scale = finite ? (top > LEAST ? top / 127.0F : 0.0F) : NAN;
  for (int i = 0; i < 4; i++)
    q[i] = finite ? _mm256_cvtps_epi32(_mm256_mul_ps(x[i], _mm256_set1_ps(inverse))) : _mm256_setzero_si256();
  const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
  const __m256i bytes = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  _mm256_storeu_si256((__m256i *)(void *)(r->q + PART * part), bytes);
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
  const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  int32_t sums[8];
  _mm256_storeu_si256((__m256i *)(void *)sums, fours);
  const int32_t low = sums[0] + sums[1] + sums[2] + sums[3], high = sums[4] + sums[5] + sums[6] + sums[7];
  r->scales[part] = scale;
  r->sums[part] = (float)(low + high) * scale;
  r->halves[2 * part] = (float)low * scale;
  r->halves[2 * part + 1] = (float)high * scale;
}

NARROW void bytes_lay(const float *a, int64_t count, char *laid) {
  const bytes_row r = bytes_row_at(laid, count);
  const int64_t parts = block_padded(count) / PART;
  for (int64_t p = 0; p < parts; p++) {
    const int64_t left = count - p * PART;
    float cut[PART] = {0};
    if (left > 0 && left < PART) memcpy(cut, a + p * PART, (size_t)left * sizeof *cut);
    lay_part(left >= PART ? a + p * PART : cut, &r, p);
  }
}

/* ---------------------------------------------------------------- products */

NARROW INSIDE __m256i load_32(const void *at) {
  return _mm256_loadu_si256((const __m256i *)at);
}

NARROW INSIDE __m256 spread_half(const uint8_t *at) {
  uint16_t bits;
  memcpy(&bits, at, sizeof bits);
  return _mm256_cvtph_ps(_mm_set1_epi16((int16_t)bits));
}

/* Of integers from 0 on with int8: sums of four, as floats. */
NARROW INSIDE __m256 dot(__m256i q, __m256i a) {
  return _mm256_cvtepi32_ps(_mm256_madd_epi16(_mm256_maddubs_epi16(q, a), _mm256_set1_epi16(1)));
}

NARROW INSIDE __m256i nibbles_of(__m128i q) {
  const __m256i both = _mm256_insertf128_si256(_mm256_castsi128_si256(q), _mm_srli_epi16(q, 4), 1);
  return _mm256_and_si256(both, _mm256_set1_epi8(15));
}

NARROW INSIDE void add_q4_0(const uint8_t *block, const bytes_row *r, int64_t p, __m256 *acc, __m256 *less) {
  const __m256 d = spread_half(block);
  const __m256 t = dot(nibbles_of(load_16(block + 2)), load_32(r->q + PART * p));
  *acc = _mm256_fmadd_ps(t, _mm256_mul_ps(d, _mm256_set1_ps(r->scales[p])), *acc);
  *less = _mm256_fmadd_ps(d, _mm256_set1_ps(r->sums[p]), *less); /* the same in each lane */
}

NARROW static float q4_0_bytes(const uint8_t *row, int64_t count, const char *laid) {
  const bytes_row r = bytes_row_at(laid, count);
  const int64_t parts = count / PART;
  __m256 acc[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()}, less[2] = {acc[0], acc[0]};
  int64_t p = 0;
  for (; p + 2 <= parts; p += 2, row += 36) {
    add_q4_0(row, &r, p, &acc[0], &less[0]);
    add_q4_0(row + 18, &r, p + 1, &acc[1], &less[1]);
  }
  if (p < parts) add_q4_0(row, &r, p, &acc[0], &less[0]);
  return total(_mm256_add_ps(acc[0], acc[1])) - 8.0F * _mm256_cvtss_f32(_mm256_add_ps(less[0], less[1]));
}

/* Nibbles of a block of two rows, a row in each half, times the same numbers: sums of eight. */
NARROW INSIDE __m256 dot_two(const uint8_t *first, const uint8_t *second, __m256i low, __m256i high) {
  const __m256i q = _mm256_insertf128_si256(_mm256_castsi128_si256(load_16(first)), load_16(second), 1);
  const __m256i mask = _mm256_set1_epi8(15);
  const __m256i sums = _mm256_add_epi16(_mm256_maddubs_epi16(_mm256_and_si256(q, mask), low),
                                        _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(q, 4), mask), high));
  return _mm256_cvtepi32_ps(_mm256_madd_epi16(sums, _mm256_set1_epi16(1)));
}

NARROW static void q4_0_four(const uint8_t *rows, int64_t step, int64_t count, const char *laid, float *out) {
  const bytes_row r = bytes_row_at(laid, count);
  const __m256i left = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1), right = _mm256_setr_epi32(2, 2, 2, 2, 3, 3, 3, 3);
  const uint8_t *w[BYTES_ROWS] = {rows, rows + step, rows + 2 * step, rows + 3 * step};
  __m256 acc[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  __m128 less = _mm_setzero_ps();
  for (int64_t p = 0; p < count / PART; p++) {
    const __m128i *a = (const __m128i *)(const void *)(r.q + PART * p);
    const __m256i low = _mm256_broadcastsi128_si256(_mm_loadu_si128(a)),
                  high = _mm256_broadcastsi128_si256(_mm_loadu_si128(a + 1));
    uint16_t bits[BYTES_ROWS];
    for (int i = 0; i < BYTES_ROWS; i++) memcpy(&bits[i], w[i] + 18 * p, sizeof bits[i]);
    const __m128 d = _mm_cvtph_ps(
        _mm_setr_epi16((int16_t)bits[0], (int16_t)bits[1], (int16_t)bits[2], (int16_t)bits[3], 0, 0, 0, 0));
    const __m256 by = _mm256_castps128_ps256(_mm_mul_ps(d, _mm_set1_ps(r.scales[p])));
    less = _mm_fmadd_ps(d, _mm_set1_ps(r.sums[p]), less);
    acc[0] = _mm256_fmadd_ps(dot_two(w[0] + 18 * p + 2, w[1] + 18 * p + 2, low, high),
                             _mm256_permutevar8x32_ps(by, left), acc[0]);
    acc[1] = _mm256_fmadd_ps(dot_two(w[2] + 18 * p + 2, w[3] + 18 * p + 2, low, high),
                             _mm256_permutevar8x32_ps(by, right), acc[1]);
  }
  const __m256 pairs = _mm256_hadd_ps(acc[0], acc[1]), sums = _mm256_hadd_ps(pairs, pairs); /* 0 2 0 2, 1 3 1 3 */
  const __m128 four = _mm_unpacklo_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
  _mm_storeu_ps(out, _mm_fnmadd_ps(less, _mm_set1_ps(8.0F), four));
}

NARROW INSIDE __m256 add_q8_0(const uint8_t *block, const bytes_row *r, int64_t p, __m256 acc) {
  const __m256i q = load_32(block + 2), a = load_32(r->q + PART * p);
  return _mm256_fmadd_ps(dot(_mm256_abs_epi8(q), _mm256_sign_epi8(a, q)),
                         _mm256_mul_ps(spread_half(block), _mm256_set1_ps(r->scales[p])), acc);
}

NARROW static float q8_0_bytes(const uint8_t *row, int64_t count, const char *laid) {
  const bytes_row r = bytes_row_at(laid, count);
  const int64_t parts = count / PART;
  __m256 acc[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  int64_t p = 0;
  for (; p + 2 <= parts; p += 2, row += 68) {
    acc[0] = add_q8_0(row, &r, p, acc[0]);
    acc[1] = add_q8_0(row + 34, &r, p + 1, acc[1]);
  }
  if (p < parts) acc[0] = add_q8_0(row, &r, p, acc[0]);
  return total(_mm256_add_ps(acc[0], acc[1]));
}

NARROW static float q4_k_bytes(const uint8_t *row, int64_t count, const char *laid) {
  const bytes_row r = bytes_row_at(laid, count);
  const __m256i low = _mm256_set1_epi8(15);
  __m256 acc[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()}, less = acc[0], least;
  for (int64_t p = 0; p < count / PART; p += 8, row += 144) {
    float scales[8];
    scales_of(row, half_of(row), half_of(row + 2), scales, &least);
    less = _mm256_fmadd_ps(least, _mm256_loadu_ps(r.sums + p), less);
    _mm256_storeu_ps(scales, _mm256_mul_ps(_mm256_loadu_ps(scales), _mm256_loadu_ps(r.scales + p)));
    for (int j = 0; j < 4; j++) {
      const __m256i q = load_32(row + 16 + 32 * j);
      const int8_t *a = r.q + PART * (p + 2 * j);
      acc[0] = _mm256_fmadd_ps(dot(_mm256_and_si256(q, low), load_32(a)), _mm256_set1_ps(scales[2 * j]), acc[0]);
      acc[1] = _mm256_fmadd_ps(dot(_mm256_and_si256(_mm256_srli_epi16(q, 4), low), load_32(a + PART)),
                               _mm256_set1_ps(scales[2 * j + 1]), acc[1]);
    }
  }
  return total(_mm256_add_ps(_mm256_add_ps(acc[0], acc[1]), less));
}

NARROW static float q6_k_bytes(const uint8_t *row, int64_t count, const char *laid) {
  const bytes_row r = bytes_row_at(laid, count);
  const __m256i low = _mm256_set1_epi8(15), two = _mm256_set1_epi8(0x30);
  __m256 acc = _mm256_setzero_ps(), less = acc;
  for (int64_t p = 0; p < count / PART; p += 8, row += 210) {
    const __m256 d = spread_half(row + 208);
    const __m128i s = load_16(row + 192);
    const __m256 s0 = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(s)),
                 s1 = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(s, 8)));
    __m256 t = _mm256_mul_ps(s0, _mm256_loadu_ps(r.halves + 2 * p));
    t = _mm256_fmadd_ps(s1, _mm256_loadu_ps(r.halves + 2 * p + 8), t);
    less = _mm256_fmadd_ps(t, d, less);
    int16_t scales[16];
    _mm256_storeu_si256((__m256i *)(void *)scales, _mm256_cvtepi8_epi16(s));
    for (int n = 0; n < 2; n++) {
      const __m256i l = load_32(row + 64 * n), m = load_32(row + 64 * n + 32), h = load_32(row + 128 + 32 * n);
      const __m256i q[4] = {_mm256_or_si256(_mm256_and_si256(l, low), _mm256_and_si256(_mm256_slli_epi16(h, 4), two)),
                            _mm256_or_si256(_mm256_and_si256(m, low), _mm256_and_si256(_mm256_slli_epi16(h, 2), two)),
                            _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(l, 4), low), _mm256_and_si256(h, two)),
                            _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(m, 4), low),
                                            _mm256_and_si256(_mm256_srli_epi16(h, 2), two))};
      for (int j = 0; j < 4; j++) {
        const int64_t part = p + 4 * n + j;
        const __m256i by = _mm256_insertf128_si256(_mm256_castsi128_si256(_mm_set1_epi16(scales[8 * n + 2 * j])),
                                                   _mm_set1_epi16(scales[8 * n + 2 * j + 1]), 1);
        const __m256i sums = _mm256_madd_epi16(_mm256_maddubs_epi16(q[j], load_32(r.q + PART * part)), by);
        acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums), _mm256_mul_ps(d, _mm256_set1_ps(r.scales[part])), acc);
      }
    }
  }
  return total(_mm256_fmadd_ps(_mm256_set1_ps(-32.0F), less, acc));
}

bytes_product bytes_product_of(int form) {
  static const bytes_product products[BLOCK_FORMS] = {
      [BLOCK_Q4_0] = q4_0_bytes, [BLOCK_Q8_0] = q8_0_bytes, [BLOCK_Q4_K] = q4_k_bytes, [BLOCK_Q6_K] = q6_k_bytes};
  return products[form];
}

bytes_products bytes_products_of(int form) {
  return form == BLOCK_Q4_0 ? q4_0_four : NULL;
}

#else

bool bytes_here(void) {
  return false;
}

void bytes_lay(const float *a, int64_t count, char *laid) {
  (void)a, (void)count, (void)laid;
}

bytes_product bytes_product_of(int form) {
  (void)form;
  return NULL;
}

bytes_products bytes_products_of(int form) {
  (void)form;
  return NULL;
}

#endif
