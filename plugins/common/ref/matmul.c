/* MatMul, as numpy.matmul has it (batches broadcast, operands of one dimension), and Gemm. A unit is a panel of at
 * most CONTRACT_PANEL rows and columns of one batch's result. */
#include "contract.h"
#include "ref_op.h"

typedef struct right {
  const float *b;
  int64_t row, col;
} right;

static void fetch_matrix(const void *ctx, int64_t k0, int64_t depth, int64_t j0, int64_t width, float *tile) {
  const right *b = ctx;
  for (int64_t d = 0; d < depth; d++, tile += CONTRACT_WIDTH) {
    const float *from = b->b + (k0 + d) * b->row + j0 * b->col;
    if (width == CONTRACT_WIDTH && b->col == 1) {
      memcpy(tile, from, CONTRACT_WIDTH * sizeof *tile);
      continue;
    }
    for (int64_t j = 0; j < CONTRACT_WIDTH; j++) tile[j] = j < width ? from[j * b->col] : 0.0f;
  }
}

typedef struct panel {
  int64_t batch, i, j, rows, cols;
} panel;

static panel panel_of(const ref_matmul *m, uint64_t unit) {
  uint64_t across = ((uint64_t)m->n + CONTRACT_PANEL - 1) / CONTRACT_PANEL;
  uint64_t down = ((uint64_t)m->m + CONTRACT_PANEL - 1) / CONTRACT_PANEL;
  panel p = {(int64_t)(unit / across / down), (int64_t)(unit / across % down) * CONTRACT_PANEL,
             (int64_t)(unit % across) * CONTRACT_PANEL, 0, 0};
  p.rows = m->m - p.i < CONTRACT_PANEL ? m->m - p.i : CONTRACT_PANEL;
  p.cols = m->n - p.j < CONTRACT_PANEL ? m->n - p.j : CONTRACT_PANEL;
  return p;
}

static void matmul_f32(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                       uint64_t last) {
  const ref_matmul *m = &op->u.matmul;
  (void)workspace;
  for (uint64_t unit = first; unit < last; unit++) {
    panel p = panel_of(m, unit);
    float *out = (float *)outputs[0] + p.batch * m->m * m->n + p.i * m->n + p.j;
    int64_t a_at = p.i * m->a_row, b_at = 0, batch = p.batch;
    for (int32_t d = m->batch_dims - 1; d >= 0; d--) {
      a_at += batch % m->batch_dim[d] * m->batch_a[d];
      b_at += batch % m->batch_dim[d] * m->batch_b[d];
      batch /= m->batch_dim[d];
    }
    const float *a = m->k > 0 ? (const float *)inputs[op->slot[0]] + a_at : NULL;
    right b = {m->k > 0 ? (const float *)inputs[op->slot[1]] + b_at : NULL, m->b_row, m->b_col};
    check_contract_panel(a, m->a_row, m->a_col, p.rows, m->k, fetch_matrix, &b, p.j, p.cols, out, m->n);
  }
}

/* The product, then alpha and the third operand on the panel while it is in cache. */
static void gemm_f32(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                     uint64_t last) {
  const ref_matmul *m = &op->u.matmul;
  const float *c = (op->present & 4) != 0 && m->beta != 0.0f ? inputs[op->slot[2]] : NULL;
  for (uint64_t unit = first; unit < last; unit++) {
    panel p = panel_of(m, unit);
    matmul_f32(op, inputs, outputs, workspace, unit, unit + 1);
    for (int64_t i = p.i; i < p.i + p.rows; i++) {
      float *row = (float *)outputs[0] + i * m->n;
      if (m->alpha != 1.0f) {
        for (int64_t j = p.j; j < p.j + p.cols; j++) row[j] *= m->alpha;
      }
      if (c == NULL) continue;
      const float *add = c + i * m->c_row;
      if (m->c_col == 1 && m->beta == 1.0f) {
        for (int64_t j = p.j; j < p.j + p.cols; j++) row[j] += add[j];
      } else {
        for (int64_t j = p.j; j < p.j + p.cols; j++) row[j] += m->beta * add[j * m->c_col];
      }
    }
  }
}

static void set_work(ref_op *op, ref_kernel kernel, uint64_t results) {
  const ref_matmul *m = &op->u.matmul;
  uint64_t units = 0;
  double fetched = 0; /* elements of the right matrix, once a panel: a column at a time they cost as ten products */
  if (results > 0) {
    uint64_t across = ((uint64_t)m->n + CONTRACT_PANEL - 1) / CONTRACT_PANEL;
    uint64_t down = ((uint64_t)m->m + CONTRACT_PANEL - 1) / CONTRACT_PANEL;
    uint64_t stack = results / (uint64_t)m->m / (uint64_t)m->n;
    uint64_t columns = ((uint64_t)m->n + CONTRACT_WIDTH - 1) / CONTRACT_WIDTH * CONTRACT_WIDTH;
    units = stack * across * down;
    fetched = (double)(stack * down) * (double)columns * (double)m->k;
  }
  const double steps = (double)results * (double)m->k + fetched * (m->b_col == 1 ? 1 : 10);
  ref_set_work(op, kernel, units, steps, 4.0 * (double)results);
}

/* ---------------------------------------------------------------- MatMul */

/* Operands seen as stacks of matrices: an operand of one dimension gets one in front (A) or behind (B). */
typedef struct stack {
  int64_t rows, cols;
  heddle_pvalue batch; /* the dimensions before the last two */
} stack;

static stack stack_of(const heddle_pvalue *v, bool is_a) {
  stack s = {1, 1, *v};
  if (v->ndim == 1) {
    *(is_a ? &s.cols : &s.rows) = v->shape[0];
    s.batch.ndim = 0;
  } else {
    s.rows = v->shape[v->ndim - 2];
    s.cols = v->shape[v->ndim - 1];
    s.batch.ndim = v->ndim - 2;
  }
  return s;
}

/* The result's shape without the dimensions that operands of one dimension do not give it. */
static bool result_fits(const ref_node *n, const stack *a, const stack *b, heddle_pvalue *batch) {
  int32_t at = n->out->ndim;
  if (n->in[1]->ndim > 1 && (--at < 0 || n->out->shape[at] != b->cols)) return false;
  if (n->in[0]->ndim > 1 && (--at < 0 || n->out->shape[at] != a->rows)) return false;
  *batch = *n->out;
  batch->ndim = at;
  return a->cols == b->rows && region_shape_is_broadcast_of(batch, &a->batch, &b->batch);
}

heddle_status ref_plan_matmul(const ref_node *n, ref_op *op, heddle_error *err) {
  ref_matmul *m = &op->u.matmul;
  heddle_pvalue batch;
  uint64_t results = 0;
  bool one_right = true;
  heddle_status s = ref_want_float32(n, err);
  if (s != HEDDLE_OK) return s;
  if (n->in[0]->ndim < 1 || n->in[1]->ndim < 1) return ref_refuse(n, err, "an operand without dimensions");
  if (n->out->ndim > REF_MAX_DIMS) return ref_refuse(n, err, "more than %d dimensions", REF_MAX_DIMS);

  stack a = stack_of(n->in[0], true), b = stack_of(n->in[1], false);
  if (!result_fits(n, &a, &b, &batch) || !region_shape_broadcast_strides(&a.batch, &batch, m->batch_a) ||
      !region_shape_broadcast_strides(&b.batch, &batch, m->batch_b)) {
    return ref_refuse_shape(n, err);
  }
  region_value_count(n->out, &results);
  m->m = a.rows;
  m->n = b.cols;
  m->k = a.cols;
  m->a_row = a.cols;
  m->a_col = 1;
  m->b_row = b.cols;
  m->b_col = 1;
  m->alpha = 1;
  m->batch_dims = batch.ndim;
  for (int32_t d = 0; d < batch.ndim; d++) {
    m->batch_dim[d] = batch.shape[d];
    m->batch_a[d] *= a.rows * a.cols;
    m->batch_b[d] *= b.rows * b.cols;
    one_right = one_right && m->batch_b[d] == 0;
  }
  /* One right matrix for all batches of A: they are more rows of one product. */
  if (one_right && results > 0 && region_shape_equal(&a.batch, &batch)) {
    m->m = (int64_t)(results / (uint64_t)m->n);
    m->batch_dims = 0;
  }
  set_work(op, matmul_f32, results);
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- Gemm */

heddle_status ref_plan_gemm(const ref_node *n, ref_op *op, heddle_error *err) {
  ref_matmul *m = &op->u.matmul;
  const heddle_pvalue *a = n->in[0], *b = n->in[1], *c = n->in[2];
  int64_t trans_a = 0, trans_b = 0, strides[2] = {0, 0};
  double alpha = 1, beta = 1;
  uint64_t results = 0;
  heddle_status s = ref_want_float32(n, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->node, "transA", 0, &trans_a, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->node, "transB", 0, &trans_b, err);
  if (s == HEDDLE_OK) s = region_attr_float(n->node, "alpha", 1, &alpha, err);
  if (s == HEDDLE_OK) s = region_attr_float(n->node, "beta", 1, &beta, err);
  if (s != HEDDLE_OK) return s;
  if (a->ndim != 2 || b->ndim != 2 || n->out->ndim != 2) return ref_refuse(n, err, "operands have two dimensions");

  m->m = a->shape[trans_a != 0 ? 1 : 0];
  m->k = a->shape[trans_a != 0 ? 0 : 1];
  m->n = b->shape[trans_b != 0 ? 0 : 1];
  if (b->shape[trans_b != 0 ? 1 : 0] != m->k || n->out->shape[0] != m->m || n->out->shape[1] != m->n ||
      (c != NULL && !region_shape_broadcast_strides(c, n->out, strides))) {
    return ref_refuse_shape(n, err);
  }
  m->a_row = trans_a != 0 ? 1 : m->k;
  m->a_col = trans_a != 0 ? m->m : 1;
  m->b_row = trans_b != 0 ? 1 : m->n;
  m->b_col = trans_b != 0 ? m->k : 1;
  m->c_row = strides[0];
  m->c_col = strides[1];
  m->alpha = (float)alpha;
  m->beta = (float)beta;
  region_value_count(n->out, &results);
  set_work(op, gemm_f32, results);
  return HEDDLE_OK;
}
