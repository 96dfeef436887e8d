/* MatMul and Gemm, with the chain behind them. Activations are row-major; a constant right matrix is left to oneDNN's
 * choice, and packed once. */
#include "onednn_internal.h"

typedef struct setup {
  onednn_view a, b, c, out;
  bool packed; /* the right operand is a matrix whose layout oneDNN chooses */
  bool bias;
} setup;

static void set_matrix(onednn_view *v, int at, int64_t rows, int64_t cols, int64_t row, int64_t col) {
  v->dims[at] = rows;
  v->dims[at + 1] = cols;
  v->strides[at] = row;
  v->strides[at + 1] = col;
  v->ndims = at + 2;
}

/* oneDNN wants strides of a matrix to be those of one, also where a dimension of 1 makes them not matter. */
static void tidy(onednn_view *v) {
  const int r = v->ndims - 2, c = r + 1;
  if (v->dims[r] == 1 && v->strides[c] == 1) v->strides[r] = v->dims[c];
  if (v->dims[c] == 1 && v->strides[r] == 1) v->strides[c] = v->dims[r];
}

static bool read(const onednn_chain *chain, onednn_form form, setup *u) {
  const ref_matmul *m = &chain->op.u.matmul;
  const bool gemm = strcmp(chain->node.node->op, "Gemm") == 0;
  const heddle_pvalue *b = chain->node.in[1], *c = chain->node.in[2];
  const int batch = m->batch_dims;
  int64_t size = m->m * m->n;
  if (batch + 2 > DNNL_MAX_NDIMS || (gemm && m->alpha != 1.0f)) return false;
  set_matrix(&u->a, batch, m->m, m->k, m->a_row, m->a_col);
  set_matrix(&u->b, batch, m->k, m->n, m->b_row, m->b_col);
  set_matrix(&u->out, batch, m->m, m->n, m->n, 1);
  for (int d = batch - 1; d >= 0; d--) {
    u->a.dims[d] = m->batch_a[d] != 0 ? m->batch_dim[d] : 1;
    u->b.dims[d] = m->batch_b[d] != 0 ? m->batch_dim[d] : 1;
    u->out.dims[d] = m->batch_dim[d];
    u->a.strides[d] = m->batch_a[d] != 0 ? m->batch_a[d] : m->m * m->k;
    u->b.strides[d] = m->batch_b[d] != 0 ? m->batch_b[d] : m->k * m->n;
    u->out.strides[d] = size;
    size *= m->batch_dim[d];
  }
  tidy(&u->a);
  u->packed = batch == 0 && b->ndim == 2 && b->data != NULL;
  if (u->packed && !onednn_view_of(b, 0, gemm && m->b_col != 1, &u->b)) return false;
  u->a.type = u->b.type = onednn_form_type(form);
  u->out.type = onednn_form_type(onednn_form_out(form));
  if (u->packed && (u->b.dims[0] != m->k || u->b.dims[1] != m->n)) return false;
  if (!u->packed) tidy(&u->b);
  u->bias = gemm && c != NULL;
  if (!u->bias) return true;
  /* One row for all rows; any other third operand is left to the reference kernel. */
  uint64_t count = 0;
  if (m->beta != 1.0f || !region_value_count(c, &count) || count != (uint64_t)m->n || m->c_row != 0) return false;
  set_matrix(&u->c, 0, 1, m->n, m->n, 1);
  return true;
}

/* A part is a row of rows, or of columns. */
static dnnl_status_t cut_matmul(const onednn_plan *plan, const onednn_chain *chain, const void *setup_of_whole,
                                const onednn_range *range, int64_t signature[ONEDNN_SIGNATURE],
                                uint64_t offsets[ONEDNN_ARGS], dnnl_primitive_desc_t *pd) {
  const setup *u = setup_of_whole;
  const onednn *self = plan->self;
  const bool rows = range->dim == 0;
  const int64_t slot = region_input_slot(plan->region, chain->node.node->inputs[1]);
  onednn_view result = u->out;
  dnnl_memory_desc_t a = NULL, b = NULL, c = NULL, out = NULL;
  dnnl_primitive_attr_t attr = NULL;
  uint64_t a_at = 0, b_at = 0, c_at = 0, out_at = 0;
  const int64_t from_column = rows ? range->from_column : range->from;
  const int64_t columns = !rows ? range->count : range->columns > 0 ? range->columns : u->out.dims[1];
  signature[0] = range->count;
  signature[1] = columns;
  signature[2] = signature[3] = 0;
  dnnl_status_t s =
      onednn_slice(self, &u->a, 0, 0, rows ? range->from : 0, rows ? range->count : u->a.dims[0], &a, &a_at);
  if (s == dnnl_success)
    s = onednn_slice(self, &u->b, u->packed ? plan->inputs[slot] : 0, 1, from_column, columns, &b, &b_at);
  if (s == dnnl_success && u->bias) s = onednn_slice(self, &u->c, 0, 1, from_column, columns, &c, &c_at);
  if (u->out.dims[0] == 1) result.strides[0] = range->count; /* of columns of a single row */
  if (rows) result.dims[1] = columns;
  if (s == dnnl_success) s = onednn_slice(self, &result, 0, range->dim, range->from, range->count, &out, &out_at);
  if (rows && result.type == dnnl_bf16) out_at += (uint64_t)from_column * 2;
  else if (rows) out_at += (uint64_t)from_column * sizeof(float);
  if (s == dnnl_success && pd != NULL) s = onednn_chain_attr(chain, out, &attr);
  if (s == dnnl_success && pd != NULL) s = onednn_matmul_pd(self, pd, a, b, c, out, attr);
  if (s == dnnl_success) s = onednn_cut_posts(plan, chain, range, out_at, offsets);
  onednn_set_offset(plan, DNNL_ARG_SRC, a_at, offsets);
  onednn_set_offset(plan, DNNL_ARG_WEIGHTS, b_at, offsets);
  onednn_set_offset(plan, DNNL_ARG_BIAS, c_at, offsets);
  onednn_set_offset(plan, DNNL_ARG_DST, out_at, offsets);
  if (attr != NULL) dnnl_primitive_attr_destroy(attr);
  if (out != NULL) dnnl_memory_desc_destroy(out);
  if (c != NULL) dnnl_memory_desc_destroy(c);
  if (b != NULL) dnnl_memory_desc_destroy(b);
  if (a != NULL) dnnl_memory_desc_destroy(a);
  return s;
}

/* A part is a row of matrices of a stack; an operand without them is repeated. */
static dnnl_status_t cut_stack(const onednn_plan *plan, const onednn_chain *chain, const void *setup_of_whole,
                               const onednn_range *range, int64_t signature[ONEDNN_SIGNATURE],
                               uint64_t offsets[ONEDNN_ARGS], dnnl_primitive_desc_t *pd) {
  const setup *u = setup_of_whole;
  const onednn_view *views[] = {&u->a, &u->b, &u->out};
  static const int args[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
  dnnl_memory_desc_t mds[3] = {NULL};
  dnnl_primitive_attr_t attr = NULL;
  uint64_t at[3] = {0};
  dnnl_status_t s = dnnl_success;
  signature[0] = range->count;
  signature[1] = signature[2] = signature[3] = 0;
  for (int i = 0; i < 3 && s == dnnl_success; i++) {
    const bool repeated = views[i]->dims[range->dim] == 1 || (i == 1 && range->dim == u->out.ndims - 2);
    s = onednn_slice(plan->self, views[i], 0, range->dim, repeated ? 0 : range->from,
                     repeated ? views[i]->dims[range->dim] : range->count, &mds[i], &at[i]);
  }
  if (s == dnnl_success && pd != NULL) s = onednn_chain_attr(chain, mds[2], &attr);
  if (s == dnnl_success && pd != NULL) s = onednn_matmul_pd(plan->self, pd, mds[0], mds[1], NULL, mds[2], attr);
  if (s == dnnl_success) s = onednn_cut_posts(plan, chain, range, at[2], offsets);
  for (int i = 0; i < 3; i++) onednn_set_offset(plan, args[i], at[i], offsets);
  if (attr != NULL) dnnl_primitive_attr_destroy(attr);
  for (int i = 0; i < 3; i++)
    if (mds[i] != NULL) dnnl_memory_desc_destroy(mds[i]);
  return s;
}

/* By matrices of a stack, by rows where there are many, else by columns. */
static dnnl_status_t cut(onednn_plan *plan, const onednn_chain *chain, const setup *u) {
  enum { MANY_ROWS = 64, ROWS = 8, COLUMNS = 64, WIDE = 768 };
  const double TILE_PRODUCTS = 2.5e9; /* some 45 ms */
  if (u->out.ndims != 2) {
    int dim = 0;
    while (dim < u->out.ndims - 3 && u->out.dims[dim] == 1) dim++;
    const int row = u->out.ndims - 2; /* where the work is long and the stack is low */
    if (u->out.dims[dim] < plan->wanted_parts && plan->wanted_parts > 2 * plan->threads &&
        u->out.dims[row] >= MANY_ROWS && !u->bias) {
      const dnnl_status_t s = onednn_cut_plan(plan, chain, u, cut_stack, row, u->out.dims[row], ROWS);
      if (s != dnnl_success || plan->n_parts > 0) return s;
    }
    return u->bias ? dnnl_success : onednn_cut_plan(plan, chain, u, cut_stack, dim, u->out.dims[dim], 1);
  }
  if (plan->wanted_parts > 2 * plan->threads &&
      u->out.dims[0] >= MANY_ROWS) { /* tiles, each short and still worth its packing */
    const double most = TILE_PRODUCTS / (double)u->a.dims[1] / WIDE;
    const int64_t rows = most < MANY_ROWS ? MANY_ROWS : (int64_t)most / ROWS * ROWS;
    const int64_t each[] = {rows, WIDE};
    const dnnl_status_t s = onednn_cut_grid(plan, chain, u, cut_matmul, u->out.dims, each);
    if (s != dnnl_success || plan->n_parts > 0) return s;
  }
  if (u->out.dims[0] >= MANY_ROWS) return onednn_cut_plan(plan, chain, u, cut_matmul, 0, u->out.dims[0], ROWS);
  return onednn_cut_plan(plan, chain, u, cut_matmul, 1, u->out.dims[1], COLUMNS);
}

/* The right matrix as oneDNN likes it; for one row and a matrix that comes from memory each time, in narrower panels,
 * which are read a third faster (measured: its own choice is right for what stays in the cache). */
static dnnl_status_t describe_packed(const onednn *self, const setup *u, dnnl_memory_desc_t *out) {
  const int64_t FROM_MEMORY = 1 << 19; /* elements */
  if (u->b.type == dnnl_f32 && self->block == 16 && u->a.dims[0] == 1 && u->b.dims[0] * u->b.dims[1] >= FROM_MEMORY)
    return dnnl_memory_desc_create_with_tag(out, 2, u->b.dims, dnnl_f32, dnnl_BA16a32b);
  return onednn_any(&u->b, out);
}

dnnl_status_t onednn_build_matmul(const onednn *self, const onednn_chain *chain, onednn_form form, onednn_plan *plan) {
  const heddle_pnode *node = chain->node.node;
  const ref_matmul *m = &chain->op.u.matmul;
  dnnl_memory_desc_t a = NULL, b = NULL, c = NULL, out = NULL;
  dnnl_primitive_attr_t attr = NULL;
  setup u = {.packed = false};
  if (onednn_base(form) != ONEDNN_FORM_PLAIN || !read(chain, form, &u)) return dnnl_unimplemented;
  dnnl_status_t s = onednn_plain(&u.a, &a);
  if (s == dnnl_success) s = u.packed ? describe_packed(self, &u, &b) : onednn_plain(&u.b, &b);
  if (s == dnnl_success && u.bias) s = onednn_plain(&u.c, &c);
  if (s == dnnl_success) s = onednn_plain(&u.out, &out);
  if (s == dnnl_success) s = onednn_chain_attr(chain, out, &attr);
  if (s == dnnl_success) s = onednn_matmul_pd(self, &plan->pd, a, b, c, out, attr);
  if (s == dnnl_success) s = onednn_plan_plain_input(plan, node->inputs[0], DNNL_ARG_SRC);
  if (s == dnnl_success && u.packed) s = onednn_plan_input(plan, node->inputs[1], DNNL_ARG_WEIGHTS, &u.b);
  if (s == dnnl_success && !u.packed) s = onednn_plan_plain_input(plan, node->inputs[1], DNNL_ARG_WEIGHTS);
  if (s == dnnl_success && u.bias) s = onednn_plan_plain_input(plan, node->inputs[2], DNNL_ARG_BIAS);
  if (s == dnnl_success) s = onednn_plan_plain_output(plan, chain->region->outputs[0], DNNL_ARG_DST);
  if (s == dnnl_success) s = onednn_plan_posts(plan, chain);
  if (s == dnnl_success) {
    uint64_t results = 0;
    region_value_count(chain->out, &results);
    plan->cost_ns = onednn_product_cost(plan->pd, (double)results * (double)m->k, false);
    s = cut(plan, chain, &u);
    if (s == dnnl_success && u.out.ndims == 2) s = onednn_ladder_plan(plan, chain, &u, cut_matmul, u.out.dims[0]);
  }
  if (attr != NULL) dnnl_primitive_attr_destroy(attr);
  if (out != NULL) dnnl_memory_desc_destroy(out);
  if (c != NULL) dnnl_memory_desc_destroy(c);
  if (b != NULL) dnnl_memory_desc_destroy(b);
  if (a != NULL) dnnl_memory_desc_destroy(a);
  return s;
}
