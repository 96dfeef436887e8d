/* Elementwise operators: the kernels same, flat and walk of elementwise.cl, for each combination of expression and types a
 * program of its own. What data movement shares with them is k_walk_add. */
#include "plan_elementwise.h"

#include "plugins/common/ref/types.h"

/* How an operator is planned. */
enum {
  SAME = 0, /* result has the operands' type */
  TO_BOOL,  /* compares: operands of one type, a bool result */
  LOGIC,    /* bool operands and result */
  VARIADIC, /* SAME for any number of operands, pair by pair */
  POW,      /* the exponent may be of another type */
};

static heddle_status plan_ew(k_node *n, heddle_error *err);
static heddle_status plan_clip(k_node *n, heddle_error *err);
static heddle_status plan_gelu(k_node *n, heddle_error *err);
static heddle_status plan_where(k_node *n, heddle_error *err);
static heddle_status plan_cast(k_node *n, heddle_error *err);

/* name, types, plan, expression, the integers' expression, kind */
const k_entry k_elementwise_table[] = {
    {"Abs", HEDDLE__TYPES_COMMON, plan_ew, "FABS", "IABS", SAME},
    {"Add", HEDDLE__TYPES_COMMON, plan_ew, "ADD", NULL, SAME},
    {"And", HEDDLE__TYPES_BOOL, plan_ew, "AND", NULL, LOGIC},
    {"Cast", HEDDLE__TYPES_CASTS, plan_cast, "CAST", NULL, SAME},
    {"Clip", HEDDLE__TYPES_COMMON, plan_clip, "CLIP", NULL, SAME},
    {"Div", HEDDLE__TYPES_COMMON, plan_ew, "DIV", "IDIV", SAME},
    {"Elu", HEDDLE__TYPES_F32, plan_ew, "ELU", "", SAME},
    {"Equal", HEDDLE__TYPES_COMMON | HEDDLE__TYPES_BOOL, plan_ew, "EQUAL", NULL, TO_BOOL},
    {"Erf", HEDDLE__TYPES_F32, plan_ew, "ERF", "", SAME},
    {"Exp", HEDDLE__TYPES_F32, plan_ew, "EXP", "", SAME},
    {"Greater", HEDDLE__TYPES_COMMON, plan_ew, "GREATER", NULL, TO_BOOL},
    {"GreaterOrEqual", HEDDLE__TYPES_COMMON, plan_ew, "GREATER_OR_EQUAL", NULL, TO_BOOL},
    {"HardSigmoid", HEDDLE__TYPES_F32, plan_ew, "HARD_SIGMOID", "", SAME},
    {"HardSwish", HEDDLE__TYPES_F32, plan_ew, "HARD_SWISH", "", SAME},
    {"LeakyRelu", HEDDLE__TYPES_F32, plan_ew, "LEAKY_RELU", "", SAME},
    {"Less", HEDDLE__TYPES_COMMON, plan_ew, "LESS", NULL, TO_BOOL},
    {"LessOrEqual", HEDDLE__TYPES_COMMON, plan_ew, "LESS_OR_EQUAL", NULL, TO_BOOL},
    {"Log", HEDDLE__TYPES_F32, plan_ew, "LOG", "", SAME},
    {"Max", HEDDLE__TYPES_COMMON, plan_ew, "MAX", NULL, VARIADIC},
    {"Min", HEDDLE__TYPES_COMMON, plan_ew, "MIN", NULL, VARIADIC},
    {"Mul", HEDDLE__TYPES_COMMON, plan_ew, "MUL", NULL, SAME},
    {"Neg", HEDDLE__TYPES_COMMON, plan_ew, "FNEG", "NEG", SAME},
    {"Not", HEDDLE__TYPES_BOOL, plan_ew, "NOT", NULL, LOGIC},
    {"Or", HEDDLE__TYPES_BOOL, plan_ew, "OR", NULL, LOGIC},
    {"PRelu", HEDDLE__TYPES_COMMON, plan_ew, "PRELU", NULL, SAME},
    {"Pow", HEDDLE__TYPES_COMMON, plan_ew, "POW", "IPOW", POW},
    {"Relu", HEDDLE__TYPES_COMMON, plan_ew, "RELU", NULL, SAME},
    {"Sigmoid", HEDDLE__TYPES_F32, plan_ew, "SIGMOID", "", SAME},
    {"Sqrt", HEDDLE__TYPES_F32, plan_ew, "SQRT", "", SAME},
    {"Sub", HEDDLE__TYPES_COMMON, plan_ew, "SUB", NULL, SAME},
    {"Tanh", HEDDLE__TYPES_F32, plan_ew, "TANH", "", SAME},
    {"Where", HEDDLE__TYPES_BYTES, plan_where, "WHERE", NULL, SAME},
    {"Xor", HEDDLE__TYPES_BOOL, plan_ew, "XOR", NULL, LOGIC},
    {0},
};

const k_entry k_own_table[] = {
    {"FusedElementwise", HEDDLE__TYPES_F32, k_plan_fused, NULL, NULL, SAME},
    {"Gelu", HEDDLE__TYPES_F32, plan_gelu, "GELU", "", SAME},
    {0},
};

/* ---------------------------------------------------------------- types */

const char *k_type_word(heddle_dtype d) {
  static const char *const words[] = {"float", NULL,     "schar", "short", "int",   "long",
                                      "uchar", "ushort", "uint",  NULL,    "uchar", NULL};
  return words[ref_type_of(d)];
}

const char *k_cast_word(const k_node *n, heddle_dtype d) {
  if (dtype_is(d, HEDDLE_DTYPE_FLOAT, 64)) return (n->plan->features & K_HAS_F64) != 0 ? "double" : NULL;
  return dtype_is(d, HEDDLE_DTYPE_UINT, 64) ? "ulong" : k_type_word(d);
}

const char *k_wrapping_word(heddle_dtype d) {
  if (d.code != HEDDLE_DTYPE_INT && d.code != HEDDLE_DTYPE_UINT)
    return dtype_is(d, HEDDLE_DTYPE_FLOAT, 64) ? "double" : k_type_word(d);
  return d.bits == 64 ? "ulong" : "uint";
}

heddle_status k_refuse_type(const k_node *n, heddle_dtype d, heddle_error *err) {
  char name[DTYPE_NAME_BYTES], types[HEDDLE__TYPES_TEXT];
  if (dtype_is(d, HEDDLE_DTYPE_FLOAT, 64)) return ref_refuse(&n->ref, err, "this device does not compute in float64");
  return ref_refuse(&n->ref, err, "it does not take %s; it takes %s", dtype_name(d, name),
                    heddle__types_text(n->entry->types, types));
}

const char *k_bytes_word(heddle_dtype d) {
  switch (dtype_bytes(d)) {
  case 1: return "uchar";
  case 2: return "ushort";
  case 4: return "uint";
  case 8: return "ulong";
  default: return NULL;
  }
}

const char *k_word_of(uint64_t bytes, int64_t *words) {
  static const char *const words_of[] = {"uchar", "ushort", "uint", "ulong"};
  int size = 0;
  while (size < 3 && bytes % (UINT64_C(2) << size) == 0) size++;
  *words = (int64_t)(bytes >> size);
  return words_of[size];
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
  const bool flat = is_flat(w);
  bool same = flat && w->dims == 1;
  for (uint32_t k = 0; k < w->n_operands && same; k++) same = w->step[k][0] == 1;
  const char *t1 = w->n_operands > 1 ? w->type[1] : w->type[0], *t2 = w->n_operands > 2 ? w->type[2] : w->type[0];
  heddle_status s = k_kernel_add(n->plan, "elementwise",
                                 same   ? "same"
                                 : flat ? "flat"
                                        : "walk",
                                 k_groups(count), limit, "-DN_IN=%u -DT0=%s -DT1=%s -DT2=%s -DTO=%s -DU=%s -DOP=%s",
                                 &step, err, w->n_operands, w->type[0], t1, t2, w->type_out, w->type_wrap, w->word);
  if (s != HEDDLE_OK) return s;
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
  if (!shape_broadcast_strides(value, n->ref.out, w->step[k])) return ref_refuse_shape(&n->ref, err);
  w->slot[k] = slot;
  return HEDDLE_OK;
}

/* An operand whose elements lie where the result's do, and have their size, may be overwritten. */
static void allow_in_place(k_node *n, uint32_t k) {
  const heddle_pvalue *value = node_input(n->ref.region, n->ref.node, k);
  k_plan *plan = n->plan;
  const int32_t slot = (int32_t)k_input(n, k);
  if (plan->n_pairs >= K_PAIRS || !shape_equal(value, n->ref.out) ||
      dtype_bytes(value->dtype) != dtype_bytes(n->ref.out->dtype)) {
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
      const heddle_pvalue *v = node_input(n->ref.region, n->ref.node, k);
      if (v == NULL) continue;
      const int32_t at = i - (out->ndim - v->ndim);
      if (v->ndim > out->ndim) return false;
      if (at >= 0 && v->shape[at] != 1) want = v->shape[at];
    }
    if (want != out->shape[i]) return false;
  }
  for (uint32_t k = 0; k < n->ref.node->n_inputs; k++) {
    const heddle_pvalue *v = node_input(n->ref.region, n->ref.node, k);
    if (v != NULL && v->ndim == out->ndim) return true;
  }
  return false;
}

/* Types of operands and result for an entry; sets the expression. */
static heddle_status check_types(const k_node *n, k_walk_plan *w, heddle_error *err) {
  const k_entry *e = n->entry;
  const heddle_dtype type = n->ref.in[0]->dtype, out = n->ref.out->dtype;
  const bool is_float = dtype_is(type, HEDDLE_DTYPE_FLOAT, 32), is_bool = dtype_is(type, HEDDLE_DTYPE_BOOL, 8);
  const bool is_int = !is_float && !is_bool && k_type_word(type) != NULL;
  char name[DTYPE_NAME_BYTES], types[HEDDLE__TYPES_TEXT];
  w->word = is_int && e->word_int != NULL ? e->word_int : e->word;
  if (type.code == HEDDLE_DTYPE_UINT && strcmp(w->word, "IDIV") == 0) w->word = "UDIV";
  const bool bool_ok = e->kind == LOGIC || strcmp(e->word, "EQUAL") == 0;
  if (!(is_bool ? bool_ok : e->kind != LOGIC && (is_float || (is_int && w->word[0] != '\0'))))
    return ref_refuse(&n->ref, err, "it takes %s", heddle__types_text(e->types, types));
  for (uint32_t k = 1; k < n->ref.node->n_inputs; k++) {
    const heddle_pvalue *v = node_input(n->ref.region, n->ref.node, k);
    if (v == NULL || dtype_equal(v->dtype, type)) continue;
    if (e->kind == POW && k_cast_word(n, v->dtype) != NULL) continue;
    return ref_refuse(&n->ref, err, "operand %u is %s; the operands have one type", k, dtype_name(v->dtype, name));
  }
  if (e->kind == TO_BOOL || e->kind == LOGIC) {
    if (!dtype_is(out, HEDDLE_DTYPE_BOOL, 8))
      return ref_refuse(&n->ref, err, "the result is %s; it gives bool", dtype_name(out, name));
  } else if (!dtype_equal(out, type)) {
    return ref_refuse(&n->ref, err, "the result is %s; it has the operands' type", dtype_name(out, name));
  }
  if (is_bool && strcmp(w->word, "EQUAL") == 0) w->word = "SAME_TRUTH";
  w->type_out = k_type_word(out);
  w->type_wrap = k_wrapping_word(out);
  return HEDDLE_OK;
}

static heddle_status set_attributes(const k_node *n, k_walk_plan *w, heddle_error *err) {
  const char *op = n->entry->op;
  double alpha = strcmp(op, "LeakyRelu") == 0 ? 0.01 : strcmp(op, "HardSigmoid") == 0 ? 0.2 : 1.0, beta = 0.5;
  heddle_status s = attr_float(n->ref.node, "alpha", alpha, &alpha, err);
  if (s == HEDDLE_OK) s = attr_float(n->ref.node, "beta", beta, &beta, err);
  w->alpha = (float)alpha;
  w->beta = (float)beta;
  return s;
}

/* One kernel of the operands first .. first + count; of slots where from is the result, which then is operand 0. */
static heddle_status add_one(k_node *n, const k_walk_plan *like, uint32_t first, uint32_t count, bool onto_result,
                             heddle_error *err) {
  k_walk_plan w;
  heddle_status s = HEDDLE_OK;
  k_walk_init(&w, n->ref.out);
  w.word = like->word;
  w.type_out = like->type_out;
  w.type_wrap = like->type_wrap;
  w.alpha = like->alpha;
  w.beta = like->beta;
  w.slot_out = k_output(n, 0);
  if (onto_result) {
    w.type[0] = w.type_out;
    s = set_operand(n, &w, w.n_operands++, n->ref.out, w.slot_out, err);
  }
  for (uint32_t k = first; k < first + count && s == HEDDLE_OK; k++) {
    const heddle_pvalue *v = node_input(n->ref.region, n->ref.node, k);
    w.type[w.n_operands] = k_cast_word(n, v->dtype);
    s = set_operand(n, &w, w.n_operands++, v, k_input(n, k), err);
  }
  return s == HEDDLE_OK ? k_walk_add(n, &w, err) : s;
}

static heddle_status plan_ew(k_node *n, heddle_error *err) {
  k_walk_plan like = {0};
  const uint32_t count = n->ref.node->n_inputs;
  heddle_status s = check_dims(n, err);
  if (s == HEDDLE_OK) s = check_types(n, &like, err);
  if (s == HEDDLE_OK) s = set_attributes(n, &like, err);
  if (s != HEDDLE_OK) return s;
  if (!out_is_broadcast(n)) return ref_refuse_shape(&n->ref, err);
  if (strcmp(n->entry->op, "PRelu") == 0 && !shape_equal(n->ref.in[0], n->ref.out)) {
    return ref_refuse_shape(&n->ref, err);
  }
  if (n->entry->kind == VARIADIC && count == 1) return k_plan_copy(n, err);
  s = add_one(n, &like, 0, count > 2 ? 2 : count, false, err);
  for (uint32_t k = 2; k < count && s == HEDDLE_OK; k++) s = add_one(n, &like, k, 1, true, err);
  /* With a third operand the first step would overwrite what a later one reads. */
  for (uint32_t k = 0; k < count && k < 2 && s == HEDDLE_OK; k++) {
    bool later = false;
    for (uint32_t i = 2; i < count; i++) later = later || k_input(n, i) == k_input(n, k);
    if (!later) allow_in_place(n, k);
  }
  return s;
}

static heddle_status plan_gelu(k_node *n, heddle_error *err) {
  const char *how = "none";
  heddle_status s = attr_string(n->ref.node, "approximate", "none", &how, err);
  if (s != HEDDLE_OK) return s;
  if (strcmp(how, "none") != 0 && strcmp(how, "tanh") != 0)
    return ref_refuse(&n->ref, err, "approximate '%s' is not known", how);
  k_entry tanh_entry = *n->entry;
  const k_entry *own = n->entry;
  tanh_entry.word = "GELU_TANH";
  if (how[0] == 't') n->entry = &tanh_entry;
  s = plan_ew(n, err);
  n->entry = own;
  return s;
}

static heddle_status plan_clip(k_node *n, heddle_error *err) {
  k_walk_plan w;
  uint64_t one = 0;
  const bool low = n->ref.in[1] != NULL, high = n->ref.in[2] != NULL;
  heddle_status s = check_dims(n, err);
  if (s != HEDDLE_OK) return s;
  k_walk_init(&w, n->ref.out);
  s = check_types(n, &w, err);
  if (s != HEDDLE_OK) return s;
  if (!shape_equal(n->ref.in[0], n->ref.out)) return ref_refuse_shape(&n->ref, err);
  if (!low && !high) return k_plan_copy(n, err);
  w.word = low && high ? "CLIP" : low ? "CLIP_LOW" : "CLIP_HIGH";
  w.slot_out = k_output(n, 0);
  for (uint32_t k = 0; k < 3; k++) {
    if (n->ref.in[k] == NULL) continue;
    if (k > 0 && (!value_count(n->ref.in[k], &one) || one != 1))
      return ref_refuse(&n->ref, err, "operand %u must be one number", k);
    w.type[w.n_operands] = w.type_out;
    w.slot[w.n_operands] = k_input(n, k);
    if (k == 0) memcpy(w.step[0], w.step[K_OPERANDS], sizeof w.step[0]);
    w.n_operands++;
  }
  value_count(n->ref.out, &one);
  if (one > 1) allow_in_place(n, 0); /* else a bound could be the same number */
  return k_walk_add(n, &w, err);
}

static heddle_status plan_where(k_node *n, heddle_error *err) {
  k_walk_plan w;
  const heddle_dtype type = n->ref.out->dtype;
  const char *word = k_bytes_word(type);
  heddle_status s = check_dims(n, err);
  if (s != HEDDLE_OK) return s;
  if (!dtype_is(n->ref.in[0]->dtype, HEDDLE_DTYPE_BOOL, 8)) return ref_refuse(&n->ref, err, "the condition is bool");
  if (word == NULL || !dtype_equal(n->ref.in[1]->dtype, type) || !dtype_equal(n->ref.in[2]->dtype, type))
    return ref_refuse(&n->ref, err, "it takes operands and result of one type, of 1, 2, 4 or 8 bytes");
  if (!out_is_broadcast(n)) return ref_refuse_shape(&n->ref, err);
  k_walk_init(&w, n->ref.out);
  w.word = "WHERE";
  w.type_out = w.type_wrap = word;
  w.slot_out = k_output(n, 0);
  w.n_operands = 3;
  for (uint32_t k = 0; k < 3 && s == HEDDLE_OK; k++) {
    w.type[k] = k == 0 ? "uchar" : word;
    s = set_operand(n, &w, k, n->ref.in[k], k_input(n, k), err);
    if (s == HEDDLE_OK) allow_in_place(n, k);
  }
  return s == HEDDLE_OK ? k_walk_add(n, &w, err) : s;
}

static heddle_status plan_cast(k_node *n, heddle_error *err) {
  k_walk_plan w;
  const heddle_pvalue *x = n->ref.in[0], *y = n->ref.out;
  char name[DTYPE_NAME_BYTES];
  int64_t to = 0;
  heddle_status s = check_dims(n, err);
  if (s == HEDDLE_OK) s = attr_int(n->ref.node, "to", 0, &to, err);
  if (s != HEDDLE_OK) return s;
  if (k_cast_word(n, x->dtype) == NULL) return k_refuse_type(n, x->dtype, err);
  if (k_cast_word(n, y->dtype) == NULL) return k_refuse_type(n, y->dtype, err);
  if (ref_type_of_onnx(to) != ref_type_of(y->dtype))
    return ref_refuse(&n->ref, err, "it does not cast to %s", dtype_name(y->dtype, name));
  if (!shape_equal(x, y)) return ref_refuse_shape(&n->ref, err);
  if (dtype_equal(x->dtype, y->dtype)) return k_plan_copy(n, err);
  k_walk_init(&w, y);
  w.word = y->dtype.code == HEDDLE_DTYPE_BOOL                                           ? "CAST_BOOL"
           : x->dtype.code == HEDDLE_DTYPE_BOOL                                         ? "CAST_TRUTH"
           : x->dtype.code == HEDDLE_DTYPE_FLOAT && y->dtype.code != HEDDLE_DTYPE_FLOAT ? "CAST_WHOLE"
                                                                                        : "CAST";
  w.type[0] = k_cast_word(n, x->dtype);
  w.type_out = k_cast_word(n, y->dtype);
  w.type_wrap = k_wrapping_word(y->dtype);
  w.slot_out = k_output(n, 0);
  w.n_operands = 1;
  s = set_operand(n, &w, 0, x, k_input(n, 0), err);
  allow_in_place(n, 0);
  return s == HEDDLE_OK ? k_walk_add(n, &w, err) : s;
}
