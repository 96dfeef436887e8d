/* Products of a row in blocks with a row of floats: plain, and for AVX2. Integers of a block with one scale are multiplied and
 * added up, then the scale; what a form subtracts is a product of the floats' sum. */
#include "block_forms.h"

#include "plugins/common/float16.h"
#include "plugins/common/halves.h"

#include <stddef.h>
#include <string.h>

/* ---------------------------------------------------------------- plain */

enum { LANES = 8 };

static float product_plain(int form, const uint8_t *row, int64_t count, const float *a) {
  float numbers[BLOCK_MOST], acc[LANES] = {0}, sum = 0;
  const block_form *f = block_form_of(form);
  for (int64_t k = 0; k < count; k += BLOCK_MOST) {
    const int64_t have = count - k < BLOCK_MOST ? count - k : BLOCK_MOST;
    memset(numbers + have, 0, (size_t)(BLOCK_MOST - have) * sizeof *numbers);
    block_read(form, row + k / f->elements * f->bytes, have, numbers);
    for (int64_t i = 0; i < BLOCK_MOST; i += LANES)
      for (int j = 0; j < LANES; j++) acc[j] += numbers[i + j] * a[k + i + j];
  }
  for (int j = 0; j < LANES; j++) sum += acc[j];
  return sum;
}

#define MAKE_PLAIN(name, form) \
  static float name##_plain(const uint8_t *row, int64_t count, const float *a) { \
    return product_plain(form, row, count, a); \
  }
MAKE_PLAIN(f16, BLOCK_F16)
MAKE_PLAIN(bf16, BLOCK_BF16)
MAKE_PLAIN(q4_0, BLOCK_Q4_0)
MAKE_PLAIN(q8_0, BLOCK_Q8_0)
MAKE_PLAIN(q4_k, BLOCK_Q4_K)
MAKE_PLAIN(q6_k, BLOCK_Q6_K)

static const block_product plain[BLOCK_FORMS] = {NULL,       f16_plain,  bf16_plain, q4_0_plain,
                                                 q8_0_plain, q4_k_plain, q6_k_plain};

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)

#include "block_vectors.h"

/* ---------------------------------------------------------------- AVX2 */

/* t and 16 integers of 8 bits times 16 floats. */
NARROW INSIDE __m256 add_16(__m128i q, const float *a, __m256 t) {
  t = _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q)), _mm256_loadu_ps(a), t);
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(q, 8))), _mm256_loadu_ps(a + 8), t);
}

NARROW INSIDE __m256 times_16(__m128i q, const float *a) {
  const __m256 t = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q)), _mm256_loadu_ps(a));
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(q, 8))), _mm256_loadu_ps(a + 8), t);
}

NARROW static float q4_0_narrow(const uint8_t *row, int64_t count, const float *a) {
  const __m128i low = _mm_set1_epi8(15), eight = _mm_set1_epi8(8);
  __m256 acc[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (int64_t k = 0; k < count; k += 32, row += 18, a += 32) {
    const __m128i q = load_16(row + 2);
    const __m256 d = _mm256_set1_ps(half_of(row));
    acc[0] = _mm256_fmadd_ps(times_16(_mm_sub_epi8(_mm_and_si128(q, low), eight), a), d, acc[0]);
    acc[1] =
        _mm256_fmadd_ps(times_16(_mm_sub_epi8(_mm_and_si128(_mm_srli_epi16(q, 4), low), eight), a + 16), d, acc[1]);
  }
  return total(_mm256_add_ps(acc[0], acc[1]));
}

NARROW static float q8_0_narrow(const uint8_t *row, int64_t count, const float *a) {
  __m256 acc[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (int64_t k = 0; k < count; k += 32, row += 34, a += 32) {
    const __m256 d = _mm256_set1_ps(half_of(row));
    acc[0] = _mm256_fmadd_ps(times_16(load_16(row + 2), a), d, acc[0]);
    acc[1] = _mm256_fmadd_ps(times_16(load_16(row + 18), a + 16), d, acc[1]);
  }
  return total(_mm256_add_ps(acc[0], acc[1]));
}

NARROW static float q4_k_narrow(const uint8_t *row, int64_t count, const float *a) {
  const __m128i low = _mm_set1_epi8(15);
  const float *sums = a + block_padded(count);
  __m256 acc[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()}, least;
  float scales[8];
  for (int64_t k = 0; k < count; k += 256, row += 144, a += 256, sums += 8) {
    scales_of(row, half_of(row), half_of(row + 2), scales, &least);
    acc[0] = _mm256_fmadd_ps(least, _mm256_loadu_ps(sums), acc[0]);
    for (int j = 0; j < 4; j++) {
      const __m128i q0 = load_16(row + 16 + 32 * j), q1 = load_16(row + 32 + 32 * j);
      const float *x = a + 64 * j;
      __m256 t = add_16(_mm_and_si128(q1, low), x + 16, times_16(_mm_and_si128(q0, low), x));
      acc[0] = _mm256_fmadd_ps(t, _mm256_set1_ps(scales[2 * j]), acc[0]);
      t = times_16(_mm_and_si128(_mm_srli_epi16(q0, 4), low), x + 32);
      t = add_16(_mm_and_si128(_mm_srli_epi16(q1, 4), low), x + 48, t);
      acc[1] = _mm256_fmadd_ps(t, _mm256_set1_ps(scales[2 * j + 1]), acc[1]);
    }
  }
  return total(_mm256_add_ps(acc[0], acc[1]));
}

NARROW INSIDE __m128i less_32(__m128i nibble, __m128i above) {
  return _mm_sub_epi8(six_bits(nibble, above), _mm_set1_epi8(32));
}

NARROW static float q6_k_narrow(const uint8_t *row, int64_t count, const float *a) {
  __m256 acc[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  float s[16];
  for (int64_t k = 0; k < count; k += 256, row += 210) {
    const __m256 d = _mm256_set1_ps(half_of(row + 208));
    const __m128i scales = load_16(row + 192);
    _mm256_storeu_ps(s, _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(scales))));
    _mm256_storeu_ps(s + 8, _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(scales, 8)))));
    for (int n = 0; n < 2; n++, a += 128)
      for (int i = 0; i < 2; i++) { /* 16 of each 32 */
        const __m128i l = load_16(row + 64 * n + 16 * i), m = load_16(row + 64 * n + 32 + 16 * i),
                      h = load_16(row + 128 + 32 * n + 16 * i);
        const float *x = a + 16 * i, *by = s + 8 * n + i;
        __m256 t = times_16(less_32(l, _mm_slli_epi16(h, 4)), x);
        acc[0] = _mm256_fmadd_ps(t, _mm256_set1_ps(by[0]), acc[0]);
        t = times_16(less_32(m, _mm_slli_epi16(h, 2)), x + 32);
        acc[1] = _mm256_fmadd_ps(t, _mm256_set1_ps(by[2]), acc[1]);
        t = times_16(less_32(_mm_srli_epi16(l, 4), h), x + 64);
        acc[0] = _mm256_fmadd_ps(t, _mm256_set1_ps(by[4]), acc[0]);
        t = times_16(less_32(_mm_srli_epi16(m, 4), _mm_srli_epi16(h, 2)), x + 96);
        acc[1] = _mm256_fmadd_ps(t, _mm256_set1_ps(by[6]), acc[1]);
      }
  }
  return total(_mm256_add_ps(acc[0], acc[1]));
}

NARROW INSIDE __m256 eight_halves(const uint8_t *at, bool brain) {
  const __m128i x = load_16(at);
  return brain ? _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16)) : _mm256_cvtph_ps(x);
}

NARROW INSIDE float halves(const uint8_t *row, int64_t count, const float *a, bool brain) {
  __m256 acc[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
  int64_t k = 0;
  for (; k + 32 <= count; k += 32)
    for (int j = 0; j < 4; j++)
      acc[j] = _mm256_fmadd_ps(eight_halves(row + 2 * k + 16 * j, brain), _mm256_loadu_ps(a + k + 8 * j), acc[j]);
  for (; k + 8 <= count; k += 8)
    acc[0] = _mm256_fmadd_ps(eight_halves(row + 2 * k, brain), _mm256_loadu_ps(a + k), acc[0]);
  float sum = total(_mm256_add_ps(_mm256_add_ps(acc[0], acc[1]), _mm256_add_ps(acc[2], acc[3])));
  for (; k < count; k++) {
    const uint16_t bits = (uint16_t)(row[2 * k] | row[2 * k + 1] << 8);
    sum += (brain ? bfloat16_to_float(bits) : float16_to_float(bits)) * a[k];
  }
  return sum;
}

NARROW static float f16_narrow(const uint8_t *row, int64_t count, const float *a) {
  return halves(row, count, a, false);
}

NARROW static float bf16_narrow(const uint8_t *row, int64_t count, const float *a) {
  return halves(row, count, a, true);
}

block_product block_product_of(int form) {
  static const block_product narrow[BLOCK_FORMS] = {NULL,        f16_narrow,  bf16_narrow, q4_0_narrow,
                                                    q8_0_narrow, q4_k_narrow, q6_k_narrow};
  const bool has = halves_by_eight() && __builtin_cpu_supports("fma");
  return has ? narrow[form] : plain[form];
}

#else

block_product block_product_of(int form) {
  return plain[form];
}

#endif
