/* frontends/onnx/sequence_map.c: SequenceMap as a Loop over the elements, which inserts what its graph gives at the end of
 * sequences. */
#include <string.h>

#include "frontends/onnx/objects.h"
#include "frontends/onnx/sequences.h"
#include "frontends/onnx/types.h"

static void *take(heddle__ml *m, size_t n, size_t width) {
  return heddle__ml_take(m, n, width);
}

static Onnx__NodeProto *new_node(heddle__ml *m, const char *op, size_t n_in, const char *out) {
  Onnx__NodeProto *node = take(m, 1, sizeof *node);
  char **values = take(m, n_in + 1, sizeof *values);
  if (node == NULL || values == NULL) return NULL;
  onnx__node_proto__init(node);
  node->op_type = (char *)(uintptr_t)op;
  node->name = (char *)(uintptr_t)heddle__onnx_node_name(m->node);
  node->domain = (char *)(uintptr_t) "";
  node->input = values;
  node->n_input = n_in;
  node->output = values + n_in;
  node->n_output = 1;
  values[n_in] = (char *)(uintptr_t)out;
  return node;
}

/* A value of a graph; element 0: a number or truth without dimensions, else a sequence of tensors of that type. */
static Onnx__ValueInfoProto *new_value(heddle__ml *m, const char *name, int32_t plain, int32_t element) {
  Onnx__ValueInfoProto *v = take(m, 1, sizeof *v);
  Onnx__TypeProto *type = take(m, 2, sizeof *type);
  Onnx__TypeProto__Tensor *tensor = take(m, 1, sizeof *tensor);
  Onnx__TensorShapeProto *shape = take(m, 1, sizeof *shape);
  Onnx__TypeProto__Sequence *sequence = take(m, 1, sizeof *sequence);
  if (v == NULL || type == NULL || tensor == NULL || shape == NULL || sequence == NULL) return NULL;
  onnx__value_info_proto__init(v);
  onnx__type_proto__init(&type[0]);
  onnx__type_proto__init(&type[1]);
  onnx__type_proto__tensor__init(tensor);
  onnx__tensor_shape_proto__init(shape);
  onnx__type_proto__sequence__init(sequence);
  v->name = (char *)(uintptr_t)name;
  v->type = &type[0];
  tensor->has_elem_type = 1;
  tensor->elem_type = plain != 0 ? plain : element;
  Onnx__TypeProto *of = plain != 0 ? &type[0] : &type[1];
  of->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  of->tensor_type = tensor;
  if (plain != 0) {
    tensor->shape = shape;
    return v;
  }
  type[0].value_case = ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
  type[0].sequence_type = sequence;
  sequence->elem_type = &type[1];
  return v;
}

static int32_t element_of(const Onnx__ValueInfoProto *v) {
  const Onnx__TypeProto *type = v->type;
  return type != NULL && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? type->tensor_type->elem_type : 0;
}

static const char *numbered(heddle__ml *m, const char *what, size_t i) {
  const char *name = heddle__onnx_format(&m->r->arena, "heddle.%s%zu", what, i);
  if (name == NULL && heddle__ml_good(m)) m->s = heddle__onnx_no_memory(m->r);
  return name;
}

static void set(char **place, const char *name) {
  *place = (char *)(uintptr_t)name;
}

/* The Loop's graph: its nodes take the elements, do what the map does, and insert. */
static Onnx__GraphProto *body_of(heddle__ml *m, const Onnx__GraphProto *map, const char *const *aliases) {
  const size_t n_in = map->n_input, n_out = map->n_output, n = n_in + map->n_node + n_out + 1;
  Onnx__GraphProto *g = take(m, 1, sizeof *g);
  Onnx__NodeProto **nodes = take(m, n, sizeof *nodes);
  Onnx__ValueInfoProto **inputs = take(m, n_out + 2, sizeof *inputs), **outputs = take(m, n_out + 1, sizeof *outputs);
  if (g == NULL || nodes == NULL || inputs == NULL || outputs == NULL) return NULL;
  *g = *map;
  size_t at = 0;
  inputs[0] = new_value(m, "heddle.i", ONNX_INT64, 0);
  inputs[1] = new_value(m, "heddle.going", ONNX_BOOL, 0);
  outputs[0] = new_value(m, "heddle.goes_on", ONNX_BOOL, 0);
  for (size_t i = 0; i < n_in && heddle__ml_good(m); i++) {
    const bool is_sequence = json_object_get(m->r->sequences, aliases[i]) != NULL;
    nodes[at] = new_node(m, is_sequence ? "SequenceAt" : "Identity", is_sequence ? 2 : 1, map->input[i]->name);
    if (nodes[at] == NULL) return NULL;
    set(&nodes[at]->input[0], aliases[i]);
    if (is_sequence) set(&nodes[at]->input[1], "heddle.i");
    at++;
  }
  for (size_t i = 0; i < map->n_node; i++) nodes[at++] = map->node[i];
  for (size_t k = 0; k < n_out && heddle__ml_good(m); k++) {
    const char *before = numbered(m, "before", k), *after = numbered(m, "after", k);
    inputs[k + 2] = new_value(m, before, 0, element_of(map->output[k]));
    outputs[k + 1] = new_value(m, after, 0, element_of(map->output[k]));
    nodes[at] = new_node(m, "SequenceInsert", 2, after);
    if (nodes[at] == NULL) return NULL;
    set(&nodes[at]->input[0], before);
    set(&nodes[at]->input[1], map->output[k]->name);
    at++;
  }
  nodes[at] = new_node(m, "Identity", 1, "heddle.goes_on");
  if (!heddle__ml_good(m)) return NULL;
  set(&nodes[at]->input[0], "heddle.going");
  g->node = nodes;
  g->n_node = n;
  g->input = inputs;
  g->n_input = n_out + 2;
  g->output = outputs;
  g->n_output = n_out + 1;
  g->n_value_info = 0;
  return g;
}

/* A name for input i that no value of the graph has. */
static const char *alias_of(heddle__ml *m, size_t i) {
  const char *from = m->node->input[i], *name = heddle__onnx_new_value(m->r, m->node, "element");
  json_t *known = json_object_get(m->r->sequences, from);
  if (name == NULL) {
    m->s = heddle__onnx_no_memory(m->r);
    return NULL;
  }
  if (known != NULL && json_object_set(m->r->sequences, name, known) != 0) m->s = heddle__onnx_no_memory(m->r);
  if (known == NULL || json_is_integer(known)) heddle__ml_1(m, "Identity", from, name);
  const heddle__onnx_known kind = heddle__onnx_known_of(m->r, from);
  if (known == NULL && heddle__ml_good(m)) m->s = heddle__onnx_note(m->r, name, kind.type, kind.rank);
  return name;
}

static void expand(heddle__ml *m, const Onnx__GraphProto *map) {
  const size_t n_in = m->node->n_input, n_out = map->n_output;
  const char **aliases = take(m, n_in + 1, sizeof *aliases);
  const char *trip = heddle__onnx_new_value(m->r, m->node, "length");
  Onnx__NodeProto *length = new_node(m, "SequenceLength", 1, trip);
  Onnx__NodeProto *loop = new_node(m, "Loop", n_out + 2, "");
  Onnx__AttributeProto *body = take(m, 1, sizeof *body), **attrs = take(m, 1, sizeof *attrs);
  if (n_in != map->n_input || n_in == 0 || n_out < m->node->n_output)
    heddle__ml_refuse(m, "its graph has %zu inputs and %zu outputs", map->n_input, n_out);
  if (!heddle__ml_good(m) || trip == NULL) return;
  set(&length->input[0], m->node->input[0]);
  m->s = heddle__onnx_upgrade_node(m->r, length, 1);
  for (size_t i = 0; i < n_in && heddle__ml_good(m); i++) aliases[i] = alias_of(m, i);
  onnx__attribute_proto__init(body);
  body->name = (char *)(uintptr_t) "body";
  body->has_type = 1;
  body->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
  body->g = heddle__ml_good(m) ? body_of(m, map, aliases) : NULL;
  if (body->g == NULL) return;
  attrs[0] = body;
  loop->attribute = attrs;
  loop->n_attribute = 1;
  set(&loop->input[0], trip);
  set(&loop->input[1], "");
  for (size_t k = 0; k < n_out; k++) {
    const char *empty = heddle__onnx_new_value(m->r, m->node, "empty");
    if (empty == NULL || json_object_set_new(m->r->sequences, empty, json_array()) != 0) {
      m->s = heddle__onnx_no_memory(m->r);
      return;
    }
    set(&loop->input[2 + k], empty);
  }
  loop->output = m->node->output;
  loop->n_output = m->node->n_output;
  m->s = heddle__onnx_upgrade_node(m->r, loop, 1);
}

HEDDLE__UPGRADE(heddle__upgrade_sequence_map) {
  if (node->domain[0] != '\0' || strcmp(node->op_type, "SequenceMap") != 0) return HEDDLE_OK;
  heddle__ml m = {.r = r, .node = node};
  const Onnx__AttributeProto *body = heddle__onnx_attr(node, "body");
  *is_done = true;
  if (body == NULL || body->g == NULL) heddle__ml_refuse(&m, "it has no graph 'body'");
  else expand(&m, body->g);
  if (m.s == HEDDLE_OK && m.refused) {
    node->n_attribute = 0;
    *is_done = heddle__ml_stand_in(&m);
  }
  return m.s;
}
