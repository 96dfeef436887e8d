/* MatMul, Gemm, Conv, MaxPool, GlobalAveragePool and Softmax. Their geometry is that of the reference kernels' plans,
 * which check the node; here it is brought into the form of the kernels. */
#include "plan_op.h"

enum {
  TILE = 32,      /* as in contract.cl */
  FEW_ROWS = 8,   /* fewer channels in a group than this: no tiles */
  SHORT_ROW = 128 /* rows shorter than this get an item each */
};

static uint64_t tiles(int64_t n) {
  return ((uint64_t)n + TILE - 1) / TILE;
}

/* The largest number of elements of an operand or the result: no index is beyond it. */
static uint64_t limit_of(const k_node *n) {
  uint64_t limit = 0, count = 0;
  for (uint32_t k = 0; k < REF_OPERANDS; k++) {
    if (n->ref.in[k] != NULL && value_count(n->ref.in[k], &count) && count > limit) limit = count;
  }
  return value_count(n->ref.out, &count) && count > limit ? count : limit;
}

/* ---------------------------------------------------------------- matrix products */

static heddle_status add_matmul(k_node *n, const ref_matmul *m, bool has_c, heddle_error *err) {
  uint64_t results = 0;
  k_step *step = NULL;
  value_count(n->ref.out, &results);
  if (results == 0) return HEDDLE_OK;
  if (m->batch_dims > K_DIMS) return ref_refuse(&n->ref, err, "more than %d batch dimensions", K_DIMS);
  const uint64_t batches = results / (uint64_t)m->m / (uint64_t)m->n;
  const uint64_t all = tiles(m->m) * tiles(m->n) * batches;
  heddle_status s =
      k_kernel_add(n->plan, "contract", "contract", all, limit_of(n), "%s", &step, err, has_c ? "-DHAS_C" : "");
  if (s != HEDDLE_OK) return s;
  k_matmul *p = &step->params.matmul;
  *p = (k_matmul){.m = m->m,
                  .n = m->n,
                  .k = m->k,
                  .a_row = m->a_row,
                  .a_col = m->a_col,
                  .b_row = m->b_row,
                  .b_col = m->b_col,
                  .c_row = m->c_row,
                  .c_col = m->c_col,
                  .alpha = m->alpha,
                  .beta = m->beta};
  p->tiles_m = (int64_t)tiles(m->m);
  p->tiles_n = (int64_t)tiles(m->n);
  p->batch_dims = m->batch_dims;
  for (int32_t d = 0; d < m->batch_dims; d++) {
    p->batch_dim[d] = m->batch_dim[d];
    p->batch_a[d] = m->batch_a[d];
    p->batch_b[d] = m->batch_b[d];
  }
  step->params_bytes = sizeof *p;
  for (uint32_t k = 0; k < (has_c ? 3u : 2u); k++) step->args[step->n_args++] = k_input(n, k);
  step->args[step->n_args++] = k_output(n, 0);
  n->plan->work += (double)results * (double)m->k;
  return HEDDLE_OK;
}

static heddle_status plan_matmul(k_node *n, heddle_error *err) {
  ref_op op = {0};
  heddle_status s = ref_plan_matmul(&n->ref, &op, err);
  return s == HEDDLE_OK ? add_matmul(n, &op.u.matmul, false, err) : s;
}

static heddle_status plan_gemm(k_node *n, heddle_error *err) {
  ref_op op = {0};
  heddle_status s = ref_plan_gemm(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  return add_matmul(n, &op.u.matmul, n->ref.in[2] != NULL && op.u.matmul.beta != 0.0f, err);
}

/* ---------------------------------------------------------------- windows */

static heddle_status plan_conv(k_node *n, heddle_error *err) {
  ref_op op = {0};
  uint64_t results = 0;
  k_step *step = NULL;
  const bool bias = n->ref.in[2] != NULL;
  heddle_status s = ref_plan_conv(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  value_count(n->ref.out, &results);
  if (results == 0) return HEDDLE_OK;

  const ref_conv *c = &op.u.conv;
  const ref_window *w = &c->window;
  k_conv p = {.m = c->out_channels, .groups = c->groups, .in_channels = c->in_channels, .count = (int64_t)results};
  p.taps = w->kernel[0] * w->kernel[1] * w->kernel[2];
  p.n = w->out[0] * w->out[1] * w->out[2];
  p.k = p.taps * p.in_channels;
  p.tiles_m = (int64_t)tiles(p.m);
  p.tiles_n = (int64_t)tiles(p.n);
  for (int d = 0; d < K_SPATIAL; d++) {
    p.in[d] = w->in[d];
    p.out[d] = w->out[d];
    p.window[d] = w->kernel[d];
    p.stride[d] = w->stride[d];
    p.dilation[d] = w->dilation[d];
    p.pad[d] = w->pad[d];
  }
  const bool direct = p.m < FEW_ROWS;
  const uint64_t groups =
      direct ? k_groups(results) : (uint64_t)(p.tiles_m * p.tiles_n) * (uint64_t)(c->images * c->groups);
  s = k_kernel_add(n->plan, "contract", direct ? "direct" : "contract", groups, limit_of(n), "-DCONV%s", &step, err,
                   bias ? " -DHAS_C" : "");
  if (s != HEDDLE_OK) return s;
  step->params.conv = p;
  step->params_bytes = sizeof p;
  step->args[step->n_args++] = k_input(n, 1); /* A: the weights */
  step->args[step->n_args++] = k_input(n, 0);
  if (bias) step->args[step->n_args++] = k_input(n, 2);
  step->args[step->n_args++] = k_output(n, 0);
  n->plan->work += (double)results * (double)p.k;
  return HEDDLE_OK;
}

static heddle_status plan_max_pool(k_node *n, heddle_error *err) {
  ref_op op = {.result = {0, UINT32_MAX}};
  uint64_t results = 0;
  k_step *step = NULL;
  if (node_output(n->ref.region, n->ref.node, 1) != NULL) return k_plan_max_pool_where(n, err);
  heddle_status s = ref_plan_max_pool(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  value_count(n->ref.out, &results);
  if (results == 0) return HEDDLE_OK;
  s = k_kernel_add(n->plan, "pool", "max_pool", k_groups(results), limit_of(n), "%s", &step, err, "");
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
  n->plan->work += (double)results * (double)w->kernel[0] * (double)w->kernel[1] * (double)w->kernel[2];
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- rows */

static heddle_status add_rows(k_node *n, const char *group, const char *item, uint64_t rows, int64_t length,
                              int64_t inner, heddle_error *err) {
  k_step *step = NULL;
  const bool by_group = length >= SHORT_ROW && rows < UINT64_C(1) << 20;
  if (rows == 0) return HEDDLE_OK;
  heddle_status s = k_kernel_add(n->plan, "rows", by_group ? group : item, by_group ? rows : k_groups(rows),
                                 limit_of(n), "%s", &step, err, "");
  if (s != HEDDLE_OK) return s;
  step->params.rows = (k_rows){.rows = (int64_t)rows, .n = length, .inner = inner};
  step->params_bytes = sizeof step->params.rows;
  step->args[step->n_args++] = k_input(n, 0);
  step->args[step->n_args++] = k_output(n, 0);
  n->plan->work += 8.0 * (double)rows * (double)length;
  return HEDDLE_OK;
}

static heddle_status plan_softmax(k_node *n, heddle_error *err) {
  ref_op op = {0};
  uint64_t count = 0;
  heddle_status s = ref_plan_softmax(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  value_count(n->ref.out, &count);
  if (count == 0) return HEDDLE_OK;
  n->plan->pairs[0] = (int32_t)k_input(n, 0);
  n->plan->n_pairs = 1;
  return add_rows(n, "softmax_group", "softmax_item", count / (uint64_t)op.u.softmax.n, op.u.softmax.n,
                  op.u.softmax.inner, err);
}

static heddle_status plan_global_average_pool(k_node *n, heddle_error *err) {
  ref_op op = {0};
  uint64_t planes = 0;
  heddle_status s = ref_plan_global_pool(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  value_count(n->ref.out, &planes);
  return add_rows(n, "mean_group", "mean_item", planes, (int64_t)(op.u.bytes / sizeof(float)), 1, err);
}

#define WINDOW " auto_pad dilations kernel_shape pads strides "

const k_entry k_contract_table[] = {
    {"Conv", "float32", WINDOW "group ", 2, 3, plan_conv, NULL, NULL, 0, 0},
    {"Gemm", "float32", " alpha beta transA transB ", 2, 3, plan_gemm, NULL, NULL, 0, 0},
    {"GlobalAveragePool", "float32", "", 1, 1, plan_global_average_pool, NULL, NULL, 0, 0},
    {"MatMul", "float32", "", 2, 2, plan_matmul, NULL, NULL, 0, 0},
    {"MaxPool", "float32", WINDOW "ceil_mode storage_order ", 1, 1, plan_max_pool, NULL, NULL, 0, 2},
    {"Softmax", "float32", " axis ", 1, 1, plan_softmax, NULL, NULL, 0, 0},
    {0},
};
