/* tools/compare_part.c: parts of a graph as graphs of their own, made from its JSON and run like any other. */
#include "compare_part.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

static heddle_status broken(heddle_error *err, heddle_status status, const char *why) {
  err->status = status;
  snprintf(err->text, sizeof err->text, "%s", why);
  return status;
}

static heddle_status no_memory(heddle_error *err) {
  return broken(err, HEDDLE_ENOMEM, "out of memory");
}

/* ---- the whole */

static uint32_t number_at(const json_t *list, size_t i) {
  return (uint32_t)json_integer_value(json_array_get(list, i));
}

bool whole_is_input(const whole *w, uint32_t node) {
  return strcmp(json_string_value(json_object_get(json_array_get(w->nodes, node), "op")), "null") == 0;
}

const char *whole_name(const whole *w, uint32_t node) {
  return json_string_value(json_object_get(json_array_get(w->nodes, node), "name"));
}

const char *whole_op(const whole *w, uint32_t node) {
  const json_t *n = json_array_get(w->nodes, node);
  const char *op = json_string_value(json_object_get(n, "op"));
  const char *function = json_string_value(json_object_get(json_object_get(n, "attrs"), "func_name"));
  return strcmp(op, "tvm_op") == 0 && function != NULL ? function : op;
}

uint32_t whole_operands(const whole *w, uint32_t node) {
  return (uint32_t)json_array_size(json_object_get(json_array_get(w->nodes, node), "inputs"));
}

uint32_t whole_operand(const whole *w, uint32_t node, uint32_t k) {
  return whole_entry(w, json_array_get(json_object_get(json_array_get(w->nodes, node), "inputs"), k));
}

uint32_t whole_entry(const whole *w, const json_t *entry) {
  json_int_t from = json_integer_value(json_array_get(entry, 0));
  return from < 0 || from >= w->n_nodes ? UINT32_MAX : w->first[from] + number_at(entry, 1);
}

heddle_status whole_read(const heddle_graph *g, whole *out, heddle_error *err) {
  char *text = NULL;
  size_t bytes = 0;
  *out = (whole){0};
  heddle_status s = heddle_graph_text(g, &text, &bytes, err);
  if (s != HEDDLE_OK) return s;
  out->document = json_loadb(text, bytes, JSON_ALLOW_NUL, NULL);
  heddle_free(text);
  out->nodes = json_object_get(out->document, "nodes");
  out->attrs = json_object_get(out->document, "attrs");
  const json_t *rows = json_object_get(out->document, "node_row_ptr");
  out->n_nodes = (uint32_t)json_array_size(out->nodes);
  if (out->document == NULL || json_array_size(rows) != (size_t)out->n_nodes + 1) return no_memory(err);
  out->n_entries = number_at(rows, out->n_nodes);
  out->first = calloc((size_t)out->n_nodes + 1, sizeof *out->first);
  out->values = calloc((size_t)out->n_entries + 1, sizeof(heddle_tensor *));
  out->constant = calloc((size_t)out->n_entries + 1, sizeof *out->constant);
  out->last_use = calloc((size_t)out->n_entries + 1, sizeof *out->last_use);
  out->owner = calloc((size_t)out->n_entries + 1, sizeof *out->owner);
  out->rank = calloc((size_t)out->n_nodes + 1, sizeof *out->rank);
  out->entry_rank = calloc((size_t)out->n_entries + 1, sizeof *out->entry_rank);
  if (out->first == NULL || out->values == NULL || out->constant == NULL || out->last_use == NULL ||
      out->owner == NULL || out->rank == NULL || out->entry_rank == NULL)
    return no_memory(err);
  for (uint32_t i = 0; i <= out->n_nodes; i++) out->first[i] = number_at(rows, i);
  for (uint32_t i = 0; i < out->n_nodes; i++) {
    bool computed = !whole_is_input(out, i);
    out->rank[i + 1] = out->rank[i] + computed;
    for (uint32_t entry = out->first[i]; entry < out->first[i + 1]; entry++) {
      out->owner[entry] = i;
      out->entry_rank[entry + 1] = out->entry_rank[entry] + computed;
    }
    const char *op = json_string_value(json_object_get(json_array_get(out->nodes, i), "op"));
    out->calls_library = out->calls_library || strcmp(op, "tvm_op") == 0;
    for (uint32_t k = 0; k < whole_operands(out, i); k++) {
      uint32_t entry = whole_operand(out, i, k);
      if (entry != UINT32_MAX) out->last_use[entry] = i;
    }
  }
  const json_t *heads = json_object_get(out->document, "heads");
  for (size_t k = 0; k < json_array_size(heads); k++) {
    uint32_t entry = whole_entry(out, json_array_get(heads, k));
    if (entry != UINT32_MAX) out->last_use[entry] = out->n_nodes;
  }
  return HEDDLE_OK;
}

void whole_finish(whole *w) {
  for (uint32_t i = 0; w->values != NULL && i < w->n_entries; i++) heddle_tensor_release(w->values[i]);
  free(w->first);
  free(w->owner);
  free(w->rank);
  free(w->entry_rank);
  free(w->values);
  free(w->constant);
  free(w->last_use);
  json_decref(w->document);
}

/* ---- making a part */

static bool is_member(const part *p, uint32_t node) {
  return node >= p->begin && node < p->end && (p->chosen == NULL || p->chosen[node]);
}

/* Whether a node of the part computes the entry. */
static bool is_inside(const whole *w, const part *p, uint32_t entry) {
  return is_member(p, w->owner[entry]) && !whole_is_input(w, w->owner[entry]);
}

static bool is_head(const whole *w, const part *p, uint32_t entry) {
  return is_inside(w, p, entry) && (p->heads == NULL || p->heads[entry]);
}

uint32_t part_outputs(const whole *w, const part *p) {
  uint32_t n = 0;
  if (p->chosen == NULL && p->heads == NULL) return w->entry_rank[w->first[p->end]] - w->entry_rank[w->first[p->begin]];
  for (uint32_t entry = w->first[p->begin]; entry < w->first[p->end]; entry++) n += is_head(w, p, entry);
  return n;
}

bool part_leaves(const whole *w, const bool *chosen, uint32_t entry) {
  const uint32_t node = w->owner[entry];
  const json_t *heads = json_object_get(w->document, "heads");
  for (size_t k = 0; k < json_array_size(heads); k++)
    if (whole_entry(w, json_array_get(heads, k)) == entry) return true;
  for (uint32_t i = node + 1; i < w->n_nodes; i++)
    for (uint32_t k = 0; !chosen[i] && k < whole_operands(w, i); k++)
      if (whole_operand(w, i, k) == entry) return true;
  return false;
}

/* Which input of the part an entry is; it is added where it is none yet. */
static uint32_t input_of(part *p, uint32_t entry) {
  for (uint32_t i = 0; i < p->n_inputs; i++)
    if (p->inputs[i] == entry) return i;
  p->inputs[p->n_inputs] = entry;
  return p->n_inputs++;
}

static heddle_status find_inputs(const whole *w, part *p, heddle_error *err) {
  size_t most = 0;
  for (uint32_t i = p->begin; i < p->end; i++) most += whole_operands(w, i);
  p->inputs = calloc(most + 1, sizeof *p->inputs);
  if (p->inputs == NULL) return no_memory(err);
  for (uint32_t i = p->begin; i < p->end; i++) {
    for (uint32_t k = 0; is_member(p, i) && k < whole_operands(w, i); k++) {
      uint32_t entry = whole_operand(w, i, k);
      if (entry != UINT32_MAX && !is_inside(w, p, entry)) input_of(p, entry);
    }
  }
  return HEDDLE_OK;
}

/* How many of its nodes, which are no inputs, come before one. */
static uint32_t nodes_before(const whole *w, const part *p, uint32_t node) {
  uint32_t n = 0;
  if (p->chosen == NULL) return w->rank[node] - w->rank[p->begin];
  for (uint32_t i = p->begin; i < node; i++) n += p->chosen[i] && !whole_is_input(w, i);
  return n;
}

/* An operand of a node of the part, as an entry of the part: inputs first, then the nodes. */
static json_t *moved(const whole *w, part *p, uint32_t node, uint32_t k) {
  uint32_t entry = whole_operand(w, node, k);
  if (entry == UINT32_MAX) return json_pack("[i,i,i]", -1, 0, 0);
  if (!is_inside(w, p, entry)) return json_pack("[I,i,i]", (json_int_t)input_of(p, entry), 0, 0);
  const uint32_t from = w->owner[entry];
  return json_pack("[I,I,i]", (json_int_t)(p->n_inputs + nodes_before(w, p, from)),
                   (json_int_t)(entry - w->first[from]), 0);
}

/* A member of a column of attrs for an entry of the whole; null where there is none. */
static json_t *column_at(const whole *w, const char *column, uint32_t entry) {
  const json_t *pair = json_object_get(w->attrs, column);
  json_t *member = json_array_get(json_array_get(pair, 1), entry);
  return member != NULL ? json_incref(member) : json_null();
}

/* dtype and shape of the inputs are those of their values; of nodes, what the whole says of compiled functions, which say
 * nothing themselves. */
static json_t *columns(const whole *w, const part *p) {
  json_t *dtypes = json_array(), *shapes = json_array(), *ids = json_array(), *devices = json_array();
  for (uint32_t i = 0; i < p->n_inputs; i++) {
    const heddle_tensor *t = w->values[p->inputs[i]];
    char dtype[32];
    dtype_text(heddle_tensor_dtype(t), dtype);
    json_array_append_new(dtypes, json_string(dtype));
    json_array_append_new(shapes, json_shape(heddle_tensor_shape(t), heddle_tensor_ndim(t), NULL));
    json_array_append_new(ids, json_integer(i));
    json_array_append_new(devices, column_at(w, "device_index", p->inputs[i]));
  }
  for (uint32_t entry = w->first[p->begin]; entry < w->first[p->end]; entry++) {
    if (!is_inside(w, p, entry)) continue;
    json_array_append_new(dtypes, w->calls_library ? column_at(w, "dltype", entry) : json_null());
    json_array_append_new(shapes, w->calls_library ? column_at(w, "shape", entry) : json_null());
    json_array_append_new(ids, json_integer((json_int_t)json_array_size(ids)));
    json_array_append_new(devices, column_at(w, "device_index", entry));
  }
  json_t *made = json_pack("{s[so] s[so]}", "dltype", "list_str", dtypes, "shape", "list_shape", shapes);
  if (w->calls_library) {
    json_object_set_new(made, "storage_id", json_pack("[sO]", "list_int", ids));
    if (json_object_get(w->attrs, "device_index") != NULL)
      json_object_set_new(made, "device_index", json_pack("[sO]", "list_int", devices));
  }
  json_decref(ids);
  json_decref(devices);
  return made;
}

static json_t *part_document(const whole *w, part *p) {
  json_t *nodes = json_array(), *args = json_array(), *heads = json_array(), *rows = json_array();
  for (uint32_t i = 0; i < p->n_inputs; i++) {
    char name[24];
    snprintf(name, sizeof name, "in%" PRIu32, i);
    json_array_append_new(nodes, json_pack("{ss ss s[]}", "op", "null", "name", name, "inputs"));
    json_array_append_new(args, json_integer(i));
    json_array_append_new(rows, json_integer(i));
  }
  uint32_t row = p->n_inputs;
  for (uint32_t i = p->begin; i < p->end; i++) {
    if (whole_is_input(w, i) || !is_member(p, i)) continue;
    json_t *node = json_deep_copy(json_array_get(w->nodes, i)), *inputs = json_array();
    for (uint32_t k = 0; k < whole_operands(w, i); k++) json_array_append_new(inputs, moved(w, p, i, k));
    json_object_set_new(node, "inputs", inputs);
    json_object_del(node, "device");
    json_object_del(node, "stream");
    json_object_del(node, "control_deps");
    json_array_append_new(nodes, node);
    const uint32_t at = p->n_inputs + nodes_before(w, p, i);
    json_array_append_new(rows, json_integer(row));
    row += w->first[i + 1] - w->first[i];
    for (uint32_t k = 0; k < w->first[i + 1] - w->first[i]; k++)
      if (is_head(w, p, w->first[i] + k))
        json_array_append_new(heads, json_pack("[I,I,i]", (json_int_t)at, (json_int_t)k, 0));
  }
  json_array_append_new(rows, json_integer(row));
  json_t *document = json_object(), *own = json_deep_copy(json_object_get(w->document, "heddle"));
  if (own != NULL) {
    json_object_del(own, "optimize"); /* it is run as it is */
    json_object_set_new(document, "heddle", own);
  }
  json_object_set_new(document, "nodes", nodes);
  json_object_set_new(document, "arg_nodes", args);
  json_object_set_new(document, "heads", heads);
  json_object_set_new(document, "node_row_ptr", rows);
  json_object_set_new(document, "attrs", columns(w, p));
  return document;
}

static heddle_status make(const whole *w, part *out, heddle_error *err) {
  heddle_status s = find_inputs(w, out, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = 0; i < out->n_inputs; i++)
    if (w->values[out->inputs[i]] == NULL) return broken(err, HEDDLE_EINVAL, "a value between nodes is not known");
  out->document = part_document(w, out);
  return out->document != NULL ? HEDDLE_OK : no_memory(err);
}

heddle_status part_make(const whole *w, uint32_t begin, uint32_t end, part *out, heddle_error *err) {
  *out = (part){.begin = begin, .end = end};
  return make(w, out, err);
}

heddle_status part_choose(const whole *w, const bool *chosen, const bool *heads, part *out, heddle_error *err) {
  *out = (part){.end = w->n_nodes, .chosen = chosen, .heads = heads};
  while (out->begin < out->end && !chosen[out->begin]) out->begin++;
  while (out->end > out->begin && !chosen[out->end - 1]) out->end--;
  return make(w, out, err);
}

void part_finish(part *p) {
  free(p->inputs);
  json_decref(p->document);
  *p = (part){0};
}

/* ---- graph and parameters of a part */

static heddle_status part_graph(const part *p, heddle_graph **out, heddle_error *err) {
  char *text = json_dumps(p->document, JSON_COMPACT | JSON_ENCODE_ANY);
  if (text == NULL) return no_memory(err);
  heddle_status s = heddle_graph_parse(text, strlen(text), "the part of the graph", NULL, out, err);
  free(text);
  return s;
}

/* *out is NULL where no input is a constant. */
static heddle_status part_params(const whole *w, const part *p, heddle_params **out, heddle_error *err) {
  *out = NULL;
  char(*texts)[24] = calloc((size_t)p->n_inputs + 1, sizeof *texts);
  const char **names = calloc((size_t)p->n_inputs + 1, sizeof *names);
  heddle_tensor **tensors = calloc((size_t)p->n_inputs + 1, sizeof(heddle_tensor *));
  heddle_status s = texts == NULL || names == NULL || tensors == NULL ? no_memory(err) : HEDDLE_OK;
  size_t n = 0;
  for (uint32_t i = 0; s == HEDDLE_OK && i < p->n_inputs; i++) {
    if (!w->constant[p->inputs[i]]) continue;
    snprintf(texts[i], sizeof texts[i], "in%" PRIu32, i);
    names[n] = texts[i];
    tensors[n++] = w->values[p->inputs[i]];
  }
  if (s == HEDDLE_OK && n > 0) s = heddle_params_create(names, tensors, n, out, err);
  free(texts);
  free(names);
  free(tensors);
  return s;
}

/* ---- running */

static void read_place(heddle_executor *ex, part_place *place) {
  char *text = NULL;
  *place = (part_place){.largest = 0};
  if (heddle_executor_explain(ex, HEDDLE_EXPLAIN_JSON, &text, NULL) != HEDDLE_OK) return;
  json_t *plan = json_loads(text, 0, NULL), *region;
  json_t *number = json_object_get(json_array_get(json_object_get(plan, "nodes"), 0), "device");
  json_t *entry = json_array_get(json_object_get(plan, "devices"), (size_t)json_integer_value(number));
  const char *name = json_string_value(json_object_get(entry, "name"));
  size_t i;
  if (json_is_integer(number) && name != NULL) snprintf(place->device, sizeof place->device, "%s", name);
  json_array_foreach(json_object_get(plan, "regions"), i, region) {
    const size_t n = json_array_size(json_object_get(region, "nodes"));
    if (n > place->largest) place->largest = (uint32_t)n;
  }
  json_decref(plan);
  heddle_free(text);
}

static heddle_status copy_of(const heddle_tensor *from, heddle_tensor **out, heddle_error *err) {
  heddle_status s = heddle_tensor_create(NULL, heddle_tensor_dtype(from), heddle_tensor_shape(from),
                                         heddle_tensor_ndim(from), out, err);
  return s == HEDDLE_OK ? heddle_tensor_copy(*out, from, err) : s;
}

static heddle_status execute(const session *s, const whole *w, const part *p, heddle_executor *ex, heddle_tensor **out,
                             heddle_error *err) {
  heddle_status r = HEDDLE_OK;
  for (uint32_t i = 0; i < p->n_inputs && r == HEDDLE_OK; i++)
    if (!w->constant[p->inputs[i]]) r = heddle_executor_set_input(ex, i, w->values[p->inputs[i]], err);
  if (r == HEDDLE_OK) r = heddle_executor_run(ex, session_timeout(s), err);
  if (r == HEDDLE_ETIMEOUT) heddle_executor_cancel(ex, NULL);
  for (uint32_t i = 0; r == HEDDLE_OK && i < part_outputs(w, p); i++) {
    heddle_tensor *seen = NULL;
    r = heddle_executor_view_output(ex, i, &seen, err);
    if (r == HEDDLE_OK) r = copy_of(seen, &out[i], err);
    heddle_tensor_release(seen);
  }
  return r;
}

/* What a part runs with. */
typedef struct made {
  heddle_graph *graph;
  heddle_params *params;
  heddle_model *model;
  heddle_executor *ex;
} made;

static heddle_status prepare(const session *s, const whole *w, const part *p, made *m, heddle_error *err) {
  heddle_model_options mo = {.struct_size = sizeof mo,
                             .devices = s->o->devices,
                             .place = s->o->place.data,
                             .n_place = s->o->place.count,
                             .flags = HEDDLE_MODEL_IGNORE_ANNOTATIONS | s->model_flags,
                             .library = s->model != NULL ? heddle_model_library(s->model) : NULL,
                             .memory = s->o->memory,
                             .optimize = "off"};
  *m = (made){0};
  heddle_status r = part_graph(p, &m->graph, err);
  if (r == HEDDLE_OK) r = part_params(w, p, &m->params, err);
  if (r == HEDDLE_OK) r = heddle_model_create(s->ctx, m->graph, m->params, &mo, &m->model, err);
  return r == HEDDLE_OK ? heddle_executor_create(m->model, &m->ex, err) : r;
}

static void release(made *m) {
  heddle_executor_release(m->ex);
  heddle_model_release(m->model);
  heddle_params_release(m->params);
  heddle_graph_release(m->graph);
}

heddle_status part_run(const session *s, const whole *w, const part *p, heddle_tensor **out, part_place *place,
                       heddle_error *err) {
  made m;
  heddle_status r = prepare(s, w, p, &m, err);
  if (r == HEDDLE_OK) r = execute(s, w, p, m.ex, out, err);
  if (r == HEDDLE_OK && place != NULL) read_place(m.ex, place);
  release(&m);
  return r;
}

heddle_status part_plan(const session *s, const whole *w, const part *p, json_t **out, heddle_error *err) {
  made m;
  char *text = NULL;
  *out = NULL;
  heddle_status r = prepare(s, w, p, &m, err);
  if (r == HEDDLE_OK) r = heddle_executor_explain(m.ex, HEDDLE_EXPLAIN_JSON, &text, err);
  if (r == HEDDLE_OK) *out = json_loads(text, 0, NULL);
  heddle_free(text);
  release(&m);
  return r;
}

/* ---- files */

static heddle_status save_tensor(const heddle_tensor *t, const char *folder, const char *name, uint32_t i,
                                 heddle_error *err) {
  char path[4200];
  snprintf(path, sizeof path, "%s/%s%" PRIu32 ".npy", folder, name, i);
  return heddle_tensor_save_npy(t, path, err);
}

heddle_status part_save(const whole *w, const part *p, heddle_tensor *const *expected, const char *folder,
                        heddle_error *err) {
  char path[4200];
  heddle_graph *g = NULL;
  heddle_params *params = NULL;
  heddle_status s = part_graph(p, &g, err);
  if (s == HEDDLE_OK) s = part_params(w, p, &params, err);
  snprintf(path, sizeof path, "%s/node.params", folder);
  if (s == HEDDLE_OK && params != NULL) s = heddle_params_save(params, path, err);
  else if (s == HEDDLE_OK) remove(path); /* of an earlier node */
  snprintf(path, sizeof path, "%s/node.json", folder);
  if (s == HEDDLE_OK) s = heddle_graph_save(g, path, err);
  for (uint32_t i = 0; i < p->n_inputs && s == HEDDLE_OK; i++)
    s = save_tensor(w->values[p->inputs[i]], folder, "in", i, err);
  for (uint32_t i = 0; i < part_outputs(w, p) && s == HEDDLE_OK; i++)
    s = save_tensor(expected[i], folder, "expected_", i, err);
  heddle_params_release(params);
  heddle_graph_release(g);
  return s;
}
