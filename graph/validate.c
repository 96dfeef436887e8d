/* graph/validate.c: what the parts of a graph must keep towards one another: inputs and names, operators that are known,
 * types where they are needed, storage. Inferred types are compared in check_types.c. */
#include "graph/validate.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "graph/general.h"
#include "graph/words.h"

/* ---------------------------------------------------------------- inputs */

/* arg_nodes holds each null node once, and nothing else. */
static heddle_status check_args(const heddle_graph *g, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  bool *seen = heddle__alloc(g->n_nodes, sizeof *seen);
  if (seen == NULL) return heddle__no_memory(err, "the check of a graph");
  for (uint32_t i = 0; i < g->n_args && s == HEDDLE_OK; i++) {
    const heddle__node *node = &g->nodes[g->args[i]];
    if (node->kind != HEDDLE__NODE_NULL)
      s = heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "arg_nodes[%u] names it, expected a null node", i);
    else if (seen[g->args[i]])
      s = heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "arg_nodes[%u] names it a second time", i);
    seen[g->args[i]] = true;
  }
  for (uint32_t i = 0; i < g->n_nodes && s == HEDDLE_OK; i++)
    if (g->nodes[i].kind == HEDDLE__NODE_NULL && !seen[i])
      s = heddle__node_fail(g, &g->nodes[i], err, HEDDLE_EFORMAT,
                            "it is not in arg_nodes, where each null node must be");
  heddle__free(seen);
  return s;
}

/* Operators may share a name, inputs may not: they are set by name. */
static heddle_status check_names(const heddle_graph *g, heddle_error *err) {
  const struct heddle__name *last = NULL; /* the last input that was met; names are sorted */
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const struct heddle__name *here = &g->names[i];
    if (g->nodes[here->node].kind != HEDDLE__NODE_NULL) continue;
    if (last != NULL && strcmp(last->name, here->name) == 0)
      return heddle__node_fail(g, &g->nodes[here->node], err, HEDDLE_EFORMAT,
                               "input %u has the same name; inputs are "
                               "set by name, so each needs one of its own",
                               last->node);
    last = here;
  }
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- operators */

/* Reorder is put in by the planner only. */
static bool is_known(const heddle_graph *g, const heddle__node *node) {
  return g->is_heddle && (strcmp(node->domain, "heddle") != 0 || strcmp(node->op, "Reorder") != 0) &&
         heddle__schema_find(node->domain, node->op, g->opset) != NULL;
}

static heddle_status list_unknown(const heddle_graph *g, uint32_t count, heddle_error *err) {
  char list[480], op[64], name[64], one[200], known[200];
  size_t used = 0;
  uint32_t listed = 0, first = g->n_nodes;
  list[0] = '\0';
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const heddle__node *node = &g->nodes[i];
    if (node->kind != HEDDLE__NODE_OP || is_known(g, node)) continue;
    if (first == g->n_nodes) first = i;
    heddle__show(node->op, op);
    heddle__show(node->name, name);
    const bool other = node->domain[0] != '\0';
    int n = snprintf(one, sizeof one, "%s%u '%.40s' (%s%.20s%s%.40s)", listed > 0 ? ", " : "", i, name,
                     other ? "domain " : "", node->domain, other ? ": " : "", op);
    if (used + (size_t)n >= sizeof list - 32) break;
    memcpy(list + used, one, (size_t)n + 1);
    used += (size_t)n;
    listed++;
  }
  if (listed < count) snprintf(list + used, sizeof list - used, " and %u more", count - listed);
  heddle__schema_names(g->opset, known, sizeof known);
  if (!g->is_heddle)
    heddle__fail(err, HEDDLE_EUNSUPPORTED,
                 "%s: nodes that are neither null nor tvm_op in a graph without a "
                 "\"heddle\" object: %s",
                 g->source, list);
  else
    heddle__fail(err, HEDDLE_EUNSUPPORTED, "%s: nodes whose operator is not known in opset %u: %s%s; known are %s",
                 g->source, g->opset, list, HEDDLE__NO_RARE_OPERATORS, known);
  return first < g->n_nodes ? heddle__at_node(HEDDLE_EUNSUPPORTED, err, first, g->nodes[first].name)
                            : HEDDLE_EUNSUPPORTED;
}

static heddle_status check_operators(const heddle_graph *g, heddle_error *err) {
  uint32_t unknown = 0, operators = 0;
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    if (g->nodes[i].kind != HEDDLE__NODE_OP) continue;
    operators++;
    unknown += !is_known(g, &g->nodes[i]);
  }
  if (g->is_heddle && operators > 0 && (g->opset < HEDDLE__OPSET_FIRST || g->opset > HEDDLE__OPSET_LAST))
    return heddle__fail(err, HEDDLE_EUNSUPPORTED, "%s: operators of opset %u; this library knows opsets %d to %d",
                        g->source, g->opset, HEDDLE__OPSET_FIRST, HEDDLE__OPSET_LAST);
  if (unknown > 0) return list_unknown(g, unknown, err);
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const heddle__node *node = &g->nodes[i];
    if (node->kind != HEDDLE__NODE_OP) continue;
    heddle_status s = heddle__schema_check(heddle__schema_find(node->domain, node->op, g->opset), g, node, err);
    if (s == HEDDLE_OK && heddle__is_control(node)) s = heddle__control_check(g, node, err);
    if (s != HEDDLE_OK) return s;
  }
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- types */

/* Bytes of an entry; *known false where a dimension is a symbol. */
static heddle_status entry_bytes(const heddle_graph *g, uint32_t entry, uint64_t *out, bool *known, heddle_error *err) {
  int64_t shape[HEDDLE__MAX_NDIM];
  const heddle__type *type = &g->types[entry];
  *known = type->has_dtype && type->has_shape;
  for (uint32_t i = 0; i < type->ndim; i++) {
    shape[i] = type->dims[i].value;
    *known = *known && shape[i] >= 0;
  }
  if (!*known) return HEDDLE_OK;
  heddle_status s = heddle__tensor_bytes(type->dtype, type->ndim, shape, out, err);
  if (s == HEDDLE_OK) return s;
  uint32_t id = 0;
  while (id + 1 < g->n_nodes && g->nodes[id + 1].first_entry <= entry) id++;
  char name[64];
  heddle__prefix(err, s, "%s: output %u of node %u '%s': ", g->source, entry - g->nodes[id].first_entry, id,
                 heddle__show(g->nodes[id].name, name));
  return heddle__at_node(s, err, id, g->nodes[id].name);
}

/* __nop and __copy hand bytes on, so there must be as many on both sides. */
static heddle_status check_passing(const heddle_graph *g, const heddle__node *node, heddle_error *err) {
  uint64_t in = 0, out = 0;
  bool in_known, out_known;
  bool copy = strcmp(node->func_name, "__copy") == 0;
  if (!copy && strcmp(node->func_name, "__nop") != 0) return HEDDLE_OK;
  if (node->n_outputs != 1 || node->n_inputs < 1 || (copy && node->n_inputs != 1))
    return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "%s has %u inputs and %u outputs, expected 1 and 1",
                             node->func_name, node->n_inputs, node->n_outputs);
  heddle_status s = entry_bytes(g, heddle__entry_id(g, node->inputs[0]), &in, &in_known, err);
  if (s == HEDDLE_OK) s = entry_bytes(g, node->first_entry, &out, &out_known, err);
  if (s == HEDDLE_OK && in_known && out_known && in != out)
    s = heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "%s hands on %llu bytes as %llu, expected as many",
                          node->func_name, (unsigned long long)in, (unsigned long long)out);
  return s;
}

static heddle_status check_entries(const heddle_graph *g, heddle_error *err) {
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const heddle__node *node = &g->nodes[i];
    heddle_status s = HEDDLE_OK;
    for (uint32_t k = 0; k < node->n_outputs && s == HEDDLE_OK; k++) {
      uint64_t bytes;
      bool known;
      const heddle__type *type = &g->types[node->first_entry + k];
      bool may_lack = node->kind == HEDDLE__NODE_OP || (g->is_inner && node->kind == HEDDLE__NODE_NULL);
      const bool may_lack_shape = may_lack || (g->is_heddle && node->kind == HEDDLE__NODE_NULL);
      if ((!may_lack && !type->has_dtype) || (!may_lack_shape && !type->has_shape))
        s = heddle__node_fail(g, node, err, HEDDLE_EFORMAT,
                              "attrs.%s has null for its entry %u; only outputs of operators may go without, and "
                              "inputs without a shape in graphs of Heddle",
                              type->has_dtype ? "shape" : "dltype", node->first_entry + k);
      else s = entry_bytes(g, node->first_entry + k, &bytes, &known, err);
    }
    if (s == HEDDLE_OK && node->kind == HEDDLE__NODE_TVM) s = check_passing(g, node, err);
    if (s != HEDDLE_OK) return s;
  }
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- storage */

typedef struct place {
  int32_t storage, device;
  uint32_t entry;
} place;

static int compare_places(const void *a, const void *b) {
  const place *x = a, *y = b;
  if (x->storage != y->storage) return x->storage < y->storage ? -1 : 1;
  return x->entry < y->entry ? -1 : x->entry > y->entry;
}

/* One storage id is on one kind of device. */
static heddle_status check_storage(const heddle_graph *g, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  if (g->storage_id == NULL || g->device_index == NULL) return HEDDLE_OK;
  place *places = heddle__alloc(g->n_entries, sizeof *places);
  if (places == NULL) return heddle__no_memory(err, "the check of a graph");
  for (uint32_t i = 0; i < g->n_entries; i++) places[i] = (place){g->storage_id[i], g->device_index[i], i};
  qsort(places, g->n_entries, sizeof *places, compare_places);
  for (uint32_t i = 1; i < g->n_entries && s == HEDDLE_OK; i++)
    if (places[i].storage == places[i - 1].storage && places[i].device != places[i - 1].device)
      s = heddle__fail(err, HEDDLE_EFORMAT,
                       "%s: storage id %d is on device type %d for entry %u and on %d for entry %u; "
                       "expected one",
                       g->source, places[i].storage, places[i - 1].device, places[i - 1].entry, places[i].device,
                       places[i].entry);
  heddle__free(places);
  return s;
}

heddle_status heddle__graph_validate(heddle_graph *g, heddle_error *err) {
  heddle_status s = check_args(g, err);
  if (s == HEDDLE_OK) s = check_names(g, err);
  if (s == HEDDLE_OK) s = check_operators(g, err);
  if (s == HEDDLE_OK) s = check_entries(g, err);
  if (s == HEDDLE_OK) s = check_storage(g, err);
  if (s == HEDDLE_OK) s = heddle__graph_check_types(g, err);
  if (s == HEDDLE_OK) s = heddle__graph_spread_shapes(g, err);
  return s;
}
