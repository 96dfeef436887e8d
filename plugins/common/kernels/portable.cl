/* The words in which a kernel text is OpenCL C, CUDA C, HIP and GLSL at once. Such a text begins with an include of this
 * file: the build puts it in its place for the first three, where it stands behind the prelude and params.h; glslc reads
 * it for Vulkan. plugins/vulkan/portable.c launches what is made of it.
 *
 *   #ifdef K_reverse
 *   KERNEL_1_1(reverse, k_select, T0, x, T0, y) {
 *     K_EACH(i, p.count);
 *     y[i] = x[AT(p.count) - 1 - i];
 *   }
 *   #endif
 *
 * is a kernel of one operand x and one result y. A program has one kernel, which option K_NAME picks, and the options T0,
 * T1, ... are names of types: w1 w2 w4 w8, words that are only moved; f32 f64 f16 bf16; i8 to i64, u8 to u64; b8, bool.
 * Operands are arrays of K_S(T0), what a type is in memory; GET(T0, x[i]) makes K_C(T0) of it, in which is computed (float
 * for f16 and bf16, 32 bits for smaller integers), and PUT(T0, v) goes back, integers wrapping. T0_REAL is defined where T0
 * is a floating-point type. p has the parameters, a struct of
 * portable_params.h. IDX counts elements; AT(p.count) is a parameter as IDX. CAST(int, x) is a cast.
 *
 * GLSL has no pointers, casts of C, recursion or goto, and reserves input, output, sample, filter, active and the like as
 * names. Helper functions have parameters by value, with DEVICE before the type. A text whose struct of parameters has more
 * than 32 words, counting every member as one, defines K_STORED before the include. V0 is the plan's variant, a number that is
 * constant in a program: the trips of a loop, say, which UNROLL then lays out.
 *
 * EXP, LOG, POWER (of no negative number), TANH, EXPM1 and LOG1P need K_MATH to be defined before the include; of float64 where T0 or
 * T1 is f64. SIN and COS need K_ANGLES too, and are of float64 alone where T0 or T1 is f64. RINT, ABS, sqrt and floor need
 * nothing. IS_NAN(T0, v) is of floating-point types.
 *
 * Memory that a group shares is declared twice: K_LOCAL_BEFORE stands before the kernel, K_LOCAL_INSIDE at its beginning. Items of a
 * group that use it all come to each BARRIER.
 *
 * A line "//! NAME: f32 f16; w1 w2" says which variants of a kernel the plugin vulkan has: of T0, and of T1. */
#define K_PASTE_(a, b) a##b
#define K_PASTE(a, b) K_PASTE_(a, b)

#ifdef VULKAN
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#include "../../vulkan/shaders/common.glsl"
#define K_I64 int
#define K_I32 int
#define K_DIMS 8
#define K_SPATIAL 3
#define K_STRUCT(name, members) struct name { members };
#include "portable_params.h"

#ifdef K_MATH
#include "../../vulkan/shaders/math.glsl"
#ifdef HAS_F64
#include "../../vulkan/shaders/math64.glsl"
#endif
#ifdef K_ANGLES
#ifdef HAS_F64
#include "../../vulkan/shaders/angles64.glsl"
#else
#include "../../vulkan/shaders/angles.glsl"
#endif
#define SIN(x) k_sin(x)
#define COS(x) k_cos(x)
#endif
#define EXP(x) k_exp(x)
#define LOG(x) k_log(x)
#define POWER(x, y) k_pow(x, y)
#define TANH(x) k_tanh(x)
#define EXPM1(x) k_expm1(x)
#define LOG1P(x) k_log1p(x)
#endif
#ifndef K_INFINITY
#define K_INFINITY uintBitsToFloat(0x7f800000u)
#define K_NAN uintBitsToFloat(0x7fc00000u)
#endif
#define RINT(x) roundEven(x)
#define ABS(x) abs(x)

#define IDX int
#define DEVICE
#define CAST(type, x) type(x)
#define K_FLOAT(bits) uintBitsToFloat(bits)
#define K_BITS(x) floatBitsToUint(x)
#define K_PRECISE precise
#define long int64_t
#define ulong uint64_t

layout(constant_id = 0) const int V0 = 1;

#define UNROLL [[unroll]]
#define K_GROUP GROUP
#define K_ITEM int(gl_LocalInvocationID.x)
#define K_GROUP_ID int(k_group())
#define BARRIER barrier()
#define K_LOCAL_BEFORE(type, name, count) shared type name[count];
#define K_LOCAL_INSIDE(type, name, count)
#ifdef K_STORED
#define K_PARAMS(params) layout(set = 0, binding = 0, std430) readonly buffer params_stored { params p; };
#else
#define K_PARAMS(params) layout(push_constant, std430) uniform params_pushed { params p; };
#endif
#define K_OPERAND(n, type, name) layout(set = 0, binding = n, std430) readonly buffer operand_##name { K_S(type) name[]; };
#define K_RESULT(n, type, name) layout(set = 0, binding = n, std430) buffer operand_##name { K_S(type) name[]; };
#define KERNEL_1_1(name, params, t0, x0, ty, y) \
  K_PARAMS(params) K_OPERAND(1, t0, x0) K_RESULT(2, ty, y) void main()
#define KERNEL_1_2(name, params, t0, x0, ty, y, tz, z) \
  K_PARAMS(params) K_OPERAND(1, t0, x0) K_RESULT(2, ty, y) K_RESULT(3, tz, z) void main()
#define KERNEL_2_1(name, params, t0, x0, t1, x1, ty, y) \
  K_PARAMS(params) K_OPERAND(1, t0, x0) K_OPERAND(2, t1, x1) K_RESULT(3, ty, y) void main()
#define KERNEL_3_1(name, params, t0, x0, t1, x1, t2, x2, ty, y) \
  K_PARAMS(params) K_OPERAND(1, t0, x0) K_OPERAND(2, t1, x1) K_OPERAND(3, t2, x2) K_RESULT(4, ty, y) void main()
#define KERNEL_4_1(name, params, t0, x0, t1, x1, t2, x2, t3, x3, ty, y) \
  K_PARAMS(params) K_OPERAND(1, t0, x0) K_OPERAND(2, t1, x1) K_OPERAND(3, t2, x2) K_OPERAND(4, t3, x3) \
  K_RESULT(5, ty, y) void main()
#define KERNEL_5_1(name, params, t0, x0, t1, x1, t2, x2, t3, x3, t4, x4, ty, y) \
  K_PARAMS(params) K_OPERAND(1, t0, x0) K_OPERAND(2, t1, x1) K_OPERAND(3, t2, x2) K_OPERAND(4, t3, x3) K_OPERAND(5, t4, x4) \
  K_RESULT(6, ty, y) void main()
#define KERNEL_6_1(name, params, t0, x0, t1, x1, t2, x2, t3, x3, t4, x4, t5, x5, ty, y) \
  K_PARAMS(params) K_OPERAND(1, t0, x0) K_OPERAND(2, t1, x1) K_OPERAND(3, t2, x2) K_OPERAND(4, t3, x3) K_OPERAND(5, t4, x4) K_OPERAND(6, t5, x5) \
  K_RESULT(7, ty, y) void main()
#define KERNEL_7_1(name, params, t0, x0, t1, x1, t2, x2, t3, x3, t4, x4, t5, x5, t6, x6, ty, y) \
  K_PARAMS(params) K_OPERAND(1, t0, x0) K_OPERAND(2, t1, x1) K_OPERAND(3, t2, x2) K_OPERAND(4, t3, x3) K_OPERAND(5, t4, x4) K_OPERAND(6, t5, x5) K_OPERAND(7, t6, x6) \
  K_RESULT(8, ty, y) void main()
#define KERNEL_8_1(name, params, t0, x0, t1, x1, t2, x2, t3, x3, t4, x4, t5, x5, t6, x6, t7, x7, ty, y) \
  K_PARAMS(params) K_OPERAND(1, t0, x0) K_OPERAND(2, t1, x1) K_OPERAND(3, t2, x2) K_OPERAND(4, t3, x3) K_OPERAND(5, t4, x4) K_OPERAND(6, t5, x5) K_OPERAND(7, t6, x6) K_OPERAND(8, t7, x7) \
  K_RESULT(9, ty, y) void main()
#define KERNEL_9_1(name, params, t0, x0, t1, x1, t2, x2, t3, x3, t4, x4, t5, x5, t6, x6, t7, x7, t8, x8, ty, y) \
  K_PARAMS(params) K_OPERAND(1, t0, x0) K_OPERAND(2, t1, x1) K_OPERAND(3, t2, x2) K_OPERAND(4, t3, x3) K_OPERAND(5, t4, x4) K_OPERAND(6, t5, x5) K_OPERAND(7, t6, x6) K_OPERAND(8, t7, x7) K_OPERAND(9, t8, x8) \
  K_RESULT(10, ty, y) void main()
#define KERNEL_10_1(name, params, t0, x0, t1, x1, t2, x2, t3, x3, t4, x4, t5, x5, t6, x6, t7, x7, t8, x8, t9, x9, ty, y) \
  K_PARAMS(params) K_OPERAND(1, t0, x0) K_OPERAND(2, t1, x1) K_OPERAND(3, t2, x2) K_OPERAND(4, t3, x3) K_OPERAND(5, t4, x4) K_OPERAND(6, t5, x5) K_OPERAND(7, t6, x6) K_OPERAND(8, t7, x7) K_OPERAND(9, t8, x8) K_OPERAND(10, t9, x9) \
  K_RESULT(11, ty, y) void main()
#define KERNEL_7_2(name, params, t0, x0, t1, x1, t2, x2, t3, x3, t4, x4, t5, x5, t6, x6, ty, y, tz, z) \
  K_PARAMS(params) K_OPERAND(1, t0, x0) K_OPERAND(2, t1, x1) K_OPERAND(3, t2, x2) K_OPERAND(4, t3, x3) K_OPERAND(5, t4, x4) K_OPERAND(6, t5, x5) K_OPERAND(7, t6, x6) \
  K_RESULT(8, ty, y) K_RESULT(9, tz, z) void main()
#define K_EACH(i, count) \
  const int i = int(k_item()); \
  if (uint(i) >= uint(count)) return

#define K_S_w1 uint8_t
#define K_S_w2 uint16_t
#define K_S_w4 uint
#define K_S_w8 uvec2
#define K_S_f16 uint16_t
#define K_S_bf16 uint16_t
#define K_S_i8 int8_t
#define K_S_i16 int16_t
#define K_S_u8 uint8_t
#define K_S_u16 uint16_t
#define K_S_b8 uint8_t

#else

#define CAST(type, x) ((type)(x))
#if defined(__OPENCL_VERSION__) || defined(__OPENCL_C_VERSION__)
#define K_BITS(x) as_uint(x)
#else
#define K_BITS(x) __float_as_uint(x)
#endif
#define K_PRECISE
#define K_LOCAL_BEFORE(type, name, count)
#define K_LOCAL_INSIDE(type, name, count) LOCAL_ARRAY(type, name, count)
#define SIN(x) sin(x)
#define COS(x) cos(x)
#define EXP(x) exp(x)
#define LOG(x) log(x)
#define POWER(x, y) pow(x, y)
#define TANH(x) tanh(x)
#define EXPM1(x) expm1(x)
#define LOG1P(x) log1p(x)
#define RINT(x) rint(x)
#define ABS(x) fabs(x)
#define KERNEL_1_1(name, params, t0, x0, ty, y) KERNEL void name(params p, GLOBAL const K_S(t0) *x0, GLOBAL K_S(ty) *y)
#define KERNEL_1_2(name, params, t0, x0, ty, y, tz, z) \
  KERNEL void name(params p, GLOBAL const K_S(t0) *x0, GLOBAL K_S(ty) *y, GLOBAL K_S(tz) *z)
#define KERNEL_2_1(name, params, t0, x0, t1, x1, ty, y) \
  KERNEL void name(params p, GLOBAL const K_S(t0) *x0, GLOBAL const K_S(t1) *x1, GLOBAL K_S(ty) *y)
#define KERNEL_3_1(name, params, t0, x0, t1, x1, t2, x2, ty, y) \
  KERNEL void name(params p, GLOBAL const K_S(t0) *x0, GLOBAL const K_S(t1) *x1, GLOBAL const K_S(t2) *x2, \
                   GLOBAL K_S(ty) *y)
#define KERNEL_4_1(name, params, t0, x0, t1, x1, t2, x2, t3, x3, ty, y) \
  KERNEL void name(params p, GLOBAL const K_S(t0) *x0, GLOBAL const K_S(t1) *x1, GLOBAL const K_S(t2) *x2, \
                   GLOBAL const K_S(t3) *x3, GLOBAL K_S(ty) *y)
#define KERNEL_5_1(name, params, t0, x0, t1, x1, t2, x2, t3, x3, t4, x4, ty, y) \
  KERNEL void name(params p, GLOBAL const K_S(t0) *x0, GLOBAL const K_S(t1) *x1, GLOBAL const K_S(t2) *x2, GLOBAL const K_S(t3) *x3, GLOBAL const K_S(t4) *x4, \
                   GLOBAL K_S(ty) *y)
#define KERNEL_6_1(name, params, t0, x0, t1, x1, t2, x2, t3, x3, t4, x4, t5, x5, ty, y) \
  KERNEL void name(params p, GLOBAL const K_S(t0) *x0, GLOBAL const K_S(t1) *x1, GLOBAL const K_S(t2) *x2, GLOBAL const K_S(t3) *x3, GLOBAL const K_S(t4) *x4, GLOBAL const K_S(t5) *x5, \
                   GLOBAL K_S(ty) *y)
#define KERNEL_7_1(name, params, t0, x0, t1, x1, t2, x2, t3, x3, t4, x4, t5, x5, t6, x6, ty, y) \
  KERNEL void name(params p, GLOBAL const K_S(t0) *x0, GLOBAL const K_S(t1) *x1, GLOBAL const K_S(t2) *x2, GLOBAL const K_S(t3) *x3, GLOBAL const K_S(t4) *x4, GLOBAL const K_S(t5) *x5, GLOBAL const K_S(t6) *x6, \
                   GLOBAL K_S(ty) *y)
#define KERNEL_8_1(name, params, t0, x0, t1, x1, t2, x2, t3, x3, t4, x4, t5, x5, t6, x6, t7, x7, ty, y) \
  KERNEL void name(params p, GLOBAL const K_S(t0) *x0, GLOBAL const K_S(t1) *x1, GLOBAL const K_S(t2) *x2, GLOBAL const K_S(t3) *x3, GLOBAL const K_S(t4) *x4, GLOBAL const K_S(t5) *x5, GLOBAL const K_S(t6) *x6, GLOBAL const K_S(t7) *x7, \
                   GLOBAL K_S(ty) *y)
#define KERNEL_9_1(name, params, t0, x0, t1, x1, t2, x2, t3, x3, t4, x4, t5, x5, t6, x6, t7, x7, t8, x8, ty, y) \
  KERNEL void name(params p, GLOBAL const K_S(t0) *x0, GLOBAL const K_S(t1) *x1, GLOBAL const K_S(t2) *x2, GLOBAL const K_S(t3) *x3, GLOBAL const K_S(t4) *x4, GLOBAL const K_S(t5) *x5, GLOBAL const K_S(t6) *x6, GLOBAL const K_S(t7) *x7, GLOBAL const K_S(t8) *x8, \
                   GLOBAL K_S(ty) *y)
#define KERNEL_10_1(name, params, t0, x0, t1, x1, t2, x2, t3, x3, t4, x4, t5, x5, t6, x6, t7, x7, t8, x8, t9, x9, ty, y) \
  KERNEL void name(params p, GLOBAL const K_S(t0) *x0, GLOBAL const K_S(t1) *x1, GLOBAL const K_S(t2) *x2, GLOBAL const K_S(t3) *x3, GLOBAL const K_S(t4) *x4, GLOBAL const K_S(t5) *x5, GLOBAL const K_S(t6) *x6, GLOBAL const K_S(t7) *x7, GLOBAL const K_S(t8) *x8, GLOBAL const K_S(t9) *x9, \
                   GLOBAL K_S(ty) *y)
#define KERNEL_7_2(name, params, t0, x0, t1, x1, t2, x2, t3, x3, t4, x4, t5, x5, t6, x6, ty, y, tz, z) \
  KERNEL void name(params p, GLOBAL const K_S(t0) *x0, GLOBAL const K_S(t1) *x1, GLOBAL const K_S(t2) *x2, GLOBAL const K_S(t3) *x3, GLOBAL const K_S(t4) *x4, GLOBAL const K_S(t5) *x5, GLOBAL const K_S(t6) *x6, \
                   GLOBAL K_S(ty) *y, GLOBAL K_S(tz) *z)
#define K_EACH(i, count) \
  const IDX i = K_GLOBAL_ID; \
  if (i >= CAST(IDX, count)) return

#define K_S_w1 uchar
#define K_S_w2 ushort
#define K_S_w4 uint
#define K_S_w8 ulong
#define K_S_f16 ushort
#define K_S_bf16 ushort
#define K_S_i8 schar
#define K_S_i16 short
#define K_S_u8 uchar
#define K_S_u16 ushort
#define K_S_b8 uchar
#endif

#define AT(x) CAST(IDX, x)
#define K_S_f32 float
#define K_S_f64 double
#define K_S_i32 int
#define K_S_i64 long
#define K_S_u32 uint
#define K_S_u64 ulong
#define K_S(t) K_PASTE(K_S_, t)

#define K_C_f32 float
#define K_C_f64 double
#define K_C_f16 float
#define K_C_bf16 float
#define K_C_i8 int
#define K_C_i16 int
#define K_C_i32 int
#define K_C_i64 long
#define K_C_u8 uint
#define K_C_u16 uint
#define K_C_u32 uint
#define K_C_u64 ulong
#define K_C_b8 uint
#define K_C(t) K_PASTE(K_C_, t)

#define GET_f32(x) (x)
#define GET_f64(x) (x)
#define GET_f16(x) k_half_get(CAST(uint, x))
#define GET_bf16(x) K_FLOAT(CAST(uint, x) << 16)
#define GET_i8(x) CAST(int, x)
#define GET_i16(x) CAST(int, x)
#define GET_i32(x) (x)
#define GET_i64(x) (x)
#define GET_u8(x) CAST(uint, x)
#define GET_u16(x) CAST(uint, x)
#define GET_u32(x) (x)
#define GET_u64(x) (x)
#define GET_b8(x) (CAST(uint, x) != 0u ? 1u : 0u)
#define GET(t, x) K_PASTE(GET_, t)(x)

#define PUT_f32(x) (x)
#define PUT_f64(x) (x)
#define PUT_f16(x) CAST(K_S_f16, k_half_put(x))
#define PUT_bf16(x) CAST(K_S_bf16, k_bfloat_put(x))
#define PUT_i8(x) CAST(K_S_i8, x)
#define PUT_i16(x) CAST(K_S_i16, x)
#define PUT_i32(x) (x)
#define PUT_i64(x) (x)
#define PUT_u8(x) CAST(K_S_u8, x)
#define PUT_u16(x) CAST(K_S_u16, x)
#define PUT_u32(x) (x)
#define PUT_u64(x) (x)
#define PUT_b8(x) CAST(K_S_b8, (x) != 0u ? 1u : 0u)
#define PUT(t, x) K_PASTE(PUT_, t)(x)

#define NAN_f32(x) k_nan(x)
#define NAN_f64(x) ((x) != (x))
#define NAN_f16(x) k_nan(x)
#define NAN_bf16(x) k_nan(x)
#define IS_NAN(t, x) K_PASTE(NAN_, t)(x)

/* What is greater than no number of a type; of integers and floating-point numbers. */
#define LEAST_f32 (-K_INFINITY)
#define LEAST_f64 CAST(double, -K_INFINITY)
#define LEAST_f16 (-K_INFINITY)
#define LEAST_bf16 (-K_INFINITY)
#define LEAST_i8 (-128)
#define LEAST_i16 (-32768)
#define LEAST_i32 (-2147483647 - 1)
#define LEAST_i64 CAST(long, CAST(ulong, 1) << 63)
#define LEAST_u8 0u
#define LEAST_u16 0u
#define LEAST_u32 0u
#define LEAST_u64 CAST(ulong, 0)
#define LEAST(t) K_PASTE(LEAST_, t)

/* A sum of K_C(t) that carries what rounding took from it, as k_total does: K_SUM declares it, K_SUM_ADD adds to it. */
#define K_SUM(t, sum) \
  K_PRECISE K_C(t) sum = CAST(K_C(t), 0); \
  K_PRECISE K_C(t) sum##_rest = CAST(K_C(t), 0)
#define K_SUM_ADD(t, sum, x) \
  do { \
    K_PRECISE K_C(t) k_more = (x) - sum##_rest; \
    K_PRECISE K_C(t) k_all = sum + k_more; \
    K_PRECISE K_C(t) k_left = (k_all - sum) - k_more; \
    sum##_rest = k_left - k_left == CAST(K_C(t), 0) ? k_left : CAST(K_C(t), 0); \
    sum = k_all; \
  } while (false)

/* Integers and numbers of a table g (k_general), and dimensions of operand and result k; -1: how many, -2: elements. */
#define G(k) AT(g[k])
#define G_NUMBER(t, k) \
  (CAST(K_C(t), K_FLOAT(CAST(uint, g[K_G_NUMBERS + 2 * (k)]))) + CAST(K_C(t), K_FLOAT(CAST(uint, g[K_G_NUMBERS + 2 * (k) + 1]))))
#define G_IN(k, d) AT(g[K_G_IN + K_G_VALUE * (k) + 2 + (d)])
#define G_OUT(k, d) AT(g[K_G_OUT + K_G_VALUE * (k) + 2 + (d)])
#define HAS(k) ((CAST(int, p.has) >> (k) & 1) != 0)
#define WANTS(k) HAS(16 + (k))

/* What sums of K_C(t) are kept as between kernels. */
#define K_W_f32 f32
#define K_W_f64 f64
#define K_W_f16 f32
#define K_W_bf16 f32
#define K_W(t) K_PASTE(K_W_, t)
#define ROUND(t, x) GET(t, PUT(t, x))

/* A double cut towards zero to an integer, K_C(t), as more_store (plugins/common/more/number.h) does it. K_CUT_FUNCTION stands
 * before the kernel. */
#define K_CUT(t, x) CAST(K_C(t), k_cut(x, CAST(K_C(t), -1) > CAST(K_C(t), 0xffffffffu)))
#define K_CUT_FUNCTION \
  DEVICE ulong k_cut(double x, bool is_u64) { \
    const ulong sign = CAST(ulong, 1) << 63; \
    if (is_u64 && x >= 9223372036854775808.0f) return x < 18446744073709551616.0f ? CAST(ulong, x) : sign - 1u + sign; \
    if (x >= 9223372036854775808.0f) return sign - 1u; \
    return x > -9223372036854775808.0f ? CAST(ulong, CAST(long, x)) : sign; \
  }
#define NUM(x) CAST(K_C(T0), x)

/* Element i of dimensions [first, last) of p.size, of which p.step has the steps: its offset, added to at. */
#define K_PLACE(at, i, first, last) \
  do { \
    IDX k_left = i; \
    for (int k_d = CAST(int, last) - 1; k_d >= CAST(int, first); k_d--) { \
      at += k_left % AT(p.size[k_d]) * AT(p.step[k_d]); \
      k_left /= AT(p.size[k_d]); \
    } \
  } while (false)

/* float16 by its bits, as no language's own type is needed so; to nearest, halves to even. */
DEVICE float k_half_get(uint h) {
  const uint sign = (h & 0x8000u) << 16, size = h & 0x7fffu;
  if (size >= 0x7c00u) return K_FLOAT(sign | 0x7f800000u | (size & 0x3ffu) << 13);
  if (size < 0x400u) { /* a multiple of 2^-24 */
    const float x = CAST(float, size) * 5.9604644775390625e-8f;
    return sign != 0u ? -x : x;
  }
  return K_FLOAT(sign | ((size << 13) + 0x38000000u));
}

DEVICE uint k_half_put(float x) {
  const uint bits = K_BITS(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return sign | 0x7e00u;
  if (size >= 0x477ff000u) return sign | 0x7c00u; /* 65520 */
  if (size < 0x38800000u) { /* below 2^-14: in units of 2^-24 */
    const uint up = size >> 23;
    if (up < 102u) return sign;
    const uint digits = (size & 0x7fffffu) | 0x800000u, down = 126u - up;
    const uint whole = digits >> down, rest = digits & ((1u << down) - 1u), middle = 1u << (down - 1u);
    return sign | (whole + (rest > middle || (rest == middle && (whole & 1u) != 0u) ? 1u : 0u));
  }
  return sign | ((size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13);
}

DEVICE uint k_bfloat_put(float x) {
  const uint bits = K_BITS(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0u;
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

/* Not x != x, which a compiler may take for false. */
DEVICE bool k_nan(float x) {
  return (K_BITS(x) & 0x7fffffffu) > 0x7f800000u;
}
