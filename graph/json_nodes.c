/* graph/json_nodes.c: the nodes of a graph from JSON: kind, name, inputs, annotations, and the attributes of TVM's
 * nodes. The attributes of operators are in json_attrs.c. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "graph/reader.h"
#include "graph/words.h"

/* A string member into *out, or NULL there where it is missing and may be. */
static heddle_status read_string(heddle__reader *r, uint32_t id, const json_t *object, const char *key, bool needed,
                                 char **out) {
  char words[64];
  const json_t *value = json_object_get(object, key);
  if (value == NULL && !needed) return HEDDLE_OK;
  if (!json_is_string(value))
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "nodes[%u].%s: expected a string, found %s", id, key,
                               heddle__json_words(value, words));
  *out = heddle__strdup(json_string_value(value));
  return *out != NULL ? HEDDLE_OK : heddle__no_memory(r->err, "a node of a graph");
}

static heddle_status read_kind(heddle__reader *r, uint32_t id, const json_t *object) {
  heddle__node *node = &r->g->nodes[id];
  heddle_status s = read_string(r, id, object, "op", true, &node->op);
  if (s == HEDDLE_OK) s = read_string(r, id, object, "name", true, &node->name);
  if (s == HEDDLE_OK) s = read_string(r, id, object, "domain", false, &node->domain);
  if (s == HEDDLE_OK) s = read_string(r, id, object, "device", false, &node->device);
  if (s != HEDDLE_OK) return s;
  if (node->domain != NULL && strcmp(node->domain, "ai.onnx") == 0) node->domain[0] = '\0';
  if (node->domain == NULL) node->domain = heddle__strdup("");
  if (node->domain == NULL) return heddle__no_memory(r->err, "a node of a graph");
  bool plain = node->domain[0] == '\0';
  node->kind = plain && strcmp(node->op, "null") == 0     ? HEDDLE__NODE_NULL
               : plain && strcmp(node->op, "tvm_op") == 0 ? HEDDLE__NODE_TVM
                                                          : HEDDLE__NODE_OP;
  return HEDDLE_OK;
}

static heddle_status read_stream(heddle__reader *r, uint32_t id, const json_t *object) {
  char words[64];
  const json_t *value = json_object_get(object, "stream");
  r->g->nodes[id].stream = -1;
  if (value != NULL && !heddle__json_int(value, 0, INT32_MAX, &r->g->nodes[id].stream))
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "nodes[%u].stream: expected an integer from 0 to %d, found %s", id,
                               INT32_MAX, heddle__json_words(value, words));
  return HEDDLE_OK;
}

/* How many entries node_row_ptr gives the node. */
static heddle_status read_outputs(heddle__reader *r, uint32_t id) {
  heddle__node *node = &r->g->nodes[id];
  int64_t first = json_integer_value(json_array_get(r->row_ptr, id));
  int64_t next = json_integer_value(json_array_get(r->row_ptr, (size_t)id + 1));
  node->first_entry = (uint32_t)first;
  node->n_outputs = (uint32_t)(next - first);
  if (node->n_outputs == 0 || (node->kind == HEDDLE__NODE_NULL && node->n_outputs != 1))
    return heddle__node_fail(r->g, node, r->err, HEDDLE_EFORMAT, "node_row_ptr gives it %u outputs, expected %s",
                             node->n_outputs, node->kind == HEDDLE__NODE_NULL ? "1" : "at least 1");
  return HEDDLE_OK;
}

static heddle_status read_inputs(heddle__reader *r, uint32_t id, const json_t *object) {
  char words[64], where[64];
  heddle__node *node = &r->g->nodes[id];
  const json_t *inputs = json_object_get(object, "inputs");
  if (!json_is_array(inputs))
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "nodes[%u].inputs: expected an array of entries, found %s", id,
                               heddle__json_words(inputs, words));
  size_t count = json_array_size(inputs);
  if (count > INT32_MAX || (node->kind == HEDDLE__NODE_NULL && count != 0))
    return heddle__node_fail(r->g, node, r->err, HEDDLE_EFORMAT, "it has %zu inputs, expected %s", count,
                             node->kind == HEDDLE__NODE_NULL ? "none of a null node" : "less than 2^31");
  if (count == 0) return HEDDLE_OK;
  node->inputs = heddle__alloc(count, sizeof *node->inputs);
  if (node->inputs == NULL) return heddle__no_memory(r->err, "the inputs of a node");
  bool absent = node->kind == HEDDLE__NODE_OP && r->g->is_heddle;
  for (size_t i = 0; i < count; i++) {
    snprintf(where, sizeof where, "nodes[%u].inputs[%zu]", id, i);
    heddle_status s = heddle__read_entry(r, json_array_get(inputs, i), id, absent, where, &node->inputs[i]);
    if (s != HEDDLE_OK) return s;
    node->n_inputs++;
  }
  return HEDDLE_OK;
}

/* TVM ignores control_deps, since nodes run in the order of the file; so it is checked and kept. */
static heddle_status check_control_deps(heddle__reader *r, uint32_t id, const json_t *object) {
  char words[64];
  int64_t ignored;
  const json_t *deps = json_object_get(object, "control_deps");
  if (deps == NULL) return HEDDLE_OK;
  if (!json_is_array(deps))
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "nodes[%u].control_deps: expected an array of nodes, found %s", id,
                               heddle__json_words(deps, words));
  for (size_t i = 0; i < json_array_size(deps); i++)
    if (!heddle__json_int(json_array_get(deps, i), 0, (int64_t)r->g->n_nodes - 1, &ignored))
      return heddle__reader_fail(r, HEDDLE_EFORMAT,
                                 "nodes[%u].control_deps[%zu]: expected a node from 0 to %u, found %s", id, i,
                                 r->g->n_nodes - 1, heddle__json_words(json_array_get(deps, i), words));
  return HEDDLE_OK;
}

/* A number of a tvm_op: TVM writes it as a decimal string, and an integer is taken too. */
static heddle_status read_number(heddle__reader *r, uint32_t id, const json_t *attrs, const char *key, int64_t max,
                                 int64_t *out) {
  char words[64];
  const json_t *value = json_object_get(attrs, key);
  if (heddle__json_int(value, 0, max, out)) return HEDDLE_OK;
  if (json_is_string(value)) {
    const char *c = json_string_value(value);
    int64_t n = 0;
    bool good = *c != '\0';
    for (; *c != '\0' && good; c++) {
      good = *c >= '0' && *c <= '9';
      n = n * 10 + (*c - '0');
      good = good && n <= max;
    }
    *out = n;
    if (good) return HEDDLE_OK;
  }
  return heddle__reader_fail(r, HEDDLE_EFORMAT,
                             "nodes[%u].attrs.%s: expected a number from 0 to %lld as a string, "
                             "found %s",
                             id, key, (long long)max, heddle__json_words(value, words));
}

static heddle_status read_tvm(heddle__reader *r, uint32_t id, const json_t *attrs) {
  int64_t inputs, outputs, flatten;
  heddle__node *node = &r->g->nodes[id];
  heddle_status s = read_string(r, id, attrs, "func_name", true, &node->func_name);
  if (s == HEDDLE_OK) s = read_number(r, id, attrs, "num_inputs", INT32_MAX, &inputs); /* TVM does not use it either */
  if (s == HEDDLE_OK) s = read_number(r, id, attrs, "num_outputs", INT32_MAX, &outputs);
  if (s == HEDDLE_OK) s = read_number(r, id, attrs, "flatten_data", 1, &flatten);
  if (s != HEDDLE_OK) return s;
  node->flatten_data = flatten != 0;
  if (outputs != node->n_outputs)
    return heddle__node_fail(r->g, node, r->err, HEDDLE_EFORMAT, "num_outputs is %lld, and node_row_ptr gives it %u",
                             (long long)outputs, node->n_outputs);
  if (node->func_name[0] == '\0')
    return heddle__node_fail(r->g, node, r->err, HEDDLE_EFORMAT,
                             "func_name is empty, expected a function of a library");
  return HEDDLE_OK;
}

/* "attrs", or "attr" as NNVM and TVM have always taken it too. */
static heddle_status read_node_attrs(heddle__reader *r, uint32_t id, const json_t *object) {
  char words[64];
  heddle__node *node = &r->g->nodes[id];
  const json_t *attrs = json_object_get(object, "attrs"), *other = json_object_get(object, "attr");
  if (attrs != NULL && other != NULL)
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "nodes[%u]: it has both attr and attrs, expected one", id);
  if (attrs == NULL) attrs = other;
  if (attrs == NULL ? node->kind == HEDDLE__NODE_TVM : !json_is_object(attrs))
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "nodes[%u].attrs: expected an object, found %s", id,
                               heddle__json_words(attrs, words));
  if (node->kind == HEDDLE__NODE_TVM) return read_tvm(r, id, attrs);
  if (node->kind == HEDDLE__NODE_OP && attrs != NULL) return heddle__read_attrs(r, id, attrs);
  return HEDDLE_OK;
}

static heddle_status read_node(heddle__reader *r, uint32_t id, json_t *object) {
  char words[64];
  if (!json_is_object(object))
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "nodes[%u]: expected an object, found %s", id,
                               heddle__json_words(object, words));
  r->g->nodes[id].raw = json_incref(object);
  heddle_status s = read_kind(r, id, object);
  if (s == HEDDLE_OK) s = read_stream(r, id, object);
  if (s == HEDDLE_OK) s = read_outputs(r, id);
  if (s == HEDDLE_OK) s = read_inputs(r, id, object);
  if (s == HEDDLE_OK) s = check_control_deps(r, id, object);
  if (s == HEDDLE_OK) s = read_node_attrs(r, id, object);
  return s;
}

heddle_status heddle__read_nodes(heddle__reader *r, const json_t *nodes) {
  heddle_graph *g = r->g;
  g->nodes = heddle__alloc(g->n_nodes, sizeof *g->nodes);
  if (g->nodes == NULL) return heddle__no_memory(r->err, "the nodes of a graph");
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < g->n_nodes && s == HEDDLE_OK; i++)
    s = heddle__at_node(read_node(r, i, json_array_get(nodes, i)), r->err, i, g->nodes[i].name);
  return s;
}
