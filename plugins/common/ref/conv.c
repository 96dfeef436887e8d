/* Conv as a matrix product: weights times the patches of the input, which are gathered tile by tile as contract_panel
 * asks for them. A unit is a panel of output channels and output positions of one group of one image. */
#include "contract.h"
#include "ref_op.h"

typedef struct patches {
  const ref_window *w;
  const float *in; /* first channel of the group */
} patches;

/* One row of a tile: tap (kd, kh, kw) of a channel at output positions [j, j + width). */
static void gather(const ref_window *w, const float *channel, const int64_t tap[REF_SPATIAL], int64_t j, int64_t width,
                   float *to) {
  const int64_t row = w->out[2], plane = w->out[1] * row;
  int64_t at[REF_SPATIAL] = {j / plane, j % plane / row, j % row};
  int64_t done = 0;
  while (done < width) {
    const int64_t run = row - at[2] < width - done ? row - at[2] : width - done;
    const int64_t z = at[0] * w->stride[0] + tap[0] * w->dilation[0] - w->pad[0];
    const int64_t y = at[1] * w->stride[1] + tap[1] * w->dilation[1] - w->pad[1];
    const int64_t x = at[2] * w->stride[2] + tap[2] * w->dilation[2] - w->pad[2];
    if (z < 0 || z >= w->in[0] || y < 0 || y >= w->in[1]) {
      for (int64_t i = 0; i < run; i++) to[done + i] = 0.0f;
    } else {
      const float *line = channel + (z * w->in[1] + y) * w->in[2];
      if (w->stride[2] == 1 && x >= 0 && x + run <= w->in[2]) {
        for (int64_t i = 0; i < run; i++) to[done + i] = line[x + i];
      } else {
        for (int64_t i = 0; i < run; i++) {
          const int64_t xi = x + i * w->stride[2];
          to[done + i] = xi >= 0 && xi < w->in[2] ? line[xi] : 0.0f;
        }
      }
    }
    done += run;
    at[2] = 0;
    if (++at[1] == w->out[1]) {
      at[1] = 0;
      at[0]++;
    }
  }
  for (; done < CONTRACT_WIDTH; done++) to[done] = 0.0f;
}

static void fetch_patches(const void *ctx, int64_t k0, int64_t depth, int64_t j0, int64_t width, float *tile) {
  const patches *p = ctx;
  const ref_window *w = p->w;
  const int64_t taps = ref_product(w->kernel, REF_SPATIAL), size = ref_product(w->in, REF_SPATIAL);
  int64_t t = k0 % taps, channel = k0 / taps;
  int64_t tap[REF_SPATIAL] = {t / (w->kernel[1] * w->kernel[2]), t / w->kernel[2] % w->kernel[1], t % w->kernel[2]};
  for (int64_t d = 0; d < depth; d++, tile += CONTRACT_WIDTH) {
    gather(w, p->in + channel * size, tap, j0, width, tile);
    if (++tap[2] < w->kernel[2]) continue;
    tap[2] = 0;
    if (++tap[1] < w->kernel[1]) continue;
    tap[1] = 0;
    if (++tap[0] < w->kernel[0]) continue;
    tap[0] = 0;
    channel++;
  }
}

/* The products that an element of the result is the sum of. */
static int64_t depth_of(const ref_conv *c) {
  const int64_t sizes[2] = {c->in_channels, ref_product(c->window.kernel, REF_SPATIAL)};
  return ref_product(sizes, 2);
}

static void conv_f32(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                     uint64_t last) {
  const ref_conv *c = &op->u.conv;
  const ref_window *w = &c->window;
  const int64_t size = ref_product(w->in, REF_SPATIAL), positions = ref_product(w->out, REF_SPATIAL);
  const int64_t k = depth_of(c);
  const int64_t across = (positions + CONTRACT_PANEL - 1) / CONTRACT_PANEL;
  const int64_t down = (c->out_channels + CONTRACT_PANEL - 1) / CONTRACT_PANEL;
  const float *in = inputs[op->slot[0]], *weights = inputs[op->slot[1]];
  const float *bias = (op->present & 4) != 0 ? inputs[op->slot[2]] : NULL;
  const float nothing = 0; /* stands for an input without elements, all of whose taps are padding */
  (void)workspace;
  for (uint64_t unit = first; unit < last; unit++) {
    const int64_t at = (int64_t)unit;
    const int64_t j = at % across * CONTRACT_PANEL, i = at / across % down * CONTRACT_PANEL;
    const int64_t group = at / across / down; /* of all images */
    const int64_t channel = group % c->groups * c->out_channels + i;
    const int64_t rows = c->out_channels - i < CONTRACT_PANEL ? c->out_channels - i : CONTRACT_PANEL;
    const int64_t cols = positions - j < CONTRACT_PANEL ? positions - j : CONTRACT_PANEL;
    const patches p = {w, k > 0 && size > 0 ? in + group * c->in_channels * size : &nothing};
    float *out = (float *)outputs[0] + (group * c->out_channels + i) * positions + j;
    check_contract_panel(k > 0 ? weights + channel * k : NULL, k, 1, rows, k, fetch_patches, &p, j, cols, out,
                         positions);
    if (bias == NULL) continue;
    for (int64_t r = 0; r < rows; r++) {
      const float b = bias[channel + r];
      for (int64_t q = 0; q < cols; q++) out[r * positions + q] += b;
    }
  }
}

heddle_status ref_plan_conv(const ref_node *n, ref_op *op, heddle_error *err) {
  ref_conv *c = &op->u.conv;
  const heddle_pvalue *x = n->in[0], *weights = n->in[1], *bias = n->in[2], *y = n->out;
  int64_t groups = 1;
  uint64_t results = 0, taps = 0;
  heddle_status s = ref_want_float32(n, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->node, "group", 1, &groups, err);
  if (s != HEDDLE_OK) return s;
  if (x->ndim < 3 || weights->ndim != x->ndim) {
    return ref_refuse(n, err, "%d dimensions with weights of %d", x->ndim, weights->ndim);
  }
  if (groups < 1 || weights->shape[0] % groups != 0 || x->shape[1] % groups != 0 ||
      x->shape[1] / groups != weights->shape[1]) {
    return ref_refuse(n, err, "%lld channels and weights for %lld of %lld do not make %lld groups",
                      (long long)x->shape[1], (long long)weights->shape[1], (long long)weights->shape[0],
                      (long long)groups);
  }
  s = ref_window_plan(n, weights->shape + 2, &c->window, err);
  if (s != HEDDLE_OK) return s;
  if (y->shape[0] != x->shape[0] || y->shape[1] != weights->shape[0] ||
      (bias != NULL && (bias->ndim != 1 || bias->shape[0] != weights->shape[0]))) {
    return ref_refuse_shape(n, err);
  }
  c->images = x->shape[0];
  c->groups = groups;
  c->in_channels = weights->shape[1];
  c->out_channels = weights->shape[0] / groups;
  region_value_count(y, &results);
  region_value_count(weights, &taps);

  uint64_t units = 0;
  const int64_t floats = results > 0 ? ref_depthwise_floats(c) : 0;
  if (floats > 0) {
    ref_set_work(op, ref_depthwise_f32, (uint64_t)(c->images * weights->shape[0]),
                 (double)results * (0.7 * (double)ref_product(c->window.kernel, REF_SPATIAL) + 6),
                 2.0 * (double)results);
    ref_set_part_scratch(op, (uint64_t)floats * sizeof(float));
    return HEDDLE_OK;
  }
  if (results > 0) {
    uint64_t positions = results / (uint64_t)(c->images * weights->shape[0]);
    units = (uint64_t)(c->images * groups) * ((positions + CONTRACT_PANEL - 1) / CONTRACT_PANEL) *
            (((uint64_t)c->out_channels + CONTRACT_PANEL - 1) / CONTRACT_PANEL);
  }
  double depth = results > 0 ? (double)taps / (double)weights->shape[0] : 0;
  ref_set_work(op, conv_f32, units, (double)results * depth, 8.0 * (double)results);
  return HEDDLE_OK;
}
