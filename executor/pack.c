/* executor/pack.c: the public calls about packed files: what is asked for is read and checked here. Libraries are written by
 * libheddle_tvm, graphs of operators by graph/package_write.c. */
#include "heddle/pack.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/parts.h"
#include "core/sealed.h"
#include "core/whole_file.h"
#include "executor/pack_sign.h"
#include "executor/prepare.h"
#include "graph/frontend.h"
#include "graph/package.h"
#include "graph/verified.h"
#include "modules/module.h"

#define MOST_GRAPH (UINT64_C(1) << 30)

/* The caller's struct, whatever its age; members beyond its struct_size are zero. */
static bool take_struct(void *out, const void *given, size_t size) {
  size_t bytes = 0;
  if (given == NULL) return false;
  memcpy(&bytes, given, sizeof bytes);
  if (bytes < sizeof bytes) return false;
  memset(out, 0, size);
  memcpy(out, given, bytes < size ? bytes : size);
  return true;
}

/* The text of a graph in a file: a file of its own, or a packed graph's; freed with heddle__free. */
static heddle_status read_text(const heddle__sealed *file, void **text, size_t *bytes, heddle_error *err) {
  if (!heddle__is_package(file->use)) return heddle__file_read(file->use, MOST_GRAPH, text, bytes, err);
  char *found = NULL;
  heddle_status s = heddle__package_text(file->use, MOST_GRAPH, &found, bytes, err);
  *text = found;
  return s;
}

/* *text: what was read of a file, freed with heddle__free. */
static heddle_status take_graph(const heddle_pack_model *m, heddle__pack_part *out, void **text, heddle_error *err) {
  heddle_graph *graph = NULL;
  heddle_status s = HEDDLE_OK;
  out->graph = m->graph;
  out->graph_bytes = m->graph_bytes;
  if (m->graph_path != NULL) {
    heddle__sealed file;
    s = heddle__sealed_open(m->graph_path, NULL, heddle__sealed_most(MOST_GRAPH), &file, err);
    if (s != HEDDLE_OK) return s;
    s = heddle__sealed_failed(&file, read_text(&file, text, &out->graph_bytes, err), err);
    heddle__sealed_close(&file);
    out->graph = *text;
  }
  if (s != HEDDLE_OK) return s;
  if (out->graph == NULL) return heddle__fail(err, HEDDLE_EINVAL, "a model to be packed has no graph");
  /* What is packed can be loaded. */
  if (m->graph_path == NULL) s = heddle_graph_parse(out->graph, out->graph_bytes, out->name, NULL, &graph, err);
  else s = heddle__graph_parse(out->graph, out->graph_bytes, m->graph_path, NULL, &graph, err);
  heddle_graph_release(graph);
  return s;
}

/* The parameters in a file: those that are named, or of a packed graph its own; *out NULL: no file has any. */
static heddle_status read_params(const heddle_pack_model *m, heddle_params **out, heddle_error *err) {
  const char *path = m->params_path;
  *out = NULL;
  if (path == NULL && m->params == NULL && m->graph_path != NULL) {
    heddle__sealed file;
    heddle_status s = heddle__sealed_open(m->graph_path, NULL, UINT64_MAX, &file, err);
    if (s != HEDDLE_OK) return s;
    if (heddle__is_package(file.use)) path = m->graph_path;
    heddle__sealed_close(&file);
  }
  return path != NULL ? heddle_params_load(path, NULL, out, err) : HEDDLE_OK;
}

static heddle_status take_params(const heddle_pack_model *m, heddle__pack_part *out, heddle_error *err) {
  heddle_params *read = NULL;
  heddle_status s = read_params(m, &read, err);
  const heddle_params *params = read != NULL ? read : m->params;
  if (s == HEDDLE_OK && params != NULL) s = heddle_params_bytes(params, &out->params, &out->params_bytes, err);
  heddle_params_release(read);
  return s;
}

static heddle_status take_model(const heddle_pack_model *given, bool no_params, heddle__pack_part *out, void **text,
                                heddle_error *err) {
  heddle_pack_model m;
  if (!take_struct(&m, given, sizeof m))
    return heddle__fail(err, HEDDLE_EINVAL, "a model to be packed is NULL or lacks its struct_size");
  out->name = m.name != NULL ? m.name : "default";
  if (out->name[0] == '\0') return heddle__fail(err, HEDDLE_EINVAL, "a model to be packed has an empty name");
  heddle_status s = take_graph(&m, out, text, err);
  return s == HEDDLE_OK && !no_params ? take_params(&m, out, err) : s;
}

static heddle_status open_packing(const heddle__tvm_table **out, heddle_error *err) {
  heddle_status s = heddle__check_fork(err);
  if (s == HEDDLE_OK) s = heddle__tvm_open(out, err);
  if (s == HEDDLE_OK && (*out)->pack == NULL) return heddle__left_out(err, "packing of models", "HEDDLE_PACK");
  return s;
}

static heddle_status check(const char *path, const heddle_pack_options *o, heddle_error *err) {
  if (path == NULL || path[0] == '\0') return heddle__fail(err, HEDDLE_EINVAL, "a packed file needs a path");
  if ((o->n_libraries > 0 && o->libraries == NULL) || (o->n_models > 0 && o->models == NULL) ||
      (o->n_imports > 0 && o->imports == NULL) || (o->n_targets > 0 && o->targets == NULL) ||
      (o->n_dims > 0 && o->dims == NULL))
    return heddle__fail(err, HEDDLE_EINVAL, "a list of what is to be packed is NULL");
  if ((o->flags & ~(uint32_t)(HEDDLE_PACK_NO_PARAMS | HEDDLE_PACK_NO_MODELS)) != 0)
    return heddle__fail(err, HEDDLE_EINVAL, "unknown flags of packing: %x", (unsigned)o->flags);
  if (o->n_libraries == 0 && (o->n_models != 1 || o->n_imports > 0))
    return heddle__fail(err, HEDDLE_EINVAL, "without a library one graph of operators is packed, and nothing else");
  if (o->n_targets > 0 && o->n_libraries > 0)
    return heddle__fail(err, HEDDLE_EINVAL,
                        "what is prepared for devices goes with a graph of operators, without a library");
  if (o->n_dims > 0 && o->n_targets == 0)
    return heddle__fail(err, HEDDLE_EINVAL, "numbers for dimensions go with devices that are prepared for");
  if (o->memory != NULL && o->n_targets == 0)
    return heddle__fail(err, HEDDLE_EINVAL, "limits on memory go with devices that are prepared for");
  for (size_t i = 0; i < o->n_targets; i++)
    if (o->targets[i] == NULL || o->targets[i][0] == '\0')
      return heddle__fail(err, HEDDLE_EINVAL, "a list of devices to prepare for is empty");
  for (size_t i = 0; i < o->n_libraries; i++)
    if (o->libraries[i] == NULL) return heddle__fail(err, HEDDLE_EINVAL, "library %u is NULL", (unsigned)i);
  for (size_t i = 0; i < o->n_imports; i++) {
    const heddle_pack_import *m = o->imports[i];
    if (m == NULL || m->struct_size < sizeof *m || m->kind == NULL || (m->bytes > 0 && m->data == NULL))
      return heddle__fail(err, HEDDLE_EINVAL, "import %u lacks its kind, its data or its struct_size", (unsigned)i);
    if (strcmp(m->kind, "_lib") == 0 || strcmp(m->kind, "_import_tree") == 0)
      return heddle__fail(err, HEDDLE_EINVAL, "import %u: no module is of kind %s", (unsigned)i, m->kind);
  }
  return HEDDLE_OK;
}

/* A graph of operators: its text as it is, or of an ONNX model what it is read as. */
static heddle_status pack_graph(const char *path, const heddle_pack_options *o, heddle_error *err) {
  const heddle_pack_model *given = o->models[0];
  const bool no_params = (o->flags & HEDDLE_PACK_NO_PARAMS) != 0;
  heddle_pack_model m;
  heddle__pack_part part = {.name = "graph"};
  heddle_graph *graph = NULL;
  heddle_params *read = NULL;
  void *text = NULL;
  char *made = NULL;
  if (!take_struct(&m, given, sizeof m))
    return heddle__fail(err, HEDDLE_EINVAL, "a model to be packed is NULL or lacks its struct_size");
  if (m.name != NULL) return heddle__fail(err, HEDDLE_EINVAL, "a graph that is packed without a library has no name");
  bool is_onnx = m.graph_path != NULL && heddle__is_onnx(m.graph_path);
  heddle_status s;
  if (is_onnx) {
    bool inside = !no_params && m.params_path == NULL && m.params == NULL;
    s = heddle__onnx_load(m.graph_path, NULL, NULL, &graph, inside ? &read : NULL, err);
    if (s == HEDDLE_OK) s = heddle_graph_text(graph, &made, &part.graph_bytes, err);
    part.graph = made;
  } else {
    s = take_graph(&m, &part, &text, err);
  }
  if (s == HEDDLE_OK && !no_params && read == NULL) s = read_params(&m, &read, err);
  const heddle_params *params = no_params ? NULL : read != NULL ? read : m.params;
  if (s == HEDDLE_OK && o->n_targets > 0) s = heddle__prepare(path, part.graph, part.graph_bytes, params, o, err);
  else if (s == HEDDLE_OK) s = heddle__package_write(path, part.graph, part.graph_bytes, params, NULL, err);
  heddle_params_release(read);
  heddle_graph_release(graph);
  heddle__free(text);
  heddle_free(made);
  return s;
}

heddle_status heddle_pack(const char *path, const heddle_pack_options *options, heddle_error *err) {
  const heddle__tvm_table *t = NULL;
  heddle_pack_options o;
  if (!take_struct(&o, options, sizeof o))
    return heddle__fail(err, HEDDLE_EINVAL, "the options of packing are NULL or lack their struct_size");
  if (o.sign != NULL) return heddle__pack_signed(path, &o, err);
  heddle_status s = check(path, &o, err);
  if (s == HEDDLE_OK && o.n_libraries == 0) return pack_graph(path, &o, err);
  if (s == HEDDLE_OK) s = open_packing(&t, err);
  if (s != HEDDLE_OK) return s;
  heddle__pack_part *models = heddle__alloc(o.n_models, sizeof *models);
  void **texts = heddle__alloc(o.n_models, sizeof *texts);
  bool no_params = (o.flags & HEDDLE_PACK_NO_PARAMS) != 0;
  if (models == NULL || texts == NULL) s = heddle__no_memory(err, "models to be packed");
  for (size_t i = 0; i < o.n_models && s == HEDDLE_OK; i++)
    s = take_model(o.models[i], no_params, &models[i], &texts[i], err);
  const heddle__pack_request r = {.path = path,
                                  .libraries = o.libraries,
                                  .n_libraries = o.n_libraries,
                                  .models = models,
                                  .n_models = o.n_models,
                                  .imports = o.imports,
                                  .n_imports = o.n_imports,
                                  .no_params = no_params,
                                  .no_models = (o.flags & HEDDLE_PACK_NO_MODELS) != 0,
                                  .compiler = o.compiler};
  if (s == HEDDLE_OK) s = t->pack(&r, err);
  for (size_t i = 0; i < o.n_models && models != NULL && texts != NULL; i++) {
    heddle_free(models[i].params);
    heddle__free(texts[i]);
  }
  heddle__free(models);
  heddle__free((void *)texts);
  return s;
}

/* A graph of operators: default.json, default.params. */
static heddle_status unpack_graph(const heddle__sealed *file, const char *folder, heddle_error *err) {
  heddle_params *params = NULL;
  char *text = NULL, *graph_path = heddle__format("%s/default.json", folder);
  char *params_path = heddle__format("%s/default.params", folder);
  size_t bytes = 0;
  heddle_status s = graph_path && params_path ? HEDDLE_OK : heddle__no_memory(err, "a path");
  if (s == HEDDLE_OK) s = heddle__package_text(file->use, MOST_GRAPH, &text, &bytes, err);
  if (s == HEDDLE_OK) s = heddle__params_load(file, NULL, &params, err);
  if (s == HEDDLE_OK && mkdir(folder, 0777) != 0 && errno != EEXIST)
    s = heddle__fail(err, HEDDLE_EIO, "the folder %.400s could not be made: %s", folder, strerror(errno));
  if (s == HEDDLE_OK) s = heddle_params_save(params, params_path, err);
  if (s == HEDDLE_OK) s = heddle__file_write(graph_path, text, bytes, err);
  heddle_params_release(params);
  heddle__free(text);
  heddle__free(graph_path);
  heddle__free(params_path);
  return s;
}

static bool begins_as_library(const char *path) {
  unsigned char head[4];
  FILE *file = fopen(path, "rbe");
  const size_t n = file != NULL ? fread(head, 1, sizeof head, file) : 0;
  if (file != NULL) fclose(file);
  return file == NULL || heddle__is_elf(head, n);
}

heddle_status heddle_unpack(const char *path, const char *folder, heddle_error *err) {
  const heddle__tvm_table *t = NULL;
  if (path == NULL || folder == NULL || folder[0] == '\0')
    return heddle__fail(err, HEDDLE_EINVAL, "unpacking needs a file and a folder");
  heddle__sealed file;
  heddle_status s = heddle__sealed_open(path, NULL, UINT64_MAX, &file, err);
  if (s != HEDDLE_OK) return s;
  if (heddle__is_package(file.use)) {
    s = unpack_graph(&file, folder, err);
  } else if (!begins_as_library(file.use)) {
    s = heddle__fail(err, HEDDLE_EFORMAT, "%s: it is neither a package nor a library, and holds nothing to unpack",
                     path);
  } else {
    s = open_packing(&t, err);
    if (s == HEDDLE_OK) s = heddle__sealed_failed(&file, t->unpack(file.use, folder, err), err);
  }
  heddle__sealed_close(&file);
  return s;
}
