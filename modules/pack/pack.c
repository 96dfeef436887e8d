/* modules/pack/pack.c: packs models and libraries into one library: reads what is given, merges it, writes the file. */
#include "modules/pack/pack.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/whole_file.h"
#include "modules/pack/elf_write.h"
#include "modules/pack/objects.h"
#include "modules/pack/tree.h"
#include "modules/tvm/loaders.h"

#define MOST_BYTES (UINT64_C(1) << 36)

/* A library that was read: its bytes, its sections, the modules in it. */
typedef struct part {
  void *image;
  size_t bytes;
  heddle__elf_file elf;
  heddle__blob blob;
} part;

typedef struct packing {
  const heddle__pack_request *r;
  heddle__tree tree;
  part *parts; /* one for each library, and one for what objects are linked to */
  size_t n_parts;
  heddle__blob *object_blobs;
  heddle__objects objects;
  part *code; /* whose code it is: the one that has functions, else the first */
  heddle__blob_layout layout;
  const char *symbol;
  bool has_layout;
} packing;

/* All libraries are of one generation, since a blob is laid out in one way. */
static heddle_status agree(packing *p, heddle__blob_layout layout, const char *name, heddle_error *err) {
  if (p->has_layout && p->layout != layout)
    return heddle__fail(err, HEDDLE_EINVAL, "%s: it is of another generation of TVM than the libraries before it",
                        name);
  p->has_layout = true;
  p->layout = layout;
  return HEDDLE_OK;
}

static heddle_status read_blob(packing *p, heddle__span span, heddle__blob_layout layout, heddle__blob *out,
                               heddle_error *err) {
  heddle_status s = heddle__blob_read(span.data, span.bytes, layout, &heddle__loaders, out, err);
  heddle__keep keep = p->r->no_models   ? HEDDLE__KEEP_NO_MODELS
                      : p->r->no_params ? HEDDLE__KEEP_NO_PARAMS
                                        : HEDDLE__KEEP_ALL;
  return s == HEDDLE_OK ? heddle__tree_merge(&p->tree, out, keep, err) : s;
}

/* A library whose image is read. */
static heddle_status take_library(packing *p, part *one, const char *name, heddle_error *err) {
  heddle__span span;
  heddle__blob_layout layout;
  const char *symbol;
  heddle_status s = heddle__elf_read(one->image, one->bytes, false, &one->elf, err);
  if (s == HEDDLE_OK) s = heddle__elf_blob(&one->elf, &span, &layout, &symbol, err);
  bool runs = s == HEDDLE_OK && heddle__elf_has_functions(&one->elf);
  if (s == HEDDLE_OK && (runs || span.data != NULL)) s = agree(p, layout, name, err);
  if (s == HEDDLE_OK && runs && p->code != NULL && heddle__elf_has_functions(&p->code->elf))
    s = heddle__fail(err, HEDDLE_EINVAL,
                     "it has functions, and a library before it has some: the code of finished libraries cannot be "
                     "joined; give their objects (.o, .a, .tar)");
  if (s == HEDDLE_OK && (p->code == NULL || runs)) {
    p->code = one;
    p->symbol = symbol;
    if (!p->has_layout) p->layout = layout;
  }
  if (s == HEDDLE_OK && span.data != NULL) s = read_blob(p, span, layout, &one->blob, err);
  return s == HEDDLE_OK ? s : heddle__prefix(err, s, "%s: ", name);
}

static heddle_status take_file(packing *p, const char *path, heddle_error *err) {
  part *one = &p->parts[p->n_parts++];
  heddle_status s = heddle__file_read(path, MOST_BYTES, &one->image, &one->bytes, err);
  if (s != HEDDLE_OK) return s;
  switch (heddle__file_kind_of(one->image, one->bytes)) {
  case HEDDLE__FILE_LIBRARY: return take_library(p, one, path, err);
  case HEDDLE__FILE_OBJECTS: s = heddle__objects_add(&p->objects, one->image, one->bytes, err); break;
  default: s = heddle__fail(err, HEDDLE_EFORMAT, "it is no library (.so) and no objects (.o, .a, .tar)");
  }
  return s == HEDDLE_OK ? s : heddle__prefix(err, s, "%s: ", path);
}

static heddle_status take_objects(packing *p, heddle_error *err) {
  heddle__objects *o = &p->objects;
  heddle_status s = HEDDLE_OK;
  p->object_blobs = heddle__alloc(o->n_blobs, sizeof *p->object_blobs);
  if (p->object_blobs == NULL) return heddle__no_memory(err, "objects");
  for (uint32_t i = 0; i < o->n_blobs && s == HEDDLE_OK; i++) {
    s = agree(p, o->layouts[i], "objects", err);
    if (s == HEDDLE_OK) s = read_blob(p, o->blobs[i], o->layouts[i], &p->object_blobs[i], err);
  }
  if (s != HEDDLE_OK || o->n_files == 0) return s;
  part *one = &p->parts[p->n_parts++];
  s = heddle__objects_link(o, p->r->compiler, &one->image, &one->bytes, err);
  return s == HEDDLE_OK ? take_library(p, one, "what the objects are linked to", err) : s;
}

static heddle_status take_all(packing *p, heddle_error *err) {
  const heddle__pack_request *r = p->r;
  heddle_status s = heddle__tree_init(&p->tree, err);
  p->parts = heddle__alloc(r->n_libraries + 1, sizeof *p->parts);
  if (p->parts == NULL) return heddle__no_memory(err, "libraries");
  for (size_t i = 0; i < r->n_libraries && s == HEDDLE_OK; i++) s = take_file(p, r->libraries[i], err);
  if (s == HEDDLE_OK) s = take_objects(p, err);
  for (size_t i = 0; i < r->n_imports && s == HEDDLE_OK; i++) {
    const heddle__span body = {r->imports[i]->data, r->imports[i]->bytes};
    s = heddle__tree_import(&p->tree, r->imports[i]->kind, body, err);
  }
  for (size_t i = 0; i < r->n_models && s == HEDDLE_OK; i++) {
    const heddle__pack_part *m = &r->models[i];
    s = heddle__tree_model(&p->tree, m->name, (heddle__span){(const void *)m->graph, m->graph_bytes},
                           (heddle__span){m->params, m->params_bytes}, err);
  }
  if (s == HEDDLE_OK && p->code == NULL)
    s = heddle__fail(err, HEDDLE_EINVAL, "there is no library that the models run");
  return s;
}

/* Where nothing is to be carried and nothing was, the library is written as it is. */
static heddle_status write_file(packing *p, heddle_error *err) {
  heddle__aside a;
  heddle__buffer blob = {.n = 0};
  bool as_it_is = !heddle__tree_carries(&p->tree) && heddle__elf_find(&p->code->elf, p->symbol) == 0;
  heddle_status s = as_it_is ? HEDDLE_OK : heddle__tree_write(&p->tree, p->layout, &blob, err);
  if (s == HEDDLE_OK) {
    s = heddle__aside_begin(&a, p->r->path, true, err);
    if (s == HEDDLE_OK && a.in_place) s = heddle__fail(err, HEDDLE_EIO, "%s: not a regular file", p->r->path);
    else if (s == HEDDLE_OK && as_it_is) s = heddle__aside_put(&a, p->code->image, p->code->bytes, err);
    else if (s == HEDDLE_OK) s = heddle__elf_write(&p->code->elf, p->symbol, blob.data, blob.n, a.file, err);
    if (s == HEDDLE_OK) s = heddle__aside_keep(&a, err);
    else heddle__aside_drop(&a);
  }
  heddle__buffer_finish(&blob);
  return s;
}

heddle_status heddle__pack(const heddle__pack_request *r, heddle_error *err) {
  packing p = {.r = r};
  heddle_status s = take_all(&p, err);
  if (s == HEDDLE_OK) s = write_file(&p, err);
  heddle__tree_finish(&p.tree);
  for (size_t i = 0; i < p.n_parts; i++) {
    heddle__elf_finish(&p.parts[i].elf);
    heddle__blob_finish(&p.parts[i].blob);
    heddle__free(p.parts[i].image);
  }
  for (uint32_t i = 0; i < p.objects.n_blobs && p.object_blobs != NULL; i++) heddle__blob_finish(&p.object_blobs[i]);
  heddle__free(p.object_blobs);
  heddle__objects_finish(&p.objects);
  heddle__free(p.parts);
  return s;
}
