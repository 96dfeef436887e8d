/* frontends/onnx/inner.c: the graphs of If, Loop and Scan. Their values get names that no other value of the model has,
 * their tensors become tensors of the model, their nodes are upgraded as all are, and what they take from outside becomes
 * inputs of the node, after its own: so each graph sees only what its node hands it. */
#include <string.h>

#include "core/failure.h"
#include "frontends/onnx/objects.h"
#include "frontends/onnx/types.h"
#include "frontends/onnx/upgrade.h"

bool heddle__onnx_is_control(const Onnx__NodeProto *node) {
  return node->domain[0] == '\0' && heddle__onnx_has_graph(node) &&
         (strcmp(node->op_type, "If") == 0 || strcmp(node->op_type, "Loop") == 0 || strcmp(node->op_type, "Scan") == 0);
}

static const char *outside(const heddle__onnx_reader *r, const char *name) {
  for (const struct heddle__onnx_scope *s = r->scope; s != NULL; s = s->outer) {
    const char *known = json_string_value(json_object_get(s->names, name));
    if (known != NULL) return known;
  }
  return name;
}

/* A new value of the graph in hand. */
static heddle_status define(heddle__onnx_reader *r, const Onnx__NodeProto *node, const char *name, const char **out) {
  char shown[44];
  json_t *names = r->scope->names;
  *out = name;
  if (name[0] == '\0') return HEDDLE_OK;
  if (json_object_get(names, name) != NULL)
    return heddle__at_node(heddle__onnx_fail(r, HEDDLE_EFORMAT, "a graph of node '%s' has two values of the name '%s'",
                                             heddle__onnx_show(heddle__onnx_node_name(node), (char[44]){0}),
                                             heddle__onnx_show(name, shown)),
                           r->err, HEDDLE__NO_NODE, heddle__onnx_node_name(node));
  *out = heddle__onnx_new_value(r, node, name);
  if (*out == NULL || json_object_set_new(names, name, json_string(*out)) != 0) return heddle__onnx_no_memory(r);
  *out = heddle__onnx_format(&r->arena, "%s", *out); /* a scope goes before the nodes do */
  return *out != NULL ? HEDDLE_OK : heddle__onnx_no_memory(r);
}

static heddle_status define_tensors(heddle__onnx_reader *r, const Onnx__NodeProto *node, const Onnx__GraphProto *g) {
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < g->n_initializer && s == HEDDLE_OK; i++) {
    Onnx__TensorProto *t = heddle__onnx_take(&r->arena, sizeof *t);
    const char *name = NULL;
    if (t == NULL) return heddle__onnx_no_memory(r);
    *t = *g->initializer[i];
    const char *known = json_string_value(json_object_get(r->scope->names, t->name));
    if (known != NULL && heddle__onnx_give_again(r, known, t)) continue;
    s = define(r, node, t->name, &name);
    t->name = (char *)(uintptr_t)name;
    if (s == HEDDLE_OK) s = heddle__onnx_add_tensor(r, t);
    if (s == HEDDLE_OK) s = heddle__onnx_note(r, name, t->data_type, t->n_dims < 255 ? (int32_t)t->n_dims : -1);
  }
  return s;
}

/* The values with names of the model; defined: they are new ones. */
static heddle_status copy_values(heddle__onnx_reader *r, const Onnx__NodeProto *node, Onnx__ValueInfoProto **values,
                                 size_t n, bool defined, Onnx__ValueInfoProto ***out) {
  heddle_status s = HEDDLE_OK;
  *out = heddle__onnx_take(&r->arena, n * sizeof **out);
  if (*out == NULL) return heddle__onnx_no_memory(r);
  for (size_t i = 0; i < n && s == HEDDLE_OK; i++) {
    Onnx__ValueInfoProto *v = (*out)[i] = heddle__onnx_take(&r->arena, sizeof *v);
    const char *name = values[i]->name;
    if (v == NULL) return heddle__onnx_no_memory(r);
    *v = *values[i];
    if (defined) s = define(r, node, values[i]->name, &name);
    else name = heddle__onnx_format(&r->arena, "%s", outside(r, name));
    if (s == HEDDLE_OK && name == NULL) s = heddle__onnx_no_memory(r);
    v->name = (char *)(uintptr_t)name;
    if (s == HEDDLE_OK && defined) s = heddle__onnx_learn_value(r, v);
    if (s == HEDDLE_OK && defined) s = heddle__onnx_learn_object(r, v);
  }
  return s;
}

static heddle_status copy_names(heddle__onnx_reader *r, char ***names, size_t n) {
  char **list = heddle__onnx_take(&r->arena, n * sizeof *list);
  if (list == NULL) return heddle__onnx_no_memory(r);
  for (size_t i = 0; i < n; i++) {
    list[i] = heddle__onnx_format(&r->arena, "%s", outside(r, (*names)[i]));
    if (list[i] == NULL) return heddle__onnx_no_memory(r);
  }
  *names = list;
  return HEDDLE_OK;
}

/* All nodes of g, with names of the model, upgraded, to made->node. */
static heddle_status copy_nodes(heddle__onnx_reader *r, const Onnx__NodeProto *node, const Onnx__GraphProto *g,
                                Onnx__GraphProto *made, unsigned depth) {
  Onnx__NodeProto **copies = heddle__onnx_take(&r->arena, g->n_node * sizeof *copies);
  if (copies == NULL) return heddle__onnx_no_memory(r);
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < g->n_node && s == HEDDLE_OK; i++)
    for (size_t k = 0; k < g->node[i]->n_output && s == HEDDLE_OK; k++) {
      const char *name = NULL;
      s = define(r, node, g->node[i]->output[k], &name);
    }
  for (size_t i = 0; i < g->n_node && s == HEDDLE_OK; i++) {
    Onnx__NodeProto *copy = copies[i] = heddle__onnx_take(&r->arena, sizeof *copy);
    if (copy == NULL) return heddle__onnx_no_memory(r);
    *copy = *g->node[i];
    s = copy_names(r, &copy->input, copy->n_input);
    if (s == HEDDLE_OK) s = copy_names(r, &copy->output, copy->n_output);
    if (s == HEDDLE_OK) s = heddle__onnx_note_inputs(r, copy);
  }
  if (s == HEDDLE_OK) s = copy_values(r, node, g->output, g->n_output, false, &made->output);
  made->n_output = g->n_output;
  for (size_t i = 0; i < g->n_output && s == HEDDLE_OK; i++)
    if (json_object_set_new(r->used, made->output[i]->name, json_true()) != 0) s = heddle__onnx_no_memory(r);
  Onnx__NodeProto **const nodes = r->nodes;
  const size_t n_nodes = r->n_nodes, max_nodes = r->max_nodes;
  r->nodes = NULL;
  r->n_nodes = r->max_nodes = 0;
  for (size_t i = 0; i < g->n_node && s == HEDDLE_OK; i++) s = heddle__onnx_upgrade_node(r, copies[i], depth);
  for (size_t i = 0; i < g->n_output && s == HEDDLE_OK; i++)
    s = heddle__onnx_give_object(r, (Onnx__NodeProto *)(uintptr_t)node, made->output[i]);
  made->node = r->nodes;
  made->n_node = r->n_nodes;
  r->nodes = nodes;
  r->n_nodes = n_nodes;
  r->max_nodes = max_nodes;
  return s;
}

static heddle_status copy_graph(heddle__onnx_reader *r, const Onnx__NodeProto *node, const Onnx__GraphProto *g,
                                Onnx__GraphProto **out, unsigned depth) {
  struct heddle__onnx_scope scope = {json_object(), r->scope};
  Onnx__GraphProto *made = *out = heddle__onnx_take(&r->arena, sizeof *made);
  if (scope.names == NULL || made == NULL) {
    json_decref(scope.names);
    return heddle__onnx_no_memory(r);
  }
  onnx__graph_proto__init(made);
  r->scope = &scope;
  heddle_status s = copy_values(r, node, g->input, g->n_input, true, &made->input);
  made->n_input = g->n_input;
  if (s == HEDDLE_OK) s = define_tensors(r, node, g);
  if (s == HEDDLE_OK) s = copy_nodes(r, node, g, made, depth);
  for (size_t i = 0; i < g->n_value_info && s == HEDDLE_OK; i++) {
    Onnx__ValueInfoProto v = *g->value_info[i];
    const char *name = v.name != NULL ? json_string_value(json_object_get(scope.names, v.name)) : NULL;
    v.name = (char *)(uintptr_t)name;
    if (name != NULL) s = heddle__onnx_learn_value(r, &v);
  }
  r->scope = scope.outer;
  json_decref(scope.names);
  return s;
}

/* ---- what comes from outside */

typedef struct captures {
  heddle__onnx_reader *r;
  json_t *seen;
  char **list;
  size_t n, max;
} captures;

static heddle_status capture(captures *c, json_t *own, const char *name) {
  if (name[0] == '\0' || json_object_get(own, name) != NULL || json_object_get(c->seen, name) != NULL) return HEDDLE_OK;
  if (c->n == c->max) {
    char **more = heddle__onnx_take(&c->r->arena, (c->max * 2 + 16) * sizeof *more);
    if (more == NULL) return heddle__onnx_no_memory(c->r);
    if (c->n > 0) memcpy(more, c->list, c->n * sizeof *more);
    c->list = more;
    c->max = c->max * 2 + 16;
  }
  c->list[c->n++] = (char *)(uintptr_t)name;
  return json_object_set_new(c->seen, name, json_true()) == 0 ? HEDDLE_OK : heddle__onnx_no_memory(c->r);
}

static heddle_status capture_all(captures *c, const Onnx__GraphProto *g) {
  json_t *own = json_object();
  int failed = own == NULL ? -1 : 0;
  for (size_t i = 0; i < g->n_input && failed == 0; i++)
    failed = json_object_set_new(own, g->input[i]->name, json_true());
  for (size_t i = 0; i < g->n_node && failed == 0; i++)
    for (size_t k = 0; k < g->node[i]->n_output && failed == 0; k++)
      if (g->node[i]->output[k][0] != '\0') failed = json_object_set_new(own, g->node[i]->output[k], json_true());
  heddle_status s = failed == 0 ? HEDDLE_OK : heddle__onnx_no_memory(c->r);
  for (size_t i = 0; i < g->n_node && s == HEDDLE_OK; i++)
    for (size_t k = 0; k < g->node[i]->n_input && s == HEDDLE_OK; k++) s = capture(c, own, g->node[i]->input[k]);
  for (size_t i = 0; i < g->n_output && s == HEDDLE_OK; i++) s = capture(c, own, g->output[i]->name);
  json_decref(own);
  return s;
}

/* ---- the node */

static heddle_status set_inputs(heddle__onnx_reader *r, Onnx__NodeProto *node, const captures *c) {
  size_t own = node->n_input, least = node->op_type[0] == 'L' && c->n > 0 ? 2 : 0;
  size_t n = own > least ? own : least;
  char **list = heddle__onnx_take(&r->arena, (n + c->n) * sizeof *list);
  if (list == NULL) return heddle__onnx_no_memory(r);
  for (size_t i = 0; i < n; i++) list[i] = i < own ? node->input[i] : (char *)(uintptr_t) "";
  for (size_t i = 0; i < c->n; i++) list[n + i] = c->list[i];
  node->input = list;
  node->n_input = n + c->n;
  if (strcmp(node->op_type, "If") == 0) return HEDDLE_OK;
  return heddle__onnx_set_int(r, node, "captured", (int64_t)c->n);
}

/* Types of an If's outputs, and of a Loop's and Scan's as far as ranks do not matter. */
static heddle_status learn_outputs(heddle__onnx_reader *r, const Onnx__NodeProto *node, const Onnx__GraphProto *g) {
  size_t first = node->op_type[0] == 'L' ? 1 : 0;
  heddle_status s = HEDDLE_OK;
  for (size_t k = 0; k < node->n_output && k + first < g->n_output && s == HEDDLE_OK; k++) {
    heddle__onnx_known known = heddle__onnx_known_of(r, g->output[k + first]->name);
    s = heddle__onnx_note(r, node->output[k], known.type, -1);
    if (s == HEDDLE_OK && node->output[k][0] != '\0')
      s = heddle__onnx_learn_given(r, node->output[k], g->output[k + first]);
  }
  return s;
}

heddle_status heddle__onnx_control(heddle__onnx_reader *r, Onnx__NodeProto *node, unsigned depth) {
  Onnx__AttributeProto **list = heddle__onnx_take(&r->arena, node->n_attribute * sizeof *list);
  if (list == NULL) return heddle__onnx_no_memory(r);
  captures c = {.r = r, .seen = json_object()};
  heddle_status s = c.seen != NULL ? HEDDLE_OK : heddle__onnx_no_memory(r);
  if (strcmp(node->op_type, "Scan") == 0 && r->opset < 9)
    heddle__onnx_problem(r, node, "Scan of opset 8, with a batch, is not supported; of opset 9 and later it is");
  for (size_t i = 0; i < node->n_attribute && s == HEDDLE_OK; i++) {
    list[i] = node->attribute[i];
    if (node->attribute[i]->g == NULL) continue;
    list[i] = heddle__onnx_take(&r->arena, sizeof **list);
    if (list[i] == NULL) {
      s = heddle__onnx_no_memory(r);
      break;
    }
    *list[i] = *node->attribute[i];
    s = copy_graph(r, node, node->attribute[i]->g, &list[i]->g, depth + 1);
    if (s == HEDDLE_OK) s = capture_all(&c, list[i]->g);
    if (s == HEDDLE_OK) s = learn_outputs(r, node, list[i]->g);
  }
  node->attribute = list;
  if (s == HEDDLE_OK) s = set_inputs(r, node, &c);
  if (s == HEDDLE_OK) s = heddle__onnx_note_inputs(r, node);
  if (s == HEDDLE_OK) s = heddle__onnx_add_node(r, node);
  json_decref(c.seen);
  return s;
}
