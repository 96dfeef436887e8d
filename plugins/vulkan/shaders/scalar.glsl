// The words S_* of the scalar expressions of operators/ (operators/operators.h), in the type C of types.glsl, or in float32
// where that is not included. REAL: C is a type of real numbers, and DOUBLE: it is float64.
#ifdef REAL

#define S_NUM(x) C(x)
#ifdef DOUBLE
#include "scalar_double.glsl"

bool k_is_nan(const double x) {
  const uvec2 bits = unpackDouble2x32(x);
  return (bits.y & 0x7fffffffu) > 0x7ff00000u || (bits.y & 0x7fffffffu) == 0x7ff00000u && bits.x != 0u;
}

bool k_is_infinite(const double x) {
  const uvec2 bits = unpackDouble2x32(x);
  return (bits.y & 0x7fffffffu) == 0x7ff00000u && bits.x == 0u;
}

double k_abs(const double x) {
  const uvec2 bits = unpackDouble2x32(x);
  return packDouble2x32(uvec2(bits.x, bits.y & 0x7fffffffu));
}

// To the nearest whole number, ties to the even one: beyond 2^52 a sum has no room for a fraction.
double k_rint(const double x) {
  const double a = k_abs(x);
  if (!(a < 4503599627370496.0lf)) return x;
  precise double y = a + 4503599627370496.0lf;
  y = y - 4503599627370496.0lf;
  return packDouble2x32(unpackDouble2x32(y) | uvec2(0u, unpackDouble2x32(x).y & 0x80000000u));
}
#else
#include "scalar_float.glsl"

float k_abs(const float x) {
  return uintBitsToFloat(floatBitsToUint(x) & 0x7fffffffu);
}
#endif

C k_at_least(const C x, const C end) {
  return x < end ? end : x;
}

C k_at_most(const C x, const C end) {
  return x > end ? end : x;
}

C k_over(const C x, const C end) {
  return x < end || k_is_nan(end) ? end : x;
}

C k_under(const C x, const C end) {
  return x > end || k_is_nan(end) ? end : x;
}

#define S_ABS(x) k_abs(x)
#define S_SQRT(x) sqrt(x)
#define S_CEIL(x) ceil(x)
#define S_FLOOR(x) floor(x)
#define S_RINT(x) k_rint(x)
#define S_AT_LEAST(x, end) k_at_least(x, end)
#define S_AT_MOST(x, end) k_at_most(x, end)
#define S_OVER(x, end) k_over(x, end)
#define S_UNDER(x, end) k_under(x, end)
#define S_ISNAN(x) k_is_nan(x)
#define S_ISINF(x) k_is_infinite(x)

#else

// Integers wrap, by way of their unsigned kin U; those of fewer bits than C when they are stored. Nothing traps.
#if TYPE == TYPE_I8 || TYPE == TYPE_U8
#define PLACES 8
#define IN_PLACES(x) (U(x) & 0xffu)
#elif TYPE == TYPE_I16 || TYPE == TYPE_U16
#define PLACES 16
#define IN_PLACES(x) (U(x) & 0xffffu)
#elif TYPE == TYPE_I64 || TYPE == TYPE_U64
#define PLACES 64
#define IN_PLACES(x) U(x)
#else
#define PLACES 32
#define IN_PLACES(x) U(x)
#endif
#if TYPE == TYPE_U8 || TYPE == TYPE_U16 || TYPE == TYPE_U32 || TYPE == TYPE_U64
#define S_NEGATIVE(x) false
#define IS_MINUS_ONE(x) false
#else
#define S_NEGATIVE(x) ((x) < C(0))
#define IS_MINUS_ONE(x) ((x) == C(-1))
#endif

C k_quotient(const C x, const C y) {
  return y == C(0) ? C(0) : IS_MINUS_ONE(y) ? C(U(0) - U(x)) : x / y;
}

// Of magnitudes: SPIR-V's remainder of negative numbers is not reliable on all drivers.
C k_remainder(const C x, const C y) {
  if (y == C(0)) return C(0);
  const U a = S_NEGATIVE(x) ? U(0) - U(x) : U(x), b = S_NEGATIVE(y) ? U(0) - U(y) : U(y), r = a % b;
  return C(S_NEGATIVE(x) ? U(0) - r : r);
}

C k_modulus(const C x, const C y) {
  const C r = k_remainder(x, y);
  return r != C(0) && S_NEGATIVE(r) != S_NEGATIVE(y) ? C(U(r) + U(y)) : r;
}

C k_shift_left(const C x, const C y) {
  const U places = IN_PLACES(y);
  return places >= U(PLACES) ? C(0) : C(U(x) << uint(places));
}

C k_shift_right(const C x, const C y) {
  const U places = IN_PLACES(y);
  return places >= U(PLACES) ? (S_NEGATIVE(x) ? C(-1) : C(0)) : C(x >> uint(places));
}

C k_over(const C x, const C end) {
  return x < end ? end : x;
}

C k_under(const C x, const C end) {
  return x > end ? end : x;
}

#define S_INT(x) C(x)
#define S_ADD(x, y) C(U(x) + U(y))
#define S_SUB(x, y) C(U(x) - U(y))
#define S_MUL(x, y) C(U(x) * U(y))
#define S_DIV(x, y) k_quotient(x, y)
#define S_REM(x, y) k_remainder(x, y)
#define S_MOD(x, y) k_modulus(x, y)
#define S_POW(x, y) (x) // pow.comp has integers to any power
#define S_SHIFT_LEFT(x, y) k_shift_left(x, y)
#define S_SHIFT_RIGHT(x, y) k_shift_right(x, y)
#define S_OVER(x, end) k_over(x, end)
#define S_UNDER(x, end) k_under(x, end)
#define S_ISNAN(x) false

#endif
#include "scalar_texts.glsl"
