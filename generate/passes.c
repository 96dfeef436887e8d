/* generate/passes.c: loops over logits and weights. Each is there for AVX2 and AVX-512 too; elements and sums, of 16 parts,
 * are the same everywhere. */
#include "generate/passes.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { WIDTH = 8 };

#define INSIDE static inline __attribute__((always_inline))

/* Eight at a time: where the processor has shorter vectors the compiler takes two. */
typedef float floats __attribute__((vector_size(4 * WIDTH)));
typedef int32_t whole __attribute__((vector_size(4 * WIDTH)));
typedef uint32_t bits __attribute__((vector_size(4 * WIDTH)));

#define LOAD(to, from) memcpy(&(to), (from), sizeof(to))
#define STORE(to, from) memcpy((to), &(from), sizeof(from))
#define CHOOSE(mask, yes, no) ((floats)(((mask) & (whole)(yes)) | (~(mask) & (whole)(no))))
#define SAME(x) ((floats){(x), (x), (x), (x), (x), (x), (x), (x)})

INSIDE void greatest(const float *x, size_t n, float *out) {
  floats best[2] = {SAME(-INFINITY), SAME(-INFINITY)};
  size_t i = 0;
  for (; i + 2 * WIDTH <= n; i += 2 * WIDTH) {
    floats a, b;
    LOAD(a, x + i);
    LOAD(b, x + i + WIDTH);
    best[0] = CHOOSE(a > best[0], a, best[0]);
    best[1] = CHOOSE(b > best[1], b, best[1]);
  }
  STORE(out, best[0]);
  STORE(out + WIDTH, best[1]);
  for (size_t k = 0; i + k < n; k++) out[k] = x[i + k] > out[k] ? x[i + k] : out[k];
}

/* e^((x - best) * rate) of eight, to seven digits; an exponent below -87 is as -87. In place, so that no vector is passed. */
INSIDE void raise(floats *v, float best, float rate, float least) {
  const floats x = *v, given = (x - best) * rate, lowest = SAME(-87.0F);
  const floats t = CHOOSE(given < lowest, lowest, given) * 1.44269504F;
  const floats shifted = t + 12582912.0F, f = t - (shifted - 12582912.0F);
  floats p = f * 0.000154035304F + 0.00133335581F; /* 2^f */
  p = p * f + 0.00961812911F;
  p = p * f + 0.0555041087F;
  p = p * f + 0.240226507F;
  p = p * f + 0.693147181F;
  p = p * f + 1.0F;
  const floats y = (floats)((bits)p + ((bits)shifted << 23)); /* the low bits of shifted are the exponent */
  *v = CHOOSE((y >= SAME(least)) & (x > SAME(-INFINITY)), y, SAME(0.0F));
}

/* Sums have 16 parts, and what is left over is added to them one by one. */
INSIDE double sum_of(const floats *parts) {
  double sum = 0;
  for (int k = 0; k < WIDTH; k++) sum += (double)parts[0][k] + (double)parts[1][k];
  return sum;
}

INSIDE double weigh(const float *x, size_t n, float best, float rate, float least, float *out) {
  floats parts[2] = {SAME(0.0F), SAME(0.0F)};
  size_t i = 0;
  for (; i + 2 * WIDTH <= n; i += 2 * WIDTH) {
    floats a, b;
    LOAD(a, x + i);
    LOAD(b, x + i + WIDTH);
    raise(&a, best, rate, least);
    raise(&b, best, rate, least);
    STORE(out + i, a);
    STORE(out + i + WIDTH, b);
    parts[0] += a;
    parts[1] += b;
  }
  double more = 0;
  while (i < n) {
    const size_t some = n - i < WIDTH ? n - i : WIDTH;
    float rest[WIDTH] = {0};
    floats v;
    memcpy(rest, x + i, some * sizeof *x);
    LOAD(v, rest);
    raise(&v, best, rate, least);
    STORE(rest, v);
    memcpy(out + i, rest, some * sizeof *x);
    for (size_t k = 0; k < some; k++) more += (double)rest[k];
    i += some;
  }
  return sum_of(parts) + more;
}

/* One that is greatest or more adds to the sum; one in between to the list. */
INSIDE double split_rest(const float *x, size_t i, size_t n, float low, float high, uint32_t first, uint32_t *ids,
                         size_t *count, double sum) {
  for (; i < n; i++) {
    if (x[i] >= high) sum += (double)x[i];
    else if (x[i] >= low) ids[(*count)++] = first + (uint32_t)i;
  }
  return sum;
}

INSIDE bool any(const whole *mask) {
  uint64_t words[sizeof *mask / 8];
  memcpy(words, mask, sizeof words);
  return (words[0] | words[1] | words[2] | words[3]) != 0;
}

INSIDE double split(const float *x, size_t n, float low, float high, uint32_t first, uint32_t *ids, size_t *count) {
  const floats high8 = SAME(high), low8 = SAME(low), none = SAME(0.0F);
  floats parts[2] = {none, none};
  size_t i = 0;
  for (; i + 2 * WIDTH <= n; i += 2 * WIDTH) {
    for (int k = 0; k < 2; k++) {
      floats v;
      LOAD(v, x + i + k * WIDTH);
      const whole is_above = v >= high8, is_between = (v >= low8) & ~is_above;
      parts[k] += CHOOSE(is_above, v, none);
      if (!any(&is_between)) continue;
      for (uint32_t j = 0; j < WIDTH; j++) {
        ids[*count] = first + (uint32_t)i + (uint32_t)k * WIDTH + j;
        *count += (size_t)(is_between[j] != 0);
      }
    }
  }
  return split_rest(x, i, n, low, high, first, ids, count, sum_of(parts));
}

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
#include <immintrin.h>

#define WIDE __attribute__((target("avx2")))
#define WIDER __attribute__((target("avx512f,avx2,popcnt")))

static bool has_wide(void) {
  return __builtin_cpu_supports("avx2");
}

static bool has_wider(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("popcnt");
}

/* The same operations on 16 at a time: none is fused. */
WIDER static void greatest_wider(const float *x, size_t n, float *out) {
  __m512 best = _mm512_set1_ps(-INFINITY), other = best;
  size_t i = 0;
  for (; i + 32 <= n; i += 32) { /* the first operand counts where it is greater; a NaN is not */
    best = _mm512_max_ps(_mm512_loadu_ps(x + i), best);
    other = _mm512_max_ps(_mm512_loadu_ps(x + i + 16), other);
  }
  _mm512_storeu_ps(out, _mm512_max_ps(other, best));
  for (; i < n; i++) out[i % 16] = x[i] > out[i % 16] ? x[i] : out[i % 16];
}

WIDER static double sum_wider(__m512 parts) {
  float x[16];
  double sum = 0;
  _mm512_storeu_ps(x, parts);
  for (int k = 0; k < WIDTH; k++) sum += (double)x[k] + (double)x[WIDTH + k];
  return sum;
}

WIDER static double weigh_wider(const float *x, size_t n, float best, float rate, float least, float *out) {
  static const float factors[] = {0.00133335581F, 0.00961812911F, 0.0555041087F, 0.240226507F, 0.693147181F, 1.0F};
  const __m512 magic = _mm512_set1_ps(12582912.0F);
  __m512 parts = _mm512_setzero_ps();
  double more = 0;
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m512 v = _mm512_loadu_ps(x + i);
    const __m512 given = _mm512_mul_ps(_mm512_sub_ps(v, _mm512_set1_ps(best)), _mm512_set1_ps(rate));
    const __m512 t = _mm512_mul_ps(_mm512_max_ps(given, _mm512_set1_ps(-87.0F)), _mm512_set1_ps(1.44269504F));
    const __m512 shifted = _mm512_add_ps(t, magic), f = _mm512_sub_ps(t, _mm512_sub_ps(shifted, magic));
    __m512 p = _mm512_set1_ps(0.000154035304F);
    for (int k = 0; k < 6; k++) p = _mm512_add_ps(_mm512_mul_ps(p, f), _mm512_set1_ps(factors[k]));
    const __m512i power = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23); /* its low bits are the exponent */
    const __m512 y = _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), power));
    const __mmask16 is_there = _mm512_cmp_ps_mask(v, _mm512_set1_ps(-INFINITY), _CMP_GT_OQ) &
                               _mm512_cmp_ps_mask(y, _mm512_set1_ps(least), _CMP_GE_OQ);
    const __m512 kept = _mm512_maskz_mov_ps(is_there, y);
    _mm512_storeu_ps(out + i, kept);
    parts = _mm512_add_ps(parts, kept);
  }
  if (i < n) more = weigh(x + i, n - i, best, rate, least, out + i);
  return sum_wider(parts) + more;
}

WIDER static double split_wider(const float *x, size_t n, float low, float high, uint32_t first, uint32_t *ids,
                                size_t *count) {
  const __m512 low16 = _mm512_set1_ps(low), high16 = _mm512_set1_ps(high);
  __m512i numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  numbers = _mm512_add_epi32(numbers, _mm512_set1_epi32((int)first));
  __m512 parts = _mm512_setzero_ps();
  size_t i = 0, at = *count;
  for (; i + 16 <= n; i += 16) {
    const __m512 v = _mm512_loadu_ps(x + i);
    const __mmask16 is_above = _mm512_cmp_ps_mask(v, high16, _CMP_GE_OQ);
    const __mmask16 is_between = _mm512_cmp_ps_mask(v, low16, _CMP_GE_OQ) & (__mmask16)~is_above;
    parts = _mm512_mask_add_ps(parts, is_above, parts, v);
    if (is_between != 0) _mm512_storeu_si512(ids + at, _mm512_maskz_compress_epi32(is_between, numbers));
    at += (size_t)__builtin_popcount(is_between);
    numbers = _mm512_add_epi32(numbers, _mm512_set1_epi32(16));
  }
  *count = at;
  return split_rest(x, i, n, low, high, first, ids, count, sum_wider(parts));
}
#else
#define WIDE
#define greatest_wider greatest_wide
#define weigh_wider weigh_wide
#define split_wider split_wide

static bool has_wide(void) {
  return false;
}

static bool has_wider(void) {
  return false;
}
#endif

WIDE static void greatest_wide(const float *x, size_t n, float *out) {
  greatest(x, n, out);
}

WIDE static double weigh_wide(const float *x, size_t n, float best, float rate, float least, float *out) {
  return weigh(x, n, best, rate, least, out);
}

WIDE static double split_wide(const float *x, size_t n, float low, float high, uint32_t first, uint32_t *ids,
                              size_t *count) {
  return split(x, n, low, high, first, ids, count);
}

void heddle__pass_greatest(const float *x, size_t n, float *out) {
  if (has_wider()) greatest_wider(x, n, out);
  else if (has_wide()) greatest_wide(x, n, out);
  else greatest(x, n, out);
}

double heddle__pass_weigh(const float *x, size_t n, float best, float rate, float least, float *out) {
  if (has_wider()) return weigh_wider(x, n, best, rate, least, out);
  return has_wide() ? weigh_wide(x, n, best, rate, least, out) : weigh(x, n, best, rate, least, out);
}

double heddle__pass_split(const float *x, size_t n, float low, float high, uint32_t first, uint32_t *ids,
                          size_t *count) {
  if (has_wider()) return split_wider(x, n, low, high, first, ids, count);
  return has_wide() ? split_wide(x, n, low, high, first, ids, count) : split(x, n, low, high, first, ids, count);
}
