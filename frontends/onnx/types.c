/* frontends/onnx/types.c: element types by number, and a light walk that keeps track of types and ranks: what an upgrade
 * needs to know of a value before the graph's own inference runs. */
#include "frontends/onnx/types.h"

#include <stdio.h>
#include <string.h>

#include "frontends/onnx/sequences.h"

static const struct type {
  const char *name;
  const char *word; /* NULL: Heddle has none */
  heddle_dtype dtype;
} types[] = {
    [0] = {"UNDEFINED", NULL, {0, 0, 0}},
    [ONNX_FLOAT] = {"FLOAT", "float32", {HEDDLE_DTYPE_FLOAT, 32, 1}},
    [ONNX_UINT8] = {"UINT8", "uint8", {HEDDLE_DTYPE_UINT, 8, 1}},
    [ONNX_INT8] = {"INT8", "int8", {HEDDLE_DTYPE_INT, 8, 1}},
    [ONNX_UINT16] = {"UINT16", "uint16", {HEDDLE_DTYPE_UINT, 16, 1}},
    [ONNX_INT16] = {"INT16", "int16", {HEDDLE_DTYPE_INT, 16, 1}},
    [ONNX_INT32] = {"INT32", "int32", {HEDDLE_DTYPE_INT, 32, 1}},
    [ONNX_INT64] = {"INT64", "int64", {HEDDLE_DTYPE_INT, 64, 1}},
    [ONNX_STRING] = {"STRING", "int64", {HEDDLE_DTYPE_INT, 64, 1}}, /* strings.h */
    [ONNX_BOOL] = {"BOOL", "uint1", {HEDDLE_DTYPE_BOOL, 8, 1}},
    [ONNX_FLOAT16] = {"FLOAT16", "float16", {HEDDLE_DTYPE_FLOAT, 16, 1}},
    [ONNX_DOUBLE] = {"DOUBLE", "float64", {HEDDLE_DTYPE_FLOAT, 64, 1}},
    [ONNX_UINT32] = {"UINT32", "uint32", {HEDDLE_DTYPE_UINT, 32, 1}},
    [ONNX_UINT64] = {"UINT64", "uint64", {HEDDLE_DTYPE_UINT, 64, 1}},
    [14] = {"COMPLEX64", NULL, {0, 0, 0}},
    [15] = {"COMPLEX128", NULL, {0, 0, 0}},
    [ONNX_BFLOAT16] = {"BFLOAT16", "bfloat16", {HEDDLE_DTYPE_BFLOAT, 16, 1}},
    [17] = {"FLOAT8E4M3FN", NULL, {0, 0, 0}},
    [18] = {"FLOAT8E4M3FNUZ", NULL, {0, 0, 0}},
    [19] = {"FLOAT8E5M2", NULL, {0, 0, 0}},
    [20] = {"FLOAT8E5M2FNUZ", NULL, {0, 0, 0}},
    [21] = {"UINT4", NULL, {0, 0, 0}},
    [22] = {"INT4", NULL, {0, 0, 0}},
    [23] = {"FLOAT4E2M1", NULL, {0, 0, 0}},
    [24] = {"FLOAT8E8M0", NULL, {0, 0, 0}},
    [25] = {"UINT2", NULL, {0, 0, 0}},
    [26] = {"INT2", NULL, {0, 0, 0}},
};

#define N_TYPES (int32_t)(sizeof types / sizeof types[0])

bool heddle__onnx_dtype_of(int32_t number, heddle_dtype *dtype, const char **word) {
  if (number < 0 || number >= N_TYPES || types[number].word == NULL) return false;
  *dtype = types[number].dtype;
  *word = types[number].word;
  return true;
}

const char *heddle__onnx_type_name(int32_t number, char out[24]) {
  if (number >= 0 && number < N_TYPES) return types[number].name;
  snprintf(out, 24, "type %d", (int)number);
  return out;
}

/* ---- what is known of values: type * 256 + rank + 1 */

heddle__onnx_known heddle__onnx_known_of(const heddle__onnx_reader *r, const char *name) {
  int64_t code = json_integer_value(json_object_get(r->types, name)); /* 0 where there is none */
  return (heddle__onnx_known){(int32_t)(code / 256), (int32_t)(code % 256) - 1};
}

heddle_status heddle__onnx_note(heddle__onnx_reader *r, const char *name, int32_t type, int32_t rank) {
  heddle__onnx_known old = heddle__onnx_known_of(r, name);
  if (name[0] == '\0' || type < 0 || rank > 254) return HEDDLE_OK;
  if (old.type != 0) type = old.type;
  if (old.rank >= 0) rank = old.rank;
  if (json_object_set_new(r->types, name, json_integer((json_int_t)type * 256 + rank + 1)) == 0) return HEDDLE_OK;
  return heddle__onnx_no_memory(r);
}

heddle_status heddle__onnx_learn_value(heddle__onnx_reader *r, const Onnx__ValueInfoProto *v) {
  const Onnx__TypeProto *type = heddle__onnx_plain_type(v->type);
  if (v->name == NULL || type == NULL || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) return HEDDLE_OK;
  const Onnx__TypeProto__Tensor *t = type->tensor_type;
  return heddle__onnx_note(r, v->name, t->elem_type,
                           t->shape != NULL && t->shape->n_dim < 255 ? (int32_t)t->shape->n_dim : -1);
}

heddle_status heddle__onnx_learn(heddle__onnx_reader *r) {
  const Onnx__GraphProto *g = r->graph;
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < g->n_input && s == HEDDLE_OK; i++) s = heddle__onnx_learn_value(r, g->input[i]);
  for (size_t i = 0; i < g->n_output && s == HEDDLE_OK; i++) s = heddle__onnx_learn_value(r, g->output[i]);
  for (size_t i = 0; i < g->n_value_info && s == HEDDLE_OK; i++) s = heddle__onnx_learn_value(r, g->value_info[i]);
  for (size_t i = 0; i < r->n_tensors && s == HEDDLE_OK; i++) {
    const Onnx__TensorProto *t = r->tensors[i];
    s = heddle__onnx_note(r, t->name, t->data_type, t->n_dims < 255 ? (int32_t)t->n_dims : -1);
  }
  return s;
}

static bool is_one_of(const char *op, const char *list) {
  size_t n = strlen(op);
  if (n == 0) return false;
  for (const char *at = strstr(list, op); at != NULL; at = strstr(at + 1, op))
    if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0')) return true;
  return false;
}

static int64_t attr_int(const Onnx__NodeProto *node, const char *name, int64_t fallback) {
  for (size_t i = 0; i < node->n_attribute; i++)
    if (node->attribute[i]->name != NULL && strcmp(node->attribute[i]->name, name) == 0) return node->attribute[i]->i;
  return fallback;
}

heddle_status heddle__onnx_learn_node(heddle__onnx_reader *r, const Onnx__NodeProto *node) {
  static const char truths[] = "And Or Xor Not Equal Less LessOrEqual Greater GreaterOrEqual IsNaN IsInf";
  static const char indices[] = "Shape Size ArgMax ArgMin NonZero NonMaxSuppression";
  static const char same_rank[] =
      "Abs AveragePool BatchNormalization Cast Clip Conv ConvTranspose Dropout Elu Erf Exp GlobalAveragePool "
      "GlobalMaxPool HardSigmoid HardSwish Identity InstanceNormalization LRN LayerNormalization LeakyRelu Log "
      "LogSoftmax MaxPool Neg PRelu Pad Relu Resize Sigmoid Slice Softmax Sqrt Tanh Transpose Upsample";
  static const char matrices[] = "Flatten Gemm";
  const char *op = node->op_type;
  heddle__onnx_known in = {0, -1};
  heddle_status s = HEDDLE_OK;
  size_t first = strcmp(op, "Where") == 0 ? 1 : 0; /* the input whose type the output has */
  if (node->n_input > first) in = heddle__onnx_known_of(r, node->input[first]);
  if (is_one_of(op, truths)) in.type = ONNX_BOOL;
  else if (is_one_of(op, indices)) in.type = ONNX_INT64;
  else if (strcmp(op, "Cast") == 0) in.type = (int32_t)attr_int(node, "to", 0);
  else if (is_one_of(op, "DequantizeLinear ConstantOfShape")) in.type = 0; /* of an operand or attribute: not known */
  else if (is_one_of(op, "QuantizeLinear DynamicQuantizeLinear MatMulInteger ConvInteger")) in.type = 0;
  if (is_one_of(op, matrices)) in.rank = 2;
  else if (!is_one_of(op, same_rank)) in.rank = -1;
  for (size_t k = 0; k < node->n_output && s == HEDDLE_OK; k++) {
    int32_t type = in.type;
    if (k > 0) type = is_one_of(op, "TopK MaxPool") ? ONNX_INT64 : is_one_of(op, "Split Unique") ? type : 0;
    s = heddle__onnx_note(r, node->output[k], type, k == 0 || strcmp(op, "Split") == 0 ? in.rank : -1);
  }
  return s;
}

/* ---- as columns of a graph */

static json_t *shape_of(const Onnx__TensorShapeProto *shape) {
  json_t *list = json_array();
  for (size_t i = 0; list != NULL && i < shape->n_dim; i++) {
    const Onnx__TensorShapeProto__Dimension *d = shape->dim[i];
    json_t *one;
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && d->dim_value >= 0)
      one = json_integer(d->dim_value);
    else if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && d->dim_param[0] != '\0')
      one = json_string(d->dim_param);
    else one = json_null();
    if (json_array_append_new(list, one) == 0) continue;
    json_decref(list);
    list = NULL;
  }
  return list;
}

heddle_status heddle__onnx_describe(heddle__onnx_reader *r, const Onnx__ValueInfoProto *value, const char *what,
                                    json_t **dtype, json_t **shape) {
  heddle_dtype as;
  const char *word;
  char shown[44], type_name[24];
  *dtype = *shape = NULL;
  const Onnx__TypeProto *type = heddle__onnx_plain_type(value->type); /* an optional that is an input is given */
  const char *kind = NULL;
  if (type == NULL || type->value_case == ONNX__TYPE_PROTO__VALUE__NOT_SET) kind = "of no type";
  else if (type->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE) kind = "a sequence, no tensor";
  else if (type->value_case == ONNX__TYPE_PROTO__VALUE_MAP_TYPE) kind = "a map, no tensor";
  else if (type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) kind = "no tensor";
  const Onnx__TypeProto__Tensor *t = kind == NULL ? type->tensor_type : NULL;
  heddle__onnx_show(value->name, shown);
  if (t == NULL) {
    heddle__onnx_problem(r, NULL, "%s '%s' is %s", what, shown, kind);
    return HEDDLE_OK;
  }
  if (!heddle__onnx_dtype_of(t->elem_type, &as, &word)) {
    heddle__onnx_problem(r, NULL, "%s '%s' is of %s", what, shown, heddle__onnx_type_name(t->elem_type, type_name));
    return HEDDLE_OK;
  }
  if (t->shape != NULL && t->shape->n_dim > HEDDLE__MAX_NDIM) {
    heddle__onnx_problem(r, NULL, "%s '%s' has %zu dimensions, and at most %d are possible", what, shown,
                         t->shape->n_dim, HEDDLE__MAX_NDIM);
    return HEDDLE_OK;
  }
  *dtype = json_string(word);
  *shape = t->shape != NULL ? shape_of(t->shape) : json_null();
  return *dtype != NULL && *shape != NULL ? HEDDLE_OK : heddle__onnx_no_memory(r);
}
