/* Reading a node: QLinearConv, QLinearMatMul and MaxPool of bytes become layers, or are refused with the reason. */
#include "layer.h"

#include <math.h>
#include <string.h>

/* Longest dimension and largest tensor: indices inside the compiler are then far from their limits. */
#define LIMIT (INT32_C(1) << 24)

static heddle_status refuse(const heddle_pnode *node, heddle_error *err, const char *why) {
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%.200s': %.100s: npu %s", node->name != NULL ? node->name : "",
                node->op != NULL ? node->op : "", why);
}

static int is_bytes(const heddle_pvalue *v) {
  return v != NULL &&
         (region_dtype_is(v->dtype, HEDDLE_DTYPE_INT, 8) || region_dtype_is(v->dtype, HEDDLE_DTYPE_UINT, 8));
}

static int is_unsigned(const heddle_pvalue *v) {
  return v->dtype.code == HEDDLE_DTYPE_UINT;
}

static int64_t count_of(const heddle_pvalue *v) {
  uint64_t count;
  return v != NULL && region_value_count(v, &count) && count <= LIMIT ? (int64_t)count : -1;
}

static int is_constant(const heddle_pvalue *v, uint64_t width, int64_t count) {
  return v != NULL && v->data != NULL && count_of(v) == count && v->data_bytes >= (uint64_t)count * width;
}

int32_t npu_byte_at(const heddle_pvalue *v, int64_t k) {
  const uint8_t byte = ((const uint8_t *)v->data)[k];
  return is_unsigned(v) ? (int32_t)byte - 128 : (int8_t)byte;
}

int32_t npu_weight_at(const npu_layer *l, int32_t m, int64_t k) {
  return npu_byte_at(l->weight, k) - npu_byte_at(l->zero_w, count_of(l->zero_w) == 1 ? 0 : m);
}

float npu_float_at(const heddle_pvalue *v, int64_t k) {
  float out;
  memcpy(&out, (const char *)v->data + (uint64_t)k * sizeof out, sizeof out); /* constants may lie at any address */
  return out;
}

int32_t npu_int_at(const heddle_pvalue *v, int64_t k) {
  int32_t out;
  memcpy(&out, (const char *)v->data + (uint64_t)k * sizeof out, sizeof out);
  return out;
}

int npu_layer_scale(const npu_layer *l, int32_t k, int32_t *multiplier, int32_t *shift) {
  const float x = npu_float_at(l->scale_x, 0), y = npu_float_at(l->scale_y, 0);
  const float w = npu_float_at(l->scale_w, count_of(l->scale_w) == 1 ? 0 : k);
  const float ratio = x * w / y; /* in float32, as ONNX Runtime has it */
  int exponent;
  if (!(x > 0 && w > 0 && y > 0 && ratio > 0) || isinf(ratio)) return 0;
  /* A float has 24 bits, so 31 hold it exactly. */
  const double fraction = frexp((double)ratio, &exponent);
  *multiplier = (int32_t)ldexp(fraction, 31 - 1);
  *shift = 30 - exponent;
  return *shift >= 0;
}

/* ---------------------------------------------------------------- shapes */

static int dims_ok(const heddle_pvalue *v) {
  for (int32_t i = 0; i < v->ndim; i++)
    if (v->shape[i] < 1 || v->shape[i] > LIMIT) return 0;
  return count_of(v) > 0;
}

/* A list of so many positive (or, with zero, non-negative) integers; absent gives each the value. */
static heddle_status read_ints(const heddle_pnode *node, const char *name, int32_t absent, int32_t *out, uint64_t n,
                               heddle_error *err) {
  const int64_t *list;
  uint64_t count;
  heddle_status s = region_attr_ints(node, name, &list, &count, err);
  if (s != HEDDLE_OK) return s;
  for (uint64_t i = 0; i < n; i++) out[i] = absent;
  if (count == 0) return HEDDLE_OK;
  if (count != n) return refuse(node, err, "takes windows over one or two dimensions, with a number for each");
  for (uint64_t i = 0; i < n; i++) {
    if (list[i] < (absent == 0 ? 0 : 1) || list[i] > 4096) return refuse(node, err, "takes windows up to 4096 wide");
    out[i] = (int32_t)list[i];
  }
  return HEDDLE_OK;
}

/* Rows and columns of an image; a row alone is an image of one row. */
static int read_image(const heddle_pvalue *v, int32_t *rows, int32_t *columns) {
  if (v->ndim != 3 && v->ndim != 4) return 0;
  *rows = v->ndim == 4 ? (int32_t)v->shape[2] : 1;
  *columns = (int32_t)v->shape[v->ndim - 1];
  return 1;
}

/* One attribute for rows and columns; in an image of one row it has the columns' alone. */
static heddle_status read_pair(const npu_layer *l, const char *name, int32_t dims, int32_t absent, int32_t *row,
                               int32_t *column, heddle_error *err) {
  int32_t two[2] = {absent, absent};
  const heddle_status s = read_ints(l->node, name, absent, two, (uint64_t)dims, err);
  *row = dims == 2 ? two[0] : absent;
  *column = dims == 2 ? two[1] : two[0];
  return s;
}

/* Strides, dilations and pads; the result's shape must follow from them. */
static heddle_status read_window(npu_layer *l, const heddle_pvalue *y, heddle_error *err) {
  const char *pad;
  const int32_t dims = y->ndim - 2;
  int32_t pads[4] = {0};
  if (!read_image(y, &l->oh, &l->ow)) return refuse(l->node, err, "takes windows over one or two dimensions");
  heddle_status s = read_pair(l, "strides", dims, 1, &l->sy, &l->sx, err);
  if (s == HEDDLE_OK) s = read_pair(l, "dilations", dims, 1, &l->dy, &l->dx, err);
  if (s == HEDDLE_OK) s = read_ints(l->node, "pads", 0, pads, 2 * (uint64_t)dims, err);
  if (s == HEDDLE_OK) s = region_attr_string(l->node, "auto_pad", "NOTSET", &pad, err);
  if (s != HEDDLE_OK) return s;
  if (strcmp(pad, "VALID") == 0) memset(pads, 0, sizeof pads);
  else if (strcmp(pad, "NOTSET") != 0) return refuse(l->node, err, "takes pads as numbers (auto_pad NOTSET or VALID)");
  const int32_t bottom = dims == 2 ? pads[2] : 0, right = pads[2 * dims - 1];
  l->top = dims == 2 ? pads[0] : 0;
  l->left = dims == 2 ? pads[1] : pads[0];
  const int64_t high = (int64_t)l->h + l->top + bottom - (int64_t)(l->kh - 1) * l->dy - 1;
  const int64_t wide = (int64_t)l->w + l->left + right - (int64_t)(l->kw - 1) * l->dx - 1;
  if (high < 0 || wide < 0 || y->shape[0] != l->n || y->shape[1] != l->m || l->oh != high / l->sy + 1 ||
      l->ow != wide / l->sx + 1)
    return refuse(l->node, err, "expects a result whose shape follows from the window");
  return HEDDLE_OK;
}

/* The largest tile of results whose operands and results fit a half of their scratchpads. */
static heddle_status choose_tile(npu_layer *l, heddle_error *err) {
  const int32_t results = l->is_pool ? NPU_HALF_POOL : NPU_HALF_ACC;
  const int32_t operands = l->is_pool ? NPU_HALF_ACC : NPU_HALF_INPUT;
  l->th = l->oh < results ? l->oh : results;
  l->tw = l->ow < results ? l->ow : results;
  for (;;) {
    const int64_t rows = (int64_t)(l->th - 1) * l->sy + (int64_t)(l->kh - 1) * l->dy + 1;
    const int64_t columns = (int64_t)(l->tw - 1) * l->sx + (int64_t)(l->kw - 1) * l->dx + 1;
    if (rows * columns <= operands && l->th * l->tw <= results) {
      l->rows = (int32_t)rows, l->columns = (int32_t)columns;
      break;
    }
    if (l->th > 1) l->th--;
    else if (l->tw > 1) l->tw--;
    else return refuse(l->node, err, "has too small an input scratchpad for this window");
  }
  if (!l->is_pool && l->kh * l->kw > NPU_HALF_WEIGHT)
    return refuse(l->node, err, "has too small a weight scratchpad for this window");
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- operators */

/* Is it a constant zero point for that value: one, or one a channel? */
static int is_zero(const heddle_pvalue *zero, const heddle_pvalue *of, int64_t most) {
  const int64_t count = count_of(zero);
  return zero != NULL && region_dtype_equal(zero->dtype, of->dtype) && (count == 1 || count == most) &&
         is_constant(zero, 1, count);
}

static int is_scale(const heddle_pvalue *v, int64_t most) {
  const int64_t count = count_of(v);
  return v != NULL && region_dtype_is(v->dtype, HEDDLE_DTYPE_FLOAT, 32) && (count == 1 || count == most) &&
         is_constant(v, 4, count);
}

/* What both products have: scales, zero points and weights, at the same places. */
static heddle_status read_product(const heddle_pregion *region, npu_layer *l, int64_t weights, int64_t sums,
                                  heddle_error *err) {
  const heddle_pvalue *x = region_node_input(region, l->node, 0), *y = region_node_output(region, l->node, 0);
  int32_t multiplier, shift;
  l->weight = region_node_input(region, l->node, 3);
  l->scale_x = region_node_input(region, l->node, 1);
  l->scale_w = region_node_input(region, l->node, 4);
  l->scale_y = region_node_input(region, l->node, 6);
  if (!is_constant(l->weight, 1, weights)) return refuse(l->node, err, "takes constant weights only");
  if (!is_scale(l->scale_x, 1) || !is_scale(l->scale_w, l->m) || !is_scale(l->scale_y, 1))
    return refuse(l->node, err, "takes constant scales of float32 only, one or one a channel of the weights");
  const heddle_pvalue *zero_x = region_node_input(region, l->node, 2), *zero_y = region_node_input(region, l->node, 7);
  l->zero_w = region_node_input(region, l->node, 5);
  if (!is_zero(zero_x, x, 1) || !is_zero(l->zero_w, l->weight, l->m) || !is_zero(zero_y, y, 1))
    return refuse(l->node, err, "takes constant zero points only, one or one a channel of the weights");
  l->zero_x = npu_byte_at(zero_x, 0);
  l->zero_y = npu_byte_at(zero_y, 0);
  if (sums > 32768) return refuse(l->node, err, "adds up at most 32768 products in 32 bits");
  for (int32_t k = 0; k < l->m; k++)
    if (!npu_layer_scale(l, k, &multiplier, &shift)) return refuse(l->node, err, "takes positive scales only");
  l->parts = 1;
  for (int64_t k = 0; k < weights && l->parts == 1; k++) {
    const int32_t v = npu_weight_at(l, (int32_t)(l->is_matrix ? k % l->m : k / sums), k);
    if (v < -128 || v > 127) l->parts = 2;
  }
  return HEDDLE_OK;
}

static heddle_status read_conv(const heddle_pregion *region, npu_layer *l, heddle_error *err) {
  const heddle_pvalue *w = region_node_input(region, l->node, 3), *x = region_node_input(region, l->node, 0);
  const heddle_pvalue *y = region_node_output(region, l->node, 0);
  int64_t group;
  int32_t kh, kw;
  if (!read_image(x, &l->h, &l->w) || !is_bytes(w) || w->ndim != x->ndim || y->ndim != x->ndim || !dims_ok(w) ||
      !read_image(w, &l->kh, &l->kw))
    return refuse(l->node, err, "convolves images of one or two dimensions");
  l->n = (int32_t)x->shape[0], l->c = (int32_t)x->shape[1], l->m = (int32_t)w->shape[0];
  heddle_status s = region_attr_int(l->node, "group", 1, &group, err);
  if (s == HEDDLE_OK) s = read_pair(l, "kernel_shape", x->ndim - 2, -1, &kh, &kw, err);
  if (s != HEDDLE_OK) return s;
  if (group < 1 || group > l->m || l->m % group != 0 || w->shape[1] * group != l->c)
    return refuse(l->node, err, "expects groups that fit the weights");
  l->groups = (int32_t)group;
  if ((kw != -1 && (kw != l->kw || (x->ndim == 4 && kh != l->kh))) || l->kh > 4096 || l->kw > 4096)
    return refuse(l->node, err, "expects kernel_shape to be that of the weights");
  l->bias = region_node_input(region, l->node, 8);
  if (l->bias != NULL && (!region_dtype_is(l->bias->dtype, HEDDLE_DTYPE_INT, 32) || !is_constant(l->bias, 4, l->m)))
    return refuse(l->node, err, "takes a constant bias of int32");
  s = read_window(l, y, err);
  if (s == HEDDLE_OK) s = read_product(region, l, count_of(w), (int64_t)l->c / group * l->kh * l->kw, err);
  return s;
}

static heddle_status read_matmul(const heddle_pregion *region, npu_layer *l, heddle_error *err) {
  const heddle_pvalue *w = region_node_input(region, l->node, 3), *x = region_node_input(region, l->node, 0);
  const heddle_pvalue *y = region_node_output(region, l->node, 0);
  if (x->ndim < 1 || !is_bytes(w) || w->ndim != 2 || !dims_ok(w) || w->shape[0] != x->shape[x->ndim - 1])
    return refuse(l->node, err, "multiplies with a matrix of constants");
  l->is_matrix = 1;
  l->groups = l->n = l->h = l->oh = l->kh = l->kw = l->sy = l->sx = l->dy = l->dx = 1;
  l->c = (int32_t)w->shape[0], l->m = (int32_t)w->shape[1];
  l->w = l->ow = (int32_t)(count_of(x) / l->c);
  if (count_of(y) != (int64_t)l->w * l->m) return refuse(l->node, err, "expects a result of the shape of the product");
  return read_product(region, l, count_of(w), l->c, err);
}

static heddle_status read_pool(const heddle_pregion *region, npu_layer *l, heddle_error *err) {
  const heddle_pvalue *x = region_node_input(region, l->node, 0), *y = region_node_output(region, l->node, 0);
  int64_t ceil_mode;
  int32_t kh;
  if (!read_image(x, &l->h, &l->w) || y->ndim != x->ndim || !region_dtype_equal(x->dtype, y->dtype))
    return refuse(l->node, err, "pools images of one or two dimensions");
  if (l->node->n_outputs > 1 && l->node->outputs[1] >= 0) return refuse(l->node, err, "has no indices of maxima");
  l->is_pool = l->groups = 1;
  l->n = (int32_t)x->shape[0], l->c = l->m = (int32_t)x->shape[1];
  heddle_status s = region_attr_int(l->node, "ceil_mode", 0, &ceil_mode, err);
  if (s == HEDDLE_OK) s = read_pair(l, "kernel_shape", x->ndim - 2, -1, &kh, &l->kw, err);
  if (s != HEDDLE_OK) return s;
  if (ceil_mode != 0 || l->kw < 1) return refuse(l->node, err, "takes pools with kernel_shape and without ceil_mode");
  l->kh = x->ndim == 4 ? kh : 1;
  return read_window(l, y, err);
}

heddle_status npu_layer_read(const heddle_pregion *region, const heddle_pnode *node, npu_layer *out,
                             heddle_error *err) {
  static const struct {
    const char *op;
    heddle_status (*read)(const heddle_pregion *region, npu_layer *l, heddle_error *err);
  } ops[] = {{"QLinearConv", read_conv}, {"QLinearMatMul", read_matmul}, {"MaxPool", read_pool}};
  const heddle_pvalue *x = region_node_input(region, node, 0), *y = region_node_output(region, node, 0);
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
    if (node->op == NULL || strcmp(node->op, ops[i].op) != 0 || (node->domain != NULL && node->domain[0] != '\0'))
      continue;
    if (node->opset < 13 || node->opset > 28) return refuse(node, err, "knows opsets 13 to 28");
    if (!is_bytes(x) || !is_bytes(y)) return refuse(node, err, "computes in int8 and uint8 only");
    if (!dims_ok(x) || !dims_ok(y)) return refuse(node, err, "takes tensors of 1 to 16,777,216 bytes");
    *out = (npu_layer){.node = node, .x = node->inputs[0], .y = node->outputs[0]};
    out->flip_x = is_unsigned(x), out->flip_y = is_unsigned(y);
    heddle_status s = ops[i].read(region, out, err);
    return s == HEDDLE_OK ? choose_tile(out, err) : s;
  }
  return refuse(node, err, "runs QLinearConv, QLinearMatMul and MaxPool");
}
