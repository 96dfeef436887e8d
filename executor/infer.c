/* executor/infer.c: the pass that gives every entry of the graph its dtype and shape, and the bytes of those that
 * decide shapes. What no output needs is left out of the plan here. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/parts.h"
#include "executor/fold.h"
#include "executor/plan.h"
#include "graph/declared.h"
#include "graph/words.h"

static const heddle__schema *schema_of(const heddle_graph *g, const heddle__node *n) {
  return n->kind == HEDDLE__NODE_OP ? heddle__schema_find(n->domain, n->op, n->domain[0] == '\0' ? g->opset : 0) : NULL;
}

/* Marks the entries that decide shapes: feeds has one bool per entry; direct (or NULL) another: the entry itself, or a
 * view of it, is a shape operand, whose bytes the plugins are asked with. schemas: per node, or NULL. Nodes come after their inputs, so one walk back
 * is enough. */
static void mark_feeds(const heddle_graph *g, const heddle__schema *const *schemas, bool *feeds, bool *direct) {
  for (uint32_t i = g->n_nodes; i-- > 0;) {
    const heddle__node *n = &g->nodes[i];
    const heddle__schema *schema = schemas != NULL ? schemas[i] : schema_of(g, n);
    if (schema == NULL) continue;
    bool all = false; /* an output that decides a shape: so do all inputs */
    for (uint32_t k = 0; k < n->n_outputs; k++) all = all || feeds[n->first_entry + k];
    if (schema->shape_inputs == HEDDLE__SHAPES_ONLY) continue;
    for (uint32_t k = 0; k < n->n_inputs; k++) {
      if (n->inputs[k].node == HEDDLE__ABSENT) continue;
      const bool operand = k < 32 && (schema->shape_inputs >> k & 1);
      const uint32_t id = heddle__entry_id(g, n->inputs[k]);
      if (all || operand) feeds[id] = true;
      if (direct != NULL && (operand || (k == 0 && schema->is_view && direct[n->first_entry]))) direct[id] = true;
    }
  }
}

heddle_status heddle__shape_feeds(const heddle_graph *graph, bool *feeds, heddle_error *err) {
  bool *entries = heddle__alloc(graph->n_entries, sizeof *entries);
  if (entries == NULL) return heddle__no_memory(err, "shape operands");
  mark_feeds(graph, NULL, entries, NULL);
  for (uint32_t i = 0; i < graph->n_args; i++) feeds[i] = entries[graph->nodes[graph->args[i]].first_entry];
  heddle__free(entries);
  return HEDDLE_OK;
}

static void mark_used(heddle__plan *plan) {
  const heddle_graph *g = plan->req.graph;
  for (uint32_t i = 0; i < g->n_heads; i++) plan->values[heddle__entry_id(g, g->heads[i])].used = true;
  for (uint32_t i = 0; i < plan->req.n_keep; i++) {
    heddle__entry e = {plan->req.keep[i].node, plan->req.keep[i].index};
    plan->values[heddle__entry_id(g, e)].used = true;
  }
  for (uint32_t i = g->n_nodes; i-- > 0;) {
    const heddle__node *n = &g->nodes[i];
    bool used = false;
    for (uint32_t k = 0; k < n->n_outputs; k++) used = used || plan->values[n->first_entry + k].used;
    if (!used) continue;
    for (uint32_t k = 0; k < n->n_inputs; k++) {
      if (n->inputs[k].node != HEDDLE__ABSENT) plan->values[heddle__entry_id(g, n->inputs[k])].used = true;
    }
  }
}

/* An input that nothing gives a shape: with the names of its open dimensions. */
static heddle_status no_shape(const heddle_graph *g, const heddle__node *n, heddle_error *err) {
  const heddle__type *t = &g->types[n->first_entry];
  char names[200] = "", shown[64];
  size_t used = 0;
  for (uint32_t d = 0; t->has_shape && d < t->ndim; d++) {
    if (t->dims[d].value >= 0 || t->dims[d].symbol == NULL || used + sizeof shown + 2 > sizeof names) continue;
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "",
                             heddle__show(t->dims[d].symbol, shown));
  }
  return heddle__fail(err, HEDDLE_EINVAL, "%s: input '%s' has no shape yet: set it, or give its shape in the graph%s%s",
                      g->source, n->name, used > 0 ? ", or numbers or bounds by dims (--dim) for " : "", names);
}

static heddle_status take_inputs(heddle__plan *plan, heddle_error *err) {
  const heddle_graph *g = plan->req.graph;
  for (uint32_t i = 0; i < g->n_args; i++) {
    const heddle__node *n = &g->nodes[g->args[i]];
    const heddle__plan_input *in = &plan->req.inputs[i];
    heddle__value *v = &plan->values[n->first_entry];
    v->arg = i;
    v->kind = in->source == HEDDLE__SOURCE_CONSTANT ? HEDDLE__VALUE_CONSTANT : HEDDLE__VALUE_INPUT;
    if (!v->used) continue;
    if (!in->has_shape) return no_shape(g, n, err);
    v->known = in->known;
    if (v->kind == HEDDLE__VALUE_INPUT && !v->feeds_shape) v->known.data = NULL;
  }
  return HEDDLE_OK;
}

/* The outputs of a compiled function are what the file says. */
static heddle_status infer_tvm(heddle__plan *plan, const heddle__node *n, heddle_error *err) {
  const heddle_graph *g = plan->req.graph;
  bool is_view = heddle__node_is_view(g, n);
  heddle_status s = HEDDLE_OK;
  if (!is_view && plan->req.library == NULL)
    return heddle__at_node(heddle__fail(err, HEDDLE_EUNSUPPORTED,
                                        "%s: node '%s' calls function '%s' of a compiled library: none is given",
                                        g->source, n->name, n->func_name),
                           err, (uint32_t)(n - g->nodes), n->name);
  for (uint32_t k = 0; k < n->n_outputs && s == HEDDLE_OK; k++) {
    const heddle__type *t = &g->types[n->first_entry + k];
    heddle__known *known = &plan->values[n->first_entry + k].known;
    bool fixed = t->has_dtype && t->has_shape;
    for (uint32_t d = 0; fixed && d < t->ndim; d++) fixed = (known->shape[d] = t->dims[d].value) >= 0;
    if (!fixed)
      return heddle__at_node(heddle__fail(err, HEDDLE_EFORMAT,
                                          "%s: node '%s': the output of a compiled function has a dtype and a "
                                          "fixed shape",
                                          g->source, n->name),
                             err, (uint32_t)(n - g->nodes), n->name);
    known->dtype = t->dtype;
    known->ndim = t->ndim;
    s = heddle__tensor_bytes(t->dtype, t->ndim, known->shape, &known->bytes, err);
    if (s != HEDDLE_OK)
      heddle__at_node(heddle__prefix(err, s, "%s: node '%s': ", g->source, n->name), err, (uint32_t)(n - g->nodes),
                      n->name);
  }
  if (s != HEDDLE_OK || !is_view) return s;
  const heddle__known *from = &plan->values[heddle__entry_id(g, n->inputs[0])].known;
  heddle__known *to = &plan->values[n->first_entry].known;
  if (from->bytes != to->bytes)
    return heddle__at_node(
        heddle__fail(err, HEDDLE_EINVAL, "%s: node '%s' (%s): its input has %llu bytes, its output %llu", g->source,
                     n->name, n->func_name, (unsigned long long)from->bytes, (unsigned long long)to->bytes),
        err, (uint32_t)(n - g->nodes), n->name);
  to->data = from->data;
  return HEDDLE_OK;
}

/* What values are computed with that decide shapes. */
typedef struct folding {
  heddle__fold_room room;
  bool *direct; /* per entry */
} folding;

static heddle_status infer_node(heddle__plan *plan, folding *f, const heddle__node *n, heddle_error *err) {
  const heddle_graph *g = plan->req.graph;
  if (n->kind == HEDDLE__NODE_TVM) return infer_tvm(plan, n, err);
  const heddle__schema *schema = plan->schemas[n - g->nodes];
  if (schema == NULL) {
    return heddle__at_node(heddle__fail(err, HEDDLE_EUNSUPPORTED, "%s: node '%s': operator %s is not known in opset %u",
                                        g->source, n->name, n->op, (unsigned)g->opset),
                           err, (uint32_t)(n - g->nodes), n->name);
  }
  const heddle__known **in = heddle__plan_alloc(plan, n->n_inputs, sizeof *in);
  heddle__known *out = heddle__plan_alloc(plan, n->n_outputs, sizeof *out);
  if (in == NULL || out == NULL) return heddle__no_memory(err, "shape inference");
  for (uint32_t k = 0; k < n->n_inputs; k++) {
    if (n->inputs[k].node != HEDDLE__ABSENT) in[k] = &plan->values[heddle__entry_id(g, n->inputs[k])].known;
  }
  int32_t needs = -1;
  heddle_status s = heddle__schema_infer(schema)(g, n, in, out, &needs, err);
  if (s == HEDDLE_EUNSUPPORTED && needs >= 0 && (uint32_t)needs < n->n_inputs) {
    uint32_t id = heddle__entry_id(g, n->inputs[needs]);
    return heddle__at_node(
        heddle__prefix(err, s,
                       "the shape of node '%s' depends on %s '%s', whose bytes are not known before the run: ", n->name,
                       plan->values[id].kind == HEDDLE__VALUE_INPUT ? "input" : "value", plan->values[id].name),
        err, (uint32_t)(n - g->nodes), n->name);
  }
  if (s != HEDDLE_OK) return s;
  for (uint32_t k = 0; k < n->n_outputs; k++) {
    heddle__value *v = &plan->values[n->first_entry + k];
    v->known = out[k];
    s = heddle__tensor_bytes(out[k].dtype, out[k].ndim, out[k].shape, &v->known.bytes, err);
    if (s != HEDDLE_OK)
      return heddle__at_node(heddle__prefix(err, s, "%s: node '%s': ", g->source, n->name), err,
                             (uint32_t)(n - g->nodes), n->name);
    out[k].bytes = v->known.bytes;
    s = heddle__declared_check(g, n, k, out[k].dtype, out[k].ndim, out[k].shape, err);
    if (s != HEDDLE_OK) return s;
    if (!plan->req.quiet)
      heddle__declared_tell(heddle__context_log(plan->req.ctx), g, n, k, out[k].dtype, out[k].ndim, out[k].shape);
  }
  /* The result of a view of known bytes is known too; the same for arithmetic on shapes. */
  for (uint32_t k = 0; k < n->n_outputs; k++) {
    heddle__value *v = &plan->values[n->first_entry + k];
    if (schema->is_view && in[0] != NULL && in[0]->data != NULL) v->known.data = in[0]->data;
    if (v->feeds_shape && v->known.data == NULL) {
      s = heddle__fold(plan, &f->room, n, in, out, k, f->direct[n->first_entry + k], err);
      if (s != HEDDLE_OK) return s;
      v->known.data = out[k].data;
    }
  }
  return HEDDLE_OK;
}

heddle_status heddle__pass_infer(heddle__plan *plan, heddle_error *err) {
  const heddle_graph *g = plan->req.graph;
  plan->n_values = g->n_entries;
  plan->values = heddle__plan_alloc(plan, plan->n_values, sizeof *plan->values);
  bool *feeds = heddle__plan_alloc(plan, g->n_entries, sizeof *feeds);
  folding f = {.direct = heddle__plan_alloc(plan, g->n_entries, sizeof *f.direct)};
  if (plan->values == NULL || feeds == NULL || f.direct == NULL) return heddle__no_memory(err, "a plan's values");
  if (plan->schemas == NULL) {
    const heddle__schema **schemas = heddle__plan_alloc(plan, g->n_nodes, sizeof *schemas);
    if (schemas == NULL) return heddle__no_memory(err, "a plan's operators");
    for (uint32_t i = 0; i < g->n_nodes; i++) schemas[i] = schema_of(g, &g->nodes[i]);
    plan->schemas = schemas;
  }
  mark_feeds(g, plan->schemas, feeds, f.direct);
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const heddle__node *n = &g->nodes[i];
    for (uint32_t k = 0; k < n->n_outputs; k++) {
      heddle__value *v = &plan->values[n->first_entry + k];
      v->name = n->n_outputs == 1 ? n->name : heddle__plan_format(plan, "%s:%u", n->name, (unsigned)k);
      if (v->name == NULL) return heddle__no_memory(err, "a value's name");
      v->kind = HEDDLE__VALUE_COMPUTED;
      v->arg = v->region = HEDDLE__NONE;
      v->same_as = n->first_entry + k;
      v->align = 1;
      v->feeds_shape = feeds[n->first_entry + k];
    }
  }
  mark_used(plan);
  heddle_status s = take_inputs(plan, err);
  for (uint32_t i = 0; s == HEDDLE_OK && i < g->n_nodes; i++) {
    const heddle__node *n = &g->nodes[i];
    bool used = false;
    for (uint32_t k = 0; k < n->n_outputs; k++) used = used || plan->values[n->first_entry + k].used;
    if (!used || n->kind == HEDDLE__NODE_NULL) continue;
    s = heddle__plan_watch(plan, n->name, err);
    if (s == HEDDLE_OK) s = infer_node(plan, &f, n, err);
  }
  heddle__fold_forget(plan, &f.room);
  for (uint32_t i = 0; s == HEDDLE_OK && i < plan->n_values; i++) plan->values[i].size = plan->values[i].known.bytes;
  if (HEDDLE_HAS_RANGES && s == HEDDLE_OK && plan->req.open) s = heddle__open_dims(plan, err);
  return s;
}
