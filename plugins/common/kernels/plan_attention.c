/* Attention, RotaryEmbedding and Rotary: the kernels of attention.cl. The names here are those of plugins/common/more/attention.c. */
#include "plan_general.h"

enum { BATCH, Q_HEADS, KV_HEADS, Q_LEN, KV_LEN, PAST, SIZE, V_SIZE, MODE = 10, PRECISION = 13 };
enum { EACH = 4, SOFTMAX = 3 }; /* elements of a row that an item has; a mode */

/* ---------------------------------------------------------------- in one pass: portable_flash.cl */

enum { SIDE = 8, KEYS = 64, DEPTH = 16, FEWEST_COLUMNS = 2, MOST_COLUMNS = 16, MOST_ROWS = 4, HOST = 32, OF_ROWS = 64 };

static int64_t pieces(int64_t n, int64_t of) {
  return (n + of - 1) / of;
}

int32_t k_flash_variant(const k_node *n, const k_flash *f) {
  const k_step *like = k_like(n);
  if (like != NULL) return like->code.variant;
  int32_t columns = FEWEST_COLUMNS;
  while (columns < MOST_COLUMNS && columns * SIDE < f->wide) columns *= 2;
  const int32_t rows = f->is_f64 || f->queries <= SIDE ? 1 : MOST_ROWS;
  return rows * OF_ROWS + ((n->plan->features & K_HOST_CORES) != 0 ? HOST : 0) + columns;
}

int64_t k_flash_items(const k_flash *f, int32_t variant) {
  const int64_t tiles = pieces(f->queries, (int64_t)(variant / OF_ROWS) * SIDE);
  return f->units * tiles * pieces(f->wide, (int64_t)(variant % HOST) * SIDE) * K_GROUP;
}

double k_flash_turns(const k_flash *f) {
  return (double)pieces(f->keys, KEYS) * (double)(pieces(f->size, DEPTH) * (DEPTH + 1) + KEYS + KEYS / 8 + 1);
}

/* ---------------------------------------------------------------- Attention */

/* Is the softmax computed in what the operands are computed in, or in more? */
static bool is_plain(const more_op *m) {
  const int64_t inner = m->i[PRECISION];
  return inner == 0 || inner == m->in[0].type || (inner == REF_TYPE_F32 && m->in[0].type != REF_TYPE_F64) ||
         inner == REF_TYPE_F64;
}

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
    if ((n->plan->features & K_FLASH) != 0 && is_plain(&m)) {
      const k_flash f = {.units = i[BATCH] * i[KV_HEADS],
                         .queries = i[Q_HEADS] / i[KV_HEADS] * i[Q_LEN],
                         .keys = total,
                         .size = i[SIZE],
                         .wide = i[V_SIZE],
                         .is_f64 = m.in[0].type == REF_TYPE_F64};
      how.kernel = KERNEL_attention_flash;
      how.variant = k_flash_variant(n, &f);
      how.items = k_flash_items(&f, how.variant);
      how.turns = k_flash_turns(&f);
    }
    if (m.out[0].here) s = k_general_add(n, &m, &how, err);
    how.variant = 0;
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
