/* frontends/onnx/types.c: element types by number, and what is known of the types and ranks of values: what an upgrade needs
 * before the graph's own inference runs. results.c has what follows from operators. */
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
