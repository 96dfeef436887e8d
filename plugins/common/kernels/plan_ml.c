/* Domain "heddle"'s parts of ai.onnx.ml: the kernels of ml.cl. The general reference kernels' setups check the nodes and leave
 * their numbers; the names here are those of plugins/common/more/trees.c, lookup.c and svm.c. */
#include "plan_general.h"

static heddle_status add(k_node *n, uint8_t kernel, uint32_t n_types, const uint8_t *types, const k_select *p,
                         uint64_t limit, double turns, uint32_t n_args, const uint32_t *args, heddle_error *err) {
  k_launch how = {
      .kernel = kernel, .n_types = (uint8_t)n_types, .items = (uint64_t)p->count, .limit = limit, .turns = turns};
  memcpy(how.types, types, n_types);
  return k_launch_add(n, &how, p, sizeof *p, n_args, args, err);
}

/* ---------------------------------------------------------------- TreeEnsemble */

/* Words of an element of operand k, int32 or int64. */
static int64_t words_of(const more_op *m, uint32_t k) {
  return m->in[k].type == REF_TYPE_I64 ? 2 : 1;
}

heddle_status k_plan_trees(k_node *n, heddle_error *err) {
  enum { X, ROOTS, NODES, SPLITS, TARGETS, WEIGHTS, MEMBERS };
  enum { ROWS, FEATURES, TREES, COUNT, LEAVES, HOW, WIDE, N_MEMBERS };
  more_op m;
  k_select p = {0};
  uint8_t type = 0;
  uint32_t args[9];
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[X].type, &type, err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  const int64_t numbers[] = {m.i[FEATURES], m.i[TREES], m.i[COUNT], m.i[LEAVES], m.i[HOW], m.i[WIDE], m.i[N_MEMBERS]};
  memcpy(p.from, numbers, sizeof numbers);
  p.wide = words_of(&m, ROOTS);
  p.mode = words_of(&m, TARGETS);
  p.count = m.i[ROWS];
  for (uint32_t k = 0; k < 7; k++) args[k] = k < m.n_in && m.in[k].here ? k_input(n, k) : k_input(n, SPLITS);
  args[7] = k_output(n, 0);
  args[8] = K_WORKSPACE;
  n->plan->part_bytes[0] = (uint64_t)m.out[0].count;
  const double turns = (double)m.i[TREES] * 64 + (double)m.i[WIDE];
  s = add(n, KERNEL_tree_scores, 1, &type, &p, 6 * (uint64_t)m.i[COUNT] + 2 * (uint64_t)m.i[LEAVES], turns, 9, args,
          err);
  if (s != HEDDLE_OK || m.n_out < 2 || !m.out[1].here) return s;
  return add(n, KERNEL_tree_best, 1, &type, &p, 2 * (uint64_t)p.count, (double)m.i[WIDE], 3,
             (uint32_t[]){k_output(n, 0), K_WORKSPACE, k_output(n, 1)}, err);
}

/* ---------------------------------------------------------------- Lookup and PostTransform */

heddle_status k_plan_lookup(k_node *n, heddle_error *err) {
  enum { X, KEYS, VALUES, DEFAULT };
  more_op m;
  uint8_t type = 0;
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[X].type, &type, err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  const uint8_t word = k_word_element(&m.out[0]);
  const k_select p = {.count = m.out[0].count, .n = m.in[KEYS].count};
  n->plan->part_bytes[0] = (uint64_t)p.count * sizeof(int32_t);
  s = add(n, KERNEL_lookup_place, 1, &type, &p, 0, 64, 3, (uint32_t[]){k_input(n, X), k_input(n, KEYS), K_WORKSPACE},
          err);
  if (s != HEDDLE_OK) return s;
  return add(n, KERNEL_lookup_value, 1, &word, &p, 0, 0, 4,
             (uint32_t[]){K_WORKSPACE, k_input(n, VALUES), k_input(n, DEFAULT), k_output(n, 0)}, err);
}

heddle_status k_plan_post_transform(k_node *n, heddle_error *err) {
  enum { KIND, WIDE };
  more_op m;
  uint8_t type = 0;
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &type, err);
  if (s != HEDDLE_OK || m.in[0].count == 0) return s;
  const bool rows = m.i[KIND] != 0;
  const k_select p = {.count = rows ? m.in[0].count / m.i[WIDE] : m.in[0].count, .n = m.i[WIDE]};
  return add(n, rows ? KERNEL_post_softmax : KERNEL_post_probit, 1, &type, &p, 0, rows ? 3 * (double)p.n : 0, 2,
             (uint32_t[]){k_input(n, 0), k_output(n, 0)}, err);
}

/* ---------------------------------------------------------------- support vector machines */

heddle_status k_plan_kernel_matrix(k_node *n, heddle_error *err) {
  enum { KIND, ROWS, FEATURES, SUPPORTS };
  more_op m;
  k_general_launch how = {.kernel = KERNEL_kernel_matrix, .n_types = 1, .n_operands = 2, .out = k_output(n, 0)};
  heddle_status s = k_general_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &how.types[0], err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  how.mode = m.i[KIND];
  how.items = m.out[0].count;
  how.turns = (double)m.i[FEATURES];
  return k_general_add(n, &m, &how, err);
}

heddle_status k_plan_pairs(k_node *n, heddle_error *err) {
  enum { CLASSES, PAIRS, ROUNDS = 100 };
  more_op m;
  uint8_t types[2] = {0};
  const bool wide = (n->plan->features & K_HAS_F64) != 0; /* its rounds lose digits */
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &types[0], err);
  if (s == HEDDLE_OK) s = k_element_of(n, wide ? REF_TYPE_F64 : REF_TYPE_F32, &types[1], err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  const int64_t classes = m.i[CLASSES], rows = m.out[0].count / classes, each = 2 * classes * classes + 2 * classes;
  if ((double)rows * (double)each > (double)INT32_MAX)
    return ref_refuse(&n->ref, err, "its rows and classes are too many");
  k_select p = {.count = rows, .n = classes, .inner = m.i[PAIRS]};
  n->plan->part_bytes[0] = (uint64_t)(rows * each) * (wide ? sizeof(double) : sizeof(float));
  s = add(n, KERNEL_pair_coupling, 2, types, &p, (uint64_t)(rows * each), ROUNDS * (double)each, 4,
          (uint32_t[]){k_input(n, 0), k_input(n, 1), k_input(n, 2), K_WORKSPACE}, err);
  if (s != HEDDLE_OK) return s;
  p.count = m.out[0].count;
  return add(n, KERNEL_pair_result, 2, types, &p, (uint64_t)(rows * each), 0, 2,
             (uint32_t[]){K_WORKSPACE, k_output(n, 0)}, err);
}
