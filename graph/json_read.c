/* graph/json_read.c: a graph from JSON: the document as a whole, the order in which its parts are read, and the public
 * load and parse. Each number is checked where it is read; what the parts mean together is for validate.c. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/whole_file.h"
#include "graph/file.h"
#include "graph/package.h"
#include "graph/frontend.h"
#include "graph/reader.h"
#include "graph/validate.h"
#include "graph/words.h"
#include "graph/verified.h"

#define FORMAT_VERSION 1

/* A member of the document that must be an array. */
static heddle_status need_array(heddle__reader *r, const char *key, const json_t **out) {
  char words[64];
  const json_t *value = json_object_get(r->root, key);
  if (!json_is_array(value))
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "\"%s\": expected an array, found %s", key,
                               heddle__json_words(value, words));
  *out = value;
  return HEDDLE_OK;
}

/* "heddle": {"version": 1, "opset": 17} */
static heddle_status read_dialect(heddle__reader *r) {
  char words[64];
  int64_t n;
  const json_t *heddle = json_object_get(r->root, "heddle");
  if (heddle == NULL) return HEDDLE_OK;
  if (!json_is_object(heddle))
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "\"heddle\": expected an object, found %s",
                               heddle__json_words(heddle, words));
  const json_t *version = json_object_get(heddle, "version"), *opset = json_object_get(heddle, "opset");
  if (!heddle__json_int(version, 1, INT32_MAX, &n))
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "\"heddle\".version: expected %d, found %s", FORMAT_VERSION,
                               heddle__json_words(version, words));
  if (n > FORMAT_VERSION)
    return heddle__reader_fail(r, HEDDLE_EUNSUPPORTED,
                               "the graph is of format version %lld, and this library reads "
                               "%d; use a newer Heddle",
                               (long long)n, FORMAT_VERSION);
  if (!heddle__json_int(opset, 1, INT32_MAX, &n))
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "\"heddle\".opset: expected a positive integer, found %s",
                               heddle__json_words(opset, words));
  if (r->g->is_inner && r->g->opset != (uint32_t)n)
    return heddle__reader_fail(r, HEDDLE_EFORMAT,
                               "\"heddle\".opset: a graph within a graph is of its opset, %u, found %lld", r->g->opset,
                               (long long)n);
  const json_t *shapes = json_object_get(heddle, "output_shapes");
  const char *word = json_string_value(shapes);
  if (shapes != NULL && (word == NULL || strcmp(word, "hints") != 0))
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "\"heddle\".output_shapes: expected \"hints\", found %s",
                               heddle__json_words(shapes, words));
  r->g->is_heddle = true;
  r->g->hints_shapes = shapes != NULL;
  r->g->opset = (uint32_t)n;
  r->g->warnings = json_incref(json_object_get(heddle, "warnings"));
  json_object_del(json_object_get(r->root, "heddle"), "warnings");
  return HEDDLE_OK;
}

/* Of operators' outputs that are heads. */
static void mark_hints(heddle_graph *g) {
  for (uint32_t i = 0; i < g->n_heads && g->hints_shapes; i++)
    g->types[heddle__entry_id(g, g->heads[i])].hints_shape = g->nodes[g->heads[i].node].kind == HEDDLE__NODE_OP;
}

/* Entry ids: r->row_ptr and g->n_entries. */
static heddle_status read_row_ptr(heddle__reader *r) {
  char words[64];
  int64_t last = 0;
  heddle_status s = need_array(r, "node_row_ptr", &r->row_ptr);
  if (s != HEDDLE_OK) return s;
  size_t count = json_array_size(r->row_ptr);
  if (count != (size_t)r->g->n_nodes + 1)
    return heddle__reader_fail(r, HEDDLE_EFORMAT,
                               "node_row_ptr: %zu members for %u nodes, expected one more than nodes", count,
                               r->g->n_nodes);
  for (size_t i = 0; i < count; i++) {
    const json_t *value = json_array_get(r->row_ptr, i);
    int64_t max = i == 0 ? 0 : INT32_MAX;
    if (!heddle__json_int(value, last, max, &last))
      return heddle__reader_fail(r, HEDDLE_EFORMAT,
                                 "node_row_ptr[%zu]: expected an integer from %lld to %lld, found %s", i,
                                 (long long)last, (long long)max, heddle__json_words(value, words));
  }
  r->g->n_entries = (uint32_t)last;
  return HEDDLE_OK;
}

heddle_status heddle__read_entry(heddle__reader *r, const json_t *value, uint32_t before, bool absent,
                                 const char *where, heddle__entry *out) {
  char words[64];
  int64_t node, index, version = 0;
  size_t n = json_array_size(value); /* 0 for what is no array */
  const json_t *first = json_array_get(value, 0), *second = json_array_get(value, 1);
  if (n < 2 || n > 3 || (n == 3 && !heddle__json_int(json_array_get(value, 2), 0, UINT32_MAX, &version)))
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "%s: expected [node, output] or [node, output, version], found %s",
                               where, heddle__json_words(value, words));
  if (absent && heddle__json_int(first, -1, -1, &node) && heddle__json_int(second, 0, 0, &index)) {
    *out = (heddle__entry){HEDDLE__ABSENT, 0};
    return HEDDLE_OK;
  }
  if (!heddle__json_int(first, 0, (int64_t)r->g->n_nodes - 1, &node))
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "%s: expected a node from 0 to %u, found %s", where,
                               r->g->n_nodes - 1, heddle__json_words(first, words));
  if (node >= before)
    return heddle__reader_fail(r, HEDDLE_EFORMAT,
                               "%s: node %lld does not come before the node that uses it: there is "
                               "a cycle, or the nodes are not in topological order",
                               where, (long long)node);
  uint32_t outputs = r->g->nodes[node].n_outputs;
  if (!heddle__json_int(second, 0, (int64_t)outputs - 1, &index))
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "%s: expected an output from 0 to %u of node %lld, found %s", where,
                               outputs - 1, (long long)node, heddle__json_words(second, words));
  *out = (heddle__entry){(uint32_t)node, (uint32_t)index};
  return HEDDLE_OK;
}

static heddle_status read_args(heddle__reader *r) {
  char words[64];
  const json_t *array = NULL;
  heddle_graph *g = r->g;
  heddle_status s = need_array(r, "arg_nodes", &array);
  if (s != HEDDLE_OK) return s;
  size_t count = json_array_size(array);
  if (count > g->n_nodes)
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "arg_nodes: %zu members, but there are %u nodes", count, g->n_nodes);
  g->args = heddle__alloc(count, sizeof *g->args);
  if (g->args == NULL) return heddle__no_memory(r->err, "the inputs of a graph");
  for (size_t i = 0; i < count; i++) {
    int64_t node;
    const json_t *value = json_array_get(array, i);
    if (!heddle__json_int(value, 0, (int64_t)g->n_nodes - 1, &node))
      return heddle__reader_fail(r, HEDDLE_EFORMAT, "arg_nodes[%zu]: expected a node from 0 to %u, found %s", i,
                                 g->n_nodes - 1, heddle__json_words(value, words));
    g->args[g->n_args++] = (uint32_t)node;
  }
  return HEDDLE_OK;
}

static heddle_status read_heads(heddle__reader *r) {
  const json_t *array = NULL;
  heddle_graph *g = r->g;
  heddle_status s = need_array(r, "heads", &array);
  if (s != HEDDLE_OK) return s;
  size_t count = json_array_size(array);
  if (count == 0) return heddle__reader_fail(r, HEDDLE_EFORMAT, "heads: a graph needs at least one output");
  if (count > INT32_MAX) return heddle__reader_fail(r, HEDDLE_ELIMIT, "heads: %zu are more than 2^31", count);
  g->heads = heddle__alloc(count, sizeof *g->heads);
  if (g->heads == NULL) return heddle__no_memory(r->err, "the outputs of a graph");
  for (size_t i = 0; i < count && s == HEDDLE_OK; i++) {
    char where[48];
    snprintf(where, sizeof where, "heads[%zu]", i);
    s = heddle__read_entry(r, json_array_get(array, i), g->n_nodes, false, where, &g->heads[g->n_heads++]);
  }
  return s;
}

static heddle_status read_document(heddle__reader *r) {
  const json_t *nodes = NULL;
  heddle_status s = read_dialect(r);
  if (s == HEDDLE_OK) s = need_array(r, "nodes", &nodes);
  if (s != HEDDLE_OK) return s;
  size_t count = json_array_size(nodes);
  if (count == 0) return heddle__reader_fail(r, HEDDLE_EFORMAT, "nodes: a graph needs at least one node");
  if (count > r->max_nodes)
    return heddle__reader_fail(r, HEDDLE_ELIMIT, "nodes: %zu, and the limit is %u; it is an option of the reader",
                               count, r->max_nodes);
  r->g->n_nodes = (uint32_t)count;
  s = read_row_ptr(r);
  if (s == HEDDLE_OK) s = heddle__read_nodes(r, nodes);
  if (s == HEDDLE_OK) s = read_args(r);
  if (s == HEDDLE_OK) s = read_heads(r);
  if (s == HEDDLE_OK) s = heddle__read_types(r, json_object_get(r->root, "attrs"));
  if (s == HEDDLE_OK) mark_hints(r->g);
  if (s == HEDDLE_OK) s = heddle__graph_index(r->g, r->err);
  if (s == HEDDLE_OK) s = heddle__graph_validate(r->g, r->err);
  return s;
}

/* What has become members of the graph need not be kept as JSON too. */
static void forget_what_was_read(json_t *root) {
  static const char *const keys[] = {"nodes", "arg_nodes", "node_row_ptr"};
  static const char *const columns[] = {"dltype", "shape", "storage_id", "device_index", "storage_scope"};
  json_t *attrs = json_object_get(root, "attrs");
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) json_object_del(root, keys[i]);
  for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) json_object_del(attrs, columns[i]);
}

static heddle_status from_json(json_t *root, const char *name, const heddle_graph *outer, uint32_t max_nodes,
                               heddle_graph **out, heddle_error *err) {
  heddle_status s;
  heddle_graph *g = heddle__graph_new(name, err);
  if (g == NULL) {
    json_decref(root);
    return HEDDLE_ENOMEM;
  }
  g->raw = root;
  g->is_inner = outer != NULL;
  if (outer != NULL) {
    g->is_heddle = outer->is_heddle;
    g->hints_shapes = outer->hints_shapes;
    g->opset = outer->opset;
  }
  heddle__reader r = {.g = g, .name = g->source, .max_nodes = max_nodes, .root = root, .err = err};
  if (!json_is_object(root)) {
    char words[64];
    s = heddle__reader_fail(&r, HEDDLE_EFORMAT, "expected the object of a graph, found %s",
                            heddle__json_words(root, words));
  } else {
    s = read_document(&r);
  }
  if (s != HEDDLE_OK) {
    heddle_graph_release(g);
    return s;
  }
  forget_what_was_read(root);
  *out = g;
  return HEDDLE_OK;
}

heddle_status heddle__graph_from_json(json_t *root, const char *name, uint32_t max_nodes, heddle_graph **out,
                                      heddle_error *err) {
  return from_json(root, name, NULL, max_nodes, out, err);
}

heddle_status heddle__graph_from_inner(json_t *root, const heddle_graph *outer, uint32_t max_nodes, heddle_graph **out,
                                       heddle_error *err) {
  return from_json(root, outer->source, outer, max_nodes, out, err);
}

heddle_status heddle__graph_parse(const char *text, size_t bytes, const char *name, const heddle_read_limits *limits,
                                  heddle_graph **out, heddle_error *err) {
  heddle_read_limits limit;
  json_t *root = NULL;
  *out = NULL;
  heddle__graph_limits(limits, &limit);
  heddle_status s = heddle__check_bytes(name, bytes, limit.max_bytes, err);
  if (s == HEDDLE_OK) s = heddle__json_parse(text, bytes, name, limit.max_depth, &root, err);
  if (s == HEDDLE_OK) s = heddle__graph_from_json(root, name, limit.max_nodes, out, err);
  return s;
}

heddle_status heddle__graph_load(const heddle__sealed *file, const heddle_read_limits *limits, heddle_graph **out,
                                 heddle_error *err) {
  heddle_read_limits limit;
  void *data = NULL;
  size_t bytes = 0;
  *out = NULL;
  heddle__graph_limits(limits, &limit);
  char *text = NULL;
  bool packed = heddle__is_package(file->use);
  heddle_status s = packed ? heddle__package_text(file->use, limit.max_bytes, &text, &bytes, err)
                           : heddle__file_read(file->use, limit.max_bytes, &data, &bytes, err);
  if (packed) data = text;
  if (s != HEDDLE_OK) heddle__sealed_failed(file, s, err);
  else s = heddle__graph_parse(data, bytes, file->name, &limit, out, err);
  heddle__free(data);
  return s;
}

static heddle_status parse_text(const void *text, size_t bytes, const char *name, const heddle_read_limits *limit,
                                void *out, heddle_error *err) {
  return heddle__graph_parse(text, bytes, name, limit, out, err);
}

heddle_status heddle_graph_parse(const char *text, size_t bytes, const char *name, const heddle_read_limits *limits,
                                 heddle_graph **out, heddle_error *err) {
  heddle_read_limits limit;
  *out = NULL;
  heddle__graph_limits(limits, &limit);
  return heddle__parse_verified(text, bytes, name, &limit, parse_text, out, err);
}

heddle_status heddle_graph_load(const char *path, const heddle_read_limits *limits, heddle_graph **out,
                                heddle_error *err) {
  heddle_read_limits limit;
  heddle__sealed file;
  *out = NULL;
  if (heddle__is_onnx(path)) return heddle__onnx_load(path, limits, NULL, out, NULL, err);
  heddle__graph_limits(limits, &limit);
  const heddle__file_access access = {limit.trust, limit.key};
  heddle_status s = heddle__trust_given(limit.trust, err);
  if (s == HEDDLE_OK) s = heddle__sealed_open(path, &access, heddle__sealed_most(limit.max_bytes), &file, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__graph_load(&file, &limit, out, err);
  heddle__sealed_close(&file);
  return s;
}
