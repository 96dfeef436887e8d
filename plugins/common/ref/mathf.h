/* The exponential and its kin in float32, the same on every machine and in a form that compilers vectorise. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_MATHF_H
#define HEDDLE_PLUGINS_COMMON_REF_MATHF_H

#include <math.h>
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

#endif
