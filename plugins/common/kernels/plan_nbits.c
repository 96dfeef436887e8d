/* MatMulNBits, MatMulExperts, MatMulBlocks and FromBlocks of domain "heddle", whose weights stay packed: the kernels of nbits.cl
 * and blocks.cl. */
#include "plan_general.h"

#include "plugins/common/more/nbits_unit.h"

static bool is_there(const more_op *m, uint32_t k) {
  return k < m->n_in && m->in[k].here;
}

static uint32_t input_or_table(const k_node *n, const more_op *m, uint32_t k) {
  return is_there(m, k) ? k_input(n, k) : K_TABLE;
}

/* The node, and that it is in one type. */
static heddle_status read_node(k_node *n, more_op *m, k_launch *how, heddle_error *err) {
  heddle_status s = k_general_of(n, m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m->in[NB_A].type, &how->types[0], err);
  if (s != HEDDLE_OK || m->out[0].count == 0) return s;
  for (uint32_t k = NB_SCALES; k <= NB_BIAS; k += NB_BIAS - NB_SCALES)
    if (is_there(m, k) && m->in[k].type != m->in[NB_A].type)
      return ref_refuse(&n->ref, err, "operand %u is not of the type of operand 0", k);
  how->items = (uint64_t)m->out[0].count;
  how->limit = (uint64_t)m->in[NB_B].count + (uint64_t)m->in[NB_A].count;
  how->turns = (double)m->i[NB_DEPTH] * 2;
  return HEDDLE_OK;
}

/* step: what operand 4 is, see nbits.cl. */
static heddle_status add_packed(k_node *n, const more_op *m, k_launch *how, int64_t step, heddle_error *err) {
  const bool zeros = is_there(m, NB_ZEROS), floats = zeros && m->i[NB_FLOAT_ZEROS] != 0;
  const uint32_t args[] = {k_input(n, NB_A),
                           k_input(n, NB_B),
                           k_input(n, NB_SCALES),
                           zeros && !floats ? k_input(n, NB_ZEROS) : K_TABLE,
                           floats ? k_input(n, NB_ZEROS) : K_TABLE,
                           input_or_table(n, m, NB_INDEX),
                           input_or_table(n, m, NB_BIAS),
                           K_TABLE,
                           k_output(n, 0)};
  const k_general p = {.count = m->out[0].count, .has = k_general_has(n, m), .mode = floats ? 2 : zeros, .step = step};
  how->kernel = KERNEL_matmul_nbits;
  return k_launch_add(n, how, &p, sizeof p, sizeof args / sizeof args[0], args, err);
}

heddle_status k_plan_nbits(k_node *n, heddle_error *err) {
  more_op m;
  k_launch how = {.n_types = 1};
  const heddle_status s = read_node(n, &m, &how, err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  return add_packed(n, &m, &how, is_there(&m, NB_INDEX) ? 1 : 0, err);
}

heddle_status k_plan_experts(k_node *n, heddle_error *err) {
  more_op m;
  k_launch how = {.kernel = KERNEL_matmul_experts, .n_types = 1};
  const heddle_status s = read_node(n, &m, &how, err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  if (m.i[NB_BITS] != 0) return add_packed(n, &m, &how, 2, err);
  const uint32_t args[] = {k_input(n, NB_A), k_input(n, NB_B), k_input(n, NB_INDEX), input_or_table(n, &m, NB_BIAS),
                           K_TABLE,          k_output(n, 0)};
  const k_general p = {.count = m.out[0].count, .has = k_general_has(n, &m)};
  return k_launch_add(n, &how, &p, sizeof p, sizeof args / sizeof args[0], args, err);
}

heddle_status k_plan_blocks(k_node *n, heddle_error *err) {
  more_op m;
  k_general_launch how = {.kernel = KERNEL_matmul_blocks, .n_types = 1, .n_operands = 3, .out = k_output(n, 0)};
  heddle_status s = k_general_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[NB_A].type, &how.types[0], err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  how.items = m.out[0].count;
  how.turns = (double)m.i[NB_DEPTH] * 2;
  return k_general_add(n, &m, &how, err);
}

heddle_status k_plan_from_blocks(k_node *n, heddle_error *err) {
  more_op m;
  k_general_launch how = {
      .kernel = KERNEL_from_blocks, .n_types = 1, .n_operands = 1, .out = k_output(n, 0), .turns = 4};
  heddle_status s = k_general_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &how.types[0], err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  how.types[0] = k_unsigned_element(how.types[0]);
  how.items = m.out[0].count;
  return k_general_add(n, &m, &how, err);
}
