/* graph/infer_make.c: operators that make a tensor of little: Shape, Constant, ConstantOfShape, Range. */
#include "graph/infer.h"

#include <math.h>
#include <string.h>

heddle_status heddle__infer_shape(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                  heddle__known *outputs, int32_t *needs, heddle_error *err) {
  (void)g;
  (void)needs;
  (void)err;
  int64_t first, last;
  heddle__shape_range(node, inputs[0]->ndim, &first, &last);
  outputs[0].dtype = HEDDLE__INT64;
  outputs[0].ndim = 1;
  outputs[0].shape[0] = last - first;
  return HEDDLE_OK;
}

void heddle__shape_range(const heddle__node *node, uint32_t rank, int64_t *first, int64_t *last) {
  int64_t ends[2] = {heddle__attr_int(node, "start", 0), heddle__attr_int(node, "end", rank)};
  for (int i = 0; i < 2; i++) {
    if (ends[i] < 0) ends[i] = ends[i] < -(int64_t)rank ? 0 : ends[i] + rank;
    if (ends[i] > (int64_t)rank) ends[i] = rank;
  }
  *first = ends[0];
  *last = ends[1] > ends[0] ? ends[1] : ends[0];
}

heddle_status heddle__infer_constant(const heddle_graph *g, const heddle__node *node,
                                     const heddle__known *const *inputs, heddle__known *outputs, int32_t *needs,
                                     heddle_error *err) {
  (void)inputs;
  (void)needs;
  if (node->n_attrs != 1) return HEDDLE__BAD("it has %u attributes, expected one", node->n_attrs);
  const heddle_pattr *attr = &node->attrs[0];
  bool is_float = attr->kind == HEDDLE_ATTR_FLOAT || attr->kind == HEDDLE_ATTR_FLOATS;
  bool is_list = attr->kind == HEDDLE_ATTR_FLOATS || attr->kind == HEDDLE_ATTR_INTS;
  outputs[0].dtype = is_float ? HEDDLE__FLOAT32 : HEDDLE__INT64;
  outputs[0].ndim = is_list ? 1 : 0;
  outputs[0].shape[0] = (int64_t)attr->count;
  return HEDDLE_OK;
}

heddle_status heddle__infer_constant_of_shape(const heddle_graph *g, const heddle__node *node,
                                              const heddle__known *const *inputs, heddle__known *outputs,
                                              int32_t *needs, heddle_error *err) {
  uint32_t count;
  heddle__known *y = &outputs[0];
  heddle_status s = heddle__operand_ints(g, node, inputs, 0, y->shape, &count, needs, err);
  if (s != HEDDLE_OK) return s;
  y->ndim = count;
  for (uint32_t i = 0; i < count && s == HEDDLE_OK; i++) s = heddle__dimension(g, node, y->shape[i], i, err);
  int64_t type = heddle__attr_int(node, "dtype", heddle__attr(node, "value_int") != NULL ? 7 : 1);
  if (s == HEDDLE_OK && heddle__attr(node, "value_int") != NULL && heddle__attr(node, "value_float") != NULL)
    s = HEDDLE__BAD("it has both value_int and value_float, expected one");
  if (s == HEDDLE_OK && !heddle__onnx_dtype(type, &y->dtype))
    s = HEDDLE__BAD("dtype is %lld, expected the number of an ONNX tensor type of numbers or bool", (long long)type);
  return s;
}

/* A number of input i, which must be one; as a double, and as an integer where it is one. */
static heddle_status scalar(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                            uint32_t i, double *real, int64_t *whole, int32_t *needs, heddle_error *err) {
  const heddle__known *x = inputs[i];
  heddle_dtype d = x->dtype;
  uint64_t bytes;
  bool one = heddle__tensor_bytes(d, x->ndim, x->shape, &bytes, NULL) == HEDDLE_OK && bytes == d.bits / 8u;
  bool known =
      d.lanes == 1 && ((d.code == HEDDLE_DTYPE_INT && d.bits >= 16) || (d.code == HEDDLE_DTYPE_FLOAT && d.bits >= 32));
  if (!one || !known)
    return heddle__bad_input(g, node, i, x, err, "one number: float32, float64, int16, int32 or int64");
  heddle_status s = heddle__same_dtype(g, node, i, inputs, err);
  if (s == HEDDLE_OK) s = heddle__needs_bytes(g, node, inputs, i, needs, err);
  if (s != HEDDLE_OK) return s;
  union {
    float f32;
    double f64;
    int16_t i16;
    int32_t i32;
    int64_t i64;
  } v;
  memcpy(&v, x->data, bytes);
  *whole = d.bits == 64 ? v.i64 : d.bits == 32 ? v.i32 : v.i16;
  *real = d.code == HEDDLE_DTYPE_INT ? (double)*whole : d.bits == 64 ? v.f64 : (double)v.f32;
  return HEDDLE_OK;
}

heddle_status heddle__infer_range(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                  heddle__known *outputs, int32_t *needs, heddle_error *err) {
  double real[3] = {0, 0, 0};
  int64_t whole[3] = {0, 0, 0}, n = 0;
  for (uint32_t i = 0; i < 3; i++) {
    heddle_status s = scalar(g, node, inputs, i, &real[i], &whole[i], needs, err);
    if (s != HEDDLE_OK) return s;
  }
  const char *most = "its delta is 0, or it would have more than 2^61 elements";
  if (inputs[0]->dtype.code == HEDDLE_DTYPE_INT) {
    uint64_t span = whole[2] > 0 ? (uint64_t)whole[1] - (uint64_t)whole[0] : (uint64_t)whole[0] - (uint64_t)whole[1];
    uint64_t step = whole[2] > 0 ? (uint64_t)whole[2] : 0 - (uint64_t)whole[2];
    bool some = whole[2] > 0 ? whole[1] > whole[0] : whole[1] < whole[0];
    if (step == 0 || (some && (span - 1) / step >= INT64_MAX / 4)) return HEDDLE__BAD("%s", most);
    n = some ? (int64_t)((span - 1) / step) + 1 : 0;
  } else {
    double count = ceil((real[1] - real[0]) / real[2]);
    if (!(count <= 0x1p61)) return HEDDLE__BAD("%s", most);
    n = count > 0 ? (int64_t)count : 0;
  }
  outputs[0].dtype = inputs[0]->dtype;
  outputs[0].ndim = 1;
  outputs[0].shape[0] = n;
  return HEDDLE_OK;
}
