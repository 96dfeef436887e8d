/* Elements as numbers: float16 and bfloat16 by their bits, the others by their C types. */
#include "number.h"

#include <math.h>
#include <string.h>

/* In the order of REF_TYPE_*. */
static const heddle_dtype types[] = {
    [REF_TYPE_F32] = {HEDDLE_DTYPE_FLOAT, 32, 1}, [REF_TYPE_F64] = {HEDDLE_DTYPE_FLOAT, 64, 1},
    [REF_TYPE_I8] = {HEDDLE_DTYPE_INT, 8, 1},     [REF_TYPE_I16] = {HEDDLE_DTYPE_INT, 16, 1},
    [REF_TYPE_I32] = {HEDDLE_DTYPE_INT, 32, 1},   [REF_TYPE_I64] = {HEDDLE_DTYPE_INT, 64, 1},
    [REF_TYPE_U8] = {HEDDLE_DTYPE_UINT, 8, 1},    [REF_TYPE_U16] = {HEDDLE_DTYPE_UINT, 16, 1},
    [REF_TYPE_U32] = {HEDDLE_DTYPE_UINT, 32, 1},  [REF_TYPE_U64] = {HEDDLE_DTYPE_UINT, 64, 1},
    [REF_TYPE_BOOL] = {HEDDLE_DTYPE_BOOL, 8, 1},
};

int more_type_of(heddle_dtype dtype) {
  if (dtype.lanes == 1 && dtype.bits == 16 && dtype.code == HEDDLE_DTYPE_FLOAT) return MORE_TYPE_F16;
  if (dtype.lanes == 1 && dtype.bits == 16 && dtype.code == HEDDLE_DTYPE_BFLOAT) return MORE_TYPE_BF16;
  return ref_type_of(dtype);
}

int more_type_of_onnx(int64_t number) {
  return number == 10 ? MORE_TYPE_F16 : number == 16 ? MORE_TYPE_BF16 : ref_type_of_onnx(number);
}

heddle_dtype more_dtype(int type) {
  if (type == MORE_TYPE_F16) return (heddle_dtype){HEDDLE_DTYPE_FLOAT, 16, 1};
  if (type == MORE_TYPE_BF16) return (heddle_dtype){HEDDLE_DTYPE_BFLOAT, 16, 1};
  return types[type];
}

uint8_t more_type_bytes(int type) {
  return (uint8_t)(more_dtype(type).bits / 8);
}

static double from_half(uint16_t h) {
  const int exponent = h >> 10 & 31, fraction = h & 1023;
  double x = exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25);
  if (exponent == 31) x = fraction != 0 ? (double)NAN : (double)INFINITY;
  return (h & 0x8000) != 0 ? -x : x;
}

/* To the nearest, ties to even. */
static uint16_t to_half(double x) {
  const uint16_t sign = signbit(x) ? 0x8000 : 0;
  const double size = fabs(x);
  int exponent;
  if (isnan(x)) return (uint16_t)(sign | 0x7e00);
  if (size >= 65520) return (uint16_t)(sign | 0x7c00);
  if (size < 0x1p-14) return (uint16_t)(sign | (uint16_t)nearbyint(ldexp(size, 24)));
  const double fraction = frexp(size, &exponent); /* in [0.5, 1) */
  const long bits = (long)nearbyint(ldexp(fraction, 11));
  return (uint16_t)(sign | (uint16_t)(((long)(exponent + 13) << 10) + bits));
}

static double from_bfloat(uint16_t h) {
  const uint32_t bits = (uint32_t)h << 16;
  float x;
  memcpy(&x, &bits, sizeof x);
  return (double)x;
}

static uint16_t to_bfloat(double value) {
  const float x = (float)value;
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (x != x) return 0x7fc0;
  bits += 0x7fff + (bits >> 16 & 1);
  return (uint16_t)(bits >> 16);
}

/* An element of `bytes` bytes at any address: large constants of a mapped file lie as they lie. */
static uint64_t bits_at(const void *p, int64_t i, size_t bytes) {
  uint64_t bits = 0;
  memcpy(&bits, (const char *)p + (size_t)i * bytes, bytes); /* little-endian */
  return bits;
}

double more_load(int type, const void *p, int64_t i) {
  float single;
  double real;
  switch (type) {
  case REF_TYPE_F32: memcpy(&single, (const char *)p + (size_t)i * sizeof single, sizeof single); return (double)single;
  case REF_TYPE_F64: memcpy(&real, (const char *)p + (size_t)i * sizeof real, sizeof real); return real;
  case REF_TYPE_U64: return (double)bits_at(p, i, 8);
  case MORE_TYPE_F16: return from_half((uint16_t)bits_at(p, i, 2));
  case MORE_TYPE_BF16: return from_bfloat((uint16_t)bits_at(p, i, 2));
  default: return (double)more_load_int(type, p, i);
  }
}

static int64_t cut(double x) {
  if (x >= 0x1p63) return INT64_MAX;
  return x > -0x1p63 ? (int64_t)x : INT64_MIN; /* NaN too */
}

int64_t more_load_int(int type, const void *p, int64_t i) {
  switch (type) {
  case REF_TYPE_I8: return ((const int8_t *)p)[i];
  case REF_TYPE_I16: return (int16_t)bits_at(p, i, 2);
  case REF_TYPE_I32: return (int32_t)bits_at(p, i, 4);
  case REF_TYPE_I64: return (int64_t)bits_at(p, i, 8);
  case REF_TYPE_U8: return ((const uint8_t *)p)[i];
  case REF_TYPE_U16: return (uint16_t)bits_at(p, i, 2);
  case REF_TYPE_U32: return (uint32_t)bits_at(p, i, 4);
  case REF_TYPE_U64: return (int64_t)bits_at(p, i, 8);
  case REF_TYPE_BOOL: return ((const uint8_t *)p)[i] != 0;
  default: return cut(more_load(type, p, i));
  }
}

void more_store(int type, void *p, int64_t i, double x) {
  switch (type) {
  case REF_TYPE_F32: ((float *)p)[i] = (float)x; break;
  case REF_TYPE_F64: ((double *)p)[i] = x; break;
  case REF_TYPE_BOOL: ((uint8_t *)p)[i] = x != 0; break;
  case REF_TYPE_U64:
    ((uint64_t *)p)[i] = x >= 0x1p64 ? UINT64_MAX : x >= 0x1p63 ? (uint64_t)x : (uint64_t)cut(x);
    break;
  case MORE_TYPE_F16: ((uint16_t *)p)[i] = to_half(x); break;
  case MORE_TYPE_BF16: ((uint16_t *)p)[i] = to_bfloat(x); break;
  default: more_store_int(type, p, i, cut(x)); break;
  }
}

void more_store_int(int type, void *p, int64_t i, int64_t x) {
  switch (type) {
  case REF_TYPE_I8:
  case REF_TYPE_U8: ((uint8_t *)p)[i] = (uint8_t)x; break;
  case REF_TYPE_I16:
  case REF_TYPE_U16: ((uint16_t *)p)[i] = (uint16_t)x; break;
  case REF_TYPE_I32:
  case REF_TYPE_U32: ((uint32_t *)p)[i] = (uint32_t)x; break;
  case REF_TYPE_I64:
  case REF_TYPE_U64: ((uint64_t *)p)[i] = (uint64_t)x; break;
  case REF_TYPE_BOOL: ((uint8_t *)p)[i] = x != 0; break;
  default: more_store(type, p, i, (double)x); break;
  }
}

double more_round_to(int type, double x) {
  union {
    double f;
    uint64_t i;
  } cell;
  more_store(type, &cell, 0, x);
  return more_load(type, &cell, 0);
}

double more_lowest(int type) {
  return more_type_is_real(type) ? -(double)INFINITY : (double)ref_type_least(type);
}

double more_highest(int type) {
  if (more_type_is_real(type)) return (double)INFINITY;
  return type == REF_TYPE_U64 ? (double)(uint64_t)ref_type_most(type) : (double)ref_type_most(type);
}
