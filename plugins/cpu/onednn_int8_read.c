/* Reads quantised regions: operands by the places that each operator gives them, windows, scales and zero points. What
 * must be known before the run is refused where it is not, and so is what could leave int32 or the range of floats. */
#include "onednn_int8.h"

#include <math.h>

/* The most products of bytes whose sum, with a bias of as much, is an int32. */
enum { MOST_PRODUCTS = 16000 };
#define MOST_BIAS 1000000000

/* Scales within these bounds keep every number that is made of them finite. */
#define LEAST_SCALE 1e-30f
#define MOST_SCALE 1e30f

bool int8_is_byte(const heddle_pvalue *value) {
  return value != NULL && value->dtype.lanes == 1 && value->dtype.bits == 8 &&
         (value->dtype.code == HEDDLE_DTYPE_INT || value->dtype.code == HEDDLE_DTYPE_UINT);
}

static bool is_float(const heddle_pvalue *value) {
  return value != NULL && region_dtype_is(value->dtype, HEDDLE_DTYPE_FLOAT, 32);
}

static uint64_t count_of(const heddle_pvalue *value) {
  uint64_t n = 0;
  region_value_count(value, &n);
  return n;
}

/* A constant of n floats within the bounds of scales, or of one. */
static bool read_scales(const heddle_pvalue *value, int64_t n, const float **out, int64_t *count) {
  if (!is_float(value) || value->data == NULL || (uintptr_t)value->data % sizeof(float) != 0) return false;
  *out = value->data;
  *count = (int64_t)count_of(value);
  if (*count != 1 && *count != n) return false;
  for (int64_t i = 0; i < *count; i++)
    if (!((*out)[i] >= LEAST_SCALE && (*out)[i] <= MOST_SCALE)) return false;
  return true;
}

/* A constant zero point of the type of what it belongs to. */
static bool zero_fits(const heddle_pvalue *zero, const heddle_pvalue *of, int64_t n) {
  if (zero == NULL) return true;
  const int64_t count = (int64_t)count_of(zero);
  return region_dtype_equal(zero->dtype, of->dtype) && (count == 1 || count == n);
}

/* ---------------------------------------------------------------- products */

static bool read_conv(int8_product *p) {
  const heddle_pvalue *x = p->x, *w = p->w;
  const ref_node as_conv = {.region = p->region, .node = p->node, .in = {x, w}, .out = p->y};
  if (x->ndim < 3 || x->ndim > 4 || w->ndim != x->ndim || p->y->ndim != x->ndim) return false;
  if (region_attr_int(p->node, "group", 1, &p->groups, NULL) != HEDDLE_OK || p->groups < 1) return false;
  if (ref_window_plan(&as_conv, w->shape + 2, &p->window, NULL) != HEDDLE_OK) return false;
  p->images = x->shape[0];
  p->in_channels = x->shape[1];
  p->out_channels = w->shape[0];
  p->taps = p->window.kernel[1] * p->window.kernel[2];
  if (p->rounds && p->taps == 1 && p->window.in[1] * p->window.in[2] == 1 && p->window.out[1] * p->window.out[2] == 1 &&
      p->window.pad[1] + p->window.pad[2] == 0) { /* images of one place are rows of one */
    p->window.in[1] = p->window.out[1] = p->images;
    p->window.stride[1] = p->images = 1;
  }
  return p->in_channels % p->groups == 0 && p->out_channels % p->groups == 0 && w->shape[1] > 0 &&
         w->shape[1] == p->in_channels / p->groups && p->y->shape[0] == x->shape[0] &&
         p->y->shape[1] == p->out_channels && p->window.kernel[1] * p->window.kernel[2] <= MOST_PRODUCTS;
}

/* A matrix of constants on the right; all else on the left is rows. */
static bool read_matmul(int8_product *p) {
  const heddle_pvalue *x = p->x, *w = p->w;
  if (x->ndim < 2 || w->ndim != 2 || p->y->ndim != x->ndim || x->shape[x->ndim - 1] != w->shape[0]) return false;
  for (int32_t d = 0; d < x->ndim - 1; d++)
    if (p->y->shape[d] != x->shape[d]) return false;
  const uint64_t count = count_of(x);
  p->images = p->groups = p->taps = 1;
  p->in_channels = w->shape[0];
  p->out_channels = w->shape[1];
  if (p->in_channels < 1 || p->y->shape[x->ndim - 1] != p->out_channels) return false;
  p->window = (ref_window){.in = {1, (int64_t)count / p->in_channels, 1},
                           .out = {1, (int64_t)count / p->in_channels, 1},
                           .kernel = {1, 1, 1},
                           .stride = {1, 1, 1},
                           .dilation = {1, 1, 1}};
  return true;
}

static bool read_bias(const int8_product *p) {
  if (p->bias == NULL) return true;
  if (!region_dtype_is(p->bias->dtype, HEDDLE_DTYPE_INT, 32) || p->bias->data == NULL || p->bias->ndim != 1 ||
      p->bias->shape[0] != p->out_channels || (uintptr_t)p->bias->data % sizeof(int32_t) != 0)
    return false;
  for (int64_t i = 0; i < p->out_channels; i++) {
    const int32_t b = ((const int32_t *)p->bias->data)[i];
    if (b > MOST_BIAS || b < -MOST_BIAS) return false;
  }
  return true;
}

/* Where operands are: x, its scale and zero point, w, its, and the result's. */
static const struct {
  const char *op;
  bool matmul, rounds;
  int8_t x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias; /* -1: none */
} products[] = {
    {"QLinearConv", false, true, 1, 2, 3, 4, 5, 6, 7, 8},
    {"QLinearMatMul", true, true, 1, 2, 3, 4, 5, 6, 7, -1},
    {"ConvInteger", false, false, -1, 2, 1, -1, 3, -1, -1, -1},
    {"MatMulInteger", true, false, -1, 2, 1, -1, 3, -1, -1, -1},
};

static const heddle_pvalue *operand(const int8_product *p, int8_t k) {
  return k >= 0 ? region_node_input(p->region, p->node, (uint32_t)k) : NULL;
}

static int32_t index_of(const int8_product *p, int8_t k) {
  return k >= 0 && (uint32_t)k < p->node->n_inputs ? p->node->inputs[k] : -1;
}

bool int8_is_op(const heddle_pnode *node, const char *op) {
  return node != NULL && node->op != NULL && strcmp(node->op, op) == 0 &&
         (node->domain == NULL || node->domain[0] == '\0') && node->n_outputs == 1 &&
         node->opset >= HEDDLE__OPSET_FIRST && region_opset(node, HEDDLE__OPSET_LAST) <= HEDDLE__OPSET_LAST;
}

/* The other operand of node `at`, an operator of two, which takes `on`; -1. Its last dimension alone may be more than 1,
 * and is that of the product's result. */
static int32_t other_operand(const int8_product *p, uint64_t at, const char *op, int32_t on, uint64_t *count) {
  const heddle_pnode *node = region_node(p->region, at);
  if (!int8_is_op(node, op) || node->n_inputs != 2 || (node->inputs[0] == on) == (node->inputs[1] == on)) return -1;
  const int32_t other = node->inputs[node->inputs[0] == on ? 1 : 0];
  const heddle_pvalue *v = region_value(p->region, other);
  if (!is_float(v) || region_input_slot(p->region, other) < 0 || v->ndim > p->y->ndim) return -1;
  *count = count_of(v);
  const bool row = v->ndim > 0 && v->shape[v->ndim - 1] == p->out_channels && *count == (uint64_t)p->out_channels;
  return *count == 1 || row ? other : -1;
}

/* Cast, Mul and maybe Add behind a MatMulInteger. */
static bool read_real(int8_product *p) {
  const uint64_t n = p->region->nodes.count;
  const heddle_pnode *cast = region_node(p->region, 1);
  int64_t to = 0;
  uint64_t count = 0;
  if (!p->matmul || p->rounds || n > 4 || !int8_is_op(cast, "Cast") || cast->inputs[0] != p->node->outputs[0] ||
      region_attr_int(cast, "to", 0, &to, NULL) != HEDDLE_OK || to != 1)
    return false;
  p->times_value = other_operand(p, 2, "Mul", cast->outputs[0], &count);
  if (p->times_value < 0) return false;
  p->times_one = count == 1;
  if (n == 4) {
    p->plus_value = other_operand(p, 3, "Add", region_node(p->region, 2)->outputs[0], &count);
    if (p->plus_value < 0 || count != (uint64_t)p->out_channels) return false;
  }
  p->real = true;
  const int32_t last = region_node(p->region, n - 1)->outputs[0];
  const heddle_pvalue *y = region_value(p->region, last);
  return y != NULL && region_output_slot(p->region, last) == 0 && is_float(y) && region_shape_equal(p->y, y);
}

bool int8_read_product(const heddle_pregion *region, int8_product *p) {
  const heddle_pnode *node = region_node(region, 0);
  size_t i = 0;
  *p = (int8_product){.region = region, .node = node, .x_zero_value = -1, .times_value = -1, .plus_value = -1};
  if (region->nodes.count == 2 || node == NULL || node->op == NULL ||
      (node->domain != NULL && node->domain[0] != '\0') || region->n_outputs != 1 || region->n_inputs > ONEDNN_INPUTS ||
      node->n_outputs != 1 || node->opset < HEDDLE__OPSET_FIRST ||
      region_opset(node, HEDDLE__OPSET_LAST) > HEDDLE__OPSET_LAST)
    return false;
  while (i < sizeof products / sizeof products[0] && strcmp(products[i].op, node->op) != 0) i++;
  if (i == sizeof products / sizeof products[0]) return false;
  p->matmul = products[i].matmul;
  p->rounds = products[i].rounds;
  p->x_value = index_of(p, 0);
  p->x = operand(p, 0);
  p->w = operand(p, products[i].w);
  p->y = region_node_output(region, node, 0);
  p->x_zero = operand(p, products[i].x_zero);
  p->w_zero = operand(p, products[i].w_zero);
  p->bias = operand(p, products[i].bias);
  if (!int8_is_byte(p->x) || !int8_is_byte(p->w) || p->w->data == NULL || p->y == NULL) return false;
  if (count_of(p->x) == 0 || count_of(p->y) == 0 || !(p->matmul ? read_matmul(p) : read_conv(p))) return false;
  if (count_of(p->w) / (uint64_t)p->out_channels > MOST_PRODUCTS || p->out_channels > INT32_MAX / 16) return false;
  if (!zero_fits(p->x_zero, p->x, 1) || !zero_fits(p->w_zero, p->w, p->out_channels) || !read_bias(p)) return false;
  if (p->w_zero != NULL && p->w_zero->data == NULL) return false;
  if (p->x_zero != NULL && p->x_zero->data == NULL) p->x_zero_value = index_of(p, products[i].x_zero);
  for (uint32_t k = 1; k < node->n_inputs; k++) /* a value in two places is another matter */
    if (node->inputs[k] >= 0 && node->inputs[k] == p->x_value) return false;
  if (!p->rounds && !region_dtype_is(p->y->dtype, HEDDLE_DTYPE_INT, 32)) return false;
  if (region->nodes.count > 1) return read_real(p);
  if (!p->rounds) return true;
  int64_t one;
  const heddle_pvalue *y_zero = operand(p, products[i].y_zero);
  if (!int8_is_byte(p->y) || !read_scales(operand(p, products[i].x_scale), 1, &p->x_scale, &one) ||
      !read_scales(operand(p, products[i].y_scale), 1, &p->y_scale, &one) ||
      !read_scales(operand(p, products[i].w_scale), p->out_channels, &p->w_scale, &p->scales) ||
      !zero_fits(y_zero, p->y, 1) || (y_zero != NULL && y_zero->data == NULL) || p->x_zero_value >= 0)
    return false;
  for (int64_t c = 0; c < p->scales; c++) {
    const float scale = *p->x_scale * p->w_scale[c] / *p->y_scale;
    if (!isfinite(scale)) return false;
  }
  p->y_zero = y_zero != NULL ? int8_byte(y_zero, 0) : 0;
  p->y_least = p->y->dtype.code == HEDDLE_DTYPE_INT ? -128 : 0;
  p->y_most = p->y_least + 255;
  return true;
}

/* ---------------------------------------------------------------- sums */

/* A scale and a zero point for a whole tensor of bytes. */
bool int8_read_quantum(const heddle_pregion *region, const heddle_pnode *node, const heddle_pvalue *bytes, float *scale,
                       int32_t *zero) {
  const heddle_pvalue *s = region_node_input(region, node, 1), *z = region_node_input(region, node, 2);
  const float *scales;
  int64_t count, named = 0, precision = 0;
  if (!int8_is_byte(bytes) || !read_scales(s, 1, &scales, &count) || s->ndim > 1 || !zero_fits(z, bytes, 1) ||
      (z != NULL && (z->data == NULL || z->ndim > 1)) ||
      region_attr_int(node, "output_dtype", 0, &named, NULL) != HEDDLE_OK || named != 0 ||
      region_attr_int(node, "precision", 0, &precision, NULL) != HEDDLE_OK || precision != 0)
    return false;
  *scale = *scales;
  *zero = z != NULL ? int8_byte(z, 0) : 0;
  return true;
}

bool int8_read_sum(const heddle_pregion *region, int8_sum *out) {
  const heddle_pnode *add = region_node(region, 2);
  const uint64_t n = region->nodes.count;
  *out = (int8_sum){.relu = n == 5};
  if ((n != 4 && n != 5) || region->n_outputs != 1 || region->n_inputs > ONEDNN_INPUTS) return false;
  out->times = int8_is_op(add, "Mul");
  if (!out->times && !int8_is_op(add, "Add")) return false;
  for (uint64_t k = 0; k < 2; k++) {
    const heddle_pnode *first = region_node(region, 0), *node = region_node(region, 1);
    if (int8_is_op(first, "DequantizeLinear") && first->outputs[0] == add->inputs[k]) node = first;
    const heddle_pvalue *x = node != NULL ? region_node_input(region, node, 0) : NULL;
    if (!int8_is_op(node, "DequantizeLinear") || !int8_read_quantum(region, node, x, &out->scale[k], &out->zero[k]))
      return false;
    if (add->inputs[k] != node->outputs[0] || !is_float(region_node_output(region, node, 0))) return false;
    out->values[k] = node->inputs[0];
    if (k == 0) out->a = x;
    else out->b = x;
  }
  int32_t on = add->outputs[0];
  if (out->relu) {
    const heddle_pnode *relu = region_node(region, 3);
    if (!int8_is_op(relu, "Relu") || relu->inputs[0] != on) return false;
    on = relu->outputs[0];
  }
  const heddle_pnode *last = region_node(region, n - 1);
  if (!int8_is_op(last, "QuantizeLinear") || last->inputs[0] != on) return false;
  out->y = region_node_output(region, last, 0);
  return out->y != NULL && int8_read_quantum(region, last, out->y, &out->scale[2], &out->zero[2]) &&
         region_output_slot(region, last->outputs[0]) == 0 && region_shape_equal(out->a, out->b) &&
         region_shape_equal(out->a, out->y) && count_of(out->y) > 0;
}

/* ---------------------------------------------------------------- MaxPool */

bool int8_read_pool(const heddle_pregion *region, int8_pool *out) {
  const heddle_pnode *node = region_node(region, 0);
  if (region->nodes.count != 1 || region->n_outputs != 1 || !int8_is_op(node, "MaxPool")) return false;
  *out = (int8_pool){
      .x = region_node_input(region, node, 0), .y = region_node_output(region, node, 0), .value = node->inputs[0]};
  const ref_node as_pool = {.region = region, .node = node, .in = {out->x}, .out = out->y};
  return int8_is_byte(out->x) && out->y != NULL && region_dtype_equal(out->x->dtype, out->y->dtype) &&
         out->x->ndim >= 3 && out->x->ndim <= 4 && count_of(out->y) > 0 &&
         ref_window_plan(&as_pool, NULL, &out->window, NULL) == HEDDLE_OK && out->x->shape[0] == out->y->shape[0] &&
         out->x->shape[1] == out->y->shape[1];
}
