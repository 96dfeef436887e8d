/* AveragePool; the reference kernel's plan has its geometry. */
#include "plan_op.h"

static heddle_status plan_average_pool(k_node *n, heddle_error *err) {
  ref_op op = {0};
  uint64_t results = 0;
  k_step *step = NULL;
  heddle_status s = ref_plan_average_pool(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  value_count(n->ref.out, &results);
  if (results == 0) return HEDDLE_OK;
  s = k_kernel_add(n->plan, "pool", "average_pool", k_groups(results), k_limit(n), "%s", &step, err, "");
  if (s != HEDDLE_OK) return s;
  const ref_pool *f = &op.u.pool;
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
  n->plan->work += (double)results * (double)w->kernel[0] * (double)w->kernel[1] * (double)w->kernel[2];
  return HEDDLE_OK;
}

const k_entry k_pool_table[] = {
    {"AveragePool", "float32", " auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides ", 1, 1,
     plan_average_pool, NULL, NULL, 0, 0},
    {0},
};
