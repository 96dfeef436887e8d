/* Loops over 16 places at a time, compiled for AVX-512, AVX2 and the least that there is. */
#include "lines.h"

#include <string.h>

#ifndef HEDDLE_NO_LANES
enum { PLACES = 16, MOST_BLOCKS = 4, MOST_LINES = 8 };
#else /* a build for its size */
enum { PLACES = 16, MOST_BLOCKS = 1, MOST_LINES = 1 };
#endif
typedef float places __attribute__((vector_size(PLACES * sizeof(float))));

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
#define WIDE __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2")))
#define NARROW __attribute__((target("avx2")))
#else
#define WIDE
#define NARROW
#endif
#define INSIDE static inline __attribute__((always_inline))

/* Lines k to k + lines of l, one after the other at each place. */
INSIDE void sum_lines(const ref_lines *l, int64_t k, const int lines) {
  const float *in = l->in + k * l->apart, *w = l->w + k * l->w_apart;
  for (int64_t t = 0; t < l->taps; t++) {
    float *acc = l->acc + t * l->acc_apart, by[MOST_LINES];
    int64_t x = 0;
    for (int i = 0; i < lines; i++) by[i] = w[i * l->w_apart + t];
    for (; x + PLACES <= l->n; x += PLACES) {
      places sum, more;
      memcpy(&sum, acc + x, sizeof sum);
      for (int i = 0; i < lines; i++) {
        memcpy(&more, in + i * l->apart + x, sizeof more);
        sum += more * by[i];
      }
      memcpy(acc + x, &sum, sizeof sum);
    }
    for (; x < l->n; x++)
      for (int i = 0; i < lines; i++) acc[x] += in[i * l->apart + x] * by[i];
  }
}

INSIDE void sum_any(const ref_lines *l) {
  int64_t k = 0;
  for (; k + MOST_LINES <= l->count; k += MOST_LINES) sum_lines(l, k, MOST_LINES);
  for (; k < l->count; k++) sum_lines(l, k, 1);
}

INSIDE void load(const float *from, int64_t step, places *out) {
  places x, y;
  memcpy(out, from, sizeof *out);
  if (step == 1) return;
  x = *out;
  memcpy(&y, from + PLACES, sizeof y);
  *out = __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}

/* The sums of some blocks of 16 places, of a step of 1 or 2; n of them are kept. */
INSIDE void taps_blocks(const ref_taps *t, const float *in, float *out, int64_t n, const int blocks, int64_t step) {
  places sums[MOST_BLOCKS];
  float rest[MOST_BLOCKS * PLACES];
  const float *w = t->w;
  for (int b = 0; b < blocks; b++) sums[b] = (places){0} + t->bias;
  for (int64_t i = 0; i < t->rows; i++) {
    const float *from = in + i * t->row;
    for (int64_t j = 0; j < t->columns; j++, from += t->tap, w++) {
      const float by = *w;
      for (int b = 0; b < blocks; b++) {
        places x;
        load(from + b * PLACES * step, step, &x);
        sums[b] += x * by;
      }
    }
  }
  memcpy(n < blocks * PLACES ? rest : out, sums, sizeof sums[0] * (size_t)blocks);
  if (n < blocks * PLACES) memcpy(out, rest, (size_t)n * sizeof *out);
}

INSIDE void taps_line(const ref_taps *t, const float *in, float *out, int64_t step) {
  for (int64_t x = 0, left; (left = t->n - x) > 0;) {
    const int blocks = MOST_BLOCKS == 1 || left <= PLACES ? 1 : left > 2 * PLACES ? MOST_BLOCKS : 2;
    const int64_t n = left < blocks * PLACES ? left : blocks * PLACES;
    if (blocks == 4) taps_blocks(t, in + x * step, out + x, n, MOST_BLOCKS, step);
    else if (blocks == 2 && MOST_BLOCKS > 1) taps_blocks(t, in + x * step, out + x, n, 2, step);
    else taps_blocks(t, in + x * step, out + x, n, 1, step);
    x += n;
  }
}

INSIDE void taps_any(const ref_taps *t, const float *in, float *out) {
  if (t->step == 1) taps_line(t, in, out, 1);
  else if (t->step == 2) taps_line(t, in, out, 2);
  for (int64_t x = 0; x < t->n && t->step > 2; x++) {
    float sum = t->bias;
    for (int64_t i = 0; i < t->rows; i++)
      for (int64_t j = 0; j < t->columns; j++)
        sum += in[x * t->step + i * t->row + j * t->tap] * t->w[i * t->columns + j];
    out[x] = sum;
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
#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
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
