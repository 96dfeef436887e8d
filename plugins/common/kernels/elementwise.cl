/* One result from up to three elements. Options: N_IN operands of types T0, T1, T2; result TO; OP the name of an expression and KIND its kind: REAL, INT, TEST_REAL, TEST_INT, LOGIC
 * (operators/operators.h), or RAW, which are those below. Expressions of a, b, c, alpha and beta come in front of this
 * text, from operators/: OP_Mish_REAL. Here are the words that they are made of. */

#define OP_COPY_RAW (a)
#define OP_CAST_RAW ((VALUE(TO))(a))
#define OP_CAST_BOOL_RAW ((a) != (VALUE(T0))0)
#define OP_CAST_TRUTH_RAW ((VALUE(TO))((a) != 0))
#define OP_CAST_WHOLE_RAW ((VALUE(TO))K_WHOLE(a))
#define OP_WHERE_RAW ((a) != 0 ? (b) : (c))

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define JOIN3_(a, b, c) a##b##_##c
#define JOIN3(a, b, c) JOIN3_(a, b, c)

/* ---- Types: what lies in memory, and what is computed with. */

#define VALUE(T) JOIN(VALUE_, T)
#define MEMORY(T) JOIN(MEMORY_, T)
#define S_LOAD(T, x) JOIN(LOAD_, T)(x)
#define S_STORE(T, x) JOIN(STORE_, T)(x)

#define VALUE_schar schar
#define VALUE_short short
#define VALUE_int int
#define VALUE_long long
#define VALUE_uchar uchar
#define VALUE_ushort ushort
#define VALUE_uint uint
#define VALUE_ulong ulong
#define VALUE_float float
#define VALUE_double double
#define VALUE_half float
#define VALUE_bfloat float
#define MEMORY_schar schar
#define MEMORY_short short
#define MEMORY_int int
#define MEMORY_long long
#define MEMORY_uchar uchar
#define MEMORY_ushort ushort
#define MEMORY_uint uint
#define MEMORY_ulong ulong
#define MEMORY_float float
#define MEMORY_double double
#define MEMORY_half ushort
#define MEMORY_bfloat ushort
#define LOAD_schar(x) (x)
#define LOAD_short(x) (x)
#define LOAD_int(x) (x)
#define LOAD_long(x) (x)
#define LOAD_uchar(x) (x)
#define LOAD_ushort(x) (x)
#define LOAD_uint(x) (x)
#define LOAD_ulong(x) (x)
#define LOAD_float(x) (x)
#define LOAD_double(x) (x)
#define LOAD_half(x) k_load_half(x)
#define LOAD_bfloat(x) K_FLOAT((uint)(x) << 16)
#define STORE_schar(x) ((schar)(x))
#define STORE_short(x) ((short)(x))
#define STORE_int(x) ((int)(x))
#define STORE_long(x) ((long)(x))
#define STORE_uchar(x) ((uchar)(x))
#define STORE_ushort(x) ((ushort)(x))
#define STORE_uint(x) ((uint)(x))
#define STORE_ulong(x) ((ulong)(x))
#define STORE_float(x) ((float)(x))
#define STORE_double(x) ((double)(x))
#define STORE_half(x) k_store_half(x)
#define STORE_bfloat(x) k_store_bfloat(x)

DEVICE float k_load_half(ushort x) {
  const uint sign = ((uint)x & 0x8000u) << 16, exponent = (uint)x >> 10 & 31u, digits = (uint)x & 0x3ffu;
  if (exponent == 31u) return K_FLOAT(sign | 0x7f800000u | digits << 13);
  if (exponent == 0u) return (sign != 0u ? -1.0f : 1.0f) * ((float)digits * 5.9604644775390625e-8f);
  return K_FLOAT(sign | (exponent + 112u) << 23 | digits << 13);
}

/* To the nearest, halves to even; by integers, so that no language's own type is needed. */
DEVICE ushort k_store_half(float x) {
  const uint bits = K_BITS(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return (ushort)(sign | 0x7e00u);
  if (size >= 0x477ff000u) return (ushort)(sign | 0x7c00u);
  if (size < 0x38800000u) return (ushort)(sign | (uint)rint(K_FLOAT(size) * 16777216.0f));
  return (ushort)(sign | (size + 0xfffu + (size >> 13 & 1u) - 0x38000000u) >> 13);
}

DEVICE ushort k_store_bfloat(float x) {
  const uint bits = K_BITS(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (ushort)(bits >> 16 | 0x40u);
  return (ushort)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* ---- Words of reals. */

#define KIND_OF_REAL 1
#define KIND_OF_TEST_REAL 1
#define KIND_OF_INT 2
#define KIND_OF_TEST_INT 2
#define KIND_OF_LOGIC 3
#define KIND_OF_RAW 4
#define KIND_OF JOIN(KIND_OF_, KIND)

#if KIND_OF == 1
typedef VALUE(T0) real;
#else
typedef float real;
#endif

#define S_NUM(x) ((real)JOIN(NUM_, T0)(x))
#define NUM_float(x) x##f
#define NUM_half(x) x##f
#define NUM_bfloat(x) x##f
#define NUM_double(x) x
#define S_ABS(x) fabs(x)
#define S_ACOS(x) acos(x)
#define S_ACOSH(x) acosh(x)
#define S_ASIN(x) asin(x)
#define S_ASINH(x) asinh(x)
#define S_ATAN(x) atan(x)
#define S_ATANH(x) atanh(x)
#define S_CEIL(x) ceil(x)
#define S_COS(x) cos(x)
#define S_COSH(x) cosh(x)
#define S_ERF(x) erf(x)
#define S_EXP(x) exp(x)
#define S_EXPM1(x) expm1(x)
#define S_FLOOR(x) floor(x)
#define S_LOG(x) log(x)
#define S_LOG1P(x) log1p(x)
#define S_RINT(x) rint(x)
#define S_SIGMOID(x) k_sigmoid(x)
#define S_SIN(x) sin(x)
#define S_SINH(x) sinh(x)
#define S_SQRT(x) sqrt(x)
#define S_TAN(x) tan(x)
#define S_TANH(x) tanh(x)
#define S_AT_LEAST(x, end) k_at_least(x, end)
#define S_AT_MOST(x, end) k_at_most(x, end)
#define S_ISINF(x) (fabs(x) == (real)K_INFINITY)
#define S_ISNAN(x) ((x) != (x))
#define S_OVER(x, end) ((x) < (end) || S_ISNAN(end) ? (end) : (x))
#define S_UNDER(x, end) ((x) > (end) || S_ISNAN(end) ? (end) : (x))

DEVICE real k_at_least(real x, real end) {
  return x < end ? end : x;
}

DEVICE real k_at_most(real x, real end) {
  return x > end ? end : x;
}

/* Of either sign without an overflow on the way. */
DEVICE real k_sigmoid(real x) {
  const real e = exp(-fabs(x));
  return x < (real)0 ? e / ((real)1 + e) : (real)1 / ((real)1 + e);
}

/* ---- Powers and remainders. */

/* A number without its fraction; those that long cannot hold, and NaN, are its least. */
#define K_WHOLE(x) \
  ((x) >= -9223372036854775808.0f && (x) < 9223372036854775808.0f ? (long)(x) : (long)(-9223372036854775807L - 1))

/* By squaring where the exponent is a whole number. */
DEVICE long k_power(long x, VALUE(VALUE(T1)) y) {
  ulong result = 1, square = (ulong)x;
  if (!((float)y >= 0.0f && (float)y <= 2147483648.0f) || (VALUE(T1))(long)y != y) {
    const float z = pow((float)x, (float)y);
    return K_WHOLE(z);
  }
  for (ulong left = (ulong)y; left != 0; left >>= 1, square *= square) {
    if ((left & 1) != 0) result *= square;
  }
  return (long)result;
}

#if KIND_OF == 2
typedef VALUE(T0) whole;
#define U JOIN(WRAP_, T0) /* in which integers wrap */
#define WRAP_schar uint
#define WRAP_short uint
#define WRAP_int uint
#define WRAP_long ulong
#define WRAP_uchar uint
#define WRAP_ushort uint
#define WRAP_uint uint
#define WRAP_ulong ulong
#define S_INT(x) ((whole)(x))
#define S_WRAP(x) ((whole)(x))
#define S_ADD(x, y) S_WRAP((U)(x) + (U)(y))
#define S_SUB(x, y) S_WRAP((U)(x) - (U)(y))
#define S_MUL(x, y) S_WRAP((U)(x) * (U)(y))
#define S_NEGATIVE(x) ((x) < S_INT(1) && (x) != S_INT(0)) /* x < 0, of which compilers warn for unsigned x */
#define S_DIV(x, y) k_div(x, y)
#define S_REM(x, y) k_rem(x, y)
#define S_MOD(x, y) k_mod(x, y)
#define S_POW(x, y) S_WRAP(k_power((long)(x), y))
#define K_WIDTH ((int)sizeof(whole) * 8)
#define S_SHIFT_LEFT(x, y) ((U)(y) >= (U)K_WIDTH ? S_INT(0) : S_WRAP((U)(x) << (int)(y)))
#define S_SHIFT_RIGHT(x, y) ((U)(y) >= (U)K_WIDTH ? (S_NEGATIVE(x) ? S_INT(-1) : S_INT(0)) : S_WRAP((x) >> (int)(y)))

DEVICE whole k_div(whole x, whole y) {
  if (y == S_INT(0)) return S_INT(0);
  return S_NEGATIVE(y) && y == S_INT(-1) ? S_SUB(S_INT(0), x) : S_WRAP(x / y);
}

DEVICE whole k_rem(whole x, whole y) {
  if (y == S_INT(0) || (S_NEGATIVE(y) && y == S_INT(-1))) return S_INT(0);
  return S_WRAP(x % y);
}

DEVICE whole k_mod(whole x, whole y) {
  const whole r = k_rem(x, y);
  return r != S_INT(0) && S_NEGATIVE(r) != S_NEGATIVE(y) ? S_WRAP(r + y) : r;
}
#else
#define S_POW(x, y) k_power_real(x, y)
#define S_REM(x, y) fmod(x, y)
#define S_MOD(x, y) k_mod(x, y)

/* fmod is exact. A remainder of 0 has no sign. */
DEVICE real k_mod(real x, real y) {
  const real r = fmod(x, y);
  return r == (real)0 ? (real)0 : (r < (real)0) != (y < (real)0) ? r + y : r;
}

/* An exponent that is an integer may be odd where the float next to it is not; from 2^53 on it counts as even, as where it
 * goes through float64. */
DEVICE real k_power_real(real x, VALUE(VALUE(T1)) y) {
  if ((VALUE(T1))0.5f != (VALUE(T1))0) return pow(x, (real)y);
  const real size = pow(fabs(x), (real)y);
  const real bound = (real)9007199254740992.0f; /* uint64 may be beyond what long has */
  const int odd = (real)y > -bound && (real)y < bound && ((long)y & 1) != 0;
  return odd && copysign((real)1, x) < (real)0 ? -size : size;
}
#endif

#ifndef K_fused /* what follows then is generated: plan_fused.c */

/* Bytes that are not 0 are true. */
#if KIND_OF == 3
#define TAKE(T, x) ((x) != 0)
#else
#define TAKE(T, x) S_LOAD(T, x)
#endif

#if N_IN == 1
#define OPERANDS GLOBAL const MEMORY(T0) *x0
#define ELEMENTS(i0, i1, i2) \
  const VALUE(T0) a = TAKE(T0, x0[i0]), b = 0, c = 0;
#elif N_IN == 2
#define OPERANDS GLOBAL const MEMORY(T0) *x0, GLOBAL const MEMORY(T1) *x1
#define ELEMENTS(i0, i1, i2) \
  const VALUE(T0) a = TAKE(T0, x0[i0]), c = 0; \
  const VALUE(T1) b = TAKE(T1, x1[i1]);
#else
#define OPERANDS GLOBAL const MEMORY(T0) *x0, GLOBAL const MEMORY(T1) *x1, GLOBAL const MEMORY(T2) *x2
#define ELEMENTS(i0, i1, i2) \
  const VALUE(T0) a = TAKE(T0, x0[i0]); \
  const VALUE(T1) b = TAKE(T1, x1[i1]); \
  const VALUE(T2) c = TAKE(T2, x2[i2]);
#endif

/* Element o of the result, from elements of the operands. */
#define COMPUTE(o, i0, i1, i2) \
  const real alpha = (real)p.alpha, beta = (real)p.beta; \
  ELEMENTS(i0, i1, i2) \
  (void)alpha, (void)beta, (void)b, (void)c; \
  out[o] = S_STORE(TO, JOIN3(OP_, OP, KIND));

#ifdef K_same
/* All operands lie as the result does: apart from flat, because neighbours are then loaded together. */
KERNEL void same(k_flat p, OPERANDS, GLOBAL MEMORY(TO) *out) {
  const IDX i = K_GLOBAL_ID;
  if (i >= (IDX)p.count) return;
  COMPUTE(i, i, i, i)
}
#endif

#ifdef K_flat
KERNEL void flat(k_flat p, OPERANDS, GLOBAL MEMORY(TO) *out) {
  const IDX i = K_GLOBAL_ID;
  if (i >= (IDX)p.count) return;
  COMPUTE(i, i * p.step[0], i * p.step[1], i * p.step[2])
}
#endif

#ifdef K_walk
KERNEL void walk(k_walk p, OPERANDS, GLOBAL MEMORY(TO) *out) {
  IDX i = K_GLOBAL_ID, i0 = (IDX)p.base[0], i1 = (IDX)p.base[1], i2 = (IDX)p.base[2], o = (IDX)p.out_base;
  (void)i1, (void)i2;
  if (i >= (IDX)p.count) return;
  for (int d = (int)p.dims - 1; d >= 0; d--) {
    const IDX dim = (IDX)p.dim[d], at = i % dim;
    i /= dim;
    o += at * (IDX)p.out_step[d];
    i0 += at * (IDX)p.step[0][d];
    i1 += at * (IDX)p.step[1][d];
    i2 += at * (IDX)p.step[2][d];
  }
  COMPUTE(o, i0, i1, i2)
}
#endif

#endif
