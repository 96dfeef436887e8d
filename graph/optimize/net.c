/* graph/optimize/net.c: a graph on its way in, and what all passes do with it: an arena, users, types, notes.
 * Questions that patterns ask are in match.c. */
#include "graph/optimize/net.h"

#include <fnmatch.h>
#include <stdarg.h>

#include "core/alloc.h"
#include "core/error.h"

/* ---- the arena */

void *opt_alloc(opt_net *net, size_t count, size_t size) {
  void *p = heddle__arena_take(&net->arena, count, size);
  net->failed = net->failed || p == NULL;
  return p;
}

static char *format_list(opt_net *net, const char *format, va_list args) {
  char *text = heddle__arena_format(&net->arena, format, args);
  net->failed = net->failed || text == NULL;
  return text;
}

char *opt_format(opt_net *net, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *text = format_list(net, format, args);
  va_end(args);
  return text;
}

void opt_free(opt_net *net) {
  for (uint32_t i = 0; i < net->n_made; i++)
    if (net->made[i]->constant != NULL) heddle__free(net->made[i]->constant->data);
  heddle__arena_drop(&net->arena);
}

/* One more place in a list that doubles; NULL where memory is out. */
static void *make_room(opt_net *net, void *list, uint32_t count, uint32_t *size, size_t each) {
  if (count < *size) return list;
  uint32_t more = *size == 0 ? 16 : 2 * *size;
  void *fresh = opt_alloc(net, more, each);
  if (fresh == NULL) return NULL;
  if (count > 0) memcpy(fresh, list, count * each);
  *size = more;
  return fresh;
}

/* ---- the way in */

static bool set_type(opt_net *net, opt_value *v, heddle_dtype dtype, uint32_t ndim, const int64_t *shape) {
  uint64_t bytes;
  if (heddle__tensor_bytes(dtype, ndim, shape, &bytes, NULL) != HEDDLE_OK) return false;
  if (v->ndim != ndim || v->shape == NULL) v->shape = opt_alloc(net, ndim, sizeof *v->shape);
  if (v->shape == NULL) return false;
  if (ndim > 0) memcpy(v->shape, shape, ndim * sizeof *shape);
  v->dtype = dtype;
  v->ndim = ndim;
  v->bytes = bytes;
  v->known = true;
  return true;
}

/* Dimensions that the file leaves open are not known; a constant whose shape it leaves open is taken as it is, and so
 * read. */
static void read_arg(opt_net *net, uint32_t i) {
  const heddle_graph *g = net->graph;
  const heddle__node *n = &g->nodes[g->args[i]];
  const heddle__type *t = &g->types[n->first_entry];
  const heddle__constant *c = net->ask->constants[i];
  opt_value *v = &net->args[i];
  bool fixed = t->has_dtype && t->has_shape;
  int64_t shape[HEDDLE__MAX_NDIM];
  for (uint32_t d = 0; fixed && d < t->ndim; d++) {
    fixed = t->dims[d].value >= 0 && d < HEDDLE__MAX_NDIM;
    if (fixed) shape[d] = t->dims[d].value;
  }
  v->name = n->name;
  v->arg = i;
  v->said = t->has_shape ? t->ndim + 1 : 0;
  v->typed = t->has_dtype;
  v->dtype = t->dtype;
  v->constant = c;
  if (c != NULL) {
    set_type(net, v, c->dtype, c->ndim, c->shape);
    net->read[i] = !fixed;
  } else if (fixed) {
    set_type(net, v, t->dtype, t->ndim, shape);
  }
}

/* Which rule's device a node goes to; 0 where there is no rule. */
static uint32_t home_of(const heddle__optimize_ask *ask, const char *name) {
  for (uint32_t i = ask->n_rules; i-- > 0;)
    if (fnmatch(ask->rules[i].pattern, name, 0) == 0) return ask->rules[i].device + 1;
  return 0;
}

static heddle_status read_node(opt_net *net, opt_value **entries, uint32_t id) {
  const heddle__node *from = &net->graph->nodes[id];
  opt_node *n = &net->nodes[net->n_nodes++];
  *n = (opt_node){.from = from,
                  .name = from->name,
                  .op = from->op,
                  .domain = from->domain,
                  .attrs = from->attrs,
                  .n_attrs = from->n_attrs,
                  .n_inputs = from->n_inputs,
                  .n_outputs = from->n_outputs,
                  .home = home_of(net->ask, from->name),
                  .id = id,
                  .live = true,
                  .device = from->device,
                  .stream = from->stream};
  n->inputs = opt_alloc(net, n->n_inputs, sizeof(opt_value *));
  n->outputs = opt_alloc(net, n->n_outputs, sizeof *n->outputs);
  if (n->inputs == NULL || n->outputs == NULL) return HEDDLE_ENOMEM;
  for (uint32_t k = 0; k < n->n_inputs; k++)
    if (from->inputs[k].node != HEDDLE__ABSENT) n->inputs[k] = entries[heddle__entry_id(net->graph, from->inputs[k])];
  for (uint32_t k = 0; k < n->n_outputs; k++) {
    n->outputs[k] = (opt_value){.maker = n, .index = k, .arg = HEDDLE__ABSENT};
    entries[from->first_entry + k] = &n->outputs[k];
  }
  return HEDDLE_OK;
}

heddle_status opt_read(opt_net *net, heddle_error *err) {
  const heddle_graph *g = net->graph = net->ask->graph;
  net->opset = g->opset;
  net->n_args = g->n_args;
  net->n_heads = g->n_heads;
  opt_value **entries = opt_alloc(net, g->n_entries, sizeof(opt_value *));
  net->args = opt_alloc(net, g->n_args, sizeof *net->args);
  net->read = opt_alloc(net, g->n_args, sizeof *net->read);
  net->nodes_size = g->n_nodes - g->n_args;
  net->nodes = opt_alloc(net, g->n_nodes - g->n_args, sizeof *net->nodes);
  net->heads = opt_alloc(net, g->n_heads, sizeof(opt_value *));
  net->keep = opt_alloc(net, net->ask->n_keep, sizeof(opt_value *));
  if (net->failed) return heddle__no_memory(err, "optimisations");
  for (uint32_t i = 0; i < g->n_args; i++) {
    read_arg(net, i);
    entries[g->nodes[g->args[i]].first_entry] = &net->args[i];
  }
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (g->nodes[i].kind != HEDDLE__NODE_NULL && read_node(net, entries, i) != HEDDLE_OK)
      return heddle__no_memory(err, "optimisations");
  for (uint32_t i = 0; i < g->n_heads; i++) net->heads[i] = entries[heddle__entry_id(g, g->heads[i])];
  for (uint32_t i = 0; i < net->ask->n_keep; i++) net->keep[i] = entries[heddle__entry_id(g, net->ask->keep[i])];
  for (uint32_t i = 0; i < net->n_heads; i++) net->heads[i]->pinned = true;
  for (uint32_t i = 0; i < net->ask->n_keep; i++) net->keep[i]->pinned = true;
  return net->failed ? heddle__no_memory(err, "optimisations") : HEDDLE_OK;
}

/* ---- inputs and users */

opt_value *opt_in(const opt_node *n, uint32_t k) {
  opt_value *v = k < n->n_inputs ? n->inputs[k] : NULL;
  while (v != NULL && v->instead != NULL) v = v->instead;
  if (v != NULL) n->inputs[k] = v;
  return v;
}

void opt_set_input(opt_node *n, uint32_t k, opt_value *v) {
  n->inputs[k] = v;
  if (v != NULL) v->users++;
}

void opt_replace(opt_value *old, opt_value *v) {
  old->instead = v;
  v->users += old->users;
}

void opt_count(opt_net *net) {
  for (uint32_t i = 0; i < net->n_args; i++) net->args[i].users = 0;
  for (uint32_t i = 0; i < net->n_made; i++) net->made[i]->users = 0;
  for (uint32_t i = 0; i < net->n_nodes; i++)
    for (uint32_t k = 0; k < net->nodes[i].n_outputs; k++) net->nodes[i].outputs[k].users = 0;
  for (uint32_t i = net->n_nodes; i-- > 0;) {
    opt_node *n = &net->nodes[i];
    bool used = false;
    for (uint32_t k = 0; k < n->n_outputs; k++) used = used || n->outputs[k].users > 0 || n->outputs[k].pinned;
    n->live = n->live && used;
    for (uint32_t k = 0; n->live && k < n->n_inputs; k++) {
      opt_value *v = opt_in(n, k);
      if (v != NULL) v->users++;
    }
  }
}

/* ---- changing nodes */

bool opt_become(opt_net *net, opt_node *n, const char *domain, const char *op, opt_value *const *inputs,
                uint32_t n_inputs, const heddle_pattr *attrs, uint32_t n_attrs) {
  opt_value **in = opt_alloc(net, n_inputs, sizeof(opt_value *));
  heddle_pattr *copy = opt_alloc(net, n_attrs, sizeof *copy);
  if (in == NULL || copy == NULL || net->failed) return false; /* also where an attribute had no memory */
  n->inputs = in;
  n->n_inputs = n_inputs;
  for (uint32_t k = 0; k < n_inputs; k++) opt_set_input(n, k, inputs[k]);
  if (n_attrs > 0) memcpy(copy, attrs, n_attrs * sizeof *attrs);
  n->attrs = copy;
  n->n_attrs = n_attrs;
  n->domain = domain;
  n->op = op;
  n->from = NULL;
  return true;
}

opt_value *opt_insert(opt_net *net, const opt_node *before, const char *what) {
  const uint32_t at = (uint32_t)(before - net->nodes);
  const char *name = opt_format(net, "%s:%s", before->name, what);
  opt_value *result = opt_alloc(net, 1, sizeof *result);
  opt_node *list = make_room(net, net->nodes, net->n_nodes, &net->nodes_size, sizeof *net->nodes);
  if (name == NULL || result == NULL || list == NULL) return NULL;
  memmove(list + at + 1, list + at, (net->n_nodes - at) * sizeof *list);
  net->nodes = list;
  net->n_nodes++;
  list[at] = (opt_node){.name = name,
                        .op = "Identity",
                        .domain = "",
                        .outputs = result,
                        .n_outputs = 1,
                        .home = list[at + 1].home,
                        .id = list[at + 1].id,
                        .live = true,
                        .device = list[at + 1].device,
                        .stream = list[at + 1].stream};
  *result = (opt_value){.arg = HEDDLE__ABSENT};
  for (uint32_t i = 0; i < net->n_nodes; i++)
    for (uint32_t k = 0; k < list[i].n_outputs; k++) list[i].outputs[k].maker = &list[i];
  return result;
}

static heddle_pattr make_attr(opt_net *net, uint32_t kind, const char *name, const void *data, uint64_t count,
                              size_t bytes) {
  void *copy = opt_alloc(net, bytes + 1, 1);
  if (copy != NULL && bytes > 0) memcpy(copy, data, bytes);
  return (heddle_pattr){.struct_size = sizeof(heddle_pattr), .kind = kind, .name = name, .data = copy, .count = count};
}

heddle_pattr opt_attr_int(opt_net *net, const char *name, int64_t value) {
  return make_attr(net, HEDDLE_ATTR_INT, name, &value, 1, sizeof value);
}

heddle_pattr opt_attr_float(opt_net *net, const char *name, double value) {
  return make_attr(net, HEDDLE_ATTR_FLOAT, name, &value, 1, sizeof value);
}

heddle_pattr opt_attr_ints(opt_net *net, const char *name, const int64_t *values, uint32_t count) {
  return make_attr(net, HEDDLE_ATTR_INTS, name, values, count, count * sizeof *values);
}

heddle_pattr opt_attr_string(opt_net *net, const char *name, const char *value) {
  return make_attr(net, HEDDLE_ATTR_STRING, name, value, strlen(value), strlen(value));
}

opt_value *opt_constant(opt_net *net, const char *name, heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                        void **bytes) {
  void *list = make_room(net, net->made, net->n_made, &net->made_size, sizeof(opt_value *));
  if (list == NULL) return NULL;
  net->made = list;
  opt_value *v = opt_alloc(net, 1, sizeof *v);
  heddle__constant *c = opt_alloc(net, 1, sizeof *c);
  if (v == NULL || c == NULL || !set_type(net, v, dtype, ndim, shape)) return NULL;
  *c = (heddle__constant){.dtype = dtype, .ndim = ndim, .shape = v->shape, .bytes = v->bytes};
  c->data = v->bytes <= SIZE_MAX / 2 ? heddle__alloc_aligned((size_t)v->bytes, 64) : NULL;
  if (c->data == NULL) {
    net->failed = true;
    return NULL;
  }
  v->arg = HEDDLE__ABSENT;
  v->name = name;
  v->constant = c;
  net->made[net->n_made++] = v;
  *bytes = c->data;
  return v;
}

void opt_note(opt_net *net, const char *pass, const opt_node *const *nodes, uint32_t n_nodes, const char *format, ...) {
  va_list args;
  const char **names = opt_alloc(net, n_nodes, sizeof *names);
  void *list = make_room(net, net->changes, net->n_changes, &net->changes_size, sizeof *net->changes);
  va_start(args, format);
  const char *words = format_list(net, format, args);
  va_end(args);
  if (names == NULL || list == NULL || words == NULL) {
    net->failed = true;
    return;
  }
  for (uint32_t i = 0; i < n_nodes; i++) names[i] = nodes[i]->name;
  net->changes = list;
  net->changes[net->n_changes++] = (opt_change){pass, words, names, n_nodes};
}

/* ---- types */

static void known_of(opt_net *net, const opt_value *v, bool with_data, heddle__known *out) {
  *out = (heddle__known){.dtype = v->dtype, .ndim = v->ndim, .bytes = v->bytes};
  if (v->ndim > 0) memcpy(out->shape, v->shape, v->ndim * sizeof *v->shape);
  if (with_data && v->constant != NULL) out->data = opt_bytes(net, v);
}

/* The bytes of inputs that decide shapes are given to inference, and of no others. */
static bool infer_node(opt_net *net, opt_node *n) {
  const heddle__schema *schema = heddle__schema_find(n->domain, n->op, n->domain[0] == '\0' ? net->opset : 0);
  if (schema == NULL || n->n_inputs > 1024 || n->n_outputs > 1024) return false;
  heddle__known *known = heddle__alloc((size_t)n->n_inputs + n->n_outputs, sizeof *known);
  const heddle__known **in = heddle__alloc(n->n_inputs, sizeof(heddle__known *));
  heddle__entry *entries = heddle__alloc(n->n_inputs, sizeof *entries);
  bool good = known != NULL && in != NULL && entries != NULL;
  net->failed = net->failed || !good;
  for (uint32_t k = 0; good && k < n->n_inputs; k++) {
    const opt_value *v = opt_in(n, k);
    entries[k].node = HEDDLE__ABSENT;
    if (v == NULL) continue;
    good = v->known;
    if (!good) break;
    bool feeds = schema->shape_inputs != HEDDLE__SHAPES_ONLY && k < 7 && (schema->shape_inputs >> k & 1) != 0;
    known_of(net, v, feeds, &known[k]);
    in[k] = &known[k];
    entries[k].node = 0;
  }
  heddle__known *out = known + n->n_inputs;
  heddle__node shown = {.kind = HEDDLE__NODE_OP,
                        .name = (char *)(uintptr_t)n->name,
                        .op = (char *)(uintptr_t)n->op,
                        .domain = (char *)(uintptr_t)n->domain,
                        .inputs = entries,
                        .n_inputs = n->n_inputs,
                        .n_outputs = n->n_outputs,
                        .attrs = (heddle_pattr *)(uintptr_t)n->attrs,
                        .n_attrs = n->n_attrs,
                        .stream = -1};
  heddle_status s = good ? heddle__schema_infer(schema)(net->graph, &shown, in, out, NULL, NULL) : HEDDLE_OK;
  net->wrong = net->wrong || s == HEDDLE_EFORMAT;
  good = good && s == HEDDLE_OK;
  for (uint32_t k = 0; good && k < n->n_outputs; k++)
    good = set_type(net, &n->outputs[k], out[k].dtype, out[k].ndim, out[k].shape);
  heddle__free(known);
  heddle__free(in);
  heddle__free(entries);
  return good;
}

void opt_types(opt_net *net) {
  for (uint32_t i = 0; i < net->n_nodes && !net->failed; i++) {
    opt_node *n = &net->nodes[i];
    if (!n->live || infer_node(net, n)) continue;
    for (uint32_t k = 0; k < n->n_outputs; k++) n->outputs[k].known = false;
  }
}

/* Operators whose newer definition says the same of what the older one can say. */
static bool same_meaning(const opt_node *n) {
  static const char *const names[] = {"Reshape", "BatchNormalization", "Shape", "Identity"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(n->op, names[i]) == 0) return n->n_outputs == 1;
  return false;
}

bool opt_raise_opset(opt_net *net, uint32_t opset) {
  if (net->opset >= opset) return true;
  for (uint32_t i = 0; i < net->n_nodes; i++) {
    const opt_node *n = &net->nodes[i];
    if (!n->live || n->domain[0] != '\0') continue;
    const heddle__schema *before = heddle__schema_find("", n->op, net->opset);
    const heddle__schema *after = heddle__schema_find("", n->op, opset);
    if (before == NULL || after == NULL || (before != after && !same_meaning(n))) return false;
  }
  net->opset = opset;
  return true;
}

bool opt_raise_for(opt_net *net, const char *op) {
  const heddle__version *oldest = heddle__version_find(false, op, 0);
  return oldest != NULL && opt_raise_opset(net, oldest->opset_first);
}
