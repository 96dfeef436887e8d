/* The sliding window of Conv and MaxPool: kernel, strides, dilations and pads from the attributes, brought to three
 * spatial dimensions, and checked against the result's shape. */
#include "ref_op.h"

enum { NOTSET, VALID, SAME_UPPER, SAME_LOWER };

static heddle_status read_auto_pad(const ref_node *n, int *out, heddle_error *err) {
  static const char *const names[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
  const char *name;
  heddle_status s = region_attr_string(n->node, "auto_pad", "NOTSET", &name, err);
  if (s != HEDDLE_OK) return s;
  for (int i = 0; i < 4; i++) {
    if (strcmp(name, names[i]) == 0) {
      *out = i;
      return HEDDLE_OK;
    }
  }
  return ref_refuse(n, err, "auto_pad '%s' is not known", name);
}

/* A list with count members in [least, INT32_MAX], which keeps all arithmetic below within int64_t. */
static heddle_status read_list(const ref_node *n, const char *name, uint64_t count, int64_t least, const int64_t **out,
                               heddle_error *err) {
  uint64_t have = 0;
  heddle_status s = region_attr_ints(n->node, name, out, &have, err);
  if (s != HEDDLE_OK || *out == NULL) return s;
  if (have != count) {
    return ref_refuse(n, err, "attribute '%s' has %llu members instead of %llu", name, (unsigned long long)have,
                      (unsigned long long)count);
  }
  for (uint64_t i = 0; i < count; i++) {
    if ((*out)[i] < least || (*out)[i] > INT32_MAX) {
      return ref_refuse(n, err, "attribute '%s' has the member %lld", name, (long long)(*out)[i]);
    }
  }
  return HEDDLE_OK;
}

/* Sets the pad of one dimension and tells whether out is what the operator gives. end is the pad after. */
static bool dimension_fits(ref_window *w, int d, int auto_pad, int64_t end, bool ceiling) {
  int64_t reach = (w->kernel[d] - 1) * w->dilation[d] + 1;
  if (auto_pad == SAME_UPPER || auto_pad == SAME_LOWER) {
    int64_t out = (w->in[d] + w->stride[d] - 1) / w->stride[d];
    int64_t all = (out - 1) * w->stride[d] + reach - w->in[d];
    if (all < 0) all = 0;
    w->pad[d] = auto_pad == SAME_UPPER ? all / 2 : all - all / 2;
    return w->out[d] == out;
  }
  if (auto_pad == VALID) w->pad[d] = end = 0;
  int64_t room = w->in[d] + w->pad[d] + end - reach;
  if (room < 0 && ceiling && auto_pad != VALID) /* rounded up, one window reaches over the end */
    return room > -w->stride[d] && w->in[d] > 0 && w->out[d] == 1;
  if (room < 0) return false;
  int64_t down = room / w->stride[d] + 1;
  int64_t up = (room + w->stride[d] - 1) / w->stride[d] + 1;
  /* With ceil_mode a last window that would start behind the input and its leading pad may be left out or not:
   * versions of the specification differ. */
  if (ceiling && auto_pad != VALID) {
    bool outside = (up - 1) * w->stride[d] >= w->in[d] + w->pad[d];
    return w->out[d] == up || (outside && w->out[d] == up - 1);
  }
  return w->out[d] == down;
}

heddle_status ref_window_plan(const ref_node *n, const int64_t *weights_shape, ref_window *w, heddle_error *err) {
  const int32_t spatial = n->in[0]->ndim - 2;
  const int64_t *kernel, *strides, *dilations, *pads;
  int64_t ceiling = 0;
  int auto_pad = NOTSET;

  if (spatial < 1 || spatial > REF_SPATIAL || n->out->ndim != n->in[0]->ndim) {
    return ref_refuse(n, err, "%d spatial dimensions; 1 to %d are supported", spatial, REF_SPATIAL);
  }
  heddle_status s = read_auto_pad(n, &auto_pad, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->node, "ceil_mode", 0, &ceiling, err);
  if (s == HEDDLE_OK) s = read_list(n, "kernel_shape", (uint64_t)spatial, 1, &kernel, err);
  if (s == HEDDLE_OK) s = read_list(n, "strides", (uint64_t)spatial, 1, &strides, err);
  if (s == HEDDLE_OK) s = read_list(n, "dilations", (uint64_t)spatial, 1, &dilations, err);
  if (s == HEDDLE_OK) s = read_list(n, "pads", 2 * (uint64_t)spatial, 0, &pads, err);
  if (s != HEDDLE_OK) return s;
  if (kernel == NULL) kernel = weights_shape;
  if (kernel == NULL) return ref_refuse(n, err, "attribute 'kernel_shape' is missing");

  for (int d = 0; d < REF_SPATIAL; d++) {
    int k = d - (REF_SPATIAL - spatial);
    w->in[d] = w->out[d] = w->kernel[d] = w->stride[d] = w->dilation[d] = 1;
    w->pad[d] = 0;
    if (k < 0) continue;
    w->in[d] = n->in[0]->shape[2 + k];
    w->out[d] = n->out->shape[2 + k];
    w->kernel[d] = kernel[k];
    if (strides != NULL) w->stride[d] = strides[k];
    if (dilations != NULL) w->dilation[d] = dilations[k];
    if (pads != NULL) w->pad[d] = pads[k];
    if (weights_shape != NULL && weights_shape[k] != kernel[k]) {
      return ref_refuse(n, err, "attribute 'kernel_shape' is not the shape of the weights");
    }
    if (w->in[d] > INT32_MAX || w->kernel[d] < 1 || w->kernel[d] > INT32_MAX ||
        !dimension_fits(w, d, auto_pad, pads != NULL ? pads[spatial + k] : 0, ceiling != 0)) {
      return ref_refuse_shape(n, err);
    }
  }
  return HEDDLE_OK;
}

/* a / b rounded up, for b > 0. */
static int64_t divide_up(int64_t a, int64_t b) {
  return a <= 0 ? -(-a / b) : (a + b - 1) / b;
}

void ref_window_taps(const ref_window *w, int dim, int64_t from, int64_t to, int64_t *first, int64_t *last) {
  const int64_t low = from * w->stride[dim] - w->pad[dim], high = to * w->stride[dim] - w->pad[dim];
  *first = divide_up(-high, w->dilation[dim]);
  *last = divide_up(w->in[dim] - low, w->dilation[dim]);
  if (*first < 0) *first = 0;
  if (*last > w->kernel[dim]) *last = w->kernel[dim];
}

void ref_window_range(const ref_window *w, int dim, int64_t k, int64_t *first, int64_t *last) {
  const int64_t offset = k * w->dilation[dim] - w->pad[dim], stride = w->stride[dim];
  *first = offset >= 0 ? 0 : divide_up(-offset, stride);
  *last = w->in[dim] - offset <= 0 ? 0 : divide_up(w->in[dim] - offset, stride);
  if (*last > w->out[dim]) *last = w->out[dim];
  if (*first > *last) *first = *last;
}
