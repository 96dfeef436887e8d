/* core/npy.c: tensors from and to .npy files, numpy's own format, versions 1 to 3, little-endian.
 * The header is a Python dictionary; exactly the three keys that numpy writes are understood, in any order. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/tensor.h"

#define MAX_HEADER 65536
#define FORMAT "\x93NUMPY"

typedef struct header {
  heddle_dtype dtype;
  bool fortran;
  uint32_t ndim;
  int64_t shape[HEDDLE__TENSOR_MAX_NDIM];
  bool has_descr, has_order, has_shape;
} header;

/* Letters of numpy's type strings; the size in bytes follows them. */
static const struct letter {
  char letter;
  uint8_t code;
  const char *sizes;
} letters[] = {{'b', HEDDLE_DTYPE_BOOL, "1"},
               {'i', HEDDLE_DTYPE_INT, "1 2 4 8"},
               {'u', HEDDLE_DTYPE_UINT, "1 2 4 8"},
               {'f', HEDDLE_DTYPE_FLOAT, "2 4 8"},
               {'c', HEDDLE_DTYPE_COMPLEX, "8 16"}};

/* ---------------------------------------------------------------- the header's text */

typedef struct reader {
  const char *at, *end, *name;
  heddle_error *err;
} reader;

static heddle_status bad(reader *r, const char *expected) {
  char near[24];
  size_t n = (size_t)(r->end - r->at) < sizeof near - 1 ? (size_t)(r->end - r->at) : sizeof near - 1;
  for (size_t i = 0; i < n; i++) near[i] = r->at[i] >= ' ' && r->at[i] < 127 ? r->at[i] : '?';
  near[n] = '\0';
  return heddle__fail(r->err, HEDDLE_EFORMAT, "%s: npy header at '%s': expected %s", r->name, near, expected);
}

static void skip_space(reader *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r')) r->at++;
}

static bool take(reader *r, const char *word) {
  skip_space(r);
  size_t n = strlen(word);
  if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0) return false;
  r->at += n;
  return true;
}

/* A quoted string without escapes, into out[0..size). */
static heddle_status quoted(reader *r, char *out, size_t size) {
  skip_space(r);
  if (r->at == r->end || (*r->at != '\'' && *r->at != '"')) return bad(r, "a quoted string");
  const char *from = r->at + 1, *to = memchr(from, *r->at, (size_t)(r->end - from));
  if (to == NULL || (size_t)(to - from) >= size) return bad(r, "a short quoted string");
  memcpy(out, from, (size_t)(to - from));
  out[to - from] = '\0';
  r->at = to + 1;
  return HEDDLE_OK;
}

static heddle_status read_descr(reader *r, header *h) {
  char text[16] = "";
  skip_space(r);
  if (r->at < r->end && *r->at == '[') return bad(r, "a plain type such as '<f4'; records are not read");
  heddle_status s = quoted(r, text, sizeof text);
  if (s != HEDDLE_OK) return s;
  char shown[16];
  strcpy(shown, text);
  for (char *c = shown; *c != '\0'; c++)
    if (*c < ' ' || *c > '~') *c = '?';
  size_t prefix = text[0] == '<' || text[0] == '|' || text[0] == '>' || text[0] == '=';
  for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++) {
    const char *size = text + prefix + 1, *found;
    if (text[prefix] != letters[i].letter || size[0] == '\0' || strchr(size, ' ') != NULL) continue;
    found = strstr(letters[i].sizes, size);
    if (found == NULL || (found != letters[i].sizes && found[-1] != ' ') ||
        (found[strlen(size)] != ' ' && found[strlen(size)] != '\0'))
      continue;
    int bytes = size[0] == '1' && size[1] == '6' ? 16 : size[0] - '0';
    if (bytes > 1 && text[0] != '<')
      return heddle__fail(r->err, HEDDLE_EFORMAT,
                          "%s: npy type '%s': only little-endian data is read; save it with "
                          "astype('<...')",
                          r->name, shown);
    h->dtype = (heddle_dtype){letters[i].code, (uint8_t)(bytes * 8), 1};
    h->has_descr = true;
    return HEDDLE_OK;
  }
  return heddle__fail(r->err, HEDDLE_EFORMAT,
                      "%s: npy type '%s' is not read; expected one such as '<f4', '<i8' or "
                      "'|b1'",
                      r->name, shown);
}

static heddle_status read_shape(reader *r, header *h) {
  if (!take(r, "(")) return bad(r, "'(' of the shape");
  while (!take(r, ")")) {
    skip_space(r);
    int64_t n = 0;
    const char *from = r->at;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
      if (n > (INT64_MAX - 9) / 10) return bad(r, "a dimension below 2^63");
      n = n * 10 + (*r->at - '0');
    }
    if (r->at == from) return bad(r, "a dimension");
    if (h->ndim == HEDDLE__TENSOR_MAX_NDIM) return bad(r, "at most 32 dimensions");
    h->shape[h->ndim++] = n;
    (void)take(r, "L"); /* Python 2 */
    if (!take(r, ",")) {
      if (!take(r, ")")) return bad(r, "',' or ')'");
      break;
    }
  }
  h->has_shape = true;
  return HEDDLE_OK;
}

static heddle_status read_entry(reader *r, header *h) {
  char key[24];
  heddle_status s = quoted(r, key, sizeof key);
  if (s != HEDDLE_OK) return s;
  if (!take(r, ":")) return bad(r, "':'");
  if (strcmp(key, "descr") == 0 && !h->has_descr) return read_descr(r, h);
  if (strcmp(key, "shape") == 0 && !h->has_shape) return read_shape(r, h);
  if (strcmp(key, "fortran_order") != 0 || h->has_order)
    return bad(r, "each of the keys descr, fortran_order, shape once");
  h->has_order = true;
  h->fortran = take(r, "True");
  return h->fortran || take(r, "False") ? HEDDLE_OK : bad(r, "True or False");
}

static heddle_status parse_header(const char *text, size_t bytes, const char *name, header *h, heddle_error *err) {
  reader r = {text, text + bytes, name, err};
  if (!take(&r, "{")) return bad(&r, "'{'");
  while (!take(&r, "}")) {
    heddle_status s = read_entry(&r, h);
    if (s != HEDDLE_OK) return s;
    if (!take(&r, ",")) {
      if (!take(&r, "}")) return bad(&r, "',' or '}'");
      break;
    }
  }
  skip_space(&r);
  if (r.at != r.end) return bad(&r, "the header's end");
  if (!h->has_descr || !h->has_order || !h->has_shape) return bad(&r, "the keys descr, fortran_order and shape");
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- reading */

static heddle_status cut_short(const char *name, const char *what, heddle_error *err) {
  return heddle__fail(err, HEDDLE_EFORMAT, "%s: not a whole .npy file: it ends within %s", name, what);
}

static heddle_status read_header(FILE *file, const char *name, header *h, heddle_error *err) {
  unsigned char start[12];
  if (fread(start, 1, 10, file) != 10) return cut_short(name, "its first 10 bytes", err);
  if (memcmp(start, FORMAT, 6) != 0)
    return heddle__fail(err, HEDDLE_EFORMAT, "%s: not an .npy file: it begins otherwise than \\x93NUMPY", name);
  if (start[6] < 1 || start[6] > 3)
    return heddle__fail(err, HEDDLE_EFORMAT, "%s: npy format %u.%u, expected 1, 2 or 3", name, start[6], start[7]);
  size_t bytes = start[8] | (size_t)start[9] << 8;
  if (start[6] > 1) {
    if (fread(start + 10, 1, 2, file) != 2) return cut_short(name, "its first 12 bytes", err);
    bytes |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
  }
  if (bytes > MAX_HEADER)
    return heddle__fail(err, HEDDLE_ELIMIT, "%s: npy header of %zu bytes, at most %d are read", name, bytes,
                        MAX_HEADER);
  char *text = heddle__alloc(bytes, 1);
  if (text == NULL) return heddle__no_memory(err, "the header of an .npy file");
  heddle_status s = fread(text, 1, bytes, file) == bytes ? parse_header(text, bytes, name, h, err)
                                                         : cut_short(name, "its header", err);
  heddle__free(text);
  return s;
}

/* Bytes from here to the end of the stream, so that nothing is allocated that the file cannot fill. */
static heddle_status bytes_left(FILE *file, const char *name, uint64_t *out, heddle_error *err) {
  off_t here = ftello(file);
  if (here < 0 || fseeko(file, 0, SEEK_END) != 0) goto fail;
  off_t end = ftello(file);
  if (end < here || fseeko(file, here, SEEK_SET) != 0) goto fail;
  *out = (uint64_t)(end - here);
  return HEDDLE_OK;
fail:
  return heddle__fail(err, HEDDLE_EIO, "%s: an .npy file must be a regular file, not a pipe", name);
}

/* The same elements, whose strides are those of Fortran order, copied to C order. */
static heddle_status from_fortran(const header *h, heddle_tensor *raw, heddle_tensor *out, heddle_error *err) {
  int64_t strides[HEDDLE__TENSOR_MAX_NDIM], step = 1;
  heddle_tensor *view = NULL;
  for (uint32_t i = 0; i < h->ndim; i++) {
    strides[i] = step;
    step *= h->shape[i];
  }
  heddle_status s = heddle_tensor_wrap(raw->data, h->dtype, h->shape, h->ndim, strides, NULL, NULL, &view, err);
  if (s == HEDDLE_OK) s = heddle_tensor_copy(out, view, err);
  heddle_tensor_release(view);
  return s;
}

heddle_status heddle__npy_read(FILE *file, const char *name, heddle_tensor **out, heddle_error *err) {
  header h = {0};
  uint64_t bytes = 0, left = 0;
  heddle_tensor *raw = NULL, *sorted = NULL;
  *out = NULL;
  heddle_status s = read_header(file, name, &h, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__shape_bytes(h.dtype, h.ndim, h.shape, NULL, &bytes, err);
  if (s != HEDDLE_OK) return heddle__prefix(err, s, "%s: ", name);
  s = bytes_left(file, name, &left, err);
  if (s == HEDDLE_OK && left != bytes)
    s = heddle__fail(err, HEDDLE_EFORMAT, "%s: its header says %llu bytes of data, and it has %llu", name,
                     (unsigned long long)bytes, (unsigned long long)left);
  if (s == HEDDLE_OK) s = heddle_tensor_create(NULL, h.dtype, h.shape, h.ndim, &raw, err);
  if (s == HEDDLE_OK && bytes > 0 && fread(raw->data, 1, (size_t)bytes, file) != bytes)
    s = heddle__fail(err, HEDDLE_EIO, "%s: could not be read: %s", name, strerror(errno));
  if (s == HEDDLE_OK && h.fortran && h.ndim > 1 && bytes > 0) {
    s = heddle_tensor_create(NULL, h.dtype, h.shape, h.ndim, &sorted, err);
    if (s == HEDDLE_OK) s = from_fortran(&h, raw, sorted, err);
  }
  if (s == HEDDLE_OK) *out = sorted != NULL ? sorted : raw;
  if (*out != sorted) heddle_tensor_release(sorted);
  if (*out != raw) heddle_tensor_release(raw);
  return s;
}

heddle_status heddle_tensor_load_npy(const char *path, heddle_tensor **out, heddle_error *err) {
  *out = NULL;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (fd < 0) return heddle__fail(err, HEDDLE_EIO, "%s: %s", path, strerror(errno));
  bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  FILE *file = regular ? fdopen(fd, "rb") : NULL;
  if (file == NULL) {
    close(fd);
    return heddle__fail(err, HEDDLE_EIO, "%s: %s", path, regular ? strerror(errno) : "not a regular file");
  }
  heddle_status s = heddle__npy_read(file, path, out, err);
  fclose(file);
  return s;
}

/* ---------------------------------------------------------------- writing */

static heddle_status describe(const heddle_tensor *t, char out[8], heddle_error *err) {
  heddle_dtype d = t->dtype;
  if (d.code == HEDDLE_DTYPE_BFLOAT && d.bits == 16) d.code = HEDDLE_DTYPE_UINT;
  for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++) {
    char size[4];
    if (letters[i].code != d.code || d.lanes != 1 || d.bits % 8 != 0) continue;
    snprintf(size, sizeof size, "%u", (unsigned)d.bits / 8);
    const char *found = strstr(letters[i].sizes, size);
    if (found == NULL || (found != letters[i].sizes && found[-1] != ' ')) continue;
    snprintf(out, 8, "%c%c%s", d.bits == 8 ? '|' : '<', letters[i].letter, size);
    return HEDDLE_OK;
  }
  char name[32];
  heddle__dtype_name(t->dtype, name);
  return heddle__fail(err, HEDDLE_EUNSUPPORTED, "numpy has no type for %s; .npy files cannot hold it", name);
}

/* A version 1 header, padded so that the data begins at a multiple of 64; its length, which is at most 896. */
static size_t make_header(const heddle_tensor *t, const char *descr, char out[1024]) {
  int n = snprintf(out + 10, 64, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr) + 10;
  for (uint32_t i = 0; i < t->ndim; i++)
    n += snprintf(out + n, 32, "%s%lld", i > 0 ? ", " : "", (long long)t->shape[i]);
  n += snprintf(out + n, 16, "%s), }", t->ndim == 1 ? "," : "");
  while ((n + 1) % 64 != 0) out[n++] = ' ';
  out[n++] = '\n';
  memcpy(out, FORMAT, 6);
  out[6] = 1;
  out[7] = 0;
  out[8] = (char)((n - 10) & 255);
  out[9] = (char)((n - 10) >> 8);
  return (size_t)n;
}

static heddle_status write_file(const char *path, const char *head, size_t head_bytes, const void *data, uint64_t bytes,
                                heddle_error *err) {
  FILE *file = NULL;
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), problem = 0;
  if (fd >= 0) file = fdopen(fd, "wb");
  if (file == NULL) {
    problem = errno;
    if (fd >= 0) close(fd);
  } else {
    if (fwrite(head, 1, head_bytes, file) != head_bytes || (bytes > 0 && fwrite(data, 1, (size_t)bytes, file) != bytes))
      problem = errno != 0 ? errno : EIO;
    if (fclose(file) != 0 && problem == 0) problem = errno;
  }
  return problem == 0 ? HEDDLE_OK
                      : heddle__fail(err, HEDDLE_EIO, "%s: could not be written: %s", path, strerror(problem));
}

heddle_status heddle_tensor_save_npy(const heddle_tensor *t, const char *path, heddle_error *err) {
  char head[1024], descr[8];
  void *copy = NULL;
  heddle_status s = describe(t, descr, err);
  if (s != HEDDLE_OK) return heddle__prefix(err, s, "%s: ", path);
  if (t->bytes > 0 && (t->dev != NULL || !t->contiguous)) {
    copy = heddle__alloc_aligned((size_t)t->bytes, 64);
    s = copy != NULL ? heddle__tensor_read(t, copy, err) : heddle__no_memory(err, "a tensor to be saved");
  }
  if (s == HEDDLE_OK)
    s = write_file(path, head, make_header(t, descr, head), copy != NULL ? copy : t->data, t->bytes, err);
  heddle__free(copy);
  return s;
}
