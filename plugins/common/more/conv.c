/* Convolutions of any type, of quantized tensors, with offsets, and their kin: Col2Im, CausalConvWithState. */
#include "conv_bytes.h"
#include "plugins/common/ref/lines.h"
#include "window.h"

#include <math.h>

enum { GROUPS = W_OWN, IN_PER_GROUP, OUT_PER_GROUP, WEIGHTS, X_POINT, W_POINT, OFFSET_GROUPS };
enum { NO_POINT = -1 };

double conv_number(const more_op *m, const more_args *a, int64_t k, int64_t i, double absent) {
  if (k < 0 || a->in[k] == NULL) return absent;
  return more_get(&m->in[k], a->in[k], m->in[k].count == 1 ? 0 : i % m->in[k].count);
}

/* The sum of products at unit u of the result [N, M, places]. */
static double product(const more_op *m, const more_args *a, int64_t u) {
  const int64_t taps = window_taps(m), places = window_places(m), plane = more_count(m->i + W_IN, 0, m->i[W_SPATIAL]);
  const int64_t per = m->i[IN_PER_GROUP], channels = m->out[0].shape[1], c = u / places % channels;
  const int64_t group = c / m->i[OUT_PER_GROUP], w = m->i[WEIGHTS];
  const int64_t base = (u / places / channels * m->i[GROUPS] + group) * per * plane;
  const double xz = conv_number(m, a, m->i[X_POINT], 0, 0), wz = conv_number(m, a, m->i[W_POINT], c, 0);
  double sum = 0;
  int64_t work = 0;
  for (int64_t k = 0; k < per; k++) {
    for (int64_t t = 0; t < taps; t++) {
      if (more_tick(m, &work, 8)) return 0;
      const int64_t at = more_window_at(m, u % places, t, NULL);
      if (at < 0) continue;
      sum += (more_get(&m->in[0], a->in[0], base + k * plane + at) - xz) *
             (more_get(&m->in[w], a->in[w], (c * per + k) * taps + t) - wz);
    }
  }
  return sum;
}

static void run_conv(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t places = window_places(m), channels = m->out[0].shape[1];
  for (int64_t u = first; u < last; u++)
    more_put(&m->out[0], a->out[0], u,
             product(m, a, u) + conv_number(m, a, m->i[X_POINT] < 0 ? 2 : -1, u / places % channels, 0));
}

/* A sum as the result has it: int32, or rounded to bytes. */
static void put_sum(const more_op *m, const more_args *a, int64_t at, int64_t c, double sum) {
  if (m->out[0].type == REF_TYPE_I32) {
    more_put(&m->out[0], a->out[0], at, sum);
    return;
  }
  const double least = more_lowest(m->out[0].type), most = more_highest(m->out[0].type);
  const double scaled = more_rescale(m, 1, sum + conv_number(m, a, 8, c, 0), conv_number(m, a, 1, 0, 1),
                                     conv_number(m, a, 4, c, 1), conv_number(m, a, 6, 0, 1));
  const double y = nearbyint(scaled) + conv_number(m, a, 7, 0, 0);
  more_put(&m->out[0], a->out[0], at, y < least ? least : y > most ? most : y);
}

static void run_qlinear(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t places = window_places(m), channels = m->out[0].shape[1];
  for (int64_t u = first; u < last; u++) put_sum(m, a, u, u / places % channels, product(m, a, u));
}

/* What a patch of the input may have for its sums to be made of a copy. */
enum { MOST_PATCH = 4608, MOST_TAPS = 128, MOST_CHANNELS = 2048 };

/* Of bytes. A unit is a place of an image: what the window has there is copied, then multiplied for each channel. */
static void run_bytes(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t taps = window_taps(m), places = window_places(m), plane = more_count(m->i + W_IN, 0, m->i[W_SPATIAL]);
  const int64_t per = m->i[IN_PER_GROUP], channels = m->out[0].shape[1], w = m->i[WEIGHTS], depth = per * taps;
  const int64_t xz = (int64_t)conv_number(m, a, m->i[X_POINT], 0, 0);
  const bool rounds = m->out[0].type != REF_TYPE_I32 && m->in[1].type == REF_TYPE_F32;
  const double least = more_lowest(m->out[0].type), most = more_highest(m->out[0].type);
  const double yz = rounds ? conv_number(m, a, 7, 0, 0) : 0;
  int16_t patch[MOST_PATCH];
  int32_t w_zero[MOST_CHANNELS], bias[MOST_CHANNELS];
  float scale[MOST_CHANNELS]; /* as more_rescale has it */
  int64_t at[MOST_TAPS];
  for (int64_t c = 0; c < channels; c++) {
    w_zero[c] = (int32_t)conv_number(m, a, m->i[W_POINT], c, 0);
    if (!rounds) continue;
    bias[c] = (int32_t)conv_number(m, a, 8, c, 0);
    scale[c] =
        (float)conv_number(m, a, 1, 0, 1) * (float)conv_number(m, a, 4, c, 1) / (float)conv_number(m, a, 6, 0, 1);
  }
  for (int64_t u = first; u < last; u++) {
    const int64_t image = u / places, place = u % places;
    for (int64_t t = 0; t < taps; t++) at[t] = more_window_at(m, place, t, NULL);
    for (int64_t c = 0, group = -1, all = 0; c < channels; c++) {
      if (c / m->i[OUT_PER_GROUP] != group) {
        group = c / m->i[OUT_PER_GROUP];
        all = 0;
        for (int64_t k = 0; k < depth; k++) {
          const int64_t base = ((image * m->i[GROUPS] + group) * per + k / taps) * plane, tap = at[k % taps];
          patch[k] = (int16_t)(tap < 0 ? 0 : more_get_int(&m->in[0], a->in[0], base + tap) - xz);
          all += patch[k];
        }
      }
      const int64_t to = (image * channels + c) * places + place;
      const int64_t sum = more_dot(m->in[w].type, patch, (const char *)a->in[w] + c * depth, depth) - w_zero[c] * all;
      if (!rounds) {
        put_sum(m, a, to, c, (double)sum);
        continue;
      }
      const double y = (double)nearbyintf((float)(sum + bias[c]) * scale[c]) + yz;
      more_put(&m->out[0], a->out[0], to, y < least ? least : y > most ? most : y);
    }
  }
}

conv_bytes conv_bytes_of(const more_op *m) {
  conv_bytes f = {.groups = m->i[GROUPS],
                  .per = m->i[IN_PER_GROUP],
                  .out_per = m->i[OUT_PER_GROUP],
                  .taps = window_taps(m),
                  .weights = m->i[WEIGHTS],
                  .x_point = m->i[X_POINT],
                  .w_point = m->i[W_POINT]};
  f.direct = f.taps == 1 && window_places(m) == more_count(m->i + W_IN, 0, m->i[W_SPATIAL]);
  for (int64_t d = 0; d < m->i[W_SPATIAL]; d++)
    f.direct = f.direct && m->i[W_STRIDE + d] == 1 && m->i[W_PAD + d] == 0 && m->i[W_END + d] == 0;
  return f;
}

/* Once a node of bytes is read: the faster kernel, where its sums allow that. */
static void take_bytes(more_plan *p) {
  const more_op *m = p->m;
  if (!more_ok(p) || conv_bytes_plan(p)) return;
  const int64_t taps = window_taps(m), channels = m->out[0].shape[1];
  if (taps > MOST_TAPS || m->i[IN_PER_GROUP] > MOST_PATCH || taps * m->i[IN_PER_GROUP] > MOST_PATCH) return;
  if (channels == 0 || channels > MOST_CHANNELS) return;
  more_work(p, run_bytes, m->out[0].count / channels, 0.1 * m->steps);
}

/* Weights are operand w. */
static void convolution(more_plan *p, uint32_t w, int type, more_kernel run) {
  more_op *m = p->m;
  int64_t shape[MORE_DIMS];
  const int64_t groups = more_int(p, "group", 1);
  if (m->in[w].ndim != m->in[0].ndim || m->in[0].ndim < 3)
    more_refuse(p, "operands 0 and %u must have as many dimensions", w);
  if (!more_ok(p)) return;
  more_window(p, m->in[w].shape + 2);
  if (!more_ok(p)) return;
  const int64_t *weights = m->in[w].shape, channels = m->in[0].shape[1];
  if (groups < 1 || channels % groups != 0 || weights[0] % groups != 0 || weights[1] != channels / groups)
    more_refuse(p, "%lld channels in %lld groups do not fit its weights", (long long)channels, (long long)groups);
  if (!more_ok(p)) return;
  m->i[GROUPS] = groups;
  m->i[IN_PER_GROUP] = weights[1];
  m->i[OUT_PER_GROUP] = weights[0] / groups > 0 ? weights[0] / groups : 1;
  m->i[WEIGHTS] = w;
  shape[0] = m->in[0].shape[0];
  shape[1] = weights[0];
  memcpy(shape + 2, m->i + W_OUT, (size_t)m->i[W_SPATIAL] * sizeof *shape);
  more_result(p, 0, type, m->in[0].ndim, shape);
  more_work(p, run, m->out[0].count, (double)m->out[0].count * (double)window_taps(m) * (double)weights[1]);
}

/* One number, or one for each channel of the result. */
static void per_channel(more_plan *p, uint32_t k, bool one) {
  const int64_t channels = p->m->out[0].shape[1];
  if (more_ok(p) && more_operand(p, k) && p->m->in[k].count != 1 && (one || p->m->in[k].count != channels))
    more_refuse(p, "operand %u must be one number%s", k, one ? "" : " or one for each channel");
}

void more_setup_conv(more_plan *p) {
  more_number(p, 0);
  more_same_type(p, 0, 1);
  more_same_type(p, 0, 2);
  p->m->i[X_POINT] = p->m->i[W_POINT] = NO_POINT;
  convolution(p, 1, p->m->in[0].type, run_conv);
  if (more_ok(p)) more_shape_is(p, 2, 1, &p->m->out[0].shape[1]);
}

static void bytes_only(more_plan *p, uint32_t k) {
  const int type = p->m->in[k].type;
  if (more_operand(p, k) && type != REF_TYPE_I8 && type != REF_TYPE_U8)
    more_refuse(p, "operand %u must be int8 or uint8", k);
}

void more_setup_conv_integer(more_plan *p) {
  bytes_only(p, 0);
  bytes_only(p, 1);
  more_same_type(p, 0, 2);
  more_same_type(p, 1, 3);
  p->m->i[X_POINT] = 2;
  p->m->i[W_POINT] = 3;
  convolution(p, 1, REF_TYPE_I32, run_conv);
  per_channel(p, 2, true);
  per_channel(p, 3, false);
  take_bytes(p);
}

void more_setup_qlinear_conv(more_plan *p) {
  bytes_only(p, 0);
  bytes_only(p, 3);
  bytes_only(p, 7);
  more_same_type(p, 0, 2);
  more_same_type(p, 3, 5);
  more_real(p, 1);
  more_real(p, 4);
  more_real(p, 6);
  if (more_operand(p, 8) && p->m->in[8].type != REF_TYPE_I32) more_refuse(p, "operand 8 must be int32");
  p->m->i[X_POINT] = 2;
  p->m->i[W_POINT] = 5;
  convolution(p, 3, p->m->in[7].type, run_qlinear);
  for (uint32_t k = 1; k < 8; k++)
    if (k != 3) per_channel(p, k, k != 4 && k != 5);
  if (more_ok(p)) more_shape_is(p, 8, 1, &p->m->out[0].shape[1]);
  take_bytes(p);
}

/* ---------------------------------------------------------------- DeformConv */

/* Operand 0 between four elements; nothing outside. */
static double between(const more_op *m, const void *x, int64_t base, double h, double w) {
  const int64_t rows = m->i[W_IN], cols = m->i[W_IN + 1];
  double sum = 0;
  if (!(h > -1 && w > -1 && h < (double)rows && w < (double)cols)) return 0;
  const int64_t top = (int64_t)floor(h), left = (int64_t)floor(w);
  for (int64_t i = top; i < top + 2; i++) {
    for (int64_t j = left; j < left + 2; j++) {
      if (i < 0 || j < 0 || i >= rows || j >= cols) continue;
      sum += (1 - fabs(h - (double)i)) * (1 - fabs(w - (double)j)) * more_get(&m->in[0], x, base + i * cols + j);
    }
  }
  return sum;
}

static void run_deform(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t taps = window_taps(m), places = window_places(m), plane = m->i[W_IN] * m->i[W_IN + 1];
  const int64_t per = m->i[IN_PER_GROUP], channels = m->out[0].shape[1], all = m->in[0].shape[1];
  const int64_t groups = m->i[OFFSET_GROUPS], cols = m->i[W_OUT + 1], kw = m->i[W_KERNEL + 1];
  int64_t work = 0;
  for (int64_t u = first; u < last; u++) {
    const int64_t place = u % places, c = u / places % channels, image = u / places / channels;
    double sum = a->in[3] != NULL ? more_get(&m->in[3], a->in[3], c) : 0;
    for (int64_t k = 0; k < per; k++) {
      const int64_t channel = c / m->i[OUT_PER_GROUP] * per + k, group = channel / (all / groups);
      for (int64_t t = 0; t < taps; t++) {
        if (more_tick(m, &work, 64)) return;
        const int64_t of_tap = (image * groups + group) * taps + t;
        double h = (double)(place / cols * m->i[W_STRIDE] + t / kw * m->i[W_DILATION] - m->i[W_PAD]);
        double w = (double)(place % cols * m->i[W_STRIDE + 1] + t % kw * m->i[W_DILATION + 1] - m->i[W_PAD + 1]);
        h += more_get(&m->in[2], a->in[2], 2 * of_tap * places + place);
        w += more_get(&m->in[2], a->in[2], (2 * of_tap + 1) * places + place);
        const double mask = a->in[4] != NULL ? more_get(&m->in[4], a->in[4], of_tap * places + place) : 1;
        sum += mask * between(m, a->in[0], (image * all + channel) * plane, h, w) *
               more_get(&m->in[1], a->in[1], (c * per + k) * taps + t);
      }
    }
    more_put(&m->out[0], a->out[0], u, sum);
  }
}

void more_setup_deform_conv(more_plan *p) {
  more_op *m = p->m;
  const int64_t groups = m->i[OFFSET_GROUPS] = more_int(p, "offset_group", 1);
  for (uint32_t k = 1; k < 5; k++) more_same_type(p, 0, k);
  more_real(p, 0);
  more_rank(p, 0, 4, 4);
  convolution(p, 1, m->in[0].type, run_deform);
  m->steps *= 16; /* each tap lies between four elements, whose place is computed */
  if (more_ok(p) && (groups < 1 || m->in[0].shape[1] % groups != 0))
    more_refuse(p, "offset_group does not divide its channels");
  if (!more_ok(p)) return;
  int64_t shape[] = {m->in[0].shape[0], groups * window_taps(m) * 2, m->i[W_OUT], m->i[W_OUT + 1]};
  more_shape_is(p, 2, 4, shape);
  shape[1] /= 2;
  more_shape_is(p, 4, 4, shape);
  more_shape_is(p, 3, 1, &m->out[0].shape[1]);
}

/* ---------------------------------------------------------------- Col2Im */

/* The window of Col2Im is that of the image, which is the result: m->i describes how the columns were taken from it. Of
 * float32: along the last dimension, places of a tap lie a stride apart in the image. */
static bool col2im_row(const more_op *m, const float *from, int64_t row, int64_t t, float *image, int64_t *work) {
  const int64_t inner = m->i[W_SPATIAL] - 1, n = m->i[W_OUT + inner], size = m->i[W_IN + inner];
  const int64_t stride = m->i[W_STRIDE + inner];
  int64_t tap = t / m->i[W_KERNEL + inner], rest = row, base = 0, step = size;
  for (int64_t d = inner - 1; d >= 0; d--) {
    const int64_t at =
        rest % m->i[W_OUT + d] * m->i[W_STRIDE + d] + tap % m->i[W_KERNEL + d] * m->i[W_DILATION + d] - m->i[W_PAD + d];
    if (at < 0 || at >= m->i[W_IN + d]) return true;
    base += at * step;
    step *= m->i[W_IN + d];
    rest /= m->i[W_OUT + d];
    tap /= m->i[W_KERNEL + d];
  }
  const int64_t first = t % m->i[W_KERNEL + inner] * m->i[W_DILATION + inner] - m->i[W_PAD + inner];
  const int64_t begin = first < 0 ? (stride - 1 - first) / stride : 0;
  const int64_t left = size - first, end = left <= 0 ? 0 : (left - 1) / stride + 1 < n ? (left - 1) / stride + 1 : n;
  float *to = image + base + first;
  if (stride == 1 && begin < end) ref_line_plus(to + begin, from + begin, end - begin);
  for (int64_t i = begin; i < end && stride != 1; i++) to[i * stride] += from[i];
  return !more_tick(m, work, n / 2 + 8);
}

static void run_col2im_f32(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t taps = window_taps(m), places = window_places(m), plane = more_count(m->i + W_IN, 0, m->i[W_SPATIAL]);
  const int64_t row = m->i[W_OUT + m->i[W_SPATIAL] - 1];
  int64_t work = 0;
  for (int64_t u = first; u < last; u++) {
    float *image = (float *)a->out[0] + u * plane;
    memset(image, 0, (size_t)plane * sizeof *image);
    for (int64_t t = 0; t < taps; t++) {
      const float *from = (const float *)a->in[0] + (u * taps + t) * places;
      for (int64_t k = 0; k < places / row; k++, from += row)
        if (!col2im_row(m, from, k, t, image, &work)) return;
    }
  }
}

static void run_col2im(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t taps = window_taps(m), places = window_places(m), plane = more_count(m->i + W_IN, 0, m->i[W_SPATIAL]);
  const more_value *y = &m->out[0];
  const bool whole = more_type_is_whole(y->type); /* these wrap */
  int64_t work = 0;
  for (int64_t u = first; u < last; u++) { /* a channel of an image */
    for (int64_t i = 0; i < plane; i++) more_put(&m->out[0], a->out[0], u * plane + i, 0);
    for (int64_t t = 0; t < taps; t++) {
      for (int64_t place = 0; place < places; place++) {
        const int64_t at = more_window_at(m, place, t, NULL);
        if (more_tick(m, &work, 8)) return;
        if (at < 0) continue;
        const int64_t from = (u * taps + t) * places + place, to = u * plane + at;
        if (whole)
          more_store_int(
              y->type, a->out[0], to,
              (int64_t)((uint64_t)more_get_int(y, a->out[0], to) + (uint64_t)more_get_int(&m->in[0], a->in[0], from)));
        else more_put(y, a->out[0], to, more_get(y, a->out[0], to) + more_get(&m->in[0], a->in[0], from));
      }
    }
  }
}

void more_setup_col2im(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0];
  int64_t *i = m->i, pads[2 * REF_SPATIAL] = {0}, shape[MORE_DIMS] = {0};
  for (int64_t d = 0; d < REF_SPATIAL; d++) i[W_STRIDE + d] = i[W_DILATION + d] = 1;
  const int64_t n = i[W_SPATIAL] = more_operand_ints(p, 1, i + W_IN, REF_SPATIAL);
  const int64_t blocks = more_operand_ints(p, 2, i + W_KERNEL, REF_SPATIAL);
  const int64_t strides = more_ints(p, "strides", i + W_STRIDE, REF_SPATIAL);
  const int64_t dilations = more_ints(p, "dilations", i + W_DILATION, REF_SPATIAL);
  const int64_t padded = more_ints(p, "pads", pads, 2 * REF_SPATIAL);
  more_number(p, 0);
  more_rank(p, 0, 3, 3);
  if (more_ok(p) && (n < 1 || blocks != n || (strides >= 0 && strides != n) || (dilations >= 0 && dilations != n) ||
                     (padded >= 0 && padded != 2 * n)))
    more_refuse(p, "its lists have different lengths");
  for (int64_t d = 0; d < n && more_ok(p); d++) {
    const int64_t list[] = {i[W_IN + d], i[W_KERNEL + d], i[W_STRIDE + d], i[W_DILATION + d], pads[d], pads[n + d]};
    for (int k = 0; k < 6; k++)
      if (list[k] < (k < 4) || list[k] > INT32_MAX) more_refuse(p, "one of its sizes is %lld", (long long)list[k]);
    if (!more_ok(p)) return;
    const int64_t room = i[W_IN + d] + pads[d] + pads[n + d] - (i[W_KERNEL + d] - 1) * i[W_DILATION + d] - 1;
    if (room < 0) more_refuse(p, "its blocks are larger than the image");
    if (!more_ok(p)) return;
    i[W_PAD + d] = pads[d];
    i[W_END + d] = pads[n + d];
    i[W_OUT + d] = room / i[W_STRIDE + d] + 1;
    shape[2 + d] = i[W_IN + d];
  }
  more_window_fits(p);
  if (!more_ok(p)) return;
  const int64_t taps = window_taps(m), places = window_places(m);
  if (x->shape[1] % taps != 0 || x->shape[2] != places)
    more_refuse(p, "operand 0 is not of %lld blocks of %lld", (long long)places, (long long)taps);
  shape[0] = x->shape[0];
  shape[1] = x->shape[1] / taps;
  more_result(p, 0, x->type, (int32_t)n + 2, shape);
  if (x->type == REF_TYPE_F32 && x->count > 0) more_loop(p, run_col2im_f32, shape[0] * shape[1], 2 * (double)x->count);
  else more_work(p, run_col2im, shape[0] * shape[1], (double)x->count);
}

/* ---------------------------------------------------------------- CausalConvWithState */

/* Element i of a channel with its state before it. */
static double with_state(const more_op *m, const more_args *a, int64_t u, int64_t i) {
  const int64_t state = m->i[0] - 1, length = m->in[0].shape[2];
  if (i >= state) return more_get(&m->in[0], a->in[0], u * length + i - state);
  return a->in[3] != NULL ? more_get(&m->in[3], a->in[3], u * state + i) : 0;
}

static void run_causal(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t taps = m->i[0], length = m->in[0].shape[2], channels = m->in[0].shape[1];
  for (int64_t u = first; u < last; u++) { /* a channel of an image */
    for (int64_t t = 0; t < length && a->out[0] != NULL; t++) {
      double sum = a->in[2] != NULL ? more_get(&m->in[2], a->in[2], u % channels) : 0;
      for (int64_t k = 0; k < taps; k++)
        sum += with_state(m, a, u, t + k) * more_get(&m->in[1], a->in[1], u % channels * taps + k);
      sum = more_round_to(m->out[0].type, sum);
      more_put(&m->out[0], a->out[0], u * length + t, m->i[1] != 0 ? sum / (1 + exp(-sum)) : sum);
    }
    for (int64_t k = 0; k < taps - 1 && a->out[1] != NULL; k++)
      more_put(&m->out[1], a->out[1], u * (taps - 1) + k, with_state(m, a, u, length + k));
  }
}

void more_setup_causal_conv(more_plan *p) {
  more_op *m = p->m;
  const int64_t *x = m->in[0].shape, *w = m->in[1].shape;
  more_rank(p, 0, 3, 3);
  more_rank(p, 1, 3, 3);
  more_real(p, 0);
  for (uint32_t k = 1; k < 4; k++) more_same_type(p, 0, k);
  m->i[1] = more_choice(p, "activation", "none", "none silu swish");
  if (!more_ok(p)) return;
  m->i[0] = w[2];
  if (w[0] != x[1] || w[1] != 1 || w[2] < 1) more_refuse(p, "its weights are not [channels, 1, k]");
  const int64_t state[] = {x[0], x[1], w[2] - 1};
  more_shape_is(p, 2, 1, &x[1]);
  more_shape_is(p, 3, 3, state);
  more_result_like(p, 0, 0);
  more_result(p, 1, m->in[0].type, 3, state);
  more_work(p, run_causal, x[0] * x[1], (double)m->in[0].count * (double)w[2]);
}
