/* graph/general/general.c: inference and folding by the general kernels. A node becomes a region of its own, and the setup
 * that a plugin plans with says what comes out; so the two cannot disagree. */
#include "graph/general.h"

#include <stdlib.h>
#include <string.h>

#include "graph/infer.h"
#include "graph/words.h"
#include "plugins/common/more/more.h"

enum { VALUES = MORE_IN + MORE_OUT, SCRATCH_ALIGN = 64 };

/* A node as a region: its inputs, then its outputs. */
typedef struct lone {
  heddle_pregion region;
  heddle_pnode node;
  heddle_pvalue values[VALUES];
  int32_t inputs[MORE_IN], outputs[MORE_OUT]; /* of the node */
  int32_t distinct[MORE_IN];                  /* of the region */
} lone;

static void fill_value(heddle_pvalue *v, const heddle__known *k) {
  *v = (heddle_pvalue){.struct_size = sizeof *v,
                       .dtype = k->dtype,
                       .shape = k->shape,
                       .data = k->data,
                       .data_bytes = k->data != NULL ? k->bytes : 0,
                       .ndim = (int32_t)k->ndim};
}

/* outputs: NULL where they are to be found. False where there are too many. */
static bool make_region(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                        const heddle__known *outputs, lone *l) {
  if (node->n_inputs > MORE_IN || node->n_outputs > MORE_OUT) return false;
  memset(l, 0, sizeof *l);
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
  l->region.struct_size = sizeof l->region;
  l->region.nodes = (heddle_parray){&l->node, 1, sizeof l->node};
  l->region.values = (heddle_parray){l->values, node->n_inputs + node->n_outputs, sizeof l->values[0]};
  l->region.inputs = l->distinct;
  l->region.outputs = l->outputs;
  l->region.n_outputs = node->n_outputs;
  return true;
}

heddle_status heddle__infer_general(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                    heddle__known *outputs, int32_t *needs, heddle_error *err) {
  lone l;
  more_op m;
  bool known;
  int32_t wanted = -1;
  heddle_error words;
  if (!make_region(g, node, inputs, NULL, &l))
    return heddle__node_fail(g, node, err, HEDDLE_EUNSUPPORTED, "it has more than %d inputs or %d outputs", MORE_IN,
                             MORE_OUT);
  ref_node n = {.region = &l.region, .node = &l.node};
  for (uint32_t k = 0; k < REF_OPERANDS; k++) n.in[k] = node_input(&l.region, &l.node, k);
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

heddle_status heddle__general_compute(const heddle_graph *g, const heddle__node *node,
                                      const heddle__known *const *inputs, const heddle__known *out, void *data) {
  const heddle_host host = {.struct_size = sizeof host, .alloc = host_alloc, .free = host_free};
  lone l;
  ref_op *op = NULL;
  void *in[MORE_IN] = {NULL}, *scratch = NULL;
  if (node->n_outputs != 1 || !make_region(g, node, inputs, out, &l)) return HEDDLE_EUNSUPPORTED;
  for (uint32_t k = 0; k < l.region.n_inputs; k++) in[k] = (void *)(uintptr_t)inputs[l.distinct[k]]->data;
  heddle_status s = ref_query(&l.region, NULL);
  if (s != HEDDLE_OK) return s;
  const uint64_t bytes = ref_workspace(&l.region);
  if (bytes > UINT32_MAX) return HEDDLE_EUNSUPPORTED;
  if (bytes > 0) scratch = host_alloc(NULL, bytes, SCRATCH_ALIGN);
  s = bytes > 0 && scratch == NULL ? HEDDLE_ENOMEM : ref_prepare(&host, &l.region, &op, NULL);
  if (s == HEDDLE_OK) ref_run(op, in, &data, scratch);
  free(scratch);
  ref_free(op);
  return s;
}
