/* generate/passes.c: loops over logits and weights. Each is compiled for AVX2 too; elements and sums, of 16 parts, are the
 * same everywhere. */
#include "generate/passes.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { WIDTH = 8, BLOCK = 1024 };

#define INSIDE static inline __attribute__((always_inline))

/* Eight at a time: where the processor has shorter vectors the compiler takes two. */
typedef float floats __attribute__((vector_size(4 * WIDTH)));
typedef int32_t whole __attribute__((vector_size(4 * WIDTH)));

#define LOAD(to, from) memcpy(&(to), (from), sizeof(to))
#define STORE(to, from) memcpy((to), &(from), sizeof(from))
#define CHOOSE(mask, yes, no) ((floats)(((mask) & (whole)(yes)) | (~(mask) & (whole)(no))))
#define SAME(x) ((floats){(x), (x), (x), (x), (x), (x), (x), (x)})

INSIDE float greatest(const float *x, size_t n) {
  floats best[2] = {SAME(-INFINITY), SAME(-INFINITY)};
  float all = -INFINITY;
  size_t i = 0;
  for (; i + 2 * WIDTH <= n; i += 2 * WIDTH) {
    floats a, b;
    LOAD(a, x + i);
    LOAD(b, x + i + WIDTH);
    best[0] = CHOOSE(a > best[0], a, best[0]);
    best[1] = CHOOSE(b > best[1], b, best[1]);
  }
  for (int k = 0; k < WIDTH; k++) {
    all = best[0][k] > all ? best[0][k] : all;
    all = best[1][k] > all ? best[1][k] : all;
  }
  for (; i < n; i++) all = x[i] > all ? x[i] : all;
  return all;
}

/* e^((x - best) * rate) of eight, to seven digits; an exponent below -87 is as -87. In place, so that no vector is passed. */
INSIDE void raise(floats *v, float best, float rate, float least) {
  const floats x = *v, given = (x - best) * rate, lowest = SAME(-87.0F);
  const floats t = CHOOSE(given < lowest, lowest, given) * 1.44269504F, even = (t + 12582912.0F) - 12582912.0F;
  const floats f = t - even;
  floats p = f * 0.000154035304F + 0.00133335581F; /* 2^f */
  p = p * f + 0.00961812911F;
  p = p * f + 0.0555041087F;
  p = p * f + 0.240226507F;
  p = p * f + 0.693147181F;
  p = p * f + 1.0F;
  const floats y = p * (floats)((__builtin_convertvector(even, whole) + 127) << 23);
  *v = CHOOSE((y >= SAME(least)) & (x > SAME(-INFINITY)), y, SAME(0.0F));
}

INSIDE void weigh(const float *x, size_t n, float best, float rate, float least, float *out) {
  floats v;
  size_t i = 0;
  for (; i + WIDTH <= n; i += WIDTH) {
    LOAD(v, x + i);
    raise(&v, best, rate, least);
    STORE(out + i, v);
  }
  if (i == n) return;
  float rest[WIDTH] = {0};
  memcpy(rest, x + i, (n - i) * sizeof *x);
  LOAD(v, rest);
  raise(&v, best, rate, least);
  STORE(rest, v);
  memcpy(out + i, rest, (n - i) * sizeof *x);
}

INSIDE double sum_block(const float *x, size_t n, float least) {
  const floats least8 = SAME(least), none = SAME(0.0F);
  floats parts[2] = {none, none};
  double sum = 0;
  size_t i = 0;
  for (; i + 2 * WIDTH <= n; i += 2 * WIDTH) {
    floats a, b;
    LOAD(a, x + i);
    LOAD(b, x + i + WIDTH);
    parts[0] += CHOOSE(a >= least8, a, none);
    parts[1] += CHOOSE(b >= least8, b, none);
  }
  for (int k = 0; k < WIDTH; k++) sum += (double)parts[0][k] + (double)parts[1][k];
  for (; i < n; i++) sum += (double)(x[i] >= least ? x[i] : 0);
  return sum;
}

INSIDE double sum_all(const float *x, size_t n, float least) {
  double sum = 0;
  for (size_t i = 0; i < n; i += BLOCK) sum += sum_block(x + i, n - i < BLOCK ? n - i : BLOCK, least);
  return sum;
}

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
#define WIDE __attribute__((target("avx2")))

static bool has_wide(void) {
  return __builtin_cpu_supports("avx2");
}
#else
#define WIDE

static bool has_wide(void) {
  return false;
}
#endif

WIDE static float greatest_wide(const float *x, size_t n) {
  return greatest(x, n);
}

WIDE static void weigh_wide(const float *x, size_t n, float best, float rate, float least, float *out) {
  weigh(x, n, best, rate, least, out);
}

WIDE static double sum_wide(const float *x, size_t n, float least) {
  return sum_all(x, n, least);
}

float heddle__pass_greatest(const float *x, size_t n) {
  return has_wide() ? greatest_wide(x, n) : greatest(x, n);
}

void heddle__pass_weigh(const float *x, size_t n, float best, float rate, float least, float *out) {
  if (has_wide()) weigh_wide(x, n, best, rate, least, out);
  else weigh(x, n, best, rate, least, out);
}

double heddle__pass_sum(const float *x, size_t n, float least) {
  return has_wide() ? sum_wide(x, n, least) : sum_all(x, n, least);
}
