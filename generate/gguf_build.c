/* generate/gguf_build.c: writes a graph as JSON, and parameters that are the file's bytes: float32, and matrices in blocks. */
#include "generate/gguf_build.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/sealed.h"
#include "core/tensor.h"
#include "plugins/common/blocks.h"

/* ---- the file */

typedef struct mapping {
  void *data;
  size_t bytes;
} mapping;

static void unmap(void *maps) {
  mapping *m = maps;
  munmap(m->data, m->bytes);
  heddle__free(m);
}

static void keep(void *maps, const void *data, uint64_t bytes) {
  (void)maps, (void)data, (void)bytes;
}

static bool nowhere(void *maps, const void *data, uint64_t bytes, heddle__file_place *out) {
  (void)maps, (void)data, (void)bytes, (void)out;
  return false;
}

static heddle_status map(const heddle__sealed *file, mapping *m, heddle_error *err) {
  struct stat info;
  const int fd = open(file->use, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    if (fd >= 0) close(fd);
    return heddle__fail(err, HEDDLE_EIO, "%s: it cannot be read: %s", file->name,
                        fd < 0 ? strerror(errno) : "no regular file");
  }
  m->bytes = (size_t)info.st_size;
  m->data = m->bytes > 0 ? mmap(NULL, m->bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  close(fd);
  if (m->bytes == 0) return heddle__fail(err, HEDDLE_EFORMAT, "%s: the file is empty", file->name);
  return m->data != MAP_FAILED ? HEDDLE_OK : heddle__no_memory(err, "a GGUF file");
}

heddle_status heddle__gguf_open(heddle_context *ctx, const char *path, const heddle_model_options *options,
                                heddle__gguf_build *b, heddle_error *err) {
  heddle__sealed file = {.file = -1};
  mapping *m = heddle__alloc(1, sizeof *m);
  if (m == NULL) return heddle__no_memory(err, "a GGUF file");
  heddle_status s = heddle__trust_given(options->trust, err);
  const heddle__file_access access = heddle__access_of(ctx, options->trust, options->key);
  if (s == HEDDLE_OK) s = heddle__sealed_open(path, &access, UINT64_MAX / 2, &file, err);
  if (s == HEDDLE_OK) s = map(&file, m, err);
  heddle__sealed_close(&file);
  if (s != HEDDLE_OK) {
    heddle__free(m);
    return s;
  }
  b->params = heddle__params_new(path, err);
  if (b->params == NULL) {
    unmap(m);
    return HEDDLE_ENOMEM;
  }
  b->params->maps = m;
  b->params->unmap = unmap;
  b->params->forget = keep;
  b->params->where = nowhere;
  s = heddle__gguf_parse(m->data, m->bytes, path, b->file, err);
  if (s != HEDDLE_OK) heddle_params_release(b->params);
  return s;
}

/* ---- nodes */

/* Of so many results, whose types and shapes are given, or are not known. */
static uint32_t add_node(heddle__gguf_build *b, const char *type, const char *shape, uint32_t results) {
  for (uint32_t i = 0; i < results; i++) {
    const char *comma = b->n_results++ > 0 ? ", " : "";
    heddle__say(&b->types, type != NULL ? "%s\"%s\"" : "%s%s", comma, type != NULL ? type : "null");
    heddle__say_text(&b->shapes, comma);
    heddle__say_text(&b->shapes, shape != NULL ? shape : "null");
  }
  heddle__say(&b->rows, ", %u", (unsigned)b->n_results);
  return b->n++;
}

uint32_t heddle__gguf_input(heddle__gguf_build *b, const char *name, const char *dtype, const char *shape) {
  if (b->status != HEDDLE_OK) return 0;
  heddle__say_text(&b->nodes, b->n > 0 ? ",\n{\"op\": \"null\", \"name\": " : "{\"op\": \"null\", \"name\": ");
  heddle__say_string(&b->nodes, name);
  heddle__say_text(&b->nodes, ", \"inputs\": []}");
  heddle__say(&b->args, "%s%u", b->n_args++ > 0 ? ", " : "", (unsigned)b->n);
  return add_node(b, dtype, shape, 1);
}

static uint32_t write_node(heddle__gguf_build *b, bool own, uint32_t results, const char *op, const char *name,
                           const char *attrs, int n, va_list inputs) {
  char given[32];
  if (b->status != HEDDLE_OK) return 0;
  snprintf(given, sizeof given, "node_%u", (unsigned)b->n);
  heddle__say(&b->nodes, "%s{\"op\": \"%s\", \"name\": \"%s\", %s\"attrs\": {", b->n > 0 ? ",\n" : "", op,
              name != NULL ? name : given, own ? "\"domain\": \"heddle\", " : "");
  heddle__say_text(&b->nodes, attrs);
  heddle__say_text(&b->nodes, "}, \"inputs\": [");
  for (int i = 0; i < n; i++)
    heddle__say(&b->nodes, "%s[%u, 0, 0]", i > 0 ? ", " : "", (unsigned)va_arg(inputs, uint32_t));
  heddle__say_text(&b->nodes, "]}");
  return add_node(b, NULL, NULL, results);
}

uint32_t heddle__gguf_node(heddle__gguf_build *b, const char *op, const char *name, const char *attrs, int n, ...) {
  va_list inputs;
  va_start(inputs, n);
  const uint32_t node = write_node(b, false, 1, op, name, attrs, n, inputs);
  va_end(inputs);
  return node;
}

uint32_t heddle__gguf_own_node(heddle__gguf_build *b, uint32_t results, const char *op, const char *name,
                               const char *attrs, int n, ...) {
  va_list inputs;
  va_start(inputs, n);
  const uint32_t node = write_node(b, true, results, op, name, attrs, n, inputs);
  va_end(inputs);
  return node;
}

void heddle__gguf_output(heddle__gguf_build *b, uint32_t node, uint32_t result) {
  heddle__say(&b->heads, "%s[%u, %u, 0]", b->n_heads++ > 0 ? ", " : "", (unsigned)node, (unsigned)result);
}

/* ---- parameters */

/* data NULL: memory of its own, which is returned. */
static void *add_param(heddle__gguf_build *b, const char *name, heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                       const void *data) {
  if (b->params->count == b->room) {
    const uint32_t room = b->room > 0 ? 2 * b->room : 64;
    struct heddle__param *grown = heddle__grow(b->params->items, b->room, room, sizeof *grown);
    if (grown == NULL) return NULL;
    b->params->items = grown;
    b->room = room;
  }
  struct heddle__param *p = &b->params->items[b->params->count];
  uint64_t bytes = heddle__dtype_bytes(dtype);
  for (uint32_t i = 0; i < ndim; i++)
    if (!heddle__mul(bytes, (uint64_t)shape[i], &bytes)) return NULL;
  *p = (struct heddle__param){.name = heddle__strdup(name), .file_dtype = dtype, .is_mapped = data != NULL};
  p->value = (heddle__constant){.dtype = dtype, .ndim = ndim, .bytes = bytes};
  p->value.shape = heddle__alloc(ndim + 1, sizeof *shape);
  p->value.data = data != NULL ? (void *)(uintptr_t)data : heddle__alloc_aligned((size_t)bytes + 1, 64);
  b->params->count++; /* the release takes half-made items */
  if (p->name == NULL || p->value.shape == NULL || p->value.data == NULL) return NULL;
  memcpy(p->value.shape, shape, ndim * sizeof *shape);
  return p->value.data;
}

static uint32_t add_constant(heddle__gguf_build *b, const char *name, heddle_dtype dtype, const int64_t *shape,
                             uint32_t ndim, const void *mapped, void **out) {
  char type[32];
  heddle__sheet dims = {.used = 0};
  *out = NULL;
  if (b->status != HEDDLE_OK) return 0;
  *out = add_param(b, name, dtype, shape, ndim, mapped);
  heddle__say_text(&dims, "[");
  for (uint32_t i = 0; i < ndim; i++) heddle__say(&dims, "%s%lld", i > 0 ? ", " : "", (long long)shape[i]);
  heddle__say_text(&dims, "]");
  heddle__dtype_name(dtype, type);
  if (*out == NULL || dims.failed) b->status = heddle__no_memory(b->err, name);
  const uint32_t node = heddle__gguf_input(b, name, type, dims.text);
  heddle__free(dims.text);
  return node;
}

/* The tensor, after a check of its dimensions; NULL after a failure. */
static const heddle__gguf_tensor *checked(heddle__gguf_build *b, const char *name, int64_t rows, int64_t columns) {
  const heddle__gguf_tensor *t = heddle__gguf_tensor_of(b->file, name);
  if (b->status != HEDDLE_OK) return NULL;
  if (t == NULL) {
    b->status = heddle__fail(b->err, HEDDLE_EFORMAT, "%s: tensor '%s' is missing", b->file->path, name);
    return NULL;
  }
  const uint64_t inner = (uint64_t)(columns > 0 ? columns : rows), outer = columns > 0 ? (uint64_t)rows : 1;
  const uint64_t rest = t->ndim > 2 ? t->count / (t->dims[0] * t->dims[1]) : 1;
  if (t->dims[0] == inner && (t->ndim > 1 ? t->dims[1] : 1) == outer && rest == 1) return t;
  b->status = heddle__fail(b->err, HEDDLE_EFORMAT,
                           "%s: tensor '%s' has %llu elements in rows of %llu; expected %llu in rows of %llu",
                           b->file->path, name, (unsigned long long)t->count, (unsigned long long)t->dims[0],
                           (unsigned long long)(inner * outer), (unsigned long long)inner);
  return NULL;
}

uint32_t heddle__gguf_weight(heddle__gguf_build *b, const char *name, int64_t rows, int64_t columns) {
  const heddle__gguf_tensor *t = checked(b, name, rows, columns);
  const int64_t shape[2] = {rows, columns};
  void *out;
  if (t == NULL) return 0;
  const bool is_mapped = t->type == HEDDLE__GGUF_F32 && (uintptr_t)t->data % sizeof(float) == 0;
  const uint32_t node =
      add_constant(b, name, HEDDLE_FLOAT32, shape, columns > 0 ? 2 : 1, is_mapped ? t->data : NULL, &out);
  if (out != NULL && !is_mapped) heddle__gguf_read(t, out);
  return node;
}

heddle__gguf_matrix heddle__gguf_matrix_of(heddle__gguf_build *b, const char *name, int64_t rows, int64_t columns) {
  heddle__gguf_matrix w = {.form = NULL, .rows = rows, .columns = columns};
  const heddle__gguf_tensor *t = checked(b, name, rows, columns);
  const int form = t != NULL ? heddle__gguf_form(t->type) : BLOCK_NONE;
  void *out;
  if (form == BLOCK_NONE) {
    w.node = heddle__gguf_weight(b, name, rows, columns);
    return w;
  }
  const int64_t shape[2] = {rows, (int64_t)t->bytes / rows};
  w.form = block_form_of(form)->name;
  w.node = add_constant(b, name, (heddle_dtype){HEDDLE_DTYPE_UINT, 8, 1}, shape, 2, t->data, &out);
  return w;
}

uint32_t heddle__gguf_product(heddle__gguf_build *b, const char *name, uint32_t x, heddle__gguf_matrix w,
                              const uint32_t *bias) {
  char attrs[96];
  const int n = bias != NULL ? 3 : 2;
  const uint32_t added = bias != NULL ? *bias : 0;
  if (w.form == NULL) return heddle__gguf_node(b, "Gemm", name, "\"transB\": 1", n, x, w.node, added);
  snprintf(attrs, sizeof attrs, "\"K\": %lld, \"N\": %lld, \"form\": \"%s\"", (long long)w.columns, (long long)w.rows,
           w.form);
  return heddle__gguf_own_node(b, 1, "MatMulBlocks", name, attrs, n, x, w.node, added);
}

uint32_t heddle__gguf_rows(heddle__gguf_build *b, heddle__gguf_matrix w, uint32_t indices) {
  char attrs[96];
  const uint32_t rows = heddle__gguf_node(b, "Gather", NULL, "\"axis\": 0", 2, w.node, indices);
  if (w.form == NULL) return rows;
  snprintf(attrs, sizeof attrs, "\"K\": %lld, \"form\": \"%s\"", (long long)w.columns, w.form);
  return heddle__gguf_own_node(b, 1, "FromBlocks", NULL, attrs, 1, rows);
}

static uint32_t small(heddle__gguf_build *b, heddle_dtype dtype, const void *values, uint32_t n, uint32_t ndim) {
  char name[32];
  void *out;
  const int64_t shape = n;
  snprintf(name, sizeof name, "constant_%u", (unsigned)b->n);
  const uint32_t node = add_constant(b, name, dtype, &shape, ndim, NULL, &out);
  if (out != NULL) memcpy(out, values, (size_t)n * heddle__dtype_bytes(dtype));
  return node;
}

uint32_t heddle__gguf_wholes(heddle__gguf_build *b, const int64_t *values, uint32_t n) {
  return small(b, (heddle_dtype){HEDDLE_DTYPE_INT, 64, 1}, values, n > 0 ? n : 1, n > 0);
}

uint32_t heddle__gguf_real_constant(heddle__gguf_build *b, float value) {
  return small(b, HEDDLE_FLOAT32, &value, 1, 0);
}

uint32_t heddle__gguf_table(heddle__gguf_build *b, const int64_t shape[2], float **out) {
  char name[32];
  void *data;
  snprintf(name, sizeof name, "table_%u", (unsigned)b->n);
  const uint32_t node = add_constant(b, name, HEDDLE_FLOAT32, shape, 2, NULL, &data);
  *out = data;
  return node;
}

/* ---- the end */

static void write_whole(heddle__gguf_build *b, heddle__sheet *all) {
  const struct {
    const char *before;
    const heddle__sheet *part;
  } parts[] = {{"{\"heddle\": {\"version\": 1, \"opset\": 24}, \"nodes\": [", &b->nodes},
               {"], \"arg_nodes\": [", &b->args},
               {"], \"heads\": [", &b->heads},
               {"], \"node_row_ptr\": [0", &b->rows},
               {"], \"attrs\": {\"dltype\": [\"list_str\", [", &b->types},
               {"]], \"shape\": [\"list_shape\", [", &b->shapes}};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    heddle__say_text(all, parts[i].before);
    all->failed = all->failed || parts[i].part->failed;
    if (parts[i].part->text != NULL) heddle__say_bytes(all, parts[i].part->text, parts[i].part->used);
  }
  heddle__say_text(all, "]]}}");
}

heddle_status heddle__gguf_finish(heddle__gguf_build *b, const char *path, heddle_graph **graph,
                                  heddle_params **params) {
  heddle__sheet all = {.used = 0}, *const sheets[] = {&b->nodes, &b->types, &b->shapes, &b->args,
                                                      &b->heads, &b->rows,  &all};
  if (b->status == HEDDLE_OK) {
    write_whole(b, &all);
    if (all.failed) b->status = heddle__no_memory(b->err, "the graph of a GGUF file");
  }
  if (b->status == HEDDLE_OK) b->status = heddle_graph_parse(all.text, all.used, path, NULL, graph, b->err);
  for (size_t i = 0; i < sizeof sheets / sizeof sheets[0]; i++) heddle__free(sheets[i]->text);
  if (b->status == HEDDLE_OK) *params = b->params;
  else heddle_params_release(b->params);
  return b->status;
}
