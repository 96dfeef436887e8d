/* For AVX-512, and AVX2 with FMA: with products that are added unrounded. A compiler makes slow code of a choice between a
 * number and a limit, and does not know which powers of two are far from the ends of their range. */
#include "lanes_fast.h"

#include "mathf.h"
#include "types.h"

#include <string.h>

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
#define NARROW __attribute__((target("avx2")))
#else
#define NARROW
#endif

enum { NONE, FMA256, AVX512 };

static int vectors(void) {
#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return AVX512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return FMA256;
#endif
  return NONE;
}

/* Angles that are too large, infinities and NaN are left to the C library. */
#define ANGLE_LOOP(name, quarter, libm) \
  NARROW static void name##_256(void *out, const void *const *in, int64_t n, const float *p) { \
    enum { SOME = 256 }; \
    const float *x = in[0]; \
    float *to = out, y[SOME]; \
    (void)p; \
    for (int64_t some; n > 0; n -= some, x += some, to += some) { \
      int far = 0; \
      some = n < SOME ? n : SOME; \
      for (int64_t i = 0; i < some; i++) { \
        y[i] = ref_sin_inside(fabsf(x[i]) <= REF_ANGLE_MOST ? x[i] : 0.0f, quarter); \
        far |= !(fabsf(x[i]) <= REF_ANGLE_MOST); \
      } \
      for (int64_t i = 0; far && i < some; i++) \
        if (!(fabsf(x[i]) <= REF_ANGLE_MOST)) y[i] = libm(x[i]); \
      memcpy(to, y, (size_t)some * sizeof *y); \
    } \
  }
ANGLE_LOOP(sine, 0, sinf)
ANGLE_LOOP(cosine, 1, cosf)

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)

#include <immintrin.h>

#define VECTOR __m512
#define WIDTH 16
#define PS(operation) _mm512_##operation##_ps
#define ALL(number) _mm512_set1_ps(number)
#define SOME(n) ((__mmask16)((1U << (n)) - 1))
#define MASKED(from, n) _mm512_maskz_loadu_ps(SOME(n), from)
#define STORE(to, n, x) _mm512_mask_storeu_ps(to, SOME(n), x)
#define BELOW(a, b, yes, no) _mm512_mask_mov_ps(no, _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), yes)
#define NEGATIVE(x, yes, no) BELOW(x, _mm512_setzero_ps(), yes, no)
#define SCALE(p, n, t) _mm512_scalef_ps(p, n)
#define SCALE_NEAR SCALE
#define TARGET __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))
#define NAME(x) x##_512
#include "lanes_wide.h"

#define FMA __attribute__((target("avx2,fma")))

FMA static inline __m256i first_of(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* p 2^n, by adding the low bits of t, which are n, to the exponent. */
FMA static inline __attribute__((always_inline)) __m256 scale_near(__m256 p, __m256 t) {
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(t), 23)));
}

/* The same where all are far from the ends of the range, else the product of two powers. */
FMA static inline __attribute__((always_inline)) __m256 scale(__m256 p, __m256 n, __m256 t) {
  const __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), n);
  if (__builtin_expect(_mm256_movemask_ps(_mm256_cmp_ps(size, _mm256_set1_ps(125), _CMP_LE_OQ)) == 255, 1))
    return scale_near(p, t);
  const __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
  const __m256i rest = _mm256_sub_epi32(whole, half), bias = _mm256_set1_epi32(127);
  const __m256 first = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
  return _mm256_mul_ps(_mm256_mul_ps(p, first),
                       _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23)));
}

#define VECTOR __m256
#define WIDTH 8
#define PS(operation) _mm256_##operation##_ps
#define ALL(number) _mm256_set1_ps(number)
#define MASKED(from, n) _mm256_maskload_ps(from, first_of(n))
#define STORE(to, n, x) _mm256_maskstore_ps(to, first_of(n), x)
#define BELOW(a, b, yes, no) _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ))
#define NEGATIVE(x, yes, no) _mm256_blendv_ps(no, yes, x)
#define SCALE(p, n, t) scale(p, n, t)
#define SCALE_NEAR(p, n, t) scale_near(p, t)
#define TARGET FMA
#define NAME(x) x##_256
#include "lanes_wide.h"

#define BOTH(name) name##_512, name##_256
#else
#define BOTH(name) NULL, NULL
#endif

static const struct {
  const char *op;
  ref_lanes wide, narrow;
} faster[] = {
    {"Sin", sine_256, sine_256}, {"Cos", cosine_256, cosine_256}, {"Exp", BOTH(exponential)},
    {"Sigmoid", BOTH(sigmoid)},  {"Tanh", BOTH(tangens)},         {"Swish", BOTH(swish)},
    {"Erf", BOTH(error)},        {"Gelu_tanh", BOTH(gelu_tanh)},  {"Gelu", BOTH(gelu)},
};

ref_lanes ref_lanes_faster(const char *op) {
  const int have = vectors();
  for (size_t i = 0; i < sizeof faster / sizeof faster[0] && have != NONE; i++)
    if (strcmp(faster[i].op, op) == 0) return have == AVX512 ? faster[i].wide : faster[i].narrow;
  return NULL;
}

static void run_widest(ref_lanes wide, ref_lanes narrow, float *out, const float *x, int64_t n, bool tanh) {
  const void *in[] = {x};
  const float p[2] = {0};
  const int have = vectors();
  if (have != NONE) (have == AVX512 ? wide : narrow)(out, in, n, p);
  else
    for (int64_t i = 0; i < n; i++) out[i] = tanh ? ref_tanh(x[i]) : ref_sigmoid(x[i]);
}

void ref_fast_sigmoid(float *out, const float *x, int64_t n) {
  run_widest(BOTH(sigmoid), out, x, n, false);
}

void ref_fast_tanh(float *out, const float *x, int64_t n) {
  run_widest(BOTH(tangens), out, x, n, true);
}
