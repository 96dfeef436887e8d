/* QLinearConv and ConvInteger through tiles of bytes (byte_tiles.h): the patches of some places are gathered, a line for each
 * tap of each channel, and multiplied by the weights. Of one channel a group, lines are added up one by one. */
#include "conv_bytes.h"

#include "byte_tiles.h"
#include "window.h"

#include <math.h>

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
#define NARROW __attribute__((target("avx2")))
#else
#define NARROW
#endif

/* A row of places [first, first + n) along the last dimension, of tap k: where its elements lie from `from` on. */
static void gather_row(const more_op *m, const uint8_t *from, int64_t first, int64_t n, int64_t k, uint8_t zero,
                       uint8_t *to) {
  const int64_t d = m->i[W_SPATIAL] - 1, stride = m->i[W_STRIDE + d], size = m->i[W_IN + d];
  int64_t at = first * stride + k * m->i[W_DILATION + d] - m->i[W_PAD + d];
  if (stride == 1) {
    const int64_t left = at >= 0 ? 0 : -at < n ? -at : n, have = size - at < n ? size - at : n;
    if (left > 0) memset(to, zero, (size_t)left);
    if (have > left) memcpy(to + left, from + at + left, (size_t)(have - left));
    const int64_t end = have > left ? have : left;
    if (end < n) memset(to + end, zero, (size_t)(n - end));
    return;
  }
  for (int64_t i = 0; i < n; i++, at += stride) to[i] = at >= 0 && at < size ? from[at] : zero;
}

/* Places [first, first + n) of a plane, of tap t. */
static void gather_tap(const more_op *m, const uint8_t *plane, int64_t first, int64_t n, int64_t t, uint8_t zero,
                       uint8_t *to) {
  const int64_t inner = m->i[W_SPATIAL] - 1, row = m->i[W_OUT + inner], taps = m->i[W_KERNEL + inner];
  int64_t at[REF_SPATIAL] = {0}, place[REF_SPATIAL] = {0}, begin = first % row, tap = t / taps, rest = first / row;
  for (int64_t d = inner - 1; d >= 0; d--) { /* where the tap is, of the row of places */
    place[d] = rest % m->i[W_OUT + d];
    at[d] = place[d] * m->i[W_STRIDE + d] + tap % m->i[W_KERNEL + d] * m->i[W_DILATION + d] - m->i[W_PAD + d];
    rest /= m->i[W_OUT + d];
    tap /= m->i[W_KERNEL + d];
  }
  for (int64_t some; n > 0; n -= some, to += some, begin = 0) {
    int64_t base = 0;
    bool inside = true;
    some = row - begin < n ? row - begin : n;
    for (int64_t d = 0; d < inner; d++) {
      inside = inside && at[d] >= 0 && at[d] < m->i[W_IN + d];
      base = (base + at[d]) * m->i[W_IN + d + 1];
    }
    if (inside) gather_row(m, plane + base, begin, some, t % taps, zero, to);
    else memset(to, zero, (size_t)some);
    for (int64_t d = inner - 1; d >= 0; d--) { /* the next row */
      at[d] += m->i[W_STRIDE + d];
      if (++place[d] < m->i[W_OUT + d]) break;
      at[d] -= m->i[W_STRIDE + d] * m->i[W_OUT + d];
      place[d] = 0;
    }
  }
}

/* sums[i] += w * (x[i] - zero), of one tap. */
NARROW static void add_tap(int32_t *sums, const uint8_t *x, bool is_signed, int32_t zero, int32_t w, int64_t n) {
  const int8_t *with_sign = (const int8_t *)x;
  for (int64_t i = 0; i < n && is_signed; i++) sums[i] += w * (with_sign[i] - zero);
  for (int64_t i = 0; i < n && !is_signed; i++) sums[i] += w * (x[i] - zero);
}

/* Rounded, with the zero point added, as bytes; NaN is 0. */
NARROW static void round_sums(const int32_t *sums, int64_t n, int32_t plus, float scale, float zero, bool is_signed,
                              uint8_t *out) {
  const float least = is_signed ? -128.0F : 0.0F, most = is_signed ? 127.0F : 255.0F;
  for (int64_t i = 0; i < n; i++) {
    const float y = rintf((float)(sums[i] + plus) * scale) + zero;
    const float low = y < least ? least : y, high = low > most ? most : low;
    out[i] = (uint8_t)(int32_t)(y == y ? high : 0.0F);
  }
}

void conv_bytes_put(const more_op *m, const more_args *a, const int32_t *sums, int32_t plus, int64_t c, int64_t at,
                    int64_t n) {
  const int32_t far = INT32_C(1) << 30;
  if (m->out[0].type == REF_TYPE_I32) {
    int32_t *out = (int32_t *)a->out[0] + at;
    for (int64_t i = 0; i < n; i++) out[i] = sums[i] + plus;
    return;
  }
  const float scale =
      (float)conv_number(m, a, 1, 0, 1) * (float)conv_number(m, a, 4, c, 1) / (float)conv_number(m, a, 6, 0, 1);
  const float zero = (float)conv_number(m, a, 7, 0, 0);
  const bool is_signed = m->out[0].type == REF_TYPE_I8;
  const int32_t bias = (int32_t)conv_number(m, a, 8, c, 0);
  uint8_t *out = (uint8_t *)a->out[0] + at;
  if (bias < far && bias > -far) {
    round_sums(sums, n, plus + bias, scale, zero, is_signed, out);
    return;
  }
  for (int64_t i = 0; i < n; i++) { /* beyond what int32 holds */
    const float y = rintf((float)((int64_t)sums[i] + plus + bias) * scale) + zero;
    const float least = is_signed ? -128.0F : 0.0F, low = y > least ? y : least;
    out[i] = (uint8_t)(int32_t)(low < least + 255.0F ? low : least + 255.0F);
  }
}

/* A unit is up to BYTE_COLS places of a group of an image. */
static void run(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const conv_bytes f = conv_bytes_of(m);
  const int64_t places = window_places(m), plane = more_count(m->i + W_IN, 0, m->i[W_SPATIAL]);
  const int64_t across = (places + BYTE_COLS - 1) / BYTE_COLS, depth = f.per * f.taps;
  const bool x_signed = m->in[0].type == REF_TYPE_I8, w_signed = m->in[f.weights].type == REF_TYPE_I8;
  const int32_t x_zero = (int32_t)conv_number(m, a, f.x_point, 0, 0);
  const uint8_t *x = a->in[0], *weights = a->in[f.weights];
  int64_t work = 0;
  for (int64_t u = first; u < last; u++) {
    const int64_t place = u % across * BYTE_COLS, group = u / across % f.groups, image = u / across / f.groups;
    const int64_t cols = places - place < BYTE_COLS ? places - place : BYTE_COLS;
    const uint8_t *planes = x + (image * f.groups + group) * f.per * plane, *right = planes + place;
    int64_t right_row = plane;
    if (!f.direct) {
      uint8_t *lines = a->scratch;
      for (int64_t k = 0; k < depth; k++)
        gather_tap(m, planes + k / f.taps * plane, place, cols, k % f.taps, (uint8_t)x_zero, lines + k * BYTE_COLS);
      right = lines;
      right_row = BYTE_COLS;
    }
    if (more_tick(m, &work, depth * cols / 8)) return;
    for (int64_t r = 0, rows; r < f.out_per; r += rows) {
      int32_t sums[BYTE_ROWS][BYTE_COLS], all[BYTE_ROWS];
      rows = f.out_per - r < BYTE_ROWS ? f.out_per - r : BYTE_ROWS;
      const int64_t c = group * f.out_per + r, at = ((image * f.groups * f.out_per + c) * places) + place;
      if (f.per == 1) rows = 1;
      byte_block b = {.left = weights + c * depth,
                      .right = right,
                      .rows = rows,
                      .cols = cols,
                      .depth = depth,
                      .right_row = right_row,
                      .left_signed = w_signed,
                      .right_signed = x_signed};
      for (int64_t k = 0; k < rows; k++) b.zero[k] = (int16_t)conv_number(m, a, f.w_point, c + k, 0);
      if (f.per == 1) {
        memset(sums[0], 0, (size_t)cols * sizeof sums[0][0]);
        for (int64_t k = 0; k < depth; k++) {
          const int32_t w = w_signed ? (int8_t)b.left[k] : b.left[k];
          add_tap(sums[0], right + k * right_row, x_signed, x_zero, w - b.zero[0], cols);
        }
        all[0] = 0;
      } else {
        byte_tiles_run(&b, sums, all);
      }
      for (int64_t k = 0; k < rows; k++) conv_bytes_put(m, a, sums[k], -x_zero * all[k], c + k, at + k * places, cols);
      if (more_tick(m, &work, depth * cols * rows / 8)) return;
    }
  }
}

bool conv_bytes_plan(more_plan *p) {
  more_op *m = p->m;
  const conv_bytes f = conv_bytes_of(m);
  const int64_t depth = f.per * f.taps, places = window_places(m);
  const bool rounds = m->out[0].type != REF_TYPE_I32;
  if (!byte_tiles_here() || depth < 1 || depth > CONV_BYTES_DEPTH || places < 1 || m->out[0].count < 1 ||
      m->in[0].count < 1)
    return false;
  if (rounds && (m->in[1].type != REF_TYPE_F32 || m->in[4].type != REF_TYPE_F32 || m->in[6].type != REF_TYPE_F32))
    return false;
  if (f.per == 1 && !f.direct && depthwise_bytes_plan(p)) return true;
  const int64_t units = m->in[0].shape[0] * f.groups * ((places + BYTE_COLS - 1) / BYTE_COLS);
  more_loop(p, run, units, (double)m->out[0].count * ((double)depth * (f.per == 1 ? 0.2 : 0.08) + 1));
  if (!f.direct) m->part_scratch = (uint64_t)(depth * BYTE_COLS);
  return true;
}
