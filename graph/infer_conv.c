/* graph/infer_conv.c: operators that slide a window over the spatial dimensions of [N, C, ...]: Conv, ConvTranspose,
 * MaxPool and AveragePool, and the global pools, whose window is the whole. */
#include "graph/infer.h"

#include <string.h>

#define MAX_SPATIAL (HEDDLE__MAX_NDIM - 2)
#define MAX_SETTING INT32_MAX /* of strides, dilations, pads, kernel sizes: so that sums stay far from 2^63 */
#define MAX_DIM (INT64_MAX / 4)

typedef enum padding { EXPLICIT, SAME, VALID } padding;

/* The attributes of a window, with their defaults filled in. */
typedef struct window {
  uint32_t spatial;
  padding mode;
  bool ceil;
  int64_t kernel[MAX_SPATIAL], strides[MAX_SPATIAL], dilations[MAX_SPATIAL], before[MAX_SPATIAL], after[MAX_SPATIAL];
} window;

/* count numbers of an attribute into out; fallback where it is not given. */
static heddle_status read_list(const heddle_graph *g, const heddle__node *node, const char *name, uint32_t count,
                               int64_t min, int64_t fallback, int64_t *out, heddle_error *err) {
  uint64_t given;
  const int64_t *list = heddle__attr_ints(node, name, &given);
  if (list != NULL && given != count)
    return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "%s has %llu numbers, expected %u", name,
                             (unsigned long long)given, count);
  for (uint32_t i = 0; i < count; i++) {
    int64_t n = list != NULL ? list[i] : fallback;
    if (n < min || n > MAX_SETTING)
      return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "%s[%u] is %lld, expected %lld to %d", name, i,
                               (long long)n, (long long)min, MAX_SETTING);
    out[i] = n;
  }
  return HEDDLE_OK;
}

static heddle_status read_mode(const heddle_graph *g, const heddle__node *node, padding *out, heddle_error *err) {
  char shown[64];
  const char *text = heddle__attr_string(node, "auto_pad", "NOTSET");
  if (strcmp(text, "NOTSET") == 0) *out = EXPLICIT;
  else if (strcmp(text, "SAME_UPPER") == 0 || strcmp(text, "SAME_LOWER") == 0) *out = SAME;
  else if (strcmp(text, "VALID") == 0) *out = VALID;
  else
    return heddle__node_fail(g, node, err, HEDDLE_EFORMAT,
                             "auto_pad is '%s', expected NOTSET, SAME_UPPER, SAME_LOWER or "
                             "VALID",
                             heddle__show(text, shown));
  if (*out != EXPLICIT && heddle__attr(node, "pads") != NULL)
    return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "it has both pads and auto_pad '%s', expected one", text);
  return HEDDLE_OK;
}

/* kernel: what kernel_shape must be, or NULL where the attribute alone gives it. */
static heddle_status read_window(const heddle_graph *g, const heddle__node *node, const heddle__known *x,
                                 const int64_t *kernel, window *w, heddle_error *err) {
  int64_t pads[2 * MAX_SPATIAL] = {0};
  for (uint32_t i = 0; i < MAX_SPATIAL; i++) w->strides[i] = w->dilations[i] = w->kernel[i] = 1;
  if (x->ndim < 3) return heddle__bad_input(g, node, 0, x, err, "three dimensions or more: [N, C, ...]");
  w->spatial = x->ndim - 2;
  for (uint32_t i = 0; i < x->ndim; i++)
    if (x->shape[i] > MAX_DIM) return heddle__bad_input(g, node, 0, x, err, "dimensions below 2^61");
  heddle_status s = read_mode(g, node, &w->mode, err);
  if (s == HEDDLE_OK && kernel == NULL && heddle__attr(node, "kernel_shape") == NULL)
    s = heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "it has no kernel_shape, which it needs");
  if (s == HEDDLE_OK) s = read_list(g, node, "strides", w->spatial, 1, 1, w->strides, err);
  if (s == HEDDLE_OK) s = read_list(g, node, "dilations", w->spatial, 1, 1, w->dilations, err);
  if (s == HEDDLE_OK) s = read_list(g, node, "pads", 2 * w->spatial, 0, 0, pads, err);
  if (s == HEDDLE_OK && (kernel == NULL || heddle__attr(node, "kernel_shape") != NULL))
    s = read_list(g, node, "kernel_shape", w->spatial, 1, 1, w->kernel, err);
  else if (s == HEDDLE_OK) memcpy(w->kernel, kernel, w->spatial * sizeof *kernel);
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = 0; i < w->spatial; i++) {
    w->before[i] = pads[i];
    w->after[i] = pads[w->spatial + i];
    if (kernel != NULL && kernel[i] != w->kernel[i])
      return heddle__node_fail(g, node, err, HEDDLE_EFORMAT,
                               "kernel_shape[%u] is %lld, and the weight (input 1) has "
                               "%lld there",
                               i, (long long)w->kernel[i], (long long)kernel[i]);
    if (w->kernel[i] < 1 || w->kernel[i] > MAX_SETTING)
      return heddle__node_fail(g, node, err, HEDDLE_EFORMAT,
                               "the kernel is %lld in spatial dimension %u, expected 1 to "
                               "%d",
                               (long long)w->kernel[i], i, MAX_SETTING);
  }
  return HEDDLE_OK;
}

static int64_t divide_up(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

/* How often the window fits along spatial dimension i. */
static heddle_status slide(const heddle_graph *g, const heddle__node *node, const heddle__known *x, const window *w,
                           uint32_t i, int64_t *out, heddle_error *err) {
  int64_t size = x->shape[2 + i], reach = (w->kernel[i] - 1) * w->dilations[i] + 1, stride = w->strides[i];
  if (w->mode == SAME) {
    *out = divide_up(size, stride);
    return HEDDLE_OK;
  }
  int64_t padded = size + w->before[i] + w->after[i], room = padded - reach;
  if (room < 0 && room > -stride && w->ceil && w->mode != VALID && size > 0) {
    *out = 1; /* rounded up, one window reaches over the end */
    return HEDDLE_OK;
  }
  if (room < 0)
    return heddle__bad_input(g, node, 0, x, err,
                             "at least %lld with padding in spatial dimension %u, the reach of the "
                             "kernel; it is %lld",
                             (long long)reach, i, (long long)padded);
  *out = (w->ceil ? divide_up(room, stride) : room / stride) + 1;
  if (w->ceil && (*out - 1) * stride >= size + w->before[i]) --*out; /* a window in the padding alone does not count */
  return HEDDLE_OK;
}

static heddle_status slide_all(const heddle_graph *g, const heddle__node *node, const heddle__known *x, const window *w,
                               heddle__known *y, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  y->dtype = x->dtype;
  y->ndim = x->ndim;
  y->shape[0] = x->shape[0];
  for (uint32_t i = 0; i < w->spatial && s == HEDDLE_OK; i++) s = slide(g, node, x, w, i, &y->shape[2 + i], err);
  return s;
}

heddle_status heddle__infer_conv(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                 heddle__known *outputs, int32_t *needs, heddle_error *err) {
  (void)needs;
  window w = {0};
  const heddle__known *x = inputs[0], *weight = inputs[1], *bias = node->n_inputs > 2 ? inputs[2] : NULL;
  heddle_status s = heddle__float_dtype(g, node, 0, inputs, err);
  if (s == HEDDLE_OK) s = heddle__same_dtype(g, node, 1, inputs, err);
  if (s == HEDDLE_OK && bias != NULL) s = heddle__same_dtype(g, node, 2, inputs, err);
  if (s == HEDDLE_OK && (x->ndim < 3 || weight->ndim != x->ndim))
    s = heddle__bad_input(g, node, 1, weight, err, "as many dimensions as input 0, and three or more; that has %u",
                          x->ndim);
  if (s == HEDDLE_OK) s = read_window(g, node, x, weight->shape + 2, &w, err);
  if (s != HEDDLE_OK) return s;
  int64_t group = heddle__attr_int(node, "group", 1), channels = x->shape[1], features = weight->shape[0];
  if (group < 1 || channels % group != 0 || features % group != 0)
    return heddle__node_fail(g, node, err, HEDDLE_EFORMAT,
                             "group is %lld, expected a divisor of %lld input and %lld "
                             "output channels",
                             (long long)group, (long long)channels, (long long)features);
  if (weight->shape[1] != channels / group)
    return heddle__bad_input(g, node, 1, weight, err, "%lld in dimension 1: %lld channels in %lld groups",
                             (long long)(channels / group), (long long)channels, (long long)group);
  if (bias != NULL && (bias->ndim != 1 || bias->shape[0] != features))
    return heddle__bad_input(g, node, 2, bias, err, "[%lld], a number for each output channel", (long long)features);
  outputs[0].shape[1] = features;
  return slide_all(g, node, x, &w, &outputs[0], err);
}

/* [C, M / group, kernel...]; the output is what a Conv would make an input of that shape of. */
heddle_status heddle__infer_conv_transpose(const heddle_graph *g, const heddle__node *node,
                                           const heddle__known *const *inputs, heddle__known *outputs, int32_t *needs,
                                           heddle_error *err) {
  (void)needs;
  window w = {0};
  const heddle__known *x = inputs[0], *weight = inputs[1], *bias = heddle__input(node, inputs, 2);
  heddle__known *y = &outputs[0];
  int64_t more[MAX_SPATIAL] = {0}, given[MAX_SPATIAL] = {0};
  heddle_status s = heddle__float_dtype(g, node, 0, inputs, err);
  if (s == HEDDLE_OK) s = heddle__same_dtype(g, node, 1, inputs, err);
  if (s == HEDDLE_OK && bias != NULL) s = heddle__same_dtype(g, node, 2, inputs, err);
  if (s == HEDDLE_OK && (x->ndim < 3 || weight->ndim != x->ndim))
    s = heddle__bad_input(g, node, 1, weight, err, "as many dimensions as input 0, and three or more; that has %u",
                          x->ndim);
  if (s == HEDDLE_OK) s = read_window(g, node, x, weight->shape + 2, &w, err);
  if (s == HEDDLE_OK) s = read_list(g, node, "output_padding", w.spatial, 0, 0, more, err);
  if (s == HEDDLE_OK) s = read_list(g, node, "output_shape", w.spatial, 0, 0, given, err);
  if (s != HEDDLE_OK) return s;
  int64_t group = heddle__attr_int(node, "group", 1);
  if (group < 1 || x->shape[1] % group != 0 || weight->shape[0] != x->shape[1] || weight->shape[1] > MAX_DIM / group)
    return heddle__bad_input(g, node, 1, weight, err, "%lld in dimension 0, the channels of input 0, in %lld groups",
                             (long long)x->shape[1], (long long)group);
  y->dtype = x->dtype;
  y->ndim = x->ndim;
  y->shape[0] = x->shape[0];
  y->shape[1] = weight->shape[1] * group;
  if (bias != NULL && (bias->ndim != 1 || bias->shape[0] != y->shape[1]))
    return heddle__bad_input(g, node, 2, bias, err, "[%lld], a number for each output channel", (long long)y->shape[1]);
  for (uint32_t i = 0; i < w.spatial && s == HEDDLE_OK; i++) {
    int64_t size = x->shape[2 + i], reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    if (size < 1 || size > MAX_SETTING) return heddle__bad_input(g, node, 0, x, err, "dimensions from 1 to 2^31 - 1");
    int64_t out = (size - 1) * w.strides[i] + more[i] + reach - w.before[i] - w.after[i];
    if (w.mode == SAME) out = size * w.strides[i];
    if (heddle__attr(node, "output_shape") != NULL) out = given[i];
    y->shape[2 + i] = out;
    s = heddle__dimension(g, node, out, 2 + i, err);
  }
  return s;
}

heddle_status heddle__infer_pool(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                 heddle__known *outputs, int32_t *needs, heddle_error *err) {
  (void)needs;
  window w = {0};
  const heddle__known *x = inputs[0];
  bool is_byte = x->dtype.bits == 8 && (x->dtype.code == HEDDLE_DTYPE_INT || x->dtype.code == HEDDLE_DTYPE_UINT);
  heddle_status s = is_byte ? HEDDLE_OK : heddle__float_dtype(g, node, 0, inputs, err);
  if (s == HEDDLE_OK) s = read_window(g, node, x, NULL, &w, err);
  if (s != HEDDLE_OK) return s;
  w.ceil = heddle__attr_int(node, "ceil_mode", 0) != 0;
  outputs[0].shape[1] = x->shape[1];
  s = slide_all(g, node, x, &w, &outputs[0], err);
  if (s == HEDDLE_OK && node->n_outputs > 1) { /* where each maximum was found */
    outputs[1] = outputs[0];
    outputs[1].dtype = (heddle_dtype){HEDDLE_DTYPE_INT, 64, 1};
  }
  return s;
}

heddle_status heddle__infer_global_pool(const heddle_graph *g, const heddle__node *node,
                                        const heddle__known *const *inputs, heddle__known *outputs, int32_t *needs,
                                        heddle_error *err) {
  (void)needs;
  const heddle__known *x = inputs[0];
  heddle_status s = heddle__float_dtype(g, node, 0, inputs, err);
  if (s != HEDDLE_OK) return s;
  if (x->ndim < 3) return heddle__bad_input(g, node, 0, x, err, "three dimensions or more: [N, C, ...]");
  outputs[0].dtype = x->dtype;
  outputs[0].ndim = x->ndim;
  for (uint32_t i = 0; i < x->ndim; i++) outputs[0].shape[i] = i < 2 ? x->shape[i] : 1;
  return HEDDLE_OK;
}
