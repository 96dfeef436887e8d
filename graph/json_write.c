/* graph/json_write.c: a graph as JSON, a node a line, in the order of keys that TVM writes. What the reader did not
 * understand is written where it stood, so that nothing is lost. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/tensor.h"
#include "graph/file.h"
#include "graph/json_out.h"
#include "graph/opschema.h"

typedef heddle__sheet text;

/* The version of an entry: TVM never uses it; it is kept. list is the JSON that the entries came from, or NULL. */
static int64_t version_of(const json_t *list, size_t i) {
  return json_integer_value(json_array_get(json_array_get(list, i), 2));
}

static void write_entries(text *out, const heddle__entry *entries, uint32_t count, const json_t *list) {
  heddle__say_text(out, "[");
  for (uint32_t i = 0; i < count; i++) {
    bool absent = entries[i].node == HEDDLE__ABSENT;
    heddle__say_text(out, i > 0 ? ", [" : "[");
    heddle__say_int(out, absent ? -1 : (int64_t)entries[i].node);
    heddle__say_text(out, ", ");
    heddle__say_int(out, entries[i].index);
    heddle__say_text(out, ", ");
    heddle__say_int(out, absent ? 0 : version_of(list, i));
    heddle__say_text(out, "]");
  }
  heddle__say_text(out, "]");
}

/* ---------------------------------------------------------------- nodes */

static void write_attr(text *out, const heddle_pattr *attr) {
  bool is_list = attr->kind >= HEDDLE_ATTR_INTS;
  if (attr->kind == HEDDLE_ATTR_STRING) {
    heddle__say_string(out, attr->data);
    return;
  }
  if (is_list) heddle__say_text(out, "[");
  for (uint64_t i = 0; i < attr->count; i++) {
    if (i > 0) heddle__say_text(out, ", ");
    if (attr->kind == HEDDLE_ATTR_INT || attr->kind == HEDDLE_ATTR_INTS)
      heddle__say_int(out, ((const int64_t *)attr->data)[i]);
    else if (attr->kind == HEDDLE_ATTR_STRINGS) heddle__say_string(out, ((const char *const *)attr->data)[i]);
    else heddle__out_float(out, ((const double *)attr->data)[i]);
  }
  if (is_list) heddle__say_text(out, "]");
}

static void write_number(text *out, const char *key, uint32_t n, size_t *count) {
  char digits[16];
  snprintf(digits, sizeof digits, "%u", n);
  heddle__out_key(out, key, count);
  heddle__say_string(out, digits);
}

/* Values of a tvm_op are strings, numbers too. num_inputs stays what the file said, right or wrong. */
static void write_tvm_attrs(text *out, const heddle__node *node, const json_t *raw) {
  static const char *const skip[] = {"func_name", "num_inputs", "num_outputs", "flatten_data", NULL};
  size_t count = 0;
  const json_t *inputs = json_object_get(raw, "num_inputs");
  heddle__say_text(out, "{");
  heddle__out_key(out, "func_name", &count);
  heddle__say_string(out, node->func_name);
  if (json_is_string(inputs)) {
    heddle__out_key(out, "num_inputs", &count);
    heddle__out_value(out, inputs);
  } else {
    write_number(out, "num_inputs", json_is_integer(inputs) ? (uint32_t)json_integer_value(inputs) : node->n_inputs,
                 &count);
  }
  write_number(out, "num_outputs", node->n_outputs, &count);
  write_number(out, "flatten_data", node->flatten_data, &count);
  heddle__out_members(out, raw, skip, &count);
  heddle__say_text(out, "}");
}

static void write_graph(text *out, const heddle_graph *g);

static void write_node_attrs(text *out, const heddle__node *node, size_t *count) {
  const json_t *raw = json_object_get(node->raw, "attrs");
  size_t attrs = 0;
  if (raw == NULL) raw = json_object_get(node->raw, "attr");
  if (node->kind == HEDDLE__NODE_NULL) {
    if (raw == NULL) return;
    heddle__out_key(out, "attrs", count);
    heddle__out_value(out, raw);
  } else if (node->kind == HEDDLE__NODE_TVM) {
    heddle__out_key(out, "attrs", count);
    write_tvm_attrs(out, node, raw);
  } else if (node->n_attrs + node->n_inner > 0) {
    heddle__out_key(out, "attrs", count);
    heddle__say_text(out, "{");
    for (uint32_t i = 0; i < node->n_attrs; i++) {
      heddle__out_key(out, node->attrs[i].name, &attrs);
      write_attr(out, &node->attrs[i]);
    }
    for (uint32_t i = 0; i < node->n_inner; i++) {
      heddle__out_key(out, node->inner[i].name, &attrs);
      write_graph(out, node->inner[i].graph);
    }
    heddle__say_text(out, "}");
  }
}

static void write_node(text *out, const heddle__node *node) {
  static const char *const skip[] = {"op", "name", "domain", "attr", "attrs", "inputs", "device", "stream", NULL};
  size_t count = 0;
  heddle__say_text(out, "{");
  heddle__out_key(out, "op", &count);
  heddle__say_string(out, node->op);
  if (node->domain[0] != '\0') {
    heddle__out_key(out, "domain", &count);
    heddle__say_string(out, node->domain);
  }
  heddle__out_key(out, "name", &count);
  heddle__say_string(out, node->name);
  write_node_attrs(out, node, &count);
  heddle__out_key(out, "inputs", &count);
  write_entries(out, node->inputs, node->n_inputs, json_object_get(node->raw, "inputs"));
  if (node->device != NULL) {
    heddle__out_key(out, "device", &count);
    heddle__say_string(out, node->device);
  }
  if (node->stream >= 0) {
    heddle__out_key(out, "stream", &count);
    heddle__say_int(out, node->stream);
  }
  heddle__out_members(out, node->raw, skip, &count);
  heddle__say_text(out, "}");
}

/* ---------------------------------------------------------------- columns */

static void write_dtype(text *out, const heddle__type *type) {
  char name[32];
  if (!type->has_dtype || type->infers_dtype) {
    heddle__say_text(out, "null");
    return;
  }
  heddle__dtype_name(type->dtype, name);
  if (strncmp(name, "bool", 4) == 0) { /* TVM's word for it */
    char lanes[16];
    memcpy(lanes, name + 4, sizeof lanes - 1);
    lanes[sizeof lanes - 1] = '\0';
    snprintf(name, sizeof name, "uint1%s", lanes);
  }
  heddle__say_string(out, name);
}

static void write_shape(text *out, const heddle__type *type) {
  if (!type->has_shape || type->infers_shape) {
    heddle__say_text(out, "null");
    return;
  }
  heddle__say_text(out, "[");
  for (uint32_t i = 0; i < type->ndim; i++) {
    if (i > 0) heddle__say_text(out, ", ");
    if (type->dims[i].symbol != NULL) heddle__say_string(out, type->dims[i].symbol);
    else if (type->dims[i].value < 0) heddle__say_text(out, "null");
    else heddle__say_int(out, type->dims[i].value);
  }
  heddle__say_text(out, "]");
}

/* The columns there are, in TVM's order. */
typedef enum column { DTYPE, SHAPE, STORAGE, DEVICE, SCOPE, COLUMNS } column;

static void write_cell(text *out, const heddle_graph *g, column which, uint32_t i) {
  if (which == DTYPE) write_dtype(out, &g->types[i]);
  else if (which == SHAPE) write_shape(out, &g->types[i]);
  else if (which == STORAGE) heddle__say_int(out, g->storage_id[i]);
  else if (which == DEVICE) heddle__say_int(out, g->device_index[i]);
  else heddle__say_string(out, g->storage_scope[i]);
}

static void write_columns(text *out, const heddle_graph *g) {
  static const struct {
    const char *key, *tag;
  } names[COLUMNS] = {{"dltype", "list_str"},
                      {"shape", "list_shape"},
                      {"storage_id", "list_int"},
                      {"device_index", "list_int"},
                      {"storage_scope", "list_str"}};
  const bool there[COLUMNS] = {true, true, g->storage_id != NULL, g->device_index != NULL, g->storage_scope != NULL};
  size_t count = 0;
  heddle__say_text(out, "{");
  for (column c = DTYPE; c < COLUMNS; c++) {
    if (!there[c]) continue;
    heddle__out_key(out, names[c].key, &count);
    heddle__say_text(out, "[");
    heddle__say_string(out, names[c].tag);
    heddle__say_text(out, ", [");
    for (uint32_t i = 0; i < g->n_entries; i++) {
      if (i > 0) heddle__say_text(out, ", ");
      write_cell(out, g, c, i);
    }
    heddle__say_text(out, "]]");
  }
  heddle__out_members(out, json_object_get(g->raw, "attrs"), NULL, &count);
  heddle__say_text(out, "}");
}

/* ---------------------------------------------------------------- the document */

static void write_numbers(text *out, const char *key, const uint32_t *numbers, uint32_t count) {
  heddle__say_text(out, ",\n \"");
  heddle__say_text(out, key);
  heddle__say_text(out, "\": [");
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) heddle__say_text(out, ", ");
    heddle__say_int(out, numbers[i]);
  }
  heddle__say_text(out, "]");
}

static void write_row_ptr(text *out, const heddle_graph *g) {
  heddle__say_text(out, ",\n \"node_row_ptr\": [");
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    heddle__say_int(out, g->nodes[i].first_entry);
    heddle__say_text(out, ", ");
  }
  heddle__say_int(out, g->n_entries);
  heddle__say_text(out, "]");
}

static void write_dialect(text *out, const heddle_graph *g) {
  static const char *const skip[] = {"version", "opset", NULL};
  size_t count = 0;
  heddle__say_text(out, "\"heddle\": {");
  heddle__out_key(out, "version", &count);
  heddle__say_int(out, 1);
  heddle__out_key(out, "opset", &count);
  heddle__say_int(out, g->opset);
  heddle__out_members(out, json_object_get(g->raw, "heddle"), skip, &count);
  heddle__say_text(out, "},\n ");
}

static void write_graph(text *out, const heddle_graph *g) {
  static const char *const skip[] = {"heddle", "nodes", "arg_nodes", "heads", "attrs", "node_row_ptr", NULL};
  size_t count = 0;
  heddle__say_text(out, "{\n ");
  if (g->is_heddle && !g->is_inner) write_dialect(out, g);
  heddle__say_text(out, "\"nodes\": [");
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    heddle__say_text(out, i > 0 ? ",\n  " : "\n  ");
    write_node(out, &g->nodes[i]);
  }
  heddle__say_text(out, "\n ]");
  write_numbers(out, "arg_nodes", g->args, g->n_args);
  heddle__say_text(out, ",\n \"heads\": ");
  write_entries(out, g->heads, g->n_heads, json_object_get(g->raw, "heads"));
  heddle__say_text(out, ",\n \"attrs\": ");
  write_columns(out, g);
  write_row_ptr(out, g);
  size_t before = out->used;
  heddle__say_text(out, ",\n ");
  heddle__out_members(out, g->raw, skip, &count);
  if (count == 0 && !out->failed) out->used = before;
  heddle__say_text(out, g->is_inner ? "\n}" : "\n}\n");
}

heddle_status heddle_graph_text(const heddle_graph *g, char **out, size_t *bytes, heddle_error *err) {
  text t = {0};
  *out = NULL;
  write_graph(&t, g);
  if (t.failed) {
    heddle__free(t.text);
    return heddle__no_memory(err, "the text of a graph");
  }
  *out = t.text;
  if (bytes != NULL) *bytes = t.used;
  return HEDDLE_OK;
}

heddle_status heddle_graph_save(const heddle_graph *g, const char *path, heddle_error *err) {
  char *written = NULL;
  size_t bytes = 0;
  heddle_status s = heddle_graph_text(g, &written, &bytes, err);
  if (s != HEDDLE_OK) return heddle__prefix(err, s, "%s: ", path);
  s = heddle__file_write(path, written, bytes, err);
  heddle__free(written);
  return s;
}
