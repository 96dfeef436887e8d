/* Parts: a region is cut along one dimension of its result into primitives of one thread each, which the core's pool
 * runs. They are made when the plan is, depend on nothing that happens later, and so give the same bits each time. */
#include "cpu.h"
#include "onednn_run.h"

void onednn_set_offset(const onednn_plan *plan, int arg, uint64_t offset, uint64_t offsets[ONEDNN_ARGS]) {
  for (uint32_t i = 0; i < plan->n_args; i++)
    if (plan->args[i].arg == arg) offsets[i] = offset;
}

dnnl_status_t onednn_cut_posts(const onednn_plan *plan, const onednn_chain *chain, const onednn_range *range,
                               uint64_t dst_offset, uint64_t offsets[ONEDNN_ARGS]) {
  for (uint32_t i = 0; i < chain->n_posts; i++) {
    const onednn_post *post = &chain->posts[i];
    const heddle_pvalue *value = region_value(chain->region, post->value);
    uint64_t offset = dst_offset;
    if (post->value < 0) continue;
    if (!post->full) {
      int64_t strides[DNNL_MAX_NDIMS];
      const_dnnl_memory_desc_t dst = dnnl_primitive_desc_query_md(plan->pd, dnnl_query_exec_arg_md, DNNL_ARG_DST);
      int rank = 0;
      if (dnnl_memory_desc_query(dst, dnnl_query_ndims_s32, &rank) != dnnl_success ||
          !region_shape_broadcast_strides(value, chain->out, strides))
        return dnnl_unimplemented;
      /* Rows of a matrix that is seen so for more dimensions repeat the operand (onednn_chain_attr sees to it). */
      const bool same = rank == chain->out->ndim, column = !same && range->dim == rank - 1;
      const int64_t by = same ? strides[range->dim] : column ? strides[chain->out->ndim - 1] : 0;
      const int64_t across = range->columns == 0 ? 0 : same ? strides[rank - 1] : strides[chain->out->ndim - 1];
      offset = (uint64_t)(range->from * by + range->from_column * across) * sizeof(float);
    }
    onednn_set_offset(plan, DNNL_ARG_ATTR_MULTIPLE_POST_OP((int)i) | DNNL_ARG_SRC_1, offset, offsets);
  }
  return dnnl_success;
}

/* An implementation that is no worse than the whole's: a part that falls back to oneDNN's plain loops is not wanted. */
static bool as_good(const onednn_plan *plan, const_dnnl_primitive_desc_t pd) {
  const char *whole = "", *part = "";
  dnnl_primitive_desc_query(plan->pd, dnnl_query_impl_info_str, 0, (void *)&whole);
  dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&part);
  if (strcmp(whole, part) == 0) return true;
  /* Of long products of matrices, which are cut so that none is long: it takes the same, in another order. */
  dnnl_primitive_kind_t kind = dnnl_undefined_primitive;
  dnnl_primitive_desc_query(pd, dnnl_query_primitive_kind, 0, &kind);
  return kind == dnnl_matmul && plan->wanted_parts > 2 * plan->threads && strncmp(part, "gemm:jit", 8) == 0;
}

/* Finds or makes the kind of a part. */
static dnnl_status_t add_part(onednn_plan *plan, const onednn_chain *chain, const void *setup, onednn_cut cut,
                              const onednn_range *range, int64_t signatures[ONEDNN_KINDS][ONEDNN_SIGNATURE]) {
  int64_t mine[ONEDNN_SIGNATURE] = {0};
  onednn_part *part = &plan->parts[plan->n_parts];
  *part = (onednn_part){.kind = 0};
  dnnl_status_t s = cut(plan, chain, setup, range, mine, part->offsets, NULL);
  while (s == dnnl_success && part->kind < plan->n_kinds && memcmp(signatures[part->kind], mine, sizeof mine) != 0)
    part->kind++;
  if (s == dnnl_success && part->kind == plan->n_kinds) {
    if (plan->n_kinds == ONEDNN_KINDS) return dnnl_unimplemented;
    s = cut(plan, chain, setup, range, mine, part->offsets, &plan->kinds[plan->n_kinds]);
    if (s != dnnl_success) return s;
    memcpy(signatures[plan->n_kinds++], mine, sizeof mine);
    if (!as_good(plan, plan->kinds[part->kind])) return dnnl_unimplemented;
  }
  plan->n_parts += s == dnnl_success;
  return s;
}

static dnnl_status_t cut_into(onednn_plan *plan, const onednn_chain *chain, const void *setup, onednn_cut cut, int dim,
                              int64_t size, int64_t granule, int64_t wanted) {
  int64_t signatures[ONEDNN_KINDS][ONEDNN_SIGNATURE];
  const int64_t units = (size + granule - 1) / granule;
  const int64_t parts = units < wanted ? units : wanted;
  dnnl_status_t s = dnnl_success;
  if (parts < 2) return dnnl_success;
  for (int64_t i = 0; i < parts && s == dnnl_success; i++) {
    const int64_t less = units / parts, more = units % parts;
    const int64_t from = (i * less + (i < more ? i : more)) * granule, to = from + (less + (i < more)) * granule;
    const onednn_range range = {.dim = dim, .from = from, .count = (to < size ? to : size) - from};
    s = add_part(plan, chain, setup, cut, &range, signatures);
  }
  if (s == dnnl_success) return s;
  for (uint32_t i = 0; i < plan->n_kinds; i++) dnnl_primitive_desc_destroy(plan->kinds[i]);
  plan->n_kinds = plan->n_parts = 0;
  return s == dnnl_out_of_memory ? s : dnnl_success;
}

/* Where so many parts are wanted that each is short, fewer may still be computed as well as the whole. */
dnnl_status_t onednn_cut_plan(onednn_plan *plan, const onednn_chain *chain, const void *setup, onednn_cut cut, int dim,
                              int64_t size, int64_t granule) {
  int64_t wanted = plan->wanted_parts;
  dnnl_status_t s = cut_into(plan, chain, setup, cut, dim, size, granule, wanted);
  for (; s == dnnl_success && plan->n_parts == 0 && wanted > 2 * (int64_t)plan->threads; wanted /= 2)
    s = cut_into(plan, chain, setup, cut, dim, size, granule, wanted / 2);
  return s;
}

dnnl_status_t onednn_cut_grid(onednn_plan *plan, const onednn_chain *chain, const void *setup, onednn_cut cut,
                              const int64_t sizes[2], const int64_t each[2]) {
  int64_t signatures[ONEDNN_KINDS][ONEDNN_SIGNATURE];
  dnnl_status_t s = dnnl_success;
  if ((sizes[0] + each[0] - 1) / each[0] * ((sizes[1] + each[1] - 1) / each[1]) > ONEDNN_PARTS) return dnnl_success;
  for (int64_t row = 0; row < sizes[0] && s == dnnl_success; row += each[0])
    for (int64_t column = 0; column < sizes[1] && s == dnnl_success; column += each[1]) {
      const onednn_range range = {.from = row,
                                  .count = sizes[0] - row < each[0] ? sizes[0] - row : each[0],
                                  .from_column = column,
                                  .columns = sizes[1] - column < each[1] ? sizes[1] - column : each[1]};
      s = add_part(plan, chain, setup, cut, &range, signatures);
    }
  if (s == dnnl_success) return s;
  for (uint32_t i = 0; i < plan->n_kinds; i++) dnnl_primitive_desc_destroy(plan->kinds[i]);
  plan->n_kinds = plan->n_parts = 0;
  return s == dnnl_out_of_memory ? s : dnnl_success;
}

static uint64_t scratch_of(const_dnnl_primitive_desc_t pd) {
  const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_SCRATCHPAD);
  const uint64_t bytes = md != NULL ? dnnl_memory_desc_get_size(md) : 0;
  return (bytes + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
}

uint64_t onednn_plan_workspace(const onednn_plan *plan, uint64_t *each) {
  if (plan->by_winograd) {
    if (each != NULL) *each = 0;
    return winograd_workspace(&plan->winograd);
  }
  uint64_t most = plan->n_parts == 0 ? scratch_of(plan->pd) : 0;
  for (uint32_t i = 0; i < plan->n_kinds; i++) {
    const uint64_t bytes = scratch_of(plan->kinds[i]);
    if (bytes > most) most = bytes;
  }
  if (each != NULL) *each = most;
  return plan->n_parts == 0 ? most : most * onednn_tasks(plan->n_parts);
}
