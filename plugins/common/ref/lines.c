/* Loops over 16 places at a time, compiled for AVX-512, AVX2 and the least that there is. */
#include "lines.h"

#include <string.h>

enum { PLACES = 16 };
typedef float places __attribute__((vector_size(PLACES * sizeof(float))));

#if defined(__GNUC__) && defined(__x86_64__)
#define WIDE __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2")))
#define NARROW __attribute__((target("avx2")))
#else
#define WIDE
#define NARROW
#endif
#define INSIDE static inline __attribute__((always_inline))

INSIDE void sum_any(const ref_lines *l) {
  for (int64_t k = 0; k < l->count; k++) {
    const float *in = l->in + k * l->apart, *w = l->w + k * l->w_apart;
    for (int64_t t = 0; t < l->taps; t++) {
      float *acc = l->acc + t * l->acc_apart;
      const float by = w[t];
      int64_t x = 0;
      for (; x + PLACES <= l->n; x += PLACES) {
        places a, b;
        memcpy(&a, acc + x, sizeof a);
        memcpy(&b, in + x, sizeof b);
        a += b * by;
        memcpy(acc + x, &a, sizeof a);
      }
      for (; x < l->n; x++) acc[x] += in[x] * by;
    }
  }
}

/* The sums of 16 places, `step` apart. */
INSIDE void taps_places(const ref_taps *t, const float *in, float *out) {
  places sum = {0};
  for (int64_t i = 0; i < t->rows; i++) {
    for (int64_t j = 0; j < t->columns; j++) {
      const float *from = in + i * t->row + j * t->tap;
      places x;
      if (t->step == 1) {
        memcpy(&x, from, sizeof x);
      } else if (t->step == 2) {
        places y;
        memcpy(&x, from, sizeof x);
        memcpy(&y, from + PLACES, sizeof y);
        x = __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
      } else {
        for (int k = 0; k < PLACES; k++) x[k] = from[k * t->step];
      }
      sum += x * t->w[i * t->columns + j];
    }
  }
  sum += t->bias;
  memcpy(out, &sum, sizeof sum);
}

INSIDE void taps_any(const ref_taps *t, const float *in, float *out) {
  int64_t x = 0;
  float rest[PLACES];
  for (; x + PLACES <= t->n; x += PLACES) taps_places(t, in + x * t->step, out + x);
  if (x == t->n) return;
  if (t->step <= 2) {
    taps_places(t, in + x * t->step, rest);
    memcpy(out + x, rest, (size_t)(t->n - x) * sizeof *out);
    return;
  }
  for (; x < t->n; x++) {
    float sum = 0;
    for (int64_t i = 0; i < t->rows; i++)
      for (int64_t j = 0; j < t->columns; j++)
        sum += in[x * t->step + i * t->row + j * t->tap] * t->w[i * t->columns + j];
    out[x] = sum + t->bias;
  }
}

#define MAKE(name, target) \
  target static void sum_##name(const ref_lines *l) { \
    sum_any(l); \
  } \
  target static void taps_##name(const ref_taps *t, const float *in, float *out) { \
    taps_any(t, in, out); \
  }
MAKE(plain, )
MAKE(narrow, NARROW)
MAKE(wide, WIDE)

enum { NONE, AVX2, AVX512 };

static int vectors(void) {
#if defined(__GNUC__) && defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return AVX512;
  if (__builtin_cpu_supports("avx2")) return AVX2;
#endif
  return NONE;
}

void ref_lines_sum(const ref_lines *l) {
  const int have = vectors();
  (have == AVX512 ? sum_wide : have == AVX2 ? sum_narrow : sum_plain)(l);
}

void ref_line_taps(const ref_taps *t, const float *in, float *out) {
  const int have = vectors();
  (have == AVX512 ? taps_wide : have == AVX2 ? taps_narrow : taps_plain)(t, in, out);
}
