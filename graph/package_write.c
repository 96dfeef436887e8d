/* graph/package_write.c: writes a graph and its parameters as one file: head, text, the list of tensors, their bytes; then
 * what was prepared: files of caches, and their index. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/whole_file.h"
#include "graph/package.h"
#include "graph/prepared.h"

/* Where things lie. */
typedef struct layout {
  uint64_t head, list, list_bytes, end;
  uint64_t *data; /* of each tensor */
  heddle__digest content, index_digest;
  uint64_t index_at;
  char *index; /* text; NULL: nothing was prepared */
  struct file {
    uint64_t at, bytes;
    bool is_again; /* as one before it: its bytes are there */
  } * files;
} layout;

/* Bytes that are put one behind another, in a file; at is how many there are. */
typedef struct writer {
  heddle__aside file;
  uint64_t at;
  heddle_status status;
  heddle_error *err;
} writer;

static void put(writer *w, const void *data, uint64_t bytes) {
  if (w->status == HEDDLE_OK && bytes > 0) w->status = heddle__aside_put(&w->file, data, (size_t)bytes, w->err);
  w->at += bytes;
}

static void put_number(writer *w, uint64_t value, unsigned n) {
  unsigned char text[8];
  for (unsigned i = 0; i < n; i++) text[i] = (unsigned char)(value >> (8 * i));
  put(w, text, n);
}

static void put_zeros(writer *w, uint64_t until) {
  static const unsigned char zeros[HEDDLE__PACKAGE_PAGE];
  while (w->status == HEDDLE_OK && w->at < until)
    put(w, zeros, until - w->at < sizeof zeros ? until - w->at : sizeof zeros);
}

/* Large tensors begin a page; others are aligned as kernels want it. */
static heddle_status lay_out(const heddle_params *p, size_t text, bool is_plain, layout *out, heddle_error *err) {
  uint32_t n = p != NULL ? p->count : 0;
  const uint64_t head = is_plain ? HEDDLE__PACKAGE_HEAD : HEDDLE__PACKAGE_HEAD2;
  *out = (layout){.head = head, .list = heddle__round_up(head + (uint64_t)text, 8)};
  out->data = heddle__alloc(n, sizeof *out->data);
  if (out->data == NULL) return heddle__no_memory(err, "a package");
  for (uint32_t i = 0; i < n; i++)
    out->list_bytes += 8 + strlen(p->items[i].name) + 8 + 8 * (uint64_t)p->items[i].value.ndim + 8;
  uint64_t at = out->list + out->list_bytes;
  for (uint32_t i = 0; i < n; i++) {
    uint64_t bytes = p->items[i].value.bytes;
    at = heddle__round_up(at, bytes >= HEDDLE__PACKAGE_PAGE ? HEDDLE__PACKAGE_PAGE : HEDDLE__PACKAGE_ALIGN);
    out->data[i] = at;
    at += bytes;
  }
  out->end = at;
  return HEDDLE_OK;
}

/* Of all that a plan is made of. */
static heddle__digest content_of(const char *text, size_t bytes, const heddle_params *p) {
  heddle__digest d = {{0, 0}};
  heddle__digest_add(&d, text, bytes);
  for (uint32_t i = 0; p != NULL && i < p->count; i++) {
    const heddle__constant *v = &p->items[i].value;
    heddle__digest_text(&d, p->items[i].name);
    heddle__digest_add(&d, &v->dtype, sizeof v->dtype);
    heddle__digest_add(&d, v->shape, v->ndim * sizeof *v->shape);
    heddle__digest_add(&d, v->data, v->bytes);
  }
  return d;
}

/* ---- what was prepared */

static heddle_status lay_out_file(layout *l, const heddle__package_extra *e, uint32_t i, uint64_t *end, json_t *files,
                                  heddle_error *err) {
  void *data = NULL;
  size_t bytes = 0;
  heddle_status s = heddle__file_read(e->paths[i], UINT64_MAX, &data, &bytes, err);
  if (s != HEDDLE_OK) return s;
  heddle__digest d = {{0, 0}};
  heddle__digest_add(&d, data, bytes);
  heddle__free(data);
  const json_int_t words[2] = {(json_int_t)d.word[0], (json_int_t)d.word[1]};
  l->files[i].bytes = bytes;
  l->files[i].at = heddle__round_up(*end, HEDDLE__PACKAGE_PAGE);
  for (size_t k = 0; k < json_array_size(files) && !l->files[i].is_again; k++) {
    const json_t *other = json_object_get(json_array_get(files, k), "digest");
    l->files[i].is_again = l->files[k].bytes == bytes && json_integer_value(json_array_get(other, 0)) == words[0] &&
                           json_integer_value(json_array_get(other, 1)) == words[1];
    if (l->files[i].is_again) l->files[i].at = l->files[k].at;
  }
  if (!l->files[i].is_again) *end = l->files[i].at + bytes;
  const char *name = strrchr(e->paths[i], '/');
  json_t *one = json_pack("{s:s s:I s:I s:I s:[I, I]}", "name", name != NULL ? name + 1 : e->paths[i], "target",
                          (json_int_t)e->target_of[i], "at", (json_int_t)l->files[i].at, "bytes", (json_int_t)bytes,
                          "digest", words[0], words[1]);
  return json_array_append_new(files, one) == 0 ? HEDDLE_OK : heddle__no_memory(err, "the index of a package");
}

static heddle_status lay_out_extra(layout *l, const heddle__package_extra *e, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  uint64_t end = l->end;
  if (e->n_files == 0) return HEDDLE_OK;
  l->files = heddle__alloc(e->n_files, sizeof *l->files);
  json_t *files = json_array();
  if (l->files == NULL || files == NULL) s = heddle__no_memory(err, "the index of a package");
  for (uint32_t i = 0; i < e->n_files && s == HEDDLE_OK; i++) s = lay_out_file(l, e, i, &end, files, err);
  json_t *root = json_pack("{s:s s:O s:o}", "heddle", heddle_version(), "targets", e->targets, "files", files);
  if (s == HEDDLE_OK) l->index = root != NULL ? json_dumps(root, JSON_COMPACT) : NULL;
  if (s == HEDDLE_OK && l->index == NULL) s = heddle__no_memory(err, "the index of a package");
  json_decref(root);
  l->index_at = heddle__round_up(end, 8);
  if (l->index != NULL) heddle__digest_add(&l->index_digest, l->index, strlen(l->index));
  return s;
}

static void put_file(writer *w, const layout *l, const heddle__package_extra *e, uint32_t i) {
  void *data = NULL;
  size_t bytes = 0;
  if (w->status != HEDDLE_OK || l->files[i].is_again) return;
  w->status = heddle__file_read(e->paths[i], UINT64_MAX, &data, &bytes, w->err);
  if (w->status == HEDDLE_OK && bytes != l->files[i].bytes)
    w->status = heddle__fail(w->err, HEDDLE_EIO, "%s: it changed while it was packed", e->paths[i]);
  put_zeros(w, l->files[i].at);
  put(w, data, bytes);
  heddle__free(data);
}

/* ---- the file */

static void put_head(writer *w, size_t text, const layout *l, uint32_t n) {
  put(w, HEDDLE_PACK_MAGIC, 8);
  put_number(w, l->head == HEDDLE__PACKAGE_HEAD ? HEDDLE__PACKAGE_VERSION : HEDDLE__PACKAGE_VERSION2, 4);
  put_number(w, 0, 4);
  put_number(w, l->end, 8);
  put_number(w, l->head, 8);
  put_number(w, text, 8);
  put_number(w, l->list, 8);
  put_number(w, l->list_bytes, 8);
  put_number(w, n, 8);
  if (l->head == HEDDLE__PACKAGE_HEAD) return;
  put_number(w, l->index_at, 8);
  put_number(w, l->index != NULL ? strlen(l->index) : 0, 8);
  for (int i = 0; i < 2; i++) put_number(w, l->index_digest.word[i], 8);
  for (int i = 0; i < 2; i++) put_number(w, l->content.word[i], 8);
  put_zeros(w, l->head);
}

static void put_list(writer *w, const heddle_params *p, const layout *l) {
  for (uint32_t i = 0; p != NULL && i < p->count; i++) {
    const heddle__constant *v = &p->items[i].value;
    size_t n = strlen(p->items[i].name);
    put_number(w, n, 8);
    put(w, p->items[i].name, n);
    put_number(w, p->items[i].file_dtype.code, 1);
    put_number(w, p->items[i].file_dtype.bits, 1);
    put_number(w, p->items[i].file_dtype.lanes, 2);
    put_number(w, v->ndim, 4);
    for (uint32_t k = 0; k < v->ndim; k++) put_number(w, (uint64_t)v->shape[k], 8);
    put_number(w, l->data[i], 8);
  }
}

heddle_status heddle__package_write(const char *path, const char *text, size_t bytes, const heddle_params *p,
                                    const heddle__package_extra *extra, heddle_error *err) {
  layout l;
  writer w = {.err = err};
  heddle_status s = lay_out(p, bytes, extra == NULL, &l, err);
  if (s == HEDDLE_OK && extra != NULL) {
    l.content = content_of(text, bytes, p);
    s = lay_out_extra(&l, extra, err);
  }
  if (s == HEDDLE_OK) s = heddle__aside_begin(&w.file, path, false, err);
  if (s == HEDDLE_OK) {
    put_head(&w, bytes, &l, p != NULL ? p->count : 0);
    put(&w, text, bytes);
    put_zeros(&w, l.list);
    put_list(&w, p, &l);
    for (uint32_t i = 0; p != NULL && i < p->count; i++) {
      put_zeros(&w, l.data[i]);
      put(&w, p->items[i].value.data, p->items[i].value.bytes);
    }
    for (uint32_t i = 0; l.index != NULL && i < extra->n_files; i++) put_file(&w, &l, extra, i);
    if (l.index != NULL) {
      put_zeros(&w, l.index_at);
      put(&w, l.index, strlen(l.index));
    }
    s = w.status;
    if (s == HEDDLE_OK) s = heddle__aside_keep(&w.file, err);
    else heddle__aside_drop(&w.file);
  }
  heddle__free(l.data);
  heddle__free(l.files);
  free(l.index);
  return s;
}
