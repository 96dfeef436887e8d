/* How the lanes are written: a loop over dense operands, from one expression of an element. For lanes*.c. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_LANES_LOOPS_H
#define HEDDLE_PLUGINS_COMMON_REF_LANES_LOOPS_H

#include "lanes.h"
#include "types.h"

/* x, y: the elements; p: the parameters. A, B, T, R: types of operands and result. */
#define LANES1(name, T, R, EXPR) \
  void name(void *out, const void *const *in, int64_t n, const float *p) { \
    const T *a = in[0]; \
    R *to = out; \
    (void)p; \
    REF_IVDEP \
    for (int64_t i = 0; i < n; i++) { \
      const T x = a[i]; \
      to[i] = (R)(EXPR); \
    } \
  }

#define LANES2(name, A, B, R, EXPR) \
  void name(void *out, const void *const *in, int64_t n, const float *p) { \
    const A *a = in[0]; \
    const B *b = in[1]; \
    R *to = out; \
    (void)p; \
    REF_IVDEP \
    for (int64_t i = 0; i < n; i++) { \
      const A x = a[i]; \
      const B y = b[i]; \
      to[i] = (R)(EXPR); \
    } \
  }

#define FLOAT1(name, EXPR) LANES1(ref_##name##_f32, float, float, EXPR)
#define FLOAT2(name, EXPR) LANES2(ref_##name##_f32, float, float, float, EXPR)

/* Bounds are single numbers; either may be absent. */
#define CLIP(name, T, LEAST, MOST) \
  void name(void *out, const void *const *in, int64_t n, const float *p) { \
    const T *a = in[0]; \
    const T least = in[1] != NULL ? *(const T *)in[1] : (LEAST), most = in[2] != NULL ? *(const T *)in[2] : (MOST); \
    T *to = out; \
    (void)p; \
    REF_IVDEP \
    for (int64_t i = 0; i < n; i++) { \
      T x = a[i]; \
      x = x < least ? least : x; \
      to[i] = x > most ? most : x; \
    } \
  }

/* clang-format off */
#define REF_FLOAT_LANES(X) \
  X(relu) X(leaky) X(elu) X(hard_sigmoid) X(hard_swish) X(sigmoid) X(tanh) X(exp) X(log) X(sqrt) X(neg) X(abs) X(erf) \
  X(gelu) X(gelu_tanh) \
  X(add) X(sub) X(mul) X(div) X(pow) X(min) X(max) X(prelu) X(clip)
/* clang-format on */
#define REF_DECLARE(name) void ref_##name##_f32(void *out, const void *const *in, int64_t n, const float *p);
REF_FLOAT_LANES(REF_DECLARE)
#undef REF_DECLARE

#endif
