/* Elementwise operators: the kernels same, flat and walk of elementwise.cl, for each combination of expression and types a
 * program of its own. What data movement shares with them is k_walk_add. */
#include "plan_elementwise.h"

#include "plugins/common/ref/types.h"
#include "plugins/common/scalar.h"

static heddle_status plan_scalar(k_node *n, heddle_error *err);
static heddle_status plan_clip(k_node *n, heddle_error *err);
static heddle_status plan_where(k_node *n, heddle_error *err);
static heddle_status plan_cast(k_node *n, heddle_error *err);
static heddle_status plan_cast_like(k_node *n, heddle_error *err);

const k_entry k_elementwise_table[] = {
    {"Cast", K_ANY, plan_cast},
    {"CastLike", K_ANY, plan_cast_like},
    {"Clip", 0, plan_clip},
    {"Where", 0, plan_where},
    {0},
};

const k_entry k_own_table[] = {
    {"FromBlocks", 0, k_plan_from_blocks},
    {"FusedElementwise", 0, k_plan_fused},
    {"GroupQueryAttention", 0, k_plan_gqa},
    {"KernelMatrix", 0, k_plan_kernel_matrix},
    {"Lookup", 0, k_plan_lookup},
    {"MatMulBlocks", 0, k_plan_blocks},
    {"MatMulExperts", 0, k_plan_experts},
    {"MatMulNBits", 0, k_plan_nbits},
    {"PairProbabilities", 0, k_plan_pairs},
    {"PostTransform", 0, k_plan_post_transform},
    {"RMSNormalization", 0, k_plan_rms_norm},
    {"Rotary", 0, k_plan_rotate},
    {"TreeEnsemble", 0, k_plan_trees},
    {0},
};

const k_entry *k_scalar_entry(bool own, const char *op) {
  static const k_entry entry = {"", 0, plan_scalar};
  return heddle__operator_find(own, op) != NULL && scalar_known(op) ? &entry : NULL;
}

/* ---------------------------------------------------------------- types */

uint8_t k_scalar_element(const k_node *n, heddle_dtype d) {
  const uint8_t type = k_element_or_none(n, d);
  return type == K_ELEMENT_B8 ? K_ELEMENT_U8 : type;
}

heddle_status k_refuse_type(const k_node *n, heddle_dtype d, heddle_error *err) {
  char name[DTYPE_NAME_BYTES], types[HEDDLE__TYPES_TEXT];
  if (region_dtype_is(d, HEDDLE_DTYPE_FLOAT, 64) || region_dtype_is(d, HEDDLE_DTYPE_FLOAT, 16) ||
      d.code == HEDDLE_DTYPE_BFLOAT)
    return ref_refuse(&n->ref, err, "this device does not compute in %s", region_dtype_name(d, name));
  return ref_refuse(&n->ref, err, "it does not take %s; it takes %s", region_dtype_name(d, name),
                    heddle__types_text(n->types, types));
}

/* Elements that have the same bits under an operator: integers without sign where it does not look at signs, so that one program
 * serves both. */
static uint8_t without_sign(const char *word, uint8_t type) {
  static const char *const words[] = {"Add",   "BitShift_left", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor",
                                      "Equal", "Mul",           "Neg",        "Sub",        "Sum"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strcmp(words[i], word) == 0) return k_unsigned_element(type);
  return type;
}

/* ---------------------------------------------------------------- walks */

void k_walk_init(k_walk_plan *w, const heddle_pvalue *out) {
  memset(w, 0, sizeof *w);
  int64_t step = 1;
  w->dims = out->ndim;
  for (int32_t i = out->ndim - 1; i >= 0; i--) {
    w->dim[i] = out->shape[i];
    w->step[K_OPERANDS][i] = step;
    step *= out->shape[i] > 0 ? out->shape[i] : 1;
  }
}

/* Joins neighbouring dimensions that all operands and the result walk in one stride; drops those of length 1. */
static void join(k_walk_plan *w) {
  int32_t count = 0;
  for (int32_t i = 0; i < w->dims; i++) {
    if (w->dim[i] == 1) continue;
    bool joins = count > 0;
    for (uint32_t k = 0; k <= K_OPERANDS && joins; k++) joins = w->step[k][count - 1] == w->step[k][i] * w->dim[i];
    if (joins) w->dim[count - 1] *= w->dim[i];
    else w->dim[count++] = w->dim[i];
    for (uint32_t k = 0; k <= K_OPERANDS; k++) w->step[k][count - 1] = w->step[k][i];
  }
  w->dims = count;
}

static bool is_flat(const k_walk_plan *w) {
  if (w->dims > 1 || w->base[K_OPERANDS] != 0 || (w->dims == 1 && w->step[K_OPERANDS][0] != 1)) return false;
  for (uint32_t k = 0; k < w->n_operands; k++) {
    if (w->base[k] != 0 || (w->dims == 1 && w->step[k][0] != 0 && w->step[k][0] != 1)) return false;
  }
  return true;
}

/* One more than the largest index that the walk of an operand or the result comes to. */
static uint64_t reach(const k_walk_plan *w, uint32_t k) {
  uint64_t most = (uint64_t)w->base[k] + 1;
  for (int32_t i = 0; i < w->dims; i++) {
    if (w->step[k][i] > 0) most += (uint64_t)(w->dim[i] - 1) * (uint64_t)w->step[k][i];
  }
  return most;
}

heddle_status k_walk_add(k_node *n, k_walk_plan *w, heddle_error *err) {
  uint64_t count = 1, limit = 0;
  k_step *step = NULL;
  for (int32_t i = 0; i < w->dims; i++) count *= (uint64_t)w->dim[i];
  if (count == 0) return HEDDLE_OK;
  join(w);
  if (w->dims > K_DIMS) {
    return ref_refuse(&n->ref, err, "it walks %d dimensions that cannot be joined; up to %d are supported", w->dims,
                      K_DIMS);
  }
  for (uint32_t k = 0; k <= K_OPERANDS; k++) {
    if (reach(w, k) > limit) limit = reach(w, k);
  }
  if (count > limit) limit = count;
  const bool flat = is_flat(w) && !k_prefers(n, KERNEL_walk, false);
  bool same = flat && w->dims == 1 && !k_prefers(n, KERNEL_flat, false);
  for (uint32_t k = 0; k < w->n_operands && same; k++) same = w->step[k][0] == 1;
  const uint8_t kernel = same ? KERNEL_same : flat ? KERNEL_flat : KERNEL_walk;
  heddle_status s = k_kernel_add(n->plan, kernel, k_groups(count), limit, &step, err);
  if (s != HEDDLE_OK) return s;
  k_code *code = &step->code;
  code->op = w->op;
  code->kind = w->kind;
  code->n_in = (uint8_t)w->n_operands;
  code->n_types = K_TYPES;
  for (uint32_t k = 0; k < K_OPERANDS; k++) code->types[k] = w->type[k < w->n_operands ? k : 0];
  code->types[K_RESULT_TYPE] = w->type_out;
  for (uint32_t k = 0; k < w->n_operands; k++) step->args[k] = w->slot[k];
  step->args[w->n_operands] = w->slot_out;
  step->n_args = w->n_operands + 1;
  if (flat) {
    k_flat *p = &step->params.flat;
    p->count = (int64_t)count;
    p->alpha = w->alpha;
    p->beta = w->beta;
    for (uint32_t k = 0; k < w->n_operands; k++) p->step[k] = w->dims == 0 ? 0 : (int32_t)w->step[k][0];
    step->params_bytes = sizeof *p;
  } else {
    k_walk *p = &step->params.walk;
    p->count = (int64_t)count;
    p->alpha = w->alpha;
    p->beta = w->beta;
    p->dims = w->dims;
    p->out_base = w->base[K_OPERANDS];
    for (int32_t i = 0; i < w->dims; i++) {
      p->dim[i] = w->dim[i];
      p->out_step[i] = w->step[K_OPERANDS][i];
      for (uint32_t k = 0; k < K_OPERANDS; k++) p->step[k][i] = w->step[k][i];
    }
    for (uint32_t k = 0; k < K_OPERANDS; k++) p->base[k] = w->base[k];
    step->params_bytes = sizeof *p;
  }
  n->plan->work += (double)count;
  return HEDDLE_OK;
}

/* Operand k of the walk is value, broadcast to the result. */
static heddle_status set_operand(k_node *n, k_walk_plan *w, uint32_t k, const heddle_pvalue *value, uint32_t slot,
                                 heddle_error *err) {
  if (!region_shape_broadcast_strides(value, n->ref.out, w->step[k])) return ref_refuse_shape(&n->ref, err);
  w->slot[k] = slot;
  return HEDDLE_OK;
}

/* An operand whose elements lie where the result's do, and have their size, may be overwritten. */
static void allow_in_place(k_node *n, uint32_t k) {
  const heddle_pvalue *value = region_node_input(n->ref.region, n->ref.node, k);
  k_plan *plan = n->plan;
  const int32_t slot = (int32_t)k_input(n, k);
  if (plan->n_pairs >= K_PAIRS || !region_shape_equal(value, n->ref.out) ||
      region_dtype_bytes(value->dtype) != region_dtype_bytes(n->ref.out->dtype)) {
    return;
  }
  for (uint32_t i = 0; i < plan->n_pairs; i++) {
    if (plan->pairs[2 * i] == slot) return;
  }
  k_allow_in_place(n, k);
}

/* ---------------------------------------------------------------- the operators */

static heddle_status check_dims(const k_node *n, heddle_error *err) {
  if (n->ref.out->ndim <= K_WALK_DIMS) return HEDDLE_OK;
  return ref_refuse(&n->ref, err, "%d dimensions; up to %d are supported", n->ref.out->ndim, K_WALK_DIMS);
}

static bool out_is_broadcast(const k_node *n) {
  const heddle_pvalue *out = n->ref.out;
  for (int32_t i = 0; i < out->ndim; i++) {
    int64_t want = 1;
    for (uint32_t k = 0; k < n->ref.node->n_inputs; k++) {
      const heddle_pvalue *v = region_node_input(n->ref.region, n->ref.node, k);
      if (v == NULL) continue;
      const int32_t at = i - (out->ndim - v->ndim);
      if (v->ndim > out->ndim) return false;
      if (at >= 0 && v->shape[at] != 1) want = v->shape[at];
    }
    if (want != out->shape[i]) return false;
  }
  for (uint32_t k = 0; k < n->ref.node->n_inputs; k++) {
    const heddle_pvalue *v = region_node_input(n->ref.region, n->ref.node, k);
    if (v != NULL && v->ndim == out->ndim) return true;
  }
  return false;
}

static bool is_real(heddle_dtype d) {
  return d.code == HEDDLE_DTYPE_FLOAT || d.code == HEDDLE_DTYPE_BFLOAT;
}

static bool is_whole(heddle_dtype d) {
  return d.code == HEDDLE_DTYPE_INT || d.code == HEDDLE_DTYPE_UINT;
}

/* What there is for elements of a type, and whether it gives a bool; 0 where there is none. */
static uint8_t kind_of(const char *word, heddle_dtype type, bool takes_bool, bool *test) {
  const uint32_t kinds = scalar_find(word).kinds;
  if (type.code == HEDDLE_DTYPE_BOOL) {
    *test = true;
    return (kinds & SCALAR_LOGIC) != 0 || ((kinds & SCALAR_TEST_INT) != 0 && takes_bool) ? SCALAR_LOGIC : 0;
  }
  const uint8_t whole = is_real(type) ? SCALAR_REAL : SCALAR_INT,
                tests = is_real(type) ? SCALAR_TEST_REAL : SCALAR_TEST_INT;
  *test = (kinds & tests) != 0;
  return *test ? tests : kinds & whole;
}

/* Types of operands and result; sets the expression's kind. */
static heddle_status check_types(const k_node *n, const char *word, k_walk_plan *w, heddle_error *err) {
  const heddle_dtype type = n->ref.in[0]->dtype, out = n->ref.out->dtype;
  char name[DTYPE_NAME_BYTES], types[HEDDLE__TYPES_TEXT];
  const bool power = strcmp(n->ref.node->op, "Pow") == 0;
  bool test = false;
  w->kind = kind_of(word, type, (n->types & HEDDLE__TYPES_BOOL) != 0, &test);
  if (w->kind == 0) return ref_refuse(&n->ref, err, "it takes %s", heddle__types_text(n->types, types));
  if (k_scalar_element(n, type) == K_ELEMENT_COUNT) return k_refuse_type(n, type, err);
  for (uint32_t k = 1; k < n->ref.node->n_inputs; k++) {
    const heddle_pvalue *v = region_node_input(n->ref.region, n->ref.node, k);
    if (v == NULL || region_dtype_equal(v->dtype, type)) continue;
    if (power && k_scalar_element(n, v->dtype) != K_ELEMENT_COUNT) continue;
    return ref_refuse(&n->ref, err, "operand %u is %s; the operands have one type", k,
                      region_dtype_name(v->dtype, name));
  }
  if (test) {
    if (!region_dtype_is(out, HEDDLE_DTYPE_BOOL, 8))
      return ref_refuse(&n->ref, err, "the result is %s; it gives bool", region_dtype_name(out, name));
  } else if (!region_dtype_equal(out, type)) {
    return ref_refuse(&n->ref, err, "the result is %s; it has the operands' type", region_dtype_name(out, name));
  }
  w->op = scalar_number(word);
  w->type_out = without_sign(word, k_scalar_element(n, out));
  return HEDDLE_OK;
}

/* One kernel of the operands first .. first + count; of slots where from is the result, which then is operand 0. */
static heddle_status add_one(k_node *n, const k_walk_plan *like, const char *word, uint32_t first, uint32_t count,
                             bool onto_result, heddle_error *err) {
  k_walk_plan w;
  heddle_status s = HEDDLE_OK;
  k_walk_init(&w, n->ref.out);
  w.op = scalar_number(word);
  w.kind = like->kind;
  w.type_out = like->type_out;
  w.alpha = like->alpha;
  w.beta = like->beta;
  w.slot_out = k_output(n, 0);
  if (onto_result) {
    w.type[0] = w.type_out;
    s = set_operand(n, &w, w.n_operands++, n->ref.out, w.slot_out, err);
  }
  for (uint32_t k = first; k < first + count && s == HEDDLE_OK; k++) {
    const heddle_pvalue *v = region_node_input(n->ref.region, n->ref.node, k);
    w.type[w.n_operands] = without_sign(word, k_scalar_element(n, v->dtype));
    s = set_operand(n, &w, w.n_operands++, v, k_input(n, k), err);
  }
  return s == HEDDLE_OK ? k_walk_add(n, &w, err) : s;
}

/* Any number of operands are taken two at a time. The last two of Mean give their sum by the number of all. */
static heddle_status plan_scalar(k_node *n, heddle_error *err) {
  k_walk_plan like = {0};
  scalar_call call;
  const uint32_t count = n->ref.node->n_inputs;
  const bool mean = strcmp(n->ref.node->op, "Mean") == 0;
  heddle_status s = check_dims(n, err);
  if (s == HEDDLE_OK) s = scalar_read(n->ref.node, &call, err);
  if (s != HEDDLE_OK) return s;
  const char *word = mean ? "Sum" : call.name;
  like.alpha = mean ? (float)count : (float)call.alpha;
  like.beta = (float)call.beta;
  s = check_types(n, word, &like, err);
  if (s != HEDDLE_OK) return s;
  if (!out_is_broadcast(n)) return ref_refuse_shape(&n->ref, err);
  if (count > 2 && n->ref.region->n_inputs < K_WORKSPACES && strcmp(word, "Sum") == 0 &&
      more_is_half(n->ref.out->dtype)) { /* a sum is rounded once */
    bool widened = false;
    s = k_plan_widened(n, &widened, err);
    if (s != HEDDLE_OK || widened) return s;
  }
  if (strcmp(n->ref.node->op, "PRelu") == 0 && !region_shape_equal(n->ref.in[0], n->ref.out)) {
    return ref_refuse_shape(&n->ref, err);
  }
  if (scalar_find(word).operands == HEDDLE__VARIADIC && count == 1) return k_plan_copy(n, err);
  if (mean && count == 2) word = "Mean_last";
  s = add_one(n, &like, word, 0, count > 2 ? 2 : count, false, err);
  for (uint32_t k = 2; k < count && s == HEDDLE_OK; k++) {
    if (mean && k + 1 == count) word = "Mean_last";
    s = add_one(n, &like, word, k, 1, true, err);
  }
  /* With a third operand the first step would overwrite what a later one reads. */
  for (uint32_t k = 0; k < count && k < 2 && s == HEDDLE_OK; k++) {
    bool later = false;
    for (uint32_t i = 2; i < count; i++) later = later || k_input(n, i) == k_input(n, k);
    if (!later) allow_in_place(n, k);
  }
  return s;
}

static heddle_status plan_clip(k_node *n, heddle_error *err) {
  k_walk_plan w;
  uint64_t one = 0;
  const bool low = n->ref.in[1] != NULL, high = n->ref.in[2] != NULL;
  heddle_status s = check_dims(n, err);
  if (s != HEDDLE_OK) return s;
  k_walk_init(&w, n->ref.out);
  s = check_types(n, low && high ? "Clip" : low ? "Clip_low" : "Clip_high", &w, err);
  if (s != HEDDLE_OK) return s;
  if (!region_shape_equal(n->ref.in[0], n->ref.out)) return ref_refuse_shape(&n->ref, err);
  if (!low && !high) return k_plan_copy(n, err);
  w.slot_out = k_output(n, 0);
  for (uint32_t k = 0; k < 3; k++) {
    if (n->ref.in[k] == NULL) continue;
    if (k > 0 && (!region_value_count(n->ref.in[k], &one) || one != 1))
      return ref_refuse(&n->ref, err, "operand %u must be one number", k);
    w.type[w.n_operands] = w.type_out;
    w.slot[w.n_operands] = k_input(n, k);
    if (k == 0) memcpy(w.step[0], w.step[K_OPERANDS], sizeof w.step[0]);
    w.n_operands++;
  }
  region_value_count(n->ref.out, &one);
  if (one > 1) allow_in_place(n, 0); /* else a bound could be the same number */
  return k_walk_add(n, &w, err);
}

static heddle_status plan_where(k_node *n, heddle_error *err) {
  k_walk_plan w;
  const heddle_dtype type = n->ref.out->dtype;
  int64_t words = 0;
  const uint8_t word = k_words_of(region_dtype_bytes(type), &words);
  heddle_status s = check_dims(n, err);
  if (s != HEDDLE_OK) return s;
  if (!region_dtype_is(n->ref.in[0]->dtype, HEDDLE_DTYPE_BOOL, 8))
    return ref_refuse(&n->ref, err, "the condition is bool");
  if (words != 1 || !region_dtype_equal(n->ref.in[1]->dtype, type) || !region_dtype_equal(n->ref.in[2]->dtype, type))
    return ref_refuse(&n->ref, err, "it takes operands and result of one type, of 1, 2, 4 or 8 bytes");
  if (!out_is_broadcast(n)) return ref_refuse_shape(&n->ref, err);
  k_walk_init(&w, n->ref.out);
  w.op = K_RAW_WHERE;
  w.type_out = word;
  w.slot_out = k_output(n, 0);
  w.n_operands = 3;
  for (uint32_t k = 0; k < 3 && s == HEDDLE_OK; k++) {
    w.type[k] = k == 0 ? K_ELEMENT_W1 : word;
    s = set_operand(n, &w, k, n->ref.in[k], k_input(n, k), err);
    if (s == HEDDLE_OK) allow_in_place(n, k);
  }
  return s == HEDDLE_OK ? k_walk_add(n, &w, err) : s;
}

/* float64 to float16 or bfloat16, which by way of float32 would be rounded twice. */
static heddle_status narrow(k_node *n, heddle_error *err) {
  k_general p = {0};
  uint64_t count = 0;
  region_value_count(n->ref.out, &count);
  p.count = (int64_t)count;
  const bool brain = n->ref.out->dtype.code == HEDDLE_DTYPE_BFLOAT;
  const k_launch how = {.kernel = KERNEL_narrow,
                        .n_types = 2,
                        .types = {K_ELEMENT_F64, brain ? K_ELEMENT_BF16 : K_ELEMENT_F16},
                        .items = count};
  return k_launch_add(n, &how, &p, sizeof p, 2, (uint32_t[]){k_input(n, 0), k_output(n, 0)}, err);
}

heddle_status k_cast_to_result(k_node *n, const heddle_pvalue *x, uint32_t arg, heddle_error *err) {
  k_walk_plan w;
  const heddle_pvalue *y = n->ref.out;
  heddle_dtype from = x->dtype, to = y->dtype;
  heddle_status s = check_dims(n, err);
  if (s != HEDDLE_OK) return s;
  if (k_scalar_element(n, x->dtype) == K_ELEMENT_COUNT) return k_refuse_type(n, x->dtype, err);
  if (k_scalar_element(n, y->dtype) == K_ELEMENT_COUNT) return k_refuse_type(n, y->dtype, err);
  if (!region_shape_equal(x, y)) return ref_refuse_shape(&n->ref, err);
  if (is_whole(from) && is_whole(to)) { /* a sign matters where bits are added */
    to.code = HEDDLE_DTYPE_UINT;
    if (to.bits <= from.bits) from.code = HEDDLE_DTYPE_UINT;
  }
  if (region_dtype_equal(from, to)) return k_plan_copy_bits(n, err);
  if (x->dtype.bits == 64 && is_real(x->dtype) && y->dtype.bits == 16 && is_real(y->dtype)) return narrow(n, err);
  k_walk_init(&w, y);
  w.op = y->dtype.code == HEDDLE_DTYPE_BOOL        ? K_RAW_CAST_BOOL
         : x->dtype.code == HEDDLE_DTYPE_BOOL      ? K_RAW_CAST_TRUTH
         : is_real(x->dtype) && !is_real(y->dtype) ? K_RAW_CAST_WHOLE
                                                   : K_RAW_CAST;
  w.type[0] = k_scalar_element(n, from);
  w.type_out = k_scalar_element(n, to);
  w.slot_out = k_output(n, 0);
  w.n_operands = 1;
  s = set_operand(n, &w, 0, x, arg, err);
  if (!K_IS_WORKSPACE(arg)) allow_in_place(n, 0);
  return s == HEDDLE_OK ? k_walk_add(n, &w, err) : s;
}

static bool is_narrow(const k_node *n) {
  return narrow_of(n->ref.in[0]->dtype) != 0 || narrow_of(n->ref.out->dtype) != 0;
}

static heddle_status plan_cast(k_node *n, heddle_error *err) {
  const heddle_dtype type = n->ref.out->dtype;
  char name[DTYPE_NAME_BYTES];
  int64_t to = 0;
  if (is_narrow(n)) return k_plan_cast_narrow(n, err);
  heddle_status s = region_attr_int(n->ref.node, "to", 0, &to, err);
  if (s != HEDDLE_OK) return s;
  if (type.bits == 16 && is_real(type) ? to != (type.code == HEDDLE_DTYPE_FLOAT ? 10 : 16)
                                       : ref_type_of_onnx(to) != ref_type_of(type))
    return ref_refuse(&n->ref, err, "it does not cast to %s", region_dtype_name(type, name));
  return k_cast_to_result(n, n->ref.in[0], k_input(n, 0), err);
}

static heddle_status plan_cast_like(k_node *n, heddle_error *err) {
  if (is_narrow(n)) return k_plan_cast_narrow(n, err);
  if (!region_dtype_equal(n->ref.out->dtype, n->ref.in[1]->dtype))
    return ref_refuse(&n->ref, err, "its result is of another type than operand 1");
  return k_cast_to_result(n, n->ref.in[0], k_input(n, 0), err);
}
