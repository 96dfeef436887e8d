/* Softmax, LogSoftmax, the reductions and the global pools, which are reductions too. The reference kernels' plans check
 * the nodes; what falls to a work-group and what to an item is decided here. */
#include "plan_lines.h"
#include "plan_portable.h"

#include "plugins/common/ref/types.h"

enum {
  LONG_ROW = 128, /* elements of a row, or of a result, from which a group works on it together */
  MANY_COLUMNS = 4096
};

/* Enough results keep a device busy with an item each. */
static const uint64_t many_rows = UINT64_C(1) << 20;

static void set_operands(k_node *n, k_step *step, uint64_t params_bytes) {
  step->params_bytes = params_bytes;
  step->args[step->n_args++] = k_input(n, 0);
  step->args[step->n_args++] = k_output(n, 0);
}

static heddle_status plan_softmax(k_node *n, heddle_error *err) {
  ref_op op = {0};
  uint64_t count = 0;
  k_step *step = NULL;
  if (!region_dtype_is(n->ref.out->dtype, HEDDLE_DTYPE_FLOAT, 32)) return k_plan_softmax_any(n, err);
  heddle_status s = ref_plan_softmax(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  const ref_softmax *f = &op.u.softmax;
  region_value_count(n->ref.out, &count);
  if (count == 0) return HEDDLE_OK;
  k_allow_in_place(n, 0);
  const uint64_t rows = count / (uint64_t)f->n;
  const bool by_group =
      k_prefers(n, KERNEL_softmax_group, f->n >= LONG_ROW && rows < (f->inner == 1 ? many_rows : MANY_COLUMNS));
  s = k_kernel_add(n->plan, by_group ? KERNEL_softmax_group : KERNEL_softmax_item, by_group ? rows : k_groups(rows),
                   k_limit(n), &step, err);
  if (s != HEDDLE_OK) return s;
  step->code.flags = f->log ? K_LOG : 0;
  step->params.rows = (k_rows){.rows = (int64_t)rows, .n = f->n, .inner = f->inner};
  set_operands(n, step, sizeof step->params.rows);
  n->plan->work += 8.0 * (double)count;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- reductions */

/* The kernel for p, whose dimensions are set; what: K_R_*. */
static heddle_status add_reduce(k_node *n, k_reduce *p, uint32_t what, heddle_error *err) {
  k_step *step = NULL;
  uint8_t type = k_element_or_none(n, n->ref.in[0]->dtype);
  /* The low bits of a sum or product do not depend on signs, so that integers without sign serve for both. */
  if ((what & (K_R_SUM | K_R_PROD)) != 0 && type != K_ELEMENT_I64) type = k_unsigned_element(type);
  const uint64_t results = (uint64_t)p->results;
  const bool columns = p->kept_dims > 0 && p->kept_step[p->kept_dims - 1] == 1;
  const bool by_group =
      k_prefers(n, KERNEL_reduce_group, p->count >= LONG_ROW && results < (columns ? MANY_COLUMNS : many_rows));
  if (results == 0) return HEDDLE_OK;
  p->by_row = p->row >= LONG_ROW || p->row >= p->outer;
  heddle_status s = k_kernel_add(n->plan, by_group ? KERNEL_reduce_group : KERNEL_reduce_item,
                                 by_group ? results : k_groups(results), k_limit(n), &step, err);
  if (s != HEDDLE_OK) return s;
  step->code.n_types = 1;
  step->code.types[0] = type;
  step->code.flags = what;
  step->params.reduce = *p;
  set_operands(n, step, sizeof *p);
  n->plan->work += 2.0 * (double)results * (double)p->count;
  return HEDDLE_OK;
}

/* Appends a dimension, joined with the one before where both are walked in one stride. Those are dim and step of either
 * kind of dimensions. */
static bool append(int64_t *dims, int64_t *dim, int64_t *step, int64_t size, int64_t stride) {
  if (size == 1) return true;
  if (*dims > 0 && step[*dims - 1] == stride * size) {
    dim[*dims - 1] *= size;
    step[*dims - 1] = stride;
    return true;
  }
  if (*dims == K_DIMS) return false;
  dim[*dims] = size;
  step[(*dims)++] = stride;
  return true;
}

static heddle_status plan_reduce(k_node *n, heddle_error *err) {
  static const uint32_t flags[] = {K_R_SUM, K_R_MEAN, K_R_MAX, K_R_MIN, K_R_PROD};
  static const char *const names[] = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"};
  ref_op op = {0};
  k_reduce p = {.row = 1, .outer = 1};
  uint64_t results = 0;
  uint32_t which = 0;
  bool fits = true;
  const int type = ref_type_of(n->ref.in[0]->dtype); /* that the kernels of reduce.cl have */
  if (type > REF_TYPE_U32 || type == REF_TYPE_F64) return k_plan_reduce_any(n, err);
  heddle_status s = ref_plan_reduce(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  const ref_reduce *r = &op.u.reduce;
  while (which < 4 && strcmp(names[which], n->entry->op) != 0) which++;
  for (int32_t d = 0; d < r->kept; d++)
    fits = fits && append(&p.kept_dims, p.kept_dim, p.kept_step, r->kept_dim[d], r->kept_stride[d]);
  if (r->row_kept) fits = fits && append(&p.kept_dims, p.kept_dim, p.kept_step, r->row, 1);
  for (int32_t d = 0; d < r->reduced; d++) fits = fits && append(&p.dims, p.dim, p.step, r->dim[d], r->stride[d]);
  if (!r->row_kept) fits = fits && append(&p.dims, p.dim, p.step, r->row, 1);
  if (!fits) return ref_refuse(&n->ref, err, "it walks more than %d dimensions that cannot be joined", K_DIMS);
  if (p.dims > 0) { /* the innermost one is the row */
    p.row = p.dim[--p.dims];
    p.row_step = p.step[p.dims];
  }
  for (int64_t d = 0; d < p.dims; d++) p.outer *= p.dim[d];
  region_value_count(n->ref.out, &results);
  p.results = (int64_t)results;
  p.count = r->count;
  p.start = ref_reduce_start(r);
  return add_reduce(n, &p, flags[which], err);
}

static heddle_status plan_global_pool(k_node *n, heddle_error *err) {
  ref_op op = {0};
  uint64_t planes = 0;
  heddle_status s = ref_plan_global_pool(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  const int64_t size = (int64_t)(op.u.bytes / sizeof(float));
  region_value_count(n->ref.out, &planes);
  k_reduce p = {.results = (int64_t)planes, .count = size, .row = size, .row_step = 1, .outer = 1};
  p.kept_dims = 1;
  p.kept_dim[0] = (int64_t)planes;
  p.kept_step[0] = size;
  return add_reduce(n, &p, strcmp(n->entry->op, "GlobalMaxPool") == 0 ? K_R_MAX : K_R_MEAN, err);
}

const k_entry k_rows_table[] = {
    {"GlobalAveragePool", K_WIDENS, plan_global_pool},
    {"GlobalMaxPool", K_WIDENS, plan_global_pool},
    {"LogSoftmax", 0, plan_softmax},
    {"ReduceMax", 0, plan_reduce},
    {"ReduceMean", 0, plan_reduce},
    {"ReduceMin", 0, plan_reduce},
    {"ReduceProd", 0, plan_reduce},
    {"ReduceSum", 0, plan_reduce},
    {"Softmax", 0, plan_softmax},
    {0},
};
