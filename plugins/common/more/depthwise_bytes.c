/* QLinearConv and ConvInteger of one channel a group: the channel is copied as 16-bit numbers less their zero point,
 * with its padding, and two taps are multiplied and added at once. A unit is a channel of an image of the result. */
#include "conv_bytes.h"

#include "window.h"

enum { VECTOR = 16, SUMS = 1024, MOST_NUMBERS = 1 << 22, DIMS = 3 };

/* The window in three dimensions, and the copy: its planes, rows, columns, and columns of a phase; columns a stride
 * apart lie together (lines.h). */
typedef struct dims {
  int64_t in[DIMS], out[DIMS], kernel[DIMS], stride[DIMS], dilation[DIMS], pad[DIMS], padded[DIMS], phase, taps;
} dims;

static dims dims_of(const more_op *m) {
  dims w = {.taps = 1};
  for (int d = 0; d < DIMS; d++) {
    const int64_t k = d - (DIMS - m->i[W_SPATIAL]);
    w.in[d] = k < 0 ? 1 : m->i[W_IN + k];
    w.out[d] = k < 0 ? 1 : m->i[W_OUT + k];
    w.kernel[d] = k < 0 ? 1 : m->i[W_KERNEL + k];
    w.stride[d] = k < 0 ? 1 : m->i[W_STRIDE + k];
    w.dilation[d] = k < 0 ? 1 : m->i[W_DILATION + k];
    w.pad[d] = k < 0 ? 0 : m->i[W_PAD + k];
    w.padded[d] = (w.out[d] - 1) * w.stride[d] + (w.kernel[d] - 1) * w.dilation[d] + 1;
    w.taps *= w.kernel[d];
  }
  w.phase = (w.padded[2] - 1) / w.stride[2] + 1;
  return w;
}

static int64_t row_of(const dims *w) {
  return w->phase * w->stride[2];
}

static void copy_padded(const dims *w, const uint8_t *x, bool is_signed, int32_t zero, int16_t *to) {
  const int64_t row = row_of(w), step = w->stride[2], left = w->pad[2] < w->padded[2] ? w->pad[2] : w->padded[2];
  const int64_t have = w->padded[2] - left < w->in[2] ? w->padded[2] - left : w->in[2];
  for (int64_t k = 0; k < w->padded[0] * w->padded[1]; k++, to += row) {
    const int64_t z = k / w->padded[1] - w->pad[0], y = k % w->padded[1] - w->pad[1];
    memset(to, 0, (size_t)row * sizeof *to);
    if (z < 0 || z >= w->in[0] || y < 0 || y >= w->in[1] || have <= 0) continue;
    const uint8_t *from = x + (z * w->in[1] + y) * w->in[2];
    const int8_t *with_sign = (const int8_t *)from;
    for (int64_t i = 0; i < have && step == 1 && is_signed; i++) to[left + i] = (int16_t)(with_sign[i] - zero);
    for (int64_t i = 0; i < have && step == 1 && !is_signed; i++) to[left + i] = (int16_t)(from[i] - zero);
    for (int64_t i = 0, at = left % step, in = left / step; i < have && step > 1; i++) {
      to[at * w->phase + in] = (int16_t)((is_signed ? with_sign[i] : from[i]) - zero);
      if (++at == step) at = 0, in++;
    }
  }
  memset(to, 0, VECTOR * sizeof *to);
}

/* Where each tap lies, from the first on; one more, the last again, makes their number even. */
static void find_taps(const dims *w, int64_t *at) {
  int64_t n = 0;
  for (int64_t z = 0; z < w->kernel[0]; z++) {
    for (int64_t y = 0; y < w->kernel[1]; y++) {
      for (int64_t k = 0; k < w->kernel[2]; k++) {
        const int64_t x = k * w->dilation[2];
        at[n++] = (z * w->dilation[0] * w->padded[1] + y * w->dilation[1]) * row_of(w) + x % w->stride[2] * w->phase +
                  x / w->stride[2];
      }
    }
  }
  at[n] = at[n - 1];
}

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)

#include <immintrin.h>

/* Places of a row, some more than n; two weights in each of pairs. */
__attribute__((target("avx2"))) static void sum_row(const int16_t *in, const int64_t *at, const int32_t *pairs,
                                                    int64_t taps, int64_t n, int32_t *sums) {
  for (int64_t x = 0; x < n; x += VECTOR, in += VECTOR, sums += VECTOR) {
    __m256i low = _mm256_setzero_si256(), high = low;
    for (int64_t k = 0; k < taps; k += 2) {
      const __m256i a = _mm256_loadu_si256((const void *)(in + at[k]));
      const __m256i b = _mm256_loadu_si256((const void *)(in + at[k + 1])), w = _mm256_set1_epi32(pairs[k / 2]);
      low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), w));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), w));
    }
    _mm256_storeu_si256((void *)sums, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256((void *)(sums + VECTOR / 2), _mm256_permute2x128_si256(low, high, 0x31));
  }
}

#else

static void sum_row(const int16_t *in, const int64_t *at, const int32_t *pairs, int64_t taps, int64_t n,
                    int32_t *sums) {
  for (int64_t x = 0; x < n; x++) {
    sums[x] = 0;
    for (int64_t k = 0; k < taps; k++) {
      const uint32_t pair = (uint32_t)pairs[k / 2];
      sums[x] += in[x + at[k]] * (int16_t)(uint16_t)(k % 2 == 0 ? pair & 0xffff : pair >> 16);
    }
  }
}

#endif

static void run(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const conv_bytes f = conv_bytes_of(m);
  const dims w = dims_of(m);
  const int64_t even = (w.taps + 1) / 2 * 2, channels = f.groups * f.out_per, places = window_places(m);
  const int64_t rows = w.out[0] * w.out[1], size = w.in[0] * w.in[1] * w.in[2], row = row_of(&w);
  const bool x_signed = m->in[0].type == REF_TYPE_I8, w_signed = m->in[f.weights].type == REF_TYPE_I8;
  const int32_t x_zero = (int32_t)conv_number(m, a, f.x_point, 0, 0);
  int64_t *at = a->scratch, work = 0;
  int32_t *pairs = (int32_t *)(void *)(at + even), sums[SUMS + VECTOR];
  int16_t *copy = (int16_t *)(void *)(pairs + even / 2);
  find_taps(&w, at);
  for (int64_t u = first; u < last; u++) {
    const int64_t c = u % channels, from = u / channels * f.groups + c / f.out_per;
    const int32_t w_zero = (int32_t)conv_number(m, a, f.w_point, c, 0);
    const uint8_t *weights = (const uint8_t *)a->in[f.weights] + c * w.taps;
    for (int64_t k = 0; k < even; k += 2) {
      uint32_t pair = 0;
      for (int64_t i = 0; i < 2 && k + i < w.taps; i++) {
        const int32_t by = (w_signed ? (int8_t)weights[k + i] : weights[k + i]) - w_zero;
        pair |= (uint32_t)(uint16_t)by << 16 * i;
      }
      pairs[k / 2] = (int32_t)pair;
    }
    if (more_tick(m, &work, w.padded[0] * w.padded[1] * row / 2)) return;
    copy_padded(&w, (const uint8_t *)a->in[0] + from * size, x_signed, x_zero, copy);
    int64_t have = 0, done = u * places;
    for (int64_t r = 0; r < rows; r++) {
      const int64_t line = (r / w.out[1] * w.stride[0] * w.padded[1] + r % w.out[1] * w.stride[1]) * row;
      for (int64_t x = 0, n; x < w.out[2]; x += n, have += n) {
        n = w.out[2] - x < SUMS ? w.out[2] - x : SUMS;
        if (have + n > SUMS) {
          conv_bytes_put(m, a, sums, 0, c, done, have);
          done += have;
          have = 0;
        }
        sum_row(copy + line + x, at, pairs, w.taps, n, sums + have);
        if (more_tick(m, &work, n * w.taps / 8 + 8)) return;
      }
    }
    conv_bytes_put(m, a, sums, 0, c, done, have);
  }
}

bool depthwise_bytes_plan(more_plan *p) {
  more_op *m = p->m;
  const dims w = dims_of(m);
  double numbers = (double)w.padded[0] * (double)w.padded[1] * (double)row_of(&w);
  if (m->i[W_SPATIAL] > DIMS || numbers > MOST_NUMBERS) return false;
  more_loop(p, run, m->in[0].shape[0] * m->out[0].shape[1],
            (double)m->out[0].count * (0.1 * (double)w.taps + 1) + 0.3 * numbers);
  m->part_scratch = (uint64_t)(w.taps + 1) * 12 + (uint64_t)(numbers + 2 * VECTOR) * sizeof(int16_t);
  return true;
}
