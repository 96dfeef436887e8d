/* ort_ep/graph.c: writes a part of a graph of ONNX Runtime as an ONNX model. */
#include <string.h>

#include "core/names.h"
#include "plugins/common/perror.h"
#include <onnx.pb-c.h>
#include "ort_ep/ep.h"

/* What is being written. The first failure stays; later steps do nothing. */
typedef struct writer {
  const ep *e;
  const ep_part *part;
  heddle__arena *arena;
  heddle_error *err;
  heddle_status s;
  Onnx__GraphProto *graph;
  heddle__names made; /* the results of the part's nodes, and constants, that were met */
} writer;

static void *take(writer *w, size_t count, size_t size) {
  void *p = w->s == HEDDLE_OK ? heddle__arena_take(w->arena, count > 0 ? count : 1, size) : NULL;
  if (p == NULL && w->s == HEDDLE_OK) w->s = p_fail(w->err, HEDDLE_ENOMEM, 0, "no memory for a part of a graph");
  return p;
}

static bool ok(writer *w, ort_status *status) {
  if (w->s == HEDDLE_OK) w->s = ep_take(w->e, status, w->err);
  else ep_take(w->e, status, NULL);
  return w->s == HEDDLE_OK;
}

#define API(name) ORT(w->e->api, name)

static char *text(writer *w, const char *from) {
  const size_t n = strlen(from) + 1;
  char *to = take(w, n, 1);
  if (to != NULL) memcpy(to, from, n);
  return to;
}

/* ---- types */

static Onnx__TensorShapeProto__Dimension *dimension_of(writer *w, int64_t size, const char *symbol) {
  Onnx__TensorShapeProto__Dimension *d = take(w, 1, sizeof *d);
  if (d == NULL) return NULL;
  onnx__tensor_shape_proto__dimension__init(d);
  if (size >= 0) {
    d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    d->dim_value = size;
  } else if (symbol != NULL && symbol[0] != '\0') {
    d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    d->dim_param = text(w, symbol);
  }
  return d;
}

static Onnx__TensorShapeProto *shape_of(writer *w, const ort_tensor_info *info) {
  size_t n = 0;
  if (!ok(w, API(GetDimensionsCount)(info, &n))) return NULL;
  int64_t *sizes = take(w, n, sizeof *sizes);
  const char **symbols = take(w, n, sizeof *symbols);
  Onnx__TensorShapeProto *shape = take(w, 1, sizeof *shape);
  Onnx__TensorShapeProto__Dimension **dims = take(w, n, sizeof *dims);
  if (w->s != HEDDLE_OK || !ok(w, API(GetDimensions)(info, sizes, n)) ||
      !ok(w, API(GetSymbolicDimensions)(info, symbols, n)))
    return NULL;
  for (size_t i = 0; i < n; i++) dims[i] = dimension_of(w, sizes[i], symbols[i]);
  onnx__tensor_shape_proto__init(shape);
  shape->n_dim = n;
  shape->dim = dims;
  return shape;
}

/* has_shape: whether the shape is to be written. A value without dimensions is a scalar, or one of which nothing is known:
 * ONNX Runtime gives the same for both, so that no shape is written then. */
static Onnx__ValueInfoProto *value_of(writer *w, const ort_value_info *v, bool has_shape) {
  const ort_type_info *type = NULL;
  const ort_tensor_info *info = NULL;
  int kind = 0, element = 0;
  const char *name = ep_value_name(w->e, v);
  if (!ok(w, API(GetValueInfoTypeInfo)(v, &type)) || !ok(w, API(GetOnnxTypeFromTypeInfo)(type, &kind))) return NULL;
  if (kind == ORT_TYPE_TENSOR) ok(w, API(CastTypeInfoToTensorInfo)(type, &info));
  if (w->s != HEDDLE_OK) return NULL;
  if (info == NULL) {
    w->s = p_fail(w->err, HEDDLE_EUNSUPPORTED, 0, "value '%.200s' is no tensor", name);
    return NULL;
  }
  Onnx__ValueInfoProto *value = take(w, 1, sizeof *value);
  Onnx__TypeProto *whole = take(w, 1, sizeof *whole);
  Onnx__TypeProto__Tensor *tensor = take(w, 1, sizeof *tensor);
  if (w->s != HEDDLE_OK || !ok(w, API(GetTensorElementType)(info, &element))) return NULL;
  if (element == ORT_ELEMENT_STRING) {
    w->s = p_fail(w->err, HEDDLE_EUNSUPPORTED, 0, "value '%.200s' has strings", name);
    return NULL;
  }
  onnx__value_info_proto__init(value);
  onnx__type_proto__init(whole);
  onnx__type_proto__tensor__init(tensor);
  tensor->has_elem_type = 1;
  tensor->elem_type = element; /* ONNXTensorElementDataType has TensorProto's numbers */
  tensor->shape = has_shape ? shape_of(w, info) : NULL;
  if (tensor->shape != NULL && tensor->shape->n_dim == 0) tensor->shape = NULL;
  whole->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  whole->tensor_type = tensor;
  value->name = text(w, name);
  value->type = whole;
  return value;
}

/* ---- tensors. The bytes stay where ONNX Runtime has them. */

static Onnx__TensorProto *tensor_of(writer *w, const char *name, const ort_value *v) {
  ort_tensor_info *info = NULL;
  size_t bytes = 0, n = 0;
  const void *data = NULL;
  int element = 0;
  Onnx__TensorProto *t = take(w, 1, sizeof *t);
  if (t == NULL || !ok(w, API(GetTensorTypeAndShape)(v, &info))) return NULL;
  onnx__tensor_proto__init(t);
  ok(w, API(GetDimensionsCount)(info, &n));
  int64_t *dims = take(w, n, sizeof *dims);
  if (dims != NULL) ok(w, API(GetDimensions)(info, dims, n));
  if (w->s == HEDDLE_OK) ok(w, API(GetTensorElementType)(info, &element));
  API(ReleaseTensorTypeAndShapeInfo)(info);
  if (w->s == HEDDLE_OK && element == ORT_ELEMENT_STRING)
    w->s = p_fail(w->err, HEDDLE_EUNSUPPORTED, 0, "constant '%.200s' has strings", name);
  if (w->s == HEDDLE_OK) ok(w, API(GetTensorSizeInBytes)(v, &bytes));
  if (w->s == HEDDLE_OK) ok(w, API(GetTensorData)(v, &data));
  if (w->s != HEDDLE_OK) return NULL;
  t->name = text(w, name);
  t->n_dims = n;
  t->dims = dims;
  t->has_data_type = 1;
  t->data_type = element;
  t->has_raw_data = 1;
  t->raw_data = (ProtobufCBinaryData){bytes, (uint8_t *)(uintptr_t)data};
  return t;
}

/* ---- attributes */

/* The bytes of an attribute; NULL where it has none. */
static void *attribute_bytes(writer *w, const ort_attr *from, int type, size_t *bytes) {
  ort_status *first = API(ReadOpAttr)(from, type, NULL, 0, bytes); /* fails, and gives the size */
  if (first != NULL) API(ReleaseStatus)(first);
  void *data = take(w, *bytes + 8, 1);
  if (data != NULL && *bytes > 0) ok(w, API(ReadOpAttr)(from, type, data, *bytes, bytes));
  return data;
}

static void read_strings(writer *w, Onnx__AttributeProto *a, char *data, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) a->n_strings += data[i] == '\0';
  a->strings = take(w, a->n_strings, sizeof *a->strings);
  for (size_t i = 0; w->s == HEDDLE_OK && i < a->n_strings; i++) {
    a->strings[i] = (ProtobufCBinaryData){strlen(data), (uint8_t *)data};
    data += strlen(data) + 1;
  }
}

static Onnx__AttributeProto *attribute_of(writer *w, const ort_attr *from) {
  int type = 0;
  const char *name = NULL;
  size_t bytes = 0;
  Onnx__AttributeProto *a = take(w, 1, sizeof *a);
  if (a == NULL || !ok(w, API(OpAttr_GetType)(from, &type)) || !ok(w, API(OpAttr_GetName)(from, &name))) return NULL;
  onnx__attribute_proto__init(a);
  a->name = text(w, name);
  a->has_type = 1;
  char *data = type != ORT_ATTR_GRAPH && type != ORT_ATTR_TENSOR ? attribute_bytes(w, from, type, &bytes) : NULL;
  if (w->s != HEDDLE_OK) return NULL;
  if (type == ORT_ATTR_INT) {
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    a->has_i = 1;
    memcpy(&a->i, data, sizeof a->i);
  } else if (type == ORT_ATTR_FLOAT) {
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
    a->has_f = 1;
    memcpy(&a->f, data, sizeof a->f);
  } else if (type == ORT_ATTR_INTS) {
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
    a->n_ints = bytes / sizeof *a->ints;
    a->ints = (int64_t *)(void *)data;
  } else if (type == ORT_ATTR_FLOATS) {
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
    a->n_floats = bytes / sizeof *a->floats;
    a->floats = (float *)(void *)data;
  } else if (type == ORT_ATTR_STRING) {
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
    a->has_s = 1;
    a->s = (ProtobufCBinaryData){strnlen(data, bytes), (uint8_t *)data};
  } else if (type == ORT_ATTR_STRINGS) {
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
    read_strings(w, a, data, bytes);
  } else if (type == ORT_ATTR_TENSOR) {
    ort_value *v = NULL;
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    if (!ok(w, API(OpAttr_GetTensorAttributeAsOrtValue)(from, &v))) return NULL;
    a->t = tensor_of(w, "", v);
    if (a->t != NULL) { /* the value goes: the bytes must be copied */
      uint8_t *copy = take(w, a->t->raw_data.len, 1);
      if (copy != NULL && a->t->raw_data.len > 0) memcpy(copy, a->t->raw_data.data, a->t->raw_data.len);
      a->t->raw_data.data = copy;
    }
    API(ReleaseValue)(v);
  } else {
    w->s = p_fail(w->err, HEDDLE_EUNSUPPORTED, 0, "attribute '%.200s' is a graph or of a type that is not known", name);
  }
  return a;
}

/* ---- nodes */

static char **names_of(writer *w, const ort_value_info **values, size_t n) {
  char **names = take(w, n, sizeof *names);
  for (size_t i = 0; w->s == HEDDLE_OK && i < n; i++) names[i] = text(w, ep_value_name(w->e, values[i]));
  return names;
}

static Onnx__NodeProto *node_of(writer *w, const ort_node *from) {
  const ort_value_info **in = NULL, **out = NULL;
  const char *name = NULL, *op = NULL, *domain = NULL;
  size_t n_in = 0, n_out = 0, n = 0;
  Onnx__NodeProto *node = take(w, 1, sizeof *node);
  if (node == NULL || !ok(w, API(Node_GetName)(from, &name)) || !ok(w, API(Node_GetOperatorType)(from, &op)) ||
      !ok(w, API(Node_GetDomain)(from, &domain)) || !ok(w, API(Node_GetNumAttributes)(from, &n)))
    return NULL;
  w->s = ep_node_values(w->e, from, false, w->arena, &in, &n_in, w->err);
  if (w->s == HEDDLE_OK) w->s = ep_node_values(w->e, from, true, w->arena, &out, &n_out, w->err);
  const ort_attr **attrs = take(w, n, sizeof *attrs);
  Onnx__AttributeProto **attributes = take(w, n, sizeof *attributes);
  if (w->s != HEDDLE_OK || !ok(w, API(Node_GetAttributes)(from, attrs, n))) return NULL;
  onnx__node_proto__init(node);
  node->name = text(w, name);
  node->op_type = text(w, op);
  node->domain = text(w, domain);
  node->n_input = n_in;
  node->input = names_of(w, in, n_in);
  node->n_output = n_out;
  node->output = names_of(w, out, n_out);
  for (size_t i = 0; i < n; i++) attributes[i] = attribute_of(w, attrs[i]);
  node->n_attribute = n;
  node->attribute = attributes;
  return node;
}

/* ---- inputs, constants, outputs */

/* A constant of the graph as an initializer; false where it is to be an input. */
static bool add_constant(writer *w, const ort_value_info *v, const char *name) {
  bool is_constant = false;
  const ort_value *value = NULL;
  size_t bytes = 0;
  if (!ok(w, API(ValueInfo_IsConstantInitializer)(v, &is_constant)) || !is_constant) return false;
  if (!ok(w, API(ValueInfo_GetInitializerValue)(v, &value)) || value == NULL) return false;
  if (!ok(w, API(GetTensorSizeInBytes)(value, &bytes)) || bytes > w->part->most_constant) return false;
  w->graph->initializer[w->graph->n_initializer++] = tensor_of(w, name, value);
  return true;
}

static void add_input(writer *w, const ort_value_info *v) {
  const char *name = ep_value_name(w->e, v);
  if (name[0] == '\0' || heddle__names_find(&w->made, name, 0) != 0) return;
  heddle__names_put(&w->made, name, 1);
  if (!add_constant(w, v, name) && w->s == HEDDLE_OK) w->graph->input[w->graph->n_input++] = value_of(w, v, true);
}

static void add_output(writer *w, const ort_value_info *v) {
  if (ep_value_name(w->e, v)[0] != '\0') w->graph->output[w->graph->n_output++] = value_of(w, v, false);
}

/* Nodes come in an order in which each follows what it reads. */
static void add_nodes(writer *w) {
  const ep_part *part = w->part;
  size_t n_values = part->n_inputs, n_results = part->n_outputs;
  for (size_t i = 0; i < part->n_nodes; i++) {
    size_t in = 0, out = 0;
    ok(w, API(Node_GetNumInputs)(part->nodes[i], &in));
    ok(w, API(Node_GetNumOutputs)(part->nodes[i], &out));
    n_values += in + out;
    n_results += out;
  }
  if (w->s == HEDDLE_OK && !heddle__names_make(&w->made, w->arena, n_values))
    w->s = p_fail(w->err, HEDDLE_ENOMEM, 0, "no memory for a part of a graph");
  w->graph->input = take(w, n_values, sizeof *w->graph->input);
  w->graph->initializer = take(w, n_values, sizeof *w->graph->initializer);
  w->graph->output = take(w, n_results, sizeof *w->graph->output);
  w->graph->node = take(w, part->n_nodes, sizeof *w->graph->node);
  for (size_t i = 0; w->s == HEDDLE_OK && i < part->n_inputs; i++)
    if (part->inputs[i] != NULL) add_input(w, part->inputs[i]);
  for (size_t i = 0; w->s == HEDDLE_OK && i < part->n_nodes; i++) {
    const ort_value_info **values = NULL;
    size_t n = 0;
    w->s = ep_node_values(w->e, part->nodes[i], false, w->arena, &values, &n, w->err);
    for (size_t k = 0; w->s == HEDDLE_OK && k < n; k++)
      if (values[k] != NULL) add_input(w, values[k]);
    if (w->s == HEDDLE_OK) w->graph->node[w->graph->n_node++] = node_of(w, part->nodes[i]);
    if (w->s == HEDDLE_OK) w->s = ep_node_values(w->e, part->nodes[i], true, w->arena, &values, &n, w->err);
    for (size_t k = 0; w->s == HEDDLE_OK && k < n; k++) {
      const char *name = ep_value_name(w->e, values[k]);
      if (name[0] == '\0') continue;
      heddle__names_put(&w->made, name, 1);
      if (part->outputs == NULL) add_output(w, values[k]);
    }
  }
  for (size_t i = 0; w->s == HEDDLE_OK && part->outputs != NULL && i < part->n_outputs; i++)
    if (part->outputs[i] != NULL) add_output(w, part->outputs[i]);
}

static void add_opsets(writer *w, Onnx__ModelProto *model) {
  size_t n = 0;
  if (!ok(w, API(Graph_GetNumOperatorSets)(w->part->graph, &n))) return;
  const char **domains = take(w, n, sizeof *domains);
  int64_t *versions = take(w, n, sizeof *versions);
  model->opset_import = take(w, n, sizeof *model->opset_import);
  if (w->s != HEDDLE_OK || !ok(w, API(Graph_GetOperatorSets)(w->part->graph, domains, versions, n))) return;
  for (size_t i = 0; i < n; i++) {
    Onnx__OperatorSetIdProto *set = take(w, 1, sizeof *set);
    if (set == NULL) return;
    onnx__operator_set_id_proto__init(set);
    set->domain = text(w, domains[i]);
    set->has_version = 1;
    set->version = versions[i];
    model->opset_import[model->n_opset_import++] = set;
  }
}

heddle_status ep_model_bytes(const ep *e, const ep_part *part, heddle__arena *arena, void **out, size_t *bytes,
                             heddle_error *err) {
  static char name[] = "part", producer[] = "heddle";
  writer w = {.e = e, .part = part, .arena = arena, .err = err, .s = HEDDLE_OK};
  Onnx__ModelProto model;
  Onnx__GraphProto graph;
  onnx__model_proto__init(&model);
  onnx__graph_proto__init(&graph);
  w.graph = model.graph = &graph;
  graph.name = name;
  model.producer_name = producer;
  model.has_ir_version = 1;
  ok(&w, ORT(e->api, Graph_GetOnnxIRVersion)(part->graph, &model.ir_version));
  if (w.s == HEDDLE_OK) add_opsets(&w, &model);
  if (w.s == HEDDLE_OK) add_nodes(&w);
  if (w.s != HEDDLE_OK) return w.s;
  *bytes = onnx__model_proto__get_packed_size(&model);
  *out = take(&w, *bytes, 1);
  if (w.s == HEDDLE_OK) onnx__model_proto__pack(&model, *out);
  return w.s;
}
