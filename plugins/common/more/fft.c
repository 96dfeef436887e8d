/* Decimation in time: each factor p of the length takes p transforms of every p-th point, and joins them. */
#include "fft.h"

#include <math.h>

#define PI 3.14159265358979323846

uint64_t fft_scratch_bytes(int64_t n) {
  return 4 * (uint64_t)n * sizeof(fft_point);
}

static void find_factors(fft *f) {
  int64_t left = f->n, p = 4;
  int count = 0;
  while (left > 1) {
    while (left % p != 0) {
      p = p == 4 ? 2 : p == 2 ? 3 : p + 2;
      if (p * p > left) p = left;
    }
    left /= p;
    f->factors[count++] = p; /* at most 22, since the length is below 2^23 */
  }
}

double fft_steps(int64_t n) {
  fft f = {.n = n};
  double sum = 10;
  find_factors(&f);
  for (int i = 0; i < FFT_FACTORS; i++) sum += (double)f.factors[i];
  return (double)n * sum;
}

/* By the first quarter of the circle where the length has one. */
static void find_turns(fft *f, double sign) {
  const int64_t n = f->n, quarter = n % 4 == 0 ? n / 4 : n;
  for (int64_t k = 0; k < quarter && !f->ends; k++) {
    const double angle = 2 * PI * (double)k / (double)n, re = cos(angle), im = sign * sin(angle);
    f->turns[k] = (fft_point){re, im};
    f->ends = more_tick(f->m, &f->work, 64);
    if (quarter == n) continue;
    f->turns[k + quarter] = (fft_point){-sign * im, sign * re};
    f->turns[k + 2 * quarter] = (fft_point){-re, -im};
    f->turns[k + 3 * quarter] = (fft_point){sign * im, -sign * re};
  }
}

void fft_start(fft *f, const more_op *m, int64_t n, bool inverse, void *scratch) {
  fft_point *at = scratch;
  *f = (fft){.m = m, .n = n, .in = at, .out = at + n, .turns = at + 2 * n, .few = at + 3 * n};
  find_factors(f);
  find_turns(f, inverse ? 1 : -1);
}

static inline fft_point times(fft_point a, fft_point b) {
  return (fft_point){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
static inline fft_point plus(fft_point a, fft_point b) {
  return (fft_point){a.re + b.re, a.im + b.im};
}
static inline fft_point minus(fft_point a, fft_point b) {
  return (fft_point){a.re - b.re, a.im - b.im};
}

/* Joins p transforms of m points, which lie one behind the other; the turns of their length are `stride` apart. */
static void join_two(const fft *f, fft_point *x, int64_t stride, int64_t m) {
  for (int64_t k = 0; k < m; k++) {
    const fft_point t = times(x[k + m], f->turns[k * stride]);
    x[k + m] = minus(x[k], t);
    x[k] = plus(x[k], t);
  }
}

static void join_four(const fft *f, fft_point *x, int64_t stride, int64_t m) {
  const double sign = f->turns[f->n / 4].im; /* 1 or -1: a quarter turn */
  for (int64_t k = 0; k < m; k++) {
    const fft_point b = times(x[k + m], f->turns[k * stride]), c = times(x[k + 2 * m], f->turns[2 * k * stride]);
    const fft_point d = times(x[k + 3 * m], f->turns[3 * k * stride]);
    const fft_point s = plus(x[k], c), t = minus(x[k], c), u = plus(b, d), v = minus(b, d);
    const fft_point turned = {-sign * v.im, sign * v.re};
    x[k] = plus(s, u);
    x[k + m] = plus(t, turned);
    x[k + 2 * m] = minus(s, u);
    x[k + 3 * m] = minus(t, turned);
  }
}

static void join_any(fft *f, fft_point *x, int64_t stride, int64_t m, int64_t p) {
  for (int64_t k = 0; k < m; k++) {
    for (int64_t q = 0; q < p; q++) f->few[q] = x[k + q * m];
    for (int64_t q = 0; q < p && !f->ends; q++) {
      const int64_t step = stride * (k + q * m); /* below n, since stride * m * p is n */
      fft_point sum = f->few[0];
      int64_t turn = 0;
      for (int64_t j = 1; j < p; j++) {
        turn += step;
        if (turn >= f->n) turn -= f->n;
        sum = plus(sum, times(f->few[j], f->turns[turn]));
      }
      x[k + q * m] = sum;
      f->ends = more_tick(f->m, &f->work, 2 * p);
    }
  }
}

/* n points, `stride` apart from `in` on, by the factors from `level` on. */
static void split(fft *f, fft_point *out, const fft_point *in, int64_t stride, int level, int64_t n) {
  const int64_t p = f->factors[level], m = n / p;
  for (int64_t q = 0; q < p; q++) {
    if (m == 1) out[q] = in[q * stride];
    else split(f, out + q * m, in + q * stride, stride * p, level + 1, m);
  }
  f->ends = f->ends || more_tick(f->m, &f->work, 2 * n);
  if (f->ends) return;
  if (p == 4) join_four(f, out, stride, m);
  else if (p == 2) join_two(f, out, stride, m);
  else join_any(f, out, stride, m, p);
}

void fft_transform(fft *f) {
  if (f->n == 1) f->out[0] = f->in[0];
  else if (!f->ends) split(f, f->out, f->in, 1, 0, f->n);
}
