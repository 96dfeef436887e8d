/* frontends/onnx/upgrade.c: takes each node through the upgrades between its opset and the graph's, and has what they
 * share. Operators without a line UPGRADE have one meaning in all opsets that are read. */
#include "frontends/onnx/upgrade.h"

#include <string.h>

#include "frontends/onnx/expand.h"
#include "frontends/onnx/tensor.h"
#include "frontends/onnx/ml.h"
#include "frontends/onnx/objects.h"
#include "frontends/onnx/sequences.h"
#include "frontends/onnx/strings.h"
#include "frontends/onnx/types.h"
#include "plugins/common/float16.h"

enum { EVERY = HEDDLE__OPSET_LAST + 1 };

static const struct row {
  const char *op;
  int64_t before; /* the opset of the new form: a node of an earlier one is upgraded */
  heddle__onnx_upgrade_fn upgrade;
} rows[] = {
#define UPGRADE(op, opset, function) {#op, opset, heddle__upgrade_##function},
#include "operators/all.def"
};

heddle_status heddle__onnx_upgrade_node(heddle__onnx_reader *r, Onnx__NodeProto *node, unsigned depth) {
  const Onnx__FunctionProto *function = heddle__onnx_function(r, node);
  heddle__onnx_check_node(r, node, function != NULL); /* what is wrong is refused at the end, with all others */
  if (function != NULL) return heddle__onnx_inline(r, node, function, depth + 1);
  const bool is_ml = strcmp(node->domain, "ai.onnx.ml") == 0, is_default = node->domain[0] == '\0';
  bool is_done = false;
  heddle_status s = is_ml ? heddle__upgrade_ml(r, node, &is_done) : heddle__upgrade_sequence(r, node, &is_done);
  if (s == HEDDLE_OK && !is_done) s = heddle__upgrade_sequence_map(r, node, &is_done);
  if (s == HEDDLE_OK && !is_done) s = heddle__upgrade_text(r, node, &is_done);
  if (s != HEDDLE_OK || is_done) return s;
  if (!is_ml && !heddle__onnx_check_strings(r, node)) { /* what is behind it is still looked at */
    node->op_type = (char *)(uintptr_t) "Identity";
    node->domain = (char *)(uintptr_t) "";
    node->n_input = node->n_attribute = 0;
    return heddle__onnx_add_node(r, node);
  }
  if (heddle__onnx_is_control(node)) return heddle__onnx_control(r, node, depth);
  const expansion_row *row = heddle__onnx_expansion(node);
  if (row != NULL && row->expand != NULL) return heddle__onnx_expand(r, node, row);
  if (!is_ml) s = heddle__onnx_learn_node(r, node);
  for (size_t i = 0; is_default && s == HEDDLE_OK && !is_done && i < sizeof rows / sizeof rows[0]; i++)
    if (strcmp(rows[i].op, node->op_type) == 0 && r->opset < rows[i].before) s = rows[i].upgrade(r, node, &is_done);
  if (s == HEDDLE_OK && !is_done) s = heddle__onnx_raise_node(r, node);
  if (s == HEDDLE_OK && !is_done) s = heddle__onnx_add_node(r, node);
  return s;
}

heddle_status heddle__onnx_upgrade(heddle__onnx_reader *r) {
  heddle_status s = HEDDLE_OK;
  heddle__onnx_choose_target(r);
  for (size_t i = 0; i < r->graph->n_node && s == HEDDLE_OK; i++)
    s = heddle__onnx_upgrade_node(r, r->graph->node[i], 0);
  for (size_t i = 0; i < r->graph->n_output && s == HEDDLE_OK; i++) {
    Onnx__NodeProto named = ONNX__NODE_PROTO__INIT;
    named.name = r->graph->output[i]->name;
    if (heddle__onnx_is_known_object(r, named.name) && !heddle__onnx_is_object(r->graph->output[i]->type)) {
      char shown[44];
      heddle__onnx_problem(r, NULL, "output '%s' is a sequence, no tensor", heddle__onnx_show(named.name, shown));
    }
    s = heddle__onnx_give_object(r, &named, r->graph->output[i]);
  }
  return s;
}

/* ---- attributes */

const Onnx__AttributeProto *heddle__onnx_attr(const Onnx__NodeProto *node, const char *name) {
  for (size_t i = 0; i < node->n_attribute; i++)
    if (strcmp(node->attribute[i]->name, name) == 0) return node->attribute[i];
  return NULL;
}

int64_t heddle__onnx_attr_int(const Onnx__NodeProto *node, const char *name, int64_t fallback) {
  const Onnx__AttributeProto *a = heddle__onnx_attr(node, name);
  return a != NULL ? a->i : fallback;
}

float heddle__onnx_attr_float(const Onnx__NodeProto *node, const char *name, float fallback) {
  const Onnx__AttributeProto *a = heddle__onnx_attr(node, name);
  return a != NULL ? a->f : fallback;
}

bool heddle__onnx_attr_is(const Onnx__NodeProto *node, const char *name, const char *text) {
  const Onnx__AttributeProto *a = heddle__onnx_attr(node, name);
  return a != NULL && a->s.len == strlen(text) && memcmp(a->s.data, text, a->s.len) == 0;
}

void heddle__onnx_drop_attr(Onnx__NodeProto *node, const char *name) {
  size_t kept = 0;
  for (size_t i = 0; i < node->n_attribute; i++)
    if (strcmp(node->attribute[i]->name, name) != 0) node->attribute[kept++] = node->attribute[i];
  node->n_attribute = kept;
}

/* A new attribute in the place of one that there was; NULL where memory is out. */
static Onnx__AttributeProto *new_attr(heddle__onnx_reader *r, Onnx__NodeProto *node, const char *name) {
  heddle__onnx_drop_attr(node, name);
  Onnx__AttributeProto **list = heddle__onnx_take(&r->arena, (node->n_attribute + 1) * sizeof *list);
  Onnx__AttributeProto *a = heddle__onnx_take(&r->arena, sizeof *a);
  if (list == NULL || a == NULL) return NULL;
  onnx__attribute_proto__init(a);
  a->name = (char *)(uintptr_t)name; /* a constant of ours, which is never changed */
  a->has_type = 1;
  if (node->n_attribute > 0) memcpy(list, node->attribute, node->n_attribute * sizeof *list);
  list[node->n_attribute++] = a;
  node->attribute = list;
  return a;
}

heddle_status heddle__onnx_set_int(heddle__onnx_reader *r, Onnx__NodeProto *node, const char *name, int64_t value) {
  Onnx__AttributeProto *a = new_attr(r, node, name);
  if (a == NULL) return heddle__onnx_no_memory(r);
  a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
  a->i = value;
  return HEDDLE_OK;
}

heddle_status heddle__onnx_set_float(heddle__onnx_reader *r, Onnx__NodeProto *node, const char *name, float value) {
  Onnx__AttributeProto *a = new_attr(r, node, name);
  if (a == NULL) return heddle__onnx_no_memory(r);
  a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
  a->f = value;
  return HEDDLE_OK;
}

heddle_status heddle__onnx_set_ints(heddle__onnx_reader *r, Onnx__NodeProto *node, const char *name,
                                    const int64_t *values, size_t n) {
  Onnx__AttributeProto *a = new_attr(r, node, name);
  int64_t *copy = heddle__onnx_take(&r->arena, n * sizeof *copy);
  if (a == NULL || copy == NULL) return heddle__onnx_no_memory(r);
  if (n > 0) memcpy(copy, values, n * sizeof *copy);
  a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
  a->ints = copy;
  a->n_ints = n;
  return HEDDLE_OK;
}

heddle_status heddle__onnx_set_text(heddle__onnx_reader *r, Onnx__NodeProto *node, const char *name,
                                    const char *value) {
  Onnx__AttributeProto *a = new_attr(r, node, name);
  if (a == NULL) return heddle__onnx_no_memory(r);
  a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
  a->s.data = (uint8_t *)(uintptr_t)value;
  a->s.len = strlen(value);
  return HEDDLE_OK;
}

/* ---- values and nodes */

heddle_status heddle__onnx_set_input(heddle__onnx_reader *r, Onnx__NodeProto *node, size_t i, const char *value) {
  if (value == NULL) return heddle__onnx_no_memory(r);
  if (i >= node->n_input) {
    char **list = heddle__onnx_take(&r->arena, (i + 1) * sizeof *list);
    if (list == NULL) return heddle__onnx_no_memory(r);
    for (size_t k = 0; k < i; k++) list[k] = k < node->n_input ? node->input[k] : (char *)(uintptr_t) "";
    node->input = list;
    node->n_input = i + 1;
  }
  node->input[i] = (char *)(uintptr_t)value;
  return HEDDLE_OK;
}

const char *heddle__onnx_new_value(heddle__onnx_reader *r, const Onnx__NodeProto *node, const char *suffix) {
  const char *wish = heddle__onnx_format(&r->arena, "%s/%s", heddle__onnx_node_name(node), suffix);
  return wish != NULL ? heddle__onnx_new_name(r, r->taken, wish) : NULL;
}

/* A tensor without numbers; ndim 0 or 1. */
static Onnx__TensorProto *new_tensor(heddle__onnx_reader *r, const Onnx__NodeProto *node, const char *suffix,
                                     int32_t type, size_t ndim, size_t n) {
  Onnx__TensorProto *t = heddle__onnx_take(&r->arena, sizeof *t);
  int64_t *dims = heddle__onnx_take(&r->arena, sizeof *dims);
  const char *name = heddle__onnx_new_value(r, node, suffix);
  if (t == NULL || dims == NULL || name == NULL) return NULL;
  onnx__tensor_proto__init(t);
  t->name = (char *)(uintptr_t)name;
  t->has_data_type = 1;
  t->data_type = type;
  t->dims = dims;
  t->n_dims = ndim;
  dims[0] = (int64_t)n;
  return t;
}

static const char *add(heddle__onnx_reader *r, Onnx__TensorProto *t) {
  if (heddle__onnx_add_tensor(r, t) != HEDDLE_OK) return NULL;
  return heddle__onnx_note(r, t->name, t->data_type, (int32_t)t->n_dims) == HEDDLE_OK ? t->name : NULL;
}

const char *heddle__onnx_new_ints(heddle__onnx_reader *r, const Onnx__NodeProto *node, const char *suffix,
                                  const int64_t *values, size_t n) {
  Onnx__TensorProto *t = new_tensor(r, node, suffix, ONNX_INT64, 1, n);
  int64_t *copy = heddle__onnx_take(&r->arena, n * sizeof *copy);
  if (t == NULL || copy == NULL) return NULL;
  if (n > 0) memcpy(copy, values, n * sizeof *copy);
  t->int64_data = copy;
  t->n_int64_data = n;
  return add(r, t);
}

const char *heddle__onnx_new_floats(heddle__onnx_reader *r, const Onnx__NodeProto *node, const char *suffix,
                                    const float *values, size_t n) {
  size_t count = n == SIZE_MAX ? 1 : n;
  Onnx__TensorProto *t = new_tensor(r, node, suffix, ONNX_FLOAT, n != SIZE_MAX, n);
  float *copy = heddle__onnx_take(&r->arena, count * sizeof *copy);
  if (t == NULL || copy == NULL) return NULL;
  if (count > 0) memcpy(copy, values, count * sizeof *copy);
  t->float_data = copy;
  t->n_float_data = count;
  return add(r, t);
}

const char *heddle__onnx_new_scalar(heddle__onnx_reader *r, const Onnx__NodeProto *node, const char *suffix,
                                    const char *like, float value) {
  int32_t type = heddle__onnx_known_of(r, like).type;
  char name[24];
  if (type == 0 || type == ONNX_FLOAT) return heddle__onnx_new_floats(r, node, suffix, &value, SIZE_MAX);
  Onnx__TensorProto *t = new_tensor(r, node, suffix, type, 0, 1);
  void *number = heddle__onnx_take(&r->arena, sizeof(double));
  if (t == NULL || number == NULL) return NULL;
  if (type == ONNX_DOUBLE) {
    *(double *)number = (double)value;
    t->double_data = number;
    t->n_double_data = 1;
  } else if (type == ONNX_FLOAT16) {
    *(int32_t *)number = float16_from_float(value);
    t->int32_data = number;
    t->n_int32_data = 1;
  } else {
    heddle__onnx_problem(r, node, "its operands of %s are not known in its opset", heddle__onnx_type_name(type, name));
    return heddle__onnx_new_floats(r, node, suffix, &value, SIZE_MAX);
  }
  return add(r, t);
}

Onnx__NodeProto *heddle__onnx_new_node(heddle__onnx_reader *r, const char *op, const char *name, const char *a,
                                       const char *b, const char *output) {
  Onnx__NodeProto *node = heddle__onnx_take(&r->arena, sizeof *node);
  char **values = heddle__onnx_take(&r->arena, 3 * sizeof *values);
  if (node == NULL || values == NULL || name == NULL || a == NULL || output == NULL) return NULL;
  onnx__node_proto__init(node);
  node->op_type = (char *)(uintptr_t)op;
  node->name = (char *)(uintptr_t)name;
  node->domain = (char *)(uintptr_t) "";
  values[0] = (char *)(uintptr_t)a;
  values[1] = (char *)(uintptr_t)b;
  values[2] = (char *)(uintptr_t)output;
  node->input = values;
  node->n_input = b != NULL ? 2 : 1;
  node->output = values + 2;
  node->n_output = 1;
  return heddle__onnx_add_node(r, node) == HEDDLE_OK ? node : NULL;
}
