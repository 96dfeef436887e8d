/* graph/optimize/conv.c: what multiplies and adds one number a channel behind a Conv goes into its weights and its bias:
 * BatchNormalization, and Mul, Div, Add and Sub of constants. What stands behind that (a residual, an activation) is the
 * plugins' to compute on the way out. A Pad with zeros before a Conv goes into its pads. */
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

/* ---- Pad before a Conv */

enum { MOST_SPATIAL = 3 };

/* What a Pad adds before and behind each spatial dimension: to pads, as Conv has them. False where it adds something else than
 * zeros, or elsewhere. */
static bool read_pad(opt_net *net, const opt_node *pad, uint32_t rank, int64_t *pads) {
  int64_t listed[2 * HEDDLE__MAX_NDIM], axes[HEDDLE__MAX_NDIM];
  uint32_t count = 0, n_axes = rank;
  uint64_t given = 0;
  double value = opt_get_float(pad, "value", 0);
  const heddle_pattr *mode = opt_attr(pad, "mode");
  if (mode != NULL && strcmp(mode->data, "constant") != 0) return false;
  for (uint32_t d = 0; d < rank; d++) axes[d] = d;
  const int64_t *old = opt_get_ints(pad, "pads", &given);
  if (pad->n_inputs > 1) {
    const opt_value *v = opt_in(pad, 1);
    if (v == NULL || opt_elements(v) > HEDDLE__MAX_NDIM || !opt_ints(net, v, listed, &count)) return false;
    if (opt_in(pad, 2) != NULL && !opt_number(net, opt_in(pad, 2), &value)) return false;
    if (opt_in(pad, 3) != NULL && (!opt_ints(net, opt_in(pad, 3), axes, &n_axes) || n_axes > rank)) return false;
  } else if (old != NULL && given <= 2 * HEDDLE__MAX_NDIM) {
    memcpy(listed, old, (size_t)given * sizeof *listed);
    count = (uint32_t)given;
  }
  if (value != 0 || count != 2 * n_axes) return false;
  memset(pads, 0, 2 * (size_t)(rank - 2) * sizeof *pads);
  for (uint32_t k = 0; k < n_axes; k++) {
    const int64_t axis = axes[k] < 0 ? axes[k] + rank : axes[k];
    if (axis < 0 || axis >= rank || listed[k] < 0 || listed[n_axes + k] < 0) return false;
    if (axis < 2 && listed[k] + listed[n_axes + k] != 0) return false;
    if (axis < 2) continue;
    pads[axis - 2] = listed[k];
    pads[rank - 2 + axis - 2] = listed[n_axes + k];
  }
  return true;
}

/* Every place of the result reads some of the input, as without the Pad. */
static bool fits_window(const opt_node *conv, const opt_value *w, const int64_t *pads) {
  uint64_t count = 0;
  const uint32_t spatial = w->ndim - 2;
  const int64_t *dilations = opt_get_ints(conv, "dilations", &count);
  if (dilations != NULL && count != spatial) return false;
  for (uint32_t d = 0; d < spatial; d++) {
    const int64_t reach = (w->shape[2 + d] - 1) * (dilations != NULL ? dilations[d] : 1) + 1;
    if (pads[d] >= reach || pads[spatial + d] >= reach) return false;
  }
  return true;
}

static bool take_pad(opt_net *net, opt_node *conv) {
  opt_value *x = opt_in(conv, 0), *in[3] = {NULL, opt_in(conv, 1), opt_in(conv, 2)};
  opt_node *pad = opt_is(conv, "Conv") ? opt_maker(x, "Pad") : NULL;
  int64_t pads[2 * MOST_SPATIAL];
  uint64_t given = 0;
  const heddle_pattr *automatic = opt_attr(conv, "auto_pad");
  if (pad == NULL || pad->n_outputs != 1 || conv->n_inputs > 3 || !opt_is_inner(x) || !opt_same_home(conv, pad) ||
      in[1] == NULL || !in[1]->known || in[1]->ndim < 3 || in[1]->ndim > 2 + MOST_SPATIAL ||
      (automatic != NULL && strcmp(automatic->data, "NOTSET") != 0))
    return false;
  const uint32_t n_pads = 2 * (in[1]->ndim - 2);
  const int64_t *own = opt_get_ints(conv, "pads", &given);
  if ((own != NULL && given != n_pads) || !read_pad(net, pad, in[1]->ndim, pads)) return false;
  for (uint32_t k = 0; own != NULL && k < n_pads; k++) {
    if (own[k] < 0 || own[k] > INT32_MAX || pads[k] > INT32_MAX) return false;
    pads[k] += own[k];
  }
  if (!fits_window(conv, in[1], pads)) return false;
  heddle_pattr *attrs = opt_alloc(net, conv->n_attrs + 1, sizeof *attrs);
  uint32_t n = 0;
  for (uint32_t k = 0; attrs != NULL && k < conv->n_attrs; k++)
    if (strcmp(conv->attrs[k].name, "pads") != 0) attrs[n++] = conv->attrs[k];
  if (attrs == NULL) return false;
  attrs[n++] = opt_attr_ints(net, "pads", pads, n_pads);
  in[0] = opt_in(pad, 0);
  if (!opt_become(net, conv, "", "Conv", in, conv->n_inputs, attrs, n)) return false;
  pad->live = false;
  opt_note(net, "conv", (const opt_node *const[]){pad, conv}, 2, "one Conv, as '%s': what Pad adds is in its pads",
           conv->name);
  return true;
}

bool opt_pass_conv(opt_net *net) {
  bool changed = false;
  for (uint32_t i = 0; i < net->n_nodes && !net->failed; i++) {
    opt_node *n = &net->nodes[i];
    if (n->live && take_pad(net, n)) changed = true;
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
