/* The calls of plan_general.h, and the operators that need no plan of their own. */
#include "plan_general.h"

#include "plugins/common/more/window.h"

/* ---------------------------------------------------------------- the table */

static void put_number(int32_t *words, double x) {
  float parts[2];
  k_split_number(x, parts);
  memcpy(words, parts, sizeof parts);
}

static bool put_whole(int32_t *word, int64_t x) {
  *word = (int32_t)x;
  return x >= INT32_MIN && x <= INT32_MAX;
}

static bool put_value(int32_t *words, const more_value *v) {
  bool fits = put_whole(&words[0], v->count) && put_whole(&words[1], v->ndim);
  for (int32_t d = 0; d < v->ndim; d++) fits = put_whole(&words[2 + d], v->shape[d]) && fits;
  return fits;
}

static heddle_status fill_table(k_node *n, const more_op *m, heddle_error *err) {
  enum { IN = (K_G_OUT - K_G_IN) / K_G_VALUE, OUT = (K_G_WORDS - K_G_OUT) / K_G_VALUE };
  void *memory = NULL;
  bool fits = true;
  const size_t bytes = (K_G_WORDS + K_G_MORE) * sizeof(int32_t);
  heddle_status s = k_table_new(n, bytes, &memory, err);
  if (s != HEDDLE_OK) return s;
  int32_t *words = memory;
  memset(words, 0, bytes);
  for (int k = 0; k < MORE_INTS; k++) fits = put_whole(&words[k], m->i[k]) && fits;
  for (int k = 0; k < MORE_FLOATS; k++) put_number(&words[K_G_NUMBERS + 2 * k], m->f[k]);
  for (uint32_t k = 0; k < IN && k < m->n_in; k++) fits = put_value(&words[K_G_IN + K_G_VALUE * k], &m->in[k]) && fits;
  for (uint32_t k = 0; k < OUT && k < m->n_out; k++)
    fits = put_value(&words[K_G_OUT + K_G_VALUE * k], &m->out[k]) && fits;
  return fits ? HEDDLE_OK
              : ref_refuse(&n->ref, err, "one of its sizes is over 2147483647, more than its kernels count");
}

heddle_status k_general_of(k_node *n, more_op *m, heddle_error *err) {
  heddle_status s = k_more_of(n, m, err);
  return s == HEDDLE_OK ? fill_table(n, m, err) : s;
}

/* ---------------------------------------------------------------- launches */

uint32_t k_general_args(const k_node *n, const more_op *m, uint32_t n_operands, uint32_t args[K_ARGS]) {
  for (uint32_t k = 0; k < n_operands; k++) args[k] = k < m->n_in && m->in[k].here ? k_input(n, k) : K_TABLE;
  args[n_operands] = K_TABLE;
  return n_operands + 1;
}

int64_t k_general_has(const k_node *n, const more_op *m) {
  int64_t has = 0;
  (void)n;
  for (uint32_t k = 0; k < m->n_in; k++) has |= (int64_t)m->in[k].here << k;
  for (uint32_t k = 0; k < m->n_out; k++) has |= (int64_t)m->out[k].here << (16 + k);
  return has;
}

uint32_t k_result(const k_node *n, const more_op *m, uint32_t k) {
  return k < m->n_out && m->out[k].here ? k_output(n, k) : K_TABLE;
}

heddle_status k_general_add(k_node *n, const more_op *m, const k_general_launch *how, heddle_error *err) {
  uint32_t args[K_ARGS];
  uint64_t limit = 0;
  uint32_t n_args = k_general_args(n, m, how->n_operands, args);
  args[n_args++] = how->out;
  const k_general p = {.count = how->items, .has = k_general_has(n, m), .mode = how->mode, .step = how->step};
  for (uint32_t k = 0; k < m->n_in; k++) limit += 2 * (uint64_t)m->in[k].count; /* int64 are read as pairs of words */
  for (uint32_t k = 0; k < m->n_out; k++) limit += 2 * (uint64_t)m->out[k].count;
  k_launch launch = {.kernel = how->kernel,
                     .n_types = how->n_types,
                     .items = (uint64_t)how->items,
                     .limit = limit,
                     .turns = how->turns,
                     .variant = how->variant};
  memcpy(launch.types, how->types, sizeof launch.types);
  return k_launch_add(n, &launch, &p, sizeof p, n_args, args, err);
}

/* ---------------------------------------------------------------- operators of one kernel */

/* What a kernel's T0 is: the type of operand 0, or integers of its size without sign, or words of its size. */
enum { TYPE, NO_SIGN, WORDS };

/* How an item's turns are counted: the reference kernel's steps, a window's taps, those of a convolution, or elements. */
enum { BY_STEPS, BY_TAPS, BY_WEIGHTS, BY_ELEMENTS, BY_DEPTH };

/* second: the operand whose type is T1, 0 for none. */
typedef struct one_kernel {
  const char *op;
  uint8_t kernel, operands, second, type, turns;
} one_kernel;

static const one_kernel kernels[] = {
    {"AffineGrid", KERNEL_affine_grid, 1, 0, TYPE, BY_STEPS},
    {"Col2Im", KERNEL_col2im, 1, 0, NO_SIGN, BY_TAPS},
    {"Conv", KERNEL_conv_any, 3, 0, NO_SIGN, BY_WEIGHTS},
    {"DeformConv", KERNEL_deform_conv, 5, 0, TYPE, BY_WEIGHTS},
    {"Gemm", KERNEL_gemm_any, 3, 0, NO_SIGN, BY_DEPTH},
    {"GlobalLpPool", KERNEL_global_lp_pool, 1, 0, TYPE, BY_STEPS},
    {"GridSample", KERNEL_grid_sample, 2, 1, TYPE, BY_STEPS},
    {"LpPool", KERNEL_lp_pool, 1, 0, TYPE, BY_TAPS},
    {"MatMul", KERNEL_matmul_any, 2, 0, NO_SIGN, BY_DEPTH},
    {"MaxUnpool", KERNEL_unpool, 2, 0, WORDS, BY_ELEMENTS},
    {"RoiAlign", KERNEL_roi_align, 3, 0, TYPE, BY_STEPS},
};

static double turns_of(const one_kernel *k, const more_op *m) {
  enum { PER = W_OWN + 1, DEPTH = 2, DIMS = 8 };
  const double taps = k->turns == BY_TAPS || k->turns == BY_WEIGHTS ? (double)window_taps(m) : 0;
  switch (k->turns) {
  case BY_TAPS: return taps * (double)(1 + m->i[W_SPATIAL]) + DIMS;
  case BY_WEIGHTS: return taps * (double)(1 + m->i[W_SPATIAL] + 5 * m->i[PER]) + DIMS;
  case BY_ELEMENTS: return (double)m->in[0].count + DIMS;
  case BY_DEPTH: return (double)m->i[DEPTH] + 2 * DIMS;
  default: return m->steps / (double)m->out[0].count;
  }
}

/* Gemm of integers with factors, which float64 computes. */
static bool has_factors(const one_kernel *k, const more_op *m) {
  return strcmp(k->op, "Gemm") == 0 && (m->f[0] != 1 || m->f[1] != 1) && !more_type_is_real(m->in[0].type);
}

/* GridSample of integers computes in float64. */
static heddle_status needs_f64(const k_node *n, heddle_error *err) {
  uint8_t real = 0;
  return k_element_of(n, REF_TYPE_F64, &real, err);
}

/* What the kernels do not do. */
static heddle_status check_general(const k_node *n, const one_kernel *k, const more_op *m, heddle_error *err) {
  if (turns_of(k, m) > (double)INT32_MAX)
    return ref_refuse(&n->ref, err, "one element of it takes over 2147483647 steps");
  const int second = k->second != 0 ? m->in[k->second].type : REF_TYPE_F32;
  if (second == m->in[0].type || second == REF_TYPE_F32) return HEDDLE_OK;
  if (second == REF_TYPE_F64 && (m->in[0].type == REF_TYPE_F32 || !more_type_is_real(m->in[0].type))) return HEDDLE_OK;
  return ref_refuse(&n->ref, err, "there is no kernel for the type of operand %u beside that of operand 0", k->second);
}

heddle_status k_plan_general(k_node *n, heddle_error *err) {
  more_op m;
  const one_kernel *k = kernels;
  while (strcmp(k->op, n->entry->op) != 0) k++;
  k_general_launch how = {.kernel = k->kernel, .n_types = 1, .n_operands = k->operands, .out = k_output(n, 0)};
  heddle_status s = k_general_of(n, &m, err);
  if (s == HEDDLE_OK && k->second != 0 && m.in[k->second].type != m.in[0].type &&
      m.in[k->second].type != REF_TYPE_F32) {
    bool widened = false; /* halves: there are kernels for float32 and float64 beside others */
    s = k_plan_widened(n, &widened, err);
    if (widened) return s;
  }
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &how.types[0], err);
  if (s == HEDDLE_OK && k->second != 0) s = k_element_of(n, m.in[k->second].type, &how.types[how.n_types++], err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  if (has_factors(k, &m)) {
    how.kernel = KERNEL_gemm_scaled;
    s = k_element_of(n, REF_TYPE_F64, &how.types[how.n_types++], err);
  } else if (k->type == NO_SIGN) how.types[0] = k_unsigned_element(how.types[0]);
  if (k->type == WORDS) how.types[0] = k_word_element(&m.in[0]);
  how.items = m.out[0].count;
  how.turns = turns_of(k, &m);
  if (s == HEDDLE_OK) s = check_general(n, k, &m, err);
  if (s == HEDDLE_OK && k->second != 0 && !more_type_is_real(m.in[0].type)) s = needs_f64(n, err);
  return s == HEDDLE_OK ? k_general_add(n, &m, &how, err) : s;
}

const k_entry k_general_table[] = {
    {"AffineGrid", 0, k_plan_general},   {"Col2Im", 0, k_plan_general},     {"DeformConv", 0, k_plan_general},
    {"GlobalLpPool", 0, k_plan_general}, {"GridSample", 0, k_plan_general}, {"LpPool", 0, k_plan_general},
    {"MaxUnpool", 0, k_plan_general},    {"RoiAlign", 0, k_plan_general},   {0},
};
