// The words of scalar_float.glsl that float64 has too. plugins/vulkan/scalars.cmake reads which words they are.
#define K_INFINITY uintBitsToFloat(0x7f800000u)
#define K_NAN uintBitsToFloat(0x7fc00000u)
#include "math64.glsl"
#include "angles64.glsl"

double k_sigmoid(const double x) {
  const double e = k_exp(-abs(x));
  return x < 0.0lf ? e / (1.0lf + e) : 1.0lf / (1.0lf + e);
}

// e^x / 2 by two factors, where it is above the range before it is halved.
double k_half_exp(const double x) {
  const double e = k_exp(0.5lf * x);
  return 0.5lf * e * e;
}

double k_sinh(const double x) {
  const double a = abs(x);
  if (k_nan64(x) || a < 1e-10lf) return x;
  const double e = k_expm1(min(a, 30.0lf)), y = a < 22.0lf ? 0.5lf * (e + e / (e + 1.0lf)) : k_half_exp(a);
  return x < 0.0lf ? -y : y;
}

double k_cosh(const double x) {
  const double a = abs(x), e = k_exp(min(a, 30.0lf));
  if (k_nan64(x)) return x;
  return a > 22.0lf ? k_half_exp(a) : 0.5lf * (e + 1.0lf / e);
}

// Beyond 2^28 the root of x^2 + 1 is |x|.
double k_asinh(const double x) {
  const double a = abs(x);
  if (k_nan64(x) || a < 1e-10lf) return x;
  double y;
  if (a < 268435456.0lf) y = k_log1p(a + a * a / (1.0lf + sqrt(a * a + 1.0lf)));
  else y = k_log(a) + 0.69314718055994530942lf;
  return x < 0.0lf ? -y : y;
}

double k_acosh(const double x) {
  if (x < 1.0lf) return double(K_NAN);
  if (k_nan64(x) || x >= 268435456.0lf) return k_log(x) + 0.69314718055994530942lf;
  const double t = x - 1.0lf;
  return k_log1p(t + sqrt(2.0lf * t + t * t));
}

double k_atanh(const double x) {
  const double a = abs(x);
  if (k_nan64(x) || a < 1e-10lf) return x;
  if (a > 1.0lf) return double(K_NAN);
  const double y = a == 1.0lf ? double(K_INFINITY) : 0.5lf * k_log1p(2.0lf * a / (1.0lf - a));
  return x < 0.0lf ? -y : y;
}

// As C's fmod, which is exact: so is each difference, as |y| times a power of two is.
double k_fmod(const double x, const double y) {
  const double b = abs(y);
  double a = abs(x), t = b;
  if (k_nan64(x) || k_nan64(y) || a == double(K_INFINITY) || b == 0.0lf) return double(K_NAN);
  if (a < b) return x;
  while (t <= a - t) t = t + t;
  while (t >= b) {
    if (a >= t) a = a - t;
    t = t * 0.5lf;
  }
  const uvec2 bits = unpackDouble2x32(a);
  return packDouble2x32(uvec2(bits.x, bits.y | (unpackDouble2x32(x).y & 0x80000000u)));
}

double k_mod(const double x, const double y) {
  const double r = k_fmod(x, y);
  return r == 0.0lf ? 0.0lf : (r < 0.0lf) != (y < 0.0lf) ? r + y : r;
}

#define S_EXP(x) k_exp(x)
#define S_EXPM1(x) k_expm1(x)
#define S_LOG(x) k_log(x)
#define S_LOG1P(x) k_log1p(x)
#define S_ERF(x) k_erf(x)
#define S_SIGMOID(x) k_sigmoid(x)
#define S_SIN(x) k_sin(x)
#define S_COS(x) k_cos(x)
#define S_TAN(x) k_tan(x)
#define S_ASIN(x) k_asin(x)
#define S_ACOS(x) k_acos(x)
#define S_ATAN(x) k_atan(x)
#define S_SINH(x) k_sinh(x)
#define S_COSH(x) k_cosh(x)
#define S_TANH(x) k_tanh(x)
#define S_ASINH(x) k_asinh(x)
#define S_ACOSH(x) k_acosh(x)
#define S_ATANH(x) k_atanh(x)
#define S_POW(x, y) k_pow(x, y)
#define S_REM(x, y) k_fmod(x, y)
#define S_MOD(x, y) k_mod(x, y)
