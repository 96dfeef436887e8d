/* frontends/onnx/upgrade_rest.c: operators that lost an attribute, a name or a meaning, and those whose attribute is a
 * tensor, which graphs have as a constant. */
#include <string.h>

#include "frontends/onnx/tensor.h"
#include "frontends/onnx/types.h"
#include "frontends/onnx/upgrade.h"

/* spatial 0, of the oldest opsets, had a mean for each element of a channel. Exporters name outputs of training that are not
 * used. */
HEDDLE__UPGRADE(heddle__upgrade_batch_norm) {
  (void)is_done;
  heddle__onnx_trim_outputs(r, node, 1);
  if (heddle__onnx_attr_int(node, "spatial", 1) != 1) heddle__onnx_problem(r, node, "spatial is 0");
  heddle__onnx_drop_attr(node, "spatial");
  return HEDDLE_OK;
}

/* Inference: the input, unchanged. The mask was of the input's type up to opset 9. */
HEDDLE__UPGRADE(heddle__upgrade_dropout) {
  (void)is_done;
  heddle__onnx_drop_attr(node, "ratio");
  heddle__onnx_drop_attr(node, "is_test");
  heddle__onnx_trim_outputs(r, node, 1);
  if (node->n_output == 1) {
    heddle__onnx_drop_attr(node, "seed");
    node->op_type = (char *)(uintptr_t) "Identity";
  } else if (r->opset < 10) {
    heddle__onnx_problem(r, node, "its mask is used");
  }
  return HEDDLE_OK;
}

HEDDLE__UPGRADE(heddle__upgrade_scatter) {
  (void)r;
  (void)is_done;
  node->op_type = (char *)(uintptr_t) "ScatterElements";
  return HEDDLE_OK;
}

/* The node's output becomes a tensor of the model, in all forms that its value may have. */
HEDDLE__UPGRADE(heddle__upgrade_constant) {
  if (node->n_output != 1 || node->output[0][0] == '\0' || node->n_attribute != 1) return HEDDLE_OK;
  const Onnx__AttributeProto *a = node->attribute[0];
  Onnx__TensorProto *t = a->t;
  int64_t *dim = heddle__onnx_take(&r->arena, sizeof *dim);
  if (dim == NULL) return heddle__onnx_no_memory(r);
  if (strcmp(a->name, "sparse_value") == 0 && a->sparse_tensor != NULL) {
    heddle_status dense = heddle__onnx_dense(r, a->sparse_tensor, &t);
    *is_done = true;
    if (dense != HEDDLE_OK || t == NULL) return dense;
  } else if (strcmp(a->name, "value") != 0 || t == NULL) {
    t = heddle__onnx_take(&r->arena, sizeof *t);
    if (t == NULL) return heddle__onnx_no_memory(r);
    onnx__tensor_proto__init(t);
    bool is_list = strcmp(a->name, "value_floats") == 0 || strcmp(a->name, "value_ints") == 0;
    t->dims = dim;
    t->n_dims = is_list ? 1 : 0;
    t->has_data_type = 1;
    if (strcmp(a->name, "value_float") == 0 || strcmp(a->name, "value_floats") == 0) {
      t->data_type = ONNX_FLOAT;
      t->n_float_data = is_list ? a->n_floats : 1;
      t->float_data = is_list ? a->floats : (float *)(uintptr_t)&a->f;
      *dim = (int64_t)t->n_float_data;
    } else if (strcmp(a->name, "value_int") == 0 || strcmp(a->name, "value_ints") == 0) {
      t->data_type = ONNX_INT64;
      t->n_int64_data = is_list ? a->n_ints : 1;
      t->int64_data = is_list ? a->ints : (int64_t *)(uintptr_t)&a->i;
      *dim = (int64_t)t->n_int64_data;
    } else if (strcmp(a->name, "value_string") == 0 || strcmp(a->name, "value_strings") == 0) {
      t->data_type = ONNX_STRING;
      t->n_dims = strcmp(a->name, "value_strings") == 0 ? 1 : 0;
      t->n_string_data = t->n_dims > 0 ? a->n_strings : 1;
      t->string_data = t->n_dims > 0 ? a->strings : (ProtobufCBinaryData *)(uintptr_t)&a->s;
      *dim = (int64_t)t->n_string_data;
    } else {
      *is_done = true;
      heddle__onnx_problem(r, node, "its value is neither numbers nor a tensor");
      return HEDDLE_OK;
    }
  }
  *is_done = true;
  if (t == a->t) { /* which another call of the node's function has too */
    t = heddle__onnx_take(&r->arena, sizeof *t);
    if (t == NULL) return heddle__onnx_no_memory(r);
    *t = *a->t;
  }
  t->name = node->output[0];
  heddle_status s = heddle__onnx_add_tensor(r, t);
  return s == HEDDLE_OK ? heddle__onnx_note(r, t->name, t->data_type, (int32_t)t->n_dims) : s;
}

/* A number that the attributes of graphs do not hold: it becomes a constant without dimensions, which Expand gives any
 * shape. */
static heddle_status expand_value(heddle__onnx_reader *r, Onnx__NodeProto *node, const Onnx__TensorProto *value) {
  Onnx__TensorProto *t = heddle__onnx_take(&r->arena, sizeof *t);
  const char *name = heddle__onnx_new_value(r, node, "value");
  if (t == NULL || name == NULL) return heddle__onnx_no_memory(r);
  *t = *value;
  t->name = (char *)(uintptr_t)name;
  t->n_dims = 0;
  heddle__onnx_drop_attr(node, "value");
  node->op_type = (char *)(uintptr_t) "Expand";
  heddle_status s = heddle__onnx_add_tensor(r, t);
  if (s == HEDDLE_OK) s = heddle__onnx_note(r, name, t->data_type, 0);
  if (s == HEDDLE_OK) s = heddle__onnx_set_input(r, node, 1, node->input[0]);
  return s == HEDDLE_OK ? heddle__onnx_set_input(r, node, 0, name) : s;
}

/* Its value, a tensor of one element, as the attributes that graphs have: dtype, and a number. */
HEDDLE__UPGRADE(heddle__upgrade_constant_of_shape) {
  (void)is_done;
  const Onnx__AttributeProto *a = heddle__onnx_attr(node, "value");
  heddle__onnx_number number;
  if (a == NULL || a->t == NULL) return HEDDLE_OK;
  int32_t type = a->t->data_type;
  heddle_status s = heddle__onnx_scalar(r, node, a->t, &number);
  const bool is_exact = number.is_whole || (double)(float)number.real == number.real || number.real != number.real;
  if (s == HEDDLE_OK && (number.is_other || !is_exact) && node->n_input == 1) return expand_value(r, node, a->t);
  heddle__onnx_drop_attr(node, "value");
  if (s == HEDDLE_OK) s = heddle__onnx_set_int(r, node, "dtype", type);
  if (s == HEDDLE_OK && number.is_whole) return heddle__onnx_set_int(r, node, "value_int", number.whole);
  return s == HEDDLE_OK ? heddle__onnx_set_float(r, node, "value_float", (float)number.real) : s;
}
