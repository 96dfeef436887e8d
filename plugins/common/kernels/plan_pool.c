/* The pools; the reference kernels' plans have their geometry. */
#include "plan_op.h"

/* A launch over the results of a pool: parameters, the operand, the first result, and what the windows cost. */
static void set_pool(k_node *n, const ref_pool *f, uint64_t results, k_step *step) {
  const ref_window *w = &f->window;
  k_pool *p = &step->params.pool;
  p->count = (int64_t)results;
  p->include_pad = f->count_pads != 0;
  for (int d = 0; d < K_SPATIAL; d++) {
    p->in[d] = w->in[d];
    p->out[d] = w->out[d];
    p->window[d] = w->kernel[d];
    p->stride[d] = w->stride[d];
    p->dilation[d] = w->dilation[d];
    p->pad[d] = w->pad[d];
    p->pad_end[d] = f->end[d];
  }
  step->params_bytes = sizeof *p;
  step->args[step->n_args++] = k_input(n, 0);
  step->args[step->n_args++] = k_output(n, 0);
  double taps = 1; /* that lie in the operand */
  for (int d = 0; d < K_SPATIAL; d++) {
    const int64_t fit = w->in[d] / w->dilation[d] + 1;
    taps *= (double)(fit < w->kernel[d] ? fit : w->kernel[d]);
  }
  n->plan->work += (double)results * taps;
}

static heddle_status plan_average_pool(k_node *n, heddle_error *err) {
  if (!k_is_float32(n)) return k_plan_general(n, err);
  ref_op op = {0};
  uint64_t results = 0;
  k_step *step = NULL;
  heddle_status s = ref_plan_average_pool(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  region_value_count(n->ref.out, &results);
  if (results == 0) return HEDDLE_OK;
  s = k_kernel_add(n->plan, "pool", "average_pool", k_groups(results), k_limit(n), "%s", &step, err, "");
  if (s == HEDDLE_OK) set_pool(n, &op.u.pool, results, step);
  return s;
}

/* With its second result, the places of the maxima, by a kernel of its own. */
static heddle_status plan_max_pool(k_node *n, heddle_error *err) {
  if (!k_is_float32(n)) return k_plan_max_pool_any(n, err);
  const bool where = region_node_output(n->ref.region, n->ref.node, 1) != NULL;
  ref_op op;
  uint64_t results = 0;
  k_step *step = NULL;
  k_ref_op(n, &op);
  heddle_status s = ref_plan_max_pool(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  region_value_count(n->ref.out, &results);
  if (results == 0) return HEDDLE_OK;
  if (where) {
    s = k_kernel_add(n->plan, "pool_where", "max_pool_where", k_groups(results), k_limit(n), "-DCOLUMN_MAJOR=%u", &step,
                     err, op.u.pool.column_major);
  } else {
    s = k_kernel_add(n->plan, "pool", "max_pool", k_groups(results), k_limit(n), "%s", &step, err, "");
  }
  if (s != HEDDLE_OK) return s;
  set_pool(n, &op.u.pool, results, step);
  if (where) step->args[step->n_args++] = k_output(n, 1);
  return HEDDLE_OK;
}

const k_entry k_pool_table[] = {
    {"AveragePool", HEDDLE__TYPES_REAL, plan_average_pool},
    {"MaxPool", HEDDLE__TYPES_NUMBERS, plan_max_pool},
    {0},
};
