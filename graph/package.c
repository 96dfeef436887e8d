/* graph/package.c: reads a graph and its parameters of one file. The file is untrusted: each place and count is checked
 * against its size. */
#include "graph/package.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"
#include "core/sealed.h"
#include "core/tensor.h"
#include "graph/file.h"
#include "graph/opschema.h"
#include "graph/prepared.h"

/* A file that is mapped, or memory of the caller's; what heddle_params.maps of a package is. */
typedef struct package {
  const unsigned char *data;
  uint64_t bytes;                                     /* of graph and parameters */
  uint64_t whole;                                     /* of the file */
  uint64_t text, text_bytes, list, list_bytes, count; /* as its head says */
  bool is_mapped;
  heddle__carried carried;
} package;

bool heddle__is_package(const char *path) {
  char head[8] = "";
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  ssize_t n = read(fd, head, sizeof head);
  close(fd);
  return n == sizeof head && memcmp(head, HEDDLE_PACK_MAGIC, sizeof head) == 0;
}

#if HEDDLE_HAS_PACKAGES

static heddle_status bad(const char *path, uint64_t at, const char *expected, heddle_error *err) {
  return heddle__fail(err, HEDDLE_EFORMAT, "%s: byte %llu: expected %s", path, (unsigned long long)at, expected);
}

/* What only a head of version 2 has. What was prepared may be cut off: then the model is read without. */
static heddle_status read_carried(package *p, const char *path, heddle_error *err) {
  const unsigned char *d = p->data;
  heddle__carried *c = &p->carried;
  if (p->whole < HEDDLE__PACKAGE_HEAD2) return bad(path, 0, "the head of a package", err);
  p->bytes = heddle__number_at(d + 16, 8);
  if (p->bytes > p->whole) return bad(path, 16, "the size of graph and parameters in a file that is not cut off", err);
  c->data = d;
  c->bytes = p->whole;
  c->content = (heddle__digest){{heddle__number_at(d + 96, 8), heddle__number_at(d + 104, 8)}};
  return HEDDLE_OK;
}

static heddle_status read_prepared(package *p, heddle_error *err) {
  const unsigned char *d = p->data;
  if (p->carried.data == NULL || heddle__number_at(d + 72, 8) == 0) return HEDDLE_OK;
  const heddle__digest digest = {{heddle__number_at(d + 80, 8), heddle__number_at(d + 88, 8)}};
  p->carried.prepared =
      heddle__prepared_read(d, p->whole, heddle__number_at(d + 64, 8), heddle__number_at(d + 72, 8), &digest);
  return p->carried.prepared != NULL ? HEDDLE_OK : heddle__no_memory(err, "the index of a package");
}

static heddle_status read_head(package *p, const char *path, heddle_error *err) {
  const unsigned char *d = p->data;
  if (p->whole < HEDDLE__PACKAGE_HEAD || memcmp(d, HEDDLE_PACK_MAGIC, 8) != 0)
    return bad(path, 0, "the head of a package", err);
  const uint64_t version = heddle__number_at(d + 8, 4);
  if (version != HEDDLE__PACKAGE_VERSION && version != HEDDLE__PACKAGE_VERSION2)
    return heddle__fail(err, HEDDLE_EUNSUPPORTED, "%s: it is a package of version %llu, and 1 and 2 are read here",
                        path, (unsigned long long)version);
  p->bytes = p->whole;
  if (version == HEDDLE__PACKAGE_VERSION2) {
    heddle_status s = read_carried(p, path, err);
    if (s != HEDDLE_OK) return s;
  } else if (heddle__number_at(d + 16, 8) != p->bytes) {
    return bad(path, 16, "the size of the file, which is cut off or too long", err);
  }
  p->text = heddle__number_at(d + 24, 8);
  p->text_bytes = heddle__number_at(d + 32, 8);
  p->list = heddle__number_at(d + 40, 8);
  p->list_bytes = heddle__number_at(d + 48, 8);
  p->count = heddle__number_at(d + 56, 8);
  if (p->text > p->bytes || p->text_bytes > p->bytes - p->text) return bad(path, 24, "a graph inside of the file", err);
  if (p->list > p->bytes || p->list_bytes > p->bytes - p->list)
    return bad(path, 40, "a list of parameters inside of the file", err);
  if (p->count > p->list_bytes / 24 || p->count > INT32_MAX)
    return bad(path, 56, "no more parameters than their list can hold", err);
  return HEDDLE_OK;
}

static void unmap(void *maps) {
  package *p = maps;
  heddle__prepared_free(p->carried.prepared);
  if (p->is_mapped) munmap((void *)(uintptr_t)p->data, (size_t)p->whole);
  heddle__free(p);
}

/* Checks what is at data already; p is taken over. */
static heddle_status finish(package *p, const char *path, heddle_status s, package **out, heddle_error *err) {
  if (s == HEDDLE_OK) s = read_head(p, path, err);
  if (s == HEDDLE_OK) *out = p;
  else unmap(p);
  return s;
}

static heddle_status map(const char *path, package **out, heddle_error *err) {
  struct stat info;
  package *p = heddle__alloc(1, sizeof *p);
  *out = NULL;
  if (p == NULL) return heddle__no_memory(err, "a package");
  heddle_status s = HEDDLE_OK;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 || fstat(fd, &info) != 0) s = heddle__fail(err, HEDDLE_EIO, "%s: %s", path, strerror(errno));
  else if (!S_ISREG(info.st_mode)) s = heddle__fail(err, HEDDLE_EIO, "%s: not a regular file", path);
  else p->whole = heddle__unsigned_bytes(fd, (uint64_t)info.st_size);
  if (s == HEDDLE_OK && p->whole > 0) {
    void *data = mmap(NULL, (size_t)p->whole, PROT_READ, MAP_PRIVATE, fd, 0);
    p->is_mapped = data != MAP_FAILED;
    p->carried.device = (uint64_t)info.st_dev;
    p->carried.inode = (uint64_t)info.st_ino;
    if (p->is_mapped) p->data = data;
    else s = heddle__fail(err, HEDDLE_EIO, "%s: it cannot be mapped: %s", path, strerror(errno));
  }
  if (fd >= 0) close(fd);
  return finish(p, path, s, out, err);
}

static heddle_status wrap(const void *data, uint64_t bytes, const char *name, package **out, heddle_error *err) {
  *out = NULL;
  if ((uintptr_t)data % HEDDLE__PACKAGE_ALIGN != 0)
    return heddle__fail(err, HEDDLE_EINVAL, "%s: a package in memory begins at a multiple of %d", name,
                        HEDDLE__PACKAGE_ALIGN);
  package *p = heddle__alloc(1, sizeof *p);
  if (p == NULL) return heddle__no_memory(err, "a package");
  p->data = data;
  p->whole = bytes;
  p->carried.in_memory = true;
  return finish(p, name, HEDDLE_OK, out, err);
}

heddle_status heddle__package_text(const char *path, uint64_t max_bytes, char **out, size_t *bytes, heddle_error *err) {
  package *p;
  *out = NULL;
  heddle_status s = map(path, &p, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__check_bytes(path, p->text_bytes, max_bytes, err);
  if (s == HEDDLE_OK) {
    *out = heddle__alloc((size_t)p->text_bytes + 1, 1); /* it may have zero bytes, which the parser reports */
    *bytes = (size_t)p->text_bytes;
    if (*out == NULL) s = heddle__no_memory(err, "the text of a graph");
    else memcpy(*out, p->data + p->text, *bytes);
  }
  unmap(p);
  return s;
}

/* One tensor of the list, whose next byte is *at. */
static heddle_status read_item(const package *p, uint64_t *at, struct heddle__param *item, const char *path,
                               heddle_error *err) {
  const unsigned char *d = p->data;
  heddle__constant *v = &item->value;
  uint64_t end = p->list + p->list_bytes, start = *at;
  if (end - *at < 8 || heddle__number_at(d + *at, 8) > end - *at - 8)
    return bad(path, start, "the name of a parameter", err);
  uint64_t n = heddle__number_at(d + *at, 8);
  *at += 8;
  if (memchr(d + *at, 0, (size_t)n) != NULL) return bad(path, start, "a name without a zero byte", err);
  item->name = heddle__strndup((const char *)d + *at, (size_t)n);
  if (item->name == NULL) return heddle__no_memory(err, "the name of a parameter");
  *at += n;
  if (end - *at < 8) return bad(path, *at, "the dtype of a parameter", err);
  item->file_dtype = (heddle_dtype){d[*at], d[*at + 1], (uint16_t)heddle__number_at(d + *at + 2, 2)};
  v->ndim = (uint32_t)heddle__number_at(d + *at + 4, 4);
  if (item->file_dtype.lanes != 1 || item->file_dtype.bits == 0 || item->file_dtype.code == HEDDLE_DTYPE_HANDLE)
    return bad(path, *at, "a dtype with bits and one lane", err);
  *at += 8;
  if (v->ndim > HEDDLE__MAX_NDIM || end - *at < 8 * ((uint64_t)v->ndim + 1))
    return bad(path, *at, "a shape of 0 to 32 dimensions", err);
  v->shape = heddle__alloc(v->ndim, sizeof *v->shape);
  if (v->shape == NULL) return heddle__no_memory(err, "the shape of a parameter");
  for (uint32_t i = 0; i < v->ndim; i++, *at += 8) v->shape[i] = (int64_t)heddle__number_at(d + *at, 8);
  bool is_bool = item->file_dtype.code == HEDDLE_DTYPE_UINT && item->file_dtype.bits == 1;
  v->dtype = is_bool ? (heddle_dtype){HEDDLE_DTYPE_BOOL, 8, 1} : item->file_dtype;
  heddle_status s = heddle__tensor_bytes(v->dtype, v->ndim, v->shape, &v->bytes, err);
  if (s != HEDDLE_OK)
    return heddle__prefix(err, s == HEDDLE_EINVAL ? HEDDLE_EFORMAT : s, "%s: byte %llu: ", path,
                          (unsigned long long)start);
  uint64_t data = heddle__number_at(d + *at, 8);
  if (data % HEDDLE__PACKAGE_ALIGN != 0 || data > p->bytes || v->bytes > p->bytes - data)
    return bad(path, *at, "the bytes of a parameter inside of the file, aligned to 64", err);
  *at += 8;
  v->data = (void *)(uintptr_t)(p->data + data);
  item->is_mapped = true;
  return HEDDLE_OK;
}

static heddle_status read_list(heddle_params *to, const package *p, const char *path, heddle_error *err) {
  uint64_t at = p->list;
  heddle_status s = HEDDLE_OK;
  to->items = heddle__alloc((size_t)p->count, sizeof *to->items);
  if (to->items == NULL) return heddle__no_memory(err, "params");
  to->count = (uint32_t)p->count;
  for (uint32_t i = 0; i < to->count; i++) to->items[i].is_mapped = true;
  for (uint32_t i = 0; i < to->count && s == HEDDLE_OK; i++) s = read_item(p, &at, &to->items[i], path, err);
  return s == HEDDLE_OK ? heddle__params_check_names(to, err) : s;
}

/* Takes the package over. */
static heddle_status params_of(package *p, const char *path, uint64_t max_bytes, heddle_params **out,
                               heddle_error *err) {
  heddle_status s = heddle__check_bytes(path, p->bytes, max_bytes, err);
  if (s == HEDDLE_OK) s = read_prepared(p, err);
  heddle_params *params = s == HEDDLE_OK ? heddle__params_new(path, err) : NULL;
  if (params == NULL) {
    unmap(p);
    return s == HEDDLE_OK ? HEDDLE_ENOMEM : s;
  }
  params->maps = p;
  params->unmap = unmap;
  if (p->carried.data != NULL) params->carried = &p->carried;
  s = read_list(params, p, path, err);
  if (s == HEDDLE_OK) *out = params;
  else heddle_params_release(params);
  return s;
}

heddle_status heddle__package_params(const char *path, uint64_t max_bytes, heddle_params **out, heddle_error *err) {
  package *p;
  *out = NULL;
  heddle_status s = map(path, &p, err);
  return s == HEDDLE_OK ? params_of(p, path, max_bytes, out, err) : s;
}

heddle_status heddle__package_memory(const void *data, uint64_t bytes, const char *name, uint64_t max_bytes,
                                     const char **text, size_t *text_bytes, heddle_params **params, heddle_error *err) {
  package *p;
  *params = NULL;
  heddle_status s = wrap(data, bytes, name, &p, err);
  if (s != HEDDLE_OK) return s;
  *text = (const char *)p->data + p->text;
  *text_bytes = (size_t)p->text_bytes;
  return params_of(p, name, max_bytes, params, err);
}

#else

static heddle_status left_out(heddle_error *err) {
  return heddle__left_out(err, "reader of packages", "HEDDLE_PACKAGES");
}

heddle_status heddle__package_text(const char *path, uint64_t max_bytes, char **out, size_t *bytes, heddle_error *err) {
  (void)path, (void)max_bytes, (void)out, (void)bytes;
  return left_out(err);
}

heddle_status heddle__package_params(const char *path, uint64_t max_bytes, heddle_params **out, heddle_error *err) {
  (void)path, (void)max_bytes, (void)out;
  return left_out(err);
}

heddle_status heddle__package_memory(const void *data, uint64_t bytes, const char *name, uint64_t max_bytes,
                                     const char **text, size_t *text_bytes, heddle_params **params, heddle_error *err) {
  (void)data, (void)bytes, (void)name, (void)max_bytes, (void)text, (void)text_bytes, (void)params;
  return left_out(err);
}

#endif
