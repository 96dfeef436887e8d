/* graph/params.c: a params blob in and out: named arrays as TVM's save_param_dict writes them.
 * A blob is untrusted: each count is checked against the bytes that are left before anything is allocated. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/tensor.h"
#include "core/whole_file.h"
#include "graph/file.h"
#include "graph/frontend.h"
#include "graph/graph.h"
#include "graph/opschema.h"
#include "graph/package.h"
#include "graph/prepared.h"
#include "graph/words.h"
#include "graph/verified.h"

#define LIST_MAGIC UINT64_C(0xF7E58D4F05049CB7)
#define ARRAY_MAGIC UINT64_C(0xDD5E40F096B4A13F)
#define RECORD_HEAD 40 /* of an array without dimensions and data */

/* ---------------------------------------------------------------- life */

heddle_params *heddle__params_new(const char *source, heddle_error *err) {
  heddle_params *p = heddle__alloc(1, sizeof *p);
  if (p != NULL) p->source = heddle__strdup(source != NULL ? source : "params");
  if (p == NULL || p->source == NULL) {
    heddle__free(p);
    heddle__no_memory(err, "params");
    return NULL;
  }
  atomic_init(&p->references, 1);
  return p;
}

heddle_params *heddle_params_retain(heddle_params *p) {
  if (p != NULL) atomic_fetch_add_explicit(&p->references, 1, memory_order_relaxed);
  return p;
}

void heddle_params_release(heddle_params *p) {
  if (p == NULL || atomic_fetch_sub_explicit(&p->references, 1, memory_order_acq_rel) != 1) return;
  for (uint32_t i = 0; i < p->count; i++) {
    heddle__free(p->items[i].name);
    heddle__free(p->items[i].value.shape);
    if (!p->items[i].is_mapped) heddle__free(p->items[i].value.data);
  }
  if (p->unmap != NULL) p->unmap(p->maps);
  heddle__free(p->items);
  heddle__free(p->source);
  heddle__free(p);
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

heddle_status heddle__params_check_names(const heddle_params *p, heddle_error *err) {
  char shown[64];
  heddle_status s = HEDDLE_OK;
  const char **names = heddle__alloc(p->count, sizeof *names);
  if (names == NULL) return heddle__no_memory(err, "the names of params");
  for (uint32_t i = 0; i < p->count; i++) names[i] = p->items[i].name;
  qsort((void *)(uintptr_t)names, p->count, sizeof *names, compare_names);
  for (uint32_t i = 1; i < p->count && s == HEDDLE_OK; i++)
    if (strcmp(names[i], names[i - 1]) == 0)
      s = heddle__fail(err, HEDDLE_EFORMAT, "%s: two parameters are named '%s', expected one of each name", p->source,
                       heddle__show(names[i], shown));
  heddle__free((void *)(uintptr_t)names);
  return s;
}

/* ---------------------------------------------------------------- reading */

typedef struct cursor {
  const unsigned char *start, *at, *end;
  const char *name;
  heddle_error *err;
} cursor;

static size_t left(const cursor *c) {
  return (size_t)(c->end - c->at);
}

/* "FILE: byte 41: expected what" */
static heddle_status bad(const cursor *c, const char *expected) {
  return heddle__fail(c->err, HEDDLE_EFORMAT, "%s: byte %zu of %zu: expected %s", c->name, (size_t)(c->at - c->start),
                      (size_t)(c->end - c->start), expected);
}

/* A little-endian number of n bytes, which must be there. */
static uint64_t take(cursor *c, size_t n) {
  uint64_t value = 0;
  for (size_t i = 0; i < n; i++) value |= (uint64_t)c->at[i] << (8 * i);
  c->at += n;
  return value;
}

static heddle_status take_u64(cursor *c, const char *what, uint64_t *out) {
  if (left(c) < 8) return bad(c, what);
  *out = take(c, 8);
  return HEDDLE_OK;
}

static heddle_status read_name(cursor *c, char **out) {
  uint64_t length = 0;
  heddle_status s = take_u64(c, "the length of a name", &length);
  if (s != HEDDLE_OK) return s;
  if (length > left(c)) {
    c->at -= 8;
    return bad(c, "a name no longer than the bytes that are left");
  }
  if (memchr(c->at, 0, (size_t)length) != NULL) return bad(c, "a name without a zero byte");
  *out = heddle__strndup((const char *)c->at, (size_t)length);
  c->at += length;
  return *out != NULL ? HEDDLE_OK : heddle__no_memory(c->err, "the name of a parameter");
}

static heddle_status read_shape(cursor *c, struct heddle__param *item) {
  heddle__constant *v = &item->value;
  if (left(c) < RECORD_HEAD) return bad(c, "an array: 40 bytes and more");
  if (take(c, 8) != ARRAY_MAGIC) {
    c->at -= 8;
    return bad(c, "an array's first bytes, 3f a1 b4 96 f0 40 5e dd");
  }
  c->at += 8; /* reserved; TVM's readers ignore it */
  if (take(c, 4) != HEDDLE_DEVICE_CPU) {
    c->at -= 4;
    return bad(c, "device type 1 (cpu) of an array");
  }
  c->at += 4; /* device id */
  v->ndim = (uint32_t)take(c, 4);
  if (v->ndim > HEDDLE__MAX_NDIM) {
    c->at -= 4;
    return bad(c, "0 to 32 dimensions of an array");
  }
  item->file_dtype.code = (uint8_t)take(c, 1);
  item->file_dtype.bits = (uint8_t)take(c, 1);
  item->file_dtype.lanes = (uint16_t)take(c, 2);
  if (item->file_dtype.lanes != 1 || item->file_dtype.bits == 0 || item->file_dtype.code == HEDDLE_DTYPE_HANDLE) {
    c->at -= 4;
    return bad(c, "a dtype with bits and one lane (vectors are stored cut off, handles not at all)");
  }
  if (left(c) < 8 * ((size_t)v->ndim + 1)) return bad(c, "the shape of an array");
  v->shape = heddle__alloc(v->ndim, sizeof *v->shape);
  if (v->shape == NULL) return heddle__no_memory(c->err, "the shape of a parameter");
  for (uint32_t i = 0; i < v->ndim; i++) v->shape[i] = (int64_t)take(c, 8);
  return HEDDLE_OK;
}

static heddle_status read_array(cursor *c, struct heddle__param *item) {
  char shown[64];
  heddle__constant *v = &item->value;
  heddle_status s = read_shape(c, item);
  if (s != HEDDLE_OK) return s;
  bool is_bool = item->file_dtype.code == HEDDLE_DTYPE_UINT && item->file_dtype.bits == 1;
  v->dtype = is_bool ? (heddle_dtype){HEDDLE_DTYPE_BOOL, 8, 1} : item->file_dtype;
  s = heddle__tensor_bytes(v->dtype, v->ndim, v->shape, &v->bytes, c->err);
  if (s != HEDDLE_OK)
    return heddle__prefix(c->err, s == HEDDLE_EINVAL ? HEDDLE_EFORMAT : s, "%s: byte %zu: ", c->name,
                          (size_t)(c->at - c->start));
  if (take(c, 8) != v->bytes) {
    char expected[96];
    c->at -= 8;
    snprintf(expected, sizeof expected, "%llu bytes of data, which the array's shape needs",
             (unsigned long long)v->bytes);
    return bad(c, expected);
  }
  if (v->bytes > left(c))
    return heddle__fail(c->err, HEDDLE_EFORMAT,
                        "%s: parameter '%s' needs %llu bytes, and %zu are left: the file is cut "
                        "short",
                        c->name, heddle__show(item->name, shown), (unsigned long long)v->bytes, left(c));
  v->data = heddle__alloc_aligned((size_t)v->bytes, 64);
  if (v->data == NULL) return heddle__no_memory(c->err, "the bytes of a parameter");
  if (v->bytes > 0) memcpy(v->data, c->at, (size_t)v->bytes);
  c->at += v->bytes;
  return HEDDLE_OK;
}

static heddle_status read_blob(cursor *c, heddle_params *p) {
  uint64_t number = 0;
  heddle_status s = take_u64(c, "the first bytes of a params blob", &number);
  if (s == HEDDLE_OK && number != LIST_MAGIC) {
    c->at -= 8;
    return bad(c, "a params blob, which begins with b7 9c 04 05 4f 8d e5 f7");
  }
  if (s == HEDDLE_OK) s = take_u64(c, "a reserved number", &number);
  if (s == HEDDLE_OK) s = take_u64(c, "the count of names", &number);
  if (s != HEDDLE_OK) return s;
  if (number > left(c) / 8 || number > INT32_MAX) {
    c->at -= 8;
    return bad(c, "no more names than the bytes that are left can hold");
  }
  p->items = heddle__alloc((size_t)number, sizeof *p->items);
  if (p->items == NULL) return heddle__no_memory(c->err, "params");
  p->count = (uint32_t)number;
  for (uint32_t i = 0; i < p->count && s == HEDDLE_OK; i++) s = read_name(c, &p->items[i].name);
  if (s == HEDDLE_OK) s = take_u64(c, "the count of arrays", &number);
  if (s == HEDDLE_OK && number != p->count) {
    c->at -= 8;
    return bad(c, "as many arrays as names");
  }
  for (uint32_t i = 0; i < p->count && s == HEDDLE_OK; i++) s = read_array(c, &p->items[i]);
  return s == HEDDLE_OK ? heddle__params_check_names(p, c->err) : s;
}

heddle_status heddle__params_parse(const void *data, size_t bytes, const char *name, const heddle_read_limits *limits,
                                   heddle_params **out, heddle_error *err) {
  heddle_read_limits limit;
  static const unsigned char nothing[1];
  *out = NULL;
  heddle__params_limits(limits, &limit);
  heddle_params *p = heddle__params_new(name, err);
  if (p == NULL) return HEDDLE_ENOMEM;
  const unsigned char *start = bytes > 0 ? data : nothing;
  cursor c = {start, start, start + bytes, p->source, err};
  heddle_status s = heddle__check_bytes(p->source, bytes, limit.max_bytes, err);
  if (s == HEDDLE_OK) s = read_blob(&c, p); /* TVM ignores what follows, and so do we */
  if (s != HEDDLE_OK) heddle_params_release(p);
  else *out = p;
  return s;
}

/* Of a package, which may be used from a sealed copy: that has a path of its own, and the parameters the file's name. */
static heddle_status load_package(const heddle__sealed *file, uint64_t max_bytes, heddle_params **out,
                                  heddle_error *err) {
  heddle_status s = heddle__package_params(file->use, max_bytes, out, err);
  if (s != HEDDLE_OK) return heddle__sealed_failed(file, s, err);
  if (file->file < 0) return HEDDLE_OK;
  heddle_params *p = *out;
  char *name = heddle__strdup(file->name);
  if (name == NULL) {
    heddle_params_release(p);
    *out = NULL;
    return heddle__no_memory(err, "params");
  }
  heddle__free(p->source);
  p->source = name;
  if (p->carried != NULL) {
    p->carried->is_copy = true;
    p->carried->is_verified = file->is_verified;
  }
  return HEDDLE_OK;
}

heddle_status heddle__params_load(const heddle__sealed *file, const heddle_read_limits *limits, heddle_params **out,
                                  heddle_error *err) {
  heddle_read_limits limit;
  void *data = NULL;
  size_t bytes = 0;
  *out = NULL;
  heddle__params_limits(limits, &limit);
  if (heddle__is_package(file->use)) return load_package(file, limit.max_bytes, out, err);
  heddle_status s = heddle__file_read(file->use, limit.max_bytes, &data, &bytes, err);
  if (s != HEDDLE_OK) heddle__sealed_failed(file, s, err);
  else s = heddle__params_parse(data, bytes, file->name, &limit, out, err);
  heddle__free(data);
  return s;
}

static heddle_status parse_blob(const void *data, size_t bytes, const char *name, const heddle_read_limits *limit,
                                void *out, heddle_error *err) {
  return heddle__params_parse(data, bytes, name, limit, out, err);
}

heddle_status heddle_params_parse(const void *data, size_t bytes, const char *name, const heddle_read_limits *limits,
                                  heddle_params **out, heddle_error *err) {
  heddle_read_limits limit;
  *out = NULL;
  heddle__params_limits(limits, &limit);
  return heddle__parse_verified(data, bytes, name, &limit, parse_blob, out, err);
}

heddle_status heddle_params_load(const char *path, const heddle_read_limits *limits, heddle_params **out,
                                 heddle_error *err) {
  heddle_read_limits limit;
  heddle__sealed file;
  *out = NULL;
  if (heddle__is_onnx(path)) return heddle__onnx_load(path, NULL, limits, NULL, out, err);
  heddle__params_limits(limits, &limit);
  const heddle__file_access access = {limit.trust, limit.key};
  heddle_status s = heddle__trust_given(limit.trust, err);
  if (s == HEDDLE_OK) s = heddle__sealed_open(path, &access, heddle__sealed_most(limit.max_bytes), &file, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__params_load(&file, &limit, out, err);
  heddle__sealed_close(&file);
  return s;
}

/* ---------------------------------------------------------------- from tensors, and back */

static heddle_status take_tensor(struct heddle__param *item, const char *name, const heddle_tensor *t,
                                 heddle_error *err) {
  heddle__constant *v = &item->value;
  if (t->dtype.lanes != 1 || t->dtype.code == HEDDLE_DTYPE_HANDLE) {
    char dtype[32];
    heddle__dtype_name(t->dtype, dtype);
    return heddle__fail(err, HEDDLE_EUNSUPPORTED, "%s cannot be stored in a params blob", dtype);
  }
  v->dtype = item->file_dtype = t->dtype;
  if (t->dtype.code == HEDDLE_DTYPE_BOOL) item->file_dtype = (heddle_dtype){HEDDLE_DTYPE_UINT, 1, 1};
  v->ndim = t->ndim;
  v->bytes = t->bytes;
  item->name = heddle__strdup(name);
  v->shape = heddle__alloc(t->ndim, sizeof *v->shape);
  v->data = heddle__alloc_aligned((size_t)t->bytes, 64);
  if (item->name == NULL || v->shape == NULL || v->data == NULL) return heddle__no_memory(err, "params");
  memcpy(v->shape, t->shape, t->ndim * sizeof *v->shape);
  return heddle__tensor_read(t, v->data, err);
}

heddle_status heddle_params_create(const char *const *names, heddle_tensor *const *tensors, size_t count,
                                   heddle_params **out, heddle_error *err) {
  char shown[64];
  *out = NULL;
  if (count > INT32_MAX) return heddle__fail(err, HEDDLE_ELIMIT, "%zu parameters are more than 2^31", count);
  heddle_params *p = heddle__params_new(NULL, err);
  if (p == NULL) return HEDDLE_ENOMEM;
  heddle_status s = HEDDLE_OK;
  p->items = heddle__alloc(count, sizeof *p->items);
  if (p->items == NULL) {
    heddle_params_release(p);
    return heddle__no_memory(err, "params");
  }
  for (size_t i = 0; i < count && s == HEDDLE_OK; i++) {
    p->count++; /* the release takes half-made items */
    s = take_tensor(&p->items[i], names[i], tensors[i], err);
    if (s != HEDDLE_OK) s = heddle__prefix(err, s, "parameter '%s': ", heddle__show(names[i], shown));
  }
  if (s == HEDDLE_OK) s = heddle__params_check_names(p, err);
  if (s != HEDDLE_OK) heddle_params_release(p);
  else *out = p;
  return s;
}

uint32_t heddle_params_count(const heddle_params *p) {
  return p->count;
}

const char *heddle_params_name(const heddle_params *p, uint32_t i) {
  return i < p->count ? p->items[i].name : NULL;
}

static void drop_params(void *user) {
  heddle_params_release(user);
}

heddle_status heddle__constant_tensor(const heddle__constant *c, heddle_release_fn release, void *user, bool *shares,
                                      heddle_tensor **out, heddle_error *err) {
  heddle_status s;
  *shares = false;
  if (heddle__constant_aligned(c)) {
    s = heddle__tensor_wrap_const(c->data, c->dtype, c->shape, c->ndim, NULL, release, user, out, err);
    *shares = s == HEDDLE_OK;
  } else {
    s = heddle_tensor_create(NULL, c->dtype, c->shape, c->ndim, out, err);
    if (s == HEDDLE_OK && c->bytes > 0) memcpy((*out)->data, c->data, (size_t)c->bytes);
  }
  return s;
}

heddle_status heddle_params_tensor(const heddle_params *p, uint32_t i, heddle_tensor **out, heddle_error *err) {
  *out = NULL;
  if (i >= p->count)
    return heddle__fail(err, HEDDLE_ENOTFOUND, "%s: parameter %u: there are %u", p->source, i, p->count);
  const heddle__constant *v = &p->items[i].value;
  heddle_params *held = (heddle_params *)(uintptr_t)p; /* counting does not change what it holds */
  bool shares = false;
  heddle_status s = heddle__constant_tensor(v, drop_params, held, &shares, out, err);
  if (shares) heddle_params_retain(held);
  return s;
}

/* ---------------------------------------------------------------- writing */

static unsigned char *put(unsigned char *at, uint64_t value, size_t n) {
  for (size_t i = 0; i < n; i++) at[i] = (unsigned char)(value >> (8 * i));
  return at + n;
}

static unsigned char *put_bytes(unsigned char *at, const void *data, uint64_t bytes) {
  if (bytes > 0) memcpy(at, data, (size_t)bytes);
  return at + bytes;
}

static bool blob_size(const heddle_params *p, uint64_t *out) {
  uint64_t total = 32;
  bool fits = true;
  for (uint32_t i = 0; i < p->count && fits; i++) {
    const heddle__constant *v = &p->items[i].value;
    fits = heddle__add(total, 8 + strlen(p->items[i].name) + RECORD_HEAD + 8 * (uint64_t)v->ndim, &total) &&
           heddle__add(total, v->bytes, &total);
  }
  *out = total;
  return fits && total <= SIZE_MAX;
}

heddle_status heddle_params_bytes(const heddle_params *p, void **out, size_t *bytes, heddle_error *err) {
  uint64_t total = 0;
  *out = NULL;
  unsigned char *blob = blob_size(p, &total) ? heddle__alloc_aligned((size_t)total, 64) : NULL, *at = blob;
  if (blob == NULL) return heddle__no_memory(err, "a params blob");
  at = put(put(put(at, LIST_MAGIC, 8), 0, 8), p->count, 8);
  for (uint32_t i = 0; i < p->count; i++) {
    size_t length = strlen(p->items[i].name);
    at = put_bytes(put(at, length, 8), p->items[i].name, length);
  }
  at = put(at, p->count, 8);
  for (uint32_t i = 0; i < p->count; i++) {
    const heddle__constant *v = &p->items[i].value;
    heddle_dtype d = p->items[i].file_dtype;
    at = put(put(put(put(at, ARRAY_MAGIC, 8), 0, 8), HEDDLE_DEVICE_CPU, 4), 0, 4);
    at = put(put(put(put(at, v->ndim, 4), d.code, 1), d.bits, 1), d.lanes, 2);
    for (uint32_t k = 0; k < v->ndim; k++) at = put(at, (uint64_t)v->shape[k], 8);
    at = put_bytes(put(at, v->bytes, 8), v->data, v->bytes);
  }
  *out = blob;
  *bytes = (size_t)total;
  return HEDDLE_OK;
}

heddle_status heddle_params_save(const heddle_params *p, const char *path, heddle_error *err) {
  void *blob = NULL;
  size_t bytes = 0;
  heddle_status s = heddle_params_bytes(p, &blob, &bytes, err);
  if (s != HEDDLE_OK) return heddle__prefix(err, s, "%s: ", path);
  s = heddle__file_write(path, blob, bytes, err);
  heddle__free(blob);
  return s;
}
