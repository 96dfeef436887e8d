/* MaxPool without Indices, AveragePool and the global pools: a layout goes in and comes out. */
#include "onednn_lowest.h"

/* oneDNN adds what an average is of one by one; above so many the plain kernel's sums are several times as exact. */
#define MOST_ADDED 64

typedef struct setup {
  dnnl_alg_kind_t alg;
  dnnl_dims_t kernel, strides, dilations, before, after;
} setup;

static bool read(const onednn_chain *chain, setup *u) {
  const ref_pool *f = &chain->op.u.pool;
  const ref_window *w = &f->window;
  const heddle_pvalue *x = chain->node.in[0];
  const char *op = chain->node.node->op;
  const int spatial = x->ndim - 2;
  const bool most = strstr(op, "Max") != NULL, global = strncmp(op, "Global", 6) == 0;
  if (spatial < 1 || spatial > REF_SPATIAL || chain->n_posts > 0) return false;
  u->alg = most                            ? dnnl_pooling_max
           : !global && f->count_pads != 0 ? dnnl_pooling_avg_include_padding
                                           : dnnl_pooling_avg_exclude_padding;
  for (int i = 0; i < spatial; i++) {
    const int d = REF_SPATIAL - spatial + i;
    if (global) {
      u->kernel[i] = x->shape[2 + i];
      u->strides[i] = 1;
      continue;
    }
    const int64_t reach = (w->kernel[d] - 1) * w->dilation[d] + 1;
    u->kernel[i] = w->kernel[d];
    u->strides[i] = w->stride[d];
    u->dilations[i] = w->dilation[d] - 1;
    u->before[i] = w->pad[d];
    u->after[i] = (w->out[d] - 1) * w->stride[d] + reach - w->in[d] - w->pad[d];
    if (w->kernel[d] > w->in[d] + w->pad[d] + f->end[d] + 1 || w->kernel[d] > 2 * w->in[d])
      return false; /* slow there */
    /* Windows that lie in padding only, and ceil_mode's overhang, which an average does not count. */
    if (w->pad[d] >= reach || u->after[i] >= reach) return false;
    if (!most && f->count_pads != 0 && u->after[i] > f->end[d]) return false;
  }
  return true;
}

/* oneDNN has loops of its own without vectors, for what its others do not take: the plain kernels are several times as fast. */
static bool is_slow(const onednn *self, const_dnnl_primitive_desc_t pd) {
  const char *name = "";
  dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
  return self->mode != ONEDNN_ALWAYS && (strstr(name, "simple") != NULL || strstr(name, "ref") != NULL);
}

dnnl_status_t onednn_build_pool(const onednn *self, const onednn_chain *chain, onednn_form form, onednn_plan *plan) {
  const heddle_pvalue *x = chain->node.in[0];
  dnnl_memory_desc_t src = NULL, dst = NULL;
  dnnl_primitive_attr_t attr = NULL;
  setup u = {.alg = dnnl_alg_kind_undef};
  uint64_t results = 0;
  if (onednn_base(form) == ONEDNN_FORM_ANY || (form & ONEDNN_FORM_WIDE) != 0 || !read(chain, &u) ||
      !region_value_count(chain->out, &results))
    return dnnl_unimplemented;
  double taps = 1;
  for (int i = 0; i < x->ndim - 2; i++) taps *= (double)u.kernel[i];
  if (u.alg != dnnl_pooling_max && taps > MOST_ADDED && self->mode != ONEDNN_ALWAYS) return dnnl_unimplemented;
  dnnl_status_t s = onednn_in_form(self, x, form, &src);
  if (s == dnnl_success) s = onednn_in_form(self, chain->out, form, &dst);
  if (s == dnnl_success) s = onednn_chain_attr(chain, dst, &attr);
  if (s == dnnl_success)
    s = dnnl_pooling_forward_primitive_desc_create(&plan->pd, self->engine, dnnl_forward_inference, u.alg, src, dst,
                                                   u.strides, u.kernel, u.dilations, u.before, u.after, attr);
  if (s == dnnl_success && is_slow(self, plan->pd)) s = dnnl_unimplemented;
  onednn_lowest lowest;
  if (s == dnnl_success) s = onednn_lowest_read(plan->pd, &lowest); /* what cannot be mended is not taken */
  if (s == dnnl_success) s = onednn_plan_input(plan, chain->node.node->inputs[0], DNNL_ARG_SRC, NULL);
  if (s == dnnl_success) s = onednn_plan_output(plan, chain->region->outputs[0], DNNL_ARG_DST);
  if (s == dnnl_success) s = onednn_cut_same(plan, chain);
  plan->cost_ns = 600 + 0.03 * (double)results * taps * (form == ONEDNN_FORM_PLAIN ? 2.5 : 1);
  if (attr != NULL) dnnl_primitive_attr_destroy(attr);
  if (dst != NULL) dnnl_memory_desc_destroy(dst);
  if (src != NULL) dnnl_memory_desc_destroy(src);
  return s;
}
