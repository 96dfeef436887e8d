/* Elements of 8 bits and less that Cast, CastLike, QuantizeLinear and DequantizeLinear take: float8, float4, and integers of 4
 * and 2 bits, each in a byte of its own. */
#ifndef HEDDLE_PLUGINS_COMMON_MORE_NARROW_H
#define HEDDLE_PLUGINS_COMMON_MORE_NARROW_H

#include "heddle/plugin.h"

#include <stdbool.h>

/* Floating-point first. */
enum {
  MORE_TYPE_NARROW = 40,
  MORE_TYPE_E4M3FN = MORE_TYPE_NARROW,
  MORE_TYPE_E4M3FNUZ,
  MORE_TYPE_E5M2,
  MORE_TYPE_E5M2FNUZ,
  MORE_TYPE_E8M0,
  MORE_TYPE_E2M1,
  MORE_TYPE_NARROW_WHOLE,
  MORE_TYPE_I4 = MORE_TYPE_NARROW_WHOLE,
  MORE_TYPE_U4,
  MORE_TYPE_I2,
  MORE_TYPE_U2,
  MORE_TYPE_NARROW_END
};

/* How E8M0, powers of two, rounds. */
enum { MORE_ROUND_UP, MORE_ROUND_DOWN, MORE_ROUND_NEAREST };

static inline bool narrow_is(int type) {
  return type >= MORE_TYPE_NARROW && type < MORE_TYPE_NARROW_END;
}

/* By a dtype, by ONNX's number; 0: none of these. And the dtype of one. */
int narrow_of(heddle_dtype dtype);
int narrow_of_onnx(int64_t number);
heddle_dtype narrow_dtype(int type);

/* An element as a number; a number as an element. What is too large becomes the largest where saturate, else infinity, or
 * NaN where the type has none. Integers wrap. */
double narrow_load(int type, uint8_t byte);
uint8_t narrow_store(int type, double x, bool saturate, int rounds);
uint8_t narrow_wrap(int type, int64_t x); /* the same of an integer, to a type of integers */

/* The format for kernels (kernels/narrow.cl): bits, bits of the mantissa, bias, the codes of the largest number, of infinity
 * and of NaN (0: none), and a kind: 0 of numbers with a sign, 1 of those whose -0 is NaN, 2 powers of two, 3 integers with
 * a sign, 4 without. */
enum { NARROW_FORMAT = 7, NARROW_SIGNED = 3 };
void narrow_format(int type, int64_t out[NARROW_FORMAT]);
int64_t narrow_least(int type); /* of integers */
int64_t narrow_most(int type);

#endif
