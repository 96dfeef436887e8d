/* The operators of lines.cl and scaled.cl. The general reference kernels' setups check the nodes and leave their geometry in
 * the op's numbers; the names here are those of plugins/common/more/reduce.c and norm.c. */
#include "plan_lines.h"
#include "plan_general.h"

/* A kernel of one operand for items of turns each; through: of integers, in float64. */
static heddle_status add(k_node *n, uint8_t kernel, uint8_t type, const k_lines *p, uint64_t items, double turns,
                         heddle_error *err) {
  k_launch how = {.kernel = kernel, .n_types = 1, .types = {type}, .items = items, .turns = turns, .floats = 2};
  if (kernel == KERNEL_reduce_through) {
    const heddle_status s = k_element_of(n, REF_TYPE_F64, &how.types[how.n_types++], err);
    if (s != HEDDLE_OK) return s;
  }
  return k_launch_add(n, &how, p, sizeof *p, 2, (uint32_t[]){k_input(n, 0), k_output(n, 0)}, err);
}

/* ---------------------------------------------------------------- along one axis */

enum { N, INNER, POWER };

/* Lines of the op's geometry; count 0: there is nothing to do. */
static heddle_status lines(k_node *n, more_op *m, k_lines *p, uint8_t *type, heddle_error *err) {
  heddle_status s = k_more_of(n, m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m->in[0].type, type, err);
  if (s != HEDDLE_OK || m->in[0].count == 0) return s;
  p->n = m->i[N];
  p->inner = m->i[INNER];
  p->count = m->in[0].count / p->n;
  return HEDDLE_OK;
}

static heddle_status plan_cumulate(k_node *n, heddle_error *err) {
  more_op m;
  k_lines p = {.mode = strcmp(n->entry->op, "CumProd") == 0};
  uint8_t type = 0;
  heddle_status s = lines(n, &m, &p, &type, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->ref.node, "reverse", 0, &p.reverse, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->ref.node, "exclusive", 0, &p.exclusive, err);
  if (s != HEDDLE_OK) return s;
  return add(n, KERNEL_cumulate, k_unsigned_element(type), &p, (uint64_t)p.count, (double)p.n, err);
}

static heddle_status plan_hardmax(k_node *n, heddle_error *err) {
  more_op m;
  k_lines p = {0};
  uint8_t type = 0;
  heddle_status s = lines(n, &m, &p, &type, err);
  return s == HEDDLE_OK ? add(n, KERNEL_hardmax, type, &p, (uint64_t)p.count, 2 * (double)p.n, err) : s;
}

heddle_status k_plan_softmax_any(k_node *n, heddle_error *err) {
  more_op m;
  k_lines p = {.mode = strcmp(n->entry->op, "LogSoftmax") == 0};
  uint8_t type = 0;
  heddle_status s = lines(n, &m, &p, &type, err);
  return s == HEDDLE_OK ? add(n, KERNEL_softmax_line, type, &p, (uint64_t)p.count, 3 * (double)p.n, err) : s;
}

static heddle_status plan_lp_normalize(k_node *n, heddle_error *err) {
  more_op m;
  k_lines p = {0};
  uint8_t type = 0;
  heddle_status s = lines(n, &m, &p, &type, err);
  if (s != HEDDLE_OK) return s;
  p.mode = m.i[POWER] == 1;
  return add(n, KERNEL_lp_normalize, type, &p, (uint64_t)p.count, 2 * (double)p.n, err);
}

/* ---------------------------------------------------------------- over several dimensions */

enum { SIZES = 8, STEPS = 16, KEPT_SIZES = 24, KEPT_STEPS = 32 };

/* A box: kept dimensions, and then those that are gone through. Together they are an operand's. */
static void set_box(const more_op *m, int64_t kept, int64_t through, k_lines *p) {
  p->kept = kept;
  p->dims = kept + through;
  for (int64_t d = 0; d < p->dims; d++) {
    p->size[d] = d < kept ? m->i[KEPT_SIZES + d] : m->i[SIZES + d - kept];
    p->step[d] = d < kept ? m->i[KEPT_STEPS + d] : m->i[STEPS + d - kept];
  }
}

static heddle_status plan_mean_variance(k_node *n, heddle_error *err) {
  enum { THROUGH = 3, KEPT = 4 };
  more_op m;
  k_lines p = {0};
  uint8_t type = 0;
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &type, err);
  if (s != HEDDLE_OK || m.in[0].count == 0) return s;
  set_box(&m, m.i[KEPT], m.i[THROUGH], &p);
  p.n = m.i[N];
  p.count = m.in[0].count / p.n;
  return add(n, KERNEL_mean_variance, type, &p, (uint64_t)p.count, 3 * (double)p.n * (double)(1 + m.i[THROUGH]), err);
}

heddle_status k_plan_reduce_any(k_node *n, heddle_error *err) {
  enum { WHAT, PER, THROUGH, KEPT };
  enum { PROD = 2, MAX = 3, MIN = 4, ROOT = 6, LOG_SUM = 7, LOG_SUM_EXP = 8 };
  more_op m;
  k_lines p = {0};
  uint8_t type = 0;
  uint8_t kernel = KERNEL_reduce_whole;
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &type, err);
  if (s != HEDDLE_OK) return s;
  set_box(&m, m.i[KEPT], m.i[THROUGH], &p);
  p.n = m.i[PER];
  p.count = m.out[0].count;
  p.mode = m.i[WHAT];
  const bool real = more_type_is_real(m.in[0].type);
  if (real) kernel = KERNEL_reduce_real;
  else if (p.mode >= ROOT && p.mode <= LOG_SUM_EXP) kernel = KERNEL_reduce_through;
  else
    p.inner = p.mode == PROD  ? 1
              : p.mode == MAX ? ref_type_least(m.in[0].type)
              : p.mode == MIN ? ref_type_most(m.in[0].type)
                              : 0;
  if (real && (p.mode == LOG_SUM || p.mode == LOG_SUM_EXP)) {
    kernel = KERNEL_reduce_log;
    p.mode = p.mode == LOG_SUM_EXP;
  }
  return add(n, kernel, type, &p, (uint64_t)p.count, 2 * (double)p.n * (double)(1 + m.i[THROUGH]), err);
}

/* ---------------------------------------------------------------- with a scale */

static heddle_status plan_group_norm(k_node *n, heddle_error *err) {
  enum { GROUPS, PER_GROUP, PLANE, BY_GROUP };
  more_op m;
  uint8_t type = 0;
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &type, err);
  if (s != HEDDLE_OK || m.in[0].count == 0) return s;
  const k_lines p = {.count = m.in[0].shape[0] * m.i[GROUPS],
                     .n = m.i[PER_GROUP] * m.i[PLANE],
                     .inner = m.i[PLANE],
                     .kept = m.i[PER_GROUP],
                     .dims = m.i[GROUPS],
                     .mode = m.i[BY_GROUP],
                     .epsilon = (float)m.f[0]};
  const k_launch how = {.kernel = KERNEL_group_normalize,
                        .n_types = 1,
                        .types = {type},
                        .items = (uint64_t)p.count,
                        .turns = 3 * (double)p.n,
                        .floats = 2};
  return k_launch_add(n, &how, &p, sizeof p, 4,
                      (uint32_t[]){k_input(n, 0), k_input(n, 1), k_input(n, 2), k_output(n, 0)}, err);
}

/* The steps of an operand that broadcasts to the first. */
static void steps_of(const more_value *x, const more_value *v, int64_t *steps) {
  int64_t step = 1;
  for (int32_t d = x->ndim; d-- > 0;) {
    const int32_t e = d - (x->ndim - v->ndim);
    steps[d] = e >= 0 && v->shape[e] != 1 ? step : 0;
    if (e >= 0) step *= v->shape[e];
  }
}

/* LayerNormalization of what the kernels of norm.cl do not take. What is kept of a row goes into results of its own. */
heddle_status k_plan_layer_norm_any(k_node *n, heddle_error *err) {
  more_op m;
  heddle_status s = k_general_of(n, &m, err);
  if (s != HEDDLE_OK) return s;
  const more_value *x = &m.in[0];
  const int64_t rows = m.i[N] > 0 ? x->count / m.i[N] : m.out[1].count;
  if (m.in[1].type != x->type || (m.in[2].here && m.in[2].type != x->type))
    return ref_refuse(&n->ref, err, "its operands are of two types");
  for (uint32_t k = 0; k < 3 && s == HEDDLE_OK; k++) {
    k_general_launch how = {.kernel = KERNEL_layer,
                            .n_types = 2,
                            .n_operands = 3,
                            .out = k_result(n, &m, k),
                            .items = rows,
                            .mode = k,
                            .turns = (double)m.i[N] * (k == 0 ? 3 + 2 * (double)x->ndim : 2)};
    if (k >= m.n_out || !m.out[k].here || (k == 0 && x->count == 0)) continue;
    s = k_element_of(n, x->type, &how.types[0], err);
    if (s == HEDDLE_OK) s = k_element_of(n, m.out[k].type, &how.types[1], err);
    if (s == HEDDLE_OK) s = k_general_add(n, &m, &how, err);
  }
  return s;
}

heddle_status k_plan_rms_norm(k_node *n, heddle_error *err) {
  more_op m;
  k_scaled p = {0};
  uint8_t type = 0, scale = 0;
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &type, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[1].type, &scale, err);
  if (s != HEDDLE_OK || m.in[0].count == 0) return s;
  const more_value *x = &m.in[0];
  p.n = m.i[N];
  p.count = x->count / p.n;
  p.epsilon = (float)m.f[0];
  p.dims = x->ndim;
  memcpy(p.size, x->shape, sizeof p.size);
  steps_of(x, &m.in[1], p.step);
  const k_launch how = {.kernel = KERNEL_scaled,
                        .n_types = 2,
                        .types = {type, scale},
                        .items = (uint64_t)p.count,
                        .turns = (double)p.n * (double)(2 + p.dims),
                        .floats = 2};
  return k_launch_add(n, &how, &p, sizeof p, 3, (uint32_t[]){k_input(n, 0), k_input(n, 1), k_output(n, 0)}, err);
}

const k_entry k_lines_table[] = {
    {"CumProd", 0, plan_cumulate},
    {"CumSum", 0, plan_cumulate},
    {"GroupNormalization", 0, plan_group_norm},
    {"Hardmax", 0, plan_hardmax},
    {"LpNormalization", 0, plan_lp_normalize},
    {"MeanVarianceNormalization", 0, plan_mean_variance},
    {"RMSNormalization", 0, k_plan_rms_norm},
    {"ReduceL1", 0, k_plan_reduce_any},
    {"ReduceL2", 0, k_plan_reduce_any},
    {"ReduceLogSum", 0, k_plan_reduce_any},
    {"ReduceLogSumExp", 0, k_plan_reduce_any},
    {"ReduceSumSquare", 0, k_plan_reduce_any},
    {0},
};
