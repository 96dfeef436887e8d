/* For AVX2 the plain expressions are compiled again; without contraction every step is rounded as in the plain loops.
 * For AVX-512 they are written out: with products that are added unrounded, and one instruction for a power of two. */
#include "lanes_fast.h"

#include "mathf.h"
#include "types.h"

#include <string.h>

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
#define NARROW __attribute__((target("avx2")))
#else
#define NARROW
#endif

enum { NONE, AVX2, AVX512 };

static int vectors(void) {
#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return AVX512;
  if (__builtin_cpu_supports("avx2")) return AVX2;
#endif
  return NONE;
}

#define NARROW_LOOP(name, ...) \
  NARROW static void name##_256(void *out, const void *const *in, int64_t n, const float *p) { \
    const float *x = in[0], alpha = p[0]; \
    float *to = out; \
    (void)alpha; \
    REF_IVDEP \
    for (int64_t i = 0; i < n; i++) { \
      const float a = x[i]; \
      to[i] = __VA_ARGS__; \
    } \
  }

NARROW_LOOP(exponential, ref_exp(a))
NARROW_LOOP(sigmoid, ref_sigmoid(a))
NARROW_LOOP(tangens, ref_tanh(a))
NARROW_LOOP(swish, a *ref_sigmoid(alpha *a))
NARROW_LOOP(gelu_tanh, 0.5f * a * (1.0f + ref_tanh(0.79788456080286536f * (a + 0.044715f * a * a * a))))
NARROW_LOOP(error, ref_erf(a))
NARROW_LOOP(gelu, 0.5f * a * (1.0f + ref_erf(a * 0.70710678118654752f)))

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

#define WIDE __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))
#define INSIDE WIDE static inline __attribute__((always_inline))
#define ALL(number) _mm512_set1_ps(number)
#define MAD(a, b, c) _mm512_fmadd_ps(a, b, c)

/* As ref_exp_inside. NaN stays NaN here and below: of two numbers min and max give the second if one is NaN. */
INSIDE __m512 exp_inside(__m512 x) {
  const __m512 shift = ALL(12582912.0f), n = _mm512_sub_ps(MAD(x, ALL(1.44269504f), shift), shift);
  const __m512 r = _mm512_fnmadd_ps(n, ALL(-2.12194440e-4f), _mm512_fnmadd_ps(n, ALL(0.693359375f), x));
  __m512 p = MAD(ALL(1.98756915e-4f), r, ALL(1.39819995e-3f));
  p = MAD(p, r, ALL(8.33345192e-3f));
  p = MAD(p, r, ALL(4.16657962e-2f));
  p = MAD(p, r, ALL(1.66666657e-1f));
  p = MAD(p, r, ALL(5.00000000e-1f));
  return _mm512_scalef_ps(_mm512_add_ps(MAD(p, _mm512_mul_ps(r, r), r), ALL(1.0f)), n);
}

INSIDE __m512 exp_most(__m512 x) { /* of x that is not below REF_EXP_LEAST */
  return exp_inside(_mm512_min_ps(ALL(REF_EXP_MOST), x));
}

INSIDE __m512 exp_least(__m512 x) { /* of x that is not above REF_EXP_MOST */
  return exp_inside(_mm512_max_ps(ALL(REF_EXP_LEAST), x));
}

INSIDE __m512 exp_wide(__m512 x) {
  return exp_most(_mm512_max_ps(ALL(REF_EXP_LEAST), x));
}

INSIDE __m512 with_sign(__m512 size, __m512 sign) {
  return _mm512_or_ps(_mm512_andnot_ps(ALL(-0.0f), size), _mm512_and_ps(ALL(-0.0f), sign));
}

INSIDE __m512 sigmoid_wide(__m512 x) {
  const __m512 e = exp_least(_mm512_or_ps(x, ALL(-0.0f)));
  const __m512 r = _mm512_div_ps(ALL(1.0f), _mm512_add_ps(ALL(1.0f), e));
  return _mm512_mask_mul_ps(r, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ), e, r);
}

INSIDE __m512 tanh_wide(__m512 x) {
  const __m512 s = _mm512_mul_ps(x, x), size = _mm512_abs_ps(x);
  __m512 p = MAD(ALL(-5.70498872745e-3f), s, ALL(2.06390887954e-2f));
  p = MAD(p, s, ALL(-5.37397155531e-2f));
  p = MAD(p, s, ALL(1.33314422036e-1f));
  p = MAD(p, s, ALL(-3.33332819422e-1f));
  const __m512 near = MAD(_mm512_mul_ps(p, s), size, size), e = exp_most(_mm512_add_ps(size, size));
  const __m512 far = _mm512_sub_ps(ALL(1.0f), _mm512_div_ps(ALL(2.0f), _mm512_add_ps(e, ALL(1.0f))));
  return with_sign(_mm512_mask_mov_ps(far, _mm512_cmp_ps_mask(size, ALL(0.625f), _CMP_LT_OQ), near), x);
}

INSIDE __m512 erf_wide(__m512 x) {
  const __m512 far = _mm512_abs_ps(x), t = _mm512_min_ps(ALL(4.0f), far);
  const __m512 s = _mm512_mul_ps(x, x), q = _mm512_mul_ps(t, t);
  __m512 u =
      MAD(MAD(ALL(-1.72853470e-5f), t, ALL(3.83197126e-4f)), q, MAD(ALL(-3.88396438e-3f), t, ALL(2.42546219e-2f)));
  u = MAD(u, t, ALL(-1.06777877e-1f));
  u = MAD(u, t, ALL(-6.34846687e-1f));
  u = MAD(u, t, ALL(-1.28717512e-1f));
  u = _mm512_fmsub_ps(u, t, t);
  __m512 p = MAD(ALL(-5.96761703e-4f), s, ALL(4.99119423e-3f));
  p = MAD(p, s, ALL(-2.67681349e-2f));
  p = MAD(p, s, ALL(1.12819925e-1f));
  p = MAD(p, s, ALL(-3.76125336e-1f));
  p = MAD(p, s, ALL(1.28379166e-1f));
  p = MAD(p, x, x);
  const __m512 r = with_sign(_mm512_sub_ps(ALL(1.0f), exp_inside(u)), x);
  return _mm512_mask_mov_ps(p, _mm512_cmp_ps_mask(far, ALL(0.927734375f), _CMP_GT_OQ), r);
}

INSIDE __m512 half_of(__m512 a, __m512 part) { /* a (1 + part) / 2 */
  return _mm512_mul_ps(_mm512_mul_ps(ALL(0.5f), a), _mm512_add_ps(ALL(1.0f), part));
}

INSIDE __m512 gelu_tanh_inside(__m512 a) {
  const __m512 cube = _mm512_mul_ps(_mm512_mul_ps(_mm512_mul_ps(ALL(0.044715f), a), a), a);
  return _mm512_mul_ps(ALL(0.79788456080286536f), _mm512_add_ps(a, cube));
}

/* The last elements take the same steps, in a part of a vector. */
#define WIDE_LOOP(name, ...) \
  WIDE static void name##_512(void *out, const void *const *in, int64_t n, const float *p) { \
    const float *x = in[0]; \
    const __m512 alpha = ALL(p[0]); \
    float *to = out; \
    (void)alpha; \
    for (int64_t i = 0; i < n; i += 16) { \
      const __mmask16 have = n - i >= 16 ? 0xffff : (__mmask16)((1U << (n - i)) - 1); \
      const __m512 a = _mm512_maskz_loadu_ps(have, x + i); \
      _mm512_mask_storeu_ps(to + i, have, __VA_ARGS__); \
    } \
  }

WIDE_LOOP(exponential, exp_wide(a))
WIDE_LOOP(sigmoid, sigmoid_wide(a))
WIDE_LOOP(tangens, tanh_wide(a))
WIDE_LOOP(swish, _mm512_mul_ps(a, sigmoid_wide(_mm512_mul_ps(alpha, a))))
WIDE_LOOP(gelu_tanh, half_of(a, tanh_wide(gelu_tanh_inside(a))))
WIDE_LOOP(error, erf_wide(a))
WIDE_LOOP(gelu, half_of(a, erf_wide(_mm512_mul_ps(a, ALL(0.70710678118654752f)))))

#define BOTH(name) name##_512, name##_256
#else
#define BOTH(name) name##_256, name##_256
#endif

/* narrow NULL: wide is for AVX2 too. */
static const struct {
  const char *op;
  ref_lanes wide, narrow;
} faster[] = {
    {"Sin", sine_256, NULL},    {"Cos", cosine_256, NULL},

    {"Exp", BOTH(exponential)}, {"Sigmoid", BOTH(sigmoid)},     {"Tanh", BOTH(tangens)}, {"Swish", BOTH(swish)},
    {"Erf", BOTH(error)},       {"Gelu_tanh", BOTH(gelu_tanh)}, {"Gelu", BOTH(gelu)},
};

ref_lanes ref_lanes_faster(const char *op, bool than_fma) {
  const int have = vectors();
  for (size_t i = 0; i < sizeof faster / sizeof faster[0] && have != NONE; i++) {
    if (strcmp(faster[i].op, op) != 0) continue;
    if (have == AVX512 || faster[i].narrow == NULL) return faster[i].wide;
    return than_fma ? NULL : faster[i].narrow;
  }
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
