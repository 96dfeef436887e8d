/* Losses and quantisation: the kernels of losses.cl and quantize.cl. The general reference kernels' setups check the nodes and
 * leave their geometry in the op's numbers; the names here are those of plugins/common/more/norm.c and quantize.c. */
#include "plan_portable.h"

/* Operand k, or in its place a table of count numbers of type, each of them value. */
static heddle_status or_table(k_node *n, uint32_t k, int type, int64_t count, double value, uint32_t *arg,
                              heddle_error *err) {
  void *table = NULL;
  if (n->ref.in[k] != NULL) {
    *arg = k_input(n, k);
    return HEDDLE_OK;
  }
  *arg = K_TABLE;
  heddle_status s = k_table_new(n, (uint64_t)count * more_type_bytes(type), &table, err);
  for (int64_t i = 0; i < count && s == HEDDLE_OK; i++) more_store(type, table, i, value);
  return s;
}

/* ---------------------------------------------------------------- losses */

static heddle_status add_loss(k_node *n, uint8_t kernel, uint8_t type, const k_loss *p, uint64_t items, uint32_t n_args,
                              const uint32_t *args, heddle_error *err) {
  const double lines = (double)p->count / (double)items;
  const k_launch how = {.kernel = kernel,
                        .n_types = 1,
                        .types = {type},
                        .items = items,
                        .limit = 2 * (uint64_t)p->count, /* labels as words */
                        .turns = lines * (p->entropy != 0 ? (double)p->n + 1 : 1)};
  return k_launch_add(n, &how, p, sizeof *p, n_args, args, err);
}

static heddle_status plan_loss(k_node *n, heddle_error *err) {
  enum { CLASSES, INNER, REDUCTION, IGNORES, IGNORED, ENTROPY };
  enum { NONE, MEAN };
  more_op m;
  uint32_t weights = 0;
  uint8_t type = 0;
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &type, err);
  if (s != HEDDLE_OK) return s;
  const int64_t ignored = m.i[IGNORED];
  const k_loss p = {.count = m.in[1].count,
                    .n = m.i[CLASSES],
                    .inner = m.i[INNER],
                    .mode = m.i[REDUCTION] == MEAN,
                    .wide = m.in[1].type == REF_TYPE_I64,
                    .ignores = m.i[IGNORES] && ignored >= INT32_MIN && ignored <= INT32_MAX, /* others are no class */
                    .ignored = m.i[IGNORES] && ignored >= INT32_MIN && ignored <= INT32_MAX ? ignored : 0,
                    .entropy = m.i[ENTROPY]};
  s = or_table(n, 2, m.in[0].type, p.n > 0 ? p.n : 1, 1, &weights, err);
  if (s == HEDDLE_OK && m.out[1].here && p.count > 0)
    s = add_loss(n, KERNEL_log_probability, type, &p, (uint64_t)p.count, 2, (uint32_t[]){k_input(n, 0), k_output(n, 1)},
                 err);
  if (s != HEDDLE_OK || (m.i[REDUCTION] == NONE && p.count == 0)) return s;
  const uint32_t args[] = {k_input(n, 0), k_input(n, 1), weights, k_output(n, 0)};
  if (m.i[REDUCTION] == NONE) return add_loss(n, KERNEL_loss_each, type, &p, (uint64_t)p.count, 4, args, err);
  return add_loss(n, KERNEL_loss_all, type, &p, 1, 4, args, err);
}

/* ---------------------------------------------------------------- quantisation */

enum { AXIS, BLOCK, INNER = 3, PRECISION };

static void set_scales(const more_op *m, k_quantize *p) {
  const more_value *x = &m->in[0], *scale = &m->in[1];
  p->count = x->count;
  p->mode = scale->count != 1;
  if (p->mode == 0) return;
  p->n = x->shape[m->i[AXIS]];
  p->inner = m->i[INNER];
  p->block = m->i[BLOCK];
  p->blocks = p->block != 0 ? scale->shape[m->i[AXIS]] : 0;
}

static heddle_status add_quantize(k_node *n, const more_op *m, uint8_t kernel, k_quantize *p, uint8_t t0, uint8_t t1,
                                  int zero_type, heddle_error *err) {
  uint32_t zeros = 0;
  heddle_status s = or_table(n, 2, zero_type, m->in[1].count, 0, &zeros, err);
  if (s != HEDDLE_OK) return s;
  const k_launch how = {.kernel = kernel, .n_types = 2, .types = {t0, t1}, .items = (uint64_t)p->count};
  return k_launch_add(n, &how, p, sizeof *p, 4, (uint32_t[]){k_input(n, 0), k_input(n, 1), zeros, k_output(n, 0)}, err);
}

static heddle_status plan_quantize(k_node *n, heddle_error *err) {
  more_op m;
  k_quantize p = {0};
  uint8_t from = 0, to = 0;
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &from, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.out[0].type, &to, err);
  if (s != HEDDLE_OK || m.in[0].count == 0) return s;
  if (m.i[PRECISION] == REF_TYPE_F32 && (m.in[1].type != REF_TYPE_F32 || m.in[0].type != REF_TYPE_F32)) {
    bool widened = false;
    s = k_plan_widened(n, &widened, err);
    if (s != HEDDLE_OK || widened) return s;
  }
  if (m.out[0].size > 2) return ref_refuse(&n->ref, err, "it quantizes to integers of 8 and 16 bits here");
  if (m.in[1].type != m.in[0].type || m.i[PRECISION] != m.in[0].type)
    return ref_refuse(&n->ref, err, "its scale and its precision are of another type than operand 0");
  set_scales(&m, &p);
  p.least = ref_type_least(m.out[0].type);
  p.most = ref_type_most(m.out[0].type);
  return add_quantize(n, &m, KERNEL_quantize, &p, from, to, m.out[0].type, err);
}

static heddle_status plan_dequantize(k_node *n, heddle_error *err) {
  more_op m;
  k_quantize p = {0};
  uint8_t from = 0, to = 0;
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &from, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.out[0].type, &to, err);
  if (s != HEDDLE_OK || m.in[0].count == 0) return s;
  if (m.in[1].type != m.out[0].type) return ref_refuse(&n->ref, err, "its scale is of another type than its result");
  set_scales(&m, &p);
  /* Differences of up to 33 bits and products of float32 are made in float32, others in float64. */
  const bool wide = from == K_ELEMENT_U32 || from == K_ELEMENT_I64 || from == K_ELEMENT_U64 || to == K_ELEMENT_F64;
  uint8_t real = 0;
  if (wide) s = k_element_of(n, REF_TYPE_F64, &real, err);
  if (s != HEDDLE_OK) return s;
  return add_quantize(n, &m, wide ? KERNEL_dequantize_wide : KERNEL_dequantize, &p, from, to, m.in[0].type, err);
}

const k_entry k_losses_table[] = {
    {"DequantizeLinear", HEDDLE__TYPES_WHOLE, plan_dequantize},
    {"NegativeLogLikelihoodLoss", HEDDLE__TYPES_REAL, plan_loss},
    {"QuantizeLinear", HEDDLE__TYPES_REAL, plan_quantize},
    {"SoftmaxCrossEntropyLoss", HEDDLE__TYPES_REAL, plan_loss},
    {0},
};
