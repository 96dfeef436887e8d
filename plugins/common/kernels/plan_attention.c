/* Attention, RotaryEmbedding and Rotary: the kernels of attention.cl. The names here are those of plugins/common/more/attention.c. */
#include "plan_general.h"

enum { BATCH, Q_HEADS, KV_HEADS, Q_LEN, KV_LEN, PAST, SIZE, V_SIZE, MODE = 10 };
enum { EACH = 4, SOFTMAX = 3 }; /* elements of a row that an item has; a mode */

/* The keys or values that there are now, with those of the past. */
static heddle_status add_cache(k_node *n, const more_op *m, uint32_t k, heddle_error *err) {
  const k_general p = {.count = m->out[k].count, .has = k_general_has(n, m), .mode = k == 1 ? SIZE : V_SIZE};
  const k_launch how = {.kernel = KERNEL_attention_cache,
                        .n_types = 1,
                        .types = {k_word_element(&m->in[k])},
                        .items = (uint64_t)p.count,
                        .limit = (uint64_t)p.count};
  const uint32_t past = m->in[k + 3].here ? k_input(n, k + 3) : K_TABLE;
  return k_launch_add(n, &how, &p, sizeof p, 4, (uint32_t[]){k_input(n, k), past, K_TABLE, k_output(n, k)}, err);
}

static heddle_status plan_attention(k_node *n, heddle_error *err) {
  more_op m;
  k_general_launch how = {.n_types = 2, .n_operands = 7};
  bool widened = false;
  heddle_status s = k_plan_in_one_type(n, 3, &widened, err);
  if (s != HEDDLE_OK || widened) return s;
  s = k_general_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &how.types[0], err);
  if (s != HEDDLE_OK) return s;
  how.types[1] = how.types[0];
  if (m.in[3].here) s = k_element_of(n, m.in[3].type, &how.types[1], err);
  if (s == HEDDLE_OK && how.types[1] != how.types[0] && how.types[1] != K_ELEMENT_B8)
    s = ref_refuse(&n->ref, err, "its mask is neither bool nor of the type of operand 0");
  if (s == HEDDLE_OK && m.in[2].type != m.in[0].type) s = ref_refuse(&n->ref, err, "its values are of another type");
  if (s == HEDDLE_OK && m.in[6].here && m.in[6].type != REF_TYPE_I64)
    s = ref_refuse(&n->ref, err, "operand 6 is of other integers than int64");
  const int64_t *i = m.i, total = i[PAST] + i[KV_LEN], rows = i[BATCH] * i[Q_HEADS] * i[Q_LEN];
  const double dots = (double)total * (double)(i[SIZE] + 5);
  if (s == HEDDLE_OK && m.out[0].count > 0) {
    how.kernel = KERNEL_attention;
    how.out = k_result(n, &m, 0);
    how.step = (i[V_SIZE] + EACH - 1) / EACH;
    how.items = rows * how.step;
    how.turns = 2 * dots;
    if (m.out[0].here) s = k_general_add(n, &m, &how, err);
  }
  for (uint32_t k = 1; k < 3 && s == HEDDLE_OK; k++) {
    if (m.out[k].here && m.out[k].count > 0) s = add_cache(n, &m, k, err);
  }
  if (s != HEDDLE_OK || !m.out[3].here || m.out[3].count == 0) return s;
  how.kernel = KERNEL_attention_scores;
  how.out = k_result(n, &m, 3);
  how.mode = i[MODE];
  how.items = how.mode == SOFTMAX ? rows : rows * total;
  how.turns = how.mode == SOFTMAX ? 2 * dots : (double)i[SIZE];
  return k_general_add(n, &m, &how, err);
}

static heddle_status plan_rotary(k_node *n, heddle_error *err) {
  more_op m;
  k_general_launch how = {.kernel = KERNEL_rotary, .n_types = 1, .n_operands = 4, .out = k_output(n, 0)};
  heddle_status s = k_general_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &how.types[0], err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  if (m.in[3].here && m.in[3].type != REF_TYPE_I64 && m.in[3].type != REF_TYPE_I32)
    return ref_refuse(&n->ref, err, "operand 3 is of other integers than int32 and int64");
  how.mode = m.in[3].type == REF_TYPE_I64;
  how.items = m.out[0].count;
  return k_general_add(n, &m, &how, err);
}

heddle_status k_plan_rotate(k_node *n, heddle_error *err) {
  more_op m;
  k_general_launch how = {.kernel = KERNEL_rotary_of, .n_types = 1, .n_operands = 3, .out = k_output(n, 0)};
  heddle_status s = k_general_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &how.types[0], err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  how.items = m.out[0].count;
  return k_general_add(n, &m, &how, err);
}

const k_entry k_attention_table[] = {
    {"Attention", 0, plan_attention},
    {"RotaryEmbedding", 0, plan_rotary},
    {0},
};
