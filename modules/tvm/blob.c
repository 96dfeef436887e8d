/* modules/tvm/blob.c: the frame of a blob: its records in a row, and the tree that says which module imports which. The
 * bodies of the records are in blob_body.c. */
#include "modules/tvm/blob.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "modules/tvm/blob_body.h"

/* row has n + 1 numbers, which count up to n_children; each child is a module; no module is below itself. */
static heddle_status take_tree(heddle__blob *b, heddle__cursor *c, const unsigned char *row, uint64_t n_row,
                               const unsigned char *child, uint64_t n_children) {
  heddle__cursor r = {row, row, row + 8 * n_row, c->layout, c->err, NULL};
  heddle__cursor k = {child, child, child + 8 * n_children, c->layout, c->err, NULL};
  uint64_t before = 0, at = 0;
  if (n_row != (uint64_t)b->n_modules + 1)
    return heddle__blob_bad(c, "an import tree with one row a module and one at the end");
  b->children = heddle__alloc((size_t)n_children, sizeof *b->children);
  uint32_t *waits = heddle__alloc(b->n_modules, sizeof *waits), *ready = heddle__alloc(b->n_modules, sizeof *ready);
  heddle_status s = b->children && waits && ready ? HEDDLE_OK : heddle__no_memory(c->err, "an import tree");
  for (uint64_t i = 0; i < n_row && s == HEDDLE_OK; i++) {
    (void)heddle__take_u64(&r, "a row", &at);
    if (at < before || at > n_children || (i == 0 && at != 0) || (i + 1 == n_row && at != n_children))
      s = heddle__blob_bad(c, "rows of an import tree that count up to its children");
    else if (i > 0) b->modules[i - 1].n_children = (uint32_t)(at - before);
    if (s == HEDDLE_OK && i + 1 < n_row) b->modules[i].first_child = (uint32_t)at;
    before = at;
  }
  for (uint64_t i = 0; i < n_children && s == HEDDLE_OK; i++) {
    (void)heddle__take_u64(&k, "a child", &at);
    if (at >= b->n_modules) s = heddle__blob_bad(c, "children of an import tree that are modules");
    else waits[b->children[i] = (uint32_t)at]++;
  }
  uint32_t n_ready = 0, done = 0;
  for (uint32_t i = 0; i < b->n_modules && s == HEDDLE_OK; i++)
    if (waits[i] == 0) ready[n_ready++] = i;
  while (s == HEDDLE_OK && done < n_ready) {
    const heddle__submodule *m = &b->modules[ready[done++]];
    for (uint32_t i = 0; i < m->n_children; i++)
      if (--waits[b->children[m->first_child + i]] == 0) ready[n_ready++] = b->children[m->first_child + i];
  }
  if (s == HEDDLE_OK && done != b->n_modules) s = heddle__blob_bad(c, "an import tree without a circle");
  heddle__free(waits);
  heddle__free(ready);
  return s;
}

/* Two lists of u64: rows and children. */
static heddle_status pass_tree(heddle__cursor *c, const unsigned char **row, uint64_t *n_row,
                               const unsigned char **child, uint64_t *n_child) {
  heddle_status s = heddle__take_count(c, 8, "the rows of an import tree", n_row);
  if (s != HEDDLE_OK) return s;
  *row = c->at;
  c->at += 8 * *n_row;
  s = heddle__take_count(c, 8, "the children of an import tree", n_child);
  if (s != HEDDLE_OK) return s;
  *child = c->at;
  c->at += 8 * *n_child;
  return HEDDLE_OK;
}

/* The next module: its kind, and where records have a length, a body that ends where that says. */
static heddle_status read_module(heddle__blob *b, heddle__cursor *c, char *kind) {
  heddle__submodule *m = &b->modules[b->n_modules++];
  m->kind = kind;
  bool is_host = strcmp(kind, "_lib") == 0;
  if (is_host && b->host != UINT32_MAX)
    return heddle__fail(c->err, HEDDLE_EUNSUPPORTED, "its blob has two host libraries; there can be one");
  if (is_host) b->host = b->n_modules - 1;
  heddle_status s;
  if (c->layout != HEDDLE__BLOB_FFI || is_host) {
    m->body.data = c->at;
    s = heddle__blob_body(c, m);
    m->body.bytes = (uint64_t)(c->at - m->body.data);
    return s;
  }
  s = heddle__take_string(c, "a module", &m->body);
  if (s != HEDDLE_OK) return s;
  heddle__span body = m->body;
  heddle__cursor inner = {c->start, body.data, body.data + body.bytes, c->layout, c->err, c->loaders};
  s = heddle__blob_body(&inner, m);
  if (s == HEDDLE_OK && inner.at != inner.end) s = heddle__blob_bad(&inner, "the end of a module");
  return s;
}

static heddle_status read_packed(heddle__blob *b, heddle__cursor *c) {
  const unsigned char *row = NULL, *child = NULL;
  uint64_t n = 0, n_row = 0, n_child = 0;
  bool has_tree = false;
  heddle_status s = heddle__take_count(c, 8, "a count of modules", &n);
  if (s != HEDDLE_OK) return s;
  b->modules = heddle__alloc((size_t)n, sizeof *b->modules);
  if (b->modules == NULL) return heddle__no_memory(c->err, "a compiled library's modules");
  for (uint64_t i = 0; i < n && s == HEDDLE_OK; i++) {
    char *kind = NULL;
    s = heddle__take_name(c, "the kind of a module", &kind);
    if (s != HEDDLE_OK) return s;
    if (strcmp(kind, "_import_tree") != 0) {
      s = read_module(b, c, kind);
      continue;
    }
    heddle__free(kind);
    if (has_tree) return heddle__blob_bad(c, "one import tree");
    has_tree = true;
    s = pass_tree(c, &row, &n_row, &child, &n_child);
  }
  return s == HEDDLE_OK && has_tree ? take_tree(b, c, row, n_row, child, n_child) : s;
}

static heddle_status read_ffi(heddle__blob *b, heddle__cursor *c) {
  const unsigned char *row = NULL, *child = NULL;
  uint64_t n_row = 0, n_child = 0;
  heddle_status s = pass_tree(c, &row, &n_row, &child, &n_child);
  if (s != HEDDLE_OK) return s;
  if (n_row == 0) return heddle__blob_bad(c, "an import tree with at least one row");
  b->modules = heddle__alloc((size_t)n_row - 1, sizeof *b->modules);
  if (b->modules == NULL) return heddle__no_memory(c->err, "a compiled library's modules");
  for (uint64_t i = 0; i + 1 < n_row && s == HEDDLE_OK; i++) {
    char *kind = NULL;
    s = heddle__take_name(c, "the kind of a module", &kind);
    if (s == HEDDLE_OK) s = read_module(b, c, kind);
  }
  return s == HEDDLE_OK ? take_tree(b, c, row, n_row, child, n_child) : s;
}

heddle_status heddle__blob_read(const void *data, uint64_t bytes, heddle__blob_layout layout,
                                const heddle__blob_loaders *loaders, heddle__blob *out, heddle_error *err) {
  *out = (heddle__blob){.host = UINT32_MAX, .loaders = loaders};
  heddle__cursor c = {data, data, (const unsigned char *)data + bytes, layout, err, loaders};
  uint64_t length = 0;
  heddle_status s = heddle__take_count(&c, 1, "a blob no longer than the data that it is in", &length);
  if (s != HEDDLE_OK) return s;
  c.end = c.at + length;
  s = layout == HEDDLE__BLOB_FFI ? read_ffi(out, &c) : read_packed(out, &c);
  if (s == HEDDLE_OK && c.at != c.end) s = heddle__blob_bad(&c, "the end of the blob");
  if (out->host == UINT32_MAX) out->host = out->n_modules;
  return s;
}

/* Depth first, each module once; the way back is in trail and next. */
static void walk(const heddle__blob *b, uint32_t from, bool *seen, uint32_t *trail, uint32_t *next, uint32_t *order,
                 uint32_t *n) {
  uint32_t depth = 0;
  if (seen[from]) return;
  trail[depth] = from;
  next[depth++] = 0;
  seen[from] = true;
  if (from != b->host) order[(*n)++] = from;
  while (depth > 0) {
    const heddle__submodule *m = &b->modules[trail[depth - 1]];
    if (next[depth - 1] == m->n_children) {
      depth--;
      continue;
    }
    uint32_t child = b->children[m->first_child + next[depth - 1]++];
    if (seen[child]) continue;
    seen[child] = true;
    if (child != b->host) order[(*n)++] = child;
    trail[depth] = child;
    next[depth++] = 0;
  }
}

heddle_status heddle__blob_order(const heddle__blob *b, uint32_t *order, uint32_t *n, heddle_error *err) {
  bool *seen = heddle__alloc(b->n_modules, sizeof *seen);
  uint32_t *trail = heddle__alloc(b->n_modules, sizeof *trail), *next = heddle__alloc(b->n_modules, sizeof *next);
  heddle_status s = seen && trail && next ? HEDDLE_OK : heddle__no_memory(err, "an import tree");
  *n = 0;
  if (s == HEDDLE_OK && b->host < b->n_modules) walk(b, b->host, seen, trail, next, order, n);
  for (uint32_t i = 0; i < b->n_modules && s == HEDDLE_OK; i++) walk(b, i, seen, trail, next, order, n);
  heddle__free(seen);
  heddle__free(trail);
  heddle__free(next);
  return s;
}

void heddle__blob_finish(heddle__blob *b) {
  for (uint32_t i = 0; i < b->n_modules; i++) {
    heddle__submodule *m = &b->modules[i];
    if (m->loaded != NULL) b->loaders->release(m->loaded);
    for (uint32_t k = 0; k < m->n_kernels; k++) heddle__free(m->kernels[k].name);
    heddle__free(m->kernels);
    heddle__free(m->kind);
    heddle__free(m->format);
    heddle__free(m->model_name);
  }
  heddle__free(b->modules);
  heddle__free(b->children);
  *b = (heddle__blob){.host = 0};
}
