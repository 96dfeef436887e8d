/* One result from up to three elements. Options: N_IN operands of types T0, T1, T2; result TO; U is the type in which
 * integers wrap (TO's unsigned type, or TO itself); OP the name of an expression below. a, b, c are the operands and
 * alpha, beta the operator's attributes. A new operator is one line here and one in plan_elementwise.c. */

#define OP_COPY(a, b, c) (a)
#define OP_CAST(a, b, c) ((TO)(a))
#define OP_CAST_BOOL(a, b, c) ((a) != (T0)0)
#define OP_CAST_TRUTH(a, b, c) ((TO)((a) != 0))
#define OP_CAST_WHOLE(a, b, c) ((TO)K_WHOLE(a))

#define OP_ADD(a, b, c) ((TO)((U)(a) + (U)(b)))
#define OP_SUB(a, b, c) ((TO)((U)(a) - (U)(b)))
#define OP_MUL(a, b, c) ((TO)((U)(a) * (U)(b)))
#define OP_DIV(a, b, c) ((a) / (b))
/* Integers: no trap on division by zero, and the least number by -1 wraps. */
#define OP_IDIV(a, b, c) ((b) == 0 ? 0 : (b) == -1 ? (TO)((U)0 - (U)(a)) : (a) / (b))
#define OP_UDIV(a, b, c) ((b) == 0 ? 0 : (a) / (b))
#define OP_IPOW(a, b, c) ((TO)k_power((long)(a), b))
#define OP_POW(a, b, c) k_power_real(a, b)
#define OP_MIN(a, b, c) ((a) < (b) || (a) != (a) ? (a) : (b))
#define OP_MAX(a, b, c) ((a) > (b) || (a) != (a) ? (a) : (b))
#define OP_EQUAL(a, b, c) ((a) == (b))
#define OP_SAME_TRUTH(a, b, c) (((a) != 0) == ((b) != 0))
#define OP_LESS(a, b, c) ((a) < (b))
#define OP_LESS_OR_EQUAL(a, b, c) ((a) <= (b))
#define OP_GREATER(a, b, c) ((a) > (b))
#define OP_GREATER_OR_EQUAL(a, b, c) ((a) >= (b))
#define OP_AND(a, b, c) ((a) != 0 && (b) != 0)
#define OP_OR(a, b, c) ((a) != 0 || (b) != 0)
#define OP_XOR(a, b, c) (((a) != 0) != ((b) != 0))
#define OP_NOT(a, b, c) ((a) == 0)
#define OP_WHERE(a, b, c) ((a) != 0 ? (b) : (c))

#define OP_RELU(a, b, c) ((a) < (T0)0 ? (T0)0 : (a))
#define OP_LEAKY_RELU(a, b, c) ((a) < 0.0f ? alpha * (a) : (a))
#define OP_PRELU(a, b, c) ((a) < (T0)0 ? (TO)((U)(b) * (U)(a)) : (a))
#define OP_ELU(a, b, c) ((a) < 0.0f ? alpha * expm1(a) : (a))
#define OP_HARD_SIGMOID(a, b, c) k_clip(alpha * (a) + beta, 0.0f, 1.0f)
#define OP_HARD_SWISH(a, b, c) ((a) * k_clip((a) * (1.0f / 6.0f) + 0.5f, 0.0f, 1.0f))
#define OP_CLIP_LOW(a, b, c) ((a) < (b) || (b) != (b) ? (b) : (a)) /* a bound that is NaN makes NaN of all */
#define OP_CLIP_HIGH(a, b, c) ((a) > (b) || (b) != (b) ? (b) : (a))
#define OP_CLIP(a, b, c) k_clip2(a, b, c)
#define OP_SIGMOID(a, b, c) k_sigmoid(a)
#define OP_TANH(a, b, c) tanh(a)
#define OP_EXP(a, b, c) exp(a)
#define OP_LOG(a, b, c) log(a)
#define OP_SQRT(a, b, c) sqrt(a)
#define OP_NEG(a, b, c) ((TO)((U)0 - (U)(a)))
#define OP_FNEG(a, b, c) (-(a))
#define OP_FABS(a, b, c) fabs(a)
#define OP_IABS(a, b, c) ((a) < 0 ? (TO)((U)0 - (U)(a)) : (a))
#define OP_ERF(a, b, c) erf(a)
#define OP_GELU(a, b, c) (0.5f * (a) * (1.0f + erf((a) * 0.70710678f)))
#define OP_GELU_TANH(a, b, c) (0.5f * (a) * (1.0f + tanh(0.79788456f * ((a) + 0.044715f * (a) * (a) * (a)))))

/* A number without its fraction; those that long cannot hold, and NaN, are its least. */
#define K_WHOLE(x) \
  ((x) >= -9223372036854775808.0f && (x) < 9223372036854775808.0f ? (long)(x) : (long)(-9223372036854775807L - 1))

/* By squaring where the exponent is a whole number. */
DEVICE long k_power(long x, T1 y) {
  ulong result = 1, square = (ulong)x;
  if (!((float)y >= 0.0f && (float)y <= 2147483648.0f) || (T1)(long)y != y) {
    const float z = pow((float)x, (float)y);
    return K_WHOLE(z);
  }
  for (ulong left = (ulong)y; left != 0; left >>= 1, square *= square) {
    if ((left & 1) != 0) result *= square;
  }
  return (long)result;
}

/* An exponent that is an integer may be odd where the float next to it is not; from 2^53 on it counts as even, as where it
 * goes through float64. */
DEVICE float k_power_real(float x, T1 y) {
  if ((T1)0.5f != (T1)0) return pow(x, (float)y);
  const float size = pow(fabs(x), (float)y);
  const int odd = ((long)y & 1) != 0 && (long)y > -9007199254740992L && (long)y < 9007199254740992L;
  return odd && copysign(1.0f, x) < 0.0f ? -size : size;
}

/* NaN comes through. */
DEVICE float k_clip(float x, float low, float high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

/* Of either sign without an overflow on the way. */
DEVICE float k_sigmoid(float x) {
  const float e = exp(-fabs(x));
  return x < 0.0f ? e / (1.0f + e) : 1.0f / (1.0f + e);
}

DEVICE T0 k_clip2(T0 x, T0 low, T0 high) {
  x = OP_CLIP_LOW(x, low, 0);
  return OP_CLIP_HIGH(x, high, 0);
}

#ifndef FUSED /* what follows then is generated: plan_fused.c */

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define APPLY JOIN(OP_, OP)

#if N_IN == 1
#define OPERANDS GLOBAL const T0 *x0
#define ELEMENT(i0, i1, i2) APPLY(x0[i0], 0, 0)
#elif N_IN == 2
#define OPERANDS GLOBAL const T0 *x0, GLOBAL const T1 *x1
#define ELEMENT(i0, i1, i2) APPLY(x0[i0], x1[i1], 0)
#else
#define OPERANDS GLOBAL const T0 *x0, GLOBAL const T1 *x1, GLOBAL const T2 *x2
#define ELEMENT(i0, i1, i2) APPLY(x0[i0], x1[i1], x2[i2])
#endif

/* All operands lie as the result does: apart from flat, because neighbours are then loaded together. */
KERNEL void same(k_flat p, OPERANDS, GLOBAL TO *out) {
  const float alpha = p.alpha, beta = p.beta;
  const IDX i = K_GLOBAL_ID;
  (void)alpha, (void)beta;
  if (i < (IDX)p.count) out[i] = (TO)ELEMENT(i, i, i);
}

KERNEL void flat(k_flat p, OPERANDS, GLOBAL TO *out) {
  const float alpha = p.alpha, beta = p.beta;
  const IDX i = K_GLOBAL_ID;
  (void)alpha, (void)beta;
  if (i < (IDX)p.count) out[i] = (TO)ELEMENT(i * p.step[0], i * p.step[1], i * p.step[2]);
}

KERNEL void walk(k_walk p, OPERANDS, GLOBAL TO *out) {
  const float alpha = p.alpha, beta = p.beta;
  IDX i = K_GLOBAL_ID, i0 = (IDX)p.base[0], i1 = (IDX)p.base[1], i2 = (IDX)p.base[2], o = (IDX)p.out_base;
  (void)alpha, (void)beta, (void)i1, (void)i2;
  if (i >= (IDX)p.count) return;
  for (int d = (int)p.dims - 1; d >= 0; d--) {
    const IDX dim = (IDX)p.dim[d], at = i % dim;
    i /= dim;
    o += at * (IDX)p.out_step[d];
    i0 += at * (IDX)p.step[0][d];
    i1 += at * (IDX)p.step[1][d];
    i2 += at * (IDX)p.step[2][d];
  }
  out[o] = (TO)ELEMENT(i0, i1, i2);
}

#endif
