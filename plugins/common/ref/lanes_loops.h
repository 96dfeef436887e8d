/* How the lanes are written: a loop over dense operands, from one expression of an element. For lanes*.c. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_LANES_LOOPS_H
#define HEDDLE_PLUGINS_COMMON_REF_LANES_LOOPS_H

#include "lanes.h"
#include "types.h"

#include <string.h>

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

/* For what takes many instructions: four elements at a time, which are one round of vectors. The last four come first,
 * into a buffer, and are stored at the end, so that the code is there once and not again for each rest that a loop of
 * vectors can leave. */
enum { LANES_STEP = 4 };
#define LANES1_LONG(name, T, EXPR) \
  void name(void *out, const void *const *in, int64_t n, const float *p) { \
    const T *a = in[0], *from; \
    T rest[LANES_STEP] = {0}, *to = out, *here = rest; \
    if (n <= 0) return; \
    if (n < LANES_STEP) { \
      const void *const few = memcpy(rest, a, (size_t)n * sizeof *a); \
      name(rest, &few, LANES_STEP, p); \
      memcpy(out, rest, (size_t)n * sizeof *a); \
      return; \
    } \
    from = a + n - LANES_STEP; \
    for (int64_t done = 0;; done += LANES_STEP) { \
      REF_IVDEP \
      for (int i = 0; i < LANES_STEP; i++) { \
        const T x = from[i]; \
        here[i] = (EXPR); \
      } \
      if (done >= n - LANES_STEP) break; \
      from = a + done; \
      here = to + done; \
    } \
    memcpy(to + n - LANES_STEP, rest, sizeof rest); \
  }

#define FLOAT1(name, EXPR) LANES1(ref_##name##_f32, float, float, EXPR)
#define FLOAT1_LONG(name, EXPR) LANES1_LONG(ref_##name##_f32, float, EXPR)
#define FLOAT2(name, EXPR) LANES2(ref_##name##_f32, float, float, float, EXPR)

/* Bounds are single numbers; either may be absent. One that is NaN makes NaN of all, as Min and Max do. */
#define CLIP(name, T, LEAST, MOST) \
  void name(void *out, const void *const *in, int64_t n, const float *p) { \
    const T *a = in[0]; \
    const T least = in[1] != NULL ? *(const T *)in[1] : (LEAST), most = in[2] != NULL ? *(const T *)in[2] : (MOST); \
    T *to = out; \
    (void)p; \
    REF_IVDEP \
    for (int64_t i = 0; i < n; i++) { \
      T x = a[i]; \
      x = x < least || least != least ? least : x; \
      to[i] = x > most || most != most ? most : x; \
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
