// The type of a variant's elements, by TYPE: S in memory, C in which is computed, U its unsigned kin, in which integers
// wrap, and how one is made of the other. Types of 8 and 16 bits are computed with in 32, which needs nothing of a device
// but that it stores them; float16 and bfloat16 in float32. REAL is defined where C is a type of real numbers. With TRUTH
// results R are bool's bytes.
#define TYPE_F32 0
#define TYPE_I8 1
#define TYPE_I16 2
#define TYPE_I32 3
#define TYPE_I64 4
#define TYPE_U8 5
#define TYPE_U16 6
#define TYPE_U32 7
#define TYPE_U64 8
#define TYPE_F64 9
#define TYPE_F16 10
#define TYPE_BF16 11

#if TYPE == TYPE_F16 || TYPE == TYPE_BF16
#define IS_HALF
#include "halves.glsl"
#endif
#if TYPE == TYPE_I8 || TYPE == TYPE_U8 || defined(TRUTH)
#extension GL_EXT_shader_8bit_storage : require
#endif
#if TYPE == TYPE_I16 || TYPE == TYPE_U16 || defined(IS_HALF)
#extension GL_EXT_shader_16bit_storage : require
#endif
#if TYPE == TYPE_I64 || TYPE == TYPE_U64
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif

#if TYPE == TYPE_F32 || TYPE == TYPE_F64 || defined(IS_HALF)
#define REAL
#endif

#if TYPE == TYPE_F32
#define S float
#define C float
#elif TYPE == TYPE_F64
#define S double
#define C double
#elif defined(IS_HALF)
#define S uint16_t
#define C float
#if TYPE == TYPE_F16
#define LOAD(x) k_of_half(uint(x))
#define STORE(x) S(k_to_half(x))
#else
#define LOAD(x) k_of_bfloat16(uint(x))
#define STORE(x) S(k_to_bfloat16(x))
#endif
#elif TYPE == TYPE_I64
#define S int64_t
#define C int64_t
#define U uint64_t
#elif TYPE == TYPE_U64
#define S uint64_t
#define C uint64_t
#define U uint64_t
#elif TYPE == TYPE_U32
#define S uint
#define C uint
#define U uint
#elif TYPE == TYPE_I32
#define S int
#define C int
#define U uint
#else
#define C int
#define U uint
#if TYPE == TYPE_I8
#define S int8_t
#elif TYPE == TYPE_I16
#define S int16_t
#elif TYPE == TYPE_U8
#define S uint8_t
#elif TYPE == TYPE_U16
#define S uint16_t
#endif
#if TYPE == TYPE_U8 || TYPE == TYPE_U16
#define LOAD(x) int(uint(x))
#define STORE(x) S(uint(x))
#else
#define LOAD(x) int(x)
#define STORE(x) S(x)
#endif
#endif
#ifdef REAL
#define U C
#endif
#ifndef LOAD
#define LOAD(x) x
#define STORE(x) x
#endif

#ifdef TRUTH
#define R uint8_t
#else
#define R S
#endif
