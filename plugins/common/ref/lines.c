/* Loops over 16 places at a time (4 in a build for its size), compiled for AVX-512, AVX2 with FMA, and the least that there is. */
#include "lines.h"

#include "types.h"

#include <string.h>

#ifndef HEDDLE_NO_LANES
enum { PLACES = 16, MOST_BLOCKS = 4, MOST_LINES = 8, MOST_TAPS = 4, MOST_TAP_LINES = 2 };
#else /* a build for its size */
enum { PLACES = 4, MOST_BLOCKS = 1, MOST_LINES = 1, MOST_TAPS = 1, MOST_TAP_LINES = 1 };
#endif
typedef float places __attribute__((vector_size(PLACES * sizeof(float))));

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
#define WIDE __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))
#define NARROW __attribute__((target("avx2,fma")))
#else
#define WIDE
#define NARROW
#endif
#define INSIDE static inline __attribute__((always_inline))

/* Adds lines of one place or more, `blocks` vectors of them, with some taps: what is read of a line is used for all. */
INSIDE void sum_blocks(const ref_lines *l, const float *in, const float *w, float *acc, const int lines, const int taps,
                       const int blocks) {
  places sums[MOST_TAPS * 2], more;
  for (int j = 0; j < taps; j++)
    for (int b = 0; b < blocks; b++) memcpy(&sums[j * blocks + b], acc + j * l->acc_apart + b * PLACES, sizeof more);
  for (int i = 0; i < lines; i++) {
    for (int b = 0; b < blocks; b++) {
      memcpy(&more, in + i * l->apart + b * PLACES, sizeof more);
      for (int j = 0; j < taps; j++) sums[j * blocks + b] += more * w[i * l->w_apart + j];
    }
  }
  for (int j = 0; j < taps; j++)
    for (int b = 0; b < blocks; b++) memcpy(acc + j * l->acc_apart + b * PLACES, &sums[j * blocks + b], sizeof more);
}

/* Lines k to k + lines of l, one after the other at each place, with taps t to t + taps. */
INSIDE void sum_lines(const ref_lines *l, int64_t k, const int lines, int64_t t, const int taps) {
  const float *in = l->in + k * l->apart, *w = l->w + k * l->w_apart + t;
  float *acc = l->acc + t * l->acc_apart;
  int64_t x = 0;
  for (; x + 2 * PLACES <= l->n && MOST_BLOCKS > 1; x += 2 * PLACES) sum_blocks(l, in + x, w, acc + x, lines, taps, 2);
  for (; x + PLACES <= l->n; x += PLACES) sum_blocks(l, in + x, w, acc + x, lines, taps, 1);
  for (; x < l->n; x++)
    for (int j = 0; j < taps; j++)
      for (int i = 0; i < lines; i++) acc[j * l->acc_apart + x] += in[i * l->apart + x] * w[i * l->w_apart + j];
}

INSIDE void sum_taps(const ref_lines *l, int64_t t, const int taps) {
  int64_t k = 0;
  for (; k + MOST_LINES <= l->count; k += MOST_LINES) sum_lines(l, k, MOST_LINES, t, taps);
  for (; k < l->count; k++) sum_lines(l, k, 1, t, taps);
}

INSIDE void sum_any(const ref_lines *l) {
  int64_t t = 0;
  for (; t + MOST_TAPS <= l->taps; t += MOST_TAPS) sum_taps(l, t, MOST_TAPS);
  for (; t + 2 <= l->taps && MOST_TAPS > 1; t += 2) sum_taps(l, t, 2);
  for (; t < l->taps; t++) sum_taps(l, t, 1);
}

INSIDE void load(const float *from, int64_t step, places *out) {
#ifdef HEDDLE_NO_LANES
  for (int i = 0; i < PLACES; i++) (*out)[i] = from[i * step];
#else
  places x, y;
  memcpy(out, from, sizeof *out);
  if (step == 1) return;
  x = *out;
  memcpy(&y, from + PLACES, sizeof y);
  *out = __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#endif
}

/* The sums of some blocks of 16 places of some lines, of a step of 1 or 2; n of them are kept. */
INSIDE void taps_blocks(const ref_taps *t, const float *in, float *out, int64_t n, const int blocks, int64_t step,
                        const int lines) {
  places sums[MOST_TAP_LINES * MOST_BLOCKS];
  float rest[MOST_BLOCKS * PLACES];
  const float *w = t->w;
  for (int b = 0; b < lines * blocks; b++) sums[b] = (places){0} + t->bias;
  for (int64_t i = 0; i < t->rows; i++) {
    const float *from = in + i * t->row;
    for (int64_t j = 0; j < t->columns; j++, from += t->tap, w++) {
      const float by = *w;
      for (int b = 0; b < lines * blocks; b++) {
        places x;
        load(from + b / blocks * t->in_line + b % blocks * PLACES * step, step, &x);
        sums[b] += x * by;
      }
    }
  }
  for (int k = 0; k < lines; k++, out += t->out_line) {
    float *to = n < blocks * PLACES ? rest : out;
    for (int b = 0; b < blocks; b++) memcpy(to + b * PLACES, &sums[k * blocks + b], sizeof sums[0]);
    if (to == rest) memcpy(out, rest, (size_t)n * sizeof *out);
  }
}

INSIDE void taps_line(const ref_taps *t, const float *in, float *out, int64_t step, const int lines) {
  for (int64_t x = 0, left; (left = t->n - x) > 0;) {
    const int blocks = MOST_BLOCKS == 1 || left <= PLACES ? 1 : left > 2 * PLACES ? MOST_BLOCKS : 2;
    const int64_t n = left < blocks * PLACES ? left : blocks * PLACES;
    if (blocks == 4) taps_blocks(t, in + x * step, out + x, n, MOST_BLOCKS, step, lines);
    else if (blocks == 2 && MOST_BLOCKS > 1) taps_blocks(t, in + x * step, out + x, n, 2, step, lines);
    else taps_blocks(t, in + x * step, out + x, n, 1, step, lines);
    x += n;
  }
}

INSIDE void taps_any(const ref_taps *t, const float *in, float *out) {
  int64_t k = 0;
  for (; k + MOST_TAP_LINES <= t->lines && t->step <= 2; k += MOST_TAP_LINES)
    taps_line(t, in + k * t->in_line, out + k * t->out_line, t->step, MOST_TAP_LINES);
  for (; k < t->lines; k++) {
    const float *from = in + k * t->in_line;
    float *to = out + k * t->out_line;
    if (t->step <= 2) taps_line(t, from, to, t->step, 1);
    for (int64_t x = 0; x < t->n && t->step > 2; x++) {
      float sum = t->bias;
      for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < t->columns; j++)
          sum += from[x * t->step + i * t->row + j * t->tap] * t->w[i * t->columns + j];
      to[x] = sum;
    }
  }
}

INSIDE void add_any(double *acc, const double *line, double by, int64_t n) {
  REF_IVDEP
  for (int64_t x = 0; x < n; x++) acc[x] += line[x] * by;
}

INSIDE void round_any(float *out, const double *acc, int64_t n) {
  REF_IVDEP
  for (int64_t x = 0; x < n; x++) out[x] = (float)acc[x];
}

#define MAKE(name, target) \
  target static void sum_##name(const ref_lines *l) { \
    sum_any(l); \
  } \
  target static void taps_##name(const ref_taps *t, const float *in, float *out) { \
    taps_any(t, in, out); \
  } \
  target static void add_##name(double *acc, const double *line, double by, int64_t n) { \
    add_any(acc, line, by, n); \
  } \
  target static void round_##name(float *out, const double *acc, int64_t n) { \
    round_any(out, acc, n); \
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
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return AVX2;
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

void ref_line_add(double *acc, const double *line, double by, int64_t n) {
  const int have = vectors();
  (have == AVX512 ? add_wide : have == AVX2 ? add_narrow : add_plain)(acc, line, by, n);
}

void ref_line_round(float *out, const double *acc, int64_t n) {
  const int have = vectors();
  (have == AVX512 ? round_wide : have == AVX2 ? round_narrow : round_plain)(out, acc, n);
}
