/* What stands between convolutions and must not break their layouts: elementwise operators, BatchNormalization, Concat.
 * Row-major in float32 they are the reference kernels' own, but where everything is asked to go through oneDNN. */
#include "onednn_internal.h"

#define CALL_NS 600.0
#define NS_PER_BYTE 0.02

/* The form's layout is one that this operator is offered in. */
static bool wanted(const onednn *self, const onednn_chain *chain, onednn_form form) {
  return chain->n_posts == 0 && onednn_base(form) != ONEDNN_FORM_ANY && (form & ONEDNN_FORM_WIDE) == 0 &&
         (form != ONEDNN_FORM_PLAIN || self->mode == ONEDNN_ALWAYS);
}

static double cost_of(const onednn_chain *chain, int operands) {
  uint64_t bytes = 0;
  region_value_bytes(chain->out, &bytes);
  return CALL_NS + NS_PER_BYTE * (double)bytes * (operands + 1);
}

dnnl_status_t onednn_build_eltwise(const onednn *self, const onednn_chain *chain, onednn_form form, onednn_plan *plan) {
  const heddle_pnode *node = chain->node.node;
  dnnl_memory_desc_t md = NULL;
  dnnl_primitive_attr_t attr = NULL;
  onednn_post how;
  if (!wanted(self, chain, form) || !onednn_read_post(chain->region, node, node->inputs[0], &how))
    return dnnl_unimplemented;
  dnnl_status_t s = onednn_in_form(self, chain->out, form, &md);
  if (s == dnnl_success) s = onednn_chain_attr(chain, md, &attr);
  if (s == dnnl_success)
    s = dnnl_eltwise_forward_primitive_desc_create(&plan->pd, self->engine, dnnl_forward_inference, how.alg, md, md,
                                                   how.alpha, how.beta, attr);
  if (s == dnnl_success) s = onednn_plan_input(plan, node->inputs[0], DNNL_ARG_SRC, NULL);
  if (s == dnnl_success) s = onednn_plan_output(plan, chain->region->outputs[0], DNNL_ARG_DST);
  if (s == dnnl_success) s = onednn_cut_same(plan, chain);
  plan->cost_ns = cost_of(chain, 1);
  if (attr != NULL) dnnl_primitive_attr_destroy(attr);
  if (md != NULL) dnnl_memory_desc_destroy(md);
  return s;
}

/* Both operands of the result's shape, or the second repeated along some dimensions and of the same rank. */
dnnl_status_t onednn_build_binary(const onednn *self, const onednn_chain *chain, onednn_form form, onednn_plan *plan) {
  const heddle_pnode *node = chain->node.node;
  const heddle_pvalue *a = chain->node.in[0], *b = chain->node.in[1];
  dnnl_memory_desc_t first = NULL, second = NULL;
  dnnl_primitive_attr_t attr = NULL;
  onednn_post how;
  if (!wanted(self, chain, form) || node->inputs[0] == node->inputs[1] || !region_shape_equal(a, chain->out) ||
      b->ndim != a->ndim || !onednn_read_post(chain->region, node, node->inputs[0], &how))
    return dnnl_unimplemented;
  dnnl_status_t s = onednn_in_form(self, a, form, &first);
  if (s == dnnl_success) s = onednn_in_form(self, b, form, &second);
  if (s == dnnl_success) s = onednn_chain_attr(chain, first, &attr);
  if (s == dnnl_success)
    s = dnnl_binary_primitive_desc_create(&plan->pd, self->engine, how.alg, first, second, first, attr);
  if (s == dnnl_success) s = onednn_plan_input(plan, node->inputs[0], DNNL_ARG_SRC_0, NULL);
  if (s == dnnl_success) s = onednn_plan_input(plan, node->inputs[1], DNNL_ARG_SRC_1, NULL);
  if (s == dnnl_success) s = onednn_plan_output(plan, chain->region->outputs[0], DNNL_ARG_DST);
  if (s == dnnl_success) s = onednn_cut_same(plan, chain);
  plan->cost_ns = cost_of(chain, 2);
  if (attr != NULL) dnnl_primitive_attr_destroy(attr);
  if (second != NULL) dnnl_memory_desc_destroy(second);
  if (first != NULL) dnnl_memory_desc_destroy(first);
  return s;
}

dnnl_status_t onednn_build_batch_norm(const onednn *self, const onednn_chain *chain, onednn_form form,
                                      onednn_plan *plan) {
  static const int args[] = {DNNL_ARG_SRC, DNNL_ARG_SCALE, DNNL_ARG_SHIFT, DNNL_ARG_MEAN, DNNL_ARG_VARIANCE};
  const heddle_pnode *node = chain->node.node;
  const unsigned flags = dnnl_use_global_stats | dnnl_use_scale | dnnl_use_shift;
  dnnl_memory_desc_t md = NULL;
  dnnl_primitive_attr_t attr = NULL;
  double epsilon = 1e-5;
  if (!wanted(self, chain, form) || node->n_inputs != 5 || chain->out->ndim < 2 ||
      region_attr_float(node, "epsilon", 1e-5, &epsilon, NULL) != HEDDLE_OK)
    return dnnl_unimplemented;
  dnnl_status_t s = onednn_in_form(self, chain->out, form, &md);
  if (s == dnnl_success) s = onednn_chain_attr(chain, md, &attr);
  if (s == dnnl_success)
    s = dnnl_batch_normalization_forward_primitive_desc_create(&plan->pd, self->engine, dnnl_forward_inference, md, md,
                                                               (float)epsilon, flags, attr);
  for (int k = 0; k < 5 && s == dnnl_success; k++) s = onednn_plan_input(plan, node->inputs[k], args[k], NULL);
  if (s == dnnl_success) s = onednn_plan_output(plan, chain->region->outputs[0], DNNL_ARG_DST);
  plan->cost_ns = cost_of(chain, 1);
  if (attr != NULL) dnnl_primitive_attr_destroy(attr);
  if (md != NULL) dnnl_memory_desc_destroy(md);
  return s;
}

dnnl_status_t onednn_build_concat(const onednn *self, const onednn_chain *chain, onednn_form form, onednn_plan *plan) {
  const heddle_pnode *node = chain->node.node;
  dnnl_memory_desc_t srcs[ONEDNN_INPUTS] = {NULL}, dst = NULL;
  dnnl_primitive_attr_t attr = NULL;
  int64_t axis = 0;
  int n = 0;
  if (!wanted(self, chain, form) || node->n_inputs > ONEDNN_INPUTS ||
      region_attr_int(node, "axis", 0, &axis, NULL) != HEDDLE_OK)
    return dnnl_unimplemented;
  if (axis < 0) axis += chain->out->ndim;
  dnnl_status_t s = onednn_in_form(self, chain->out, form, &dst);
  for (; n < (int)node->n_inputs && s == dnnl_success; n++)
    s = onednn_in_form(self, region_node_input(chain->region, node, (uint32_t)n), form, &srcs[n]);
  if (s == dnnl_success) s = onednn_chain_attr(chain, dst, &attr);
  if (s == dnnl_success)
    s = dnnl_concat_primitive_desc_create(&plan->pd, self->engine, dst, n, (int)axis,
                                          (const const_dnnl_memory_desc_t *)srcs, attr);
  for (int k = 0; k < n && s == dnnl_success; k++)
    s = onednn_plan_input(plan, node->inputs[k], DNNL_ARG_MULTIPLE_SRC + k, NULL);
  if (s == dnnl_success) s = onednn_plan_output(plan, chain->region->outputs[0], DNNL_ARG_DST);
  if (s == dnnl_success) s = onednn_cut_same(plan, chain);
  plan->cost_ns = cost_of(chain, form == ONEDNN_FORM_CHANNELS_LAST ? 5 : 1); /* a piece a pixel */
  if (attr != NULL) dnnl_primitive_attr_destroy(attr);
  if (dst != NULL) dnnl_memory_desc_destroy(dst);
  for (int k = 0; k < n; k++)
    if (srcs[k] != NULL) dnnl_memory_desc_destroy(srcs[k]);
  return s;
}
