/* graph/optimize/conv.c: what multiplies and adds one number a channel behind a Conv goes into its weights and its bias:
 * BatchNormalization, and Mul, Div, Add and Sub of constants. What stands behind that (a residual, an activation) is the
 * plugins' to compute on the way out. */
#include <math.h>

#include "graph/optimize/net.h"

/* y = x * scale[c] + shift[c] */
typedef struct affine {
  double *scale, *shift;
} affine;

static bool read_batch_norm(opt_net *net, const opt_node *n, int64_t channels, affine *out) {
  const float *in[5] = {NULL};
  if (!opt_is(n, "BatchNormalization") || n->n_inputs != 5 || n->n_outputs != 1 ||
      opt_get_int(n, "training_mode", 0) != 0)
    return false;
  for (uint32_t k = 1; k < 5; k++) {
    const opt_value *v = opt_in(n, k);
    if (v == NULL || v->constant == NULL || !opt_is_float32(v) || v->ndim != 1 || v->shape[0] != channels) return false;
  }
  for (uint32_t k = 1; k < 5; k++) in[k] = opt_bytes(net, opt_in(n, k));
  const double epsilon = opt_get_float(n, "epsilon", 1e-5);
  for (int64_t c = 0; c < channels; c++) {
    const double s = (double)in[1][c] / sqrt((double)in[4][c] + epsilon);
    if (!isfinite(s)) return false; /* a variance below 0: the model says what it says */
    out->scale[c] = s;
    out->shift[c] = (double)in[2][c] - (double)in[3][c] * s;
  }
  return true;
}

/* A constant of one number, or one a channel: [C, 1, 1] behind a Conv of images. */
static bool is_per_channel(const opt_value *v, uint32_t rank, int64_t channels) {
  if (v == NULL || v->constant == NULL || !opt_is_float32(v) || v->ndim > rank) return false;
  for (uint32_t d = 0; d < v->ndim; d++) {
    bool channel = d + rank - v->ndim == 1;
    if (v->shape[d] != 1 && !(channel && v->shape[d] == channels)) return false;
  }
  return true;
}

static bool read_arithmetic(opt_net *net, const opt_node *n, const opt_value *x, uint32_t rank, int64_t channels,
                            affine *out) {
  bool add = opt_is(n, "Add"), sub = opt_is(n, "Sub"), mul = opt_is(n, "Mul"), div = opt_is(n, "Div");
  if (!add && !sub && !mul && !div) return false;
  const bool first = opt_in(n, 0) == x;
  const opt_value *other = opt_in(n, first ? 1 : 0);
  if ((!first && (sub || div)) || !is_per_channel(other, rank, channels)) return false;
  const char *numbers = opt_bytes(net, other);
  const bool one = opt_elements(other) == 1;
  for (int64_t c = 0; c < channels; c++) {
    float number;
    memcpy(&number, numbers + (one ? 0 : (size_t)c) * sizeof number, sizeof number);
    const double a = (double)number;
    out->scale[c] = mul ? a : div ? 1 / a : 1;
    out->shift[c] = add ? a : sub ? -a : 0;
    if (!isfinite(out->scale[c])) return false;
  }
  return true;
}

/* n becomes the Conv with other weights. */
static bool fold(opt_net *net, opt_node *n, opt_node *conv, const affine *a) {
  opt_value *w = opt_in(conv, 1), *b = opt_in(conv, 2), *in[3] = {opt_in(conv, 0)};
  const int64_t channels = w->shape[0];
  const uint64_t each = opt_elements(w) / (uint64_t)channels;
  const char *weights = opt_bytes(net, w);
  const float *bias = b != NULL ? opt_bytes(net, b) : NULL;
  bool scales = false;
  void *bytes;
  for (int64_t c = 0; c < channels; c++) scales = scales || a->scale[c] != 1;
  in[1] = w;
  if (scales) {
    in[1] = opt_constant(net, opt_format(net, "%s:weights", n->name), w->dtype, w->shape, w->ndim, &bytes);
    if (in[1] == NULL) return false;
    float *to = bytes;
    for (int64_t c = 0; c < channels; c++)
      for (uint64_t i = 0; i < each; i++, weights += sizeof *to) {
        memcpy(to, weights, sizeof *to);
        *to = (float)((double)*to * a->scale[c]);
        to++;
      }
  }
  in[2] = opt_constant(net, opt_format(net, "%s:bias", n->name), w->dtype, &channels, 1, &bytes);
  if (in[2] == NULL) return false;
  for (int64_t c = 0; c < channels; c++)
    ((float *)bytes)[c] = (float)((bias != NULL ? (double)bias[c] : 0) * a->scale[c] + a->shift[c]);
  const char *was = n->op;
  if (!opt_become(net, n, "", "Conv", in, 3, conv->attrs, conv->n_attrs)) return false;
  opt_note(net, "conv", (const opt_node *const[]){conv, n}, 2, "one Conv, as '%s': %s is in weights and bias", n->name,
           was);
  return true;
}

/* The Conv that computes v for n alone, from constants. */
static opt_node *conv_before(const opt_node *n, const opt_value *v) {
  opt_node *conv = opt_maker(v, "Conv");
  if (conv == NULL || !opt_is_inner(v) || !opt_same_home(n, conv) || conv->n_inputs < 2) return NULL;
  const opt_value *w = opt_in(conv, 1), *b = opt_in(conv, 2);
  if (w == NULL || w->constant == NULL || !opt_is_float32(w) || w->ndim < 3 || w->bytes == 0) return NULL;
  if (b != NULL && (b->constant == NULL || !opt_is_float32(b) || b->ndim != 1 || b->shape[0] != w->shape[0]))
    return NULL;
  return conv;
}

bool opt_pass_conv(opt_net *net) {
  bool changed = false;
  for (uint32_t i = 0; i < net->n_nodes && !net->failed; i++) {
    opt_node *n = &net->nodes[i];
    for (uint32_t k = 0; n->live && k < 2 && k < n->n_inputs; k++) {
      const opt_value *x = opt_in(n, k);
      opt_node *conv = x != NULL ? conv_before(n, x) : NULL;
      if (conv == NULL) continue;
      const opt_value *w = opt_in(conv, 1);
      const int64_t channels = w->shape[0];
      affine a = {opt_alloc(net, (size_t)channels, sizeof(double)), opt_alloc(net, (size_t)channels, sizeof(double))};
      if (a.scale == NULL || a.shift == NULL) return changed;
      bool folds = k == 0 && read_batch_norm(net, n, channels, &a);
      if (!folds && !read_arithmetic(net, n, x, w->ndim, channels, &a)) continue;
      if (!fold(net, n, conv, &a)) continue;
      conv->live = false;
      changed = true;
      break;
    }
  }
  return changed;
}
