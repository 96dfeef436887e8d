/* executor/control/part.c: a part of a graph as a graph, and models of parts and of the graphs of nodes. Nodes are borrowed from
 * the whole graph; parameters are shared with its model, so that no constant is held twice. */
#include <string.h>

#include "executor/control/stages.h"
#include "core/alloc.h"
#include "core/error.h"
#include "graph/validate.h"

static char *copy_text(const char *text) {
  return heddle__format("%s", text);
}

/* A type with memory of its own; false where memory is out. */
static bool copy_type(const heddle__type *from, heddle__type *to) {
  *to = (heddle__type){.has_dtype = from->has_dtype,
                       .has_shape = from->has_shape,
                       .hints_shape = from->hints_shape,
                       .dtype = from->dtype};
  if (from->ndim == 0) return true;
  to->dims = heddle__alloc(from->ndim, sizeof *to->dims);
  if (to->dims == NULL) return false;
  for (; to->ndim < from->ndim; to->ndim++) {
    const heddle__dim *d = &from->dims[to->ndim];
    to->dims[to->ndim].value = d->value;
    if (d->symbol == NULL) continue;
    to->dims[to->ndim].symbol = copy_text(d->symbol);
    if (to->dims[to->ndim].symbol == NULL) return false;
  }
  return true;
}

/* A name for a value from another stage, which no input of the graph has. */
static char *name_of(const heddle_graph *g, heddle__entry e) {
  const heddle__node *n = &g->nodes[e.node];
  char *name = n->n_outputs == 1 ? copy_text(n->name) : heddle__format("%s:%u", n->name, (unsigned)e.index);
  while (name != NULL && heddle__graph_arg(g, name) != -1) {
    char *longer = heddle__format("%s'", name);
    heddle__free(name);
    name = longer;
  }
  return name;
}

/* Two nodes of one name may both be inputs of a part: then the second is found by its number. */
static bool is_taken(const heddle_graph *part, const char *name) {
  for (uint32_t i = 0; i < part->n_args; i++)
    if (part->nodes[part->args[i]].name != NULL && strcmp(part->nodes[part->args[i]].name, name) == 0) return true;
  return false;
}

static bool add_arg(heddle_graph *part, const heddle_graph *g, heddle__entry e) {
  const heddle__node *n = &g->nodes[e.node];
  heddle__node *out = &part->nodes[part->n_nodes];
  if (n->kind == HEDDLE__NODE_NULL) {
    *out = *n;
    out->borrowed = true;
    out->inputs = NULL;
  } else {
    char *name = name_of(g, e);
    if (name != NULL && is_taken(part, name)) {
      char *other = heddle__format("%s#%u", name, (unsigned)e.node);
      heddle__free(name);
      name = other;
    }
    *out = (heddle__node){.kind = HEDDLE__NODE_NULL, .name = name, .stream = -1};
    out->op = copy_text("null");
    out->domain = copy_text("");
    out->n_outputs = 1;
  }
  out->first_entry = part->n_entries++;
  part->args[part->n_args++] = part->n_nodes++;
  return out->name != NULL && out->op != NULL && out->domain != NULL &&
         (n->kind != HEDDLE__NODE_NULL || copy_type(&g->types[n->first_entry], &part->types[out->first_entry]));
}

static bool add_node(heddle_graph *part, const heddle_graph *g, const heddle__node *n, const uint32_t *entry_of) {
  heddle__node *out = &part->nodes[part->n_nodes++];
  *out = *n;
  out->borrowed = true;
  out->first_entry = part->n_entries;
  part->n_entries += n->n_outputs;
  out->inputs = heddle__alloc(n->n_inputs, sizeof *out->inputs);
  if (out->inputs == NULL) return false;
  for (uint32_t k = 0; k < n->n_inputs; k++) {
    out->inputs[k] = (heddle__entry){HEDDLE__ABSENT, 0};
    if (n->inputs[k].node == HEDDLE__ABSENT) continue;
    uint32_t entry = entry_of[heddle__entry_id(g, n->inputs[k])];
    uint32_t node = 0; /* inputs come first, an entry each; of nodes the number is kept beside */
    if (entry < part->n_args) node = entry;
    else node = entry_of[g->n_entries + n->inputs[k].node];
    out->inputs[k] = (heddle__entry){node, entry - part->nodes[node].first_entry};
  }
  for (uint32_t k = 0; k < n->n_outputs; k++)
    if (!copy_type(&g->types[n->first_entry + k], &part->types[out->first_entry + k])) return false;
  return true;
}

/* place: per entry of the whole graph its number in the part; behind them, per node its number there. */
static bool fill(heddle_graph *out, const ctl_part *p) {
  const heddle_graph *g = p->graph;
  for (uint32_t i = 0; i < p->n_from; i++) {
    p->place[heddle__entry_id(g, p->from[i])] = out->n_entries;
    if (!add_arg(out, g, p->from[i])) return false;
  }
  for (uint32_t i = 0; i < p->n_nodes; i++) {
    const heddle__node *n = &g->nodes[p->nodes[i]];
    p->place[g->n_entries + p->nodes[i]] = out->n_nodes;
    for (uint32_t k = 0; k < n->n_outputs; k++) p->place[n->first_entry + k] = out->n_entries + k;
    if (!add_node(out, g, n, p->place)) return false;
  }
  for (uint32_t i = 0; i < p->n_to; i++)
    out->heads[out->n_heads++] = (heddle__entry){p->place[g->n_entries + p->to[i].node], p->to[i].index};
  return true;
}

heddle_status ctl_part_make(const ctl_part *p, heddle_graph **out, heddle_error *err) {
  const heddle_graph *g = p->graph;
  size_t n_entries = p->n_from;
  *out = NULL;
  for (uint32_t i = 0; i < p->n_nodes; i++) n_entries += g->nodes[p->nodes[i]].n_outputs;
  heddle_graph *part = heddle__graph_new(g->source, err);
  if (part == NULL) return HEDDLE_ENOMEM;
  part->is_heddle = g->is_heddle;
  part->is_inner = true;
  part->opset = g->opset;
  part->base = heddle_graph_retain((heddle_graph *)(uintptr_t)g);
  part->nodes = heddle__alloc((size_t)p->n_from + p->n_nodes, sizeof *part->nodes);
  part->types = heddle__alloc(n_entries, sizeof *part->types);
  part->args = heddle__alloc(p->n_from, sizeof *part->args);
  part->heads = heddle__alloc(p->n_to, sizeof *part->heads);
  bool done = part->nodes != NULL && part->types != NULL && part->args != NULL && part->heads != NULL && fill(part, p);
  heddle_status s = done ? heddle__graph_index(part, err) : heddle__no_memory(err, "a stage of a graph");
  if (s == HEDDLE_OK) *out = part;
  else heddle_graph_release(part);
  return s;
}

/* ---- models */

static void drop_params(void *params) {
  heddle_params_release(params);
}

/* What the whole model's params do with files that they map. */
static void forget_bytes(void *params, const void *data, uint64_t bytes) {
  const heddle_params *whole = params;
  if (whole->forget != NULL) whole->forget(whole->maps, data, bytes);
}

static bool place_of(void *params, const void *data, uint64_t bytes, heddle__file_place *out) {
  const heddle_params *whole = params;
  return whole->where != NULL && whole->where(whole->maps, data, bytes, out);
}

/* The bytes of a constant under another name. */
static bool share(heddle_params *p, const char *name, const heddle__constant *c) {
  struct heddle__param *item = &p->items[p->count];
  item->name = copy_text(name);
  item->value = *c;
  item->file_dtype = c->dtype;
  item->is_mapped = true;
  item->value.shape = heddle__alloc(c->ndim, sizeof *c->shape);
  p->count++; /* from here on the release of params frees it */
  if (item->name == NULL || item->value.shape == NULL) return false;
  if (c->ndim > 0) memcpy(item->value.shape, c->shape, c->ndim * sizeof *c->shape);
  return true;
}

/* The params of a model: NULL where none of its args is a constant. */
static heddle_status share_all(const heddle_model *m, const heddle_graph *graph, uint32_t own,
                               const heddle__entry *from, uint32_t n_from, heddle_params **out, heddle_error *err) {
  const heddle_graph *g = m->graph;
  *out = NULL;
  if (m->params == NULL) return HEDDLE_OK;
  heddle_params *p = heddle__params_new(g->source, err);
  if (p == NULL) return HEDDLE_ENOMEM;
  p->items = heddle__alloc(n_from, sizeof *p->items);
  bool done = p->items != NULL;
  for (uint32_t i = 0; i < n_from && done; i++) {
    if (from[i].node == HEDDLE__ABSENT || g->nodes[from[i].node].kind != HEDDLE__NODE_NULL) continue;
    int32_t arg = heddle__graph_arg(g, g->nodes[from[i].node].name);
    if (arg >= 0 && m->constants[arg] != NULL)
      done = share(p, graph->nodes[graph->args[own + i]].name, m->constants[arg]);
  }
  if (done && p->count > 0) {
    p->maps = heddle_params_retain(m->params);
    p->unmap = drop_params;
    p->forget = forget_bytes;
    p->where = place_of;
    *out = p;
    return HEDDLE_OK;
  }
  heddle_params_release(p);
  return done ? HEDDLE_OK : heddle__no_memory(err, "the parameters of a stage");
}

/* The names of the model's devices with ',' between; NULL where memory is out. */
static char *list_devices(const heddle_model *m) {
  char *list = copy_text(m->devices[0]->name);
  for (uint32_t i = 1; i < m->n_devices && list != NULL; i++) {
    char *more = heddle__format("%s,%s", list, m->devices[i]->name);
    heddle__free(list);
    list = more;
  }
  return list;
}

heddle_status ctl_model(const heddle_model *m, const heddle_graph *graph, uint32_t own, const heddle__entry *from,
                        uint32_t n_from, const char *optimize, heddle_model **out, heddle_error *err) {
  heddle_params *params = NULL;
  *out = NULL;
  char *devices = list_devices(m);
  const char **rules = heddle__alloc((size_t)m->n_rules + 1, sizeof *rules);
  heddle_status s = devices != NULL && rules != NULL ? HEDDLE_OK : heddle__no_memory(err, "a stage");
  if (s == HEDDLE_OK) rules[0] = "off"; /* those of the setting are among the model's */
  for (uint32_t i = 0; i < m->n_rules && s == HEDDLE_OK; i++) rules[i + 1] = m->rules[i].text;
  if (s == HEDDLE_OK) s = share_all(m, graph, own, from, n_from, &params, err);
  const heddle_model_options options = {
      .struct_size = sizeof options,
      .devices = devices,
      .place = rules,
      .n_place = (size_t)m->n_rules + 1,
      .flags = heddle__spread_cuts(m->spread) ? m->flags & ~HEDDLE_MODEL_IGNORE_ANNOTATIONS : m->flags,
      .max_streams = m->max_streams,
      .max_programs = m->max_programs,
      .in_flight = m->in_flight,
      .library = m->library,
      .upload_timeout_ns = m->upload_timeout_ns,
      .optimize = optimize,
      .memory = m->limits_text,
      .on_failure = m->on_failure != NULL ? m->on_failure : "error"};
  if (s == HEDDLE_OK) s = heddle__model_make(m->ctx, graph, params, &options, true, out, err);
  heddle_params_release(params);
  heddle__free((void *)(uintptr_t)rules);
  heddle__free(devices);
  return s;
}
