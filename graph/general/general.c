/* graph/general/general.c: inference and folding by the general kernels. A node becomes a region of its own, and the setup
 * that a plugin plans with says what comes out; so the two cannot disagree. */
#include "graph/general.h"

#include <stdlib.h>
#include <string.h>

#include "graph/infer.h"
#include "graph/words.h"
#include "plugins/common/more/more.h"

/* The most that is computed for a plan, as the plain kernels estimate it. */
#define MOST_NS 100e6

enum { VALUES = MORE_IN + MORE_OUT, SCRATCH_ALIGN = 64 };

/* A node as a region: its inputs, then its outputs. */
typedef struct lone {
  heddle_pregion region;
  heddle_pnode node;
  heddle_pvalue *values;
  int32_t *inputs, *outputs; /* of the node */
  int32_t *distinct;         /* of the region */
} lone;

/* Room for the lists of a node that inference takes. */
typedef struct room {
  heddle_pvalue values[VALUES];
  int32_t inputs[MORE_IN], outputs[MORE_OUT], distinct[MORE_IN];
} room;

static void fill_value(heddle_pvalue *v, const heddle__known *k) {
  *v = (heddle_pvalue){.struct_size = sizeof *v,
                       .dtype = k->dtype,
                       .shape = k->shape,
                       .data = k->data,
                       .data_bytes = k->data != NULL ? k->bytes : 0,
                       .ndim = (int32_t)k->ndim};
}

/* The lists of l have room for the node's inputs and outputs, and are zero. outputs: NULL where they are to be found. */
static void make_region(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                        const heddle__known *outputs, lone *l) {
  for (uint32_t k = 0; k < node->n_inputs; k++) {
    l->inputs[k] = inputs[k] != NULL ? (int32_t)k : -1;
    if (inputs[k] == NULL) continue;
    fill_value(&l->values[k], inputs[k]);
    l->distinct[l->region.n_inputs++] = (int32_t)k;
  }
  for (uint32_t k = 0; k < node->n_outputs; k++) {
    l->outputs[k] = (int32_t)(node->n_inputs + k);
    if (outputs != NULL) fill_value(&l->values[node->n_inputs + k], &outputs[k]);
  }
  l->node = (heddle_pnode){.struct_size = sizeof l->node,
                           .opset = g->opset,
                           .domain = node->domain,
                           .op = node->op,
                           .name = node->name,
                           .attrs = {node->attrs, node->n_attrs, sizeof *node->attrs},
                           .inputs = l->inputs,
                           .outputs = l->outputs,
                           .n_inputs = node->n_inputs,
                           .n_outputs = node->n_outputs};
  const heddle__schema *schema = heddle__schema_find(node->domain, node->op, node->domain[0] == '\0' ? g->opset : 0);
  if (schema != NULL) l->node.since_version = schema->opset_first;
  l->region.struct_size = sizeof l->region;
  l->region.nodes = (heddle_parray){&l->node, 1, sizeof l->node};
  l->region.values = (heddle_parray){l->values, node->n_inputs + node->n_outputs, sizeof l->values[0]};
  l->region.inputs = l->distinct;
  l->region.outputs = l->outputs;
  l->region.n_outputs = node->n_outputs;
}

heddle_status heddle__infer_general(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                    heddle__known *outputs, int32_t *needs, heddle_error *err) {
  more_op m;
  bool known;
  int32_t wanted = -1;
  heddle_error words;
  if (node->n_inputs > MORE_IN || node->n_outputs > MORE_OUT)
    return heddle__node_fail(g, node, err, HEDDLE_EUNSUPPORTED, "it has more than %d inputs or %d outputs", MORE_IN,
                             MORE_OUT);
  room here = {0};
  lone l = {.values = here.values, .inputs = here.inputs, .outputs = here.outputs, .distinct = here.distinct};
  make_region(g, node, inputs, NULL, &l);
  ref_node n = {.region = &l.region, .node = &l.node};
  for (uint32_t k = 0; k < REF_OPERANDS; k++) n.in[k] = region_node_input(&l.region, &l.node, k);
  const heddle_status s = more_plan_node(&n, &m, &wanted, &known, &words);
  if (s != HEDDLE_OK) {
    const char *text = strstr(words.text, "): "); /* the node is named by node_fail */
    if (needs != NULL) *needs = wanted;
    return heddle__node_fail(g, node, err, wanted >= 0 ? HEDDLE_EUNSUPPORTED : HEDDLE_EFORMAT, "%s",
                             text != NULL ? text + 3 : words.text);
  }
  for (uint32_t k = 0; k < node->n_outputs; k++) {
    outputs[k].dtype = more_dtype(m.out[k].type);
    outputs[k].ndim = (uint32_t)m.out[k].ndim;
    memcpy(outputs[k].shape, m.out[k].shape, sizeof m.out[k].shape);
    outputs[k].data = NULL;
  }
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- computing */

static void *host_alloc(void *ctx, uint64_t bytes, uint64_t align) {
  (void)ctx;
  return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void host_free(void *ctx, void *p) {
  (void)ctx;
  free(p);
}

static heddle_status run_region(const heddle_pregion *region, void *const *in, void *const *out) {
  const heddle_host host = {.struct_size = sizeof host, .alloc = host_alloc, .free = host_free};
  ref_op *op = NULL;
  void *scratch = NULL;
  heddle_status s = ref_query(region, NULL);
  if (s != HEDDLE_OK) return s;
  if (ref_cost_ns(region, 1) > MOST_NS) return HEDDLE_EUNSUPPORTED; /* what takes longer is not for planning */
  const uint64_t bytes = ref_workspace(region);
  if (bytes > UINT32_MAX) return HEDDLE_EUNSUPPORTED;
  if (bytes > 0) scratch = host_alloc(NULL, bytes, SCRATCH_ALIGN);
  s = bytes > 0 && scratch == NULL ? HEDDLE_ENOMEM : ref_prepare(&host, region, &op, NULL);
  if (s == HEDDLE_OK && !ref_indices_hold(op, in, 0, 1)) s = HEDDLE_EUNSUPPORTED; /* a run reports them */
  if (s == HEDDLE_OK) ref_run(op, in, out, scratch);
  free(scratch);
  ref_free(op);
  return s;
}

heddle_status heddle__general_compute(const heddle_graph *g, const heddle__node *node,
                                      const heddle__known *const *inputs, const heddle__known *outs, uint32_t which,
                                      void *data) {
  const size_t n_in = node->n_inputs, n_out = node->n_outputs, n = n_in + n_out;
  heddle_pvalue *values = calloc(n, sizeof *values);
  int32_t *lists = calloc(n_in + n, sizeof *lists);
  void **at = calloc(n, sizeof *at);
  heddle_status s = values != NULL && lists != NULL && at != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
  lone l = {.values = values, .inputs = lists};
  if (s == HEDDLE_OK) {
    l.outputs = lists + n_in;
    l.distinct = lists + n;
    make_region(g, node, inputs, outs, &l);
  }
  for (uint32_t k = 0; s == HEDDLE_OK && k < n_out; k++) {
    at[n_in + k] = k == which ? data : host_alloc(NULL, outs[k].bytes + SCRATCH_ALIGN, SCRATCH_ALIGN);
    if (at[n_in + k] == NULL) s = HEDDLE_ENOMEM;
  }
  for (uint32_t k = 0; s == HEDDLE_OK && k < l.region.n_inputs; k++)
    at[k] = (void *)(uintptr_t)inputs[l.distinct[k]]->data;
  if (s == HEDDLE_OK) s = run_region(&l.region, at, at + n_in);
  for (uint32_t k = 0; at != NULL && k < n_out; k++)
    if (k != which) free(at[n_in + k]);
  free(at);
  free(lists);
  free(values);
  return s;
}
