/* frontends/onnx/functions.c: nodes that call a function of the model itself are replaced by the function's nodes, with
 * names of their own for the values inside, and the caller's attributes where the function refers to them. */
#include <string.h>

#include "frontends/onnx/upgrade.h"
#include "frontends/onnx/wire.h"

enum { MAX_DEPTH = 16 };

typedef struct call {
  heddle__onnx_reader *r;
  const Onnx__NodeProto *node;
  const Onnx__FunctionProto *function;
  json_t *values; /* name in the function to name in the graph; JSON strings */
} call;

static const char *text_or_nothing(const char *text) {
  return text != NULL ? text : "";
}

static bool is_default(const char *domain) {
  return domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0;
}

/* What a function is found by; NULL where memory is out. */
static char *key_of(heddle__onnx_reader *r, const char *domain, const char *name) {
  return heddle__onnx_format(&r->arena, "%s %s", is_default(domain) ? "" : domain, name);
}

heddle_status heddle__onnx_add_function(heddle__onnx_reader *r, const Onnx__FunctionProto *function, size_t i) {
  char shown[44];
  const char *key = key_of(r, function->domain, function->name);
  if (key == NULL) return heddle__onnx_no_memory(r);
  if (json_object_get(r->functions, key) != NULL)
    heddle__onnx_problem(r, NULL, "several functions are named '%s'", heddle__onnx_show(function->name, shown));
  if (json_object_set_new(r->functions, key, json_integer((json_int_t)i)) == 0) return HEDDLE_OK;
  return heddle__onnx_no_memory(r);
}

const Onnx__FunctionProto *heddle__onnx_function(heddle__onnx_reader *r, const Onnx__NodeProto *node) {
  if (r->model->n_functions == 0) return NULL;
  const char *key = key_of(r, node->domain, node->op_type);
  const json_t *at = key != NULL ? json_object_get(r->functions, key) : NULL;
  return at != NULL ? r->model->functions[json_integer_value(at)] : NULL;
}

int64_t heddle__onnx_function_opset(const Onnx__FunctionProto *f, int64_t fallback) {
  for (size_t i = 0; i < f->n_opset_import; i++)
    if (is_default(text_or_nothing(f->opset_import[i]->domain))) return f->opset_import[i]->version;
  return fallback;
}

/* ---- values */

static heddle_status bind(call *c, const char *inside, const char *outside) {
  if (json_object_set_new(c->values, inside, json_string(outside)) == 0) return HEDDLE_OK;
  return heddle__onnx_no_memory(c->r);
}

/* The graph's name of a value inside of the function; a value that is met for the first time gets one. NULL: no memory. */
static const char *outside(call *c, const char *inside) {
  if (inside[0] == '\0') return inside;
  const char *known = json_string_value(json_object_get(c->values, inside));
  if (known != NULL) return known;
  const char *name = heddle__onnx_new_value(c->r, c->node, inside);
  if (name == NULL || bind(c, inside, name) != HEDDLE_OK) return NULL;
  return name;
}

static heddle_status bind_ends(call *c) {
  const Onnx__FunctionProto *f = c->function;
  heddle_status s = HEDDLE_OK;
  if (c->node->n_input > f->n_input || c->node->n_output > f->n_output) {
    heddle__onnx_problem(c->r, c->node, "it has more inputs or outputs than the function that it calls");
    return HEDDLE_OK;
  }
  for (size_t i = 0; i < f->n_input && s == HEDDLE_OK; i++)
    s = bind(c, f->input[i], i < c->node->n_input ? c->node->input[i] : "");
  for (size_t i = 0; i < c->node->n_output && s == HEDDLE_OK; i++) {
    const char *known = json_string_value(json_object_get(c->values, f->output[i])), *output = c->node->output[i];
    if (output[0] == '\0') continue;
    if (known == NULL) {
      s = bind(c, f->output[i], output);
      continue;
    }
    /* An input, or an output before, once more. */
    const char *input = heddle__onnx_format(&c->r->arena, "%s", known); /* values go before the nodes do */
    if (heddle__onnx_new_node(c->r, "Identity", output, input, NULL, output) == NULL) s = heddle__onnx_no_memory(c->r);
  }
  return s;
}

/* ---- nodes */

static heddle_status copy_names(call *c, char ***names, size_t n) {
  char **list = heddle__onnx_take(&c->r->arena, n * sizeof *list);
  if (list == NULL) return heddle__onnx_no_memory(c->r);
  for (size_t i = 0; i < n; i++) {
    const char *name = outside(c, (*names)[i]);
    if (name == NULL) return heddle__onnx_no_memory(c->r);
    list[i] = (char *)(uintptr_t)heddle__onnx_format(&c->r->arena, "%s", name); /* values go before the nodes do */
    if (list[i] == NULL) return heddle__onnx_no_memory(c->r);
  }
  *names = list;
  return HEDDLE_OK;
}

/* The function's own value for an attribute that the caller leaves out; *out is NULL where it has none. */
static heddle_status find_default(call *c, const char *name, const Onnx__AttributeProto **out) {
  const ProtobufCMessage *f = &c->function->base;
  ProtobufCAllocator allocator = heddle__onnx_allocator(&c->r->arena);
  *out = NULL;
  for (unsigned i = 0; i < f->n_unknown_fields && *out == NULL; i++) {
    const ProtobufCMessageUnknownField *field = &f->unknown_fields[i];
    if (field->tag != HEDDLE__ONNX_DEFAULTS || field->len < HEDDLE__ONNX_LENGTH_BYTES) continue;
    const Onnx__AttributeProto *a = onnx__attribute_proto__unpack(&allocator, field->len - HEDDLE__ONNX_LENGTH_BYTES,
                                                                  field->data + HEDDLE__ONNX_LENGTH_BYTES);
    if (a == NULL && c->r->arena.is_out) return heddle__onnx_no_memory(c->r);
    if (a == NULL) return heddle__onnx_fail(c->r, HEDDLE_EFORMAT, "an attribute of a function is malformed");
    if (strcmp(a->name, name) == 0) *out = a;
  }
  return HEDDLE_OK;
}

static heddle_status copy_graph(call *c, Onnx__GraphProto **graph);

/* An attribute that refers to one of the caller's is that one under its own name, or the function's value for it, or
 * left out where there is none. */
static heddle_status copy_attributes(call *c, Onnx__NodeProto *node) {
  Onnx__AttributeProto **list = heddle__onnx_take(&c->r->arena, node->n_attribute * sizeof *list);
  size_t n = 0;
  if (list == NULL) return heddle__onnx_no_memory(c->r);
  for (size_t i = 0; i < node->n_attribute; i++) {
    Onnx__AttributeProto *a = node->attribute[i];
    const char *refers = text_or_nothing(a->ref_attr_name);
    const Onnx__AttributeProto *given = refers[0] != '\0' ? heddle__onnx_attr(c->node, refers) : a;
    Onnx__AttributeProto *copy = heddle__onnx_take(&c->r->arena, sizeof *copy);
    if (copy == NULL) return heddle__onnx_no_memory(c->r);
    if (given == NULL) {
      heddle_status s = find_default(c, refers, &given);
      if (s != HEDDLE_OK) return s;
    }
    if (given == NULL) continue;
    *copy = *given;
    copy->name = a->name;
    list[n++] = copy;
    heddle_status s = copy->g != NULL && given == a ? copy_graph(c, &copy->g) : HEDDLE_OK;
    if (s != HEDDLE_OK) return s;
  }
  node->attribute = list;
  node->n_attribute = n;
  return HEDDLE_OK;
}

/* A graph within, whose attributes may refer to the caller's too. */
static heddle_status copy_graph(call *c, Onnx__GraphProto **graph) {
  Onnx__GraphProto *copy = heddle__onnx_take(&c->r->arena, sizeof *copy);
  heddle_status s = HEDDLE_OK;
  if (copy == NULL) return heddle__onnx_no_memory(c->r);
  *copy = **graph;
  copy->node = heddle__onnx_take(&c->r->arena, copy->n_node * sizeof(Onnx__NodeProto *));
  if (copy->node == NULL) return heddle__onnx_no_memory(c->r);
  for (size_t i = 0; i < copy->n_node && s == HEDDLE_OK; i++) {
    Onnx__NodeProto *node = copy->node[i] = heddle__onnx_take(&c->r->arena, sizeof *node);
    if (node == NULL) return heddle__onnx_no_memory(c->r);
    *node = *(*graph)->node[i];
    s = copy_attributes(c, node);
  }
  *graph = copy;
  return s;
}

static heddle_status note(call *c, const char *inside) {
  const char *name = json_string_value(json_object_get(c->values, inside));
  if (name == NULL || json_object_set_new(c->r->used, name, json_true()) == 0) return HEDDLE_OK;
  return heddle__onnx_no_memory(c->r);
}

/* Values of the function that graphs of a node take are used. */
static heddle_status note_graphs(call *c, const Onnx__NodeProto *node) {
  heddle_status s = HEDDLE_OK;
  for (size_t a = 0; a < node->n_attribute && s == HEDDLE_OK; a++) {
    const Onnx__GraphProto *g = node->attribute[a]->g;
    for (size_t i = 0; g != NULL && i < g->n_output && s == HEDDLE_OK; i++) s = note(c, g->output[i]->name);
    for (size_t i = 0; g != NULL && i < g->n_node && s == HEDDLE_OK; i++) {
      for (size_t k = 0; k < g->node[i]->n_input && s == HEDDLE_OK; k++) s = note(c, g->node[i]->input[k]);
      if (s == HEDDLE_OK) s = note_graphs(c, g->node[i]);
    }
  }
  return s;
}

/* With those of graphs within. */
static size_t count_nodes(Onnx__NodeProto *const *nodes, size_t n) {
  size_t all = n;
  for (size_t i = 0; i < n; i++)
    for (size_t a = 0; a < nodes[i]->n_attribute; a++) {
      const Onnx__GraphProto *g = nodes[i]->attribute[a]->g;
      if (g != NULL) all += count_nodes(g->node, g->n_node);
    }
  return all;
}

static heddle_status copy_node(call *c, const Onnx__NodeProto *inner, Onnx__NodeProto **out) {
  Onnx__NodeProto *node = heddle__onnx_take(&c->r->arena, sizeof *node);
  if (node == NULL) return heddle__onnx_no_memory(c->r);
  *node = *inner;
  node->name =
      heddle__onnx_format(&c->r->arena, "%s/%s", heddle__onnx_node_name(c->node), heddle__onnx_node_name(inner));
  heddle_status s = node->name != NULL ? copy_names(c, &node->input, node->n_input) : heddle__onnx_no_memory(c->r);
  if (s == HEDDLE_OK) s = copy_names(c, &node->output, node->n_output);
  if (s == HEDDLE_OK) s = copy_attributes(c, node);
  if (s == HEDDLE_OK) s = heddle__onnx_note_inputs(c->r, node);
  *out = node;
  return s;
}

heddle_status heddle__onnx_inline(heddle__onnx_reader *r, const Onnx__NodeProto *node,
                                  const Onnx__FunctionProto *function, unsigned depth) {
  call c = {r, node, function, json_object()};
  const int64_t opset = heddle__onnx_function_opset(function, r->opset), opset_outside = r->opset;
  const bool is_read = opset >= HEDDLE__OPSET_OF_MODELS && opset <= HEDDLE__OPSET_LAST;
  if (depth > MAX_DEPTH || !is_read) {
    if (is_read) heddle__onnx_problem(r, node, "functions of the model call each other too deep");
    else
      heddle__onnx_problem(r, node, "the function that it calls is of opset %lld; this library reads %d to %d",
                           (long long)opset, HEDDLE__OPSET_OF_MODELS, (int)HEDDLE__OPSET_LAST);
    json_decref(c.values);
    return HEDDLE_OK;
  }
  Onnx__NodeProto **copies = heddle__onnx_take(&r->arena, function->n_node * sizeof *copies);
  heddle_status s = c.values != NULL && copies != NULL ? bind_ends(&c) : heddle__onnx_no_memory(r);
  const size_t n_nodes = count_nodes(function->node, function->n_node);
  if (s == HEDDLE_OK && n_nodes > r->left_to_inline)
    s = heddle__onnx_fail(r, HEDDLE_ELIMIT,
                          "its functions come to too many nodes; the limit is an option of the reader");
  if (s == HEDDLE_OK) r->left_to_inline -= (uint32_t)n_nodes;
  /* All are copied before the first is upgraded, for which it counts what is used. */
  for (size_t i = 0; i < function->n_node && s == HEDDLE_OK; i++) s = copy_node(&c, function->node[i], &copies[i]);
  for (size_t i = 0; i < function->n_node && s == HEDDLE_OK; i++) s = note_graphs(&c, copies[i]);
  /* What a graph within takes from outside is a value of the function, and nothing further out. */
  const struct heddle__onnx_scope scope = {c.values, NULL}, *outer = r->scope;
  r->scope = &scope;
  r->opset = opset;
  for (size_t i = 0; i < function->n_node && s == HEDDLE_OK; i++) s = heddle__onnx_upgrade_node(r, copies[i], depth);
  r->opset = opset_outside;
  r->scope = outer;
  json_decref(c.values);
  return s;
}
