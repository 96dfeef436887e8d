/* ConvTranspose: each result plane takes what each tap adds to it, summed up over the input channels. A unit is a
 * plane of the result. The window is that of the Conv that would lead back: its input is our result. */
#include "lines.h"
#include "ref_op.h"

static int64_t divide_up(int64_t a, int64_t b) {
  return a <= 0 ? -(-a / b) : (a + b - 1) / b;
}

/* Positions [*first, *last) of the operand along one dimension whose tap k lands inside the result. */
static void range_of(const ref_window *w, int d, int64_t k, int64_t *first, int64_t *last) {
  const int64_t offset = k * w->dilation[d] - w->pad[d];
  *first = divide_up(-offset, w->stride[d]);
  *last = divide_up(w->in[d] - offset, w->stride[d]);
  if (*first < 0) *first = 0;
  if (*last > w->out[d]) *last = w->out[d];
}

/* What a line of the operand adds to the result by the taps of a row of the kernel: those of all channels are summed up
 * first, for some places and taps at a time. */
enum { PLACES = 256, TAPS = 4 };

typedef struct plane {
  const ref_op *op;
  const ref_window *w;
  const float *in, *weights; /* of the first channel */
  int64_t positions, apart;  /* from a channel to the next, of both */
  int64_t work;
} plane;

/* Until a plane is whole, the elements of a row that are a step apart lie together: where those of a phase begin. */
static int64_t phase_at(const ref_window *w, int64_t phase) {
  const int64_t more = w->in[2] % w->stride[2];
  return w->in[2] / w->stride[2] * phase + (phase < more ? phase : more);
}

/* Row of a whole plane; spare has room for it. */
static void join_phases(const ref_window *w, float *row, float *spare) {
  const int64_t step = w->stride[2], n = w->in[2];
  memcpy(spare, row, (size_t)n * sizeof *row);
  if (step == 2) {
    ref_line_join(spare, spare + phase_at(w, 1), n, row);
    return;
  }
  for (int64_t k = 0; k < step && k < n; k++) {
    const float *from = spare + phase_at(w, k);
    for (int64_t x = k; x < n; x += step) row[x] = *from++;
  }
}

static bool add_line(plane *p, int64_t line, const int64_t tap[2], float *row) {
  const ref_window *w = p->w;
  const int64_t channels = p->op->u.conv.in_channels, step = w->stride[2];
  for (int64_t t = 0; t < w->kernel[2]; t += TAPS) {
    const int64_t taps = w->kernel[2] - t < TAPS ? w->kernel[2] - t : TAPS;
    for (int64_t x = 0; x < w->out[2]; x += PLACES) {
      float acc[TAPS][PLACES];
      const int64_t n = w->out[2] - x < PLACES ? w->out[2] - x : PLACES;
      if (ref_tick(p->op, &p->work, channels * taps * n / 4 + PLACES)) return false;
      for (int64_t k = 0; k < taps; k++) memset(acc[k], 0, (size_t)n * sizeof acc[k][0]);
      const ref_lines sum = {.acc = acc[0],
                             .in = p->in + line * w->out[2] + x,
                             .w = p->weights + (tap[0] * w->kernel[1] + tap[1]) * w->kernel[2] + t,
                             .acc_apart = PLACES,
                             .apart = p->positions,
                             .w_apart = p->apart,
                             .taps = taps,
                             .count = channels,
                             .n = n};
      ref_lines_sum(&sum);
      for (int64_t k = 0; k < taps; k++) {
        int64_t first, last;
        range_of(w, 2, t + k, &first, &last);
        first = first > x ? first : x;
        last = last < x + n ? last : x + n;
        if (first >= last) continue;
        const int64_t at = first * step + (t + k) * w->dilation[2] - w->pad[2];
        ref_line_plus(row + phase_at(w, at % step) + at / step, acc[k] + first - x, last - first);
      }
    }
  }
  return true;
}

/* The whole plane; false: the run has to stop. */
static bool add_lines(plane *p, float *out) {
  const ref_window *w = p->w;
  int64_t tap[2];
  for (int64_t z = 0; z < w->out[0]; z++) {
    for (int64_t y = 0; y < w->out[1]; y++) {
      for (tap[0] = 0; tap[0] < w->kernel[0]; tap[0]++) {
        const int64_t oz = z * w->stride[0] + tap[0] * w->dilation[0] - w->pad[0];
        if (oz < 0 || oz >= w->in[0]) continue;
        for (tap[1] = 0; tap[1] < w->kernel[1]; tap[1]++) {
          const int64_t oy = y * w->stride[1] + tap[1] * w->dilation[1] - w->pad[1];
          if (oy < 0 || oy >= w->in[1]) continue;
          if (!add_line(p, z * w->out[1] + y, tap, out + (oz * w->in[1] + oy) * w->in[2])) return false;
        }
      }
    }
  }
  return true;
}

static void conv_transpose_f32(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace,
                               uint64_t first, uint64_t last) {
  const ref_conv *c = &op->u.conv;
  const ref_window *w = &c->window;
  const int64_t size = ref_product(w->in, REF_SPATIAL), positions = ref_product(w->out, REF_SPATIAL);
  const int64_t taps = ref_product(w->kernel, REF_SPATIAL), planes = c->groups * c->out_channels;
  const float *bias = (op->present & 4) != 0 ? inputs[op->slot[2]] : NULL;
  int64_t work = 0;
  for (uint64_t unit = first; unit < last; unit++) {
    const int64_t image = (int64_t)unit / planes, number = (int64_t)unit % planes, group = number / c->out_channels;
    float *out = (float *)outputs[0] + (int64_t)unit * size;
    for (int64_t i = 0; i < size; i++) out[i] = bias != NULL ? bias[number] : 0.0f;
    const int64_t channel = group * c->in_channels;
    plane p = {.op = op, .w = w, .positions = positions, .apart = c->out_channels * taps, .work = work};
    if (c->in_channels == 0 || positions == 0) continue;
    p.in = (const float *)inputs[op->slot[0]] + (image * c->groups * c->in_channels + channel) * positions;
    p.weights = (const float *)inputs[op->slot[1]] + (channel * c->out_channels + number % c->out_channels) * taps;
    if (!add_lines(&p, out)) return;
    work = p.work;
    for (int64_t row = 0; row < w->in[0] * w->in[1] && w->stride[2] > 1; row++)
      join_phases(w, out + row * w->in[2], workspace);
  }
}

/* spatial numbers of a list attribute, in the last places of out; all others are fallback. */
static heddle_status read(const ref_node *n, const char *name, int spatial, int twice, int64_t least, int64_t fallback,
                          int64_t *out, heddle_error *err) {
  const int64_t *list;
  uint64_t count;
  heddle_status s = region_attr_ints(n->node, name, &list, &count, err);
  if (s != HEDDLE_OK) return s;
  if (list != NULL && count != (uint64_t)(spatial * twice)) {
    return ref_refuse(n, err, "attribute '%s' has %llu members", name, (unsigned long long)count);
  }
  for (int d = 0; d < REF_SPATIAL; d++) {
    const int k = d - (REF_SPATIAL - spatial);
    out[d] = list != NULL && k >= 0 ? list[k] : fallback;
    if (out[d] < least || out[d] > INT32_MAX) {
      return ref_refuse(n, err, "attribute '%s' has the member %lld", name, (long long)out[d]);
    }
  }
  return HEDDLE_OK;
}

heddle_status ref_plan_conv_transpose(const ref_node *n, ref_op *op, heddle_error *err) {
  ref_conv *c = &op->u.conv;
  ref_window *w = &c->window;
  const heddle_pvalue *x = n->in[0], *weights = n->in[1], *bias = n->in[2], *y = n->out;
  int64_t groups = 1, more[REF_SPATIAL];
  const int spatial = x->ndim - 2;
  const char *mode;
  uint64_t results = 0, taps = 0;
  heddle_status s = ref_want_float32(n, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->node, "group", 1, &groups, err);
  if (s == HEDDLE_OK) s = region_attr_string(n->node, "auto_pad", "NOTSET", &mode, err);
  if (s != HEDDLE_OK) return s;
  if (spatial < 1 || spatial > REF_SPATIAL || weights->ndim != x->ndim || y->ndim != x->ndim) {
    return ref_refuse(n, err, "%d spatial dimensions; 1 to %d are supported", spatial, REF_SPATIAL);
  }
  s = read(n, "strides", spatial, 1, 1, 1, w->stride, err);
  if (s == HEDDLE_OK) s = read(n, "dilations", spatial, 1, 1, 1, w->dilation, err);
  if (s == HEDDLE_OK) s = read(n, "output_padding", spatial, 1, 0, 0, more, err);
  if (s == HEDDLE_OK) s = read(n, "pads", spatial, 2, 0, 0, w->pad, err);
  if (s != HEDDLE_OK) return s;
  if (groups < 1 || weights->shape[0] != x->shape[1] || x->shape[1] % groups != 0 || y->shape[0] != x->shape[0] ||
      y->shape[1] / groups != weights->shape[1] || y->shape[1] % groups != 0 ||
      (bias != NULL && (bias->ndim != 1 || bias->shape[0] != y->shape[1]))) {
    return ref_refuse_shape(n, err);
  }
  const bool chosen = region_attr_find(n->node, "output_shape") != NULL || strncmp(mode, "SAME", 4) == 0;
  const heddle_pattr *pads = region_attr_find(n->node, "pads");
  for (int d = 0; d < REF_SPATIAL; d++) {
    const int k = d - (REF_SPATIAL - spatial);
    w->in[d] = k < 0 ? 1 : y->shape[2 + k];
    w->out[d] = k < 0 ? 1 : x->shape[2 + k];
    w->kernel[d] = k < 0 ? 1 : weights->shape[2 + k];
    if (k < 0) w->pad[d] = more[d] = 0;
    if (w->in[d] > INT32_MAX || w->out[d] > INT32_MAX || w->kernel[d] < 1 || w->kernel[d] > INT32_MAX) {
      return ref_refuse_shape(n, err);
    }
    const int64_t all = w->stride[d] * (w->out[d] - 1) + more[d] + (w->kernel[d] - 1) * w->dilation[d] + 1;
    if (chosen) { /* the pads are what makes the result of that size */
      const int64_t less = all > w->in[d] ? all - w->in[d] : 0;
      w->pad[d] = strcmp(mode, "SAME_UPPER") == 0 ? less / 2 : less - less / 2;
    } else {
      const int64_t end = pads != NULL && k >= 0 ? ((const int64_t *)pads->data)[spatial + k] : 0;
      if (all - w->pad[d] - end != w->in[d]) return ref_refuse_shape(n, err);
    }
  }
  c->images = x->shape[0];
  c->groups = groups;
  c->in_channels = x->shape[1] / groups;
  c->out_channels = weights->shape[1];
  region_value_count(y, &results);
  region_value_count(weights, &taps);
  const double steps = results > 0 ? (double)taps * (double)x->shape[0] * (double)ref_product(w->out, REF_SPATIAL) : 0;
  ref_set_work(op, conv_transpose_f32, results > 0 ? (uint64_t)(y->shape[0] * y->shape[1]) : 0, steps,
               8.0 * (double)results);
  if (w->stride[2] > 1) ref_set_part_scratch(op, (uint64_t)w->in[2] * sizeof(float));
  return HEDDLE_OK;
}
