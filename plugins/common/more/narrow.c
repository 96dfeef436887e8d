/* Narrow elements by their formats: float8 and float4 are rounded to the nearest, ties to even. */
#include "narrow.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* In the order of the types. mantissa: bits of it; most: the code of the largest number; infinity: its code, 0: none; nan: 0:
 * none. unsigned_zero: NaN is what would be -0. */
static const struct format {
  heddle_dtype dtype;
  uint8_t onnx;
  int8_t mantissa, bias;
  uint8_t most, infinity, nan;
  bool unsigned_zero;
} formats[] = {
    {{10, 8, 1}, 17, 3, 7, 0x7E, 0, 0x7F, false},     /* float8e4m3fn */
    {{11, 8, 1}, 18, 3, 8, 0x7F, 0, 0x80, true},      /* float8e4m3fnuz */
    {{12, 8, 1}, 19, 2, 15, 0x7B, 0x7C, 0x7E, false}, /* float8e5m2 */
    {{13, 8, 1}, 20, 2, 16, 0x7F, 0, 0x80, true},     /* float8e5m2fnuz */
    {{14, 8, 1}, 24, 0, 127, 0xFE, 0, 0xFF, true},    /* float8e8m0fnu */
    {{17, 4, 1}, 23, 1, 1, 0x07, 0, 0, false},        /* float4e2m1fn */
    {{HEDDLE_DTYPE_INT, 4, 1}, 22, 0, 0, 7, 0, 0, false},
    {{HEDDLE_DTYPE_UINT, 4, 1}, 21, 0, 0, 15, 0, 0, false},
    {{HEDDLE_DTYPE_INT, 2, 1}, 26, 0, 0, 1, 0, 0, false},
    {{HEDDLE_DTYPE_UINT, 2, 1}, 25, 0, 0, 3, 0, 0, false},
};
enum { COUNT = sizeof formats / sizeof formats[0] };

int narrow_of(heddle_dtype dtype) {
  for (int i = 0; i < COUNT; i++)
    if (formats[i].dtype.code == dtype.code && formats[i].dtype.bits == dtype.bits && dtype.lanes == 1)
      return MORE_TYPE_NARROW + i;
  return 0;
}

int narrow_of_onnx(int64_t number) {
  for (int i = 0; i < COUNT; i++)
    if (formats[i].onnx == number) return MORE_TYPE_NARROW + i;
  return 0;
}

static const struct format *format_of(int type) {
  return &formats[type - MORE_TYPE_NARROW];
}

heddle_dtype narrow_dtype(int type) {
  return format_of(type)->dtype;
}

void narrow_format(int type, int64_t out[NARROW_FORMAT]) {
  const struct format *f = format_of(type);
  const int64_t kind = type == MORE_TYPE_I4 || type == MORE_TYPE_I2 ? NARROW_SIGNED
                       : type >= MORE_TYPE_NARROW_WHOLE             ? NARROW_SIGNED + 1
                       : type == MORE_TYPE_E8M0                     ? 2
                                                                    : f->unsigned_zero;
  const int64_t words[] = {f->dtype.bits, f->mantissa, f->bias, f->most, f->infinity, f->nan, kind};
  memcpy(out, words, sizeof words);
}

int64_t narrow_most(int type) {
  return format_of(type)->most;
}

int64_t narrow_least(int type) {
  return type == MORE_TYPE_I4 || type == MORE_TYPE_I2 ? -narrow_most(type) - 1 : 0;
}

/* ---- integers */

static int64_t wrapped(int type, int64_t x) {
  const int64_t most = narrow_most(type), least = narrow_least(type), size = most - least + 1;
  return ((x - least) % size + size) % size + least;
}

uint8_t narrow_wrap(int type, int64_t x) {
  return (uint8_t)wrapped(type, x % 16); /* a multiple of every size */
}

static int64_t cut(double x) {
  return x >= -0x1p62 && x <= 0x1p62 ? (int64_t)x : 0;
}

/* ---- floating-point */

/* A byte of powers of two: 2^(code - 127). */
static uint8_t store_power(double x, bool saturate, int rounds) {
  int exponent;
  if (x != x || x < 0) return 0xFF;
  if (isinf(x)) return saturate ? 0xFE : 0xFF;
  if (x == 0) return 0;
  const double part = frexp(x, &exponent); /* [0.5, 1) */
  if (rounds == MORE_ROUND_UP ? part > 0.5 : rounds == MORE_ROUND_NEAREST && part >= 0.75) exponent++;
  exponent += 127 - 1;
  if (exponent > 0xFE) return saturate ? 0xFE : 0xFF;
  return (uint8_t)(exponent < 0 ? 0 : exponent);
}

double narrow_load(int type, uint8_t byte) {
  const struct format *f = format_of(type);
  if (type >= MORE_TYPE_NARROW_WHOLE)
    return (double)wrapped(type, type == MORE_TYPE_I4 || type == MORE_TYPE_I2 ? (int8_t)byte : byte);
  if (type == MORE_TYPE_E8M0) return byte == f->nan ? (double)NAN : ldexp(1, byte - f->bias);
  const uint8_t top = (uint8_t)(1u << (f->dtype.bits - 1));
  const int code = byte & (top - 1);
  const double sign = (byte & top) != 0 ? -1 : 1;
  if (f->nan != 0 && (f->unsigned_zero ? byte == f->nan : code > (f->infinity != 0 ? f->infinity : f->most)))
    return (double)NAN;
  if (f->infinity != 0 && code == f->infinity) return sign * (double)INFINITY;
  const int exponent = code >> f->mantissa, part = code & ((1 << f->mantissa) - 1);
  if (exponent == 0) return sign * ldexp(part, 1 - f->bias - f->mantissa);
  return sign * ldexp(part + (1 << f->mantissa), exponent - f->bias - f->mantissa);
}

uint8_t narrow_store(int type, double x, bool saturate, int rounds) {
  const struct format *f = format_of(type);
  if (type >= MORE_TYPE_NARROW_WHOLE) return (uint8_t)wrapped(type, cut(x));
  if (type == MORE_TYPE_E8M0) return store_power(x, saturate, rounds);
  const uint8_t top = (uint8_t)(1u << (f->dtype.bits - 1)), sign = signbit(x) != 0 ? top : 0;
  const uint8_t large = f->infinity != 0   ? (uint8_t)(f->infinity | sign)
                        : f->unsigned_zero ? f->nan
                                           : (uint8_t)(f->nan | sign);
  if (x != x) return f->nan == 0 ? top : f->unsigned_zero ? f->nan : (uint8_t)(f->nan | sign);
  if (f->nan == 0) saturate = true;
  if (isinf(x)) return saturate ? (uint8_t)(f->most | sign) : large;
  int exponent, code;
  frexp(x, &exponent); /* of a part in [0.5, 1) */
  exponent--;
  if (x == 0 || exponent < 1 - f->bias)
    exponent = 1 - f->bias; /* a subnormal has the same step as the least normal number */
  const double steps = nearbyint(ldexp(fabs(x), f->mantissa - exponent));
  if (steps > 1024)
    return saturate ? (uint8_t)(f->most | sign) : large; /* the step of an exponent that the type has not */
  code = (int)steps + (exponent + f->bias - 1) * (1 << f->mantissa);
  if (code > f->most) return saturate ? (uint8_t)(f->most | sign) : large;
  return code == 0 && f->unsigned_zero ? 0 : (uint8_t)(code | sign);
}
