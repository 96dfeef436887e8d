/* The lanes of float32: what the elementwise operators do with n elements. In a file of its own, because these are the
 * ones that are worth vectorising. */
#define S_REAL float
#define S_LIBM(name) name##f
#include "lanes_loops.h"
#include "mathf.h"
#include "plugins/common/scalar_c.h"

static inline float sigmoid(float x) {
  const float e = ref_exp(-fabsf(x)), r = 1.0f / (1.0f + e);
  return x < 0 ? e * r : r;
}

/* Near 0 a polynomial, where 1 - 2 / (e^2x + 1) would lose digits. */
static inline float tangens_hyperbolicus(float x) {
  const float s = x * x, size = fabsf(x);
  float p = -5.70498872745e-3f;
  p = p * s + 2.06390887954e-2f;
  p = p * s - 5.37397155531e-2f;
  p = p * s + 1.33314422036e-1f;
  p = p * s - 3.33332819422e-1f;
  const float far = 1.0f - 2.0f / (ref_exp(2.0f * size) + 1.0f);
  return copysignf(size < 0.625f ? p * s * size + size : far, x); /* -0 stays -0 */
}

#define S_NUM(x) x##f
#define S_ISNAN(x) ((x) != (x))
#define S_EXP(x) ref_exp(x)
#define S_TANH(x) tangens_hyperbolicus(x)
#define S_SIGMOID(x) sigmoid(x)
#define S_POW(x, y) powf(x, y)
#define S_REM(x, y) fmodf(x, y)
#define S_MOD(x, y) real_mod(x, y)

#define LANES_LEAST (-INFINITY)
#define LANES_MOST INFINITY
#define LANES_REAL(name, n, cost, ...) LANES_##n(ref_##name##_f32, float, float, float, cost, __VA_ARGS__)
#define LANES_NUMBER LANES_REAL
#define LANES_TEST(name, n, cost, ...) LANES_##n(ref_##name##_f32, float, float, uint8_t, cost, __VA_ARGS__)
#define LANES_TEST_REAL LANES_TEST
#define LANES_INT(...)
#define LANES_LOGIC(...)
#define SCALAR(name, kind, n, cost, ...) LANES_##kind(name, n, cost, __VA_ARGS__)
#include "operators/all.def"
