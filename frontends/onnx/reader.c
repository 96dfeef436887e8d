/* frontends/onnx/reader.c: the order in which a model is read: its frame is checked, it is unpacked, its versions are
 * looked at, and then come upgrade.c and document.c. */
#include "frontends/onnx/reader.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/whole_file.h"
#include "frontends/onnx/tensor.h"
#include "frontends/onnx/types.h"
#include "frontends/onnx/wire.h"

/* ---- names and lists */

const char *heddle__onnx_new_name(heddle__onnx_reader *r, json_t *names, const char *wish) {
  const json_t *last = json_object_get(names, wish);
  const char *name = heddle__onnx_format(&r->arena, "%s", wish);
  json_int_t i = json_integer_value(last); /* 0 for what is no number */
  while (name != NULL && json_object_get(names, name) != NULL)
    name = heddle__onnx_format(&r->arena, "%s_%lld", wish, (long long)++i);
  if (name == NULL || (last != NULL && json_object_set_new(names, wish, json_integer(i)) != 0)) return NULL;
  return json_object_set_new(names, name, json_integer(0)) == 0 ? name : NULL;
}

static bool make_room(heddle__onnx_reader *r, void **list, size_t n, size_t *max) {
  if (n < *max) return true;
  size_t more = *max * 2 + 64;
  void *grown = heddle__onnx_take(&r->arena, more * sizeof(void *));
  if (grown == NULL) return false;
  if (n > 0) memcpy(grown, *list, n * sizeof(void *));
  *list = grown;
  *max = more;
  return true;
}

heddle_status heddle__onnx_add_node(heddle__onnx_reader *r, Onnx__NodeProto *node) {
  void *list = r->nodes;
  if (!make_room(r, &list, r->n_nodes, &r->max_nodes)) return heddle__onnx_no_memory(r);
  r->nodes = list;
  r->nodes[r->n_nodes++] = node;
  return HEDDLE_OK;
}

heddle_status heddle__onnx_add_tensor(heddle__onnx_reader *r, Onnx__TensorProto *tensor) {
  void *list = r->tensors;
  if (!make_room(r, &list, r->n_tensors, &r->max_tensors)) return heddle__onnx_no_memory(r);
  r->tensors = list;
  if (json_object_set_new(r->tensor_at, tensor->name, json_integer((json_int_t)r->n_tensors)) != 0)
    return heddle__onnx_no_memory(r);
  r->tensors[r->n_tensors++] = tensor;
  return HEDDLE_OK;
}

bool heddle__onnx_give_again(heddle__onnx_reader *r, const char *name, Onnx__TensorProto *tensor) {
  const json_t *at = json_object_get(r->tensor_at, name);
  const Onnx__TensorProto *before = heddle__onnx_find_tensor(r, name);
  if (at == NULL || before->data_type != tensor->data_type || before->n_dims != tensor->n_dims) return false;
  if (tensor->n_dims > 0 && memcmp(before->dims, tensor->dims, tensor->n_dims * sizeof *tensor->dims) != 0)
    return false;
  tensor->name = before->name;
  r->tensors[json_integer_value(at)] = tensor;
  return true;
}

const Onnx__TensorProto *heddle__onnx_find_tensor(const heddle__onnx_reader *r, const char *name) {
  const json_t *at = json_object_get(r->tensor_at, name);
  return at != NULL ? r->tensors[json_integer_value(at)] : NULL;
}

/* ---- the model */

/* A NULL of the file becomes "", and names that JSON cannot hold are refused. */
static heddle_status check_text(heddle__onnx_reader *r, char **text, const char *what) {
  if (*text == NULL) *text = (char *)(uintptr_t) ""; /* it is never written */
  json_t *probe = json_string(*text);
  char shown[44];
  if (probe == NULL)
    return heddle__onnx_fail(r, HEDDLE_EFORMAT, "%s '%s' is not UTF-8", what, heddle__onnx_show(*text, shown));
  json_decref(probe);
  return HEDDLE_OK;
}

static heddle_status check_inner(heddle__onnx_reader *r, Onnx__GraphProto *g);

static heddle_status check_node(heddle__onnx_reader *r, Onnx__NodeProto *node) {
  heddle_status s = check_text(r, &node->name, "the name of a node");
  if (s == HEDDLE_OK) s = check_text(r, &node->op_type, "the operator of a node");
  if (s == HEDDLE_OK) s = check_text(r, &node->domain, "the domain of a node");
  if (s == HEDDLE_OK && node->op_type[0] == '\0') {
    char shown[44];
    s = heddle__at_node(
        heddle__onnx_fail(r, HEDDLE_EFORMAT, "node '%s' has no operator", heddle__onnx_show(node->name, shown)), r->err,
        HEDDLE__NO_NODE, node->name);
  }
  for (size_t i = 0; i < node->n_input && s == HEDDLE_OK; i++) s = check_text(r, &node->input[i], "an input of a node");
  for (size_t i = 0; i < node->n_output && s == HEDDLE_OK; i++)
    s = check_text(r, &node->output[i], "an output of a node");
  for (size_t i = 0; i < node->n_attribute && s == HEDDLE_OK; i++)
    s = check_text(r, &node->attribute[i]->name, "the name of an attribute");
  for (size_t i = 0; i < node->n_attribute && s == HEDDLE_OK; i++)
    if (node->attribute[i]->g != NULL) s = check_inner(r, node->attribute[i]->g);
  if (s == HEDDLE_OK && strcmp(node->domain, "ai.onnx") == 0) node->domain[0] = '\0';
  return s;
}

static heddle_status check_values(heddle__onnx_reader *r, Onnx__ValueInfoProto **values, size_t n, const char *what) {
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < n && s == HEDDLE_OK; i++) {
    s = check_text(r, &values[i]->name, what);
    if (s == HEDDLE_OK && values[i]->name[0] == '\0')
      s = heddle__onnx_fail(r, HEDDLE_EFORMAT, "%s %zu has no name", what, i);
  }
  return s;
}

/* The graph of a node: nesting was held to its limit before. */
static heddle_status check_inner(heddle__onnx_reader *r, Onnx__GraphProto *g) {
  heddle_status s = heddle__onnx_dense_all(r, g);
  if (s == HEDDLE_OK) s = check_values(r, g->input, g->n_input, "input");
  if (s == HEDDLE_OK) s = check_values(r, g->output, g->n_output, "output");
  for (size_t i = 0; i < g->n_initializer && s == HEDDLE_OK; i++) {
    s = check_text(r, &g->initializer[i]->name, "the name of a tensor");
    if (s == HEDDLE_OK && g->initializer[i]->name[0] == '\0')
      s = heddle__onnx_fail(r, HEDDLE_EFORMAT, "initialiser %zu of a node's graph has no name", i);
  }
  for (size_t i = 0; i < g->n_node && s == HEDDLE_OK; i++) s = check_node(r, g->node[i]);
  return s;
}

/* r->opset and r->target. */
static heddle_status check_versions(heddle__onnx_reader *r, const Onnx__ModelProto *m) {
  if (m->graph == NULL) return heddle__onnx_fail(r, HEDDLE_EFORMAT, "it holds no graph, so it is no ONNX model");
  if (m->ir_version < HEDDLE__ONNX_IR_FIRST || m->ir_version > HEDDLE__ONNX_IR_LAST)
    return heddle__onnx_fail(r, HEDDLE_EUNSUPPORTED, "the file is of ONNX's format %lld; this library reads %d to %d",
                             (long long)m->ir_version, HEDDLE__ONNX_IR_FIRST, HEDDLE__ONNX_IR_LAST);
  for (size_t i = 0; i < m->n_opset_import; i++) {
    const char *domain = m->opset_import[i]->domain;
    if (domain != NULL && domain[0] != '\0' && strcmp(domain, "ai.onnx") != 0) continue;
    if (r->opset != 0 && r->opset != m->opset_import[i]->version)
      heddle__onnx_warn(r, "it is of opset %lld and of opset %lld, and read as the latter", (long long)r->opset,
                        (long long)m->opset_import[i]->version);
    r->opset = m->opset_import[i]->version;
    if (r->opset < HEDDLE__OPSET_OF_MODELS || r->opset > HEDDLE__OPSET_LAST)
      return heddle__onnx_fail(r, HEDDLE_EUNSUPPORTED, "it is of opset %lld; this library reads %d to %d",
                               (long long)r->opset, HEDDLE__OPSET_OF_MODELS, (int)HEDDLE__OPSET_LAST);
  }
  for (size_t i = 0; r->opset == 0 && i < m->graph->n_node; i++) {
    const char *domain = m->graph->node[i]->domain;
    if (domain == NULL || domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0)
      return heddle__onnx_fail(r, HEDDLE_EFORMAT, "it does not say of which opset its operators are");
  }
  /* All its operators are of other domains, or in functions, which have opsets of their own. */
  for (size_t i = 0; r->opset == 0 && i < m->n_functions; i++)
    r->opset = heddle__onnx_function_opset(m->functions[i], 0);
  if (r->opset < HEDDLE__OPSET_OF_MODELS || r->opset > HEDDLE__OPSET_LAST) r->opset = HEDDLE__OPSET_LAST;
  r->target = heddle__onnx_base(r);
  return HEDDLE_OK;
}

static heddle_status take_name(heddle__onnx_reader *r, const char *name, const char *what) {
  char shown[44];
  if (name[0] == '\0') return HEDDLE_OK;
  if (json_object_get(r->taken, name) != NULL)
    return heddle__onnx_fail(r, HEDDLE_EFORMAT, "%s '%s' has the name of another value", what,
                             heddle__onnx_show(name, shown));
  return json_object_set_new(r->taken, name, json_true()) == 0 ? HEDDLE_OK : heddle__onnx_no_memory(r);
}

/* Names of values, each once: but an initialiser may give an input its value, and one may come again. */
static heddle_status take_names(heddle__onnx_reader *r) {
  Onnx__GraphProto *g = r->graph;
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < g->n_initializer && s == HEDDLE_OK; i++) {
    s = check_text(r, &g->initializer[i]->name, "the name of a tensor");
    if (s == HEDDLE_OK && g->initializer[i]->name[0] == '\0')
      s = heddle__onnx_fail(r, HEDDLE_EFORMAT, "initialiser %zu has no name", i);
    if (s == HEDDLE_OK && heddle__onnx_give_again(r, g->initializer[i]->name, g->initializer[i])) continue;
    if (s == HEDDLE_OK) s = take_name(r, g->initializer[i]->name, "tensor");
    if (s == HEDDLE_OK) s = heddle__onnx_add_tensor(r, g->initializer[i]);
  }
  json_t *inputs = json_object();
  if (inputs == NULL) s = heddle__onnx_no_memory(r);
  for (size_t i = 0; i < g->n_input && s == HEDDLE_OK; i++) {
    char shown[44];
    const char *name = g->input[i]->name;
    if (json_object_get(inputs, name) != NULL)
      s = heddle__onnx_fail(r, HEDDLE_EFORMAT, "two inputs are named '%s'", heddle__onnx_show(name, shown));
    else if (json_object_set_new(inputs, name, json_true()) != 0) s = heddle__onnx_no_memory(r);
    else if (heddle__onnx_find_tensor(r, name) == NULL) s = take_name(r, name, "input");
  }
  json_decref(inputs);
  for (size_t i = 0; i < g->n_node && s == HEDDLE_OK; i++)
    for (size_t k = 0; k < g->node[i]->n_output && s == HEDDLE_OK; k++)
      s = take_name(r, g->node[i]->output[k], "the output of a node");
  return s;
}

static heddle_status note_use(heddle__onnx_reader *r, const char *name) {
  return json_object_set_new(r->used, name, json_true()) == 0 ? HEDDLE_OK : heddle__onnx_no_memory(r);
}

heddle_status heddle__onnx_note_inputs(heddle__onnx_reader *r, const Onnx__NodeProto *node) {
  heddle_status s = HEDDLE_OK;
  for (size_t k = 0; k < node->n_input && s == HEDDLE_OK; k++) s = note_use(r, node->input[k]);
  return s;
}

static heddle_status note_uses(heddle__onnx_reader *r, const Onnx__GraphProto *g) {
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < g->n_node && s == HEDDLE_OK; i++) {
    const Onnx__NodeProto *node = g->node[i];
    s = heddle__onnx_note_inputs(r, node);
    for (size_t k = 0; k < node->n_attribute && s == HEDDLE_OK; k++)
      if (node->attribute[k]->g != NULL) s = note_uses(r, node->attribute[k]->g);
  }
  for (size_t i = 0; i < g->n_output && s == HEDDLE_OK; i++) s = note_use(r, g->output[i]->name);
  return s;
}

void heddle__onnx_trim_outputs(const heddle__onnx_reader *r, Onnx__NodeProto *node, size_t least) {
  size_t n = node->n_output;
  while (n > least && (node->output[n - 1][0] == '\0' || json_object_get(r->used, node->output[n - 1]) == NULL)) n--;
  node->n_output = n;
}

static heddle_status check_functions(heddle__onnx_reader *r, const Onnx__ModelProto *m) {
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < m->n_functions && s == HEDDLE_OK; i++) {
    Onnx__FunctionProto *f = m->functions[i];
    s = check_text(r, &f->name, "the name of a function");
    if (s == HEDDLE_OK) s = check_text(r, &f->domain, "the domain of a function");
    if (s == HEDDLE_OK) s = heddle__onnx_add_function(r, f, i);
    for (size_t k = 0; k < f->n_input && s == HEDDLE_OK; k++) s = check_text(r, &f->input[k], "an input of a function");
    for (size_t k = 0; k < f->n_output && s == HEDDLE_OK; k++)
      s = check_text(r, &f->output[k], "an output of a function");
    for (size_t k = 0; k < f->n_node && s == HEDDLE_OK; k++) s = check_node(r, f->node[k]);
    if (s == HEDDLE_OK) s = heddle__onnx_sort_function(r, f);
  }
  return s;
}

static heddle_status check_graph(heddle__onnx_reader *r) {
  Onnx__GraphProto *g = r->graph;
  heddle_status s = check_values(r, g->input, g->n_input, "input");
  if (s == HEDDLE_OK) s = check_values(r, g->output, g->n_output, "output");
  for (size_t i = 0; i < g->n_node && s == HEDDLE_OK; i++) s = check_node(r, g->node[i]);
  if (s == HEDDLE_OK && g->n_output == 0) s = heddle__onnx_fail(r, HEDDLE_EFORMAT, "its graph has no output");
  if (s == HEDDLE_OK) s = heddle__onnx_dense_all(r, g);
  if (s == HEDDLE_OK) s = take_names(r);
  if (s == HEDDLE_OK) s = heddle__onnx_sort_graph(r, g);
  if (s == HEDDLE_OK) s = note_uses(r, g);
  if (s == HEDDLE_OK) s = heddle__onnx_learn(r);
  return s;
}

static heddle_status read_model(heddle__onnx_reader *r, const unsigned char *thin, size_t bytes, json_t **graph,
                                heddle_params **params) {
  ProtobufCAllocator allocator = heddle__onnx_allocator(&r->arena);
  Onnx__ModelProto *m = onnx__model_proto__unpack(&allocator, bytes, thin);
  if (m == NULL && r->arena.is_out) return heddle__onnx_no_memory(r);
  if (m == NULL) return heddle__onnx_fail(r, HEDDLE_EFORMAT, "it is no ONNX model, or was damaged");
  heddle_status s = check_versions(r, m);
  if (s != HEDDLE_OK) return s;
  r->model = m;
  r->graph = m->graph;
  s = check_functions(r, m);
  if (s == HEDDLE_OK) s = check_graph(r);
  if (s == HEDDLE_OK) s = heddle__onnx_upgrade(r);
  if (s == HEDDLE_OK) s = heddle__onnx_document(r, graph, params);
  if (s == HEDDLE_OK) s = heddle__onnx_complain(r);
  return s;
}

/* What a model is read from. */
typedef struct origin {
  const unsigned char *data;
  uint64_t bytes;
  const char *name, *place; /* as in heddle__onnx_reader, as are the rest */
  heddle__onnx_maps *maps;
  bool is_lent, only_looks;
} origin;

static heddle_status parse(const origin *from, const heddle_read_limits *limits, json_t **graph, heddle_params **params,
                           heddle_error *err) {
  heddle__onnx_reader r = {.name = from->name,
                           .place = from->place,
                           .is_lent = from->is_lent,
                           .only_looks = from->only_looks,
                           .maps = from->maps,
                           .file = from->data,
                           .file_bytes = from->bytes,
                           .left_to_inline = limits->max_nodes / 8,
                           .arena = {.limit = limits->max_bytes},
                           .err = err,
                           .tensor_at = json_object(),
                           .types = json_object(),
                           .taken = json_object(),
                           .used = json_object(),
                           .functions = json_object(),
                           .sequences = json_object(),
                           .strings = json_object(),
                           .warnings = json_array()};
  unsigned char *thin = NULL;
  size_t thin_bytes = 0;
  *graph = NULL;
  *params = NULL;
  heddle_status s = heddle__onnx_thin(from->name, from->data, from->bytes, limits, &thin, &thin_bytes, err);
  if (s == HEDDLE_OK && (r.tensor_at == NULL || r.types == NULL || r.taken == NULL || r.used == NULL ||
                         r.functions == NULL || r.sequences == NULL || r.strings == NULL || r.warnings == NULL))
    s = heddle__onnx_no_memory(&r);
  if (s == HEDDLE_OK) s = read_model(&r, thin, thin_bytes, graph, params);
  heddle__free(thin);
  heddle__arena_drop(&r.arena);
  json_decref(r.tensor_at);
  json_decref(r.types);
  json_decref(r.taken);
  json_decref(r.used);
  json_decref(r.functions);
  json_decref(r.sequences);
  json_decref(r.strings);
  json_decref(r.warnings);
  if (s != HEDDLE_OK) {
    json_decref(*graph);
    heddle_params_release(*params);
    *graph = NULL;
    *params = NULL;
  }
  return s;
}

heddle_status heddle__onnx_parse(const void *data, uint64_t bytes, const char *name, const heddle_read_limits *limits,
                                 json_t **graph, heddle_params **params, heddle_error *err) {
  const origin from = {.data = data, .bytes = bytes, .name = name};
  return parse(&from, limits, graph, params, err);
}

/* The params keep what their tensors' bytes are in. */
static void keep_maps(heddle_params *params, heddle__onnx_maps *maps) {
  params->maps = maps;
  params->unmap = heddle__onnx_maps_free;
  params->forget = heddle__onnx_maps_forget;
  params->where = heddle__onnx_maps_where;
}

heddle_status heddle__onnx_read_bytes(const void *data, uint64_t bytes, const char *name, const char *place,
                                      const heddle_read_limits *limits, uint64_t max_bytes, json_t **graph,
                                      heddle_params **params, heddle_error *err) {
  heddle_status s = heddle__check_bytes(name, bytes, max_bytes, err);
  if (s != HEDDLE_OK) return s;
  const heddle__file_access access = {limits->trust, limits->key};
  heddle__onnx_maps *maps = heddle__onnx_maps_new(max_bytes - bytes, &access);
  if (maps == NULL) return heddle__no_memory(err, "a model");
  const origin from = {.data = data, .bytes = bytes, .name = name, .place = place, .maps = maps, .is_lent = true};
  s = parse(&from, limits, graph, params, err);
  if (s == HEDDLE_OK) keep_maps(*params, maps);
  else heddle__onnx_maps_free(maps);
  return s;
}

heddle_status heddle__onnx_read(const char *path, const heddle_read_limits *limits, uint64_t max_bytes, json_t **graph,
                                heddle_params **params, heddle_error *err) {
  const unsigned char *data = NULL;
  uint64_t bytes = 0;
  heddle_params *made = NULL;
  const heddle__file_access access = {limits->trust, limits->key};
  heddle__onnx_maps *maps = heddle__onnx_maps_new(max_bytes, &access);
  if (maps == NULL) return heddle__no_memory(err, "a model");
  heddle_status s = heddle__onnx_map(maps, path, &data, &bytes, err);
  const origin from = {
      .data = data, .bytes = bytes, .name = path, .place = path, .maps = maps, .only_looks = params == NULL};
  if (s == HEDDLE_OK) s = parse(&from, limits, graph, &made, err);
  if (s == HEDDLE_OK && made != NULL) {
    keep_maps(made, maps);
    heddle__onnx_forget(data, bytes); /* what was looked at for the graph's sake */
  } else {
    heddle__onnx_maps_free(maps);
  }
  if (params != NULL) *params = made;
  else heddle_params_release(made);
  return s;
}
