/* Signal processing: DFT and STFT, the windows, and the mel filter bank. */
#include "fft.h"

#include <math.h>

#define PI 3.14159265358979323846

/* ---------------------------------------------------------------- DFT */

enum { LENGTH, SIZE, BINS, INNER, COMPLEX_IN, INVERSE, ONE_SIDED, STEP };

/* Bin k of n points, read by get, into re and im. A one-sided inverse takes the conjugates of what was left out. */
typedef struct points {
  const more_op *m;
  const void *x, *window;
  int64_t base, stride, count; /* elements (real or pairs): the first, from one to the next, how many there are */
  int64_t n;
} points;

static void point(const points *q, int64_t j, double *re, double *im) {
  const more_op *m = q->m;
  const bool mirror = m->i[INVERSE] && m->i[ONE_SIDED] && j > q->n / 2;
  const int64_t from = mirror ? q->n - j : j, width = m->i[COMPLEX_IN] ? 2 : 1;
  *re = *im = 0;
  if (from >= q->count) return;
  const int64_t at = (q->base + from * q->stride) * width;
  *re = more_get(&m->in[0], q->x, at);
  *im = width == 2 ? more_get(&m->in[0], q->x, at + 1) : 0;
  if (mirror) *im = -*im;
  if (q->window != NULL) {
    const double w = more_get(&m->in[2], q->window, j);
    *re *= w;
    *im *= w;
  }
}

static void transform(const points *q, int64_t k, double *re, double *im) {
  const double sign = q->m->i[INVERSE] ? 1 : -1;
  double sum_re = 0, sum_im = 0, x, y;
  int64_t work = 0;
  for (int64_t j = 0; j < q->n; j++) {
    if (more_tick(q->m, &work, 32)) break;
    const double angle = sign * 2 * PI * (double)((uint64_t)j * (uint64_t)k % (uint64_t)q->n) / (double)q->n;
    point(q, j, &x, &y);
    sum_re += x * cos(angle) - y * sin(angle);
    sum_im += x * sin(angle) + y * cos(angle);
  }
  *re = q->m->i[INVERSE] ? sum_re / (double)q->n : sum_re;
  *im = q->m->i[INVERSE] ? sum_im / (double)q->n : sum_im;
}

/* All bins of q, the first of them at `at` of the result; by their definition where a point is no number, so that each bin
 * has what becomes of it there. */
static void store_bins(fft *f, const points *q, void *out, int64_t at, int64_t step) {
  const more_op *m = q->m;
  const bool real_out = m->i[INVERSE] && m->i[ONE_SIDED];
  const double scale = m->i[INVERSE] ? 1 / (double)q->n : 1;
  double zero = 0;
  for (int64_t j = 0; j < q->n; j++) {
    point(q, j, &f->in[j].re, &f->in[j].im);
    zero += f->in[j].re * 0 + f->in[j].im * 0;
  }
  f->ends = f->ends || more_tick(m, &f->work, 8 * q->n);
  if (f->ends) return;
  if (zero == 0) fft_transform(f);
  for (int64_t k = 0; k < m->i[BINS] && !f->ends; k++) {
    fft_point y = f->out[k];
    if (zero == 0) y = (fft_point){y.re * scale, y.im * scale};
    else transform(q, k, &y.re, &y.im);
    const int64_t to = at + k * step;
    more_put(&m->out[0], out, real_out ? to : 2 * to, y.re);
    if (!real_out) more_put(&m->out[0], out, 2 * to + 1, y.im);
    if (zero != 0) f->ends = more_tick(m, &f->work, 32 * q->n);
  }
}

/* Units are transforms. */
static void run_dft_fast(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t inner = m->i[INNER], size = m->i[SIZE];
  fft f;
  fft_start(&f, m, m->i[LENGTH], m->i[INVERSE] != 0, a->scratch);
  for (int64_t u = first; u < last && !f.ends; u++) {
    const int64_t i = u % inner, outer = u / inner;
    const points q = {m, a->in[0], NULL, outer * size * inner + i, inner, size, m->i[LENGTH]};
    store_bins(&f, &q, a->out[0], outer * m->i[BINS] * inner + i, inner);
  }
}

static void run_stft_fast(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t frames = m->out[0].shape[1], length = m->i[LENGTH];
  fft f;
  fft_start(&f, m, length, false, a->scratch);
  for (int64_t u = first; u < last && !f.ends; u++) {
    const int64_t frame = u % frames, batch = u / frames;
    const points q = {m, a->in[0], a->in[2], batch * m->i[SIZE] + frame * m->i[STEP], 1, length, length};
    store_bins(&f, &q, a->out[0], u * m->i[BINS], 1);
  }
}

/* So many numbers come out; lengths that no table is made for are left to `slow`, whose units are bins. */
static void plan_transforms(more_plan *p, more_kernel fast, more_kernel slow, int64_t numbers) {
  const int64_t n = p->m->i[LENGTH], count = numbers / p->m->i[BINS];
  if (!more_ok(p)) return;
  if (n > FFT_MOST) {
    more_work(p, slow, numbers, (double)numbers * (double)n * 20);
    return;
  }
  more_work(p, fast, count, (double)count * fft_steps(n));
  p->m->unsliced = true;
  p->m->part_scratch = fft_scratch_bytes(n);
}

static void run_dft(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t bins = m->i[BINS], inner = m->i[INNER], size = m->i[SIZE];
  const bool real_out = m->i[INVERSE] && m->i[ONE_SIDED];
  for (int64_t u = first; u < last; u++) {
    const int64_t i = u % inner, k = u / inner % bins, outer = u / inner / bins;
    const points q = {m, a->in[0], NULL, outer * size * inner + i, inner, size, m->i[LENGTH]};
    double re, im;
    transform(&q, k, &re, &im);
    more_put(&m->out[0], a->out[0], real_out ? u : 2 * u, re);
    if (!real_out) more_put(&m->out[0], a->out[0], 2 * u + 1, im);
  }
}

void more_setup_dft(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0];
  int64_t shape[MORE_DIMS], axis = -2;
  const bool by_attribute = more_defines(p, "axis");
  m->i[INVERSE] = more_int(p, "inverse", 0) != 0;
  m->i[ONE_SIDED] = more_int(p, "onesided", 0) != 0;
  if (by_attribute) axis = more_int(p, "axis", 1);
  else if (more_operand(p, 2)) axis = more_operand_int(p, 2, -2);
  more_real(p, 0);
  more_rank(p, 0, 2, MORE_DIMS);
  axis = more_axis(p, axis, x->ndim);
  if (!more_ok(p)) return;
  const int64_t width = x->shape[x->ndim - 1];
  if (axis == x->ndim - 1 || (width != 1 && width != 2))
    more_refuse(p, "the last dimension of operand 0 must be 1 or 2, and not the axis");
  m->i[COMPLEX_IN] = width == 2;
  m->i[SIZE] = x->shape[axis];
  m->i[INNER] = more_count(x->shape, axis + 1, x->ndim - 1);
  const bool real_out = m->i[INVERSE] && m->i[ONE_SIDED];
  const double length = more_operand_number(p, 1, (double)(real_out ? 2 * (m->i[SIZE] - 1) : m->i[SIZE]));
  if (!(length >= 1 && length < 0x1p31)) more_refuse(p, "its length is not 1 or more");
  if (!more_ok(p)) return;
  m->i[LENGTH] = (int64_t)length;
  m->i[BINS] = m->i[ONE_SIDED] && !m->i[INVERSE] ? m->i[LENGTH] / 2 + 1 : m->i[LENGTH];
  memcpy(shape, x->shape, sizeof shape);
  shape[axis] = m->i[BINS];
  shape[x->ndim - 1] = real_out ? 1 : 2;
  more_result(p, 0, x->type, x->ndim, shape);
  plan_transforms(p, run_dft_fast, run_dft, m->out[0].count / shape[x->ndim - 1]);
}

/* ---------------------------------------------------------------- STFT */

static void run_stft(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t frames = m->out[0].shape[1], bins = m->i[BINS], length = m->i[LENGTH];
  for (int64_t u = first; u < last; u++) {
    const int64_t k = u % bins, frame = u / bins % frames, batch = u / bins / frames;
    const points q = {m, a->in[0], a->in[2], batch * m->i[SIZE] + frame * m->i[STEP], 1, length, length};
    double re, im;
    transform(&q, k, &re, &im);
    more_put(&m->out[0], a->out[0], 2 * u, re);
    more_put(&m->out[0], a->out[0], 2 * u + 1, im);
  }
}

void more_setup_stft(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0];
  more_real(p, 0);
  more_rank(p, 0, 2, 3);
  more_same_type(p, 0, 2);
  m->i[ONE_SIDED] = more_int(p, "onesided", 1) != 0;
  const double step = more_operand_number(p, 1, 1);
  const double own = more_operand(p, 2) ? (double)m->in[2].count : (double)(x->ndim > 1 ? x->shape[1] : 0);
  const double length = more_operand_number(p, 3, own);
  if (!more_ok(p)) return;
  m->i[COMPLEX_IN] = x->ndim == 3 && x->shape[2] == 2;
  if (x->ndim == 3 && x->shape[2] != 1 && x->shape[2] != 2)
    more_refuse(p, "the last dimension of operand 0 must be 1 or 2");
  m->i[SIZE] = x->shape[1];
  if (!(step >= 1 && step < 0x1p31) || !(length >= 1 && length <= (double)m->i[SIZE]))
    more_refuse(p, "its frames of %g with step %g do not fit a signal of %lld", length, step, (long long)m->i[SIZE]);
  if (!more_ok(p)) return;
  m->i[STEP] = (int64_t)step;
  m->i[LENGTH] = (int64_t)length;
  more_shape_is(p, 2, 1, &m->i[LENGTH]);
  m->i[BINS] = m->i[ONE_SIDED] ? m->i[LENGTH] / 2 + 1 : m->i[LENGTH];
  const int64_t shape[] = {x->shape[0], (m->i[SIZE] - m->i[LENGTH]) / m->i[STEP] + 1, m->i[BINS], 2};
  more_result(p, 0, x->type, 4, shape);
  plan_transforms(p, run_stft_fast, run_stft, m->out[0].count / 2);
}

/* ---------------------------------------------------------------- windows */

static void run_window(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; i++) {
    const double angle = 2 * PI * (double)i / (double)m->i[LENGTH];
    more_put(&m->out[0], a->out[0], i, m->f[0] - m->f[1] * cos(angle) + m->f[2] * cos(2 * angle));
  }
}

void more_setup_window(more_plan *p) {
  more_op *m = p->m;
  const char kind = p->entry->name[1]; /* Hann, Hamming, Blackman */
  const bool hamming = p->entry->name[2] == 'm';
  const double size = more_operand_number(p, 0, 0);
  const int type = more_type_of_onnx(more_int(p, "output_datatype", 1));
  if (!(size >= 0 && size < 0x1p40)) more_refuse(p, "its size is not a size");
  if (!more_ok(p)) return;
  const int64_t n = (int64_t)size;
  m->i[LENGTH] = more_int(p, "periodic", 1) != 0 || n < 2 ? n : n - 1;
  m->f[0] = kind == 'l' ? 0.42 : hamming ? 25.0 / 46 : 0.5;
  m->f[1] = kind == 'l' ? 0.5 : hamming ? 21.0 / 46 : 0.5;
  m->f[2] = kind == 'l' ? 0.08 : 0;
  more_result(p, 0, type, 1, &n);
  more_work(p, run_window, n, 10 * (double)n);
}

/* ---------------------------------------------------------------- MelWeightMatrix */

static int64_t edge(const more_op *m, int64_t i) {
  const double mel = m->f[0] + (double)i * m->f[1];
  const double bin = floor((double)(m->i[LENGTH] + 1) * 700 * (pow(10, mel / 2595) - 1) / m->f[2]);
  return bin < 0x1p62 ? (int64_t)bin : (int64_t)1 << 62; /* a sample rate next to 0 */
}

static void run_mel(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t bins = m->out[0].shape[1];
  for (int64_t u = first; u < last; u++) {
    const int64_t j = u / bins, low = edge(m, u % bins), center = edge(m, u % bins + 1), high = edge(m, u % bins + 2);
    double x = 0;
    if (low == center && j == center) x = 1;
    else if (j >= low && j <= center && low != center) x = (double)(j - low) / (double)(center - low);
    if (j >= center && j < high) x = (double)(high - j) / (double)(high - center);
    more_put(&m->out[0], a->out[0], u, x);
  }
}

void more_setup_mel(more_plan *p) {
  more_op *m = p->m;
  const double mels = more_operand_number(p, 0, 0), length = more_operand_number(p, 1, 0);
  const double low = more_operand_number(p, 3, 0), high = more_operand_number(p, 4, 0);
  m->f[2] = more_operand_number(p, 2, 0);
  const int type = more_type_of_onnx(more_int(p, "output_datatype", 1));
  if (!(mels >= 1 && mels < 0x1p31) || !(length >= 1 && length < 0x1p31) || !(m->f[2] > 0) || !(low >= 0) ||
      !(high > low) || !(high < 1e9))
    more_refuse(p, "its operands are out of range");
  if (!more_ok(p)) return;
  m->i[LENGTH] = (int64_t)length;
  m->f[0] = 2595 * log10(1 + low / 700);
  m->f[1] = (2595 * log10(1 + high / 700) - m->f[0]) / (mels + 2);
  const int64_t shape[] = {m->i[LENGTH] / 2 + 1, (int64_t)mels};
  more_result(p, 0, type, 2, shape);
  more_work(p, run_mel, m->out[0].count, 100 * (double)m->out[0].count);
}
