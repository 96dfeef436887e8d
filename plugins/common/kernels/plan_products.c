/* Products besides the tiled ones, and operators that slide a window in more types than pool.cl's: the kernels of products.cl
 * and windows.cl. The names here are those of plugins/common/more/matmul.c and conv.c. */
#include "plan_general.h"

#include "plugins/common/more/window.h"

/* ---------------------------------------------------------------- products of bytes */

enum { ROWS, COLS, DEPTH, MOST_DEPTH = 32768 };

static int64_t is_signed(const more_op *m, uint32_t k) {
  return m->in[k].type == REF_TYPE_I8;
}

/* Turns of an item of a convolution. */
static double conv_turns(const more_op *m) {
  enum { PER = W_OWN + 1 };
  return (double)window_taps(m) * (double)(m->i[PER] + m->i[W_SPATIAL] + 1) + 8;
}

static heddle_status add_bytes(k_node *n, const more_op *m, k_general_launch *how, uint32_t weights,
                               heddle_error *err) {
  const bool conv = how->kernel == KERNEL_conv_bytes || how->kernel == KERNEL_qlinear_conv;
  if (m->out[0].count == 0) return HEDDLE_OK;
  how->n_types = 1;
  how->out = k_output(n, 0);
  how->items = m->out[0].count;
  how->turns = conv ? conv_turns(m) : (double)(m->i[DEPTH] + 16);
  how->mode |= is_signed(m, 0) | is_signed(m, weights) << 1;
  return k_general_add(n, m, how, err);
}

static heddle_status plan_integer(k_node *n, heddle_error *err) {
  more_op m;
  const bool conv = strcmp(n->entry->op, "ConvInteger") == 0;
  k_general_launch how = {
      .kernel = conv ? KERNEL_conv_bytes : KERNEL_matmul_bytes, .types = {K_ELEMENT_I32}, .n_operands = 4};
  heddle_status s = k_general_of(n, &m, err);
  return s == HEDDLE_OK ? add_bytes(n, &m, &how, 1, err) : s;
}

static heddle_status plan_qlinear(k_node *n, heddle_error *err) {
  more_op m;
  const bool conv = strcmp(n->entry->op, "QLinearConv") == 0;
  k_general_launch how = {.kernel = conv ? KERNEL_qlinear_conv : KERNEL_qlinear_matmul, .n_operands = conv ? 9 : 8};
  heddle_status s = k_general_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[1].type, &how.types[0], err);
  if (s != HEDDLE_OK) return s;
  if (m.in[4].type != m.in[1].type || m.in[6].type != m.in[1].type)
    return ref_refuse(&n->ref, err, "its scales are of different types");
  const double depth = conv ? conv_turns(&m) : (double)m.i[DEPTH];
  if (depth > MOST_DEPTH) return ref_refuse(&n->ref, err, "a sum of its products may be over 2147483647");
  how.mode = (int64_t)(m.out[0].type == REF_TYPE_I8) << 2;
  return add_bytes(n, &m, &how, 3, err);
}

/* ---------------------------------------------------------------- Einsum and Det */

static heddle_status plan_einsum(k_node *n, heddle_error *err) {
  enum { COUNT, OF_RESULT, SIZES, LETTERS = 16, OPERANDS = 4, STEPS = 8 };
  more_op m;
  k_general_launch how = {
      .kernel = KERNEL_einsum, .n_types = 1, .n_operands = OPERANDS, .out = k_output(n, 0), .step = 1};
  heddle_status s = k_general_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &how.types[0], err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  int32_t *words = (int32_t *)n->plan->table + K_G_WORDS;
  for (uint32_t k = 0; k < m.n_in; k++) {
    const int64_t first = m.i[COUNT] < MORE_DIMS ? m.i[COUNT] : MORE_DIMS;
    for (int64_t l = 0; l < first; l++) words[LETTERS * k + l] = (int32_t)m.in[STEPS + 2 * k].shape[l];
    for (int64_t l = first; l < m.i[COUNT]; l++)
      words[LETTERS * k + l] = (int32_t)m.in[STEPS + 1 + 2 * k].shape[l - MORE_DIMS];
  }
  double places = 1;
  for (int64_t l = m.i[OF_RESULT]; l < m.i[COUNT]; l++) places *= (double)m.i[SIZES + l];
  if (places > (double)INT32_MAX) return ref_refuse(&n->ref, err, "one element of it is a sum of over 2147483647");
  for (int64_t l = m.i[OF_RESULT]; l < m.i[COUNT]; l++) how.step *= m.i[SIZES + l];
  how.types[0] = k_unsigned_element(how.types[0]);
  how.mode = m.n_in;
  how.items = m.out[0].count;
  how.turns = places * (double)(1 + m.i[COUNT] - m.i[OF_RESULT]) + 5.0 * (double)m.i[OF_RESULT];
  return k_general_add(n, &m, &how, err);
}

static heddle_status plan_det(k_node *n, heddle_error *err) {
  more_op m;
  k_general_launch how = {.kernel = KERNEL_det, .n_types = 1, .n_operands = 1, .out = K_WORKSPACE};
  heddle_status s = k_general_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &how.types[0], err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  const double size = (double)m.i[ROWS], numbers = size * size + 1;
  if (numbers * (double)m.out[0].count > (double)INT32_MAX)
    return ref_refuse(&n->ref, err, "its matrices are too large");
  how.items = m.out[0].count;
  how.turns = size * size * (size + 6) / 2 + size;
  n->plan->part_bytes[0] =
      (uint64_t)numbers * (uint64_t)how.items * (m.in[0].type == REF_TYPE_F64 ? sizeof(double) : sizeof(float));
  s = k_general_add(n, &m, &how, err);
  if (s != HEDDLE_OK) return s;
  const k_general p = {.count = how.items, .step = (int64_t)numbers};
  const k_launch last = {.kernel = KERNEL_from_workspace,
                         .n_types = 1,
                         .types = {how.types[0]},
                         .items = (uint64_t)how.items,
                         .limit = (uint64_t)numbers * (uint64_t)how.items};
  return k_launch_add(n, &last, &p, sizeof p, 2, (uint32_t[]){K_WORKSPACE, k_output(n, 0)}, err);
}

/* ---------------------------------------------------------------- of two results */

static heddle_status plan_causal(k_node *n, heddle_error *err) {
  more_op m;
  k_general_launch how = {.kernel = KERNEL_causal_conv, .n_types = 1, .n_operands = 4};
  heddle_status s = k_general_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &how.types[0], err);
  if (s == HEDDLE_OK && m.out[0].here && m.out[0].count > 0) {
    how.out = k_output(n, 0);
    how.items = m.out[0].count;
    how.turns = (double)m.i[0];
    s = k_general_add(n, &m, &how, err);
  }
  if (s != HEDDLE_OK || m.n_out < 2 || !m.out[1].here || m.out[1].count == 0) return s;
  how.kernel = KERNEL_causal_state;
  how.out = k_output(n, 1);
  how.items = m.out[1].count;
  how.turns = 0;
  return k_general_add(n, &m, &how, err);
}

const k_entry k_products_table[] = {
    {"CausalConvWithState", 0, plan_causal},
    {"ConvInteger", 0, plan_integer},
    {"Det", 0, plan_det},
    {"Einsum", 0, plan_einsum},
    {"MatMulInteger", 0, plan_integer},
    {"QLinearConv", 0, plan_qlinear},
    {"QLinearMatMul", 0, plan_qlinear},
    {0},
};
