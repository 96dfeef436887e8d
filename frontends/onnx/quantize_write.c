/* frontends/onnx/quantize_write.c: a model that was read thin is written whole: each tensor gets its bytes again, which lie in
 * the mapped files, and are written as they are. */
#include "frontends/onnx/quantize.h"

#include <string.h>

#include "core/alloc.h"
#include "core/whole_file.h"
#include "frontends/onnx/tensor.h"
#include "frontends/onnx/upgrade.h"
#include "frontends/onnx/wire.h"

#define INSIDE_MOST (UINT64_C(1) << 30) /* bytes of tensors in the model's own file */

enum { LEAST = 1024, ALIGNED = 64 }; /* bytes of a tensor that goes outside; where it begins */

typedef struct writing {
  heddle__onnx_reader *r;
  heddle_status status;
  uint64_t bytes;      /* of all tensors */
  bool has_outside;    /* the model has data in other files */
  heddle__aside *data; /* that is written; NULL: tensors stay in the model */
  uint64_t at;
  const char *location;
} writing;

static void for_graph(writing *w, Onnx__GraphProto *g, void (*each)(writing *w, Onnx__TensorProto *t));

static void for_attribute(writing *w, Onnx__AttributeProto *a, void (*each)(writing *w, Onnx__TensorProto *t)) {
  if (a->t != NULL) each(w, a->t);
  for (size_t i = 0; i < a->n_tensors; i++) each(w, a->tensors[i]);
  if (a->g != NULL) for_graph(w, a->g, each);
  for (size_t i = 0; i < a->n_graphs; i++) for_graph(w, a->graphs[i], each);
  Onnx__SparseTensorProto *one = a->sparse_tensor;
  for (size_t i = 0; i < a->n_sparse_tensors + (one != NULL); i++) {
    Onnx__SparseTensorProto *s = i < a->n_sparse_tensors ? a->sparse_tensors[i] : one;
    if (s->values != NULL) each(w, s->values);
    if (s->indices != NULL) each(w, s->indices);
  }
}

static void for_nodes(writing *w, Onnx__NodeProto **nodes, size_t n, void (*each)(writing *w, Onnx__TensorProto *t)) {
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < nodes[i]->n_attribute; k++) for_attribute(w, nodes[i]->attribute[k], each);
}

static void for_graph(writing *w, Onnx__GraphProto *g, void (*each)(writing *w, Onnx__TensorProto *t)) {
  for (size_t i = 0; i < g->n_initializer; i++) each(w, g->initializer[i]);
  for (size_t i = 0; i < g->n_sparse_initializer; i++) {
    if (g->sparse_initializer[i]->values != NULL) each(w, g->sparse_initializer[i]->values);
    if (g->sparse_initializer[i]->indices != NULL) each(w, g->sparse_initializer[i]->indices);
  }
  for_nodes(w, g->node, g->n_node, each);
}

/* ---- bytes */

/* Of a tensor in another file: where they lie. */
static void take_outside(writing *w, Onnx__TensorProto *t) {
  const unsigned char *from = NULL;
  uint64_t bytes = UINT64_MAX;
  w->has_outside = true;
  w->status = heddle__onnx_external(w->r, t, &bytes, &from);
  t->raw_data.data = (uint8_t *)(uintptr_t)from;
  t->raw_data.len = (size_t)bytes;
  t->has_raw_data = 1;
  t->has_data_location = 0;
  t->n_external_data = 0;
}

static void restore(writing *w, Onnx__TensorProto *t) {
  heddle__onnx_raw raw;
  if (w->status != HEDDLE_OK) return;
  if (t->has_data_location && (int)t->data_location == HEDDLE__ONNX_HELD) {
    t->has_data_location = 0;
  } else if (t->has_data_location && t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
    take_outside(w, t);
  } else if (t->has_raw_data) {
    if (t->raw_data.len != sizeof raw) {
      w->status = heddle__onnx_fail(w->r, HEDDLE_EFORMAT, "a tensor has no bytes");
      return;
    }
    memcpy(&raw, t->raw_data.data, sizeof raw);
    t->raw_data.data = (uint8_t *)(uintptr_t)w->r->file + raw.offset;
    t->raw_data.len = (size_t)raw.bytes;
  }
  if (t->has_raw_data) w->bytes += t->raw_data.len;
}

static Onnx__StringStringEntryProto *entry(writing *w, const char *key, const char *value) {
  Onnx__StringStringEntryProto *e = heddle__onnx_take(&w->r->arena, sizeof *e);
  if (e == NULL || value == NULL) return NULL;
  onnx__string_string_entry_proto__init(e);
  e->key = (char *)(uintptr_t)key;
  e->value = (char *)(uintptr_t)value;
  return e;
}

static void move_outside(writing *w, Onnx__TensorProto *t) {
  static const unsigned char zeros[ALIGNED] = {0};
  if (w->status != HEDDLE_OK || !t->has_raw_data || t->raw_data.len < LEAST) return;
  const uint64_t gap = (ALIGNED - w->at % ALIGNED) % ALIGNED;
  Onnx__StringStringEntryProto **list = heddle__onnx_take(&w->r->arena, 3 * sizeof *list);
  w->status = heddle__aside_put(w->data, zeros, (size_t)gap, w->r->err);
  if (w->status == HEDDLE_OK) w->status = heddle__aside_put(w->data, t->raw_data.data, t->raw_data.len, w->r->err);
  w->at += gap;
  if (w->status != HEDDLE_OK || list == NULL) {
    if (w->status == HEDDLE_OK) w->status = heddle__onnx_no_memory(w->r);
    return;
  }
  list[0] = entry(w, "location", w->location);
  list[1] = entry(w, "offset", heddle__onnx_format(&w->r->arena, "%llu", (unsigned long long)w->at));
  list[2] = entry(w, "length", heddle__onnx_format(&w->r->arena, "%llu", (unsigned long long)t->raw_data.len));
  if (list[0] == NULL || list[1] == NULL || list[2] == NULL) w->status = heddle__onnx_no_memory(w->r);
  w->at += t->raw_data.len;
  t->external_data = list;
  t->n_external_data = 3;
  t->has_data_location = 1;
  t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
  t->has_raw_data = 0;
  t->raw_data = (ProtobufCBinaryData){0, NULL};
}

static heddle_status pack(heddle__onnx_reader *r, const Onnx__ModelProto *model, const char *output) {
  const size_t bytes = onnx__model_proto__get_packed_size(model);
  unsigned char *out = heddle__alloc(1, bytes + 1);
  if (out == NULL) return heddle__onnx_no_memory(r);
  onnx__model_proto__pack(model, out);
  heddle_status s = heddle__file_write(output, out, bytes, r->err);
  heddle__free(out);
  return s;
}

heddle_status heddle__onnx_write(heddle__onnx_reader *r, Onnx__ModelProto *model, const char *output) {
  writing w = {.r = r};
  heddle__aside data;
  for_graph(&w, model->graph, restore);
  for (size_t i = 0; i < model->n_functions; i++)
    for_nodes(&w, model->functions[i]->node, model->functions[i]->n_node, restore);
  if (w.status != HEDDLE_OK) return w.status;
  if (!w.has_outside && w.bytes <= INSIDE_MOST) return pack(r, model, output);
  const char *path = heddle__onnx_format(&r->arena, "%s.data", output), *slash = strrchr(output, '/');
  w.location = heddle__onnx_format(&r->arena, "%s.data", slash != NULL ? slash + 1 : output);
  if (path == NULL || w.location == NULL) return heddle__onnx_no_memory(r);
  heddle_status s = heddle__aside_begin(&data, path, false, r->err);
  if (s != HEDDLE_OK) return s;
  w.data = &data;
  for (size_t i = 0; i < model->graph->n_initializer; i++) move_outside(&w, model->graph->initializer[i]);
  if (w.status != HEDDLE_OK) {
    heddle__aside_drop(&data);
    return w.status;
  }
  s = heddle__aside_keep(&data, r->err);
  return s == HEDDLE_OK ? pack(r, model, output) : s;
}
