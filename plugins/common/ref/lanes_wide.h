/* Included by lanes_fast.c for each kind of vectors, which it has words for: VECTOR of WIDTH floats, PS(operation), ALL,
 * MASKED(from, n), STORE(to, n, x), BELOW(a, b, yes, no), NEGATIVE(x, yes, no),
 * SCALE(p, n, t), SCALE_NEAR of n that is not far from 0, TARGET and NAME(x). */
#define INSIDE TARGET static inline __attribute__((always_inline))
#define MAD(a, b, c) PS(fmadd)(a, b, c)

/* As ref_exp_inside: the rest of x, and e^rest - 1. */
INSIDE VECTOR NAME(exp_rest)(VECTOR r) {
  VECTOR p = MAD(ALL(1.98756915e-4f), r, ALL(1.39819995e-3f));
  p = MAD(p, r, ALL(8.33345192e-3f));
  p = MAD(p, r, ALL(4.16657962e-2f));
  p = MAD(p, r, ALL(1.66666657e-1f));
  p = MAD(p, r, ALL(5.00000000e-1f));
  return MAD(p, PS(mul)(r, r), r);
}

/* n is the number of times that ln 2 is in x; t has it in its low bits. */
INSIDE VECTOR NAME(exp_parts)(VECTOR x, VECTOR *n, VECTOR *t) {
  const VECTOR shift = ALL(12582912.0f);
  *t = MAD(x, ALL(1.44269504f), shift);
  *n = PS(sub)(*t, shift);
  return NAME(exp_rest)(PS(fnmadd)(*n, ALL(-2.12194440e-4f), PS(fnmadd)(*n, ALL(0.693359375f), x)));
}

/* NaN stays NaN here and below: of two numbers min and max give the second if one is NaN. */
INSIDE VECTOR NAME(exp_inside)(VECTOR x) {
  VECTOR n, t;
  const VECTOR p = NAME(exp_parts)(x, &n, &t);
  return SCALE(PS(add)(p, ALL(1.0f)), n, t);
}

INSIDE VECTOR NAME(exp_least)(VECTOR x) { /* of x that is not above REF_EXP_MOST */
  return NAME(exp_inside)(PS(max)(ALL(REF_EXP_LEAST), x));
}

INSIDE VECTOR NAME(exp)(VECTOR x) {
  return NAME(exp_inside)(PS(min)(ALL(REF_EXP_MOST), PS(max)(ALL(REF_EXP_LEAST), x)));
}

INSIDE VECTOR NAME(with_sign)(VECTOR size, VECTOR sign) {
  return PS(or)(PS(andnot)(ALL(-0.0f), size), PS(and)(ALL(-0.0f), sign));
}

INSIDE VECTOR NAME(sigmoid_of)(VECTOR x) {
  const VECTOR e = NAME(exp_least)(PS(or)(x, ALL(-0.0f)));
  const VECTOR r = PS(div)(ALL(1.0f), PS(add)(ALL(1.0f), e));
  return NEGATIVE(x, PS(mul)(e, r), r);
}

/* t / (t + 2) with t = e^2x - 1, which is 2^n (e^rest - 1) + 2^n - 1. Beyond 9.02 it is 1. */
INSIDE VECTOR NAME(tanh_of)(VECTOR x) {
  const VECTOR a = PS(min)(ALL(9.02f), PS(max)(ALL(-9.02f), x));
  VECTOR n, bits;
  const VECTOR p = NAME(exp_parts)(PS(add)(a, a), &n, &bits), power = SCALE_NEAR(ALL(1.0f), n, bits);
  const VECTOR t = MAD(power, p, PS(sub)(power, ALL(1.0f)));
  return PS(or)(PS(div)(t, PS(add)(t, ALL(2.0f))), PS(and)(ALL(-0.0f), x)); /* -0 stays -0 */
}

INSIDE VECTOR NAME(erf_of)(VECTOR x) {
  const VECTOR far = PS(andnot)(ALL(-0.0f), x), t = PS(min)(ALL(4.0f), far);
  const VECTOR s = PS(mul)(x, x), q = PS(mul)(t, t);
  VECTOR u =
      MAD(MAD(ALL(-1.72853470e-5f), t, ALL(3.83197126e-4f)), q, MAD(ALL(-3.88396438e-3f), t, ALL(2.42546219e-2f)));
  u = MAD(u, t, ALL(-1.06777877e-1f));
  u = MAD(u, t, ALL(-6.34846687e-1f));
  u = MAD(u, t, ALL(-1.28717512e-1f));
  u = PS(fmsub)(u, t, t);
  VECTOR p = MAD(ALL(-5.96761703e-4f), s, ALL(4.99119423e-3f));
  p = MAD(p, s, ALL(-2.67681349e-2f));
  p = MAD(p, s, ALL(1.12819925e-1f));
  p = MAD(p, s, ALL(-3.76125336e-1f));
  p = MAD(p, s, ALL(1.28379166e-1f));
  p = MAD(p, x, x);
  VECTOR n, bits;
  const VECTOR e = NAME(exp_parts)(u, &n, &bits);
  const VECTOR r = PS(sub)(ALL(1.0f), SCALE_NEAR(PS(add)(e, ALL(1.0f)), n, bits));
  return BELOW(ALL(0.927734375f), far, NAME(with_sign)(r, x), p);
}

INSIDE VECTOR NAME(half_of)(VECTOR a, VECTOR part) { /* a (1 + part) / 2 */
  return PS(mul)(PS(mul)(ALL(0.5f), a), PS(add)(ALL(1.0f), part));
}

INSIDE VECTOR NAME(gelu_tanh_inside)(VECTOR a) {
  const VECTOR cube = PS(mul)(PS(mul)(PS(mul)(ALL(0.044715f), a), a), a);
  return PS(mul)(ALL(0.79788456080286536f), PS(add)(a, cube));
}

/* The last elements take the same steps, in a part of a vector. */
#define LOOP(name, ...) \
  TARGET static void NAME(name)(void *out, const void *const *in, int64_t n, const float *p) { \
    const float *x = in[0]; \
    const VECTOR alpha = ALL(p[0]); \
    float *to = out; \
    int64_t i = 0; \
    (void)alpha; \
    for (; i + WIDTH <= n; i += WIDTH) { \
      const VECTOR a = PS(loadu)(x + i); \
      PS(storeu)(to + i, __VA_ARGS__); \
    } \
    if (i < n) { \
      const VECTOR a = MASKED(x + i, n - i); \
      STORE(to + i, n - i, __VA_ARGS__); \
    } \
  }

LOOP(exponential, NAME(exp)(a))
LOOP(sigmoid, NAME(sigmoid_of)(a))
LOOP(tangens, NAME(tanh_of)(a))
LOOP(swish, PS(mul)(a, NAME(sigmoid_of)(PS(mul)(alpha, a))))
LOOP(gelu_tanh, NAME(half_of)(a, NAME(tanh_of)(NAME(gelu_tanh_inside)(a))))
LOOP(error, NAME(erf_of)(a))
LOOP(gelu, NAME(half_of)(a, NAME(erf_of)(PS(mul)(a, ALL(0.70710678118654752f)))))

#undef INSIDE
#undef MAD
#undef LOOP
#undef VECTOR
#undef WIDTH
#undef PS
#undef ALL
#undef MASKED
#undef STORE
#undef BELOW
#undef NEGATIVE
#undef SCALE
#undef SCALE_NEAR
#undef TARGET
#undef NAME
