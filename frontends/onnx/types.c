/* frontends/onnx/types.c: element types by number, and a light walk that keeps track of types and ranks: what an upgrade
 * needs to know of a value before the graph's own inference runs. */
#include "frontends/onnx/types.h"

#include <stdio.h>
#include <string.h>

#include "frontends/onnx/objects.h"

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
    [ONNX_FLOAT8E4M3FN] = {"FLOAT8E4M3FN", "e4m3_float8", {10, 8, 1}},
    [ONNX_FLOAT8E4M3FNUZ] = {"FLOAT8E4M3FNUZ", "e4m3fnuz_float8", {11, 8, 1}},
    [ONNX_FLOAT8E5M2] = {"FLOAT8E5M2", "e5m2_float8", {12, 8, 1}},
    [ONNX_FLOAT8E5M2FNUZ] = {"FLOAT8E5M2FNUZ", "e5m2fnuz_float8", {13, 8, 1}},
    [ONNX_UINT4] = {"UINT4", "uint4", {HEDDLE_DTYPE_UINT, 4, 1}},
    [ONNX_INT4] = {"INT4", "int4", {HEDDLE_DTYPE_INT, 4, 1}},
    [ONNX_FLOAT4E2M1] = {"FLOAT4E2M1", "e2m1_float4", {17, 4, 1}},
    [ONNX_FLOAT8E8M0] = {"FLOAT8E8M0", "e8m0_float8", {14, 8, 1}},
    [ONNX_UINT2] = {"UINT2", "uint2", {HEDDLE_DTYPE_UINT, 2, 1}},
    [ONNX_INT2] = {"INT2", "int2", {HEDDLE_DTYPE_INT, 2, 1}},
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
  const Onnx__TypeProto *type = v->type;
  if (v->name != NULL && heddle__onnx_is_object(type)) return heddle__onnx_note(r, v->name, ONNX_INT64, 0);
  if (v->name == NULL || type == NULL || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) return HEDDLE_OK;
  const Onnx__TypeProto__Tensor *t = type->tensor_type;
  return heddle__onnx_note(r, v->name, t->elem_type,
                           t->shape != NULL && t->shape->n_dim < 255 ? (int32_t)t->shape->n_dim : -1);
}

heddle_status heddle__onnx_learn(heddle__onnx_reader *r) {
  const Onnx__GraphProto *g = r->graph;
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < g->n_input && s == HEDDLE_OK; i++) s = heddle__onnx_learn_value(r, g->input[i]);
  for (size_t i = 0; i < g->n_input && s == HEDDLE_OK; i++) s = heddle__onnx_learn_object(r, g->input[i]);
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

static int32_t type_of(const heddle__onnx_reader *r, const Onnx__NodeProto *node, size_t k) {
  return k < node->n_input ? heddle__onnx_known_of(r, node->input[k]).type : 0;
}

/* The greatest rank of all operands; -1 where one is not known. */
static int32_t widest(const heddle__onnx_reader *r, const Onnx__NodeProto *node) {
  int32_t most = -1;
  for (size_t k = 0; k < node->n_input; k++) {
    const int32_t rank = heddle__onnx_known_of(r, node->input[k]).rank;
    if (rank < 0) return -1;
    if (rank > most) most = rank;
  }
  return most;
}

/* How many numbers a tensor of the model has that is input k; -1: it is none. */
static int32_t count_of(const heddle__onnx_reader *r, const Onnx__NodeProto *node, size_t k) {
  const Onnx__TensorProto *t = k < node->n_input ? heddle__onnx_find_tensor(r, node->input[k]) : NULL;
  return t != NULL && t->n_dims == 1 && t->dims[0] >= 0 && t->dims[0] < 255 ? (int32_t)t->dims[0] : -1;
}

/* The rank of the results of a node whose first operand has the rank first; -1: not known. */
static int32_t rank_of(const heddle__onnx_reader *r, const Onnx__NodeProto *node, int32_t first) {
  static const char same_rank[] =
      "Abs AveragePool BatchNormalization Cast CastLike Clip Concat Conv ConvTranspose CumSum DequantizeLinear Dropout "
      "DynamicQuantizeLinear Elu Erf Exp Gelu GlobalAveragePool GlobalMaxPool HardSigmoid HardSwish Identity "
      "InstanceNormalization LRN LayerNormalization LeakyRelu Log LogSoftmax MatMulNBits MaxPool Neg Not PRelu Pad "
      "QuantizeLinear RMSNormalization Reciprocal Relu Resize RotaryEmbedding Round Sigmoid Slice Softmax Split Sqrt "
      "Tanh "
      "Transpose Trilu Upsample";
  static const char broadcast[] =
      "Add And Div Equal Greater GreaterOrEqual Less LessOrEqual Max Min Mod Mul Or Pow Sub "
      "Sum Where";
  const char *op = node->op_type;
  int32_t more = count_of(r, node, 1);
  if (is_one_of(op, "Flatten Gemm")) return 2;
  if (strcmp(op, "Shape") == 0) return 1;
  if (is_one_of(op, broadcast)) return widest(r, node);
  if (is_one_of(op, "MatMul MatMulInteger")) {
    const int32_t rank = widest(r, node);
    for (size_t k = 0; k < 2 && k < node->n_input; k++)
      if (heddle__onnx_known_of(r, node->input[k]).rank < 2) return -1;
    return rank;
  }
  if (is_one_of(op, "Reshape Expand") && more >= 0) return strcmp(op, "Expand") == 0 && first > more ? first : more;
  if (strcmp(op, "Expand") == 0) return -1;
  if (first < 0) return -1;
  if (strcmp(op, "Unsqueeze") == 0) return more >= 0 ? first + more : -1;
  if (strcmp(op, "Squeeze") == 0) return more >= 0 && first >= more ? first - more : -1;
  if (strcmp(op, "Gather") == 0 && node->n_input == 2) {
    more = heddle__onnx_known_of(r, node->input[1]).rank;
    return more >= 0 && first > 0 ? first + more - 1 : -1;
  }
  if (strncmp(op, "Reduce", 6) == 0)
    return attr_int(node, "keepdims", 1) != 0 ? first : more > 0 && first >= more ? first - more : -1;
  return is_one_of(op, same_rank) ? first : -1;
}

heddle_status heddle__onnx_learn_node(heddle__onnx_reader *r, const Onnx__NodeProto *node) {
  static const char truths[] = "And Or Xor Not Equal Less LessOrEqual Greater GreaterOrEqual IsNaN IsInf";
  static const char indices[] = "Shape Size ArgMax ArgMin NonZero NonMaxSuppression";
  const char *op = node->op_type;
  heddle__onnx_known in = {0, -1};
  heddle_status s = HEDDLE_OK;
  size_t first = strcmp(op, "Where") == 0 ? 1 : 0; /* the input whose type the output has */
  if (node->n_input > first) in = heddle__onnx_known_of(r, node->input[first]);
  if (is_one_of(op, truths)) in.type = ONNX_BOOL;
  else if (is_one_of(op, indices)) in.type = ONNX_INT64;
  else if (strcmp(op, "Cast") == 0) in.type = (int32_t)attr_int(node, "to", 0);
  else if (strcmp(op, "DequantizeLinear") == 0) in.type = type_of(r, node, 1);
  else if (is_one_of(op, "MatMulInteger ConvInteger")) in.type = ONNX_INT32;
  else if (strcmp(op, "DynamicQuantizeLinear") == 0) in.type = ONNX_UINT8;
  else if (strcmp(op, "QuantizeLinear") == 0) in.type = node->n_input > 2 ? type_of(r, node, 2) : 0;
  else if (is_one_of(op, "RandomNormal RandomUniform")) in.type = (int32_t)attr_int(node, "dtype", ONNX_FLOAT);
  else if (strcmp(op, "Multinomial") == 0) in.type = (int32_t)attr_int(node, "dtype", ONNX_INT32);
  else if (is_one_of(op, "RandomNormalLike RandomUniformLike Bernoulli EyeLike"))
    in.type = (int32_t)attr_int(node, "dtype", in.type);
  else if (strcmp(op, "ConstantOfShape") == 0) in.type = 0; /* of an attribute: not known */
  in.rank = rank_of(r, node, in.rank);
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
  if (heddle__onnx_is_object(value->type)) {
    *dtype = json_string("int64");
    *shape = json_array();
    return *dtype != NULL && *shape != NULL ? HEDDLE_OK : heddle__onnx_no_memory(r);
  }
  const Onnx__TypeProto *type = value->type;
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
