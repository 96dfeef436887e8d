// Numbers of any type, read from words and made words again, for shaders whose operands differ in type. A variant defines
// WIDE where any is of 8 bytes, and DOUBLE where one is a float64; the device then computes with 64 bits. Which type the
// words are of is a constant: KIND_*.
#ifdef WIDE
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#define INT int64_t
#define UINT uint64_t
#else
#define INT int
#define UINT uint
#endif
#ifdef DOUBLE
#define REAL double
#else
#define REAL float
#endif

#include "halves.glsl"

const int KIND_SIGNED = 0, KIND_UNSIGNED = 1, KIND_REAL = 2, KIND_HALF = 3, KIND_BFLOAT = 4;

bool k_is_real(const int kind) {
  return kind >= KIND_REAL;
}

// Words of n bytes as unsigned bits.
#define BITS_1(x) UINT(uint(x))
#define BITS_2(x) UINT(uint(x))
#define BITS_4(x) UINT(x)
#define BITS_8(x) packUint2x32(x)
#define BITS_OF(n) BITS_##n
#define BITS_(n) BITS_OF(n)
#define BITS(n, x) BITS_(n)(x)

// And back: the lowest.
#define UNBITS_1(x) uint8_t(uint(x))
#define UNBITS_2(x) uint16_t(uint(x))
#define UNBITS_4(x) uint(x)
#define UNBITS_8(x) unpackUint2x32(x)
#define UNBITS_OF(n) UNBITS_##n
#define UNBITS_(n) UNBITS_OF(n)
#define UNBITS(n, x) UNBITS_(n)(x)

// An integer of so many bytes, with its sign spread.
UINT k_integer(const UINT bits, const int bytes, const int kind) {
  if (kind != KIND_SIGNED || bytes == 8) return bits;
  return UINT(INT(bitfieldExtract(int(uint(bits)), 0, 8 * min(bytes, 4))));
}

REAL k_real(const UINT bits, const int bytes, const int kind) {
  if (kind == KIND_HALF) return REAL(k_of_half(uint(bits)));
  if (kind == KIND_BFLOAT) return REAL(k_of_bfloat16(uint(bits)));
#ifdef DOUBLE
  if (bytes == 8) return packDouble2x32(unpackUint2x32(bits));
#endif
  return REAL(uintBitsToFloat(uint(bits)));
}

// A float32 that rounds on to fewer bits as the number itself would: where it is not exact, the one beside it that is odd.
float k_float_to_odd(const REAL x) {
#ifdef DOUBLE
  const float y = float(x);
  const REAL back = REAL(y);
  const uint bits = floatBitsToUint(y);
  if (back == x || k_is_nan(y) || (bits & 0x7fffffffu) <= 0x00800000u) return y;
  const bool larger = (back > x) == (x > REAL(0));
  return uintBitsToFloat(larger ? bits - 1u | 1u : bits | 1u);
#else
  return x;
#endif
}

UINT k_bits_of_real(const REAL x, const int bytes, const int kind) {
  if (kind == KIND_HALF) return UINT(k_to_half(k_float_to_odd(x)));
  if (kind == KIND_BFLOAT) return UINT(k_to_bfloat16(k_float_to_odd(x)));
#ifdef DOUBLE
  if (bytes == 8) return packUint2x32(unpackDouble2x32(x));
#endif
  return UINT(floatBitsToUint(float(x)));
}

REAL k_real_of_integer(const UINT x, const int kind) {
  return kind == KIND_SIGNED ? REAL(INT(x)) : REAL(x);
}

// The lowest bits of a number without its fraction; of those that 64 bits cannot hold, and of NaN, those of the least.
UINT k_whole(const REAL x) {
#ifdef WIDE
  const bool fits = x >= REAL(-9223372036854775808.0) && x < REAL(9223372036854775808.0);
  return fits ? UINT(INT(x)) : UINT(1) << 63;
#else
  const uint bits = floatBitsToUint(x), size = bits >> 23 & 0xffu;
  if (size < 127u || size >= 127u + 63u) return 0u;
  const uint digits = bits & 0x007fffffu | 0x00800000u;
  const int up = int(size) - 150;
  const uint y = up <= 0 ? digits >> -up : up < 32 ? digits << up : 0u;
  return (bits >> 31) != 0u ? 0u - y : y;
#endif
}
