/* The element types that kernels know by number, and conversion between them. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_TYPES_H
#define HEDDLE_PLUGINS_COMMON_REF_TYPES_H

#include "heddle/plugin.h"

enum {
  REF_TYPE_F32,
  REF_TYPE_F64,
  REF_TYPE_I8,
  REF_TYPE_I16,
  REF_TYPE_I32,
  REF_TYPE_I64,
  REF_TYPE_U8,
  REF_TYPE_U16,
  REF_TYPE_U32,
  REF_TYPE_U64,
  REF_TYPE_BOOL,
  REF_TYPE_NONE /* any other */
};

int ref_type_of(heddle_dtype dtype);
uint32_t ref_type_bytes(int type);

/* The type of an ONNX TensorProto type number, REF_TYPE_NONE where there is none here. */
int ref_type_of_onnx(int64_t number);

/* Whether the type's values are exact in int64_t, so that arithmetic on it may be done there. */
static inline int ref_type_is_whole(int type) {
  return (type >= REF_TYPE_I8 && type <= REF_TYPE_U32) || type == REF_TYPE_BOOL;
}

/* The least and the greatest number of an integer type or bool: uint64's greatest comes as its bits, -1. Every limit of an
 * integer type that a kernel starts from or cuts at is taken from here. */
int64_t ref_type_least(int type);
int64_t ref_type_most(int type);

/* One more than the greatest, which double has exactly or rounds up to. */
static inline double ref_type_end(int type) {
  return type == REF_TYPE_U64 ? 0x1p64 : (double)ref_type_most(type) + 1;
}

/* x without its fraction; what does not fit, and NaN, is int64_t's least (as x86-64 converts). */
static inline int64_t ref_whole_of(double x) {
  return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

/* n elements; the two ranges do not overlap. Numbers that do not fit an integer wrap, those that do not fit int64_t
 * are its least; what is not 0 is true. */
void ref_cast(int from, const void *in, int to, void *out, int64_t n);

/* n elements of size bytes, stride elements apart, to out side by side. stride may be 0 or negative. */
void ref_take(const void *in, int64_t stride, uint32_t size, int64_t n, void *out);

/* Loops whose operands may be the same bytes as the result, but not shifted against it. */
#if defined(__GNUC__) && !defined(__clang__) /* clang looks at the addresses as it runs */
#define REF_IVDEP _Pragma("GCC ivdep")
#else
#define REF_IVDEP
#endif

/* Before a short loop over values that are to stay in registers: there is to be no loop. */
#ifdef __clang__
#define REF_UNROLLED _Pragma("clang loop unroll(full)")
#else
#define REF_UNROLLED _Pragma("GCC unroll 16")
#endif

#endif
