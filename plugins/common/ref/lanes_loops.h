/* How the lanes are written: a loop over dense operands, from the scalar expression of an element. For lanes*.c. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_LANES_LOOPS_H
#define HEDDLE_PLUGINS_COMMON_REF_LANES_LOOPS_H

#include "lanes.h"
#include "types.h"

#include <string.h>

/* What takes many instructions, and may be made of vectors: four elements at a time, which are one round of vectors. The
 * last four come first, into a buffer, and are stored at the end, so that the code is there once and not again for each
 * rest that a loop of vectors can leave. LANES_LONG: the cost from which on. */
enum { LANES_STEP = 4, LANES_LONG = 12 };

/* LANES_n(name, T, E, R, cost, expression): the loop for n operands of type T, computed with as E, and a result of type
 * R. */
#define LANES_1(name, T, E, R, cost, ...) \
  void name(void *out, const void *const *in, int64_t n, const float *p) { \
    const T *x = in[0], *from; \
    T rest[LANES_STEP] = {0}; \
    R *to = out; \
    const float alpha = p[0], beta = p[1]; \
    (void)alpha, (void)beta; \
    if ((cost) < LANES_LONG || sizeof(T) != sizeof(R)) { \
      REF_IVDEP \
      for (int64_t i = 0; i < n; i++) { \
        const E a = (E)x[i]; \
        to[i] = (R)(__VA_ARGS__); \
      } \
      return; \
    } \
    if (n <= 0) return; \
    if (n < LANES_STEP) { \
      const void *const few = memcpy(rest, x, (size_t)n * sizeof *x); \
      name(rest, &few, LANES_STEP, p); \
      memcpy(out, rest, (size_t)n * sizeof *x); \
      return; \
    } \
    R *here = (R *)(void *)rest; \
    from = x + n - LANES_STEP; \
    for (int64_t done = 0;; done += LANES_STEP) { \
      REF_IVDEP \
      for (int i = 0; i < LANES_STEP; i++) { \
        const E a = (E)from[i]; \
        here[i] = (R)(__VA_ARGS__); \
      } \
      if (done >= n - LANES_STEP) break; \
      from = x + done; \
      here = to + done; \
    } \
    memcpy(to + n - LANES_STEP, rest, sizeof rest); \
  }

#define LANES_2(name, T, E, R, cost, ...) \
  void name(void *out, const void *const *in, int64_t n, const float *p) { \
    const T *x = in[0], *y = in[1]; \
    R *to = out; \
    const float alpha = p[0], beta = p[1]; \
    (void)alpha, (void)beta; \
    REF_IVDEP \
    for (int64_t i = 0; i < n; i++) { \
      const E a = (E)x[i], b = (E)y[i]; \
      to[i] = (R)(__VA_ARGS__); \
    } \
  }
#define LANES_MANY LANES_2

/* The second and third are single numbers; either may be absent, which gives LANES_LEAST and LANES_MOST. */
#define LANES_3(name, T, E, R, cost, ...) \
  void name(void *out, const void *const *in, int64_t n, const float *p) { \
    const T *x = in[0]; \
    const T b = in[1] != NULL ? *(const T *)in[1] : LANES_LEAST, c = in[2] != NULL ? *(const T *)in[2] : LANES_MOST; \
    R *to = out; \
    (void)p; \
    REF_IVDEP \
    for (int64_t i = 0; i < n; i++) { \
      const E a = (E)x[i]; \
      to[i] = (R)(__VA_ARGS__); \
    } \
  }

/* The lanes of lanes_float.c: of the kinds that have reals. */
#define SCALAR_LANE(name) void ref_##name##_f32(void *out, const void *const *in, int64_t n, const float *p);
#define SCALAR_LANE_REAL(name) SCALAR_LANE(name)
#define SCALAR_LANE_NUMBER(name) SCALAR_LANE(name)
#define SCALAR_LANE_TEST(name) SCALAR_LANE(name)
#define SCALAR_LANE_TEST_REAL(name) SCALAR_LANE(name)
#define SCALAR_LANE_INT(name)
#define SCALAR_LANE_LOGIC(name)
#define SCALAR(name, kind, ...) SCALAR_LANE_##kind(name)
#include "operators/all.def"

#endif
