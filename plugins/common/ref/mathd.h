/* What is made of the exponential in float64, the same on every machine and in a form that compilers vectorise. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_MATHD_H
#define HEDDLE_PLUGINS_COMMON_REF_MATHD_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* x = n ln 2 + r with |r| <= ln 2 / 2: e^r - 1 by its series, and n, which is in the low bits of *bits, too; |x| <= 746.
 * NaN gives NaN. */
static inline double ref_exp_rest_double(double x, double *n, uint64_t *bits) {
  const double shift = 6755399441055744.0; /* 1.5 * 2^52 */
  const double t = x * 1.4426950408889634 + shift;
  memcpy(bits, &t, sizeof t);
  *n = t - shift;
  double r = x - *n * 6.93147180369123816490e-01; /* the first 32 bits of ln 2, then the rest of it */
  r = r - *n * 1.90821492927058770002e-10;
  double p = 1.6059043836821613e-10; /* 1 / 13! */
  p = p * r + 2.0876756987868099e-09;
  p = p * r + 2.5052108385441719e-08;
  p = p * r + 2.7557319223985891e-07;
  p = p * r + 2.7557319223985893e-06;
  p = p * r + 2.4801587301587302e-05;
  p = p * r + 1.9841269841269841e-04;
  p = p * r + 1.3888888888888889e-03;
  p = p * r + 8.3333333333333333e-03;
  p = p * r + 4.1666666666666667e-02;
  p = p * r + 1.6666666666666667e-01;
  p = p * r + 0.5;
  return p * (r * r) + r;
}

/* 2^n of n in the low bits of a number, -1023 < n < 1024. */
static inline double ref_power_double(uint64_t n) {
  double power;
  const uint64_t bits = (n + 1023) << 52;
  memcpy(&power, &bits, sizeof power);
  return power;
}

/* Within 3 units in the last place; 2^n as the product of two powers, so that results below the normal range come out. */
static inline double ref_sigmoid_double(double x) {
  double n, a = -fabs(x);
  uint64_t bits;
  a = a < -746.0 ? -746.0 : a; /* NaN stays */
  const double p = ref_exp_rest_double(a, &n, &bits) + 1.0;
  const uint64_t shift = UINT64_C(0x4338000000000000), most = 2048; /* so that halves are of what has no sign */
  const uint64_t half = ((bits - shift + most) >> 1) - most / 2;
  const double e = p * ref_power_double(half) * ref_power_double(bits - shift - half), r = 1.0 / (1.0 + e);
  return x < 0 ? e * r : r;
}

/* t / (t + 2) with t = e^2|x| - 1, which is 2^n (e^rest - 1) + 2^n - 1, within 3 units in the last place. Beyond 20 it is 1. */
static inline double ref_tanh_double(double x) {
  double n, a = fabs(x);
  uint64_t bits;
  a = a > 20.0 ? 20.0 : a; /* NaN stays */
  const double p = ref_exp_rest_double(2.0 * a, &n, &bits);
  const double power = ref_power_double(bits - UINT64_C(0x4338000000000000));
  const double t = power * p + (power - 1.0);
  return copysign(t / (t + 2.0), x); /* -0 stays -0 */
}

#endif
