/* graph/check_types.c: runs inference over a graph as far as the file's shapes allow, and compares what the file says of
 * an operator's outputs with what the operator gives. What is not known yet (a symbol, the value of an input) is left
 * for the planner. Outputs of the graph of which the file says nothing get what is known. */
#include "graph/validate.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "graph/declared.h"
#include "graph/opschema.h"
#include "graph/result_dtypes.h"
#include "graph/words.h"

typedef struct walk {
  heddle_graph *g;
  heddle__known **known;        /* one per entry; NULL: not known */
  const heddle__known **inputs; /* of the node in hand */
  heddle__known *outputs;       /* of the same */
  uint32_t capacity, out_capacity;
} walk;

static heddle_status remember(walk *w, uint32_t entry, const heddle__known *value, heddle_error *err) {
  w->known[entry] = heddle__alloc(1, sizeof **w->known);
  if (w->known[entry] == NULL) return heddle__no_memory(err, "the types of a graph");
  *w->known[entry] = *value;
  return HEDDLE_OK;
}

/* What the file says of an entry, if that is all. */
static heddle_status from_file(walk *w, uint32_t entry, heddle_error *err) {
  const heddle__type *type = &w->g->types[entry];
  heddle__known value = {.dtype = type->dtype, .ndim = type->ndim};
  if (!type->has_dtype || !type->has_shape) return HEDDLE_OK;
  for (uint32_t i = 0; i < type->ndim; i++) {
    value.shape[i] = type->dims[i].value;
    if (value.shape[i] < 0) return HEDDLE_OK;
  }
  heddle_status s = heddle__tensor_bytes(value.dtype, value.ndim, value.shape, &value.bytes, err);
  return s == HEDDLE_OK ? remember(w, entry, &value, err) : s;
}

/* Gathers the inputs of a node; *all false where one is not known. */
static heddle_status gather(walk *w, const heddle__node *node, bool *all, heddle_error *err) {
  if (node->n_inputs > w->capacity) {
    const heddle__known **more = heddle__grow(w->inputs, w->capacity, node->n_inputs, sizeof *more);
    if (more == NULL) return heddle__no_memory(err, "the types of a graph");
    w->inputs = more;
    w->capacity = node->n_inputs;
  }
  *all = true;
  for (uint32_t i = 0; i < node->n_inputs; i++) {
    bool absent = node->inputs[i].node == HEDDLE__ABSENT;
    w->inputs[i] = absent ? NULL : w->known[heddle__entry_id(w->g, node->inputs[i])];
    *all = *all && (absent || w->inputs[i] != NULL);
  }
  return HEDDLE_OK;
}

static heddle_status compare(walk *w, const heddle__node *node, uint32_t k, const heddle__known *value,
                             heddle_error *err) {
  char declared[200], is[128];
  const heddle__type *type = &w->g->types[node->first_entry + k];
  if (!heddle__declared_differs(type, value->dtype, value->ndim, value->shape, declared, is)) return HEDDLE_OK;
  return heddle__node_fail(w->g, node, err, HEDDLE_EFORMAT, "output %u is declared %s, and is %s", k, declared, is);
}

/* Zeroed room for the outputs of a node. */
static heddle_status make_room(walk *w, const heddle__node *node, heddle_error *err) {
  const uint32_t room = node->n_outputs > 0 ? node->n_outputs : 1;
  if (w->outputs == NULL || room > w->out_capacity) {
    heddle__known *more = heddle__grow(w->outputs, w->out_capacity, room, sizeof *more);
    if (more == NULL) return heddle__no_memory(err, "the types of a graph");
    w->outputs = more;
    w->out_capacity = room;
  }
  memset(w->outputs, 0, node->n_outputs * sizeof *w->outputs);
  return HEDDLE_OK;
}

static heddle_status infer_node(walk *w, const heddle__node *node, heddle_error *err) {
  int32_t needs = -1;
  bool all = false;
  heddle_status s = gather(w, node, &all, err);
  if (s == HEDDLE_OK) s = make_room(w, node, err);
  if (s != HEDDLE_OK) return s;
  const heddle__schema *schema = heddle__schema_find(node->domain, node->op, w->g->opset);
  bool ready = all && schema != NULL;
  if (ready) {
    heddle_error words; /* so that err stays as it was where nothing is wrong */
    s = heddle__schema_infer(schema)(w->g, node, w->inputs, w->outputs, &needs, &words);
    ready = s == HEDDLE_OK;
    if (!ready && !(s == HEDDLE_EUNSUPPORTED && needs >= 0)) { /* else: a value that is not known before a model */
      if (err != NULL) *err = words;
      return s;
    }
  }
  s = HEDDLE_OK;
  for (uint32_t k = 0; k < node->n_outputs && s == HEDDLE_OK; k++) {
    if (!ready) {
      s = from_file(w, node->first_entry + k, err);
      continue;
    }
    heddle__known *value = &w->outputs[k];
    s = heddle__tensor_bytes(value->dtype, value->ndim, value->shape, &value->bytes, err);
    if (s != HEDDLE_OK)
      return heddle__prefix(err, s, "%s: node %u: output %u: ", w->g->source, (unsigned)(node - w->g->nodes), k);
    s = compare(w, node, k, value, err);
    if (s == HEDDLE_OK) s = remember(w, node->first_entry + k, value, err);
  }
  return s;
}

/* A hint that was wrong gives way, with a warning. */
static heddle_status correct(walk *w, heddle__entry head, const heddle__known *known, heddle_error *err) {
  char declared[200], is[128], shown[64];
  heddle__type *type = &w->g->types[heddle__entry_id(w->g, head)];
  if (known == NULL || !heddle__declared_misleads(type, known->dtype, known->ndim, known->shape, declared, is))
    return HEDDLE_OK;
  heddle__show(w->g->nodes[head.node].name, shown);
  for (uint32_t d = 0; d < type->ndim; d++) heddle__free(type->dims[d].symbol);
  heddle__free(type->dims);
  heddle__free(type->shape); /* laid out anew */
  type->dims = NULL;
  type->shape = NULL;
  type->ndim = 0;
  type->has_shape = false;
  json_t *words = json_sprintf("%s: output '%s' is declared %s, and is %s", w->g->source, shown, declared, is);
  if (w->g->warnings == NULL) w->g->warnings = json_array();
  return json_array_append_new(w->g->warnings, words) == 0 ? HEDDLE_OK : heddle__no_memory(err, "the types of a graph");
}

/* What the file leaves open of a head. */
static heddle_status complete(heddle__type *type, const heddle__known *known, heddle_dtype dtype, heddle_error *err) {
  if (!type->has_dtype && dtype.bits != 0) {
    type->has_dtype = type->infers_dtype = true;
    type->dtype = dtype;
  }
  if (type->has_shape || known == NULL) return HEDDLE_OK;
  type->dims = heddle__alloc(known->ndim, sizeof *type->dims);
  if (type->dims == NULL) return heddle__no_memory(err, "the types of a graph");
  type->has_shape = type->infers_shape = true;
  type->ndim = known->ndim;
  for (uint32_t d = 0; d < known->ndim; d++) type->dims[d].value = known->shape[d];
  return HEDDLE_OK;
}

static heddle_status complete_heads(walk *w, heddle_error *err) {
  heddle_graph *g = w->g;
  heddle_dtype *dtypes = NULL;
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < g->n_heads && dtypes == NULL && s == HEDDLE_OK; i++)
    if (!g->types[heddle__entry_id(g, g->heads[i])].has_dtype) s = heddle__result_dtypes(g, NULL, &dtypes, err);
  for (uint32_t i = 0; i < g->n_heads && s == HEDDLE_OK; i++) {
    const uint32_t entry = heddle__entry_id(g, g->heads[i]);
    const heddle__known *known = w->known[entry];
    const heddle_dtype follows = dtypes != NULL ? dtypes[entry] : (heddle_dtype){0, 0, 0};
    s = correct(w, g->heads[i], known, err);
    if (s == HEDDLE_OK) s = complete(&g->types[entry], known, known != NULL ? known->dtype : follows, err);
  }
  heddle__free(dtypes);
  return s;
}

heddle_status heddle__graph_check_types(heddle_graph *g, heddle_error *err) {
  walk w = {.g = g};
  heddle_status s = HEDDLE_OK;
  if (!g->is_heddle) return HEDDLE_OK; /* TVM's nodes are functions of a library: nothing can be inferred */
  w.known = heddle__alloc(g->n_entries, sizeof *w.known);
  if (w.known == NULL) return heddle__no_memory(err, "the types of a graph");
  for (uint32_t i = 0; i < g->n_nodes && s == HEDDLE_OK; i++) {
    const heddle__node *node = &g->nodes[i];
    if (node->kind == HEDDLE__NODE_OP) s = infer_node(&w, node, err);
    for (uint32_t k = 0; node->kind != HEDDLE__NODE_OP && k < node->n_outputs && s == HEDDLE_OK; k++)
      s = from_file(&w, node->first_entry + k, err);
  }
  if (s == HEDDLE_OK && !g->is_inner) s = complete_heads(&w, err); /* an inner graph's differ from run to run */
  for (uint32_t i = 0; i < g->n_entries; i++) heddle__free(w.known[i]);
  heddle__free(w.known);
  heddle__free((void *)(uintptr_t)w.inputs);
  heddle__free(w.outputs);
  return s;
}
