/* graph/optimize/quantized.c: the form that exporters write (DequantizeLinear, an operator of floats, QuantizeLinear) becomes the
 * operator on bytes: QLinearConv for Conv and Gemm of constant weights, QLinearMatMul for MatMul of them, with the Relu or
 * Clip that the result's range makes anyway; operators that only move or compare numbers work on the bytes themselves. */
#include <math.h>

#include "graph/optimize/net.h"

/* A scale and zero point as a node has them: constants, float32 and bytes. axis: of several scales. */
typedef struct quantum {
  opt_value *scale, *zero; /* zero may be NULL: 0 */
  uint64_t count;
  int64_t axis;
} quantum;

static bool is_type(const opt_value *v, uint8_t code, uint8_t bits) {
  return v != NULL && v->known && v->dtype.code == code && v->dtype.bits == bits && v->dtype.lanes == 1;
}

static bool is_bytes(const opt_value *v) {
  return is_type(v, HEDDLE_DTYPE_INT, 8) || is_type(v, HEDDLE_DTYPE_UINT, 8);
}

/* Of a node that quantises or dequantises; false where it is of another kind. */
static bool read_quantum(const opt_node *n, quantum *out) {
  static const char *const others[] = {"block_size", "output_dtype", "precision"};
  opt_value *scale = opt_in(n, 1), *zero = opt_in(n, 2);
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (opt_get_int(n, others[i], 0) != 0) return false;
  if (scale == NULL || scale->constant == NULL || !opt_is_float32(scale) || scale->ndim > 1) return false;
  *out = (quantum){scale, zero, opt_elements(scale), opt_get_int(n, "axis", 1)};
  return zero == NULL || (zero->constant != NULL && zero->known && opt_elements(zero) == out->count);
}

static bool is_number(const quantum *q) {
  return q->count == 1;
}

static int32_t zero_at(opt_net *net, const quantum *q, uint64_t i) {
  const void *bytes = q->zero != NULL ? opt_bytes(net, q->zero) : NULL;
  if (bytes == NULL) return 0;
  return q->zero->dtype.code == HEDDLE_DTYPE_INT ? ((const int8_t *)bytes)[i] : ((const uint8_t *)bytes)[i];
}

static float scale_at(opt_net *net, const quantum *q, uint64_t i) {
  float scale;
  memcpy(&scale, (const char *)opt_bytes(net, q->scale) + 4 * i, sizeof scale);
  return scale;
}

/* The zero point as an operand: ONNX wants it there. */
static opt_value *zero_operand(opt_net *net, const opt_node *n, const quantum *q, const opt_value *of) {
  void *byte;
  if (q->zero != NULL) return q->zero;
  opt_value *v = opt_constant(net, opt_format(net, "%s:zero_point", n->name), of->dtype, NULL, 0, &byte);
  if (v != NULL) *(char *)byte = 0;
  return v;
}

/* The DequantizeLinear that makes v from bytes, by one scale or several. */
static opt_node *dequantized(const opt_value *v, quantum *q) {
  opt_node *d = opt_maker(v, "DequantizeLinear");
  return d != NULL && is_bytes(opt_in(d, 0)) && read_quantum(d, q) ? d : NULL;
}

/* ---- operators that move numbers, or choose among them */

static bool moves(const opt_node *n) {
  static const char *const names[] = {"MaxPool", "Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze"};
  for (size_t i = 0; n != NULL && i < sizeof names / sizeof names[0]; i++)
    if (opt_is(n, names[i])) return n->n_outputs == 1;
  return false;
}

static bool same_quantum(opt_net *net, const quantum *a, const quantum *b) {
  return is_number(a) && is_number(b) && scale_at(net, a, 0) == scale_at(net, b, 0) && scale_at(net, a, 0) > 0 &&
         isfinite(scale_at(net, a, 0)) && zero_at(net, a, 0) == zero_at(net, b, 0);
}

/* Bytes that become floats and the same bytes again. */
static bool move_bytes(opt_net *net, opt_node *n, const quantum *to) {
  enum { MOST_INPUTS = 4 };
  opt_value *x = opt_in(n, 0), *in[MOST_INPUTS];
  quantum from;
  opt_node *between = moves(x->maker) && opt_is_inner(x) ? x->maker : NULL;
  if (between == NULL || between->n_inputs > MOST_INPUTS || between->n_inputs < 1) return false;
  opt_node *d = dequantized(opt_in(between, 0), &from);
  if (d == NULL || !same_quantum(net, &from, to) || !opt_same_home(n, d) || !opt_same_home(n, between)) return false;
  if (!n->outputs[0].known || memcmp(&opt_in(d, 0)->dtype, &n->outputs[0].dtype, sizeof(heddle_dtype)) != 0)
    return false;
  in[0] = opt_in(d, 0);
  for (uint32_t k = 1; k < between->n_inputs; k++) in[k] = opt_in(between, k);
  if (!opt_become(net, n, "", between->op, in, between->n_inputs, between->attrs, between->n_attrs)) return false;
  between->live = false;
  opt_note(net, "quantized", (const opt_node *const[]){d, between, n}, 3, "%s of the bytes, as '%s'", n->op, n->name);
  return true;
}

/* ---- products */

/* What stands before a QuantizeLinear: a product of dequantised operands, and maybe an activation. */
typedef struct product {
  opt_node *n, *act, *op, *dx, *dw, *db; /* n: the QuantizeLinear; act, db: or NULL */
  quantum x, w, b, y;
  int64_t channels;
  bool rows; /* a constant's first dimension is the channels' */
} product;

/* Whether quantising gives the ends of its range for all that the activation changes. */
static bool range_does(opt_net *net, const opt_node *act, const quantum *y, const opt_value *result) {
  const int32_t least = result->dtype.code == HEDDLE_DTYPE_INT ? -128 : 0, zero = zero_at(net, y, 0);
  const float scale = scale_at(net, y, 0);
  double low = 0, high = INFINITY;
  if (opt_is(act, "Clip")) {
    const opt_value *from = opt_in(act, 1), *to = opt_in(act, 2);
    low = -INFINITY;
    if (from != NULL && !opt_number(net, from, &low)) return false;
    if (to != NULL && !opt_number(net, to, &high)) return false;
    if (!(low <= high)) return false;
  } else if (!opt_is(act, "Relu")) {
    return false;
  }
  return rint((double)((float)low / scale)) + zero <= least &&
         rint((double)((float)high / scale)) + zero >= least + 255;
}

/* Constant weights whose scales go along their channels. */
static bool read_weights(const product *p) {
  const opt_value *w = opt_in(p->dw, 0);
  const int64_t axis = p->rows ? 0 : 1;
  if (w->constant == NULL || w->ndim < 2 || p->channels < 1) return false;
  return is_number(&p->w) ||
         ((p->w.axis == axis || p->w.axis + (int64_t)w->ndim == axis) && p->w.count == (uint64_t)p->channels);
}

static bool read_bias(opt_net *net, product *p) {
  const opt_value *b = opt_in(p->op, 2);
  if (b == NULL) return true;
  if (!b->known || b->ndim != 1 || b->shape[0] != p->channels) return false;
  if (b->constant != NULL) return opt_is_float32(b);
  p->db = opt_maker(b, "DequantizeLinear");
  if (p->db == NULL || !is_type(opt_in(p->db, 0), HEDDLE_DTYPE_INT, 32) || opt_in(p->db, 0)->constant == NULL ||
      !read_quantum(p->db, &p->b) || (!is_number(&p->b) && p->b.count != (uint64_t)p->channels))
    return false;
  if (p->b.zero == NULL) return true;
  const char *zeros = opt_bytes(net, p->b.zero);
  for (uint64_t i = 0; i < p->b.zero->bytes; i++)
    if (zeros[i] != 0) return false;
  return true;
}

static bool read_product(opt_net *net, opt_node *n, const quantum *to, product *p) {
  const opt_value *v = opt_in(n, 0);
  *p = (product){.n = n, .y = *to};
  if (!is_bytes(&n->outputs[0]) || !is_number(to) || !(scale_at(net, to, 0) > 0)) return false;
  if (opt_is(v->maker, "Relu") || opt_is(v->maker, "Clip")) {
    p->act = v->maker;
    if (!opt_is_inner(v) || !range_does(net, p->act, to, &n->outputs[0])) return false;
    v = opt_in(p->act, 0);
  }
  p->op = v != NULL ? v->maker : NULL;
  const bool conv = opt_is(p->op, "Conv"), gemm = opt_is(p->op, "Gemm"), matmul = opt_is(p->op, "MatMul");
  if ((!conv && !gemm && !matmul) || !opt_is_inner(v) || v->index != 0) return false;
  if (gemm && (opt_get_float(p->op, "alpha", 1) != 1 || opt_get_float(p->op, "beta", 1) != 1 ||
               opt_get_int(p->op, "transA", 0) != 0))
    return false;
  p->dx = dequantized(opt_in(p->op, 0), &p->x);
  p->dw = dequantized(opt_in(p->op, 1), &p->w);
  if (p->dx == NULL || p->dw == NULL || !is_number(&p->x)) return false;
  if (!opt_same_home(n, p->op) || !opt_same_home(n, p->dx) || (p->act != NULL && !opt_same_home(n, p->act)))
    return false;
  const opt_value *w = opt_in(p->dw, 0);
  if (!conv && w->ndim != 2) return false;
  p->rows = conv || (gemm && opt_get_int(p->op, "transB", 0) != 0);
  p->channels = w->ndim > 1 ? w->shape[p->rows ? 0 : 1] : 0;
  return read_weights(p) && read_bias(net, p);
}

/* The bias in steps of x's scale times w's. That of a DequantizeLinear has that scale, but for rounding, or is not ours;
 * floats are rounded, by less than what a step of the result has of them. */
static bool make_bias(opt_net *net, const product *p, opt_value **out) {
  opt_value *b = opt_in(p->op, 2), *made;
  void *bytes;
  *out = NULL;
  if (b == NULL) return true;
  const int32_t *whole = p->db != NULL ? opt_bytes(net, opt_in(p->db, 0)) : NULL;
  const float *real = p->db == NULL ? opt_bytes(net, b) : NULL;
  if (whole == NULL && real == NULL) return false;
  made = opt_constant(net, opt_format(net, "%s:bias", p->n->name), (heddle_dtype){HEDDLE_DTYPE_INT, 32, 1},
                      &p->channels, 1, &bytes);
  if (made == NULL) return false;
  for (int64_t c = 0; c < p->channels; c++) {
    const float step = scale_at(net, &p->x, 0) * scale_at(net, &p->w, is_number(&p->w) ? 0 : (uint64_t)c);
    double x;
    if (whole != NULL) {
      const float own = scale_at(net, &p->b, is_number(&p->b) ? 0 : (uint64_t)c);
      if (!(fabsf(own - step) <= 1e-5f * step) && whole[c] != 0) return false;
      x = whole[c];
    } else {
      x = rint((double)real[c] / (double)step);
    }
    if (!(fabs(x) <= 1e9)) return false;
    ((int32_t *)bytes)[c] = (int32_t)x;
  }
  *out = made;
  return true;
}

/* Weights of a Gemm as those of a Conv of one place: [channels, depth, 1]. */
static opt_value *conv_weights(opt_net *net, const product *p) {
  const opt_value *w = opt_in(p->dw, 0);
  const int64_t depth = w->shape[p->rows ? 1 : 0], shape[3] = {p->channels, depth, 1};
  void *bytes;
  opt_value *v = opt_constant(net, opt_format(net, "%s:weights", p->n->name), w->dtype, shape, 3, &bytes);
  if (v == NULL) return NULL;
  const char *from = opt_bytes(net, w);
  for (int64_t c = 0; c < p->channels; c++)
    for (int64_t k = 0; k < depth; k++)
      ((char *)bytes)[c * depth + k] = p->rows ? from[c * depth + k] : from[k * p->channels + c];
  return v;
}

/* The rows of a Gemm are images of one place: what was between its operands and the result makes and removes it. */
static bool become_gemm(opt_net *net, const product *p, opt_value **in, uint32_t count) {
  const int64_t one = 1;
  opt_node *first = opt_is_inner(&p->dx->outputs[0]) ? p->dx : p->act != NULL ? p->op : NULL;
  opt_node *second = first == p->dx ? p->op : p->act;
  void *bytes;
  if (first == NULL) return false;
  opt_value *axis = opt_constant(net, opt_format(net, "%s:axis", p->n->name), (heddle_dtype){HEDDLE_DTYPE_INT, 64, 1},
                                 &one, 1, &bytes);
  in[3] = conv_weights(net, p);
  if (axis == NULL || in[3] == NULL) return false;
  *(int64_t *)bytes = 2;
  opt_value *x[2] = {in[0], axis}, *y[2] = {&second->outputs[0], axis};
  if (!opt_become(net, first, "", "Unsqueeze", x, 2, NULL, 0)) return false;
  in[0] = &first->outputs[0];
  return opt_become(net, second, "", "QLinearConv", in, count, NULL, 0) &&
         opt_become(net, p->n, "", "Squeeze", y, 2, NULL, 0);
}

static bool become_product(opt_net *net, const product *p) {
  opt_value *bias;
  const opt_node *named[5] = {p->dx, p->dw, p->op};
  uint32_t n_named = 3;
  if (!make_bias(net, p, &bias)) return false;
  const bool conv = opt_is(p->op, "Conv"), gemm = opt_is(p->op, "Gemm");
  opt_value *in[9] = {opt_in(p->dx, 0),
                      p->x.scale,
                      zero_operand(net, p->dx, &p->x, opt_in(p->dx, 0)),
                      opt_in(p->dw, 0),
                      p->w.scale,
                      zero_operand(net, p->dw, &p->w, opt_in(p->dw, 0)),
                      p->y.scale,
                      zero_operand(net, p->n, &p->y, &p->n->outputs[0]),
                      bias};
  const uint32_t count = bias != NULL ? 9 : 8;
  if (net->failed) return false;
  if (p->act != NULL) named[n_named++] = p->act;
  named[n_named++] = p->n;
  const char *what = conv || gemm ? "QLinearConv" : "QLinearMatMul";
  if (gemm ? !become_gemm(net, p, in, count)
           : !opt_become(net, p->n, "", what, in, count, conv ? p->op->attrs : NULL, conv ? p->op->n_attrs : 0))
    return false;
  opt_note(net, "quantized", named, n_named, "one %s, as '%s'", what, p->n->name);
  return true;
}

bool opt_pass_quantized(opt_net *net) {
  bool changed = false;
  for (uint32_t i = 0; i < net->n_nodes && !net->failed; i++) {
    opt_node *n = &net->nodes[i];
    quantum to;
    product p;
    if (!n->live || !opt_is(n, "QuantizeLinear") || n->n_outputs != 1 || opt_in(n, 0) == NULL ||
        opt_in(n, 0)->maker == NULL || !read_quantum(n, &to))
      continue;
    if (move_bytes(net, n, &to) || (read_product(net, n, &to, &p) && become_product(net, &p))) {
      opt_count(net); /* what lost its users makes room for the next; results keep their types */
      changed = true;
    }
  }
  return changed;
}
