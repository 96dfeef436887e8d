/* Conv and ConvTranspose, with the chain behind them. Weights are left to oneDNN's choice: the planner has them packed
 * once where they are constants, and weighs a Reorder a run where they are not. */
#include "onednn_internal.h"

typedef struct setup {
  bool transposed;
  onednn_view weights;
  dnnl_dims_t strides, dilations, before, after;
} setup;

/* The last `spatial` of three. after is what makes the result come out at its size. */
static bool read_window(const onednn_chain *chain, setup *out) {
  const ref_window *w = &chain->op.u.conv.window;
  const int spatial = chain->node.in[0]->ndim - 2;
  for (int i = 0; i < spatial; i++) {
    const int d = REF_SPATIAL - spatial + i;
    const int64_t reach = (w->kernel[d] - 1) * w->dilation[d] + 1;
    out->strides[i] = w->stride[d];
    out->dilations[i] = w->dilation[d] - 1;
    out->before[i] = w->pad[d];
    out->after[i] = (w->out[d] - 1) * w->stride[d] + reach - w->in[d] - w->pad[d]; /* ConvTranspose: seen backwards */
  }
  return true;
}

static dnnl_status_t create(const onednn *self, const onednn_chain *chain, const setup *u, const_dnnl_memory_desc_t src,
                            const_dnnl_memory_desc_t weights, const_dnnl_memory_desc_t bias,
                            const_dnnl_memory_desc_t dst, dnnl_primitive_desc_t *out) {
  dnnl_primitive_attr_t attr = NULL;
  dnnl_status_t s = onednn_chain_attr(chain, dst, &attr);
  if (s == dnnl_success && u->transposed)
    s = dnnl_deconvolution_forward_primitive_desc_create(out, self->engine, dnnl_forward_inference,
                                                         dnnl_deconvolution_direct, src, weights, bias, dst, u->strides,
                                                         u->dilations, u->before, u->after, attr);
  else if (s == dnnl_success)
    s = dnnl_convolution_forward_primitive_desc_create(out, self->engine, dnnl_forward_inference,
                                                       dnnl_convolution_direct, src, weights, bias, dst, u->strides,
                                                       u->dilations, u->before, u->after, attr);
  if (attr != NULL) dnnl_primitive_attr_destroy(attr);
  return s;
}

/* Where a post-operation reads a whole tensor, its layout is that of the result, which must be known first: oneDNN is
 * asked without the chain what it would choose. */
static dnnl_status_t settle(const onednn *self, const onednn_chain *chain, const setup *u,
                            const_dnnl_memory_desc_t weights, const_dnnl_memory_desc_t bias, dnnl_memory_desc_t *src,
                            dnnl_memory_desc_t *dst) {
  onednn_chain bare = *chain;
  dnnl_primitive_desc_t pd = NULL;
  dnnl_memory_desc_t chosen[2] = {NULL, NULL};
  bare.n_posts = 0;
  dnnl_status_t s = create(self, &bare, u, *src, weights, bias, *dst, &pd);
  if (s == dnnl_success)
    s = dnnl_memory_desc_clone(&chosen[0], dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_SRC));
  if (s == dnnl_success)
    s = dnnl_memory_desc_clone(&chosen[1], dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_DST));
  if (pd != NULL) dnnl_primitive_desc_destroy(pd);
  if (s == dnnl_success) {
    dnnl_memory_desc_destroy(*src);
    dnnl_memory_desc_destroy(*dst);
    *src = chosen[0];
    *dst = chosen[1];
  } else if (chosen[0] != NULL) {
    dnnl_memory_desc_destroy(chosen[0]);
  }
  return s;
}

static dnnl_status_t name_args(const onednn_chain *chain, const setup *u, onednn_plan *plan) {
  const heddle_pnode *node = chain->node.node;
  dnnl_status_t s = onednn_plan_input(plan, node->inputs[0], DNNL_ARG_SRC, NULL);
  if (s == dnnl_success) s = onednn_plan_input(plan, node->inputs[1], DNNL_ARG_WEIGHTS, &u->weights);
  if (s == dnnl_success && chain->node.in[2] != NULL) s = onednn_plan_input(plan, node->inputs[2], DNNL_ARG_BIAS, NULL);
  if (s == dnnl_success) s = onednn_plan_output(plan, chain->region->outputs[0], DNNL_ARG_DST);
  if (s == dnnl_success) s = onednn_plan_posts(plan, chain);
  return s;
}

dnnl_status_t onednn_build_conv(const onednn *self, const onednn_chain *chain, onednn_form form, onednn_plan *plan) {
  const ref_conv *c = &chain->op.u.conv;
  const uint32_t groups = c->groups > 1 ? (uint32_t)c->groups : 0;
  setup u = {.transposed = strcmp(chain->node.node->op, "ConvTranspose") == 0};
  dnnl_memory_desc_t src = NULL, weights = NULL, bias = NULL, dst = NULL;
  onednn_view of_bias;
  if (c->groups > UINT32_MAX || !onednn_view_of(chain->node.in[1], groups, u.transposed, &u.weights) ||
      !read_window(chain, &u))
    return dnnl_unimplemented;
  dnnl_status_t s = onednn_in_form(self, chain->node.in[0], form, &src);
  if (s == dnnl_success) s = onednn_in_form(self, chain->out, form, &dst);
  if (s == dnnl_success) s = onednn_any(&u.weights, &weights);
  if (s == dnnl_success && chain->node.in[2] != NULL) {
    s = onednn_view_of(chain->node.in[2], 0, false, &of_bias) ? onednn_plain(&of_bias, &bias) : dnnl_unimplemented;
  }
  if (s == dnnl_success && form == ONEDNN_FORM_ANY && onednn_chain_has_full(chain))
    s = settle(self, chain, &u, weights, bias, &src, &dst);
  if (s == dnnl_success) s = create(self, chain, &u, src, weights, bias, dst, &plan->pd);
  if (s == dnnl_success) s = name_args(chain, &u, plan);
  if (s == dnnl_success) {
    uint64_t results = 0, taps = 0;
    value_count(u.transposed ? chain->node.in[0] : chain->out, &results);
    value_count(chain->node.in[1], &taps);
    plan->cost_ns = onednn_product_cost(plan->pd, (double)results * (double)taps / (double)chain->node.in[1]->shape[0],
                                        c->groups > 1);
  }
  if (dst != NULL) dnnl_memory_desc_destroy(dst);
  if (bias != NULL) dnnl_memory_desc_destroy(bias);
  if (weights != NULL) dnnl_memory_desc_destroy(weights);
  if (src != NULL) dnnl_memory_desc_destroy(src);
  return s;
}
