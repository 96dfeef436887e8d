/* MatMulNBits of domain "heddle", whose weights stay packed: the kernel of nbits.cl. */
#include "plan_general.h"

enum { A, B, SCALES, ZEROS, INDEX, BIAS, DEPTH = 1, FLOAT_ZEROS = 7 };

static bool is_there(const more_op *m, uint32_t k) {
  return k < m->n_in && m->in[k].here;
}

heddle_status k_plan_nbits(k_node *n, heddle_error *err) {
  more_op m;
  k_launch how = {.kernel = KERNEL_matmul_nbits, .n_types = 1};
  heddle_status s = k_general_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[A].type, &how.types[0], err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  for (uint32_t k = SCALES; k <= BIAS; k += BIAS - SCALES)
    if (is_there(&m, k) && m.in[k].type != m.in[A].type)
      return ref_refuse(&n->ref, err, "operand %u is not of the type of operand 0", k);
  const bool zeros = is_there(&m, ZEROS), floats = zeros && m.i[FLOAT_ZEROS] != 0;
  const uint32_t index = is_there(&m, INDEX) ? k_input(n, INDEX) : K_TABLE;
  const uint32_t args[] = {k_input(n, A),
                           k_input(n, B),
                           k_input(n, SCALES),
                           zeros && !floats ? k_input(n, ZEROS) : K_TABLE,
                           floats ? k_input(n, ZEROS) : K_TABLE,
                           index,
                           is_there(&m, BIAS) ? k_input(n, BIAS) : K_TABLE,
                           K_TABLE,
                           k_output(n, 0)};
  const k_general p = {
      .count = m.out[0].count, .has = k_general_has(n, &m), .mode = floats ? 2 : zeros, .step = is_there(&m, INDEX)};
  how.items = (uint64_t)m.out[0].count;
  how.limit = (uint64_t)m.in[B].count + (uint64_t)m.in[A].count;
  how.turns = (double)m.i[DEPTH] * 2;
  return k_launch_add(n, &how, &p, sizeof p, sizeof args / sizeof args[0], args, err);
}
