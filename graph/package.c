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
#include "core/sealed.h"
#include "core/tensor.h"
#include "graph/file.h"
#include "graph/opschema.h"

/* A file that is mapped; what heddle_params.maps of a package is. */
typedef struct package {
  unsigned char *data;
  uint64_t bytes;
  uint64_t text, text_bytes, list, list_bytes, count; /* as its head says */
} package;

bool heddle__is_package(const char *path) {
  char head[8] = "";
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  ssize_t n = read(fd, head, sizeof head);
  close(fd);
  return n == sizeof head && memcmp(head, HEDDLE_PACK_MAGIC, sizeof head) == 0;
}

static uint64_t number(const unsigned char *at, unsigned n) {
  uint64_t value = 0;
  for (unsigned i = 0; i < n; i++) value |= (uint64_t)at[i] << (8 * i);
  return value;
}

static heddle_status bad(const char *path, uint64_t at, const char *expected, heddle_error *err) {
  return heddle__fail(err, HEDDLE_EFORMAT, "%s: byte %llu: expected %s", path, (unsigned long long)at, expected);
}

static heddle_status read_head(package *p, const char *path, heddle_error *err) {
  const unsigned char *d = p->data;
  if (p->bytes < HEDDLE__PACKAGE_HEAD || memcmp(d, HEDDLE_PACK_MAGIC, 8) != 0)
    return bad(path, 0, "the head of a package", err);
  if (number(d + 8, 4) != HEDDLE__PACKAGE_VERSION)
    return heddle__fail(err, HEDDLE_EUNSUPPORTED, "%s: it is a package of version %llu, and 1 is read here", path,
                        (unsigned long long)number(d + 8, 4));
  if (number(d + 16, 8) != p->bytes) return bad(path, 16, "the size of the file, which is cut off or too long", err);
  p->text = number(d + 24, 8);
  p->text_bytes = number(d + 32, 8);
  p->list = number(d + 40, 8);
  p->list_bytes = number(d + 48, 8);
  p->count = number(d + 56, 8);
  if (p->text > p->bytes || p->text_bytes > p->bytes - p->text) return bad(path, 24, "a graph inside of the file", err);
  if (p->list > p->bytes || p->list_bytes > p->bytes - p->list)
    return bad(path, 40, "a list of parameters inside of the file", err);
  if (p->count > p->list_bytes / 24 || p->count > INT32_MAX)
    return bad(path, 56, "no more parameters than their list can hold", err);
  return HEDDLE_OK;
}

static void unmap(void *maps) {
  package *p = maps;
  if (p->data != NULL) munmap(p->data, (size_t)p->bytes);
  heddle__free(p);
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
  else p->bytes = heddle__unsigned_bytes(fd, (uint64_t)info.st_size);
  if (s == HEDDLE_OK && p->bytes > 0) {
    void *data = mmap(NULL, (size_t)p->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data != MAP_FAILED) p->data = data;
    else s = heddle__fail(err, HEDDLE_EIO, "%s: it cannot be mapped: %s", path, strerror(errno));
  }
  if (fd >= 0) close(fd);
  if (s == HEDDLE_OK) s = read_head(p, path, err);
  if (s == HEDDLE_OK) *out = p;
  else unmap(p);
  return s;
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
  if (end - *at < 8 || number(d + *at, 8) > end - *at - 8) return bad(path, start, "the name of a parameter", err);
  uint64_t n = number(d + *at, 8);
  *at += 8;
  if (memchr(d + *at, 0, (size_t)n) != NULL) return bad(path, start, "a name without a zero byte", err);
  item->name = heddle__strndup((const char *)d + *at, (size_t)n);
  if (item->name == NULL) return heddle__no_memory(err, "the name of a parameter");
  *at += n;
  if (end - *at < 8) return bad(path, *at, "the dtype of a parameter", err);
  item->file_dtype = (heddle_dtype){d[*at], d[*at + 1], (uint16_t)number(d + *at + 2, 2)};
  v->ndim = (uint32_t)number(d + *at + 4, 4);
  if (item->file_dtype.lanes != 1 || item->file_dtype.bits == 0 || item->file_dtype.code == HEDDLE_DTYPE_HANDLE)
    return bad(path, *at, "a dtype with bits and one lane", err);
  *at += 8;
  if (v->ndim > HEDDLE__MAX_NDIM || end - *at < 8 * ((uint64_t)v->ndim + 1))
    return bad(path, *at, "a shape of 0 to 32 dimensions", err);
  v->shape = heddle__alloc(v->ndim, sizeof *v->shape);
  if (v->shape == NULL) return heddle__no_memory(err, "the shape of a parameter");
  for (uint32_t i = 0; i < v->ndim; i++, *at += 8) v->shape[i] = (int64_t)number(d + *at, 8);
  bool is_bool = item->file_dtype.code == HEDDLE_DTYPE_UINT && item->file_dtype.bits == 1;
  v->dtype = is_bool ? (heddle_dtype){HEDDLE_DTYPE_BOOL, 8, 1} : item->file_dtype;
  heddle_status s = heddle__tensor_bytes(v->dtype, v->ndim, v->shape, &v->bytes, err);
  if (s != HEDDLE_OK)
    return heddle__prefix(err, s == HEDDLE_EINVAL ? HEDDLE_EFORMAT : s, "%s: byte %llu: ", path,
                          (unsigned long long)start);
  uint64_t data = number(d + *at, 8);
  if (data % HEDDLE__PACKAGE_ALIGN != 0 || data > p->bytes || v->bytes > p->bytes - data)
    return bad(path, *at, "the bytes of a parameter inside of the file, aligned to 64", err);
  *at += 8;
  v->data = p->data + data;
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

heddle_status heddle__package_params(const char *path, uint64_t max_bytes, heddle_params **out, heddle_error *err) {
  package *p;
  *out = NULL;
  heddle_status s = map(path, &p, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__check_bytes(path, p->bytes, max_bytes, err);
  heddle_params *params = s == HEDDLE_OK ? heddle__params_new(path, err) : NULL;
  if (params == NULL) {
    unmap(p);
    return s == HEDDLE_OK ? HEDDLE_ENOMEM : s;
  }
  params->maps = p;
  params->unmap = unmap;
  s = read_list(params, p, path, err);
  if (s == HEDDLE_OK) *out = params;
  else heddle_params_release(params);
  return s;
}
