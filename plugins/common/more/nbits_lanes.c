/* Products of weights of four bits with a row of floats, or of int8: plain, for AVX2 and for AVX-512. A lane's sum of a group
 * is multiplied by its block's scale; lanes are added up at the end. */
#include "nbits.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

/* ---------------------------------------------------------------- layouts */

static int64_t groups_of(int64_t n) {
  return (n + NBITS_GROUP - 1) / NBITS_GROUP;
}

void nbits_lay_floats(const float *a, int64_t n, float *out) {
  for (int64_t g = 0; g < groups_of(n); g++, out += NBITS_GROUP_FLOATS) {
    for (int i = 0; i < NBITS_LANES; i++) {
      float sum = 0;
      for (int j = 0; j < NBITS_DEEP; j++) {
        const int64_t k = g * NBITS_GROUP + i * NBITS_DEEP + j;
        const float x = k < n ? a[k] : 0.0F;
        out[j * NBITS_LANES + i] = x;
        sum += x;
      }
      out[NBITS_GROUP + i] = sum;
    }
  }
}

/* 1.5 * 2^23: a float of less than 2^22 that it is added to is rounded to an integer, halves to even. */
#define ROUNDER 12582912.0F

static float greatest(const float *a, int64_t n) {
  float most = 0;
  for (int64_t k = 0; k < n; k++) most = fabsf(a[k]) > most || isnan(a[k]) ? fabsf(a[k]) : most;
  return most;
}

void nbits_lay_bytes(const float *a, int64_t n, int64_t block, int8_t *out) {
  for (int64_t g = 0; g < groups_of(n); g++, out += NBITS_GROUP_BYTES) {
    int32_t *minus = (int32_t *)(void *)(out + NBITS_GROUP);
    float *scales = (float *)(void *)(minus + NBITS_LANES);
    for (int64_t first = 0; first < NBITS_GROUP; first += block) {
      const int64_t at = g * NBITS_GROUP + first, have = n - at < 0 ? 0 : n - at < block ? n - at : block;
      const float most = greatest(a + at, have), inverse = most > 0 ? 127.0F / most : 0.0F;
      for (int64_t k = 0; k < block; k++) {
        const float x = k < have && most <= FLT_MAX ? a[at + k] * inverse + ROUNDER - ROUNDER : 0.0F;
        out[(first + k) / 2 + (k % 2) * (NBITS_GROUP / 2)] = (int8_t)x;
      }
      for (int64_t i = first / NBITS_DEEP; i < (first + block) / NBITS_DEEP; i++) {
        minus[i] = 0;
        for (int j = 0; j < NBITS_DEEP / 2; j++) minus[i] -= out[4 * i + j] + out[NBITS_GROUP / 2 + 4 * i + j];
        scales[i] = most / 127.0F; /* not finite where a number is not */
        if (!(most <= FLT_MAX)) scales[i] = NAN;
      }
    }
  }
}

/* ---------------------------------------------------------------- groups */

/* How scales of a group lie: `per` of them, or one for 2^shift groups. */
static inline int per_of(int64_t block) {
  return block >= NBITS_GROUP ? 1 : (int)(NBITS_GROUP / block);
}

static inline int shift_of(int64_t block) {
  int shift = 0;
  while (block > (int64_t)NBITS_GROUP << shift) shift++;
  return shift;
}

/* The bytes, scales and zeros of group g of row r. The last group of a row, which may be cut short, comes from a copy. */
typedef struct group {
  const uint8_t *q;
  const float *scales, *zeros;
} group;

typedef struct cut {
  uint8_t q[NBITS_GROUP / 2];
  float scales[8], zeros[8];
} cut;

static inline int64_t whole_groups(const nbits_rows *w) {
  const int64_t by_bytes = w->bytes / (NBITS_GROUP / 2);
  return w->block < NBITS_GROUP && w->blocks / per_of(w->block) < by_bytes ? w->blocks / per_of(w->block) : by_bytes;
}

static inline group group_at(const nbits_rows *w, int r, int64_t g, int per, int shift) {
  const int64_t at = r * w->scale_step + (per == 1 ? g >> shift : g * per);
  return (group){w->q + r * w->q_step + g * (NBITS_GROUP / 2), w->scales + at, w->zeros != NULL ? w->zeros + at : NULL};
}

static group cut_group(const nbits_rows *w, int r, int64_t g, int per, int shift, cut *room) {
  group x = group_at(w, r, g, per, shift);
  const int64_t first = per == 1 ? g >> shift : g * per, scales = w->blocks - first < per ? w->blocks - first : per;
  const int64_t left = w->bytes - g * (NBITS_GROUP / 2), bytes = left < NBITS_GROUP / 2 ? left : NBITS_GROUP / 2;
  memset(room, 0, sizeof *room);
  memcpy(room->q, x.q, (size_t)bytes);
  memcpy(room->scales, x.scales, (size_t)scales * sizeof(float));
  if (x.zeros != NULL) memcpy(room->zeros, x.zeros, (size_t)scales * sizeof(float));
  return (group){room->q, room->scales, x.zeros != NULL ? room->zeros : NULL};
}

/* ---------------------------------------------------------------- plain */

static void add_plain(const group *x, const float *a, int per, float *acc) {
  float sum[NBITS_LANES] = {0};
  uint32_t q[NBITS_LANES];
  for (int i = 0; i < NBITS_LANES; i++)
    q[i] = (uint32_t)x->q[4 * i] | (uint32_t)x->q[4 * i + 1] << 8 | (uint32_t)x->q[4 * i + 2] << 16 |
           (uint32_t)x->q[4 * i + 3] << 24;
  for (int j = 0; j < NBITS_DEEP; j++)
    for (int i = 0; i < NBITS_LANES; i++)
      sum[i] += a[j * NBITS_LANES + i] * (float)((int32_t)(q[i] >> (4 * j) & 15) - 8);
  for (int i = 0; i < NBITS_LANES; i++) {
    const int s = i * per / NBITS_LANES;
    if (x->zeros != NULL) sum[i] -= x->zeros[s] * a[NBITS_GROUP + i];
    acc[i] += sum[i] * x->scales[s];
  }
}

static void add_bytes_plain(const group *x, const int8_t *a, int per, float *acc) {
  const int32_t *minus = (const int32_t *)(const void *)(a + NBITS_GROUP);
  const float *scales = (const float *)(const void *)(minus + NBITS_LANES);
  for (int i = 0; i < NBITS_LANES; i++) {
    const int s = i * per / NBITS_LANES;
    int32_t sum = 8 * minus[i];
    for (int j = 0; j < 4; j++)
      sum += (x->q[4 * i + j] & 15) * a[4 * i + j] + (x->q[4 * i + j] >> 4) * a[NBITS_GROUP / 2 + 4 * i + j];
    float t = (float)sum;
    if (x->zeros != NULL) t += x->zeros[s] * (float)minus[i];
    acc[i] += t * (scales[i] * x->scales[s]);
  }
}

static void product_plain(const nbits_rows *w, int rows, float *out, bool bytes) {
  const int per = per_of(w->block), shift = shift_of(w->block);
  const int64_t whole = whole_groups(w), all = (w->bytes + NBITS_GROUP / 2 - 1) / (NBITS_GROUP / 2);
  cut room;
  for (int r = 0; r < rows; r++) {
    float acc[NBITS_LANES] = {0}, sum = 0;
    for (int64_t g = 0; g < all; g++) {
      const group x = g < whole ? group_at(w, r, g, per, shift) : cut_group(w, r, g, per, shift, &room);
      if (bytes) add_bytes_plain(&x, (const int8_t *)w->a + g * NBITS_GROUP_BYTES, per, acc);
      else add_plain(&x, (const float *)w->a + g * NBITS_GROUP_FLOATS, per, acc);
    }
    for (int i = 0; i < NBITS_LANES; i++) sum += acc[i];
    out[r] = sum;
  }
}

/* ---------------------------------------------------------------- bytes, and numbers */

#define INSIDE static inline __attribute__((always_inline))

/* Weights of 8 bits: 16 lanes of a block are added up, then its scale. */
INSIDE void eight_any(const nbits_rows *w, int rows, float *out) {
  for (int r = 0; r < rows; r++) {
    const uint8_t *restrict q = w->q + r * w->q_step;
    const float *restrict a = w->a, *scales = w->scales + r * w->scale_step;
    const float *zeros = w->zeros != NULL ? w->zeros + r * w->scale_step : NULL;
    float acc[NBITS_LANES] = {0}, sum = 0;
    for (int64_t b = 0; b < w->blocks; b++) {
      const float zero = 128.0F + (zeros != NULL ? zeros[b] : 0.0F), scale = scales[b];
      const int64_t left = w->bytes - b * w->block, count = left < w->block ? left : w->block;
      float t[NBITS_LANES] = {0};
      for (int64_t k = 0; k < count; k += NBITS_LANES, q += NBITS_LANES, a += NBITS_LANES)
        for (int i = 0; i < NBITS_LANES; i++) t[i] += a[i] * ((float)q[i] - zero);
      for (int i = 0; i < NBITS_LANES; i++) acc[i] += t[i] * scale;
    }
    for (int i = 0; i < NBITS_LANES; i++) sum += acc[i];
    out[r] = sum;
  }
}

INSIDE void unpack_any(const uint8_t *restrict row, int64_t bits, int64_t count, float *restrict out) {
  if (bits == 8) {
    for (int64_t k = 0; k < count; k++) out[k] = (float)row[k];
  } else if (bits == 4) {
    for (int64_t k = 0; k < count / 2; k++) {
      out[2 * k] = (float)(row[k] & 15);
      out[2 * k + 1] = (float)(row[k] >> 4);
    }
    if (count % 2 != 0) out[count - 1] = (float)(row[count / 2] & 15);
  } else {
    for (int64_t k = 0; k < count; k++) out[k] = (float)(row[k / 4] >> (2 * (k % 4)) & 3);
  }
}

#define MAKE_PLAIN(name, target) \
  target static void eight_##name(const nbits_rows *w, int rows, float *out) { \
    eight_any(w, rows, out); \
  } \
  target static void unpack_##name(const uint8_t *row, int64_t bits, int64_t count, float *out) { \
    unpack_any(row, bits, count, out); \
  }

MAKE_PLAIN(plain, )

static void floats_plain(const nbits_rows *w, int rows, float *out) {
  product_plain(w, rows, out, false);
}

static void bytes_plain(const nbits_rows *w, int rows, float *out) {
  product_plain(w, rows, out, true);
}

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)

#include <immintrin.h>

#define WIDE __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))
#define VNNI __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx512vnni,avx2,fma")))
#define NARROW __attribute__((target("avx2,fma")))

/* ---------------------------------------------------------------- AVX-512 */

/* Each lane's number of per. */
WIDE INSIDE __m512 spread_wide(const float *s, const int per) {
  if (per == 1) return _mm512_set1_ps(s[0]);
  if (per == 2) {
    const __m512 two = _mm512_castps128_ps512(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)s)));
    return _mm512_permutexvar_ps(_mm512_set_epi32(1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0), two);
  }
  if (per == 4)
    return _mm512_permutevar_ps(_mm512_broadcast_f32x4(_mm_loadu_ps(s)),
                                _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0));
  return _mm512_permutexvar_ps(_mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0),
                               _mm512_castps256_ps512(_mm256_loadu_ps(s)));
}

WIDE INSIDE void add_wide(const group *x, const float *a, const int rows, const int per, const bool zeros,
                          __m512 *acc) {
  const __m512 table = _mm512_set_ps(7, 6, 5, 4, 3, 2, 1, 0, -1, -2, -3, -4, -5, -6, -7, -8);
  __m512i q[NBITS_AT_ONCE];
  __m512 t[NBITS_AT_ONCE];
  for (int r = 0; r < rows; r++) {
    q[r] = _mm512_loadu_si512(x[r].q);
    t[r] = zeros ? _mm512_mul_ps(spread_wide(x[r].zeros, per),
                                 _mm512_sub_ps(_mm512_setzero_ps(), _mm512_loadu_ps(a + NBITS_GROUP)))
                 : _mm512_setzero_ps();
  }
#define STEP(j) \
  do { \
    const __m512 b = _mm512_loadu_ps(a + (j)*NBITS_LANES); \
    for (int r = 0; r < rows; r++) \
      t[r] = _mm512_fmadd_ps(_mm512_permutexvar_ps(_mm512_srli_epi32(q[r], 4 * (j)), table), b, t[r]); \
  } while (false)
  STEP(0);
  STEP(1);
  STEP(2);
  STEP(3);
  STEP(4);
  STEP(5);
  STEP(6);
  STEP(7);
#undef STEP
  for (int r = 0; r < rows; r++) acc[r] = _mm512_fmadd_ps(t[r], spread_wide(x[r].scales, per), acc[r]);
}

VNNI INSIDE void add_bytes_wide(const group *x, const int8_t *a, const int rows, const int per, const bool zeros,
                                __m512 *acc) {
  const __m512i even = _mm512_loadu_si512(a), odd = _mm512_loadu_si512(a + NBITS_GROUP / 2);
  const __m512i minus = _mm512_loadu_si512(a + NBITS_GROUP), low = _mm512_set1_epi8(15);
  const __m512i start = _mm512_slli_epi32(minus, 3);
  const __m512 scales = _mm512_loadu_ps(a + NBITS_GROUP + NBITS_LANES * sizeof(int32_t));
  for (int r = 0; r < rows; r++) {
    const __m512i q = _mm512_loadu_si512(x[r].q);
    __m512i sum = _mm512_dpbusd_epi32(start, _mm512_and_si512(q, low), even);
    sum = _mm512_dpbusd_epi32(sum, _mm512_and_si512(_mm512_srli_epi16(q, 4), low), odd);
    __m512 t = _mm512_cvtepi32_ps(sum);
    if (zeros) t = _mm512_fmadd_ps(spread_wide(x[r].zeros, per), _mm512_cvtepi32_ps(minus), t);
    acc[r] = _mm512_fmadd_ps(t, _mm512_mul_ps(scales, spread_wide(x[r].scales, per)), acc[r]);
  }
}

#define EVERY_GROUP(add, a_type, a_step) \
  do { \
    const int64_t whole = whole_groups(w), all = (w->bytes + NBITS_GROUP / 2 - 1) / (NBITS_GROUP / 2); \
    const int shift = shift_of(w->block); \
    const a_type *a = w->a; \
    group x[NBITS_AT_ONCE]; \
    cut room[NBITS_AT_ONCE]; \
    for (int64_t g = 0; g < whole; g++, a += (a_step)) { \
      for (int r = 0; r < rows; r++) x[r] = group_at(w, r, g, per, shift); \
      add(x, a, rows, per, zeros, acc); \
    } \
    for (int64_t g = whole; g < all; g++, a += (a_step)) { \
      for (int r = 0; r < rows; r++) x[r] = cut_group(w, r, g, per, shift, &room[r]); \
      add(x, a, rows, per, zeros, acc); \
    } \
  } while (false)

WIDE INSIDE void floats_wide_of(const nbits_rows *w, const int rows, const int per, const bool zeros, float *out) {
  __m512 acc[NBITS_AT_ONCE];
  for (int r = 0; r < rows; r++) acc[r] = _mm512_setzero_ps();
  EVERY_GROUP(add_wide, float, NBITS_GROUP_FLOATS);
  for (int r = 0; r < rows; r++) out[r] = _mm512_reduce_add_ps(acc[r]);
}

VNNI INSIDE void bytes_wide_of(const nbits_rows *w, const int rows, const int per, const bool zeros, float *out) {
  __m512 acc[NBITS_AT_ONCE];
  for (int r = 0; r < rows; r++) acc[r] = _mm512_setzero_ps();
  EVERY_GROUP(add_bytes_wide, int8_t, NBITS_GROUP_BYTES);
  for (int r = 0; r < rows; r++) out[r] = _mm512_reduce_add_ps(acc[r]);
}

/* ---------------------------------------------------------------- AVX2 */

/* The same of lanes 8 half to 8 half + 7. */
NARROW INSIDE __m256 spread_narrow(const float *s, const int per, const int half) {
  if (per == 1) return _mm256_set1_ps(s[0]);
  if (per == 2) return _mm256_set1_ps(s[half]);
  if (per == 4) return _mm256_set_m128(_mm_set1_ps(s[2 * half + 1]), _mm_set1_ps(s[2 * half]));
  const __m128 four = _mm_loadu_ps(s + 4 * half);
  return _mm256_set_m128(_mm_unpackhi_ps(four, four), _mm_unpacklo_ps(four, four));
}

NARROW INSIDE void add_narrow(const group *x, const float *a, const int rows, const int per, const bool zeros,
                              __m256 *acc) {
  const __m256i low = _mm256_set1_epi32(15), eight = _mm256_set1_epi32(8);
  for (int half = 0; half < 2; half++) {
    __m256i q[NBITS_AT_ONCE];
    __m256 t[NBITS_AT_ONCE];
    for (int r = 0; r < rows; r++) {
      q[r] = _mm256_loadu_si256((const __m256i *)(const void *)(x[r].q + 32 * half));
      t[r] = zeros ? _mm256_mul_ps(spread_narrow(x[r].zeros, per, half),
                                   _mm256_sub_ps(_mm256_setzero_ps(), _mm256_loadu_ps(a + NBITS_GROUP + 8 * half)))
                   : _mm256_setzero_ps();
    }
    for (int j = 0; j < NBITS_DEEP; j++) {
      const __m256 b = _mm256_loadu_ps(a + j * NBITS_LANES + 8 * half);
      for (int r = 0; r < rows; r++) {
        const __m256i number = _mm256_sub_epi32(_mm256_and_si256(q[r], low), eight);
        t[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(number), b, t[r]);
        q[r] = _mm256_srli_epi32(q[r], 4);
      }
    }
    for (int r = 0; r < rows; r++) acc[r] = _mm256_fmadd_ps(t[r], spread_narrow(x[r].scales, per, half), acc[r]);
  }
}

NARROW INSIDE void add_bytes_narrow(const group *x, const int8_t *a, const int rows, const int per, const bool zeros,
                                    __m256 *acc) {
  const __m256i low = _mm256_set1_epi8(15), one = _mm256_set1_epi16(1);
  for (int half = 0; half < 2; half++) {
    const int8_t *at = a + 32 * half;
    const __m256i even = _mm256_loadu_si256((const __m256i *)(const void *)at);
    const __m256i odd = _mm256_loadu_si256((const __m256i *)(const void *)(at + NBITS_GROUP / 2));
    const __m256i minus = _mm256_loadu_si256((const __m256i *)(const void *)(at + NBITS_GROUP));
    const __m256 scales = _mm256_loadu_ps((const float *)(const void *)(at + NBITS_GROUP + NBITS_LANES * 4));
    for (int r = 0; r < rows; r++) {
      const __m256i q = _mm256_loadu_si256((const __m256i *)(const void *)(x[r].q + 32 * half));
      const __m256i sums = _mm256_add_epi16(_mm256_maddubs_epi16(_mm256_and_si256(q, low), even),
                                            _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(q, 4), low), odd));
      __m256 t = _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_madd_epi16(sums, one), _mm256_slli_epi32(minus, 3)));
      if (zeros) t = _mm256_fmadd_ps(spread_narrow(x[r].zeros, per, half), _mm256_cvtepi32_ps(minus), t);
      acc[r] = _mm256_fmadd_ps(t, _mm256_mul_ps(scales, spread_narrow(x[r].scales, per, half)), acc[r]);
    }
  }
}

NARROW INSIDE float total_narrow(__m256 x) {
  __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  y = _mm_add_ps(y, _mm_movehl_ps(y, y));
  return _mm_cvtss_f32(_mm_add_ss(y, _mm_shuffle_ps(y, y, 1)));
}

NARROW INSIDE void floats_narrow_of(const nbits_rows *w, const int rows, const int per, const bool zeros, float *out) {
  __m256 acc[NBITS_AT_ONCE];
  for (int r = 0; r < rows; r++) acc[r] = _mm256_setzero_ps();
  EVERY_GROUP(add_narrow, float, NBITS_GROUP_FLOATS);
  for (int r = 0; r < rows; r++) out[r] = total_narrow(acc[r]);
}

NARROW INSIDE void bytes_narrow_of(const nbits_rows *w, const int rows, const int per, const bool zeros, float *out) {
  __m256 acc[NBITS_AT_ONCE];
  for (int r = 0; r < rows; r++) acc[r] = _mm256_setzero_ps();
  EVERY_GROUP(add_bytes_narrow, int8_t, NBITS_GROUP_BYTES);
  for (int r = 0; r < rows; r++) out[r] = total_narrow(acc[r]);
}

/* ---------------------------------------------------------------- each block size by itself */

#define MAKE(name, target, of) \
  target static void name(const nbits_rows *w, int rows, float *out) { \
    const int per = per_of(w->block); \
    const bool zeros = w->zeros != NULL; \
    for (; rows > 0 && rows < NBITS_AT_ONCE; rows--) of##_one(w, rows - 1, per, zeros, out); \
    if (rows <= 0) return; \
    if (per == 1) zeros ? of##_of(w, NBITS_AT_ONCE, 1, true, out) : of##_of(w, NBITS_AT_ONCE, 1, false, out); \
    else if (per == 2) zeros ? of##_of(w, NBITS_AT_ONCE, 2, true, out) : of##_of(w, NBITS_AT_ONCE, 2, false, out); \
    else if (per == 4) zeros ? of##_of(w, NBITS_AT_ONCE, 4, true, out) : of##_of(w, NBITS_AT_ONCE, 4, false, out); \
    else zeros ? of##_of(w, NBITS_AT_ONCE, 8, true, out) : of##_of(w, NBITS_AT_ONCE, 8, false, out); \
  }

/* A row by itself, of any block size. */
#define MAKE_ONE(of, target) \
  target static void of##_one(const nbits_rows *w, int r, int per, bool zeros, float *out) { \
    nbits_rows one = *w; \
    one.q += r * w->q_step; \
    one.scales += r * w->scale_step; \
    if (zeros) one.zeros += r * w->scale_step; \
    of##_of(&one, 1, per, zeros, out + r); \
  }

MAKE_ONE(floats_wide, WIDE)
MAKE_ONE(bytes_wide, VNNI)
MAKE_ONE(floats_narrow, NARROW)
MAKE_ONE(bytes_narrow, NARROW)
MAKE(product_floats_wide, WIDE, floats_wide)
MAKE(product_bytes_wide, VNNI, bytes_wide)
MAKE(product_floats_narrow, NARROW, floats_narrow)
MAKE(product_bytes_narrow, NARROW, bytes_narrow)

MAKE_PLAIN(wide, WIDE)
MAKE_PLAIN(narrow, NARROW)

const nbits_products *nbits_products_here(void) {
  static const nbits_products plain = {floats_plain, bytes_plain, eight_plain, unpack_plain},
                              narrow = {product_floats_narrow, product_bytes_narrow, eight_narrow, unpack_narrow},
                              wide = {product_floats_wide, product_bytes_narrow, eight_wide, unpack_wide},
                              vnni = {product_floats_wide, product_bytes_wide, eight_wide, unpack_wide};
  const bool is_wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (is_wide) return __builtin_cpu_supports("avx512vnni") ? &vnni : &wide;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &narrow : &plain;
}

#else

const nbits_products *nbits_products_here(void) {
  static const nbits_products plain = {floats_plain, bytes_plain, eight_plain, unpack_plain};
  return &plain;
}

#endif
