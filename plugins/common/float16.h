/* float16 (IEEE 754 binary16) and bfloat16 as bits, to and from wider types: one conversion for the reference kernels, the
 * readers, the plugins and the tool. To the nearest, ties to even; what is too large becomes infinity; subnormals are
 * exact. A NaN keeps its sign and the upper bits of its payload, and gets the quiet bit where it is narrowed, as the
 * conversion instructions of x86 and Arm have it. Integer arithmetic, so that no rounding mode or flush to zero changes a
 * result. Header only, so that every room may include it; tests/unit/test_float16.c. */
#ifndef HEDDLE_PLUGINS_COMMON_FLOAT16_H
#define HEDDLE_PLUGINS_COMMON_FLOAT16_H

#include <stdint.h>
#include <string.h>

static inline float float16_to_float(uint16_t half) {
  const uint32_t sign = (uint32_t)(half & 0x8000U) << 16, exponent = half >> 10 & 31U, fraction = half & 1023U;
  uint32_t bits;
  float x;
  if (exponent == 31) {
    bits = 0x7f800000U | fraction << 13;
  } else if (exponent != 0) {
    bits = (exponent + 112) << 23 | fraction << 13;
  } else {
    x = (float)fraction * 0x1p-24F;
    memcpy(&bits, &x, sizeof bits);
  }
  bits |= sign;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Rounds once, from the double. */
static inline uint16_t float16_from_double(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  const uint32_t sign = (uint32_t)(bits >> 48) & 0x8000U;
  const uint64_t size = bits & UINT64_C(0x7fffffffffffffff), exponent = size >> 52;
  if (size > UINT64_C(0x7ff) << 52) return (uint16_t)(sign | 0x7e00U | (size >> 42 & 0x3ffU));
  if (exponent >= 1023 + 16) return (uint16_t)(sign | 0x7c00U);
  if (exponent < 1023 - 25) return (uint16_t)sign; /* less than half of the least, 2^-24 */
  uint64_t digits =
      size - (UINT64_C(1008) << 52); /* of a normal result: its exponent, whose bias is 1008 less, and its fraction */
  uint32_t shift = 52 - 10;
  if (exponent < 1023 - 14) { /* of a subnormal one: multiples of 2^-24 */
    digits = (size & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    shift = (uint32_t)(1023 + 52 - 24 - exponent);
  }
  const uint64_t half = digits >> shift, rest = digits & ((UINT64_C(1) << shift) - 1), tie = UINT64_C(1) << (shift - 1);
  return (uint16_t)(sign | (half + (rest > tie || (rest == tie && (half & 1) != 0)))); /* may carry into infinity */
}

static inline uint16_t float16_from_float(float x) {
  return float16_from_double((double)x); /* which is exact */
}

static inline float bfloat16_to_float(uint16_t half) {
  const uint32_t bits = (uint32_t)half << 16;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline uint16_t bfloat16_from_float(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return (uint16_t)(bits >> 16 | 0x40U);
  return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1)) >> 16);
}

#endif
