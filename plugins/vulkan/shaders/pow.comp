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
#if BYTES == 8 && defined(DOUBLE)
#define BASE_MAY_BE_DOUBLE
#include "math64.glsl"
#endif

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
  if (k_is_real(EXPONENT)) {
    const REAL e = k_real(bits, EXPONENT_BYTES, EXPONENT);
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

// An exponent that is an integer may be odd where the float next to it is not; from 2^53 on it counts as even, as where it
// goes through float64.
bool is_odd(const UINT e) {
#if EXPONENT_BYTES == 8
  const UINT from_least = EXPONENT == KIND_UNSIGNED ? e : e + UINT(9007199254740992ul);
  const bool exact = from_least < UINT(EXPONENT == KIND_UNSIGNED ? 9007199254740992ul : 18014398509481984ul);
#else
  const bool exact = true;
#endif
  return exact && (uint(e) & 1u) != 0u;
}

float power_real(const float x, const UINT bits) {
  if (k_is_real(EXPONENT)) return k_pow(x, float(k_real(bits, EXPONENT_BYTES, EXPONENT)));
  const UINT e = k_integer(bits, EXPONENT_BYTES, EXPONENT);
  const float size = k_pow(abs(x), float(k_real_of_integer(e, EXPONENT)));
  return is_odd(e) && floatBitsToInt(x) < 0 ? -size : size;
}

#ifdef BASE_MAY_BE_DOUBLE
double power_real(const double x, const UINT bits) {
  if (k_is_real(EXPONENT)) return k_pow(x, double(k_real(bits, EXPONENT_BYTES, EXPONENT)));
  const UINT e = k_integer(bits, EXPONENT_BYTES, EXPONENT);
  const double size = k_pow(abs(x), double(k_real_of_integer(e, EXPONENT)));
  return is_odd(e) && (unpackDouble2x32(x).y & 0x80000000u) != 0u ? -size : size;
}
#define BASE_OF(x) (x)
#else
#define BASE_OF(x) float(x)
#endif

void main() {
  int at[N], o;
  if (!k_place(k_item(), at, o)) return;
  const UINT a = BITS(BYTES, x0[at[0]]), b = BITS(EXPONENT_BYTES, x1[at[1]]);
  UINT result;
  if (k_is_real(BASE)) result = k_bits_of_real(REAL(power_real(BASE_OF(k_real(a, BYTES, BASE)), b)), BYTES, BASE);
  else result = power(k_integer(a, BYTES, BASE), b);
  y[o] = UNBITS(BYTES, result);
}
