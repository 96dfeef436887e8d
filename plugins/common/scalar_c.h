/* The words of scalar expressions (operators/operators.h) in C. The file that includes this defines S_REAL, the type of
 * reals, S_LIBM(name), the C library's function of it, and S_NUM. Words of integers are for S_WHOLE(name), signed_name or
 * unsigned_name, and S_INT; S_ISNAN is for numbers. A file redefines these between its passes over all.def. */
#ifndef HEDDLE_PLUGINS_COMMON_SCALAR_C_H
#define HEDDLE_PLUGINS_COMMON_SCALAR_C_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define S_ABS(x) S_LIBM(fabs)(x)
#define S_ACOS(x) S_LIBM(acos)(x)
#define S_ACOSH(x) S_LIBM(acosh)(x)
#define S_ASIN(x) S_LIBM(asin)(x)
#define S_ASINH(x) S_LIBM(asinh)(x)
#define S_ATAN(x) S_LIBM(atan)(x)
#define S_ATANH(x) S_LIBM(atanh)(x)
#define S_CEIL(x) S_LIBM(ceil)(x)
#define S_COS(x) S_LIBM(cos)(x)
#define S_COSH(x) S_LIBM(cosh)(x)
#define S_ERF(x) S_LIBM(erf)(x)
#define S_EXPM1(x) S_LIBM(expm1)(x)
#define S_FLOOR(x) S_LIBM(floor)(x)
#define S_LOG(x) S_LIBM(log)(x)
#define S_LOG1P(x) S_LIBM(log1p)(x)
#define S_RINT(x) S_LIBM(nearbyint)(x)
#define S_SIN(x) S_LIBM(sin)(x)
#define S_SINH(x) S_LIBM(sinh)(x)
#define S_SQRT(x) S_LIBM(sqrt)(x)
#define S_TAN(x) S_LIBM(tan)(x)
#define S_ISINF(x) (isinf(x) != 0)

#define S_AT_LEAST(x, end) real_at_least(x, end)
#define S_AT_MOST(x, end) real_at_most(x, end)
#define S_OVER(x, end) ((x) < (end) || S_ISNAN(end) ? (end) : (x))
#define S_UNDER(x, end) ((x) > (end) || S_ISNAN(end) ? (end) : (x))

#define S_ADD(x, y) S_WRAP((uint64_t)(x) + (uint64_t)(y))
#define S_SUB(x, y) S_WRAP((uint64_t)(x) - (uint64_t)(y))
#define S_MUL(x, y) S_WRAP((uint64_t)(x) * (uint64_t)(y))
#define S_DIV(x, y) S_WHOLE(div)(x, y)
#define S_NEGATIVE(x) S_WHOLE(negative)(x)
#define S_SHIFT_LEFT(x, y) ((uint64_t)(y) > 63 ? S_INT(0) : S_WRAP((uint64_t)(x) << (uint64_t)(y)))
#define S_SHIFT_RIGHT(x, y) S_WHOLE(shift_right)(x, y)

static inline S_REAL real_at_least(S_REAL x, S_REAL end) {
  return x < end ? end : x;
}

static inline S_REAL real_at_most(S_REAL x, S_REAL end) {
  return x > end ? end : x;
}

/* fmod is exact. A remainder of 0 has no sign. */
static inline S_REAL real_mod(S_REAL x, S_REAL y) {
  const S_REAL r = S_LIBM(fmod)(x, y);
  return r == 0 ? 0 : (r < 0) != (y < 0) ? r + y : r;
}

static inline bool signed_negative(int64_t x) {
  return x < 0;
}

static inline bool unsigned_negative(uint64_t x) {
  (void)x;
  return false;
}

static inline int64_t signed_div(int64_t x, int64_t y) {
  return y == 0 ? 0 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

static inline uint64_t unsigned_div(uint64_t x, uint64_t y) {
  return y == 0 ? 0 : x / y;
}

static inline int64_t signed_rem(int64_t x, int64_t y) {
  return y == 0 || y == -1 ? 0 : x % y;
}

static inline uint64_t unsigned_rem(uint64_t x, uint64_t y) {
  return y == 0 ? 0 : x % y;
}

static inline int64_t signed_mod(int64_t x, int64_t y) {
  const int64_t r = signed_rem(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static inline uint64_t unsigned_mod(uint64_t x, uint64_t y) {
  return unsigned_rem(x, y);
}

static inline int64_t signed_shift_right(int64_t x, int64_t y) {
  const uint64_t by = (uint64_t)y > 63 ? 63 : (uint64_t)y;
  return x < 0 ? ~(int64_t)(~(uint64_t)x >> by) : (int64_t)((uint64_t)x >> by);
}

static inline uint64_t unsigned_shift_right(uint64_t x, uint64_t y) {
  return y > 63 ? 0 : x >> y;
}

/* By squaring; a negative exponent gives what is left of the fraction. */
static inline uint64_t unsigned_pow(uint64_t x, uint64_t y) {
  uint64_t result = 1;
  for (; y > 0; y >>= 1, x *= x)
    if ((y & 1) != 0) result *= x;
  return result;
}

static inline int64_t signed_pow(int64_t x, int64_t y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 != 0 ? -1 : 1) : 0;
  return (int64_t)unsigned_pow((uint64_t)x, (uint64_t)y);
}

/* What integers of up to 32 bits need not take 64 for: divisions. */
static inline int32_t short_div(int32_t x, int32_t y) {
#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
  /* unlike a division of integers that of float64, which holds both and cuts the quotient rightly, has vectors */
  const double by = y == 0 ? 1.0 : (double)y;
  const int32_t q = (int32_t)((y == -1 ? 0.0 : (double)x) / by);
  return y == 0 ? 0 : y == -1 ? (int32_t)(0 - (uint32_t)x) : q;
#else
  return y == 0 ? 0 : y == -1 ? (int32_t)(0 - (uint32_t)x) : x / y;
#endif
}

static inline int32_t short_rem(int32_t x, int32_t y) {
  return y == 0 || y == -1 ? 0 : x % y;
}

static inline int32_t short_mod(int32_t x, int32_t y) {
  const int32_t r = short_rem(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static inline uint32_t short_unsigned_div(uint32_t x, uint32_t y) {
  return y == 0 ? 0 : x / y;
}

static inline uint32_t short_unsigned_rem(uint32_t x, uint32_t y) {
  return y == 0 ? 0 : x % y;
}

#endif
