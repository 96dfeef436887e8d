/* Signals and what is known of an operator before it runs: DFT and STFT, the windows and MelWeightMatrix, which are tables;
 * DynamicQuantizeLinear; BitCast and CenterCropPad. The names here are those of plugins/common/more/signal.c. */
#include "plan_general.h"

#include <math.h>

#define PI 3.14159265358979323846

/* ---------------------------------------------------------------- DFT and STFT */

enum { LENGTH, SIZE, BINS, INNER, COMPLEX_IN, INVERSE, ONE_SIDED, STEP };
enum { MOST_POINTS = 1 << 22, MOST_TABLE = 1 << 24 };

/* The cosine and sine of each of n angles around the circle, as float64 or float32. */
static heddle_status circle(k_node *n, int64_t count, bool wide, heddle_error *err) {
  void *table = NULL;
  if (count > MOST_POINTS) return ref_refuse(&n->ref, err, "it transforms %lld points", (long long)count);
  heddle_status s = k_table_new(n, 2 * (uint64_t)count * (wide ? sizeof(double) : sizeof(float)), &table, err);
  for (int64_t j = 0; j < count && s == HEDDLE_OK; j++) {
    const double angle = 2 * PI * (double)j / (double)count;
    more_store(wide ? REF_TYPE_F64 : REF_TYPE_F32, table, 2 * j, cos(angle));
    more_store(wide ? REF_TYPE_F64 : REF_TYPE_F32, table, 2 * j + 1, sin(angle));
  }
  return s;
}

static heddle_status plan_dft(k_node *n, heddle_error *err) {
  more_op m;
  uint8_t type = 0;
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &type, err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  const bool frames = strcmp(n->entry->op, "STFT") == 0, windowed = frames && m.in[2].here;
  const bool real_out = m.i[INVERSE] && m.i[ONE_SIDED];
  s = circle(n, m.i[LENGTH], type == K_ELEMENT_F64, err);
  if (s != HEDDLE_OK) return s;
  const k_signal p = {.count = m.out[0].count / (real_out ? 1 : 2),
                      .points = m.i[LENGTH],
                      .size = m.i[SIZE],
                      .bins = m.i[BINS],
                      .inner = frames ? 1 : m.i[INNER],
                      .step = m.i[STEP],
                      .frames = frames ? m.out[0].shape[1] : 0,
                      .mode = m.i[COMPLEX_IN] + 2 * m.i[INVERSE] + 4 * m.i[ONE_SIDED] + 8 * (int64_t)windowed};
  const k_launch how = {
      .kernel = KERNEL_dft, .n_types = 1, .types = {type}, .items = (uint64_t)p.count, .turns = (double)p.points};
  const uint32_t window = windowed ? k_input(n, 2) : K_TABLE;
  return k_launch_add(n, &how, &p, sizeof p, 4, (uint32_t[]){k_input(n, 0), window, K_TABLE, k_output(n, 0)}, err);
}

/* ---------------------------------------------------------------- what is known before */

/* The operands decide the shape and are known, so that the result is a table, which the reference kernel makes. */
static heddle_status plan_constant(k_node *n, heddle_error *err) {
  more_op m;
  void *table = NULL;
  bool known = false;
  heddle_status s = more_plan_node(&n->ref, &m, NULL, &known, err);
  if (!known) return ref_refuse(&n->ref, err, "it is of no opset");
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  if (!more_type_is_real(m.out[0].type)) return ref_refuse(&n->ref, err, "its result is no floating-point number");
  if (m.out[0].count > MOST_TABLE) return ref_refuse(&n->ref, err, "its result is too large to be made before the run");
  const uint64_t bytes = (uint64_t)m.out[0].count * m.out[0].size;
  s = k_table_new(n, bytes, &table, err);
  if (s != HEDDLE_OK) return s;
  const more_args a = {.out = {table}};
  m.run(&m, &a, 0, m.units);
  return k_copy_add(n, K_TABLE, 0, k_output(n, 0), 0, bytes, err);
}

static heddle_status plan_bit_cast(k_node *n, heddle_error *err) {
  more_op m;
  heddle_status s = k_more_of(n, &m, err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  return k_copy_add(n, k_input(n, 0), 0, k_output(n, 0), 0, (uint64_t)m.out[0].count * m.out[0].size, err);
}

static heddle_status plan_center_crop_pad(k_node *n, heddle_error *err) {
  more_op m;
  k_general_launch how = {.kernel = KERNEL_crop_pad, .n_types = 1, .n_operands = 1, .out = k_output(n, 0)};
  heddle_status s = k_general_of(n, &m, err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  how.types[0] = k_word_element(&m.in[0]);
  how.items = m.out[0].count;
  return k_general_add(n, &m, &how, err);
}

/* ---------------------------------------------------------------- DynamicQuantizeLinear */

static heddle_status add_dynamic(k_node *n, uint8_t kernel, uint8_t second, int64_t count, int64_t mode, uint64_t items,
                                 uint32_t n_args, const uint32_t *args, heddle_error *err) {
  enum { PARTS = 256 }; /* as in signal.cl */
  const bool looks = kernel == KERNEL_dynamic_limits;
  const k_general p = {.count = count, .mode = mode};
  const k_launch how = {.kernel = kernel,
                        .n_types = second != 0 ? 2 : 1,
                        .types = {K_ELEMENT_F32, second},
                        .items = looks ? PARTS : items,
                        .turns = looks        ? (double)count / PARTS + 1
                                 : items == 1 ? PARTS
                                              : 0};
  n->plan->part_bytes[0] = (2 * PARTS + 2) * sizeof(float);
  return k_launch_add(n, &how, &p, sizeof p, n_args, args, err);
}

static heddle_status plan_dynamic_quantize(k_node *n, heddle_error *err) {
  more_op m;
  heddle_status s = k_more_of(n, &m, err);
  if (s != HEDDLE_OK) return s;
  const int64_t count = m.in[0].count;
  const uint32_t x = count > 0 ? k_input(n, 0) : K_WORKSPACE;
  s = add_dynamic(n, KERNEL_dynamic_limits, 0, count, 0, 1, 2, (uint32_t[]){x, K_WORKSPACE}, err);
  if (s == HEDDLE_OK && m.out[1].here)
    s = add_dynamic(n, KERNEL_dynamic_scale, K_ELEMENT_F32, 1, 0, 1, 2, (uint32_t[]){K_WORKSPACE, k_output(n, 1)}, err);
  if (s == HEDDLE_OK && m.out[2].here)
    s = add_dynamic(n, KERNEL_dynamic_scale, K_ELEMENT_U8, 1, 1, 1, 2, (uint32_t[]){K_WORKSPACE, k_output(n, 2)}, err);
  if (s != HEDDLE_OK || !m.out[0].here || count == 0) return s;
  s = add_dynamic(n, KERNEL_dynamic_fold, 0, 1, 0, 1, 2, (uint32_t[]){x, K_WORKSPACE}, err);
  if (s != HEDDLE_OK) return s;
  return add_dynamic(n, KERNEL_dynamic_quantize, 0, count, 0, (uint64_t)count, 3,
                     (uint32_t[]){x, K_WORKSPACE, k_output(n, 0)}, err);
}

const k_entry k_signal_table[] = {
    {"BitCast", 0, plan_bit_cast},
    {"BlackmanWindow", 0, plan_constant},
    {"CenterCropPad", 0, plan_center_crop_pad},
    {"DFT", 0, plan_dft},
    {"DynamicQuantizeLinear", 0, plan_dynamic_quantize},
    {"HammingWindow", 0, plan_constant},
    {"HannWindow", 0, plan_constant},
    {"MelWeightMatrix", 0, plan_constant},
    {"STFT", 0, plan_dft},
    {0},
};
