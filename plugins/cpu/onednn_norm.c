/* LayerNormalization, seen as a matrix of rows that are normalised each for itself, whatever the axis. */
#include "onednn_internal.h"

typedef struct setup {
  onednn_view rows, row; /* of source and result; of scale and bias */
  float epsilon;
  unsigned flags;
} setup;

static bool read(const onednn_chain *chain, setup *u) {
  const ref_norm *f = &chain->op.u.norm;
  uint64_t count = 0;
  if (chain->n_posts > 0 || chain->node.in[1] == NULL || !region_value_count(chain->out, &count) || f->n < 1)
    return false;
  u->rows = (onednn_view){.ndims = 2, .dims = {(int64_t)count / f->n, f->n}, .strides = {f->n, 1}};
  u->row = (onednn_view){.ndims = 1, .dims = {f->n}, .strides = {1}};
  u->epsilon = f->epsilon;
  u->flags = (unsigned)dnnl_use_scale | (chain->node.in[2] != NULL ? (unsigned)dnnl_use_shift : 0);
  return true;
}

static dnnl_status_t describe(const onednn *self, const onednn_chain *chain, const setup *u,
                              const_dnnl_memory_desc_t rows, dnnl_primitive_desc_t *pd) {
  dnnl_primitive_attr_t attr = NULL;
  dnnl_status_t s = onednn_chain_attr(chain, rows, &attr);
  if (s == dnnl_success)
    s = dnnl_layer_normalization_forward_primitive_desc_create(pd, self->engine, dnnl_forward_inference, rows, rows,
                                                               NULL, u->epsilon, u->flags, attr);
  if (attr != NULL) dnnl_primitive_attr_destroy(attr);
  return s;
}

static dnnl_status_t cut_rows(const onednn_plan *plan, const onednn_chain *chain, const void *setup_of_whole,
                              const onednn_range *range, int64_t signature[ONEDNN_SIGNATURE],
                              uint64_t offsets[ONEDNN_ARGS], dnnl_primitive_desc_t *pd) {
  const setup *u = setup_of_whole;
  dnnl_memory_desc_t rows = NULL;
  uint64_t at = 0;
  signature[0] = range->count;
  signature[1] = signature[2] = signature[3] = 0;
  dnnl_status_t s = onednn_slice(plan->self, &u->rows, 0, 0, range->from, range->count, &rows, &at);
  if (s == dnnl_success && pd != NULL) s = describe(plan->self, chain, u, rows, pd);
  onednn_set_offset(plan, DNNL_ARG_SRC, at, offsets);
  onednn_set_offset(plan, DNNL_ARG_DST, at, offsets);
  if (rows != NULL) dnnl_memory_desc_destroy(rows);
  return s;
}

dnnl_status_t onednn_build_layer_norm(const onednn *self, const onednn_chain *chain, onednn_form form,
                                      onednn_plan *plan) {
  const heddle_pnode *node = chain->node.node;
  dnnl_memory_desc_t rows = NULL;
  setup u = {.flags = 0};
  if (form != ONEDNN_FORM_PLAIN || !read(chain, &u)) return dnnl_unimplemented;
  dnnl_status_t s = onednn_plain(&u.rows, &rows);
  if (s == dnnl_success) s = describe(self, chain, &u, rows, &plan->pd);
  if (s == dnnl_success) s = onednn_plan_plain_input(plan, node->inputs[0], DNNL_ARG_SRC);
  if (s == dnnl_success) s = onednn_plan_plain_input(plan, node->inputs[1], DNNL_ARG_SCALE);
  if (s == dnnl_success && chain->node.in[2] != NULL)
    s = onednn_plan_plain_input(plan, node->inputs[2], DNNL_ARG_SHIFT);
  if (s == dnnl_success) s = onednn_plan_plain_output(plan, chain->region->outputs[0], DNNL_ARG_DST);
  plan->cost_ns = 600 + 0.3 * (double)(u.rows.dims[0] * u.rows.dims[1]);
  if (plan->cost_ns / 30000 < plan->wanted_parts) plan->wanted_parts = (uint32_t)(plan->cost_ns / 30000);
  if (s == dnnl_success) s = onednn_cut_plan(plan, chain, &u, cut_rows, 0, u.rows.dims[0], 1);
  if (s == dnnl_success) s = onednn_ladder_plan(plan, chain, &u, cut_rows, u.rows.dims[0]);
  if (rows != NULL) dnnl_memory_desc_destroy(rows);
  return s;
}
