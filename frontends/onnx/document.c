/* frontends/onnx/document.c: nodes and tensors as a document of graph JSON with parameters. Inputs come first, in the
 * model's order, then the tensors that are used, then the nodes. An output whose node has another name gets a node
 * Identity of its own name, which is a view and costs nothing when the graph runs. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "frontends/onnx/expand.h"
#include "frontends/onnx/objects.h"
#include "frontends/onnx/sequences.h"
#include "frontends/onnx/strings.h"
#include "frontends/onnx/tensor.h"
#include "frontends/onnx/types.h"
#include "frontends/onnx/upgrade.h"
#include "graph/general.h"

enum { MAX_OUTPUTS = 65535 };

typedef struct writer {
  heddle__onnx_reader *r;
  Onnx__NodeProto **list; /* the nodes that are written */
  size_t n_list;
  const Onnx__GraphProto *graph; /* whose they are */
  json_t *nodes, *args, *heads, *row_ptr, *dtypes, *shapes;
  json_t *names;   /* of nodes */
  json_t *entries; /* name of a value: node * 65536 + output */
  json_t *makers;  /* name of a value: position in list of the node that makes it */
  bool *is_used;   /* per tensor */
  json_int_t n_entries;
  heddle_params *params;
} writer;

#define MUST(call) \
  if ((call) != 0) return heddle__onnx_no_memory(w->r)

/* ---- nodes */

/* A node with n outputs; its types are null until they are set. Takes object over. */
static heddle_status add_node(writer *w, json_t *object, size_t n_outputs) {
  MUST(json_array_append_new(w->nodes, object));
  for (size_t i = 0; i < n_outputs; i++) {
    MUST(json_array_append_new(w->dtypes, json_null()));
    MUST(json_array_append_new(w->shapes, json_null()));
  }
  w->n_entries += (json_int_t)n_outputs;
  MUST(json_array_append_new(w->row_ptr, json_integer(w->n_entries)));
  return HEDDLE_OK;
}

/* Types of the node added last; takes both over, NULL: leaves null. */
static heddle_status set_type(writer *w, size_t output, size_t n_outputs, json_t *dtype, json_t *shape) {
  size_t at = (size_t)w->n_entries - n_outputs + output;
  int failed = dtype != NULL ? json_array_set_new(w->dtypes, at, dtype) : 0;
  failed |= shape != NULL ? json_array_set_new(w->shapes, at, shape) : 0;
  return failed == 0 ? HEDDLE_OK : heddle__onnx_no_memory(w->r);
}

static heddle_status name_entry(writer *w, const char *value, size_t output) {
  json_int_t node = (json_int_t)json_array_size(w->nodes) - 1;
  MUST(json_object_set_new(w->entries, value, json_integer(node * (MAX_OUTPUTS + 1) + (json_int_t)output)));
  return HEDDLE_OK;
}

/* [node, output, 0] of a value. */
static json_t *entry_of(json_int_t code) {
  return json_pack("[I, I, i]", code / (MAX_OUTPUTS + 1), code % (MAX_OUTPUTS + 1), 0);
}

static heddle_status add_null(writer *w, const char *name, json_t *dtype, json_t *shape) {
  json_t *object = json_pack("{ss ss s[]}", "op", "null", "name", name, "inputs");
  heddle_status s = add_node(w, object, 1);
  if (s == HEDDLE_OK) s = set_type(w, 0, 1, dtype, shape);
  else {
    json_decref(dtype);
    json_decref(shape);
  }
  if (s != HEDDLE_OK) return s;
  MUST(json_array_append_new(w->args, json_integer((json_int_t)json_array_size(w->nodes) - 1)));
  MUST(json_object_set_new(w->names, name, json_true()));
  return name_entry(w, name, 0);
}

/* ---- inputs and tensors */

static bool is_text(const Onnx__ValueInfoProto *v) {
  const Onnx__TypeProto *type = v->type;
  return type != NULL && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
         type->tensor_type->elem_type == ONNX_STRING;
}

/* Whether a file says what a value is: of outputs it need not. */
static bool has_type(const Onnx__ValueInfoProto *v) {
  return v->type != NULL && v->type->value_case != ONNX__TYPE_PROTO__VALUE__NOT_SET;
}

static heddle_status add_input(writer *w, const Onnx__ValueInfoProto *v) {
  json_t *dtype = NULL, *shape = NULL;
  heddle_status s = heddle__onnx_describe(w->r, v, "input", &dtype, &shape);
  if (s == HEDDLE_OK && dtype == NULL) return name_entry(w, v->name, 0); /* a problem; the rest is still looked at */
  if (s != HEDDLE_OK) {
    json_decref(dtype);
    json_decref(shape);
    return s;
  }
  s = add_null(w, v->name, dtype, shape);
  if (s == HEDDLE_OK) s = heddle__onnx_note_port(w->r, v);
  return s == HEDDLE_OK && is_text(v) ? heddle__onnx_note_text(w->r, v->name) : s;
}

static heddle_status add_tensor(writer *w, size_t i) {
  const Onnx__TensorProto *t = w->r->tensors[i];
  heddle_params *p = w->params;
  struct heddle__param *item = &p->items[p->count];
  item->name = heddle__alloc(strlen(t->name) + 1, 1);
  if (item->name == NULL) return heddle__onnx_no_memory(w->r);
  memcpy(item->name, t->name, strlen(t->name) + 1);
  p->count++; /* from here on the release of params frees it */
  heddle_status s = heddle__onnx_tensor(w->r, t, item);
  if (s != HEDDLE_OK || json_object_get(w->entries, t->name) != NULL) return s; /* the value of an input */
  heddle_dtype dtype;
  const char *word = "";
  if (!heddle__onnx_dtype_of(t->data_type, &dtype, &word)) return name_entry(w, t->name, 0); /* a problem */
  json_t *shape = json_array();
  for (size_t k = 0; shape != NULL && k < t->n_dims; k++) MUST(json_array_append_new(shape, json_integer(t->dims[k])));
  return add_null(w, t->name, json_string(word), shape);
}

static void use(writer *w, const char *name) {
  const json_t *at = json_object_get(w->r->tensor_at, name);
  if (at != NULL) w->is_used[json_integer_value(at)] = true;
}

static heddle_status add_inputs(writer *w) {
  heddle__onnx_reader *r = w->r;
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < r->n_nodes; i++)
    for (size_t k = 0; k < r->nodes[i]->n_input; k++) use(w, r->nodes[i]->input[k]);
  for (size_t i = 0; i < r->graph->n_output; i++) use(w, r->graph->output[i]->name);
  for (size_t i = 0; i < r->graph->n_input && s == HEDDLE_OK; i++) {
    const char *name = r->graph->input[i]->name;
    const json_t *at = json_object_get(r->tensor_at, name);
    if (at == NULL || w->is_used[json_integer_value(at)]) s = add_input(w, r->graph->input[i]);
  }
  for (size_t i = 0; i < r->n_tensors && s == HEDDLE_OK; i++)
    if (w->is_used[i]) s = add_tensor(w, i);
  return s;
}

/* ---- operators */

static heddle_status missing(writer *w, const Onnx__NodeProto *node, const char *value) {
  char name[44], op[44], shown[44];
  bool later = json_object_get(w->makers, value) != NULL;
  heddle__onnx_fail(w->r, HEDDLE_EFORMAT, "node '%s' (%s): nothing before it makes its input '%s'%s",
                    heddle__onnx_show(heddle__onnx_node_name(node), name), heddle__onnx_show(node->op_type, op),
                    heddle__onnx_show(value, shown),
                    later ? ", which a later node does: there is a cycle, or the nodes are not in order" : "");
  return heddle__at_node(HEDDLE_EFORMAT, w->r->err, HEDDLE__NO_NODE, heddle__onnx_node_name(node));
}

static heddle_status inputs_of(writer *w, const Onnx__NodeProto *node, json_t **out) {
  size_t n = node->n_input;
  while (n > 0 && node->input[n - 1][0] == '\0') n--;
  json_t *list = *out = json_array();
  for (size_t i = 0; i < n; i++) {
    const json_t *entry = json_object_get(w->entries, node->input[i]);
    bool absent = node->input[i][0] == '\0';
    if (!absent && entry == NULL) return missing(w, node, node->input[i]);
    MUST(json_array_append_new(list, absent ? json_pack("[i, i, i]", -1, 0, 0) : entry_of(json_integer_value(entry))));
  }
  return list != NULL ? HEDDLE_OK : heddle__onnx_no_memory(w->r);
}

static const heddle__schema *schema_of(const writer *w, const Onnx__NodeProto *node) {
  return heddle__schema_find(node->domain, node->op_type, node->domain[0] == '\0' ? w->r->target : 0);
}

/* How many outputs a node has. Absent ones at the end are left out, but for an operator of any number of outputs: there
 * the count decides what comes out (Split), or each stands for one of a graph (If, Loop, Scan). 0: all are absent. */
static size_t outputs_of(const writer *w, const Onnx__NodeProto *node) {
  const heddle__schema *schema = schema_of(w, node);
  size_t n = node->n_output;
  while (n > 0 && node->output[n - 1][0] == '\0') n--;
  if (n == 0 || schema == NULL || schema->max_outputs != HEDDLE__VARIADIC) return n;
  /* ONNX lets a node name fewer outputs than num_outputs says. */
  const int64_t all = strcmp(node->op_type, "Split") == 0 ? heddle__onnx_attr_int(node, "num_outputs", 0) : 0;
  return all > (int64_t)node->n_output ? (size_t)all : node->n_output;
}

static heddle_status add_graphs(writer *w, const Onnx__NodeProto *node, json_t *attrs);

/* An operator that graphs do not have: with the opset of its own domain. */
static void unknown(heddle__onnx_reader *r, const Onnx__NodeProto *node) {
  const Onnx__ModelProto *m = r->model;
  char shown[44];
  if (heddle__onnx_expansion(node) != NULL) return; /* what is wrong with it was noted */
  if (node->domain[0] == '\0') {
    heddle__onnx_problem(r, node, "the operator is not known in opset %u%s", (unsigned)r->target,
                         HEDDLE__NO_RARE_OPERATORS);
    return;
  }
  heddle__onnx_show(node->domain, shown);
  for (size_t i = 0; i < m->n_opset_import; i++) {
    const char *domain = m->opset_import[i]->domain;
    if (domain == NULL || strcmp(domain, node->domain) != 0) continue;
    heddle__onnx_problem(r, node, "the operator is not known in opset %lld of %s%s",
                         (long long)m->opset_import[i]->version, shown, HEDDLE__NO_RARE_OPERATORS);
    return;
  }
  heddle__onnx_problem(r, node, "the operator is not known, and the model imports no opset of %s%s", shown,
                       HEDDLE__NO_RARE_OPERATORS);
}

static heddle_status add_operator(writer *w, const Onnx__NodeProto *node) {
  json_t *inputs = NULL;
  char shown[44];
  const heddle__schema *schema = schema_of(w, node);
  size_t n_outputs = outputs_of(w, node);
  if (n_outputs == 0) return HEDDLE_OK; /* nothing can use it */
  if (n_outputs > MAX_OUTPUTS)
    return heddle__at_node(heddle__onnx_fail(w->r, HEDDLE_ELIMIT, "node '%s' has %zu outputs",
                                             heddle__onnx_show(heddle__onnx_node_name(node), shown), n_outputs),
                           w->r->err, HEDDLE__NO_NODE, heddle__onnx_node_name(node));
  const bool is_control = heddle__onnx_is_control(node);
  if (heddle__onnx_has_graph(node) && !is_control) heddle__onnx_problem(w->r, node, "it runs a graph of its own");
  else if (schema == NULL) unknown(w->r, node);
  heddle_status s = inputs_of(w, node, &inputs);
  json_t *attrs = s == HEDDLE_OK ? heddle__onnx_attrs(w->r, node) : NULL;
  if (attrs != NULL && is_control) s = add_graphs(w, node, attrs);
  const char *name =
      attrs != NULL && s == HEDDLE_OK ? heddle__onnx_new_name(w->r, w->names, heddle__onnx_node_name(node)) : NULL;
  json_t *object = NULL;
  if (name != NULL)
    object = json_pack("{ss ss sO sO}", "op", node->op_type, "name", name, "attrs", attrs, "inputs", inputs);
  if (object != NULL && node->domain[0] != '\0' &&
      json_object_set_new(object, "domain", json_string(node->domain)) != 0) {
    json_decref(object);
    object = NULL;
  }
  json_decref(attrs);
  json_decref(inputs);
  if (s != HEDDLE_OK) return s;
  s = add_node(w, object, n_outputs); /* NULL is memory's lack there too */
  for (size_t k = 0; k < n_outputs && k < node->n_output && s == HEDDLE_OK; k++)
    if (node->output[k][0] != '\0') s = name_entry(w, node->output[k], k);
  return s;
}

/* ---- outputs */

/* What is declared of an output's value, beside what is declared of it already where it is an input, too: both hold. Takes
 * both over, NULL: nothing is declared. */
static heddle_status declare(writer *w, size_t at, json_t *dtype, json_t *shape, const char *name) {
  const json_t *before = json_array_get(w->dtypes, at), *dims = json_array_get(w->shapes, at);
  bool differs = dtype != NULL && json_is_string(before) && !json_equal(before, dtype);
  bool both = json_is_array(shape) && json_is_array(dims);
  bool misleads = both && json_array_size(shape) != json_array_size(dims);
  int failed = 0;
  for (size_t d = 0; both && !misleads && d < json_array_size(dims); d++) {
    const json_t *a = json_array_get(dims, d), *b = json_array_get(shape, d);
    misleads = json_is_integer(a) && json_is_integer(b) && !json_equal(a, b);
    if (json_is_integer(a) || json_is_null(b)) failed |= json_array_set(shape, d, (json_t *)(uintptr_t)a);
  }
  char shown[44];
  heddle__onnx_show(name, shown);
  if (misleads) {
    heddle__onnx_warn(w->r, "'%s' is declared with two shapes, and has the first", shown);
    json_decref(shape);
    shape = NULL;
  }
  if (!differs && dtype != NULL) failed |= json_array_set(w->dtypes, at, dtype);
  if (!differs && (json_is_array(shape) || !json_is_array(dims)) && shape != NULL)
    failed |= json_array_set(w->shapes, at, shape);
  json_decref(dtype);
  json_decref(shape);
  if (differs) return heddle__onnx_fail(w->r, HEDDLE_EFORMAT, "output '%s' is declared with two types", shown);
  return failed == 0 ? HEDDLE_OK : heddle__onnx_no_memory(w->r);
}

/* A head whose node has its name; others get one. */
static heddle_status add_head(writer *w, const Onnx__ValueInfoProto *v) {
  char shown[44];
  const json_t *entry = json_object_get(w->entries, v->name);
  json_t *dtype = NULL, *shape = NULL;
  if (entry == NULL)
    return heddle__onnx_fail(w->r, HEDDLE_EFORMAT, "nothing makes output '%s'", heddle__onnx_show(v->name, shown));
  json_int_t code = json_integer_value(entry), id = code / (MAX_OUTPUTS + 1);
  const json_t *node = json_array_get(w->nodes, (size_t)id);
  const char *name = json_string_value(json_object_get(node, "name"));
  const bool is_map = heddle__onnx_is_map(w->r, v->name); /* its type is of no tensor */
  const bool is_open = !has_type(v), is_given_text = heddle__onnx_known_of(w->r, v->name).type == ONNX_STRING;
  heddle_status s = is_map || is_open ? HEDDLE_OK : heddle__onnx_describe(w->r, v, "output", &dtype, &shape);
  if (s == HEDDLE_OK) s = heddle__onnx_note_port(w->r, v);
  if (s == HEDDLE_OK && (is_text(v) || (is_open && is_given_text))) s = heddle__onnx_note_text(w->r, v->name);
  if (s == HEDDLE_OK && is_open && is_given_text) dtype = json_string("int64"); /* numbers of texts */
  if (s == HEDDLE_OK && name != NULL && (code % (MAX_OUTPUTS + 1) != 0 || strcmp(name, v->name) != 0)) {
    json_t *inputs = json_array();
    MUST(json_array_append_new(inputs, entry_of(code)));
    s = add_node(w, json_pack("{ss ss so}", "op", "Identity", "name", v->name, "inputs", inputs), 1);
    code = ((json_int_t)json_array_size(w->nodes) - 1) * (MAX_OUTPUTS + 1);
    if (s == HEDDLE_OK) {
      s = set_type(w, 0, 1, dtype, shape);
      dtype = shape = NULL;
    }
  } else if (s == HEDDLE_OK) {
    json_int_t at = json_integer_value(json_array_get(w->row_ptr, (size_t)id));
    s = declare(w, (size_t)at, dtype, shape, v->name);
    dtype = shape = NULL;
  }
  json_decref(dtype);
  json_decref(shape);
  if (s != HEDDLE_OK) return s;
  MUST(json_array_append_new(w->heads, entry_of(code)));
  return HEDDLE_OK;
}

/* Names of inputs and outputs are kept for them: only a node of one output has its name, several are NAME:0, NAME:1. */
static heddle_status reserve_names(writer *w) {
  for (size_t i = 0; i < w->n_list; i++)
    for (size_t k = 0; k < w->list[i]->n_output; k++)
      MUST(json_object_set_new(w->makers, w->list[i]->output[k], json_integer((json_int_t)i)));
  for (size_t i = 0; i < w->graph->n_output; i++) {
    const char *name = w->graph->output[i]->name;
    const json_t *maker = json_object_get(w->makers, name);
    const Onnx__NodeProto *node = maker != NULL ? w->list[json_integer_value(maker)] : NULL;
    bool is_own = node != NULL && outputs_of(w, node) == 1 && strcmp(node->output[0], name) == 0 &&
                  strcmp(heddle__onnx_node_name(node), name) == 0;
    if (!is_own) MUST(json_object_set_new(w->names, name, json_true()));
  }
  return HEDDLE_OK;
}

static heddle_status write_all(writer *w) {
  heddle__onnx_reader *r = w->r;
  MUST(json_array_append_new(w->row_ptr, json_integer(0)));
  heddle_status s = reserve_names(w);
  if (s == HEDDLE_OK) s = add_inputs(w);
  for (size_t i = 0; i < w->n_list && s == HEDDLE_OK; i++) s = add_operator(w, w->list[i]);
  if (r->problems.n > 0) return s; /* heads may be of what was left out */
  for (size_t i = 0; i < r->graph->n_output && s == HEDDLE_OK; i++) s = add_head(w, r->graph->output[i]);
  return s;
}

/* ---- the whole */

static void open_writer(writer *w) {
  w->nodes = json_array();
  w->args = json_array();
  w->heads = json_array();
  w->row_ptr = json_array();
  w->dtypes = json_array();
  w->shapes = json_array();
  w->names = json_object();
  w->entries = json_object();
  w->makers = json_object();
}

static void close_writer(writer *w) {
  json_decref(w->nodes);
  json_decref(w->args);
  json_decref(w->heads);
  json_decref(w->row_ptr);
  json_decref(w->dtypes);
  json_decref(w->shapes);
  json_decref(w->names);
  json_decref(w->entries);
  json_decref(w->makers);
}

/* The members of a document that an inner one has too; NULL where memory is out. */
static json_t *pack(const writer *w) {
  return json_pack("{sO sO sO s{s[sO] s[sO]} sO}", "nodes", w->nodes, "arg_nodes", w->args, "heads", w->heads, "attrs",
                   "dltype", "list_str", w->dtypes, "shape", "list_shape", w->shapes, "node_row_ptr", w->row_ptr);
}

/* An input of a node's graph: its dtype where the model says it; its shape may be another in each iteration. */
static heddle_status add_inner_input(writer *w, const char *name, const Onnx__ValueInfoProto *v, bool keeps_shape) {
  json_t *dtype = NULL, *shape = NULL;
  if (v != NULL && has_type(v)) {
    heddle_status s = heddle__onnx_describe(w->r, v, "input", &dtype, &shape);
    if (!keeps_shape || json_array_size(shape) > 1) {
      json_decref(shape);
      shape = NULL;
    }
    if (s != HEDDLE_OK) {
      json_decref(dtype);
      json_decref(shape);
      return s;
    }
  }
  return add_null(w, name, dtype, shape);
}

/* An output of a node's graph: as its inputs, and an If's branch runs once, so that its shape is one. Of what is no
 * operator's, the outer graph or the input says what it is. */
static heddle_status declare_inner(writer *w, const Onnx__ValueInfoProto *v, json_int_t code, bool keeps_shape) {
  json_t *dtype = NULL, *shape = NULL;
  const json_int_t id = code / (MAX_OUTPUTS + 1);
  const char *op = json_string_value(json_object_get(json_array_get(w->nodes, (size_t)id), "op"));
  if (op == NULL || strcmp(op, "null") == 0) return HEDDLE_OK;
  if (!has_type(v)) return HEDDLE_OK;
  heddle_status s = heddle__onnx_describe(w->r, v, "output", &dtype, &shape);
  if (!keeps_shape) {
    json_decref(shape);
    shape = NULL;
  }
  const json_int_t at = json_integer_value(json_array_get(w->row_ptr, (size_t)id)) + code % (MAX_OUTPUTS + 1);
  if (s == HEDDLE_OK) return declare(w, (size_t)at, dtype, shape, v->name);
  json_decref(dtype);
  json_decref(shape);
  return s;
}

static heddle_status write_inner(writer *w, const Onnx__NodeProto *node) {
  const size_t captured = strcmp(node->op_type, "If") == 0 ? node->n_input - (node->n_input > 0 ? 1 : 0)
                                                           : (size_t)heddle__onnx_attr_int(node, "captured", 0);
  char shown[44];
  MUST(json_array_append_new(w->row_ptr, json_integer(0)));
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < w->graph->n_input && s == HEDDLE_OK; i++)
    s = add_inner_input(w, w->graph->input[i]->name, w->graph->input[i], i < 2 && node->op_type[0] == 'L');
  for (size_t i = node->n_input - captured; i < node->n_input && s == HEDDLE_OK; i++)
    s = add_inner_input(w, node->input[i], NULL, false);
  for (size_t i = 0; i < w->n_list && s == HEDDLE_OK; i++) s = add_operator(w, w->list[i]);
  if (w->r->problems.n > 0) return s;
  for (size_t i = 0; i < w->graph->n_output && s == HEDDLE_OK; i++) {
    const Onnx__ValueInfoProto *v = w->graph->output[i];
    const json_t *entry = json_object_get(w->entries, v->name);
    if (entry == NULL)
      return heddle__at_node(heddle__onnx_fail(w->r, HEDDLE_EFORMAT,
                                               "nothing makes output '%s' of a graph of node '%s'",
                                               heddle__onnx_show(v->name, shown), heddle__onnx_node_name(node)),
                             w->r->err, HEDDLE__NO_NODE, heddle__onnx_node_name(node));
    MUST(json_array_append_new(w->heads, entry_of(json_integer_value(entry))));
    s = declare_inner(w, v, json_integer_value(entry), node->op_type[0] == 'I');
  }
  return s;
}

/* The graphs of a node to its attributes. */
static heddle_status add_graphs(writer *outer, const Onnx__NodeProto *node, json_t *attrs) {
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < node->n_attribute && s == HEDDLE_OK; i++) {
    const Onnx__GraphProto *g = node->attribute[i]->g;
    if (g == NULL) continue;
    writer w = {.r = outer->r, .list = g->node, .n_list = g->n_node, .graph = g};
    open_writer(&w);
    if (w.names == NULL || w.entries == NULL || w.makers == NULL) s = heddle__onnx_no_memory(w.r);
    for (size_t k = 0; k < w.n_list && s == HEDDLE_OK; k++)
      for (size_t o = 0; o < w.list[k]->n_output && s == HEDDLE_OK; o++)
        if (json_object_set_new(w.makers, w.list[k]->output[o], json_integer((json_int_t)k)) != 0)
          s = heddle__onnx_no_memory(w.r);
    if (s == HEDDLE_OK) s = write_inner(&w, node);
    if (s == HEDDLE_OK && w.r->problems.n == 0) {
      json_t *document = pack(&w);
      if (document == NULL || json_object_set_new(attrs, node->attribute[i]->name, document) != 0)
        s = heddle__onnx_no_memory(w.r);
    }
    close_writer(&w);
  }
  return s;
}

heddle_status heddle__onnx_document(heddle__onnx_reader *r, json_t **graph, heddle_params **params) {
  writer w = {.r = r,
              .list = r->nodes,
              .n_list = r->n_nodes,
              .graph = r->graph,
              .is_used = heddle__onnx_take(&r->arena, r->n_tensors + 1),
              .params = heddle__params_new(r->name, r->err)};
  open_writer(&w);
  *params = w.params;
  heddle_status s = w.params != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
  if (s == HEDDLE_OK) w.params->items = heddle__alloc(r->n_tensors, sizeof *w.params->items);
  if (s == HEDDLE_OK &&
      (w.is_used == NULL || w.params->items == NULL || w.names == NULL || w.entries == NULL || w.makers == NULL))
    s = heddle__onnx_no_memory(r);
  if (s == HEDDLE_OK) s = write_all(&w); /* an array that is NULL takes nothing, which is noticed there */
  if (s == HEDDLE_OK && r->problems.n == 0) {
    *graph = pack(&w);
    json_t *heddle = json_pack("{si sI ss}", "version", 1, "opset", (json_int_t)r->target, "optimize", "on");
    if (heddle != NULL) s = heddle__onnx_tell_strings(r, heddle);
    if (s == HEDDLE_OK && json_object_set_new(heddle, "output_shapes", json_string("hints")) != 0)
      s = heddle__onnx_no_memory(r);
    if (s == HEDDLE_OK && json_array_size(r->warnings) > 0 && json_object_set(heddle, "warnings", r->warnings) != 0)
      s = heddle__onnx_no_memory(r);
    if (*graph == NULL || json_object_set_new(*graph, "heddle", heddle) != 0) s = heddle__onnx_no_memory(r);
  }
  close_writer(&w);
  return s;
}
