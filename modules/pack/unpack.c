/* modules/pack/unpack.c: writes what a packed library holds to files. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/whole_file.h"
#include "modules/pack/elf_file.h"
#include "modules/pack/pack.h"
#include "modules/tvm/loaders.h"
#include "modules/tvm/model.h"

/* FOLDER/NAMEsuffix, freed with heddle__free. A name comes from the file: it must stay in the folder. */
static heddle_status path_of(const char *folder, const char *name, const char *suffix, char **out, heddle_error *err) {
  size_t room = strlen(folder) + strlen(name) + strlen(suffix) + 2;
  *out = NULL;
  if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL)
    return heddle__fail(err, HEDDLE_EFORMAT, "its model '%.100s' has a name that is no file's", name);
  *out = heddle__alloc(room, 1);
  if (*out == NULL) return heddle__no_memory(err, "a path");
  snprintf(*out, room, "%s/%s%s", folder, name, suffix);
  return HEDDLE_OK;
}

static heddle_status write_model(const heddle__submodule *m, const char *folder, heddle_error *err) {
  char *graph_path = NULL, *params_path = NULL;
  void *params = NULL;
  size_t bytes = 0;
  heddle_status s = path_of(folder, m->model_name, ".json", &graph_path, err);
  if (s == HEDDLE_OK) s = path_of(folder, m->model_name, ".params", &params_path, err);
  if (s == HEDDLE_OK) s = heddle__submodule_params(m, &params, &bytes, err);
  if (s == HEDDLE_OK) s = heddle__file_write(params_path, params, bytes, err);
  if (s == HEDDLE_OK) s = heddle__file_write(graph_path, m->graph.data, (size_t)m->graph.bytes, err);
  heddle__free(params);
  heddle__free(graph_path);
  heddle__free(params_path);
  return s;
}

static heddle_status write_models(const heddle__blob *b, const char *folder, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  uint32_t n = 0;
  for (uint32_t i = 0; i < b->n_modules; i++) n += b->modules[i].graph.data != NULL;
  if (n == 0) return heddle__fail(err, HEDDLE_ENOTFOUND, "it holds no model");
  if (mkdir(folder, 0777) != 0 && errno != EEXIST)
    return heddle__fail(err, HEDDLE_EIO, "the folder %.400s could not be made: %s", folder, strerror(errno));
  for (uint32_t i = 0; i < b->n_modules && s == HEDDLE_OK; i++)
    if (b->modules[i].graph.data != NULL) s = write_model(&b->modules[i], folder, err);
  return s;
}

heddle_status heddle__unpack(const char *path, const char *folder, heddle_error *err) {
  void *image = NULL;
  size_t bytes = 0;
  heddle__elf_file f = {.elf = NULL};
  heddle__blob blob = {.n_modules = 0};
  heddle__span span = {NULL, 0};
  heddle__blob_layout layout;
  const char *symbol;
  char *library = NULL;
  heddle_status s = heddle__file_read(path, UINT64_C(1) << 36, &image, &bytes, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__elf_read(image, bytes, false, &f, err);
  if (s == HEDDLE_OK) s = heddle__elf_blob(&f, &span, &layout, &symbol, err);
  if (s == HEDDLE_OK && span.data != NULL)
    s = heddle__blob_read(span.data, span.bytes, layout, &heddle__loaders, &blob, err);
  if (s == HEDDLE_OK) s = write_models(&blob, folder, err);
  if (s != HEDDLE_OK) heddle__prefix(err, s, "%s: ", path);
  heddle__blob_finish(&blob);
  heddle__elf_finish(&f);
  heddle__free(image);
  if (s == HEDDLE_OK) s = path_of(folder, "lib", ".so", &library, err);
  const heddle__pack_request r = {.path = library, .libraries = &path, .n_libraries = 1, .no_models = true};
  if (s == HEDDLE_OK) s = heddle__pack(&r, err);
  heddle__free(library);
  return s;
}
