/* Each loop is compiled twice, for AVX-512 and for AVX2; without contraction every step is rounded as in the plain one. */
#include "lanes_fast.h"

#include "mathf.h"
#include "types.h"

#include <string.h>

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
#define WIDE __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2")))
#define NARROW __attribute__((target("avx2")))
#else
#define WIDE
#define NARROW
#endif

enum { NONE, AVX2, AVX512 };

static int vectors(void) {
#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return AVX512;
  if (__builtin_cpu_supports("avx2")) return AVX2;
#endif
  return NONE;
}

#define LOOP(name, target, ...) \
  target static void name(void *out, const void *const *in, int64_t n, const float *p) { \
    const float *x = in[0], alpha = p[0]; \
    float *to = out; \
    (void)alpha; \
    REF_IVDEP \
    for (int64_t i = 0; i < n; i++) { \
      const float a = x[i]; \
      to[i] = __VA_ARGS__; \
    } \
  }
#define BOTH(name, ...) LOOP(name##_512, WIDE, __VA_ARGS__) LOOP(name##_256, NARROW, __VA_ARGS__)

BOTH(exponential, ref_exp(a))
BOTH(sigmoid, ref_sigmoid(a))
BOTH(tangens, ref_tanh(a))
BOTH(swish, a *ref_sigmoid(alpha *a))
BOTH(gelu_tanh, 0.5f * a * (1.0f + ref_tanh(0.79788456080286536f * (a + 0.044715f * a * a * a))))
BOTH(error, ref_erf(a))
BOTH(gelu, 0.5f * a * (1.0f + ref_erf(a * 0.70710678118654752f)))

static const struct {
  const char *op;
  ref_lanes wide, narrow;
} faster[] = {
    {"Exp", exponential_512, exponential_256},
    {"Sigmoid", sigmoid_512, sigmoid_256},
    {"Tanh", tangens_512, tangens_256},
    {"Swish", swish_512, swish_256},
    {"Erf", error_512, error_256},
    {"Gelu_tanh", gelu_tanh_512, gelu_tanh_256},
    {"Gelu", gelu_512, gelu_256},
};

ref_lanes ref_lanes_faster(const char *op) {
  const int have = vectors();
  for (size_t i = 0; i < sizeof faster / sizeof faster[0] && have != NONE; i++)
    if (strcmp(faster[i].op, op) == 0) return have == AVX512 ? faster[i].wide : faster[i].narrow;
  return NULL;
}

static void run(ref_lanes wide, ref_lanes narrow, float *out, const float *x, int64_t n, bool tanh) {
  const void *in[] = {x};
  const float p[2] = {0};
  const int have = vectors();
  if (have != NONE) (have == AVX512 ? wide : narrow)(out, in, n, p);
  else
    for (int64_t i = 0; i < n; i++) out[i] = tanh ? ref_tanh(x[i]) : ref_sigmoid(x[i]);
}

void ref_fast_sigmoid(float *out, const float *x, int64_t n) {
  run(sigmoid_512, sigmoid_256, out, x, n, false);
}

void ref_fast_tanh(float *out, const float *x, int64_t n) {
  run(tangens_512, tangens_256, out, x, n, true);
}
