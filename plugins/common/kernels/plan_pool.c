/* MaxPool and AveragePool: the kernels of pool.cl. */
#include "plan_portable.h"

/* The parameters, and the largest place along a line that a window comes to. */
static k_pool params_of(const ref_pool *f, uint64_t results, uint64_t *limit) {
  const ref_window *w = &f->window;
  k_pool p = {.count = (int64_t)results, .include_pad = f->count_pads, .columns = f->column_major};
  *limit = 0;
  for (int d = 0; d < K_SPATIAL; d++) {
    p.in_[d] = w->in[d];
    p.out_[d] = w->out[d];
    p.window[d] = w->kernel[d];
    p.stride[d] = w->stride[d];
    p.dilation[d] = w->dilation[d];
    p.pad[d] = w->pad[d];
    p.pad_end[d] = f->end[d];
    const double reach = (double)w->out[d] * (double)w->stride[d] + (double)w->kernel[d] * (double)w->dilation[d] +
                         (double)w->in[d] + (double)w->pad[d] + (double)f->end[d];
    if (reach > (double)*limit) *limit = reach < 0x1p62 ? (uint64_t)reach : UINT64_C(1) << 62;
  }
  return p;
}

/* Turns of an item's loops, over the taps that lie in the operand. */
static double turns_of(const ref_window *w) {
  double turns = 0;
  for (int d = K_SPATIAL - 1; d >= 0; d--) {
    const int64_t fit = w->in[d] / w->dilation[d] + 1;
    turns = (double)(fit < w->kernel[d] ? fit : w->kernel[d]) * (turns + 1);
  }
  return turns;
}

static heddle_status plan_pool(k_node *n, heddle_error *err) {
  const bool average = strcmp(n->entry->op, "AveragePool") == 0;
  const bool where = region_node_output(n->ref.region, n->ref.node, 1) != NULL;
  ref_pool f;
  uint64_t results = 0;
  k_launch how = {.kernel = average ? KERNEL_average_pool
                            : where ? KERNEL_max_pool_where
                                    : KERNEL_max_pool,
                  .n_types = 1};
  heddle_status s = k_operand_element(n, 0, &how.types[0], err);
  if (s == HEDDLE_OK && !region_dtype_equal(n->ref.in[0]->dtype, n->ref.out->dtype))
    s = ref_refuse(&n->ref, err, "its result is of another type than its operand");
  if (s == HEDDLE_OK) s = ref_pool_read(&n->ref, &f, err);
  if (s != HEDDLE_OK) return s;
  region_value_count(n->ref.out, &results);
  const k_pool p = params_of(&f, results, &how.limit);
  how.items = results;
  if (where && how.limit < 2 * results) how.limit = 2 * results; /* pairs of words */
  how.turns = turns_of(&f.window);
  const uint32_t args[] = {k_input(n, 0), k_output(n, 0), where ? k_output(n, 1) : 0};
  return k_launch_add(n, &how, &p, sizeof p, where ? 3 : 2, args, err);
}

const k_entry k_pool_table[] = {
    {"AveragePool", 0, plan_pool},
    {"MaxPool", 0, plan_pool},
    {0},
};
