/* GroupQueryAttention of domain "heddle": the kernels of gqa.cl. Both caches, the queries, which lie in the workspace, and then
 * what each query makes of them. */
#include "plan_general.h"

#include "plugins/common/more/gqa.h"

enum { EACH = 4 /* elements of a row that an item of the kernel without tiles has */ };

static bool is_there(const more_op *m, uint32_t k) {
  return k < m->n_in && m->in[k].here;
}

static uint32_t input_or_table(const k_node *n, const more_op *m, uint32_t k) {
  return is_there(m, k) ? k_input(n, k) : K_TABLE;
}

/* A cache after the step, which lies in the workspace where it is no result. k: GQA_PRESENT_K or GQA_PRESENT_V. */
static uint32_t cache_of(k_node *n, const more_op *m, uint32_t k) {
  if (k < m->n_out && m->out[k].here) return k_output(n, k);
  n->plan->part_bytes[k] = (uint64_t)m->out[k].count * m->out[k].size;
  return K_WORKSPACE + k;
}

/* step: 0 the queries, 1 keys, 2 values. */
static heddle_status add_new(k_node *n, const more_op *m, const uint8_t types[2], int64_t step, int64_t items,
                             uint32_t out, heddle_error *err) {
  const uint32_t norm = step == 0 ? GQA_Q_NORM : GQA_K_NORM;
  const uint32_t args[] = {k_input(n, m->i[GQA_PACKED] ? 0 : (uint32_t)step),
                           step == 0 ? K_TABLE : input_or_table(n, m, GQA_PAST_K + (uint32_t)step - 1),
                           k_input(n, GQA_ENDS),
                           input_or_table(n, m, GQA_COS),
                           input_or_table(n, m, GQA_SIN),
                           input_or_table(n, m, GQA_POSITIONS),
                           step == 2 ? K_TABLE : input_or_table(n, m, norm),
                           step == 0 ? K_TABLE : input_or_table(n, m, GQA_K_SCALE + (uint32_t)step - 1),
                           K_TABLE,
                           out};
  const k_general p = {.count = items, .has = k_general_has(n, m), .step = step};
  const k_launch how = {.kernel = KERNEL_gqa_new,
                        .n_types = 2,
                        .types = {types[0], types[1]},
                        .items = (uint64_t)items,
                        .limit = (uint64_t)m->in[0].count + (uint64_t)items,
                        .turns = (double)m->i[GQA_SIZE] + 16};
  return k_launch_add(n, &how, &p, sizeof p, sizeof args / sizeof args[0], args, err);
}

static heddle_status check(const k_node *n, const more_op *m, heddle_error *err) {
  if (m->in[GQA_ENDS].type != REF_TYPE_I32) return ref_refuse(&n->ref, err, "operand 5 is not int32");
  if (is_there(m, GQA_POSITIONS) && m->in[GQA_POSITIONS].type != REF_TYPE_I64)
    return ref_refuse(&n->ref, err, "operand 9 is not int64");
  for (uint32_t k = GQA_COS; k <= GQA_K_NORM; k++)
    if (k != GQA_POSITIONS && k != GQA_K_SCALE && k != GQA_V_SCALE && is_there(m, k) && m->in[k].type != m->in[0].type)
      return ref_refuse(&n->ref, err, "operand %u is not of the type of operand 0", k);
  return HEDDLE_OK;
}

heddle_status k_plan_gqa(k_node *n, heddle_error *err) {
  more_op m;
  uint8_t types[2] = {0}, cached = 0;
  heddle_status s = k_general_of(n, &m, err);
  if (s == HEDDLE_OK) s = check(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &types[0], err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.out[GQA_PRESENT_K].type, &cached, err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  const uint32_t keys = cache_of(n, &m, GQA_PRESENT_K), values = cache_of(n, &m, GQA_PRESENT_V);
  types[1] = cached;
  const bool kept = is_there(&m, GQA_PAST_K) && m.i[GQA_PAST] == m.i[GQA_ROOM];
  for (uint32_t k = 0; k < 2 && kept && GQA_PRESENT_K + k < m.n_out && m.out[GQA_PRESENT_K + k].here; k++)
    k_allow_extending(n, GQA_PAST_K + k, GQA_PRESENT_K + k);
  s = add_new(n, &m, types, 1, m.out[GQA_PRESENT_K].count, keys, err);
  if (s == HEDDLE_OK) s = add_new(n, &m, types, 2, m.out[GQA_PRESENT_V].count, values, err);
  const bool wide = m.in[0].type == REF_TYPE_F64;
  if (s == HEDDLE_OK) s = k_element_of(n, wide ? REF_TYPE_F64 : REF_TYPE_F32, &types[1], err);
  if (s != HEDDLE_OK) return s;
  n->plan->part_bytes[0] = (uint64_t)m.out[0].count * (wide ? sizeof(double) : sizeof(float));
  s = add_new(n, &m, types, 0, m.out[0].count, K_WORKSPACE, err);
  if (s != HEDDLE_OK) return s;
  const uint32_t args[] = {K_WORKSPACE,
                           keys,
                           values,
                           input_or_table(n, &m, GQA_BIAS),
                           input_or_table(n, &m, GQA_SINK),
                           k_input(n, GQA_ENDS),
                           input_or_table(n, &m, GQA_K_SCALE),
                           input_or_table(n, &m, GQA_V_SCALE),
                           K_TABLE,
                           k_output(n, 0)};
  const k_flash f = {.units = m.i[GQA_BATCH] * m.i[GQA_KV_HEADS],
                     .queries = m.i[GQA_SHARE] * m.i[GQA_LENGTH],
                     .keys = m.i[GQA_ROOM],
                     .size = m.i[GQA_SIZE],
                     .wide = m.i[GQA_SIZE],
                     .is_f64 = wide};
  const bool flash = (n->plan->features & K_FLASH) != 0;
  const int32_t variant = flash ? k_flash_variant(n, &f) : 0;
  const int64_t step = (m.i[GQA_SIZE] + EACH - 1) / EACH, rows = m.out[0].count / m.i[GQA_SIZE];
  const k_general p = {
      .count = flash ? k_flash_items(&f, variant) : rows * step, .has = k_general_has(n, &m), .step = step};
  const k_launch how = {.kernel = flash ? KERNEL_gqa_flash : KERNEL_gqa,
                        .n_types = 2,
                        .types = {types[0], cached},
                        .items = (uint64_t)p.count,
                        .limit = (uint64_t)m.out[GQA_PRESENT_K].count,
                        .turns = flash ? k_flash_turns(&f) : 2.0 * (double)m.i[GQA_ROOM] * (double)(m.i[GQA_SIZE] + 5),
                        .variant = variant};
  return k_launch_add(n, &how, &p, sizeof p, sizeof args / sizeof args[0], args, err);
}
