/* Elements as numbers: float16 and bfloat16 by their bits, the others by their C types. */
#include "number.h"

#include <math.h>
#include <string.h>

#include "plugins/common/float16.h"

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
  const int narrow = narrow_of(dtype);
  return narrow != 0 ? narrow : ref_type_of(dtype);
}

int more_type_of_onnx(int64_t number) {
  const int narrow = narrow_of_onnx(number);
  if (narrow != 0) return narrow;
  return number == 10 ? MORE_TYPE_F16 : number == 16 ? MORE_TYPE_BF16 : ref_type_of_onnx(number);
}

heddle_dtype more_dtype(int type) {
  if (type == MORE_TYPE_F16) return (heddle_dtype){HEDDLE_DTYPE_FLOAT, 16, 1};
  if (type == MORE_TYPE_BF16) return (heddle_dtype){HEDDLE_DTYPE_BFLOAT, 16, 1};
  return narrow_is(type) ? narrow_dtype(type) : types[type];
}

uint8_t more_type_bytes(int type) {
  return narrow_is(type) ? 1 : (uint8_t)(more_dtype(type).bits / 8);
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
  case MORE_TYPE_F16: return (double)float16_to_float((uint16_t)bits_at(p, i, 2));
  case MORE_TYPE_BF16: return (double)bfloat16_to_float((uint16_t)bits_at(p, i, 2));
  default: break;
  }
  return narrow_is(type) ? narrow_load(type, ((const uint8_t *)p)[i]) : (double)more_load_int(type, p, i);
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
  case MORE_TYPE_F16: ((uint16_t *)p)[i] = float16_from_double(x); break;
  case MORE_TYPE_BF16: ((uint16_t *)p)[i] = bfloat16_from_float((float)x); break;
  default:
    if (narrow_is(type)) ((uint8_t *)p)[i] = narrow_store(type, x, true, MORE_ROUND_UP);
    else more_store_int(type, p, i, cut(x));
    break;
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
  if (type >= MORE_TYPE_NARROW_WHOLE) return (double)narrow_least(type);
  return more_type_is_real(type) ? -(double)INFINITY : (double)ref_type_least(type);
}

double more_highest(int type) {
  if (type >= MORE_TYPE_NARROW_WHOLE) return (double)narrow_most(type);
  if (more_type_is_real(type)) return (double)INFINITY;
  return type == REF_TYPE_U64 ? (double)(uint64_t)ref_type_most(type) : (double)ref_type_most(type);
}
