/* Copies of regions: see op_clone.h. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "op_clone.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

enum { MORE = 24 /* bytes that a newer element has */ };

typedef struct room {
  char *at, *end;
} room;

static void *take(kit *k, room *r, const void *from, size_t bytes) {
  char *to = r->at;
  const size_t n = (bytes + 15) & ~(size_t)15;
  if ((size_t)(r->end - to) < n) kit_fail(k, "the kit's room for a region is too small");
  r->at += n;
  if (bytes > 0 && from != NULL) memcpy(to, from, bytes);
  return to;
}

static const char *text(kit *k, room *r, const char *from) {
  return from != NULL ? take(k, r, from, strlen(from) + 1) : NULL;
}

/* Bytes of an element of a struct in the form. */
static size_t width(size_t now, size_t first, int form) {
  return form == OP_CLONE_OLDER ? first : form == OP_CLONE_NEWER ? now + MORE : now;
}

static const void *element(heddle_parray a, uint64_t i) {
  return (const char *)a.data + i * a.stride;
}

/* Room for an array in the form; what is newer is set. */
static char *array(kit *k, room *r, heddle_parray *a, size_t bytes) {
  char *to = take(k, r, NULL, (size_t)a->count * bytes);
  memset(to, 0xff, (size_t)a->count * bytes);
  a->data = to;
  a->stride = bytes;
  return to;
}

#define PUT(to, s, bytes) \
  do { \
    (s).struct_size = (uint32_t)(bytes); \
    memcpy((to), &(s), sizeof(s) < (bytes) ? sizeof(s) : (bytes)); \
  } while (0)

static const void *attr_data(kit *k, room *r, const heddle_pattr *a) {
  const size_t n = (size_t)a->count;
  if (a->kind == HEDDLE_ATTR_STRINGS) {
    const char **to = take(k, r, NULL, n * sizeof *to);
    for (size_t i = 0; i < n; i++) to[i] = text(k, r, ((const char *const *)a->data)[i]);
    return to;
  }
  return take(k, r, a->data, a->kind == HEDDLE_ATTR_STRING ? n + 1 : n * 8);
}

static heddle_parray attrs(kit *k, room *r, heddle_parray from, int form) {
  const size_t bytes = width(sizeof(heddle_pattr), sizeof(heddle_pattr), form);
  heddle_parray out = from;
  if (from.count == 0) return from;
  char *to = array(k, r, &out, bytes);
  for (uint64_t i = 0; i < from.count; i++) {
    heddle_pattr a = *(const heddle_pattr *)element(from, i);
    a.name = text(k, r, a.name);
    a.data = attr_data(k, r, &a);
    PUT(to + i * bytes, a, bytes);
  }
  return out;
}

static heddle_parray nodes(kit *k, room *r, heddle_parray from, int form) {
  const size_t bytes = width(sizeof(heddle_pnode), offsetof(heddle_pnode, since_version), form);
  heddle_parray out = from;
  char *to = array(k, r, &out, bytes);
  for (uint64_t i = 0; i < from.count; i++) {
    heddle_pnode n = *(const heddle_pnode *)element(from, i);
    n.domain = text(k, r, n.domain), n.op = text(k, r, n.op), n.name = text(k, r, n.name);
    n.attrs = attrs(k, r, n.attrs, form);
    n.inputs = take(k, r, n.inputs, n.n_inputs * sizeof *n.inputs);
    n.outputs = take(k, r, n.outputs, n.n_outputs * sizeof *n.outputs);
    PUT(to + i * bytes, n, bytes);
  }
  return out;
}

static heddle_parray values(kit *k, room *r, heddle_parray from, int form) {
  const size_t bytes = width(sizeof(heddle_pvalue), offsetof(heddle_pvalue, room), form);
  heddle_parray out = from;
  char *to = array(k, r, &out, bytes);
  for (uint64_t i = 0; i < from.count; i++) {
    heddle_pvalue v = *(const heddle_pvalue *)element(from, i);
    v.shape = take(k, r, v.shape, (size_t)v.ndim * sizeof *v.shape);
    if (v.data != NULL) v.data = take(k, r, v.data, (size_t)v.data_bytes);
    PUT(to + i * bytes, v, bytes);
  }
  return out;
}

op_clone op_clone_make(kit *k, const heddle_pregion *from, int form) {
  op_clone c = {.bytes = 1 << 18};
  for (uint64_t i = 0; i < from->values.count; i++)
    c.bytes += (size_t)((const heddle_pvalue *)element(from->values, i))->data_bytes + 64;
  c.bytes = (c.bytes + 0xffff) & ~(size_t)0xffff;
  c.pages = mmap(NULL, c.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (c.pages == MAP_FAILED) kit_skip(k, "the kit is out of memory");
  room r = {c.pages, (char *)c.pages + c.bytes};
  heddle_pregion *to = take(k, &r, from, sizeof *from);
  to->nodes = nodes(k, &r, from->nodes, form);
  to->values = values(k, &r, from->values, form);
  to->inputs = take(k, &r, from->inputs, from->n_inputs * sizeof *from->inputs);
  to->outputs = take(k, &r, from->outputs, from->n_outputs * sizeof *from->outputs);
  c.region = to;
  return c;
}

void op_clone_gone(op_clone *c) {
  mprotect(c->pages, c->bytes, PROT_NONE);
}

void op_clone_free(op_clone *c) {
  munmap(c->pages, c->bytes);
  c->pages = NULL;
}
