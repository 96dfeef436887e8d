/* Regions and offers as bytes, and back with checks. */
#include "plugins/common/remote/region_code.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/common/fnv.h"
#include "plugins/common/perror.h"

/* Two hashes of 64 bits over words of 8 bytes: names of bytes that the same client sent. */
wire_blob_id wire_blob_of(const void *data, uint64_t bytes) {
  const uint8_t *at = data;
  uint64_t a = FNV1A_START, b = UINT64_C(0x9e3779b97f4a7c15), word;
  for (uint64_t left = bytes; left > 0;) {
    const uint64_t n = left < sizeof word ? left : sizeof word;
    word = 0;
    memcpy(&word, at, n);
    a = (a ^ word) * UINT64_C(0x100000001b3);
    a ^= a >> 29;
    b = (b + word) * UINT64_C(0xbf58476d1ce4e5b9);
    b ^= b >> 31;
    at += n;
    left -= n;
  }
  return (wire_blob_id){.hash = {a, b}, .bytes = bytes};
}

static const void *element(const heddle_parray *array, uint64_t i) {
  return (const char *)array->data + i * array->stride;
}

static heddle_layout known(heddle_layout layout, wire_layout_fn as, void *user) {
  return layout != 0 && as != NULL ? as(user, layout) : layout;
}

/* ---- writing */

void wire_put_value(byte_buffer *b, const heddle_pvalue *v, wire_layout_fn layout, void *user) {
  byte_put_u32(b, v->dtype.code | (uint32_t)v->dtype.bits << 8 | (uint32_t)v->dtype.lanes << 16);
  byte_put_u32(b, (uint32_t)v->ndim);
  for (int32_t i = 0; i < v->ndim; i++) byte_put_u64(b, (uint64_t)v->shape[i]);
  byte_put_u64(b, known(v->layout, layout, user));
}

enum { NO_DATA, DATA_HERE, DATA_NAMED };

static void put_data(byte_buffer *b, const heddle_pvalue *v, wire_blob_fn blob, void *user) {
  if (v->data == NULL) {
    byte_put_u32(b, NO_DATA);
    return;
  }
  if (v->data_bytes < WIRE_BLOB_FROM || blob == NULL) {
    byte_put_u32(b, DATA_HERE);
    byte_put_u64(b, v->data_bytes);
    byte_put(b, v->data, v->data_bytes);
    return;
  }
  const wire_blob_id id = wire_blob_of(v->data, v->data_bytes);
  byte_put_u32(b, DATA_NAMED);
  byte_put_u64(b, id.bytes);
  byte_put_u64(b, id.hash[0]);
  byte_put_u64(b, id.hash[1]);
  if (!blob(user, &id, v->data)) b->failed = true;
}

static void put_indices(byte_buffer *b, const int32_t *indices, uint32_t n) {
  byte_put_u32(b, n);
  for (uint32_t i = 0; i < n; i++) byte_put_u32(b, (uint32_t)indices[i]);
}

static void put_attr(byte_buffer *b, const heddle_pattr *a) {
  wire_put_text(b, a->name);
  byte_put_u32(b, a->kind);
  byte_put_u64(b, a->count);
  if (a->kind == HEDDLE_ATTR_STRING) {
    byte_put(b, a->data, a->count);
  } else if (a->kind == HEDDLE_ATTR_STRINGS) {
    for (uint64_t i = 0; i < a->count; i++) wire_put_text(b, ((const char *const *)a->data)[i]);
  } else {
    for (uint64_t i = 0; i < a->count; i++) {
      uint64_t word;
      memcpy(&word, (const char *)a->data + 8 * i, sizeof word);
      byte_put_u64(b, word);
    }
  }
}

static void put_node(byte_buffer *b, const heddle_pnode *n) {
  byte_put_u32(b, n->opset);
  byte_put_u32(b, HEDDLE_HAS(heddle_pnode, n, since_version) ? n->since_version : 0);
  wire_put_text(b, n->domain);
  wire_put_text(b, n->op);
  wire_put_text(b, n->name);
  put_indices(b, n->inputs, n->n_inputs);
  put_indices(b, n->outputs, n->n_outputs);
  byte_put_u32(b, (uint32_t)n->attrs.count);
  for (uint64_t i = 0; i < n->attrs.count; i++) put_attr(b, element(&n->attrs, i));
}

void wire_put_values(byte_buffer *b, const heddle_pregion *region, wire_blob_fn blob, wire_layout_fn layout,
                     void *user) {
  byte_put_u32(b, (uint32_t)region->values.count);
  for (uint64_t i = 0; i < region->values.count; i++) {
    const heddle_pvalue *v = element(&region->values, i);
    wire_put_value(b, v, layout, user);
    put_data(b, v, blob, user);
  }
}

void wire_put_region(byte_buffer *b, const heddle_pregion *region, wire_blob_fn blob, wire_layout_fn layout,
                     void *user) {
  byte_put_u32(b, region->flags);
  wire_put_values(b, region, blob, layout, user);
  put_indices(b, region->inputs, region->n_inputs);
  put_indices(b, region->outputs, region->n_outputs);
  byte_put_u32(b, (uint32_t)region->nodes.count);
  for (uint64_t i = 0; i < region->nodes.count; i++) put_node(b, element(&region->nodes, i));
}

void wire_put_open(byte_buffer *b, const heddle_pregion *region) {
  if ((region->flags & HEDDLE_REGION_OPEN) == 0) return;
  byte_put_u32(b, (uint32_t)region->values.count);
  for (uint64_t i = 0; i < region->values.count; i++) {
    const heddle_pvalue *v = element(&region->values, i);
    byte_put_u32(b, HEDDLE_HAS(heddle_pvalue, v, open_dims) ? v->open_dims : 0);
  }
}

/* ---- reading */

/* A region is freed with one free: all of it lies in one allocation, whose size is bounded by that of its bytes. */
typedef struct arena {
  uint8_t *data;
  size_t used, room;
} arena;

static void *get(arena *a, size_t count, size_t size) {
  const size_t at = (a->used + 15) / 16 * 16;
  if (at > a->room || (size > 0 && count > (a->room - at) / size)) return NULL;
  a->used = at + count * size;
  return a->data + at;
}

static bool has_size(const heddle_pvalue *v, uint64_t *bytes) {
  const uint64_t bits = (uint64_t)v->dtype.bits * v->dtype.lanes, whole = (bits + 7) / 8;
  uint64_t n = 1;
  for (int32_t i = 0; i < v->ndim; i++) {
    if (v->shape[i] < 0) return false;
    if (v->shape[i] > 0 && n > (uint64_t)INT64_MAX / whole / (uint64_t)v->shape[i]) return false;
    n *= (uint64_t)v->shape[i];
  }
  *bytes = bits % 8 == 0 ? n * whole : n / 8 * bits + (n % 8 * bits + 7) / 8;
  return true;
}

void wire_take_value(byte_reader *r, heddle_pvalue *v, int64_t *shape) {
  const uint32_t type = byte_take_u32(r);
  const uint32_t ndim = wire_take_count(r, WIRE_MOST_DIMS, 8);
  uint64_t bytes;
  *v = (heddle_pvalue){.struct_size = sizeof *v,
                       .dtype = {(uint8_t)type, (uint8_t)(type >> 8), (uint16_t)(type >> 16)},
                       .shape = shape,
                       .ndim = (int32_t)ndim};
  for (uint32_t i = 0; i < ndim; i++) shape[i] = (int64_t)byte_take_u64(r);
  v->layout = byte_take_u64(r);
  if (v->dtype.bits == 0 || v->dtype.lanes == 0 || v->dtype.code == HEDDLE_DTYPE_HANDLE || !has_size(v, &bytes))
    r->bad = true;
}

static void take_data(byte_reader *r, heddle_pvalue *v, wire_find_fn find, void *user) {
  const uint32_t how = byte_take_u32(r);
  uint64_t bytes = 0;
  if (r->bad || how == NO_DATA) return;
  wire_blob_id id = {.bytes = byte_take_u64(r)};
  if (how > DATA_NAMED || !has_size(v, &bytes) || id.bytes != bytes) {
    r->bad = true;
    return;
  }
  v->data_bytes = bytes;
  if (how == DATA_HERE) {
    v->data = byte_take(r, bytes);
    return;
  }
  id.hash[0] = byte_take_u64(r);
  id.hash[1] = byte_take_u64(r);
  v->data = !r->bad && find != NULL ? find(user, &id) : NULL;
  if (v->data == NULL) r->bad = true;
}

/* Indices below n_values; -1 where absent ones are allowed. */
static int32_t *take_indices(byte_reader *r, arena *a, uint32_t n_values, bool absent, uint32_t *n) {
  *n = wire_take_count(r, WIRE_MOST_OPERANDS, 4);
  int32_t *out = get(a, *n, sizeof *out);
  if (out == NULL) r->bad = true;
  for (uint32_t i = 0; i < *n && !r->bad; i++) {
    out[i] = (int32_t)byte_take_u32(r);
    if ((out[i] < 0 || (uint32_t)out[i] >= n_values) && !(absent && out[i] == -1)) r->bad = true;
  }
  return out;
}

static const char *take_text(byte_reader *r, arena *a) {
  const uint32_t n = wire_take_count(r, WIRE_MOST_NAME, 1);
  const uint8_t *at = byte_take(r, n);
  char *text = at != NULL ? get(a, (size_t)n + 1, 1) : NULL;
  if (text == NULL || (n > 0 && memchr(at, 0, n) != NULL)) {
    r->bad = true;
    return "";
  }
  if (n > 0) memcpy(text, at, n);
  text[n] = '\0';
  return text;
}

static void take_attr(byte_reader *r, arena *a, heddle_pattr *attr) {
  *attr = (heddle_pattr){.struct_size = sizeof *attr};
  attr->name = take_text(r, a);
  attr->kind = byte_take_u32(r);
  attr->count = byte_take_u64(r);
  const bool is_list = attr->kind == HEDDLE_ATTR_INTS || attr->kind == HEDDLE_ATTR_FLOATS;
  const size_t least = attr->kind == HEDDLE_ATTR_STRING ? 1 : attr->kind == HEDDLE_ATTR_STRINGS ? 4 : 8;
  if (r->bad || attr->kind < HEDDLE_ATTR_INT || attr->kind > HEDDLE_ATTR_STRINGS || attr->count > r->left / least ||
      (!is_list && least == 8 && attr->count != 1)) {
    r->bad = true;
    return;
  }
  if (attr->kind == HEDDLE_ATTR_STRING) {
    char *text = get(a, attr->count + 1, 1);
    const uint8_t *at = byte_take(r, attr->count);
    if (text == NULL || at == NULL) {
      r->bad = true;
      return;
    }
    if (attr->count > 0) memcpy(text, at, attr->count);
    text[attr->count] = '\0';
    attr->data = text;
  } else if (attr->kind == HEDDLE_ATTR_STRINGS) {
    const char **texts = get(a, attr->count, sizeof *texts);
    if (texts == NULL) r->bad = true;
    for (uint64_t i = 0; i < attr->count && !r->bad; i++) texts[i] = take_text(r, a);
    attr->data = texts;
  } else {
    uint64_t *words = get(a, attr->count, sizeof *words);
    if (words == NULL) r->bad = true;
    for (uint64_t i = 0; i < attr->count && !r->bad; i++) words[i] = byte_take_u64(r);
    attr->data = words;
  }
}

static void take_node(byte_reader *r, arena *a, heddle_pnode *n, uint32_t n_values) {
  n->struct_size = sizeof *n;
  n->opset = byte_take_u32(r);
  n->since_version = byte_take_u32(r);
  n->domain = take_text(r, a);
  n->op = take_text(r, a);
  n->name = take_text(r, a);
  n->inputs = take_indices(r, a, n_values, true, &n->n_inputs);
  n->outputs = take_indices(r, a, n_values, true, &n->n_outputs);
  const uint32_t count = wire_take_count(r, WIRE_MOST_ATTRS, 16);
  heddle_pattr *attrs = get(a, count, sizeof *attrs);
  if (attrs == NULL) r->bad = true;
  for (uint32_t i = 0; i < count && !r->bad; i++) take_attr(r, a, &attrs[i]);
  n->attrs = (heddle_parray){attrs, count, sizeof *attrs};
}

/* Each value comes from outside or from one node before those that use it; each output is one that is there. */
static bool is_ordered(const heddle_pregion *g, uint8_t *made) {
  for (uint32_t i = 0; i < g->n_inputs; i++) {
    if (made[g->inputs[i]]++ != 0) return false;
  }
  for (uint64_t k = 0; k < g->nodes.count; k++) {
    const heddle_pnode *n = element(&g->nodes, k);
    for (uint32_t i = 0; i < n->n_inputs; i++)
      if (n->inputs[i] >= 0 && made[n->inputs[i]] == 0) return false;
    for (uint32_t i = 0; i < n->n_outputs; i++)
      if (n->outputs[i] >= 0 && made[n->outputs[i]]++ != 0) return false;
  }
  for (uint32_t i = 0; i < g->n_outputs; i++)
    if (made[g->outputs[i]] == 0) return false;
  return true;
}

/* Of a client before WIRE_OPEN_MINOR there is nothing: any dimension may change. */
static void take_open(byte_reader *r, const heddle_pregion *g, heddle_pvalue *values) {
  if (r->bad || r->left == 0 || (g->flags & HEDDLE_REGION_OPEN) == 0) return;
  if (wire_take_count(r, WIRE_MOST_VALUES, 4) != g->values.count) r->bad = true;
  for (uint64_t i = 0; i < g->values.count && !r->bad; i++) {
    values[i].open_dims = byte_take_u32(r);
    if ((uint64_t)values[i].open_dims >> values[i].ndim != 0) r->bad = true;
  }
}

static void take_parts(byte_reader *r, arena *a, heddle_pregion *g, wire_find_fn find, void *user) {
  g->struct_size = sizeof *g;
  g->flags = byte_take_u32(r);
  const uint32_t n_values = wire_take_count(r, WIRE_MOST_VALUES, 20);
  heddle_pvalue *values = get(a, n_values, sizeof *values);
  if (values == NULL) r->bad = true;
  for (uint32_t i = 0; i < n_values && !r->bad; i++) {
    int64_t *shape = get(a, WIRE_MOST_DIMS, sizeof *shape);
    if (shape == NULL) {
      r->bad = true;
      break;
    }
    wire_take_value(r, &values[i], shape);
    take_data(r, &values[i], find, user);
  }
  g->values = (heddle_parray){values, n_values, sizeof *values};
  g->inputs = take_indices(r, a, n_values, false, &g->n_inputs);
  g->outputs = take_indices(r, a, n_values, false, &g->n_outputs);
  const uint32_t n_nodes = wire_take_count(r, WIRE_MOST_NODES, 32);
  heddle_pnode *nodes = get(a, n_nodes, sizeof *nodes);
  if (nodes == NULL || n_nodes == 0) r->bad = true;
  for (uint32_t i = 0; i < n_nodes && !r->bad; i++) {
    nodes[i] = (heddle_pnode){0};
    take_node(r, a, &nodes[i], n_values);
  }
  g->nodes = (heddle_parray){nodes, n_nodes, sizeof *nodes};
  take_open(r, g, values);
  uint8_t *made = get(a, (size_t)n_values + 1, 1);
  if (made == NULL) r->bad = true;
  if (r->bad) return;
  memset(made, 0, (size_t)n_values + 1);
  if (!is_ordered(g, made)) r->bad = true;
}

/* What a byte of a region can become at most: a value of 20 bytes has room for all of its dimensions. */
heddle_pregion *wire_take_region(byte_reader *r, wire_find_fn find, void *user, heddle_error *err) {
  enum { MOST_TIMES = 24, BESIDES = 4096 };
  arena a = {.room = r->left <= SIZE_MAX / (2 * MOST_TIMES) ? r->left * MOST_TIMES + BESIDES : 0};
  a.data = a.room > 0 ? malloc(a.room) : NULL;
  if (a.data == NULL) {
    (void)p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a region of %zu bytes", r->left);
    return NULL;
  }
  heddle_pregion *g = get(&a, 1, sizeof *g);
  *g = (heddle_pregion){0};
  take_parts(r, &a, g, find, user);
  if (!r->bad) return g;
  free(a.data);
  (void)p_fail(err, HEDDLE_EFORMAT, 0, "a region is malformed");
  return NULL;
}

static bool is_within(const heddle_pvalue *now, const heddle_pvalue *most, bool any) {
  if (memcmp(&now->dtype, &most->dtype, sizeof now->dtype) != 0 || now->ndim != most->ndim ||
      now->layout != most->layout || (now->data == NULL) != (most->data == NULL))
    return false;
  for (int32_t i = 0; i < now->ndim; i++)
    if (now->shape[i] > most->shape[i] || (!any && (most->open_dims >> i & 1) == 0 && now->shape[i] < most->shape[i]))
      return false;
  return true;
}

bool wire_take_values(byte_reader *r, heddle_pregion *region, wire_find_fn find, void *user) {
  heddle_pvalue *values = (heddle_pvalue *)(uintptr_t)region->values.data;
  const uint32_t n = wire_take_count(r, WIRE_MOST_VALUES, 20);
  bool any = true; /* dimension may change */
  if (n != region->values.count) return false;
  for (uint32_t i = 0; i < n; i++) any = any && values[i].open_dims == 0;
  for (uint32_t i = 0; i < n; i++) {
    int64_t shape[WIRE_MOST_DIMS];
    heddle_pvalue now;
    wire_take_value(r, &now, shape);
    take_data(r, &now, find, user);
    if (r->bad || !is_within(&now, &values[i], any)) return false;
    memcpy((int64_t *)(uintptr_t)values[i].shape, shape, (size_t)now.ndim * sizeof shape[0]);
    values[i].data = now.data;
    values[i].data_bytes = now.data_bytes;
    values[i].open_dims = 0; /* these shapes are no bounds */
  }
  return true;
}

/* ---- offers */

/* Those that need room between rows are left out: values have none in the memory of a server. */
static void put_extends(byte_buffer *b, const heddle_poffer *o) {
  uint32_t n = 0;
  const uint64_t all = HEDDLE_HAS(heddle_poffer, o, n_extends) && o->extends != NULL ? o->n_extends : 0;
  for (uint64_t i = 0; i < all; i++) n += o->extends[3 * i + 2] < 0;
  byte_put_u32(b, n);
  for (uint64_t i = 0; i < all; i++) {
    if (o->extends[3 * i + 2] >= 0) continue;
    byte_put_u32(b, (uint32_t)o->extends[3 * i]);
    byte_put_u32(b, (uint32_t)o->extends[3 * i + 1]);
  }
}

void wire_put_offer(byte_buffer *b, const heddle_poffer *o, uint32_t n_inputs, uint32_t n_outputs, bool extends) {
  uint64_t cost;
  memcpy(&cost, &o->cost_ns, sizeof cost);
  byte_put_u32(b, o->flags);
  byte_put_u64(b, o->workspace_bytes);
  byte_put_u64(b, o->workspace_align);
  byte_put_u64(b, cost);
  byte_put_u64(b, HEDDLE_HAS(heddle_poffer, o, kept_bytes) ? o->kept_bytes : 0);
  byte_put_u64(b, HEDDLE_HAS(heddle_poffer, o, launch_bytes) ? o->launch_bytes : 0);
  for (uint32_t i = 0; i < n_inputs; i++) byte_put_u64(b, o->input_layouts != NULL ? o->input_layouts[i] : 0);
  for (uint32_t i = 0; i < n_outputs; i++) byte_put_u64(b, o->output_layouts != NULL ? o->output_layouts[i] : 0);
  for (uint32_t i = 0; i < n_inputs; i++) byte_put_u32(b, o->input_flags != NULL ? o->input_flags[i] : 0);
  byte_put_u32(b, (uint32_t)o->n_in_place);
  for (uint64_t i = 0; i < 2 * o->n_in_place; i++) byte_put_u32(b, (uint32_t)o->in_place[i]);
  if (extends) put_extends(b, o);
}

static int32_t take_number(byte_reader *r, uint32_t below) {
  const uint32_t at = byte_take_u32(r);
  if (at >= below) r->bad = true;
  return (int32_t)at;
}

bool wire_take_offer(byte_reader *r, uint32_t n_inputs, uint32_t n_outputs, bool extends, wire_layout_fn layout,
                     void *user, heddle_poffer *o, void **out) {
  *o = (heddle_poffer){.struct_size = sizeof *o};
  o->flags = byte_take_u32(r);
  o->workspace_bytes = byte_take_u64(r);
  o->workspace_align = byte_take_u64(r);
  const uint64_t cost = byte_take_u64(r);
  memcpy(&o->cost_ns, &cost, sizeof cost);
  o->kept_bytes = byte_take_u64(r);
  o->launch_bytes = byte_take_u64(r);
  *out = NULL;
  if (r->bad || r->left / 8 < (uint64_t)n_inputs + n_outputs) return false;
  const size_t n = (size_t)n_inputs + n_outputs, most_pairs = r->left / 8;
  heddle_layout *layouts = malloc((n + 1) * sizeof *layouts + (n_inputs + 3 * most_pairs) * sizeof(uint32_t));
  if (layouts == NULL) return false;
  uint32_t *flags = (uint32_t *)(void *)(layouts + n + 1);
  int32_t *pairs = (int32_t *)(void *)(flags + n_inputs);
  for (size_t i = 0; i < n; i++) layouts[i] = known(byte_take_u64(r), layout, user);
  for (uint32_t i = 0; i < n_inputs; i++) flags[i] = byte_take_u32(r);
  o->n_in_place = wire_take_count(r, WIRE_MOST_OPERANDS, 8);
  for (uint64_t i = 0; i < 2 * o->n_in_place && !r->bad; i++)
    pairs[i] = take_number(r, i % 2 == 0 ? n_inputs : n_outputs);
  int32_t *triples = pairs + 2 * o->n_in_place;
  o->n_extends = extends ? wire_take_count(r, WIRE_MOST_OPERANDS, 8) : 0;
  for (uint64_t i = 0; i < o->n_extends && !r->bad; i++) {
    triples[3 * i] = take_number(r, n_inputs);
    triples[3 * i + 1] = take_number(r, n_outputs);
    triples[3 * i + 2] = -1;
  }
  o->input_layouts = layouts;
  o->output_layouts = layouts + n_inputs;
  o->input_flags = flags;
  o->in_place = pairs;
  o->extends = triples;
  *out = layouts;
  return !r->bad;
}
