/* Cuts of what stands between products: pools, Concat, Reorder, elementwise operators. Each result comes from the same
 * place of its operands, or from a window around it, so a part is the same primitive on slices of all of them. How the
 * whole computes is asked of its primitive descriptor. */
#include "onednn_internal.h"

typedef struct piece {
  dnnl_memory_desc_t mds[ONEDNN_ARGS]; /* one an argument, in the plan's order */
  dnnl_dims_t before, after;           /* what pads the slice of a pool's operand */
} piece;

dnnl_status_t onednn_query_dims(const_dnnl_primitive_desc_t pd, dnnl_query_t what, dnnl_dims_t out, int count) {
  const dnnl_dims_t *found = NULL;
  dnnl_status_t s = dnnl_primitive_desc_query(pd, what, 0, (void *)&found);
  if (s == dnnl_success) memcpy(out, *found, (size_t)count * sizeof out[0]);
  return s;
}

static dnnl_primitive_kind_t kind_of(const_dnnl_primitive_desc_t pd) {
  dnnl_primitive_kind_t kind = dnnl_undefined_primitive;
  return dnnl_primitive_desc_query(pd, dnnl_query_primitive_kind, 0, &kind) == dnnl_success ? kind
                                                                                            : dnnl_undefined_primitive;
}

/* Rows [*first, *first + *rows) of a pool's operand are what rows range of its result need. */
static dnnl_status_t window_rows(const onednn_plan *plan, const onednn_range *range, int rank, int64_t height,
                                 int64_t *first, int64_t *rows, piece *p) {
  dnnl_dims_t strides, kernel, dilations;
  const int spatial = rank - 2, d = range->dim - 2;
  dnnl_status_t s = onednn_query_dims(plan->pd, dnnl_query_strides, strides, spatial);
  if (s == dnnl_success) s = onednn_query_dims(plan->pd, dnnl_query_kernel, kernel, spatial);
  if (s == dnnl_success) s = onednn_query_dims(plan->pd, dnnl_query_dilations, dilations, spatial);
  if (s == dnnl_success) s = onednn_query_dims(plan->pd, dnnl_query_padding_l, p->before, spatial);
  if (s == dnnl_success) s = onednn_query_dims(plan->pd, dnnl_query_padding_r, p->after, spatial);
  if (s != dnnl_success || d < 0) return s;
  const int64_t reach = (kernel[d] - 1) * (dilations[d] + 1) + 1;
  const int64_t low = range->from * strides[d] - p->before[d];
  const int64_t high = (range->from + range->count - 1) * strides[d] - p->before[d] + reach;
  *first = low < 0 ? 0 : low;
  *rows = (high > height ? height : high) - *first;
  p->before[d] = low < 0 ? -low : 0;
  p->after[d] = high > height ? high - height : 0;
  return *rows > 0 ? dnnl_success : dnnl_unimplemented;
}

/* The slice of argument i that a range needs: all of a dimension that is repeated. */
static dnnl_status_t slice_arg(const onednn_plan *plan, uint32_t i, const onednn_range *range,
                               int64_t signature[ONEDNN_SIGNATURE], uint64_t *offset, piece *p) {
  const onednn_arg *a = &plan->args[i];
  const heddle_pregion *region = plan->region;
  const heddle_pvalue *value = region_value(region, a->output ? region->outputs[a->slot] : region->inputs[a->slot]);
  const heddle_layout layout = a->output ? plan->output : plan->inputs[a->slot];
  int64_t first = range->from, count = range->count;
  onednn_view view;
  dnnl_status_t s = dnnl_success;
  if (layout == 0 ? !onednn_view_of(value, 0, false, &view)
                  : !onednn_view_from_token(plan->self, value, layout, &view) || view.groups != 0 || view.swapped)
    return dnnl_unimplemented;
  if (range->dim >= view.ndims) return dnnl_unimplemented;
  const int64_t size = view.dims[range->dim];
  if (kind_of(plan->pd) == dnnl_pooling && !a->output) {
    s = window_rows(plan, range, view.ndims, size, &first, &count, p);
    signature[1] = count;
    signature[2] = range->dim >= 2 ? p->before[range->dim - 2] : 0;
    signature[3] = range->dim >= 2 ? p->after[range->dim - 2] : 0;
  } else if (size == 1) {
    first = 0;
    count = 1;
  }
  if (s != dnnl_success) return s;
  if (first + count > size) return dnnl_unimplemented;
  return onednn_slice(plan->self, &view, layout, range->dim, first, count, &p->mds[i], offset);
}

/* The slice that has been made for an argument; NULL where the plan does not have it. */
static dnnl_memory_desc_t md_of(const onednn_plan *plan, const piece *p, int arg) {
  for (uint32_t i = 0; i < plan->n_args; i++)
    if (plan->args[i].arg == arg) return p->mds[i];
  return NULL;
}

static dnnl_status_t make_pool(const onednn_plan *plan, const piece *p, const_dnnl_primitive_attr_t attr,
                               dnnl_primitive_desc_t *pd) {
  dnnl_alg_kind_t alg = dnnl_alg_kind_undef;
  dnnl_dims_t strides, kernel, dilations;
  const dnnl_memory_desc_t src = md_of(plan, p, DNNL_ARG_SRC), dst = md_of(plan, p, DNNL_ARG_DST);
  int rank = 0;
  dnnl_status_t s = dnnl_memory_desc_query(dst, dnnl_query_ndims_s32, &rank);
  if (s == dnnl_success) s = dnnl_primitive_desc_query(plan->pd, dnnl_query_alg_kind, 0, &alg);
  if (s == dnnl_success) s = onednn_query_dims(plan->pd, dnnl_query_strides, strides, rank - 2);
  if (s == dnnl_success) s = onednn_query_dims(plan->pd, dnnl_query_kernel, kernel, rank - 2);
  if (s == dnnl_success) s = onednn_query_dims(plan->pd, dnnl_query_dilations, dilations, rank - 2);
  if (s != dnnl_success) return s;
  return dnnl_pooling_forward_primitive_desc_create(pd, plan->self->engine, dnnl_forward_inference, alg, src, dst,
                                                    strides, kernel, dilations, p->before, p->after, attr);
}

static dnnl_status_t make_concat(const onednn_plan *plan, const onednn_chain *chain, const piece *p,
                                 const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *pd) {
  const_dnnl_memory_desc_t srcs[ONEDNN_INPUTS];
  int64_t axis = 0;
  int n = 0;
  if (region_attr_int(chain->node.node, "axis", 0, &axis, NULL) != HEDDLE_OK) return dnnl_unimplemented;
  if (axis < 0) axis += chain->out->ndim;
  while (n < ONEDNN_INPUTS && (srcs[n] = md_of(plan, p, DNNL_ARG_MULTIPLE_SRC + n)) != NULL) n++;
  return dnnl_concat_primitive_desc_create(pd, plan->self->engine, md_of(plan, p, DNNL_ARG_DST), n, (int)axis, srcs,
                                           attr);
}

static dnnl_status_t make(const onednn_plan *plan, const onednn_chain *chain, const piece *p,
                          dnnl_primitive_desc_t *pd) {
  const dnnl_engine_t engine = plan->self->engine;
  const_dnnl_primitive_attr_t attr = NULL;
  dnnl_alg_kind_t alg = dnnl_alg_kind_undef;
  float alpha = 0, beta = 0;
  dnnl_status_t s = dnnl_primitive_desc_get_attr(plan->pd, &attr);
  if (s != dnnl_success) return s;
  switch (kind_of(plan->pd)) {
  case dnnl_pooling: return make_pool(plan, p, attr, pd);
  case dnnl_concat: return make_concat(plan, chain, p, attr, pd);
  case dnnl_reorder:
    return dnnl_reorder_primitive_desc_create(pd, md_of(plan, p, DNNL_ARG_FROM), engine, md_of(plan, p, DNNL_ARG_TO),
                                              engine, attr);
  case dnnl_eltwise:
    s = dnnl_primitive_desc_query(plan->pd, dnnl_query_alg_kind, 0, &alg);
    if (s == dnnl_success) s = dnnl_primitive_desc_query(plan->pd, dnnl_query_alpha_f32, 0, &alpha);
    if (s == dnnl_success) s = dnnl_primitive_desc_query(plan->pd, dnnl_query_beta_f32, 0, &beta);
    if (s != dnnl_success) return s;
    return dnnl_eltwise_forward_primitive_desc_create(pd, engine, dnnl_forward_inference, alg,
                                                      md_of(plan, p, DNNL_ARG_SRC), md_of(plan, p, DNNL_ARG_DST), alpha,
                                                      beta, attr);
  case dnnl_binary:
    s = dnnl_primitive_desc_query(plan->pd, dnnl_query_alg_kind, 0, &alg);
    if (s != dnnl_success) return s;
    return dnnl_binary_primitive_desc_create(pd, engine, alg, md_of(plan, p, DNNL_ARG_SRC_0),
                                             md_of(plan, p, DNNL_ARG_SRC_1), md_of(plan, p, DNNL_ARG_DST), attr);
  default: return dnnl_unimplemented;
  }
}

static dnnl_status_t cut_same(const onednn_plan *plan, const onednn_chain *chain, const void *unused,
                              const onednn_range *range, int64_t signature[ONEDNN_SIGNATURE],
                              uint64_t offsets[ONEDNN_ARGS], dnnl_primitive_desc_t *pd) {
  piece p = {.mds = {NULL}};
  dnnl_status_t s = dnnl_success;
  (void)unused;
  signature[0] = range->count;
  for (uint32_t i = 0; i < plan->n_args && s == dnnl_success; i++)
    s = slice_arg(plan, i, range, signature, &offsets[i], &p);
  if (s == dnnl_success && pd != NULL) s = make(plan, chain, &p, pd);
  for (uint32_t i = 0; i < plan->n_args; i++)
    if (p.mds[i] != NULL) dnnl_memory_desc_destroy(p.mds[i]);
  return s;
}

dnnl_status_t onednn_cut_same(onednn_plan *plan, const onednn_chain *chain) {
  const heddle_pvalue *out = region_value(plan->region, plan->region->outputs[0]);
  dnnl_status_t s = dnnl_success;
  int64_t axis = -1;
  if (kind_of(plan->pd) == dnnl_concat) {
    if (region_attr_int(chain->node.node, "axis", 0, &axis, NULL) != HEDDLE_OK) return dnnl_success;
    if (axis < 0) axis += out->ndim;
  }
  for (int dim = 0; dim < out->ndim && dim < 3 && s == dnnl_success && plan->n_parts == 0; dim++)
    if (dim != axis && out->shape[dim] > 1)
      s = onednn_cut_plan(plan, chain, NULL, cut_same, dim, out->shape[dim], dim == 1 ? plan->self->block : 1);
  return s;
}
