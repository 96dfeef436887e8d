/* The lanes of float32: what the elementwise operators do with n elements. In a file of its own, because these are the
 * ones that are worth vectorising. */
#include "lanes_loops.h"
#include "mathf.h"

#include <math.h>

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

static inline float unit(float x) { /* to [0, 1] */
  x = x < 0.0f ? 0.0f : x;
  return x > 1.0f ? 1.0f : x;
}

/* A comparison with NaN is false, so NaN comes through. */
FLOAT1(relu, x < 0.0f ? 0.0f : x)
FLOAT1(leaky, x < 0.0f ? p[0] * x : x)
FLOAT1(elu, x < 0.0f ? p[0] * expm1f(x) : x)
FLOAT1(hard_sigmoid, unit(p[0] * x + p[1]))
FLOAT1(hard_swish, x *unit(x *(1.0f / 6.0f) + 0.5f))
FLOAT1_LONG(sigmoid, sigmoid(x))
FLOAT1_LONG(tanh, tangens_hyperbolicus(x))
FLOAT1_LONG(exp, ref_exp(x))
FLOAT1(log, logf(x))
FLOAT1(sqrt, sqrtf(x))
FLOAT1(neg, -x)
FLOAT1(abs, fabsf(x))
FLOAT1(erf, erff(x))
FLOAT1(gelu, 0.5f * x * (1.0f + erff(x * 0.707106781f)))
FLOAT1_LONG(gelu_tanh, 0.5f * x * (1.0f + tangens_hyperbolicus(0.797884561f * (x + 0.044715f * x * x * x))))

FLOAT2(add, x + y)
FLOAT2(sub, x - y)
FLOAT2(mul, x *y)
FLOAT2(div, x / y)
FLOAT2(pow, powf(x, y))
FLOAT2(min, x < y || x != x ? x : y)
FLOAT2(max, x > y || x != x ? x : y)
FLOAT2(prelu, x < 0.0f ? x * y : x)
CLIP(ref_clip_f32, float, -INFINITY, INFINITY)
