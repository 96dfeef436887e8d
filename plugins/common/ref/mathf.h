/* The exponential and its kin in float32, the same on every machine and in a form that compilers vectorise. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_MATHF_H
#define HEDDLE_PLUGINS_COMMON_REF_MATHF_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Below it e^x is nothing in float32, above the other it is infinite. Cut off in a loop of its own where speed counts:
 * with the branch inside, gcc does not vectorise. */
#define REF_EXP_LEAST (-104.0f)
#define REF_EXP_MOST 89.0f

/* e^x for REF_EXP_LEAST <= x <= REF_EXP_MOST within 1 unit in the last place: x = n ln 2 + r with |r| <= ln 2 / 2, a
 * polynomial for e^r, and 2^n as the product of two powers, so that results below the normal range come out right. NaN
 * gives NaN. */
static inline float ref_exp_inside(float x) {
  const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer, which is then in the low bits */
  uint32_t bits, half_bits;
  float half, rest;
  const float t = x * 1.44269504f + shift;
  const float n = t - shift;
  float r = x - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  float p = 1.98756915e-4f;
  p = p * r + 1.39819995e-3f;
  p = p * r + 8.33345192e-3f;
  p = p * r + 4.16657962e-2f;
  p = p * r + 1.66666657e-1f;
  p = p * r + 5.00000000e-1f;
  p = p * r * r + r + 1.0f;
  memcpy(&bits, &t, sizeof bits);
  const uint32_t whole = bits - UINT32_C(0x4b400000); /* n, modulo 2^32; -150 <= n <= 129 */
  const uint32_t low = (whole + 256) / 2;             /* n / 2 rounded, plus 128 */
  half_bits = (low - 1) << 23;
  memcpy(&half, &half_bits, sizeof half);
  half_bits = (whole + 256 - low - 1) << 23;
  memcpy(&rest, &half_bits, sizeof rest);
  return p * half * rest;
}

static inline float ref_exp(float x) {
  x = x < REF_EXP_LEAST ? REF_EXP_LEAST : x;
  return ref_exp_inside(x > REF_EXP_MOST ? REF_EXP_MOST : x);
}

static inline float ref_sigmoid(float x) {
  const float e = ref_exp(-fabsf(x)), r = 1.0f / (1.0f + e);
  return x < 0 ? e * r : r;
}

/* Near 0 a polynomial, where 1 - 2 / (e^2x + 1) would lose digits. */
static inline float ref_tanh(float x) {
  const float s = x * x, size = fabsf(x);
  float p = -5.70498872745e-3f;
  p = p * s + 2.06390887954e-2f;
  p = p * s - 5.37397155531e-2f;
  p = p * s + 1.33314422036e-1f;
  p = p * s - 3.33332819422e-1f;
  const float far = 1.0f - 2.0f / (ref_exp(2.0f * size) + 1.0f);
  return copysignf(size < 0.625f ? p * s * size + size : far, x); /* -0 stays -0 */
}

/* The error function within 2 units in the last place: near 0 an odd polynomial, else 1 - e^p. Both polynomials are
 * minimax fits; erf(x) is 1 in float32 from 3.92 on, where p is cut off. */
static inline float ref_erf(float x) {
  const float far = fabsf(x), t = far > 4.0f ? 4.0f : far, s = x * x, q = t * t;
  float u = (-1.72853470e-5f * t + 3.83197126e-4f) * q + (-3.88396438e-3f * t + 2.42546219e-2f);
  u = u * t - 1.06777877e-1f;
  u = u * t - 6.34846687e-1f;
  u = u * t - 1.28717512e-1f;
  u = u * t - t;
  float p = -5.96761703e-4f;
  p = p * s + 4.99119423e-3f;
  p = p * s - 2.67681349e-2f;
  p = p * s + 1.12819925e-1f;
  p = p * s - 3.76125336e-1f;
  p = p * s + 1.28379166e-1f;
  p = p * x + x;
  const float r = copysignf(1.0f - ref_exp(u), x);
  return far > 0.927734375f ? r : p; /* NaN takes p */
}

/* e^x - 1 within 4 units in the last place: near 0 its series. */
static inline float ref_expm1(float x) {
  float p = 2.48015873e-5f;
  p = p * x + 1.98412698e-4f;
  p = p * x + 1.38888889e-3f;
  p = p * x + 8.33333333e-3f;
  p = p * x + 4.16666667e-2f;
  p = p * x + 1.66666667e-1f;
  p = p * x + 5.00000000e-1f;
  const float near = x * (1.0f + p * x), far = ref_exp(x) - 1.0f;
  return fabsf(x) < 0.5f ? near : far; /* -0 stays -0 */
}

/* The logarithm of a normal number: k ln 2 + log(1 + f), with sqrt(1/2) - 1 <= f < sqrt(2) - 1, by the series of 2 atanh(f /
 * (2 + f)). */
static inline float ref_log_inside(float x) {
  uint32_t bits;
  float one;
  memcpy(&bits, &x, sizeof bits);
  const uint32_t from_root = bits - UINT32_C(0x3f3504f3);
  const int32_t k = (int32_t)(from_root >> 23) - (int32_t)(from_root >> 31 << 9);
  bits -= (uint32_t)k << 23;
  memcpy(&one, &bits, sizeof one);
  const float f = one - 1.0f, s = f / (2.0f + f), z = s * s, half = 0.5f * f * f, n = (float)k;
  float p = 2.22222222e-1f;
  p = p * z + 2.85714286e-1f;
  p = p * z + 4.00000000e-1f;
  p = p * z + 6.66666667e-1f;
  return n * 0.693145752f - ((half - (s * (half + p * z) + n * 1.42860677e-6f)) - f);
}

/* Within 2 units in the last place. */
static inline float ref_log(float x) {
  const bool small = x < 1.17549435e-38f;
  const float r = ref_log_inside(small ? x * 8388608.0f : x) - (small ? 15.9423851f : 0.0f);
  const float end = x == 0 ? -INFINITY : x > 0 ? x : NAN;
  return x > 0 && x < INFINITY ? r : end;
}

/* log(1 + x) within 3 units in the last place: what the sum lost is added. */
static inline float ref_log1p(float x) {
  const float u = 1.0f + x, lost = x - (u - 1.0f), r = ref_log_inside(u) + lost / u;
  const float end = u == 0 ? -INFINITY : u > 0 ? x : NAN;
  return u > 0 && u < INFINITY ? (x == 0 ? x : r) : end;
}

/* Within 3 units in the last place: of x, of (x - 1) / (x + 1) or of -1 / x, which is at most tan(pi / 8). The polynomials
 * here and below are minimax fits. */
static inline float ref_atan(float x) {
  const float a = fabsf(x);
  const bool far = a > 2.41421356f, middle = a > 0.41421356f;
  const float up = far ? -1.0f : middle ? a - 1.0f : a, down = far ? a : middle ? a + 1.0f : 1.0f;
  const float base = far ? 1.57079633f : middle ? 0.785398163f : 0.0f, t = up / down, z = t * t;
  float p = 8.060307803e-2f;
  p = p * z - 1.387984960e-1f;
  p = p * z + 1.997792604e-1f;
  p = p * z - 3.333295525e-1f;
  return copysignf(base + (t + t * (z * p)), x);
}

/* Of 0 <= a <= 1/2, as arc(a, a^2). */
static inline float ref_arc(float a, float z) {
  float p = 4.221856654e-2f;
  p = p * z + 2.414760110e-2f;
  p = p * z + 4.547709886e-2f;
  p = p * z + 7.495241770e-2f;
  p = p * z + 1.666675393e-1f;
  return a + a * (z * p);
}

/* Within 3 units in the last place; beyond 1/2 by the half angle. NaN outside of [-1, 1]. */
static inline float ref_asin(float x) {
  const float a = fabsf(x), half = 0.5f * (1.0f - a);
  const bool far = a > 0.5f;
  const float z = far ? half : a * a, r = ref_arc(far ? sqrtf(half) : a, z);
  return copysignf(far ? 1.57079633f - 2.0f * r : r, x);
}

static inline float ref_acos(float x) {
  const float a = fabsf(x), half = 0.5f * (1.0f - a);
  const bool far = a > 0.5f;
  const float z = far ? half : a * a, r = ref_arc(far ? sqrtf(half) : a, z), twice = 2.0f * r;
  const float beyond = x < 0 ? 3.14159265f - twice : twice, inside = x < 0 ? 1.57079633f + r : 1.57079633f - r;
  return far ? beyond : inside;
}

/* The sine of x + quarter * pi / 2 where |x| is at most REF_ANGLE_MOST, within 2 units in the last place. What is left of x
 * behind multiples of pi / 2 is found in double, from the first 33 bits of pi / 2, whose multiples are exact, and the rest. */
#define REF_ANGLE_MOST 800000.0f
static inline float ref_sin_inside(float x, int32_t quarter) {
  const double shift =
      6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer, which is then in the low bits */
  const double t = (double)x * 0.63661977236758134 + shift, n = t - shift;
  const float f = (float)(((double)x - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11);
  const int32_t which = (int32_t)n + quarter;
  const float s = f * f;
  float p = -1.951697745e-4f, q = 2.443819233e-5f;
  p = p * s + 8.332175846e-3f;
  p = p * s - 1.666665491e-1f;
  q = q * s - 1.388736551e-3f;
  q = q * s + 4.166664683e-2f;
  const float sine = f == 0 ? f : f + f * (s * p), cosine = (1.0f - 0.5f * s) + s * s * q;
  const float r = (which & 1) != 0 ? cosine : sine;
  return (which & 2) != 0 ? -r : r;
}

#endif
