/* Random numbers and Dropout in training: the kernels of random.cl. The general reference kernels' setups check the nodes and
 * leave their numbers; the names here are those of plugins/common/more/random.c. */
#include "plan_portable.h"

enum { KEY, SAMPLES, CLASSES };
enum { MEAN, SCALE };

/* The type that numbers are computed in: float64 where the device has it. */
static int computes_in(const k_node *n, int type) {
  return (n->plan->features & K_HAS_F64) != 0 || type == REF_TYPE_F64 ? REF_TYPE_F64 : REF_TYPE_F32;
}

static k_random numbers_of(const more_op *m, uint64_t count) {
  float mean[2], scale[2];
  k_split_number(m->f[MEAN], mean);
  k_split_number(m->f[SCALE], scale);
  const uint64_t key = (uint64_t)m->i[KEY];
  return (k_random){.count = (int64_t)count,
                    .key_low = (int32_t)(uint32_t)key,
                    .key_high = (int32_t)(uint32_t)(key >> 32),
                    .mean = mean[0],
                    .mean_rest = mean[1],
                    .scale = scale[0],
                    .scale_rest = scale[1]};
}

/* Of n_types types, the second of which is computes_in of the first unless it is given. */
static heddle_status add(k_node *n, uint8_t kernel, int type, int second, const k_random *p, uint64_t limit,
                         double turns, uint32_t n_args, const uint32_t *args, heddle_error *err) {
  k_launch how = {.kernel = kernel, .n_types = 1, .items = (uint64_t)p->count, .limit = limit};
  heddle_status s = k_element_of(n, (uint32_t)type, &how.types[0], err);
  if (s == HEDDLE_OK && second != REF_TYPE_NONE) s = k_element_of(n, (uint32_t)second, &how.types[how.n_types++], err);
  how.turns = turns + 16;
  how.floats = 4;
  return s == HEDDLE_OK ? k_launch_add(n, &how, p, sizeof *p, n_args, args, err) : s;
}

/* RandomNormal, RandomUniform and those like an operand. */
static heddle_status plan_numbers(k_node *n, heddle_error *err) {
  more_op m;
  void *unread = NULL;
  const bool is_normal = strncmp(n->entry->op, "RandomNormal", strlen("RandomNormal")) == 0;
  heddle_status s = k_more_of(n, &m, err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  const k_random p = numbers_of(&m, (uint64_t)m.out[0].count);
  s = k_table_new(n, sizeof(int32_t), &unread, err);
  if (s != HEDDLE_OK) return s;
  memset(unread, 0, sizeof(int32_t));
  return add(n, is_normal ? KERNEL_random_normal : KERNEL_random_uniform, m.out[0].type, computes_in(n, m.out[0].type),
             &p, 0, 0, 2, (uint32_t[]){K_TABLE, k_output(n, 0)}, err);
}

static heddle_status plan_bernoulli(k_node *n, heddle_error *err) {
  more_op m;
  void *table = NULL;
  k_launch how = {.kernel = KERNEL_bernoulli, .n_types = 2, .turns = 16, .floats = 4};
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &how.types[0], err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  s = k_table_new(n, 2 * (uint64_t)m.out[0].size, &table, err);
  if (s != HEDDLE_OK) return s;
  more_put(&m.out[0], table, 0, 0);
  more_put(&m.out[0], table, 1, 1);
  const k_random p = numbers_of(&m, (uint64_t)m.out[0].count);
  how.types[1] = k_word_element(&m.out[0]);
  how.items = (uint64_t)p.count;
  return k_launch_add(n, &how, &p, sizeof p, 3, (uint32_t[]){k_input(n, 0), K_TABLE, k_output(n, 0)}, err);
}

static heddle_status plan_multinomial(k_node *n, heddle_error *err) {
  more_op m;
  heddle_status s = k_more_of(n, &m, err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  k_random p = numbers_of(&m, (uint64_t)m.out[0].count);
  p.n = m.i[CLASSES];
  p.samples = m.i[SAMPLES];
  p.wide = m.out[0].type == REF_TYPE_I64;
  return add(n, KERNEL_multinomial, m.in[0].type, computes_in(n, m.in[0].type), &p, 2 * (uint64_t)p.count,
             3 * (double)p.n, 2, (uint32_t[]){k_input(n, 0), k_output(n, 0)}, err);
}

/* The ratio as type: the operand, converted in the workspace where it is of another one, or a half. */
static heddle_status ratio_as(k_node *n, const more_op *m, int type, uint32_t *arg, heddle_error *err) {
  if (m->in[1].here && m->in[1].type != type) {
    *arg = K_WORKSPACE;
    n->plan->part_bytes[0] = more_type_bytes(type);
    return k_convert_add(n, m->in[1].type, type, 1, k_input(n, 1), K_WORKSPACE, err);
  }
  return k_or_table(n, 1, type, 1, 0.5, arg, err);
}

heddle_status k_plan_dropout_training(k_node *n, heddle_error *err) {
  more_op m;
  uint32_t ratio = 0;
  heddle_status s = k_more_of(n, &m, err);
  if (s != HEDDLE_OK || m.in[0].count == 0) return s;
  const int type = computes_in(n, m.in[1].here && m.in[1].type == REF_TYPE_F64 ? REF_TYPE_F64 : m.in[0].type);
  const k_random p = numbers_of(&m, (uint64_t)m.in[0].count);
  s = ratio_as(n, &m, type, &ratio, err);
  if (s == HEDDLE_OK && m.out[0].here)
    s = add(n, KERNEL_dropout, m.in[0].type, type, &p, 0, 0, 3, (uint32_t[]){k_input(n, 0), ratio, k_output(n, 0)},
            err);
  if (s != HEDDLE_OK || m.n_out < 2 || !m.out[1].here) return s;
  return add(n, KERNEL_dropout_mask, type, REF_TYPE_NONE, &p, 0, 0, 2, (uint32_t[]){ratio, k_output(n, 1)}, err);
}

const k_entry k_random_table[] = {
    {"Bernoulli", 0, plan_bernoulli},
    {"Multinomial", 0, plan_multinomial},
    {"RandomNormal", 0, plan_numbers},
    {"RandomNormalLike", 0, plan_numbers},
    {"RandomUniform", 0, plan_numbers},
    {"RandomUniformLike", 0, plan_numbers},
    {0},
};
