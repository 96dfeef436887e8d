/* frontends/onnx/quantize.c: which weights of a model are quantised, and the nodes that take them. */
#include "frontends/onnx/quantize.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "frontends/onnx/tensor.h"
#include "frontends/onnx/upgrade.h"
#include "frontends/onnx/wire.h"
#include "graph/file.h"

#define MS "com.microsoft"

enum { SMALL = 1024 /* numbers of a weight that is not worth it */, OPSET_QDQ = 21, MOST_NEW = 3 };

/* Bytes of new tensors, which are on the heap until the model is written. */
typedef struct held {
  struct held *next;
  void *bytes;
} held;

typedef struct work {
  heddle__onnx_reader *r;
  const heddle_quantize_options *o;
  Onnx__ModelProto *model;
  Onnx__GraphProto *graph;
  json_t *tensors; /* name of an initialiser to its place */
  json_t *inputs;  /* names of the graph's inputs and outputs */
  json_t *made;    /* "FORM NAME" of a weight that was quantised to the names of its tensors, and what became of it */
  Onnx__TensorProto **list;
  Onnx__NodeProto **nodes; /* of the new model */
  size_t n_list, n_nodes;
  held *held;
  bool needs_ms;
} work;

/* A node with a weight. */
typedef struct target {
  Onnx__NodeProto *node;
  const Onnx__TensorProto *t;
  quantize_matrix w;
  size_t operand;
  bool is_table;
} target;

static const char *text(const char *s) {
  return s != NULL ? s : "";
}

static heddle_status no_memory(work *w) {
  return heddle__onnx_no_memory(w->r);
}

/* ---- names */

static bool note(json_t *set, const char *name) {
  return json_object_set_new(set, text(name), json_integer(0)) == 0;
}

static bool note_graph(work *w, const Onnx__GraphProto *g, json_t *used) {
  bool good = true;
  for (size_t i = 0; i < g->n_node && good; i++) {
    const Onnx__NodeProto *n = g->node[i];
    for (size_t k = 0; k < n->n_input && good; k++) good = note(w->r->taken, n->input[k]) && note(used, n->input[k]);
    for (size_t k = 0; k < n->n_output && good; k++) good = note(w->r->taken, n->output[k]);
    for (size_t k = 0; k < n->n_attribute && good; k++) {
      const Onnx__AttributeProto *a = n->attribute[k];
      if (a->g != NULL) good = note_graph(w, a->g, used);
      for (size_t j = 0; j < a->n_graphs && good; j++) good = note_graph(w, a->graphs[j], used);
    }
  }
  for (size_t i = 0; i < g->n_output && good; i++) good = note(used, g->output[i]->name);
  for (size_t i = 0; i < g->n_initializer && good; i++) good = note(w->r->taken, g->initializer[i]->name);
  for (size_t i = 0; i < g->n_input && good; i++) good = note(w->r->taken, g->input[i]->name);
  return good;
}

static bool is_kept(const work *w, const target *x) {
  for (size_t i = 0; i < w->o->n_keep; i++)
    if (fnmatch(w->o->keep[i], text(x->node->name), 0) == 0 || fnmatch(w->o->keep[i], text(x->t->name), 0) == 0)
      return true;
  return false;
}

/* ---- what is quantised */

static const Onnx__TensorProto *tensor_of(const work *w, const char *name) {
  const json_t *at = json_object_get(w->tensors, text(name));
  return at != NULL ? w->graph->initializer[json_integer_value(at)] : NULL;
}

/* Whether a node has a constant of floats of two dimensions where a weight may be. */
static bool find_target(const work *w, Onnx__NodeProto *n, target *out) {
  const char *domain = text(n->domain), *op = text(n->op_type);
  if (domain[0] != '\0' && strcmp(domain, "ai.onnx") != 0) return false;
  *out = (target){.node = n, .is_table = strcmp(op, "Gather") == 0};
  out->operand = out->is_table ? 0 : 1;
  const bool gemm = strcmp(op, "Gemm") == 0;
  if ((!out->is_table && !gemm && strcmp(op, "MatMul") != 0) || n->n_input < 2 || n->n_output != 1) return false;
  out->t = tensor_of(w, n->input[out->operand]);
  if (out->t == NULL || out->t->n_dims != 2 || out->t->dims[0] < 1 || out->t->dims[1] < 1) return false;
  out->w.type = out->t->data_type;
  if (out->w.type != ONNX_FLOAT && out->w.type != ONNX_FLOAT16 && out->w.type != ONNX_BFLOAT16) return false;
  const int64_t high = out->t->dims[0], wide = out->t->dims[1];
  const bool lies = out->is_table || (gemm && heddle__onnx_attr_int(n, "transB", 0) != 0); /* in rows already */
  out->w.rows = lies ? high : wide;
  out->w.columns = lies ? wide : high;
  out->w.row_step = lies ? wide : 1;
  out->w.column_step = lies ? 1 : wide;
  return true;
}

/* Gemm is a product with a bias. */
static bool is_plain_gemm(const work *w, const target *x) {
  const Onnx__NodeProto *n = x->node;
  if (heddle__onnx_attr_int(n, "transA", 0) != 0 || heddle__onnx_attr_float(n, "alpha", 1) != 1) return false;
  if (n->n_input < 3 || n->input[2][0] == '\0') return true;
  const Onnx__TensorProto *c = tensor_of(w, n->input[2]);
  return heddle__onnx_attr_float(n, "beta", 1) == 1 && c != NULL && c->n_dims == 1 && c->dims[0] == x->w.rows;
}

static const char *why_not(const work *w, const target *x) {
  const bool qdq = (w->o->flags & HEDDLE_QUANTIZE_QDQ) != 0;
  if (is_kept(w, x)) return "it is to be kept";
  if (json_object_get(w->inputs, x->t->name) != NULL) return "it is an input or an output of the model";
  if (x->w.rows * x->w.columns < SMALL || x->w.columns < 16) return "it is small";
  if (x->is_table && heddle__onnx_attr_int(x->node, "axis", 0) != 0) return "rows are not gathered";
  if (x->is_table && qdq) return "a table would be dequantised as a whole";
  if (x->is_table && x->w.columns % (8 / w->o->bits) != 0) return "a row does not fill bytes";
  if (!qdq && strcmp(x->node->op_type, "Gemm") == 0 && !is_plain_gemm(w, x)) return "it is not a product and a bias";
  return NULL;
}

/* ---- tensors */

static void *hold(work *w, size_t bytes) {
  held *h = heddle__alloc(1, sizeof *h);
  void *p = heddle__alloc(1, bytes + 1);
  if (h == NULL || p == NULL) {
    heddle__free(h);
    heddle__free(p);
    return NULL;
  }
  *h = (held){w->held, p};
  w->held = h;
  return p;
}

/* A new initialiser, of bytes that are filled later; its name is made of the weight's. NULL where memory is out. */
static void *new_tensor(work *w, const target *x, const char *suffix, int32_t type, const int64_t *dims, size_t n_dims,
                        size_t bytes, const char **name) {
  Onnx__TensorProto *t = heddle__onnx_take(&w->r->arena, sizeof *t);
  int64_t *shape = heddle__onnx_take(&w->r->arena, n_dims * sizeof *shape);
  const char *wish = heddle__onnx_format(&w->r->arena, "%s_%s", x->t->name, suffix);
  void *out = hold(w, bytes);
  if (t == NULL || shape == NULL || wish == NULL || out == NULL) return NULL;
  *name = heddle__onnx_new_name(w->r, w->r->taken, wish);
  if (*name == NULL) return NULL;
  onnx__tensor_proto__init(t);
  memcpy(shape, dims, n_dims * sizeof *shape);
  t->name = (char *)(uintptr_t)*name;
  t->has_data_type = 1;
  t->data_type = type;
  t->dims = shape;
  t->n_dims = n_dims;
  t->has_raw_data = 1;
  t->raw_data = (ProtobufCBinaryData){bytes, out};
  t->has_data_location = 1;
  t->data_location = (Onnx__TensorProto__DataLocation)HEDDLE__ONNX_HELD;
  w->list[w->n_list++] = t;
  memset(out, 0, bytes);
  return out;
}

/* Number i of a row of packed ones, the first in the lowest bits. */
static void put_packed(uint8_t *row, int64_t i, uint32_t bits, unsigned x) {
  const int64_t each = 8 / (int64_t)bits;
  row[i / each] = (uint8_t)(row[i / each] | x << (bits * (uint32_t)(i % each)));
}

static void copy_scale(const quantize_result *q, int32_t type, int64_t from, void *to, int64_t i) {
  if (type == ONNX_FLOAT) memcpy((float *)to + i, &q->scale[from], sizeof(float));
  else memcpy((uint16_t *)to + i, &q->half[from], sizeof(uint16_t));
}

/* As MatMulNBits and GatherBlockQuantized have them: rows of blocks. names: weights, scales, zero points or "". */
static bool store_rows(work *w, const target *x, const quantize_result *q, const char *names[MOST_NEW],
                       uint64_t *bytes) {
  const int64_t rows = x->w.rows, blocks = q->blocks, block = w->o->block, bits = w->o->bits, wide = blocks * block;
  const int64_t stored = x->is_table ? x->w.columns : wide, row = stored * bits / 8, zero_row = (blocks * bits + 7) / 8;
  const int64_t product[] = {rows, blocks, block * bits / 8}, table[] = {rows, row}, of_blocks[] = {rows, blocks};
  const int64_t of_zeros[] = {rows, zero_row};
  const size_t size = x->w.type == ONNX_FLOAT ? 4 : 2;
  uint8_t *to = new_tensor(w, x, bits == 4 ? "Q4" : "Q8", ONNX_UINT8, x->is_table ? table : product,
                           x->is_table ? 2 : 3, (size_t)(rows * row), &names[0]);
  void *scales = new_tensor(w, x, "scales", x->w.type, of_blocks, 2, (size_t)(rows * blocks) * size, &names[1]);
  uint8_t *zeros = NULL;
  names[2] = "";
  if ((w->o->flags & HEDDLE_QUANTIZE_SYMMETRIC) == 0) {
    zeros = new_tensor(w, x, "zero_points", ONNX_UINT8, of_zeros, 2, (size_t)(rows * zero_row), &names[2]);
    if (zeros == NULL) return false;
  }
  if (to == NULL || scales == NULL) return false;
  for (int64_t n = 0; n < rows; n++) {
    for (int64_t k = 0; k < stored; k++) put_packed(to + n * row, k, w->o->bits, q->q[n * wide + k]);
    for (int64_t b = 0; b < blocks; b++) {
      copy_scale(q, x->w.type, n * blocks + b, scales, n * blocks + b);
      if (zeros != NULL) put_packed(zeros + n * zero_row, b, w->o->bits, q->zero[n * blocks + b]);
    }
  }
  *bytes =
      (uint64_t)(rows * row) + (uint64_t)(rows * blocks) * size + (zeros != NULL ? (uint64_t)(rows * zero_row) : 0);
  return true;
}

/* As DequantizeLinear has them: of the weight's own shape, its blocks along the dimension that is summed over. Symmetric ones
 * have a sign and no zero points. */
static bool store_qdq(work *w, const target *x, const quantize_result *q, const char *names[MOST_NEW],
                      uint64_t *bytes) {
  const int64_t rows = x->w.rows, columns = x->w.columns, blocks = q->blocks, bits = w->o->bits;
  const bool symmetric = (w->o->flags & HEDDLE_QUANTIZE_SYMMETRIC) != 0, lies = x->w.column_step == 1;
  const int32_t type = bits == 4 ? (symmetric ? ONNX_INT4 : ONNX_UINT4) : (symmetric ? ONNX_INT8 : ONNX_UINT8);
  const int64_t of_blocks[] = {lies ? rows : blocks, lies ? blocks : rows};
  const size_t size = x->w.type == ONNX_FLOAT ? 4 : 2, all = (size_t)((rows * columns * bits + 7) / 8),
               of_zeros = (size_t)((rows * blocks * bits + 7) / 8);
  uint8_t *to = new_tensor(w, x, bits == 4 ? "Q4" : "Q8", type, x->t->dims, 2, all, &names[0]);
  void *scales = new_tensor(w, x, "scales", x->w.type, of_blocks, 2, (size_t)(rows * blocks) * size, &names[1]);
  uint8_t *zeros = NULL;
  names[2] = "";
  if (!symmetric) {
    zeros = new_tensor(w, x, "zero_points", type, of_blocks, 2, of_zeros, &names[2]);
    if (zeros == NULL) return false;
  }
  if (to == NULL || scales == NULL) return false;
  const unsigned half = symmetric ? 1U << (bits - 1) : 0, mask = (1U << bits) - 1;
  for (int64_t n = 0; n < rows; n++) {
    for (int64_t k = 0; k < columns; k++)
      put_packed(to, n * x->w.row_step + k * x->w.column_step, w->o->bits,
                 (q->q[n * blocks * w->o->block + k] - half) & mask);
    for (int64_t b = 0; b < blocks; b++) {
      const int64_t at = lies ? n * blocks + b : b * rows + n;
      copy_scale(q, x->w.type, n * blocks + b, scales, at);
      if (zeros != NULL) put_packed(zeros, at, w->o->bits, q->zero[n * blocks + b]);
    }
  }
  *bytes = all + (uint64_t)(rows * blocks) * size + (zeros != NULL ? of_zeros : 0);
  return true;
}

/* ---- nodes */

/* As it is written, too. */
static heddle_status set_int(work *w, Onnx__NodeProto *n, const char *name, int64_t value) {
  const heddle_status s = heddle__onnx_set_int(w->r, n, name, value);
  for (size_t i = 0; s == HEDDLE_OK && i < n->n_attribute; i++) {
    Onnx__AttributeProto *a = n->attribute[i];
    if (strcmp(a->name, name) != 0) continue;
    a->has_type = a->has_i = 1;
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
  }
  return s;
}

static heddle_status set_inputs(work *w, Onnx__NodeProto *n, const char *const *names, size_t count) {
  char **list = heddle__onnx_take(&w->r->arena, count * sizeof *list);
  if (list == NULL) return no_memory(w);
  while (count > 0 && names[count - 1][0] == '\0') count--;
  for (size_t i = 0; i < count; i++) list[i] = (char *)(uintptr_t)names[i];
  n->input = list;
  n->n_input = count;
  return HEDDLE_OK;
}

/* The node becomes one of com.microsoft. */
static heddle_status use_rows(work *w, const target *x, const char *const names[MOST_NEW]) {
  Onnx__NodeProto *n = x->node;
  const char *bias = !x->is_table && n->n_input > 2 ? n->input[2] : "";
  const char *const product[] = {n->input[0], names[0], names[1], names[2], "", bias};
  const char *const table[] = {names[0], n->input[1], names[1], names[2]};
  heddle_status s = x->is_table ? set_inputs(w, n, table, 4) : set_inputs(w, n, product, 6);
  w->needs_ms = true;
  n->n_attribute = 0;
  n->op_type = (char *)(uintptr_t)(x->is_table ? "GatherBlockQuantized" : "MatMulNBits");
  n->domain = (char *)(uintptr_t)MS;
  if (s == HEDDLE_OK && !x->is_table) s = set_int(w, n, "K", x->w.columns);
  if (s == HEDDLE_OK && !x->is_table) s = set_int(w, n, "N", x->w.rows);
  if (s == HEDDLE_OK && !x->is_table && w->o->accuracy_level != 0)
    s = set_int(w, n, "accuracy_level", w->o->accuracy_level);
  if (s == HEDDLE_OK && x->is_table) s = set_int(w, n, "quantize_axis", 1);
  if (s == HEDDLE_OK && x->is_table) s = set_int(w, n, "gather_axis", 0);
  if (s == HEDDLE_OK) s = set_int(w, n, "bits", w->o->bits);
  return s == HEDDLE_OK ? set_int(w, n, "block_size", w->o->block) : s;
}

/* A DequantizeLinear before the node, unless there is one already. */
static heddle_status use_qdq(work *w, const target *x, const char *const names[MOST_NEW], const char **floats) {
  if (*floats == NULL) {
    Onnx__NodeProto *n = heddle__onnx_take(&w->r->arena, sizeof *n);
    char **output = heddle__onnx_take(&w->r->arena, sizeof *output);
    const char *wish = heddle__onnx_format(&w->r->arena, "%s_dequantized", x->t->name);
    if (n == NULL || output == NULL || wish == NULL) return no_memory(w);
    *floats = heddle__onnx_new_name(w->r, w->r->taken, wish);
    if (*floats == NULL) return no_memory(w);
    onnx__node_proto__init(n);
    n->name = n->domain = (char *)(uintptr_t) "";
    n->op_type = (char *)(uintptr_t) "DequantizeLinear";
    output[0] = (char *)(uintptr_t)*floats;
    n->name = output[0];
    n->output = output;
    n->n_output = 1;
    heddle_status s = set_inputs(w, n, names, MOST_NEW);
    if (s == HEDDLE_OK) s = set_int(w, n, "axis", x->w.column_step == 1 ? 1 : 0);
    if (s == HEDDLE_OK) s = set_int(w, n, "block_size", w->o->block);
    if (s != HEDDLE_OK) return s;
    w->nodes[w->n_nodes++] = n;
  }
  return heddle__onnx_set_input(w->r, x->node, x->operand, *floats);
}

static void report(const work *w, const target *x, const char *op, const char *kept, const quantize_result *q,
                   uint64_t after) {
  if (w->o->report == NULL) return;
  const uint64_t size = x->w.type == ONNX_FLOAT ? 4 : 2;
  const heddle_quantize_layer layer = {.struct_size = sizeof layer,
                                       .node = heddle__onnx_node_name(x->node),
                                       .op = op,
                                       .tensor = x->t->name,
                                       .kept = kept,
                                       .rows = x->w.rows,
                                       .columns = x->w.columns,
                                       .error = q != NULL ? q->error : 0,
                                       .worst = q != NULL ? q->worst : 0,
                                       .bytes_before = (uint64_t)x->w.rows * (uint64_t)x->w.columns * size,
                                       .bytes_after = after};
  w->o->report(w->o->ctx, &layer);
}

/* A weight that several nodes use is quantised once for each form. */
static heddle_status quantise_node(work *w, target *x) {
  const bool qdq = (w->o->flags & HEDDLE_QUANTIZE_QDQ) != 0;
  const char *op = x->node->op_type, *names[MOST_NEW], *floats = NULL;
  const char *key = heddle__onnx_format(&w->r->arena, "%d%d %s", x->is_table, x->w.column_step == 1, x->t->name);
  struct heddle__param p = {.name = NULL};
  quantize_result q = {.q = NULL};
  uint64_t after = 0;
  bool finite = true;
  if (key == NULL) return no_memory(w);
  json_t *before = json_object_get(w->made, key);
  heddle_status s = HEDDLE_OK;
  if (before != NULL) {
    for (size_t k = 0; k < MOST_NEW; k++) names[k] = json_string_value(json_array_get(before, k));
    floats = json_string_value(json_array_get(before, MOST_NEW));
    q.error = json_real_value(json_array_get(before, MOST_NEW + 1));
    q.worst = json_real_value(json_array_get(before, MOST_NEW + 2));
    report(w, x, op, NULL, &q, 0);
    return qdq ? use_qdq(w, x, names, &floats) : use_rows(w, x, names);
  }
  s = heddle__onnx_tensor(w->r, x->t, &p);
  if (s == HEDDLE_OK && p.value.data == NULL) s = heddle__onnx_complain(w->r);
  x->w.data = p.value.data;
  bool good = s == HEDDLE_OK && x->w.data != NULL && heddle__onnx_quantise(&x->w, w->o, &q, &finite);
  if (!p.is_mapped) heddle__free(p.value.data);
  heddle__free(p.value.shape);
  if (s != HEDDLE_OK) return s;
  if (!finite) {
    report(w, x, op, "it has numbers that are not finite", NULL, 0);
    return HEDDLE_OK;
  }
  if (good) good = qdq ? store_qdq(w, x, &q, names, &after) : store_rows(w, x, &q, names, &after);
  if (good) report(w, x, op, NULL, &q, after);
  const double error = q.error, worst = q.worst;
  heddle__onnx_quantise_free(&q);
  if (!good) return no_memory(w);
  s = qdq ? use_qdq(w, x, names, &floats) : use_rows(w, x, names);
  if (s == HEDDLE_OK && json_object_set_new(w->made, key,
                                            json_pack("[s,s,s,s,f,f]", names[0], names[1], names[2],
                                                      floats != NULL ? floats : "", error, worst)) != 0)
    return no_memory(w);
  return s;
}

static heddle_status quantise_all(work *w) {
  target x;
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < w->graph->n_node && s == HEDDLE_OK; i++) {
    Onnx__NodeProto *n = w->graph->node[i];
    if (find_target(w, n, &x)) {
      const char *kept = why_not(w, &x);
      if (kept != NULL) report(w, &x, n->op_type, kept, NULL, 0);
      else s = quantise_node(w, &x);
    }
    w->nodes[w->n_nodes++] = n;
  }
  return s;
}

/* ---- the model */

/* Whether a weight was quantised in any form. */
static bool is_made(const work *w, const char *name) {
  const char *key;
  json_t *value;
  json_object_foreach(w->made, key, value) if (strcmp(key + 3, name) == 0) return true;
  return false;
}

/* Weights that were quantised, and that nothing uses any more, are left out. */
static heddle_status finish(work *w) {
  Onnx__GraphProto *g = w->graph;
  json_t *used = json_object();
  g->node = w->nodes;
  g->n_node = w->n_nodes;
  if (used == NULL || !note_graph(w, g, used)) {
    json_decref(used);
    return no_memory(w);
  }
  for (size_t i = 0; i < g->n_initializer; i++) {
    const char *name = text(g->initializer[i]->name);
    if (json_object_get(used, name) != NULL || !is_made(w, name)) w->list[w->n_list++] = g->initializer[i];
  }
  json_decref(used);
  g->initializer = w->list;
  g->n_initializer = w->n_list;
  return HEDDLE_OK;
}

static heddle_status import_ms(work *w) {
  Onnx__ModelProto *m = w->model;
  for (size_t i = 0; i < m->n_opset_import; i++)
    if (strcmp(text(m->opset_import[i]->domain), MS) == 0) return HEDDLE_OK;
  Onnx__OperatorSetIdProto **list = heddle__onnx_take(&w->r->arena, (m->n_opset_import + 1) * sizeof *list);
  Onnx__OperatorSetIdProto *one = heddle__onnx_take(&w->r->arena, sizeof *one);
  if (list == NULL || one == NULL) return no_memory(w);
  for (size_t i = 0; i < m->n_opset_import; i++) list[i] = m->opset_import[i];
  onnx__operator_set_id_proto__init(one);
  one->domain = (char *)(uintptr_t)MS;
  one->has_version = 1;
  one->version = 1;
  list[m->n_opset_import++] = one;
  m->opset_import = list;
  return HEDDLE_OK;
}

static heddle_status check_model(work *w) {
  const Onnx__ModelProto *m = w->model;
  if (m->graph == NULL) return heddle__onnx_fail(w->r, HEDDLE_EFORMAT, "it has no graph");
  for (size_t i = 0; i < m->n_functions; i++)
    if (m->functions[i]->base.n_unknown_fields > 0)
      return heddle__onnx_fail(w->r, HEDDLE_EUNSUPPORTED, "it has functions whose attributes have values of their own");
  for (size_t i = 0; i < m->n_opset_import && (w->o->flags & HEDDLE_QUANTIZE_QDQ) != 0; i++) {
    const char *domain = text(m->opset_import[i]->domain);
    if ((domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0) && m->opset_import[i]->version < OPSET_QDQ)
      return heddle__onnx_fail(w->r, HEDDLE_EUNSUPPORTED,
                               "it is of opset %lld, and blocks of DequantizeLinear came with 21",
                               (long long)m->opset_import[i]->version);
  }
  return HEDDLE_OK;
}

/* A pattern that fits nothing is a slip: what it was to keep would be quantised. */
static heddle_status check_keep(const work *w) {
  const Onnx__GraphProto *g = w->graph;
  char shown[44];
  for (size_t k = 0; k < w->o->n_keep; k++) {
    const char *pattern = w->o->keep[k];
    bool fits = false;
    for (size_t i = 0; i < g->n_node && !fits; i++) fits = fnmatch(pattern, text(g->node[i]->name), 0) == 0;
    for (size_t i = 0; i < g->n_initializer && !fits; i++)
      fits = fnmatch(pattern, text(g->initializer[i]->name), 0) == 0;
    if (!fits)
      return heddle__onnx_fail(w->r, HEDDLE_EINVAL, "no node and no weight is to be kept by '%s'",
                               heddle__onnx_show(pattern, shown));
  }
  return HEDDLE_OK;
}

static heddle_status prepare(work *w) {
  Onnx__GraphProto *g = w->graph = w->model->graph;
  bool good = true;
  json_t *used = json_object();
  for (size_t i = 0; i < g->n_initializer && good; i++)
    good = json_object_set_new(w->tensors, text(g->initializer[i]->name), json_integer((json_int_t)i)) == 0;
  for (size_t i = 0; i < g->n_input && good; i++) good = note(w->inputs, g->input[i]->name);
  for (size_t i = 0; i < g->n_output && good; i++) good = note(w->inputs, g->output[i]->name);
  good = good && used != NULL && note_graph(w, g, used);
  json_decref(used);
  w->list = heddle__onnx_take(&w->r->arena, (g->n_initializer + MOST_NEW * g->n_node + 1) * sizeof *w->list);
  w->nodes = heddle__onnx_take(&w->r->arena, (2 * g->n_node + 1) * sizeof *w->nodes);
  return good && w->list != NULL && w->nodes != NULL ? HEDDLE_OK : no_memory(w);
}

static heddle_status quantize_model(work *w, const unsigned char *thin, size_t bytes, const char *output) {
  ProtobufCAllocator allocator = heddle__onnx_allocator(&w->r->arena);
  w->model = onnx__model_proto__unpack(&allocator, bytes, thin);
  if (w->model == NULL && w->r->arena.is_out) return no_memory(w);
  if (w->model == NULL) return heddle__onnx_fail(w->r, HEDDLE_EFORMAT, "it is no ONNX model, or was damaged");
  heddle_status s = check_model(w);
  if (s == HEDDLE_OK) s = prepare(w);
  if (s == HEDDLE_OK) s = check_keep(w);
  if (s == HEDDLE_OK) s = quantise_all(w);
  if (s == HEDDLE_OK) s = finish(w);
  if (s == HEDDLE_OK && w->needs_ms) s = import_ms(w);
  return s == HEDDLE_OK ? heddle__onnx_write(w->r, w->model, output) : s;
}

heddle_status heddle__onnx_quantize(const char *path, const char *output, const heddle_quantize_options *options,
                                    heddle_error *err) {
  heddle_read_limits limits, of_params;
  heddle__graph_limits(NULL, &limits);
  heddle__params_limits(NULL, &of_params);
  const heddle__file_access access = {limits.trust, limits.key};
  heddle__onnx_reader r = {.name = path,
                           .place = path,
                           .maps = heddle__onnx_maps_new(of_params.max_bytes, &access),
                           .arena = {.limit = limits.max_bytes},
                           .err = err,
                           .taken = json_object(),
                           .types = json_object(),
                           .strings = json_object()};
  work w = {.r = &r, .o = options, .tensors = json_object(), .inputs = json_object(), .made = json_object()};
  unsigned char *thin = NULL;
  size_t thin_bytes = 0;
  heddle_status s = HEDDLE_OK;
  if (r.maps == NULL || r.taken == NULL || r.types == NULL || r.strings == NULL || w.tensors == NULL ||
      w.inputs == NULL || w.made == NULL)
    s = heddle__no_memory(err, "a model");
  if (s == HEDDLE_OK) s = heddle__onnx_map(r.maps, path, &r.file, &r.file_bytes, err);
  if (s == HEDDLE_OK) s = heddle__onnx_thin(path, r.file, r.file_bytes, &limits, &thin, &thin_bytes, err);
  if (s == HEDDLE_OK) s = quantize_model(&w, thin, thin_bytes, output);
  for (held *h = w.held, *next; h != NULL; h = next) {
    next = h->next;
    heddle__free(h->bytes);
    heddle__free(h);
  }
  heddle__free(thin);
  heddle__arena_drop(&r.arena);
  heddle__onnx_maps_free(r.maps);
  json_decref(r.taken);
  json_decref(r.types);
  json_decref(r.strings);
  json_decref(w.tensors);
  json_decref(w.inputs);
  json_decref(w.made);
  return s;
}
