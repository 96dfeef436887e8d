/* graph/optimize/write.c: from a net to a graph as libheddle plans it. Nodes that are as they were borrow from the given graph;
 * of the others, names, attributes and inputs are copied. */
#include "core/error.h"
#include "core/alloc.h"
#include "graph/validate.h"
#include "graph/optimize/net.h"

typedef struct writer {
  const opt_net *net;
  heddle_graph *g;
  bool failed;
} writer;

static void *take(writer *w, size_t count, size_t size) {
  void *p = heddle__alloc(count, size);
  w->failed = w->failed || p == NULL;
  return p;
}

static char *copy_text(writer *w, const char *text) {
  size_t n = strlen(text) + 1;
  char *copy = take(w, n, 1);
  if (copy != NULL) memcpy(copy, text, n);
  return copy;
}

/* Strings of a list lie behind its pointers. */
static void *copy_data(writer *w, const heddle_pattr *a) {
  size_t count = (size_t)a->count, bytes = count * 8;
  if (a->kind == HEDDLE_ATTR_STRING) bytes = count + 1;
  if (a->kind == HEDDLE_ATTR_STRINGS)
    for (size_t i = 0; i < count; i++) bytes += strlen(((const char *const *)a->data)[i]) + 1;
  char *copy = take(w, bytes, 1);
  if (copy == NULL || a->kind != HEDDLE_ATTR_STRINGS) {
    if (copy != NULL) memcpy(copy, a->data, a->kind == HEDDLE_ATTR_STRING ? count : bytes);
    return copy;
  }
  const char **list = (const char **)(void *)copy;
  char *at = copy + count * sizeof *list;
  for (size_t i = 0; i < count; i++) {
    const char *text = ((const char *const *)a->data)[i];
    size_t n = strlen(text) + 1;
    memcpy(at, text, n);
    list[i] = at;
    at += n;
  }
  return copy;
}

static void write_attrs(writer *w, const opt_node *n, heddle__node *out) {
  out->attrs = take(w, n->n_attrs, sizeof *out->attrs);
  for (uint32_t i = 0; out->attrs != NULL && i < n->n_attrs; i++) {
    out->attrs[i] = n->attrs[i];
    out->attrs[i].name = copy_text(w, n->attrs[i].name);
    out->attrs[i].data = copy_data(w, &n->attrs[i]);
    out->n_attrs = i + 1;
  }
}

static heddle__entry entry_of(const opt_value *v) {
  if (v->maker != NULL) return (heddle__entry){v->maker->mark, v->index};
  return (heddle__entry){v->number, 0};
}

static heddle__node *next_node(writer *w, uint32_t n_outputs) {
  heddle__node *out = &w->g->nodes[w->g->n_nodes++];
  out->first_entry = w->g->n_entries;
  out->n_outputs = n_outputs;
  out->stream = -1;
  w->g->n_entries += n_outputs;
  return out;
}

static void write_node(writer *w, opt_node *n) {
  n->mark = w->g->n_nodes;
  heddle__node *out = next_node(w, n->n_outputs);
  const uint32_t first = out->first_entry;
  if (n->from != NULL) {
    *out = *n->from;
    out->borrowed = true;
    out->first_entry = first;
  } else {
    out->kind = HEDDLE__NODE_OP;
    out->name = copy_text(w, n->name);
    out->op = copy_text(w, n->op);
    out->domain = copy_text(w, n->domain);
    out->device = n->device != NULL ? copy_text(w, n->device) : NULL;
    out->stream = n->stream;
    write_attrs(w, n, out);
  }
  out->n_inputs = n->n_inputs;
  out->inputs = take(w, n->n_inputs, sizeof *out->inputs);
  for (uint32_t k = 0; out->inputs != NULL && k < n->n_inputs; k++) {
    const opt_value *v = opt_in(n, k);
    out->inputs[k] = v != NULL ? entry_of(v) : (heddle__entry){HEDDLE__ABSENT, 0};
  }
}

/* An input; its type as far as it is known. */
static void write_arg(writer *w, opt_value *v, const char *name) {
  heddle__type *t = &w->g->types[w->g->n_entries];
  v->number = w->g->n_nodes;
  w->g->args[w->g->n_args++] = w->g->n_nodes;
  heddle__node *out = next_node(w, 1);
  out->kind = HEDDLE__NODE_NULL;
  out->name = copy_text(w, name);
  out->op = copy_text(w, "null");
  out->domain = copy_text(w, "");
  out->inputs = take(w, 0, 1);
  if (!v->known) return;
  t->dims = take(w, v->ndim, sizeof *t->dims);
  if (t->dims == NULL) return;
  t->has_dtype = t->has_shape = true;
  t->dtype = v->dtype;
  t->ndim = v->ndim;
  for (uint32_t d = 0; d < v->ndim; d++) t->dims[d].value = v->shape[d];
}

static bool begin(writer *w, const opt_net *net, const opt_node *const *nodes, uint32_t n_nodes, uint32_t n_args,
                  uint32_t n_heads, heddle_error *err) {
  uint64_t entries = n_args;
  for (uint32_t i = 0; i < n_nodes; i++) entries += nodes[i]->n_outputs;
  *w = (writer){net, heddle__graph_new(net->graph->source, err), false};
  if (w->g == NULL) return false;
  w->g->is_heddle = true;
  w->g->opset = net->opset;
  w->g->base = heddle_graph_retain((heddle_graph *)(uintptr_t)net->graph);
  w->g->nodes = take(w, (size_t)n_args + n_nodes, sizeof *w->g->nodes);
  w->g->args = take(w, n_args, sizeof *w->g->args);
  w->g->types = take(w, entries, sizeof *w->g->types);
  w->g->heads = take(w, n_heads, sizeof *w->g->heads);
  return !w->failed;
}

static heddle_status end(writer *w, heddle_graph **out, heddle_error *err) {
  heddle_status s =
      w->failed || w->g == NULL ? heddle__no_memory(err, "an optimised graph") : heddle__graph_index(w->g, err);
  *out = s == HEDDLE_OK ? w->g : NULL;
  if (s != HEDDLE_OK && w->g != NULL) heddle_graph_release(w->g);
  return s;
}

static void write_heads(writer *w, opt_value *const *heads, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) w->g->heads[i] = entry_of(heads[i]);
  w->g->n_heads = n;
}

heddle_status opt_write(opt_net *net, heddle_graph **out, heddle_error *err) {
  writer w;
  uint32_t n = 0;
  opt_node **live = opt_alloc(net, net->n_nodes, sizeof(opt_node *));
  if (live == NULL) return heddle__no_memory(err, "an optimised graph");
  for (uint32_t i = 0; i < net->n_nodes; i++)
    if (net->nodes[i].live) live[n++] = &net->nodes[i];
  if (begin(&w, net, (const opt_node *const *)live, n, net->n_args + net->n_made, net->n_heads, err)) {
    for (uint32_t i = 0; i < net->n_args; i++) write_arg(&w, &net->args[i], net->args[i].name);
    for (uint32_t i = 0; i < net->n_made; i++) write_arg(&w, net->made[i], net->made[i]->name);
    for (uint32_t i = 0; i < n; i++) write_node(&w, live[i]);
    write_heads(&w, net->heads, net->n_heads);
  }
  return end(&w, out, err);
}

heddle_status opt_write_part(opt_net *net, opt_node *const *nodes, uint32_t n_nodes, opt_value *const *from,
                             uint32_t n_from, opt_value *const *to, uint32_t n_to, heddle_graph **out,
                             heddle_error *err) {
  writer w;
  if (begin(&w, net, (const opt_node *const *)nodes, n_nodes, n_from, n_to, err)) {
    for (uint32_t i = 0; i < n_from; i++) {
      const char *name = opt_format(net, "c%u", (unsigned)i);
      if (name == NULL) w.failed = true;
      else write_arg(&w, from[i], name);
    }
    if (!w.failed)
      for (uint32_t i = 0; i < n_nodes; i++) write_node(&w, nodes[i]);
    if (!w.failed) write_heads(&w, to, n_to);
  }
  return end(&w, out, err);
}
