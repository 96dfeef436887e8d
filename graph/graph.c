/* graph/graph.c: a graph's life, its index of names, and the questions that the public API asks of it.
 * A graph is built by json_read.c and never changes afterwards. */
#include "graph/opschema.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/context.h"
#include "core/error.h"
#include "core/failure.h"
#include "graph/validate.h"
#include "graph/words.h"

heddle_graph *heddle__graph_new(const char *source, heddle_error *err) {
  heddle_graph *g = heddle__alloc(1, sizeof *g);
  if (g != NULL) g->source = heddle__strdup(source != NULL ? source : "graph");
  if (g == NULL || g->source == NULL) {
    heddle__free(g);
    heddle__no_memory(err, "a graph");
    return NULL;
  }
  atomic_init(&g->references, 1);
  return g;
}

heddle_graph *heddle_graph_retain(heddle_graph *g) {
  if (g != NULL) atomic_fetch_add_explicit(&g->references, 1, memory_order_relaxed);
  return g;
}

static void free_node(heddle__node *node) {
  heddle__free(node->inputs);
  if (node->borrowed) return;
  for (uint32_t i = 0; i < node->n_attrs; i++) {
    heddle__free((void *)(uintptr_t)node->attrs[i].name);
    heddle__free((void *)(uintptr_t)node->attrs[i].data);
  }
  for (uint32_t i = 0; i < node->n_inner; i++) {
    heddle__free(node->inner[i].name);
    heddle_graph_release(node->inner[i].graph);
  }
  heddle__free(node->inner);
  heddle__free(node->attrs);
  heddle__free(node->name);
  heddle__free(node->op);
  heddle__free(node->domain);
  heddle__free(node->device);
  heddle__free(node->func_name);
  json_decref(node->raw);
}

void heddle_graph_release(heddle_graph *g) {
  if (g == NULL || atomic_fetch_sub_explicit(&g->references, 1, memory_order_acq_rel) != 1) return;
  for (uint32_t i = 0; g->nodes != NULL && i < g->n_nodes; i++) free_node(&g->nodes[i]);
  for (uint32_t i = 0; g->types != NULL && i < g->n_entries; i++) {
    for (uint32_t d = 0; d < g->types[i].ndim; d++) heddle__free(g->types[i].dims[d].symbol);
    heddle__free(g->types[i].dims);
    heddle__free(g->types[i].shape);
  }
  for (uint32_t i = 0; g->storage_scope != NULL && i < g->n_entries; i++) heddle__free(g->storage_scope[i]);
  heddle__free(g->nodes);
  heddle__free(g->types);
  heddle__free(g->storage_id);
  heddle__free(g->device_index);
  heddle__free(g->storage_scope);
  heddle__free(g->args);
  heddle__free(g->heads);
  heddle__free(g->names);
  heddle__free(g->source);
  json_decref(g->raw);
  json_decref(g->warnings);
  heddle_graph_release(g->base);
  heddle__free(g);
}

/* ---------------------------------------------------------------- names */

static int compare_names(const void *a, const void *b) {
  const struct heddle__name *x = a, *y = b;
  int order = strcmp(x->name, y->name);
  if (order != 0) return order;
  return x->node < y->node ? -1 : x->node > y->node;
}

/* Public shapes have values and symbols apart. */
static bool spread_shape(heddle__type *type) {
  if (!type->has_shape || type->shape != NULL) return true;
  type->shape = heddle__alloc(type->ndim, sizeof *type->shape + sizeof *type->symbols);
  if (type->shape == NULL) return false;
  type->symbols = (const char **)(void *)(type->shape + type->ndim);
  for (uint32_t i = 0; i < type->ndim; i++) {
    type->shape[i] = type->dims[i].value;
    type->symbols[i] = type->dims[i].symbol;
  }
  return true;
}

heddle_status heddle__graph_spread_shapes(heddle_graph *g, heddle_error *err) {
  bool done = true;
  for (uint32_t i = 0; i < g->n_args && done; i++) done = spread_shape(&g->types[g->nodes[g->args[i]].first_entry]);
  for (uint32_t i = 0; i < g->n_heads && done; i++) done = spread_shape(&g->types[heddle__entry_id(g, g->heads[i])]);
  return done ? HEDDLE_OK : heddle__no_memory(err, "the shapes of a graph");
}

heddle_status heddle__graph_index(heddle_graph *g, heddle_error *err) {
  g->names = heddle__alloc(g->n_nodes, sizeof *g->names);
  if (g->names == NULL) return heddle__no_memory(err, "the names of a graph");
  for (uint32_t i = 0; i < g->n_nodes; i++) g->names[i] = (struct heddle__name){g->nodes[i].name, i, -1};
  for (uint32_t i = 0; i < g->n_args; i++) g->names[g->args[i]].arg = (int32_t)i;
  qsort(g->names, g->n_nodes, sizeof *g->names, compare_names);
  return heddle__graph_spread_shapes(g, err);
}

/* The first position in g->names that is not before name. */
static uint32_t lower_bound(const heddle_graph *g, const char *name) {
  uint32_t low = 0, high = g->n_nodes;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (strcmp(g->names[middle].name, name) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

int32_t heddle__graph_arg(const heddle_graph *g, const char *name) {
  int32_t found = -1;
  for (uint32_t i = lower_bound(g, name); i < g->n_nodes && strcmp(g->names[i].name, name) == 0; i++) {
    if (g->names[i].arg < 0) continue;
    if (found >= 0) return -2;
    found = g->names[i].arg;
  }
  return found;
}

heddle_status heddle__graph_find(const heddle_graph *g, const char *name, uint32_t *out, heddle_error *err) {
  char shown[64], list[200];
  uint32_t first = lower_bound(g, name), end = first;
  heddle__show(name, shown);
  while (end < g->n_nodes && strcmp(g->names[end].name, name) == 0) end++;
  if (end == first)
    return heddle__at_node(
        heddle__fail(err, HEDDLE_ENOTFOUND, "%s: no node '%s' among its %u", g->source, shown, g->n_nodes), err,
        HEDDLE__NO_NODE, name);
  if (end - first == 1) {
    *out = g->names[first].node;
    return HEDDLE_OK;
  }
  size_t used = 0;
  uint32_t i = first;
  for (; i < end && used + 24 < sizeof list; i++)
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%u", i > first ? ", " : "", g->names[i].node);
  return heddle__fail(err, HEDDLE_EINVAL, "%s: %u nodes are named '%s': %s%s; say which by number", g->source,
                      end - first, shown, list, i < end ? ", ..." : "");
}

bool heddle__graph_has_inner(const heddle_graph *g) {
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (heddle__runs_apart(&g->nodes[i])) return true;
  return false;
}

/* ---------------------------------------------------------------- the public questions */

uint32_t heddle_graph_node_count(const heddle_graph *g) {
  return g->n_nodes;
}

heddle_status heddle_graph_node(const heddle_graph *g, uint32_t node, heddle_node_info *out, heddle_error *err) {
  if (node >= g->n_nodes)
    return heddle__fail(err, HEDDLE_ENOTFOUND, "%s: node %u: there are %u", g->source, node, g->n_nodes);
  const heddle__node *n = &g->nodes[node];
  heddle_node_info info = {.name = n->name,
                           .op = n->op,
                           .domain = n->domain,
                           .func_name = n->func_name != NULL ? n->func_name : "",
                           .device = n->device != NULL ? n->device : "",
                           .inputs = n->n_inputs > 0 ? &n->inputs[0].node : NULL,
                           .n_inputs = n->n_inputs,
                           .n_outputs = n->n_outputs,
                           .device_type =
                               g->device_index != NULL && n->n_outputs > 0 ? g->device_index[n->first_entry] : 0};
  return heddle__info_give(out, &info, sizeof info, err);
}

const heddle_graph *heddle_graph_inner(const heddle_graph *g, uint32_t node, uint32_t i, const char **name) {
  if (node >= g->n_nodes || i >= g->nodes[node].n_inner) return NULL;
  if (name != NULL) *name = g->nodes[node].inner[i].name;
  return g->nodes[node].inner[i].graph;
}

_Static_assert(sizeof(heddle__entry) == 2 * sizeof(uint32_t), "entries are pairs of numbers");

heddle_status heddle_graph_find_node(const heddle_graph *g, const char *name, uint32_t *out, heddle_error *err) {
  return heddle__graph_find(g, name, out, err);
}

static heddle_status describe(const heddle_graph *g, heddle__entry e, heddle_value_info *out, heddle_error *err) {
  const heddle__type *type = &g->types[heddle__entry_id(g, e)];
  heddle_value_info info = {.name = g->nodes[e.node].name,
                            .shape = type->shape,
                            .symbols = type->symbols,
                            .ndim = type->has_shape ? type->ndim : UINT32_MAX,
                            .dtype = type->has_dtype ? type->dtype : (heddle_dtype){0, 0, 0}};
  return heddle__info_give(out, &info, sizeof info, err);
}

uint32_t heddle_graph_input_count(const heddle_graph *g) {
  return g->n_args;
}

heddle_status heddle_graph_input(const heddle_graph *g, uint32_t i, heddle_value_info *out, heddle_error *err) {
  if (i >= g->n_args) return heddle__fail(err, HEDDLE_ENOTFOUND, "%s: input %u: there are %u", g->source, i, g->n_args);
  return describe(g, (heddle__entry){g->args[i], 0}, out, err);
}

uint32_t heddle_graph_output_count(const heddle_graph *g) {
  return g->n_heads;
}

heddle_status heddle_graph_output(const heddle_graph *g, uint32_t i, heddle_value_info *out, heddle_error *err) {
  if (i >= g->n_heads)
    return heddle__fail(err, HEDDLE_ENOTFOUND, "%s: output %u: there are %u", g->source, i, g->n_heads);
  return describe(g, g->heads[i], out, err);
}

void heddle_free(void *p) {
  heddle__free(p);
}
