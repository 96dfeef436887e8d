/* executor/load.c: models from files: a graph with its parameters beside it, an ONNX model, or a library that holds all
 * of a model; and models in memory. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"
#include "executor/model.h"
#include "graph/file.h"
#include "graph/frontend.h"
#include "graph/package.h"
#include "graph/verified.h"
#include "modules/module.h"

/* "DIR/x.params" for "DIR/x.json", where there is such a file; *out is NULL otherwise. */
static heddle_status params_beside(const char *graph_path, char **out, heddle_error *err) {
  *out = NULL;
  size_t n = strlen(graph_path);
  if (n < 5 || strcmp(graph_path + n - 5, ".json") != 0) return HEDDLE_OK;
  char *path = heddle__format("%.*s.params", (int)(n - 5), graph_path);
  if (path == NULL) return heddle__no_memory(err, "the path of a model's params");
  if (access(path, F_OK) != 0) {
    heddle__free(path);
    path = NULL;
  }
  *out = path;
  return HEDDLE_OK;
}

/* The limits of a reader as the context's settings have them. */
static heddle_status limits_of(heddle_context *ctx, const char *key, heddle_read_limits *out, heddle_error *err) {
  int64_t bytes = 0;
  heddle_status s = heddle__context_number(ctx, key, 0, 0, INT64_MAX, &bytes, err);
  *out = (heddle_read_limits){.struct_size = sizeof *out, .max_bytes = (uint64_t)bytes};
  return s;
}

/* Whether a file begins as a shared library does; a file that cannot be read is left to the graph's reader. */
static bool is_library(const char *path) {
  char head[4] = "";
  FILE *file = fopen(path, "rb");
  if (file == NULL) return false;
  size_t n = fread(head, 1, sizeof head, file);
  fclose(file);
  return n == sizeof head && memcmp(head, "\177ELF", 4) == 0;
}

heddle_status heddle_model_unpack(const heddle_module *library, const char *name, heddle_graph **graph,
                                  heddle_params **params, heddle_error *err) {
  if (library == NULL || graph == NULL || params == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "a model's graph and params need a library and a place for each");
  *graph = NULL;
  *params = NULL;
  const char *text = NULL;
  void *blob = NULL;
  size_t bytes = 0, blob_bytes = 0;
  heddle_module_info info = {.struct_size = sizeof info};
  heddle_read_limits limits;
  heddle_status s = library->t->model(library->library, name, &text, &bytes, &blob, &blob_bytes, err);
  if (s == HEDDLE_OK) s = heddle_module_get_info(library, &info, err);
  if (s == HEDDLE_OK) s = limits_of(library->ctx, "limit.graph_bytes", &limits, err);
  if (s == HEDDLE_OK) s = heddle__graph_parse(text, bytes, info.path, &limits, graph, err);
  if (s == HEDDLE_OK) s = limits_of(library->ctx, "limit.params_bytes", &limits, err);
  if (s == HEDDLE_OK) s = heddle__params_parse(blob, blob_bytes, info.path, &limits, params, err);
  heddle__free(blob);
  if (s != HEDDLE_OK) {
    heddle_graph_release(*graph);
    *graph = NULL;
  }
  return s;
}

/* Limits and access of the readers of a model's files. */
typedef struct manner {
  heddle_read_limits graph, params;
  heddle__file_access access;
} manner;

static heddle_status manner_of(heddle_context *ctx, const heddle_model_options *o, manner *m, heddle_error *err) {
  heddle_status s = heddle__trust_given(o->trust, err);
  if (s != HEDDLE_OK) return s;
  m->access = heddle__access_of(ctx, o->trust, o->key);
  s = limits_of(ctx, "limit.graph_bytes", &m->graph, err);
  if (s == HEDDLE_OK) s = limits_of(ctx, "limit.params_bytes", &m->params, err);
  m->graph.trust = m->params.trust = m->access.trust;
  m->graph.key = m->params.key = m->access.key;
  return s;
}

/* All of a model from a library, which is taken over; params_path, where there is one, in place of the parameters
 * inside. */
static heddle_status load_library(heddle_context *ctx, heddle__sealed *file, const char *params_path, const manner *m,
                                  heddle_model_options *o, heddle_model **out, heddle_error *err) {
  heddle_graph *graph = NULL;
  heddle_params *inside = NULL, *beside = NULL;
  if (o->library != NULL) {
    heddle__sealed_close(file);
    return heddle__fail(err, HEDDLE_EINVAL, "%s: it is a library that holds a model, and another library is given",
                        file->name);
  }
  heddle_status s = heddle__module_load(ctx, file, &o->library, err);
  if (s == HEDDLE_OK) s = heddle_model_unpack(o->library, o->model_name, &graph, &inside, err);
  if (s == HEDDLE_OK && params_path != NULL) s = heddle_params_load(params_path, &m->params, &beside, err);
  if (s == HEDDLE_OK) s = heddle_model_create(ctx, graph, beside != NULL ? beside : inside, o, out, err);
  heddle_params_release(beside);
  heddle_params_release(inside);
  heddle_graph_release(graph);
  heddle_module_release(o->library);
  return s;
}

/* A graph's file, which may hold its parameters too. */
static heddle_status load_graph(const heddle__sealed *file, const char *params_path, const manner *m,
                                heddle_graph **graph, heddle_params **params, heddle_error *err) {
  char *beside = NULL;
  heddle_status s = heddle__graph_load(file, &m->graph, graph, err);
  if (s != HEDDLE_OK || params_path != NULL) return s;
  if (heddle__is_package(file->use)) return heddle__params_load(file, &m->params, params, err);
  s = params_beside(file->name, &beside, err);
  if (s == HEDDLE_OK && beside != NULL) s = heddle_params_load(beside, &m->params, params, err);
  heddle__free(beside);
  return s;
}

heddle_status heddle_model_load(heddle_context *ctx, const char *graph_path, const char *params_path,
                                const heddle_model_options *options, heddle_model **out, heddle_error *err) {
  if (out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "there is no place for the model: out is NULL");
  *out = NULL;
  if (ctx == NULL || graph_path == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "a model needs a context and the path of a graph");
  heddle_model_options o = {.struct_size = sizeof o};
  if (options != NULL) memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  o.struct_size = sizeof o;
  heddle_graph *graph = NULL;
  heddle_params *params = NULL;
  heddle__sealed file = {.file = -1};
  manner m;
  const bool is_onnx = heddle__is_onnx(graph_path);
  heddle_status s = manner_of(ctx, &o, &m, err);
  if (s == HEDDLE_OK && o.library != NULL) s = heddle__module_trusted(o.library, m.access.trust, err);
  o.trust = o.key = NULL; /* they are done with here */
  if (s == HEDDLE_OK && !is_onnx)
    s = heddle__sealed_open(graph_path, &m.access, heddle__sealed_most(m.params.max_bytes), &file, err);
  if (s != HEDDLE_OK) return s;
  if (!is_onnx && is_library(file.use)) return load_library(ctx, &file, params_path, &m, &o, out, err);
  s = is_onnx ? heddle__onnx_load(graph_path, &m.graph, &m.params, &graph, &params, err)
              : load_graph(&file, params_path, &m, &graph, &params, err);
  if (s == HEDDLE_OK && params_path != NULL) {
    heddle_params_release(params); /* of an ONNX model: these take their place */
    params = NULL;
    s = heddle_params_load(params_path, &m.params, &params, err);
  }
  if (s == HEDDLE_OK) s = heddle_model_create(ctx, graph, params, &o, out, err);
  heddle__sealed_close(&file);
  heddle_params_release(params);
  heddle_graph_release(graph);
  return s;
}

/* Whether bytes are JSON text of an object: no ONNX model begins so, a group of fields being no part of one. */
static bool is_json(const char *data, size_t bytes) {
  size_t i = 0;
  while (i < bytes && (data[i] == ' ' || data[i] == '\n' || data[i] == '\r' || data[i] == '\t')) i++;
  return i < bytes && data[i] == '{';
}

/* A model's bytes in memory: the caller's, or what was verified of them. */
typedef struct opened {
  heddle_model_options options;
  manner m;
  heddle__sealed file; /* is_copy */
  bool is_copy;
  const void *data;
  size_t bytes;
} opened;

/* close_memory follows, also where this fails. */
static heddle_status open_memory(heddle_context *ctx, const void *data, size_t bytes, const char *name,
                                 const heddle_model_options *options, opened *o, heddle_error *err) {
  *o = (opened){.options = {.struct_size = sizeof o->options}, .file = {.file = -1}};
  if (options != NULL)
    memcpy(&o->options, options, options->struct_size < sizeof o->options ? options->struct_size : sizeof o->options);
  o->options.struct_size = sizeof o->options;
  heddle_status s = manner_of(ctx, &o->options, &o->m, err);
  if (s == HEDDLE_OK && o->options.library != NULL)
    s = heddle__module_trusted(o->options.library, o->m.access.trust, err);
  o->options.trust = o->options.key = NULL; /* they are done with here */
  if (s == HEDDLE_OK) s = heddle__sealed_bytes(data, bytes, name, &o->m.access, &o->is_copy, &o->file, err);
  if (s == HEDDLE_OK && o->is_copy) return heddle__sealed_map(&o->file, &o->data, &o->bytes, err);
  o->data = data;
  o->bytes = bytes;
  return s;
}

static void close_memory(opened *o) {
  if (!o->is_copy) return;
  heddle__sealed_unmap(o->data, o->bytes);
  heddle__sealed_close(&o->file);
}

heddle_status heddle_model_parse(heddle_context *ctx, const void *data, size_t bytes, const char *folder,
                                 const heddle_model_options *options, heddle_model **out, heddle_error *err) {
  if (out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "there is no place for the model: out is NULL");
  *out = NULL;
  if (ctx == NULL || data == NULL || bytes == 0)
    return heddle__fail(err, HEDDLE_EINVAL, "a model in memory needs a context and bytes");
  if (bytes >= 4 && memcmp(data, "\177ELF", 4) == 0)
    return heddle__fail(err, HEDDLE_EUNSUPPORTED, "model: a library is loaded from a file, not from memory");
  heddle_graph *graph = NULL;
  heddle_params *params = NULL;
  opened o;
  char *place = folder != NULL ? heddle__format("%s/", folder[0] != '\0' ? folder : ".") : NULL;
  if (folder != NULL && place == NULL) return heddle__no_memory(err, "the folder of a model");
  heddle_status s = open_memory(ctx, data, bytes, "model", options, &o, err);
  if (s == HEDDLE_OK && is_json(o.data, o.bytes))
    s = heddle__graph_parse(o.data, o.bytes, "model", &o.m.graph, &graph, err);
  else if (s == HEDDLE_OK)
    s = heddle__onnx_load_bytes(o.data, o.bytes, "model", place, &o.m.graph, &o.m.params, &graph, &params, err);
  if (s == HEDDLE_OK) s = heddle_model_create(ctx, graph, params, &o.options, out, err);
  close_memory(&o);
  heddle__free(place);
  heddle_params_release(params);
  heddle_graph_release(graph);
  return s;
}

heddle_status heddle_model_load_memory(heddle_context *ctx, const void *data, size_t bytes, const char *name,
                                       const heddle_model_options *options, heddle_model **out, heddle_error *err) {
  if (out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "there is no place for the model: out is NULL");
  *out = NULL;
  if (ctx == NULL || data == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "a model needs a context and the bytes of a package");
  if (name == NULL) name = "memory";
  heddle_graph *graph = NULL;
  heddle_params *params = NULL;
  const char *text = NULL;
  size_t text_bytes = 0;
  opened o;
  heddle_status s = open_memory(ctx, data, bytes, name, options, &o, err);
  if (s == HEDDLE_OK && o.is_copy && !heddle__is_package(o.file.use))
    s = heddle__fail(err, HEDDLE_EFORMAT, "%s: it is no packed graph of operators", name);
  if (s == HEDDLE_OK && o.is_copy) {
    s = load_graph(&o.file, NULL, &o.m, &graph, &params, err);
  } else if (s == HEDDLE_OK) {
    heddle_read_limits of_params;
    heddle__params_limits(&o.m.params, &of_params);
    s = heddle__package_memory(data, bytes, name, of_params.max_bytes, &text, &text_bytes, &params, err);
    if (s == HEDDLE_OK) s = heddle__graph_parse(text, text_bytes, name, &o.m.graph, &graph, err);
  }
  if (s == HEDDLE_OK) s = heddle_model_create(ctx, graph, params, &o.options, out, err);
  close_memory(&o);
  heddle_params_release(params);
  heddle_graph_release(graph);
  return s;
}
