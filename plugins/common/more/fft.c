/* Decimation in time: each factor p of the length takes p transforms of every p-th point, and joins them. With
 * j k = (j^2 + k^2 - (k - j)^2) / 2 a transform is also a convolution of its points times a chirp with the inverse chirp. */
#include "fft.h"

#include <math.h>

#define PI 3.14159265358979323846

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

enum { LARGE = 48, MOST_CHIRP = 1 << 18 };

/* The length of the transforms that a convolution takes; 0: the factors are small, or the tables would be large. */
static int64_t length_of(const fft *f) {
  int64_t most = 0, length = 1;
  for (int i = 0; i < FFT_FACTORS; i++) most = f->factors[i] > most ? f->factors[i] : most;
  if (most < LARGE || f->n > MOST_CHIRP) return 0;
  while (length < 2 * f->n - 1) length *= 2;
  return length;
}

uint64_t fft_scratch_bytes(int64_t n) {
  fft f = {.n = n};
  find_factors(&f);
  const uint64_t length = (uint64_t)length_of(&f), tables = length > 0 ? (uint64_t)n + 4 * length : 0;
  return (4 * (uint64_t)n + tables) * sizeof(fft_point);
}

double fft_steps(int64_t n) {
  fft f = {.n = n};
  double sum = 10;
  find_factors(&f);
  const int64_t length = length_of(&f);
  if (length > 0) return 2 * fft_steps(length) + 10 * (double)length;
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

/* The inner transforms of a convolution: in out->in, of `length` points, to out->out; their tables lie behind the chirp. */
static fft inner_of(const fft *f) {
  fft_point *at = f->response + f->length;
  fft inner = {
      .m = f->m, .n = f->length, .in = at, .out = at + f->length, .turns = at + 2 * f->length, .work = f->work};
  find_factors(&inner);
  return inner;
}

static void run_inner(fft *f, fft *inner) {
  split(inner, inner->out, inner->in, 1, 0, inner->n);
  f->work = inner->work;
  f->ends = f->ends || inner->ends;
}

static inline fft_point conjugate(fft_point a) {
  return (fft_point){a.re, -a.im};
}

static void find_chirp(fft *f, double sign) {
  const uint64_t n = (uint64_t)f->n;
  fft inner = inner_of(f);
  find_turns(&inner, -1);
  f->ends = f->ends || inner.ends;
  for (uint64_t k = 0; k < n; k++) {
    const double angle = PI * (double)(k * k % (2 * n)) / (double)n;
    f->chirp[k] = (fft_point){cos(angle), sign * sin(angle)};
  }
  for (int64_t k = 0; k < f->length; k++) inner.in[k] = (fft_point){0, 0};
  for (int64_t k = 0; k < f->n; k++) {
    inner.in[k] = conjugate(f->chirp[k]);
    if (k > 0) inner.in[f->length - k] = inner.in[k];
  }
  run_inner(f, &inner);
  memcpy(f->response, inner.out, (size_t)f->length * sizeof *inner.out);
}

static void convolve(fft *f) {
  const double scale = 1 / (double)f->length;
  fft inner = inner_of(f);
  for (int64_t k = 0; k < f->n; k++) inner.in[k] = times(f->in[k], f->chirp[k]);
  for (int64_t k = f->n; k < f->length; k++) inner.in[k] = (fft_point){0, 0};
  run_inner(f, &inner);
  /* The inverse, by the conjugate of what goes in and comes out. */
  for (int64_t k = 0; k < f->length; k++) inner.in[k] = conjugate(times(inner.out[k], f->response[k]));
  run_inner(f, &inner);
  for (int64_t k = 0; k < f->n; k++) {
    const fft_point y = times(conjugate(inner.out[k]), f->chirp[k]);
    f->out[k] = (fft_point){y.re * scale, y.im * scale};
  }
}

void fft_start(fft *f, const more_op *m, int64_t n, bool inverse, void *scratch) {
  fft_point *at = scratch;
  const double sign = inverse ? 1 : -1;
  *f = (fft){.m = m, .n = n, .in = at, .out = at + n, .turns = at + 2 * n, .few = at + 3 * n};
  find_factors(f);
  f->length = length_of(f);
  f->chirp = at + 4 * n;
  f->response = f->chirp + n;
  if (f->length > 0) find_chirp(f, sign);
  else find_turns(f, sign);
}

void fft_transform(fft *f) {
  if (f->n == 1) f->out[0] = f->in[0];
  else if (!f->ends && f->length > 0) convolve(f);
  else if (!f->ends) split(f, f->out, f->in, 1, 0, f->n);
}
