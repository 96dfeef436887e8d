// The operators on float32, as elementwise.cl defines them, for elementwise.comp and chains: a function each of the name
// f_WORD, with operands a, b, c and attributes alpha and beta, whichever of these it uses.
#include "math.glsl"

#define FLOAT_OP(word, value) \
  float f_##word(const float a, const float b, const float c, const float alpha, const float beta) { return value; }

// NaN comes through, also that of a bound.
float k_clip(const float x, const float low, const float high) {
  const float y = x < low || k_is_nan(low) ? low : x;
  return y > high || k_is_nan(high) ? high : y;
}

// Of either sign without an overflow on the way.
float k_sigmoid(const float x) {
  const float e = k_exp(-abs(x));
  return x < 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}

FLOAT_OP(COPY, a)
FLOAT_OP(FABS, uintBitsToFloat(floatBitsToUint(a) & 0x7fffffffu))
FLOAT_OP(FNEG, uintBitsToFloat(floatBitsToUint(a) ^ 0x80000000u))
FLOAT_OP(RELU, a < 0.0 ? 0.0 : a)
FLOAT_OP(LEAKY_RELU, a < 0.0 ? alpha * a : a)
FLOAT_OP(ELU, a < 0.0 ? alpha * k_expm1(a) : a)
FLOAT_OP(HARD_SIGMOID, k_clip(alpha * a + beta, 0.0, 1.0))
FLOAT_OP(HARD_SWISH, a * k_clip(a * (1.0 / 6.0) + 0.5, 0.0, 1.0))
FLOAT_OP(SIGMOID, k_sigmoid(a))
FLOAT_OP(TANH, k_tanh(a))
FLOAT_OP(EXP, k_exp(a))
FLOAT_OP(LOG, k_log(a))
FLOAT_OP(SQRT, sqrt(a))
FLOAT_OP(ERF, k_erf(a))
FLOAT_OP(GELU, 0.5 * a * (1.0 + k_erf(a * 0.70710678)))
FLOAT_OP(GELU_TANH, 0.5 * a * (1.0 + k_tanh(0.79788456 * (a + 0.044715 * a * a * a))))

FLOAT_OP(ADD, a + b)
FLOAT_OP(SUB, a - b)
FLOAT_OP(MUL, a * b)
FLOAT_OP(DIV, a / b)
FLOAT_OP(POW, k_pow(a, b))
FLOAT_OP(MIN, a < b || k_is_nan(a) ? a : b)
FLOAT_OP(MAX, a > b || k_is_nan(a) ? a : b)
FLOAT_OP(PRELU, a < 0.0 ? b * a : a)
FLOAT_OP(CLIP_LOW, a < b || k_is_nan(b) ? b : a)
FLOAT_OP(CLIP_HIGH, a > b || k_is_nan(b) ? b : a)

FLOAT_OP(CLIP, k_clip(a, b, c))
