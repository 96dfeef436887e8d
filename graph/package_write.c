/* graph/package_write.c: writes a graph and its parameters as one file: head, text, the list of tensors, their bytes. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/whole_file.h"
#include "graph/package.h"

/* Where things lie. */
typedef struct layout {
  uint64_t list, list_bytes, end;
  uint64_t *data; /* of each tensor */
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
static heddle_status lay_out(const heddle_params *p, size_t text, layout *out, heddle_error *err) {
  uint32_t n = p != NULL ? p->count : 0;
  *out = (layout){.list = heddle__round_up(HEDDLE__PACKAGE_HEAD + (uint64_t)text, 8)};
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

static void put_head(writer *w, size_t text, const layout *l, uint32_t n) {
  put(w, HEDDLE_PACK_MAGIC, 8);
  put_number(w, HEDDLE__PACKAGE_VERSION, 4);
  put_number(w, 0, 4);
  put_number(w, l->end, 8);
  put_number(w, HEDDLE__PACKAGE_HEAD, 8);
  put_number(w, text, 8);
  put_number(w, l->list, 8);
  put_number(w, l->list_bytes, 8);
  put_number(w, n, 8);
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
                                    heddle_error *err) {
  layout l;
  writer w = {.err = err};
  heddle_status s = lay_out(p, bytes, &l, err);
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
    s = w.status;
    if (s == HEDDLE_OK) s = heddle__aside_keep(&w.file, err);
    else heddle__aside_drop(&w.file);
  }
  heddle__free(l.data);
  return s;
}
