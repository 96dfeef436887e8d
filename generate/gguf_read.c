/* generate/gguf_read.c: the head of a GGUF file: values by key, and where tensors lie. The file is untrusted: every length is
 * compared with the bytes that are left before it is used. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "generate/gguf.h"

enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64, TYPES };
enum { LEAST_VALUE = 13, LEAST_TENSOR = 24, ALIGNMENT = 32, MOST_ALIGNMENT = 1 << 20 };

static const uint8_t type_bytes[TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

typedef struct cursor {
  const uint8_t *start, *at, *end;
  const char *path;
  heddle_error *err;
  heddle_status status;
} cursor;

static void wrong(cursor *c, const char *what) {
  if (c->status == HEDDLE_OK)
    c->status = heddle__fail(c->err, HEDDLE_EFORMAT, "%s: at byte %zu: %s", c->path, (size_t)(c->at - c->start), what);
}

static uint64_t left(const cursor *c) {
  return (uint64_t)(c->end - c->at);
}

static const uint8_t *take(cursor *c, uint64_t bytes) {
  if (c->status != HEDDLE_OK || bytes > left(c)) {
    wrong(c, "the file ends early");
    return NULL;
  }
  const uint8_t *data = c->at;
  c->at += bytes;
  return data;
}

static uint64_t number(cursor *c, uint32_t bytes) {
  uint64_t n = 0;
  const uint8_t *data = take(c, bytes);
  for (uint32_t i = 0; data != NULL && i < bytes; i++) n |= (uint64_t)data[i] << 8 * i;
  return n;
}

static heddle__gguf_text text(cursor *c) {
  heddle__gguf_text t = {.bytes = number(c, 8)};
  t.data = (const char *)take(c, t.bytes);
  if (c->status != HEDDLE_OK) t = (heddle__gguf_text){"", 0};
  return t;
}

/* ---- values */

static void skip_elements(cursor *c, uint32_t type, uint64_t count) {
  if (type >= TYPES || type == ARRAY) {
    wrong(c, "a value of a type that is not known");
  } else if (type == STRING) {
    if (count > left(c) / 8) wrong(c, "the file ends early");
    for (uint64_t i = 0; i < count && c->status == HEDDLE_OK; i++) text(c);
  } else if (count > left(c) / type_bytes[type]) {
    wrong(c, "the file ends early");
  } else {
    take(c, count * type_bytes[type]);
  }
}

static void read_value(cursor *c, heddle__gguf_value *v) {
  v->key = text(c);
  v->type = (uint32_t)number(c, 4);
  v->is_array = v->type == ARRAY;
  v->count = 1;
  if (v->is_array) {
    v->type = (uint32_t)number(c, 4);
    v->count = number(c, 8);
  }
  v->data = c->at;
  if (c->status == HEDDLE_OK) skip_elements(c, v->type, v->count);
}

static bool is_text(heddle__gguf_text t, const char *wanted) {
  return t.bytes == strlen(wanted) && memcmp(t.data, wanted, t.bytes) == 0;
}

const heddle__gguf_value *heddle__gguf_value_of(const heddle__gguf *f, const char *key) {
  for (uint64_t i = 0; i < f->n_values; i++)
    if (is_text(f->values[i].key, key)) return &f->values[i];
  return NULL;
}

const heddle__gguf_tensor *heddle__gguf_tensor_of(const heddle__gguf *f, const char *name) {
  for (uint64_t i = 0; i < f->n_tensors; i++)
    if (is_text(f->tensors[i].name, name)) return &f->tensors[i];
  return NULL;
}

bool heddle__gguf_whole(const heddle__gguf_value *v, int64_t *out) {
  uint64_t n = 0;
  if (v == NULL || v->is_array || v->type == F32 || v->type == F64 || v->type == STRING) return false;
  const uint32_t bytes = type_bytes[v->type];
  if (bytes == 0) return false;
  for (uint32_t i = 0; i < bytes; i++) n |= (uint64_t)v->data[i] << 8 * i;
  const bool has_sign = v->type == I8 || v->type == I16 || v->type == I32;
  if (has_sign && (n >> (8 * bytes - 1) & 1) != 0) n |= ~UINT64_C(0) << 8 * bytes;
  if (v->type == U64 && n > INT64_MAX) return false;
  *out = (int64_t)n;
  return true;
}

bool heddle__gguf_real(const heddle__gguf_value *v, double *out) {
  int64_t n;
  float x;
  if (v == NULL || v->is_array) return false;
  if (v->type == F64) memcpy(out, v->data, sizeof *out);
  else if (v->type == F32) *out = (double)*(float *)memcpy(&x, v->data, sizeof x);
  else if (heddle__gguf_whole(v, &n)) *out = (double)n;
  else return false;
  return *out - *out == 0; /* finite */
}

heddle__gguf_text heddle__gguf_string(const heddle__gguf_value *v) {
  heddle__gguf_text t = {"", 0};
  if (v == NULL || v->is_array || v->type != STRING) return t;
  for (uint32_t i = 0; i < 8; i++) t.bytes |= (uint64_t)v->data[i] << 8 * i;
  t.data = (const char *)v->data + 8;
  return t;
}

/* ---- tensors */

static heddle_status bad_tensor(const cursor *c, const heddle__gguf_tensor *t, heddle_status s, const char *what) {
  return heddle__fail(c->err, s, "%s: tensor '%.*s' %s", c->path, (int)(t->name.bytes < 200 ? t->name.bytes : 200),
                      t->name.data, what);
}

static void read_tensor(cursor *c, heddle__gguf_tensor *t, uint64_t *offset) {
  t->name = text(c);
  t->ndim = (uint32_t)number(c, 4);
  t->count = 1;
  if (c->status == HEDDLE_OK && (t->ndim == 0 || t->ndim > 4))
    c->status = bad_tensor(c, t, HEDDLE_EFORMAT, "has no dimensions, or more than 4");
  for (uint32_t d = 0; d < t->ndim && c->status == HEDDLE_OK; d++) {
    t->dims[d] = number(c, 8);
    if (c->status == HEDDLE_OK &&
        (t->dims[d] == 0 || t->dims[d] > INT32_MAX || !heddle__mul(t->count, t->dims[d], &t->count)))
      c->status = bad_tensor(c, t, HEDDLE_EFORMAT, "has a dimension of 0, or too many elements");
  }
  t->type = (uint32_t)number(c, 4);
  *offset = number(c, 8);
  if (c->status != HEDDLE_OK) return;
  t->bytes = heddle__gguf_bytes(t->type, t->count, t->dims[0]);
  if (t->bytes == 0)
    c->status = bad_tensor(c, t, HEDDLE_EUNSUPPORTED,
                           "is of a type that is not supported, or its rows are not whole blocks of it");
}

/* Offsets count from the first multiple of the alignment behind the head. */
static void place(cursor *c, heddle__gguf *f, uint64_t alignment) {
  const uint64_t head = heddle__round_up((uint64_t)(c->at - c->start), alignment),
                 whole = (uint64_t)(c->end - c->start);
  for (uint64_t i = 0; i < f->n_tensors && c->status == HEDDLE_OK; i++) {
    heddle__gguf_tensor *t = &f->tensors[i];
    const uint64_t offset = (uint64_t)(uintptr_t)t->data;
    if (offset % alignment != 0)
      c->status = bad_tensor(c, t, HEDDLE_EFORMAT, "does not begin at a multiple of general.alignment");
    else if (head > whole || offset > whole - head || t->bytes > whole - head - offset)
      c->status = bad_tensor(c, t, HEDDLE_EFORMAT, "ends behind the end of the file");
    else t->data = c->start + head + offset;
  }
}

static void read_all(cursor *c, heddle__gguf *f) {
  int64_t alignment = ALIGNMENT;
  const uint8_t *magic = take(c, 4);
  if (magic == NULL || memcmp(magic, "GGUF", 4) != 0) {
    c->at = c->start;
    wrong(c, "expected GGUF");
    return;
  }
  const uint64_t version = number(c, 4);
  if (c->status == HEDDLE_OK && version != 2 && version != 3)
    c->status = heddle__fail(c->err, HEDDLE_EUNSUPPORTED, "%s: GGUF of version %u is not supported; expected 2 or 3",
                             c->path, (unsigned)version);
  const uint64_t tensors = number(c, 8), values = number(c, 8);
  if (c->status == HEDDLE_OK && (tensors > left(c) / LEAST_TENSOR || values > left(c) / LEAST_VALUE))
    wrong(c, "the file ends early");
  if (c->status != HEDDLE_OK) return;
  f->values = heddle__alloc(values, sizeof *f->values);
  f->tensors = heddle__alloc(tensors, sizeof *f->tensors);
  if (f->values == NULL || f->tensors == NULL) c->status = heddle__no_memory(c->err, "a GGUF file's head");
  for (; f->n_values < values && c->status == HEDDLE_OK; f->n_values++) read_value(c, &f->values[f->n_values]);
  for (; f->n_tensors < tensors && c->status == HEDDLE_OK; f->n_tensors++) {
    uint64_t offset = 0;
    read_tensor(c, &f->tensors[f->n_tensors], &offset);
    f->tensors[f->n_tensors].data = (const uint8_t *)(uintptr_t)offset; /* until its place is known */
  }
  if (c->status != HEDDLE_OK) return;
  const heddle__gguf_value *given = heddle__gguf_value_of(f, "general.alignment");
  if (given != NULL &&
      (!heddle__gguf_whole(given, &alignment) || alignment < 8 || alignment > MOST_ALIGNMENT || alignment % 8 != 0))
    wrong(c, "general.alignment is no multiple of 8");
  else place(c, f, (uint64_t)alignment);
}

heddle_status heddle__gguf_parse(const void *data, size_t bytes, const char *path, heddle__gguf *out,
                                 heddle_error *err) {
  cursor c = {.start = data, .at = data, .end = (const uint8_t *)data + bytes, .path = path, .err = err};
  *out = (heddle__gguf){.path = path};
  read_all(&c, out);
  if (c.status != HEDDLE_OK) heddle__gguf_free(out);
  return c.status;
}

void heddle__gguf_free(heddle__gguf *f) {
  heddle__free(f->values);
  heddle__free(f->tensors);
  f->values = NULL;
  f->tensors = NULL;
  f->n_values = f->n_tensors = 0;
}
