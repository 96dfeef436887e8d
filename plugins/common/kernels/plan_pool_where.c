/* MaxPool with its second result, the places of the maxima: the kernel of pool_where.cl. */
#include "plan_op.h"

heddle_status k_plan_max_pool_where(k_node *n, heddle_error *err) {
  ref_op op;
  uint64_t results = 0, in = 0;
  k_step *step = NULL;
  k_ref_op(n, &op);
  heddle_status s = ref_plan_max_pool(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  value_count(n->ref.out, &results);
  value_count(n->ref.in[0], &in);
  if (results == 0) return HEDDLE_OK;
  s = k_kernel_add(n->plan, "pool_where", "max_pool_where", k_groups(results), results > in ? results : in,
                   "-DCOLUMN_MAJOR=%u", &step, err, op.u.pool.column_major);
  if (s != HEDDLE_OK) return s;
  const ref_window *w = &op.u.pool.window;
  k_pool *p = &step->params.pool;
  p->count = (int64_t)results;
  for (int d = 0; d < K_SPATIAL; d++) {
    p->in[d] = w->in[d];
    p->out[d] = w->out[d];
    p->window[d] = w->kernel[d];
    p->stride[d] = w->stride[d];
    p->dilation[d] = w->dilation[d];
    p->pad[d] = w->pad[d];
  }
  step->params_bytes = sizeof *p;
  step->args[step->n_args++] = k_input(n, 0);
  step->args[step->n_args++] = k_output(n, 0);
  step->args[step->n_args++] = k_output(n, 1);
  n->plan->work += (double)results * (double)w->kernel[0] * (double)w->kernel[1] * (double)w->kernel[2];
  return HEDDLE_OK;
}
