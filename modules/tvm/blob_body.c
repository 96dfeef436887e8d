/* modules/tvm/blob_body.c: the bodies of modules in a blob, by kind: device code with its list of kernels, models,
 * constants. Up to v0.21 a body has no length, so that a kind that is not known ends the reading. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "modules/tvm/blob_body.h"

#define ARRAY_MAGIC UINT64_C(0xDD5E40F096B4A13F)

heddle_status heddle__blob_bad(const heddle__cursor *c, const char *expected) {
  return heddle__fail(c->err, HEDDLE_EFORMAT, "its blob, byte %llu of %llu: expected %s",
                      (unsigned long long)(c->at - c->start), (unsigned long long)(c->end - c->start), expected);
}

static uint64_t number(heddle__cursor *c, unsigned n) {
  uint64_t value = 0;
  for (unsigned i = 0; i < n; i++) value |= (uint64_t)c->at[i] << (8 * i);
  c->at += n;
  return value;
}

heddle_status heddle__take_u64(heddle__cursor *c, const char *what, uint64_t *out) {
  if (heddle__left(c) < 8) return heddle__blob_bad(c, what);
  *out = number(c, 8);
  return HEDDLE_OK;
}

heddle_status heddle__take_count(heddle__cursor *c, uint64_t least, const char *what, uint64_t *out) {
  heddle_status s = heddle__take_u64(c, what, out);
  if (s != HEDDLE_OK || (*out <= heddle__left(c) / least && (*out < UINT32_MAX || least == 1))) return s;
  c->at -= 8;
  return heddle__blob_bad(c, what);
}

heddle_status heddle__take_string(heddle__cursor *c, const char *what, heddle__span *out) {
  heddle_status s = heddle__take_count(c, 1, what, &out->bytes);
  if (s != HEDDLE_OK) return s;
  out->data = c->at;
  c->at += out->bytes;
  return HEDDLE_OK;
}

heddle_status heddle__take_name(heddle__cursor *c, const char *what, char **out) {
  heddle__span text;
  heddle_status s = heddle__take_string(c, what, &text);
  if (s != HEDDLE_OK) return s;
  if (text.bytes > 0 && memchr(text.data, 0, (size_t)text.bytes) != NULL) return heddle__blob_bad(c, what);
  *out = heddle__strndup((const char *)text.data, (size_t)text.bytes);
  return *out != NULL ? HEDDLE_OK : heddle__no_memory(c->err, "a compiled library's modules");
}

/* A count of strings, passed over. n may be NULL. */
static heddle_status pass_strings(heddle__cursor *c, const char *what, uint64_t *n) {
  uint64_t count = 0;
  heddle__span text;
  heddle_status s = heddle__take_count(c, 8, what, &count);
  for (uint64_t i = 0; i < count && s == HEDDLE_OK; i++) s = heddle__take_string(c, what, &text);
  if (n != NULL) *n = count;
  return s;
}

/* One tensor: magic, reserved, device, ndim, dtype, shape, size, bytes. What is in it is checked when it is used. */
static heddle_status pass_array(heddle__cursor *c) {
  if (heddle__left(c) < 40) return heddle__blob_bad(c, "a tensor: 40 bytes and more");
  if (number(c, 8) != ARRAY_MAGIC) {
    c->at -= 8;
    return heddle__blob_bad(c, "a tensor's first bytes");
  }
  c->at += 16;
  uint64_t ndim = number(c, 4);
  c->at += 4;
  if (ndim > 32 || heddle__left(c) < 8 * (ndim + 1)) return heddle__blob_bad(c, "a tensor's shape");
  c->at += 8 * ndim;
  uint64_t bytes = number(c, 8);
  if (bytes > heddle__left(c)) {
    c->at -= 8;
    return heddle__blob_bad(c, "no more data of a tensor than bytes that are left");
  }
  c->at += bytes;
  return HEDDLE_OK;
}

static heddle_status pass_arrays(heddle__cursor *c, uint64_t n) {
  heddle_status s = HEDDLE_OK;
  for (uint64_t i = 0; i < n && s == HEDDLE_OK; i++) s = pass_array(c);
  return s;
}

/* ---- device code */

/* name, argument types, launch tags, and since v0.21 one number an argument. The map's key is the kernel's name. */
static heddle_status read_kernel(heddle__cursor *c, heddle__kernel *k) {
  heddle__span unused;
  uint64_t n = 0, tags = 0;
  heddle_status s = heddle__take_name(c, "a kernel's name", &k->name);
  if (s == HEDDLE_OK) s = heddle__take_string(c, "a kernel's second name", &unused);
  if (s == HEDDLE_OK) s = heddle__take_count(c, 4, "the types of a kernel's arguments", &n);
  if (s != HEDDLE_OK) return s;
  k->n_args = (uint32_t)n;
  k->types = c->at;
  c->at += 4 * n;
  k->tags = c->at + 8;
  s = pass_strings(c, "a kernel's launch tags", &tags);
  k->n_tags = (uint32_t)tags;
  if (s != HEDDLE_OK || c->layout == HEDDLE__BLOB_PACKED) return s;
  s = heddle__take_count(c, 4, "a kernel's argument tags", &n);
  if (s == HEDDLE_OK) c->at += 4 * n;
  return s;
}

static heddle_status read_kernels(heddle__cursor *c, heddle__submodule *m) {
  uint64_t n = 0;
  heddle_status s = heddle__take_count(c, 32, "a list of kernels", &n);
  if (s != HEDDLE_OK) return s;
  m->kernels = heddle__alloc((size_t)n, sizeof *m->kernels);
  if (m->kernels == NULL) return heddle__no_memory(c->err, "a compiled library's kernels");
  m->n_kernels = (uint32_t)n;
  for (uint64_t i = 0; i < n && s == HEDDLE_OK; i++) s = read_kernel(c, &m->kernels[i]);
  return s;
}

/* Since v0.8 the source of each kernel begins with a line that names it. */
static heddle_status check_source(const heddle__cursor *c, const heddle__submodule *m) {
  static const char mark[] = "// Function: ";
  const char *at = (const char *)m->code.data, *end = at + m->code.bytes;
  uint32_t marks = 0;
  while ((size_t)(end - at) >= sizeof mark - 1) {
    bool known = false;
    if (memcmp(at, mark, sizeof mark - 1) == 0) {
      const char *name = at + sizeof mark - 1;
      for (uint32_t i = 0; i < m->n_kernels && !known; i++) {
        size_t n = strlen(m->kernels[i].name);
        known = n < (size_t)(end - name) && memcmp(name, m->kernels[i].name, n) == 0 &&
                (name[n] == '\n' || name[n] == '\r');
      }
      marks++;
      if (!known)
        return heddle__fail(c->err, HEDDLE_EFORMAT,
                            "its blob: the source of module '%s' has a kernel that its list has not", m->kind);
    }
    const char *line = memchr(at, '\n', (size_t)(end - at));
    if (line == NULL) break;
    at = line + 1;
  }
  if (marks == 0 || marks == m->n_kernels) return HEDDLE_OK;
  return heddle__fail(c->err, HEDDLE_EFORMAT, "its blob: module '%s' lists %u kernels, its source has %u", m->kind,
                      (unsigned)m->n_kernels, (unsigned)marks);
}

static heddle_status read_code(heddle__cursor *c, heddle__submodule *m) {
  heddle_status s = heddle__take_name(c, "the format of a module's code", &m->format);
  if (s == HEDDLE_OK) s = read_kernels(c, m);
  if (s == HEDDLE_OK) s = heddle__take_string(c, "a module's code", &m->code);
  if (s == HEDDLE_OK && strcmp(m->format, "cl") == 0) s = check_source(c, m);
  return s;
}

/* A shader: flags, of which the words themselves tell as much, and SPIR-V. k, which may be NULL, is whose it is. */
static heddle_status take_shader(heddle__cursor *c, heddle__kernel *k) {
  uint64_t words = 0;
  if (heddle__left(c) < 4) return heddle__blob_bad(c, "a shader's flags");
  c->at += 4;
  heddle_status s = heddle__take_count(c, 4, "a shader's words", &words);
  if (s != HEDDLE_OK) return s;
  if (k != NULL) {
    k->words = c->at;
    k->n_words = words;
  }
  c->at += 4 * words;
  return s;
}

static heddle__kernel *kernel_of(const heddle__submodule *m, const heddle__span *name) {
  for (uint32_t i = 0; i < m->n_kernels; i++)
    if (strlen(m->kernels[i].name) == name->bytes &&
        (name->bytes == 0 || memcmp(m->kernels[i].name, name->data, (size_t)name->bytes) == 0))
      return &m->kernels[i];
  return NULL;
}

/* A count of pairs of kernel and shader. wrapped: the shader has a length before it (v0.24 and later). */
static heddle_status take_shaders(heddle__cursor *c, const heddle__submodule *m, bool wrapped) {
  uint64_t n = 0, bytes = 0;
  heddle__span name;
  heddle_status s = heddle__take_count(c, 16, "a list of shaders", &n);
  for (uint64_t i = 0; i < n && s == HEDDLE_OK; i++) {
    s = heddle__take_string(c, "a shader's name", &name);
    if (s == HEDDLE_OK && wrapped) s = heddle__take_count(c, 1, "a shader", &bytes);
    if (s != HEDDLE_OK) return s;
    const unsigned char *begin = c->at;
    s = take_shader(c, kernel_of(m, &name));
    if (s == HEDDLE_OK && wrapped && (uint64_t)(c->at - begin) != bytes) s = heddle__blob_bad(c, "a shader's end");
  }
  return s;
}

static heddle_status read_vulkan(heddle__cursor *c, heddle__submodule *m) {
  heddle_status s = heddle__take_name(c, "the format of a module's code", &m->format);
  if (s == HEDDLE_OK) s = read_kernels(c, m);
  if (s != HEDDLE_OK) return s;
  m->code.data = c->at;
  s = take_shaders(c, m, false);
  if (c->layout == HEDDLE__BLOB_FFI && (s == HEDDLE_EFORMAT || c->at != c->end)) { /* v0.24 and later */
    for (uint32_t i = 0; i < m->n_kernels; i++) m->kernels[i].words = NULL;
    c->at = m->code.data;
    s = take_shaders(c, m, true);
  }
  m->code.bytes = (uint64_t)(c->at - m->code.data);
  return s;
}

/* A count of pairs of kernel and source. */
static heddle_status pass_sources(heddle__cursor *c) {
  uint64_t n = 0;
  heddle__span text;
  heddle_status s = heddle__take_count(c, 16, "a list of shaders", &n);
  for (uint64_t i = 0; i < n && s == HEDDLE_OK; i++) {
    s = heddle__take_string(c, "a shader's name", &text);
    if (s == HEDDLE_OK) s = heddle__take_string(c, "a shader", &text);
  }
  return s;
}

/* Two bodies under one name: version, sources by kernel, list, format; or as other device code. */
static heddle_status read_metal(heddle__cursor *c, heddle__submodule *m) {
  const unsigned char *begin = c->at;
  heddle__span version;
  heddle_status s = heddle__take_string(c, "a format or a version", &version);
  if (s == HEDDLE_OK && (version.bytes == 0 || version.data[0] < '0' || version.data[0] > '9')) {
    c->at = begin;
    if (c->layout != HEDDLE__BLOB_FFI) return read_code(c, m);
    s = heddle__take_name(c, "the format of a module's code", &m->format);
    if (s == HEDDLE_OK) s = read_kernels(c, m);
    m->code.data = c->at;
    if (s == HEDDLE_OK) s = pass_sources(c);
    if (s == HEDDLE_EFORMAT || c->at != c->end) { /* one source, not one a kernel */
      c->at = m->code.data;
      return heddle__take_string(c, "a module's code", &m->code);
    }
    m->code.bytes = (uint64_t)(c->at - m->code.data);
    return s;
  }
  m->code.data = c->at;
  if (s == HEDDLE_OK) s = pass_sources(c);
  m->code.bytes = (uint64_t)(c->at - m->code.data);
  if (s == HEDDLE_OK) s = read_kernels(c, m);
  return s == HEDDLE_OK ? heddle__take_name(c, "the format of a module's code", &m->format) : s;
}

/* ---- the rest */

static heddle_status read_names(heddle__cursor *c, heddle__submodule *m, uint64_t n) {
  uint64_t again = 0;
  m->names.data = c->at;
  heddle_status s = pass_strings(c, "the names of tensors", &again);
  m->names.bytes = (uint64_t)(c->at - m->names.data);
  if (s == HEDDLE_OK && again != n) s = heddle__blob_bad(c, "as many names as tensors");
  m->arrays.data = c->at;
  if (s == HEDDLE_OK) s = pass_arrays(c, n);
  m->arrays.bytes = (uint64_t)(c->at - m->arrays.data);
  m->n_arrays = n;
  return s;
}

static heddle_status read_model(heddle__cursor *c, heddle__submodule *m, bool has_graph) {
  uint64_t n = 0;
  heddle_status s = has_graph ? heddle__take_string(c, "a model's graph", &m->graph) : HEDDLE_OK;
  if (s == HEDDLE_OK) s = heddle__take_count(c, 48, "a count of tensors", &n);
  if (s == HEDDLE_OK) s = read_names(c, m, n);
  return s == HEDDLE_OK ? heddle__take_name(c, "a model's name", &m->model_name) : s;
}

static heddle_status read_constants(heddle__cursor *c, heddle__submodule *m) {
  uint64_t n = 0, names = 0;
  m->names.data = c->at;
  heddle_status s = pass_strings(c, "the names of constants", &names);
  m->names.bytes = (uint64_t)(c->at - m->names.data);
  if (s == HEDDLE_OK) s = heddle__take_count(c, 48, "a count of tensors", &m->n_arrays);
  if (s == HEDDLE_OK && names != m->n_arrays) s = heddle__blob_bad(c, "as many names as constants");
  m->arrays.data = c->at;
  if (s == HEDDLE_OK) s = pass_arrays(c, m->n_arrays);
  m->arrays.bytes = (uint64_t)(c->at - m->arrays.data);
  m->symbols.data = c->at + 8;
  if (s == HEDDLE_OK) s = pass_strings(c, "the symbols that take constants", &m->n_symbols);
  if (s != HEDDLE_OK) return s;
  m->symbols.bytes = (uint64_t)(c->at - m->symbols.data);
  s = heddle__take_count(c, 8, "a list of constants for each symbol", &n);
  if (s == HEDDLE_OK && n != m->n_symbols) s = heddle__blob_bad(c, "as many lists of constants as symbols");
  m->takes.data = c->at;
  for (uint64_t i = 0; i < n && s == HEDDLE_OK; i++) s = pass_strings(c, "a symbol's constants", NULL);
  m->takes.bytes = (uint64_t)(c->at - m->takes.data);
  return s;
}

static heddle_status read_static_library(heddle__cursor *c, heddle__submodule *m) {
  heddle_status s = heddle__take_string(c, "an object file", &m->code);
  return s == HEDDLE_OK ? pass_strings(c, "the functions of an object file", NULL) : s;
}

static heddle_status read_c(heddle__cursor *c, heddle__submodule *m) {
  heddle_status s = heddle__take_string(c, "C source", &m->code);
  if (s == HEDDLE_OK) s = heddle__take_name(c, "the format of a module's code", &m->format);
  if (s == HEDDLE_OK) s = pass_strings(c, "the functions of C source", NULL);
  return s == HEDDLE_OK ? pass_strings(c, "the constants of C source", NULL) : s;
}

static bool is_one_of(const char *word, const char *list) {
  size_t n = strlen(word);
  for (const char *at = list; n > 0 && (at = strstr(at, word)) != NULL; at += n)
    if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0')) return true;
  return false;
}

static heddle_status read_foreign(heddle__cursor *c, heddle__submodule *m) {
  uint64_t left = heddle__left(c), used = left;
  if (c->loaders == NULL)
    return heddle__fail(c->err, HEDDLE_EUNSUPPORTED, "it carries a module of kind '%.100s', which nothing here reads",
                        m->kind);
  m->code.data = c->at;
  heddle_status s = c->loaders->load(m->kind, c->at, left, &used, &m->loaded, c->err);
  if (s != HEDDLE_OK) return s;
  if (used > left)
    return heddle__fail(c->err, HEDDLE_EFORMAT,
                        "the loader of modules of kind '%.100s' says that it used %llu bytes, and there are %llu",
                        m->kind, (unsigned long long)used, (unsigned long long)left);
  m->code.bytes = used;
  c->at += c->layout == HEDDLE__BLOB_FFI ? left : used;
  return s;
}

bool heddle__blob_knows(const char *kind) {
  return is_one_of(kind,
                   "_lib _import_tree metadata_module cuda opencl hip hsaco rocm opengl sdaccel aocl webgpu vulkan "
                   "metal GraphExecutorFactory GraphRuntimeFactory AotExecutorFactory const_loader metadata "
                   "static_library c");
}

heddle_status heddle__blob_body(heddle__cursor *c, heddle__submodule *m) {
  const char *kind = m->kind;
  if (is_one_of(kind, "_lib metadata_module")) return HEDDLE_OK;
  if (is_one_of(kind, "cuda opencl hip hsaco rocm opengl sdaccel aocl webgpu")) return read_code(c, m);
  if (strcmp(kind, "vulkan") == 0) return read_vulkan(c, m);
  if (strcmp(kind, "metal") == 0) return read_metal(c, m);
  if (is_one_of(kind, "GraphExecutorFactory GraphRuntimeFactory")) return read_model(c, m, true);
  if (strcmp(kind, "AotExecutorFactory") == 0) return read_model(c, m, false);
  if (is_one_of(kind, "const_loader metadata")) return read_constants(c, m);
  if (strcmp(kind, "static_library") == 0) return read_static_library(c, m);
  if (strcmp(kind, "c") == 0) return read_c(c, m);
  return read_foreign(c, m);
}
