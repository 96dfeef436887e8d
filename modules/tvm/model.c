/* modules/tvm/model.c: a model that is inside of a library: its graph, and its parameters as the blob that params files
 * hold, which differs from what is in the library only in its first bytes and in where a count stands. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "modules/tvm/library.h"
#include "modules/tvm/model.h"

#define LIST_MAGIC UINT64_C(0xF7E58D4F05049CB7)

/* Without a name the root, or where that is no model the first one that it imports. */
static const heddle__submodule *first(const heddle__tvm_library *l) {
  const heddle__blob *b = &l->blob;
  if (b->n_modules > 0 && b->modules[b->root].graph.data != NULL) return &b->modules[b->root];
  for (uint32_t i = 0; i < l->n_imports; i++)
    if (b->modules[l->order[i]].graph.data != NULL) return &b->modules[l->order[i]];
  return NULL;
}

static const heddle__submodule *find_submodule(const heddle__tvm_library *l, const char *name, heddle_error *err) {
  char list[300] = "";
  size_t used = 0;
  if (name == NULL && first(l) != NULL) return first(l);
  for (uint32_t i = 0; i < l->blob.n_modules; i++) {
    const heddle__submodule *m = &l->blob.modules[i];
    if (m->graph.data == NULL) continue;
    if (name != NULL && strcmp(m->model_name, name) == 0) return m;
    int n = snprintf(list + used, sizeof list - used, "%s%s", used > 0 ? ", " : "", m->model_name);
    if (n > 0 && used + (size_t)n < sizeof list) used += (size_t)n;
  }
  if (used == 0)
    heddle__fail(err, HEDDLE_ENOTFOUND, "%s holds no model: give its graph and name it as the library", l->path);
  else heddle__fail(err, HEDDLE_ENOTFOUND, "%s holds no model '%.100s'; it holds %s", l->path, name, list);
  return NULL;
}

static unsigned char *put_u64(unsigned char *at, uint64_t value) {
  for (int i = 0; i < 8; i++) *at++ = (unsigned char)(value >> (8 * i));
  return at;
}

heddle_status heddle__submodule_params(const heddle__submodule *m, void **out, size_t *bytes, heddle_error *err) {
  *bytes = 16 + (size_t)m->names.bytes + 8 + (size_t)m->arrays.bytes;
  unsigned char *blob = heddle__alloc(*bytes, 1), *at = blob;
  *out = blob;
  if (blob == NULL) return heddle__no_memory(err, "the parameters of a model");
  at = put_u64(put_u64(at, LIST_MAGIC), 0);
  memcpy(at, m->names.data, (size_t)m->names.bytes);
  at = put_u64(at + m->names.bytes, m->n_arrays);
  if (m->arrays.bytes > 0) memcpy(at, m->arrays.data, (size_t)m->arrays.bytes);
  return HEDDLE_OK;
}

heddle_status heddle__library_model(const heddle__tvm_library *l, const char *name, const char **graph,
                                    size_t *graph_bytes, void **params, size_t *params_bytes, heddle_error *err) {
  const heddle__submodule *m = find_submodule(l, name, err);
  if (m == NULL) return HEDDLE_ENOTFOUND;
  *graph = (const char *)m->graph.data;
  *graph_bytes = (size_t)m->graph.bytes;
  return heddle__submodule_params(m, params, params_bytes, err);
}
