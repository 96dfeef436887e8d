// The words of scalar expressions that GLSL has no functions for, or none to rely on, in float32. plugins/vulkan/scalars.cmake
// reads which words they are; scalar_double.glsl has some of them in float64.
#include "math.glsl"
#include "angles.glsl"

float k_sigmoid(const float x) { // of either sign without an overflow on the way
  const float e = k_exp(-abs(x));
  return x < 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}

// The remainder that has the sign of y; one of 0 has none.
float k_mod(const float x, const float y) {
  const float r = k_fmod(x, y);
  return r == 0.0 ? 0.0 : (r < 0.0) != (y < 0.0) ? r + y : r;
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
