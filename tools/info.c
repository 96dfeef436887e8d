/* tools/info.c: heddle info: what a file holds: a model's inputs, outputs, operators, parameters and sizes, a library's
 * functions and modules. Uses no device. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"
#include "model_file.h"
#include "objects.h"
#include "options.h"
#include "prepared.h"
#include "signature.h"
#include "text.h"

static const option known[] = {
    {"json", OPTION_FLAG, NULL, offsetof(options, json), "one JSON object"},
    {"all", OPTION_FLAG, NULL, offsetof(options, all), "every row of long lists, and every node"},
    OPTION_PARAMS,
    OPTION_LIB,
    OPTION_MODEL_NAME,
    OPTION_TRUST,
    OPTION_KEY,
    OPTION_HELP,
    OPTION_END};

typedef struct tally {
  char name[512]; /* operator, function or device; TVM keeps its names shorter */
  uint32_t count;
} tally;

typedef struct facts {
  heddle_graph *graph;    /* NULL: it is a library without a model, or a file of parameters */
  heddle_params *params;  /* may be NULL */
  heddle_context *ctx;    /* with a library */
  heddle_module *library; /* may be NULL */
  char params_path[PATH_ROOM];
  tally *ops, *devices; /* most frequent first */
  tally *missing;       /* functions that the library does not have */
  size_t n_ops, n_devices, n_missing;
  uint32_t n_nodes; /* without inputs */
  uint64_t param_bytes;
  json_t *param_names, *input_names; /* sets */
  json_t *prepared;                  /* null: nothing */
} facts;

static bool count(tally **list, size_t *n, const char *domain, const char *name) {
  char full[512];
  snprintf(full, sizeof full, "%s%s%s", domain, domain[0] != '\0' ? "." : "", name);
  for (size_t i = 0; i < *n; i++) {
    if (strcmp((*list)[i].name, full) != 0) continue;
    (*list)[i].count++;
    return true;
  }
  tally *grown = realloc(*list, (*n + 1) * sizeof *grown);
  if (grown == NULL) return false;
  *list = grown;
  memcpy(grown[*n].name, full, sizeof full);
  grown[(*n)++].count = 1;
  return true;
}

static int by_count(const void *a, const void *b) {
  const tally *x = a, *y = b;
  return x->count != y->count ? (x->count < y->count ? 1 : -1) : strcmp(x->name, y->name);
}

static heddle_status count_bytes(facts *f, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; s == HEDDLE_OK && i < heddle_params_count(f->params); i++) {
    heddle_tensor *t = NULL;
    s = heddle_params_tensor(f->params, i, &t, err);
    if (s == HEDDLE_OK) f->param_bytes += heddle_tensor_bytes(t);
    heddle_tensor_release(t);
  }
  return s;
}

/* Those of --params; else those inside of a library; else as load_params_of says. */
static heddle_status load_params(const options *o, facts *f, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  if (o->params == NULL && f->params != NULL) {
    snprintf(f->params_path, sizeof f->params_path, "%s", objects_source(o->model));
  } else {
    heddle_params_release(f->params);
    char path[PATH_ROOM];
    s = load_params_of(o, &f->params, path, err);
    snprintf(f->params_path, sizeof f->params_path, "%s", objects_source(path));
  }
  return s == HEDDLE_OK && f->params != NULL ? count_bytes(f, err) : s;
}

/* Whether a file begins as parameters do that stand alone. */
static bool is_params_file(const char *path) {
  static const unsigned char magic[8] = {0xb7, 0x9c, 0x04, 0x05, 0x4f, 0x8d, 0xe5, 0xf7};
  unsigned char head[sizeof magic] = {0};
  FILE *file = fopen(path, "rb");
  if (file == NULL) return false;
  const bool is_one = fread(head, 1, sizeof head, file) == sizeof head && memcmp(head, magic, sizeof magic) == 0;
  fclose(file);
  return is_one;
}

static heddle_status collect_params(const options *o, facts *f, heddle_error *err) {
  const char *unused = o->lib != NULL          ? "--lib"
                       : o->params != NULL     ? "--params"
                       : o->model_name != NULL ? "--model"
                                               : NULL;
  if (unused != NULL) {
    snprintf(err->text, sizeof err->text, "%s: it holds parameters and no graph; leave out %s", o->model, unused);
    return HEDDLE_EINVAL;
  }
  snprintf(f->params_path, sizeof f->params_path, "%s", o->model);
  heddle_status s = heddle_params_load(o->model, NULL, &f->params, err);
  return s == HEDDLE_OK ? count_bytes(f, err) : s;
}

/* Sets of names, as objects: any bytes may be a key. */
static heddle_status collect_names(facts *f, heddle_error *err) {
  f->param_names = json_object();
  f->input_names = json_object();
  int failed = 0;
  for (uint32_t i = 0; f->params != NULL && i < heddle_params_count(f->params); i++)
    failed |= json_object_set_new_nocheck(f->param_names, heddle_params_name(f->params, i), json_true());
  for (uint32_t i = 0; i < heddle_graph_input_count(f->graph); i++) {
    heddle_value_info v = {.struct_size = sizeof v};
    heddle_status s = heddle_graph_input(f->graph, i, &v, err);
    if (s != HEDDLE_OK) return s;
    failed |= json_object_set_new_nocheck(f->input_names, v.name, json_true());
  }
  return failed == 0 ? HEDDLE_OK : HEDDLE_ENOMEM;
}

/* Where the graph wants a node: the device or the kind of device that it names; "" where it says nothing. */
static const char *wanted(const heddle_node_info *node, char scratch[24]) {
  if (node->device[0] != '\0' || node->device_type == 0) return node->device;
  return device_type_text(node->device_type, scratch);
}

static const char *what_it_runs(const heddle_node_info *node) {
  return strcmp(node->op, "tvm_op") == 0 ? node->func_name : node->op;
}

/* The i-th node, where it is no input. */
static bool node_of(const heddle_graph *g, uint32_t i, heddle_node_info *out) {
  *out = (heddle_node_info){.struct_size = sizeof *out};
  return heddle_graph_node(g, i, out, NULL) == HEDDLE_OK && strcmp(out->op, "null") != 0;
}

/* Of a graph, and of those that its nodes run. */
static heddle_status count_nodes_of(facts *f, const heddle_graph *g) {
  for (uint32_t i = 0; i < heddle_graph_node_count(g); i++) {
    heddle_node_info node;
    char scratch[24];
    const heddle_graph *inner;
    for (uint32_t k = 0; (inner = heddle_graph_inner(g, i, k, NULL)) != NULL; k++)
      if (count_nodes_of(f, inner) != HEDDLE_OK) return HEDDLE_ENOMEM;
    if (!node_of(g, i, &node)) continue;
    f->n_nodes++;
    const char *device = wanted(&node, scratch);
    if (!count(&f->ops, &f->n_ops, node.domain, what_it_runs(&node)) ||
        (device[0] != '\0' && !count(&f->devices, &f->n_devices, "", device)))
      return HEDDLE_ENOMEM;
    bool calls = strcmp(node.op, "tvm_op") == 0 && strncmp(node.func_name, "__", 2) != 0;
    if (f->library != NULL && calls && !library_has(f->library, node.func_name) &&
        !count(&f->missing, &f->n_missing, "", node.func_name))
      return HEDDLE_ENOMEM;
  }
  return HEDDLE_OK;
}

static heddle_status count_nodes(facts *f) {
  if (count_nodes_of(f, f->graph) != HEDDLE_OK) return HEDDLE_ENOMEM;
  if (f->n_ops > 0) qsort(f->ops, f->n_ops, sizeof *f->ops, by_count);
  if (f->n_devices > 0) qsort(f->devices, f->n_devices, sizeof *f->devices, by_count);
  return HEDDLE_OK;
}

/* Options that the kind of file has no use for are errors. */
static heddle_status refuse(const options *o, const facts *f, bool whole, heddle_error *err) {
  const char *why = NULL;
  if (o->lib != NULL && whole) why = "it is a library itself; leave out --lib";
  if (o->model_name != NULL && !whole) why = "it is no library that holds models; leave out --model";
  if (o->params != NULL && whole && f->graph == NULL) why = "it holds no model; leave out --params";
  if (why == NULL) return HEDDLE_OK;
  snprintf(err->text, sizeof err->text, "%s: %s", o->model, why);
  return HEDDLE_EINVAL;
}

static heddle_status collect(const options *o, facts *f, heddle_error *err) {
  if (is_params_file(o->model)) return collect_params(o, f, err);
  bool whole = library_is(o->model);
  heddle_status s = HEDDLE_OK;
  if (!whole) s = heddle_graph_load(o->model, NULL, &f->graph, err);
  else s = library_open(o->model, &f->ctx, &f->library, err);
  if (s == HEDDLE_OK && whole && (o->model_name != NULL || library_models(f->library) > 0))
    s = heddle_model_unpack(f->library, o->model_name, &f->graph, &f->params, err);
  if (s == HEDDLE_OK) s = refuse(o, f, whole, err);
  if (s == HEDDLE_OK && o->lib != NULL) s = library_open(o->lib, &f->ctx, &f->library, err);
  if (s != HEDDLE_OK || f->graph == NULL) return s;
  s = load_params(o, f, err);
  if (s == HEDDLE_OK) s = prepared_read(f->params, &f->prepared, err);
  if (s == HEDDLE_OK) s = collect_names(f, err);
  return s == HEDDLE_OK ? count_nodes(f) : s;
}

static bool is_param(const facts *f, const char *name) {
  return json_object_get(f->param_names, name) != NULL;
}

/* A parameter that the graph has no input for: it is passed over. */
static bool is_unused(const facts *f, uint32_t param) {
  return f->graph != NULL && json_object_get(f->input_names, heddle_params_name(f->params, param)) == NULL;
}

/* ---- JSON */

/* What the numbers of an input or output stand for; NULL: for themselves. */
static const char *stands_for(const facts *f, const char *name) {
  if (f->graph == NULL) return NULL;
  switch (heddle_graph_string_kind(f->graph, name)) {
  case HEDDLE_STRING_TENSOR: return "strings";
  case HEDDLE_STRING_MAPS: return "maps of integers";
  case HEDDLE_STRING_MAPS_OF_TEXTS: return "maps of strings";
  default: return NULL;
  }
}

static json_t *value_object(const facts *f, const heddle_value_info *v) {
  char dtype[32];
  dtype_text(v->dtype, dtype);
  json_t *o = json_pack("{so so so}", "name", json_words(v->name), "dtype",
                        v->dtype.bits != 0 ? json_string(dtype) : json_null(), "shape",
                        json_shape(v->shape, v->ndim, v->symbols));
  const char *words = stands_for(f, v->name);
  if (words != NULL) json_object_set_new(o, "stands_for", json_string(words));
  return o;
}

static json_t *tallies(const tally *list, size_t n) {
  json_t *o = json_object();
  for (size_t i = 0; i < n; i++) json_object_set_new(o, list[i].name, json_integer(list[i].count));
  return o;
}

static json_t *params_object(const facts *f) {
  json_t *list = json_array(), *unused = json_array();
  for (uint32_t i = 0; f->params != NULL && i < heddle_params_count(f->params); i++) {
    heddle_tensor *t = NULL;
    char dtype[32];
    if (is_unused(f, i)) json_array_append_new(unused, json_words(heddle_params_name(f->params, i)));
    if (heddle_params_tensor(f->params, i, &t, NULL) != HEDDLE_OK) continue;
    dtype_text(heddle_tensor_dtype(t), dtype);
    json_array_append_new(list,
                          json_pack("{so ss so sI}", "name", json_words(heddle_params_name(f->params, i)), "dtype",
                                    dtype, "shape", json_shape(heddle_tensor_shape(t), heddle_tensor_ndim(t), NULL),
                                    "bytes", (json_int_t)heddle_tensor_bytes(t)));
    heddle_tensor_release(t);
  }
  return json_pack("{so sI so so}", "file", f->params != NULL ? json_words(f->params_path) : json_null(), "bytes",
                   (json_int_t)f->param_bytes, "tensors", list, "unused", unused);
}

static json_t *nodes_list(const facts *f) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < heddle_graph_node_count(f->graph); i++) {
    heddle_node_info node;
    char scratch[24];
    if (!node_of(f->graph, i, &node)) continue;
    const char *device = wanted(&node, scratch);
    json_array_append_new(list,
                          json_pack("{so so so}", "name", json_words(node.name), "op", json_words(what_it_runs(&node)),
                                    "device", device[0] != '\0' ? json_words(device) : json_null()));
  }
  return list;
}

static json_t *info_object(const options *o, const facts *f) {
  if (f->graph == NULL && f->params != NULL)
    return json_pack("{so so so so}", "model", json_null(), "library", json_null(), "params", params_object(f),
                     "signature", signature_object(o->model));
  if (f->graph == NULL)
    return json_pack("{so so so}", "model", json_null(), "library", library_object(f->library), "signature",
                     signature_object(o->model));
  json_t *inputs = json_array(), *outputs = json_array();
  for (uint32_t i = 0; i < heddle_graph_input_count(f->graph); i++) {
    heddle_value_info v = {.struct_size = sizeof v};
    if (heddle_graph_input(f->graph, i, &v, NULL) == HEDDLE_OK && !is_param(f, v.name))
      json_array_append_new(inputs, value_object(f, &v));
  }
  for (uint32_t i = 0; i < heddle_graph_output_count(f->graph); i++) {
    heddle_value_info v = {.struct_size = sizeof v};
    if (heddle_graph_output(f->graph, i, &v, NULL) == HEDDLE_OK) json_array_append_new(outputs, value_object(f, &v));
  }
  json_t *missing = json_array();
  for (size_t i = 0; i < f->n_missing; i++) json_array_append_new(missing, json_words(f->missing[i].name));
  return json_pack("{so sI so so so so so so so so sO so}", "model", json_words(objects_source(o->model)), "nodes",
                   (json_int_t)f->n_nodes, "inputs", inputs, "outputs", outputs, "operators", tallies(f->ops, f->n_ops),
                   "annotations", tallies(f->devices, f->n_devices), "node_list", nodes_list(f), "missing_functions",
                   missing, "params", params_object(f), "library", library_object(f->library), "prepared", f->prepared,
                   "signature", signature_object(o->model));
}

/* ---- text */

static void print_value(const facts *f, const char *what, const heddle_value_info *v) {
  char dtype[32], shape[200];
  const char *words = stands_for(f, v->name);
  dtype_text(v->dtype, dtype);
  shape_text(v->shape, v->ndim, v->symbols, shape, sizeof shape);
  const bool is_open = v->dtype.bits == 0 && v->ndim == UINT32_MAX; /* known once planned */
  if (is_open && words != NULL) print("%-9s  %s  (%s)\n", what, v->name, words);
  else if (is_open) print("%-9s  %s\n", what, v->name);
  else if (words != NULL) print("%-9s  %s  %s %s  (%s)\n", what, v->name, dtype, shape, words);
  else print("%-9s  %s  %s %s\n", what, v->name, dtype, shape);
}

static void print_tallies(const char *what, const tally *list, size_t n) {
  print("%-9s  ", what);
  for (size_t i = 0; i < n; i++) print("%s%s %" PRIu32, i == 0 ? "" : ", ", list[i].name, list[i].count);
  print("%s\n", n == 0 ? "none" : "");
}

/* Every node where it is asked for, and where the graph is for several kinds of devices. */
static void print_nodes(const options *o, const facts *f) {
  if (!o->all && f->n_devices < 2) return;
  uint32_t shown = 0;
  for (uint32_t i = 0; i < heddle_graph_node_count(f->graph) && shown < rows_shown(f->n_nodes, o->all); i++) {
    heddle_node_info node;
    char scratch[24];
    if (!node_of(f->graph, i, &node)) continue;
    const char *runs = what_it_runs(&node), *device = wanted(&node, scratch);
    print("node       %s", node.name);
    if (strcmp(runs, node.name) != 0) print("  %s", runs);
    if (device[0] != '\0') print("  on %s", device);
    print("\n");
    shown++;
  }
  rows_left_out(f->n_nodes, o->all);
}

static void print_params(const options *o, const facts *f) {
  char bytes[32];
  uint32_t n = f->params != NULL ? heddle_params_count(f->params) : 0;
  bytes_text(f->param_bytes, bytes);
  if (f->params == NULL) {
    print("params     none: no file %s\n", f->params_path);
    return;
  }
  print("params     %" PRIu32 " tensors, %s, in %s\n", n, bytes, f->params_path);
  for (uint32_t i = 0; i < rows_shown(n, o->all); i++) {
    heddle_tensor *t = NULL;
    if (is_unused(f, i) || heddle_params_tensor(f->params, i, &t, NULL) != HEDDLE_OK) continue;
    heddle_value_info v = {.name = heddle_params_name(f->params, i),
                           .shape = heddle_tensor_shape(t),
                           .ndim = heddle_tensor_ndim(t),
                           .dtype = heddle_tensor_dtype(t)};
    print_value(f, "param", &v);
    heddle_tensor_release(t);
  }
  rows_left_out(n, o->all);
  const char *before = "unused     ";
  for (uint32_t i = 0; i < n; i++) {
    if (!is_unused(f, i)) continue;
    print("%s%s", before, heddle_params_name(f->params, i));
    before = ", ";
  }
  if (before[0] == ',') print("\n");
}

static void print_info(const options *o, const facts *f) {
  signature_print(o->model);
  if (f->graph == NULL) {
    if (f->params != NULL) print_params(o, f);
    else library_print(f->library, o->all);
    return;
  }
  print("model      %s: %" PRIu32 " nodes\n", objects_source(o->model), f->n_nodes);
  for (uint32_t i = 0; i < heddle_graph_input_count(f->graph); i++) {
    heddle_value_info v = {.struct_size = sizeof v};
    if (heddle_graph_input(f->graph, i, &v, NULL) == HEDDLE_OK && !is_param(f, v.name)) print_value(f, "input", &v);
  }
  for (uint32_t i = 0; i < heddle_graph_output_count(f->graph); i++) {
    heddle_value_info v = {.struct_size = sizeof v};
    if (heddle_graph_output(f->graph, i, &v, NULL) == HEDDLE_OK) print_value(f, "output", &v);
  }
  print_tallies("operators", f->ops, f->n_ops);
  print_tallies("annotated", f->devices, f->n_devices);
  print_nodes(o, f);
  print_params(o, f);
  prepared_print(f->prepared, o->all);
  library_print(f->library, o->all);
  for (size_t i = 0; i < f->n_missing; i++)
    print("missing    %s: the library has no such function\n", f->missing[i].name);
}

static int info(const options *o) {
  facts f = {0};
  heddle_error err = {0};
  int status = DONE;
  heddle_status s = collect(o, &f, &err);
  if (s == HEDDLE_ENOMEM && err.text[0] == '\0') status = fail_text("info", "out of memory");
  else if (s != HEDDLE_OK) {
    if (!o->json && signature_says(o->model, HEDDLE_SIGNATURE_ENCRYPTED)) signature_print(o->model);
    status = fail("info", &err);
  } else if (o->json) status = print_json("info", info_object(o, &f));
  else print_info(o, &f);
  heddle_module_release(f.library);
  heddle_context_release(f.ctx);
  heddle_params_release(f.params);
  heddle_graph_release(f.graph);
  json_decref(f.prepared);
  json_decref(f.param_names);
  json_decref(f.input_names);
  free(f.ops);
  free(f.devices);
  free(f.missing);
  return status;
}

const command info_command = {
    "info",
    "inputs, outputs, operators, parameters and sizes of a model; functions of a library",
    "Says what a model and its parameters hold, a file of parameters alone, or a compiled library, with a\n"
    "model in it or without. No device is needed; the devices of a package that was prepared for some are\n"
    "compared with those that are here. An input whose name is among the parameters is not listed as an\n"
    "input; parameters that the graph has no input for are passed over, and listed as unused.",
    known,
    true,
    info};
