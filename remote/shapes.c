/* remote/shapes.c: whether the values of a client's region are what its nodes make of each other. Plugins infer nothing: they
 * take the types and shapes that a host inferred, and a client may not be one. So they are inferred here again, by the
 * definitions of the operators, before a plugin sees them. */
#include <stdlib.h>
#include <string.h>

#include "graph/opschema.h"
#include "plugins/common/perror.h"
#include "remote/session.h"

static const heddle_pvalue *value_at(const heddle_pregion *region, int32_t index) {
  return (const heddle_pvalue *)region->values.data + index;
}

static heddle_status to_known(const heddle_pvalue *v, heddle__known *out, heddle_error *err) {
  out->dtype = v->dtype;
  out->ndim = (uint32_t)v->ndim;
  memcpy(out->shape, v->shape, (size_t)v->ndim * sizeof out->shape[0]);
  out->data = v->data;
  return heddle__tensor_bytes(v->dtype, out->ndim, out->shape, &out->bytes, err);
}

static bool is_same(const heddle_pvalue *v, const heddle__known *k) {
  return memcmp(&v->dtype, &k->dtype, sizeof v->dtype) == 0 && v->ndim == (int32_t)k->ndim &&
         memcmp(v->shape, k->shape, (size_t)v->ndim * sizeof v->shape[0]) == 0;
}

/* What inference takes for one node, in one allocation. */
typedef struct question {
  heddle_graph graph; /* of this node */
  heddle__node node;
  heddle__known *known; /* of the inputs, then of the outputs */
  const heddle__known **in;
  heddle__entry *entries;
} question;

static question *ask_about(const heddle_pnode *n) {
  const size_t operands = (size_t)n->n_inputs + n->n_outputs;
  question *q = calloc(1, sizeof *q + operands * sizeof *q->known + n->n_inputs * (sizeof *q->in + sizeof *q->entries));
  if (q == NULL) return NULL;
  q->known = (heddle__known *)(void *)(q + 1);
  q->in = (const heddle__known **)(void *)(q->known + operands);
  q->entries = (heddle__entry *)(void *)(q->in + n->n_inputs);
  q->graph = (heddle_graph){.source = (char *)(uintptr_t) "a client's region", .opset = n->opset};
  q->node = (heddle__node){.kind = HEDDLE__NODE_OP,
                           .name = (char *)(uintptr_t)n->name,
                           .op = (char *)(uintptr_t)n->op,
                           .domain = (char *)(uintptr_t)n->domain,
                           .inputs = q->entries,
                           .n_inputs = n->n_inputs,
                           .n_outputs = n->n_outputs,
                           .attrs = (heddle_pattr *)(uintptr_t)n->attrs.data,
                           .n_attrs = (uint32_t)n->attrs.count,
                           .stream = -1};
  return q;
}

static heddle_status compare(const heddle_pregion *region, const heddle_pnode *n, const heddle__known *out,
                             heddle_error *err) {
  for (uint32_t i = 0; i < n->n_outputs; i++)
    if (n->outputs[i] >= 0 && !is_same(value_at(region, n->outputs[i]), &out[i]))
      return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                    "node '%.200s' (%.100s): output %u has another type or shape than its inputs give", n->name, n->op,
                    (unsigned)i);
  return HEDDLE_OK;
}

/* A shape that depends on bytes which only the run will know is left to the plugin, which cannot prepare for it either. */
static heddle_status check_node(const heddle_pregion *region, const heddle_pnode *n, heddle_error *err) {
  const heddle__schema *schema = heddle__schema_find(n->domain, n->op, n->domain[0] == '\0' ? n->opset : 0);
  int32_t needs = -1;
  if (schema == NULL)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%.200s': the server does not know operator %.100s in opset %u",
                  n->name, n->op, (unsigned)n->opset);
  question *q = ask_about(n);
  heddle_status s = q != NULL ? HEDDLE_OK : p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a region");
  for (uint32_t i = 0; i < n->n_inputs && s == HEDDLE_OK; i++) {
    q->entries[i].node = n->inputs[i] >= 0 ? 0 : HEDDLE__ABSENT;
    if (n->inputs[i] < 0) continue;
    s = to_known(value_at(region, n->inputs[i]), &q->known[i], err);
    q->in[i] = &q->known[i];
  }
  if (s == HEDDLE_OK && heddle__runs_apart(&q->node))
    s = p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%.200s': no device runs %.100s", n->name, n->op);
  if (s == HEDDLE_OK) s = heddle__schema_check(schema, &q->graph, &q->node, err);
  if (s == HEDDLE_OK) {
    s = heddle__schema_infer(schema)(&q->graph, &q->node, q->in, q->known + n->n_inputs, &needs, err);
    if (s == HEDDLE_OK) s = compare(region, n, q->known + n->n_inputs, err);
    else if (s == HEDDLE_EUNSUPPORTED && needs >= 0) s = HEDDLE_OK;
  }
  free(q);
  return s;
}

heddle_status remote_check_shapes(const heddle_pregion *region, heddle_error *err) {
  const heddle_pnode *nodes = region->nodes.data;
  heddle_status s = HEDDLE_OK;
  if (remote_calls_library(region)) return s; /* the tensors of a client's own code */
  for (uint64_t i = 0; i < region->nodes.count && s == HEDDLE_OK; i++) s = check_node(region, &nodes[i], err);
  return s == HEDDLE_OK || s == HEDDLE_ENOMEM ? s : HEDDLE_EUNSUPPORTED;
}
