// Pow whose base is an integer, or whose operands differ in type: IPOW and POW of elementwise.cl. A variant defines
// BYTES of the base and the result, and EXPONENT_BYTES.
#version 450
#extension GL_GOOGLE_include_directive : enable
#define N 2
#include "common.glsl"
#include "params.glsl"
#include "words.glsl"
#include "convert.glsl"
#include "place.glsl"
#include "math.glsl"

layout(constant_id = 1) const int BASE = 0;
layout(constant_id = 2) const int EXPONENT = 0;

OPERAND(1, WORD(BYTES), x0);
OPERAND(2, WORD(EXPONENT_BYTES), x1);
RESULT(3, WORD(BYTES), y);

// By squaring where the exponent is a whole number.
UINT power(const UINT x, const UINT bits) {
  float z;
  uint left = 0u;
  bool whole;
  if (EXPONENT == KIND_REAL) {
    const REAL e = k_real(bits, EXPONENT_BYTES);
    z = float(e);
    whole = e >= REAL(0) && z <= 2147483648.0;
    if (whole) {
      left = uint(e);
      whole = REAL(left) == e;
    }
  } else {
    const UINT e = k_integer(bits, EXPONENT_BYTES, EXPONENT);
    z = float(k_real_of_integer(e, EXPONENT));
    whole = z >= 0.0 && z <= 2147483648.0;
    left = uint(e);
  }
  if (!whole) return k_whole(REAL(k_pow(float(k_real_of_integer(x, BASE)), z)));
  UINT result = UINT(1);
  for (UINT square = x; left != 0u; left >>= 1, square *= square) {
    if ((left & 1u) != 0u) result *= square;
  }
  return result;
}

float exponent(const UINT bits) {
  if (EXPONENT == KIND_REAL) return float(k_real(bits, EXPONENT_BYTES));
  return float(k_real_of_integer(k_integer(bits, EXPONENT_BYTES, EXPONENT), EXPONENT));
}

void main() {
  int at[N], o;
  if (!k_place(k_item(), at, o)) return;
  const UINT a = BITS(BYTES, x0[at[0]]), b = BITS(EXPONENT_BYTES, x1[at[1]]);
  UINT result;
  if (BASE == KIND_REAL) result = UINT(floatBitsToUint(k_pow(uintBitsToFloat(uint(a)), exponent(b))));
  else result = power(k_integer(a, BYTES, BASE), b);
  y[o] = UNBITS(BYTES, result);
}
