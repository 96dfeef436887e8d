/* How the lanes are written: a loop over dense operands, from the scalar expression of an element. For lanes*.c. Each is
 * compiled twice, for any CPU and for AVX2, with the same bits: nothing is contracted. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_LANES_LOOPS_H
#define HEDDLE_PLUGINS_COMMON_REF_LANES_LOOPS_H

#include "lanes.h"
#include "types.h"

#include <string.h>

/* A loop for any CPU, and the same for AVX2; what both are called in a table. */
#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
#define LANES_TWICE(loop, name, ...) \
  loop(static, name, 4, __VA_ARGS__) loop(__attribute__((target("avx2"))) static, name##_256, 8, __VA_ARGS__)
#define LANES_BOTH(name) \
  { name, name##_256 }
#else
#define LANES_TWICE(loop, name, ...) loop(static, name, 4, __VA_ARGS__)
#define LANES_BOTH(name) \
  { name, name }
#endif
#define LANES_NONE \
  { NULL, NULL }

/* What takes many instructions, and may be made of vectors: some elements at a time, which are one round of vectors. The
 * last ones come first, into a buffer, and are stored at the end, so that the code is there once and not again for each
 * rest that a loop of vectors can leave. LANES_LONG: the cost from which on. */
enum { LANES_LONG = 12 };

/* LANES_n(name, T, E, R, cost, expression): the loops for n operands of type T, computed with as E, and a result of type
 * R. */
#define LANES_1(...) LANES_TWICE(LANES_LOOP_1, __VA_ARGS__)
#define LANES_2(...) LANES_TWICE(LANES_LOOP_2, __VA_ARGS__)
#define LANES_3(...) LANES_TWICE(LANES_LOOP_3, __VA_ARGS__)
#define LANES_MANY LANES_2

#define LANES_LOOP_1(kind, name, step, T, E, R, cost, ...) \
  kind void name(void *out, const void *const *in, int64_t n, const float *p) { \
    const T *x = in[0], *from; \
    T rest[step] = {0}; \
    R *to = out; \
    const float alpha = p[0], beta = p[1]; \
    (void)alpha, (void)beta; \
    if ((cost) < LANES_LONG || sizeof(T) != sizeof(R)) { \
      REF_IVDEP \
      for (int64_t i = 0; i < n; i++) { \
        E a = (E)x[i]; \
        to[i] = (R)(__VA_ARGS__); \
      } \
      return; \
    } \
    if (n <= 0) return; \
    if (n < (step)) { \
      const void *const few = memcpy(rest, x, (size_t)n * sizeof *x); \
      name(rest, &few, step, p); \
      memcpy(out, rest, (size_t)n * sizeof *x); \
      return; \
    } \
    R *here = (R *)(void *)rest; \
    from = x + n - (step); \
    for (int64_t done = 0;; done += (step)) { \
      REF_IVDEP \
      for (int i = 0; i < (step); i++) { \
        E a = (E)from[i]; \
        here[i] = (R)(__VA_ARGS__); \
      } \
      if (done >= n - (step)) break; \
      from = x + done; \
      here = to + done; \
    } \
    memcpy(to + n - (step), rest, sizeof rest); \
  }

#define LANES_LOOP_2(kind, name, step, T, E, R, cost, ...) \
  kind void name(void *out, const void *const *in, int64_t n, const float *p) { \
    const T *x = in[0], *y = in[1]; \
    R *to = out; \
    const float alpha = p[0], beta = p[1]; \
    (void)alpha, (void)beta; \
    REF_IVDEP \
    for (int64_t i = 0; i < n; i++) { \
      E a = (E)x[i], b = (E)y[i]; \
      to[i] = (R)(__VA_ARGS__); \
    } \
  }

/* The second and third are single numbers; either may be absent, which gives LANES_LEAST(T) and LANES_MOST(T). */
#define LANES_LOOP_3(kind, name, step, T, E, R, cost, ...) \
  kind void name(void *out, const void *const *in, int64_t n, const float *p) { \
    const T *x = in[0]; \
    const T b = in[1] != NULL ? *(const T *)in[1] : LANES_LEAST(T), \
            c = in[2] != NULL ? *(const T *)in[2] : LANES_MOST(T); \
    R *to = out; \
    (void)p; \
    REF_IVDEP \
    for (int64_t i = 0; i < n; i++) { \
      E a = (E)x[i]; \
      to[i] = (R)(__VA_ARGS__); \
    } \
  }

#endif
