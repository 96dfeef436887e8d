/* The calls of plan_portable.h. */
#include "plan_portable.h"

/* Of REF_TYPE_* and MORE_TYPE_*: the bit in a set of types, and the element. */
static const struct {
  uint32_t bit;
  uint8_t element;
} types[] = {
#define TYPE(constant) \
  { HEDDLE__TYPE(constant), K_ELEMENT_##constant }
    [REF_TYPE_F32] = TYPE(F32),
    [REF_TYPE_F64] = TYPE(F64),
    [REF_TYPE_I8] = TYPE(I8),
    [REF_TYPE_I16] = TYPE(I16),
    [REF_TYPE_I32] = TYPE(I32),
    [REF_TYPE_I64] = TYPE(I64),
    [REF_TYPE_U8] = TYPE(U8),
    [REF_TYPE_U16] = TYPE(U16),
    [REF_TYPE_U32] = TYPE(U32),
    [REF_TYPE_U64] = TYPE(U64),
    [REF_TYPE_BOOL] = {HEDDLE__TYPE(BOOL), K_ELEMENT_B8},
    [MORE_TYPE_F16] = TYPE(F16),
    [MORE_TYPE_BF16] = TYPE(BF16),
#undef TYPE
};

static heddle_status check_type(const k_node *n, int type, heddle_error *err) {
  char name[DTYPE_NAME_BYTES];
  if (type < (int)(sizeof types / sizeof types[0]) && (types[type].bit & n->types) != 0) return HEDDLE_OK;
  return ref_refuse(&n->ref, err, "there is no kernel for %s", region_dtype_name(n->ref.in[0]->dtype, name));
}

uint8_t k_element_or_none(const k_node *n, heddle_dtype d) {
  const int type = more_type_of(d);
  if (type == REF_TYPE_NONE || type >= (int)(sizeof types / sizeof types[0])) return K_ELEMENT_COUNT;
  return type == REF_TYPE_F64 && (n->plan->features & K_HAS_F64) == 0 ? K_ELEMENT_COUNT : types[type].element;
}

heddle_status k_operand_element(const k_node *n, uint32_t k, uint8_t *out, heddle_error *err) {
  const int type = more_type_of(n->ref.in[k]->dtype);
  const heddle_status s = check_type(n, type, err);
  return s == HEDDLE_OK ? k_element_of(n, (uint32_t)type, out, err) : s;
}

heddle_status k_more_of(k_node *n, more_op *m, heddle_error *err) {
  bool known = false;
  const heddle_status s = more_plan_node(&n->ref, m, NULL, &known, err);
  if (!known) return ref_refuse(&n->ref, err, "it is of no opset");
  for (uint32_t k = 0; s == HEDDLE_OK && (n->entry->flags & K_ANY) == 0 && k < MORE_IN; k++)
    if ((k < m->n_in && m->in[k].here && narrow_is(m->in[k].type)) ||
        (k < m->n_out && m->out[k].here && narrow_is(m->out[k].type)))
      return ref_refuse(&n->ref, err, "there is no kernel for types of 8 bits and less but integers");
  return s == HEDDLE_OK && m->in[0].here && (n->entry->flags & K_ANY) == 0 ? check_type(n, m->in[0].type, err) : s;
}

heddle_status k_or_table(k_node *n, uint32_t k, int type, int64_t count, double value, uint32_t *arg,
                         heddle_error *err) {
  void *table = NULL;
  if (n->ref.in[k] != NULL) {
    *arg = k_input(n, k);
    return HEDDLE_OK;
  }
  *arg = K_TABLE;
  heddle_status s = k_table_new(n, (uint64_t)count * more_type_bytes(type), &table, err);
  for (int64_t i = 0; i < count && s == HEDDLE_OK; i++) more_store(type, table, i, value);
  return s;
}

uint8_t k_word_element(const more_value *v) {
  return v->size == 1 ? K_ELEMENT_W1 : v->size == 2 ? K_ELEMENT_W2 : v->size == 4 ? K_ELEMENT_W4 : K_ELEMENT_W8;
}

uint8_t k_words_of(uint64_t bytes, int64_t *words) {
  uint8_t type = K_ELEMENT_W1;
  while (type < K_ELEMENT_W8 && bytes % (2 * k_element_bytes[type]) == 0) type++;
  *words = (int64_t)(bytes / k_element_bytes[type]);
  return type;
}

heddle_status k_element_of(const k_node *n, uint32_t type, uint8_t *out, heddle_error *err) {
  *out = types[type].element;
  if (type == REF_TYPE_F64 && (n->plan->features & K_HAS_F64) == 0)
    return ref_refuse(&n->ref, err, "the device does not compute in float64");
  return HEDDLE_OK;
}

uint8_t k_unsigned_element(uint8_t type) {
  return type >= K_ELEMENT_I8 && type <= K_ELEMENT_I64 ? (uint8_t)(type + K_ELEMENT_U8 - K_ELEMENT_I8) : type;
}

heddle_status k_launch_add(k_node *n, const k_launch *how, const void *params, uint64_t params_bytes, uint32_t n_args,
                           const uint32_t *args, heddle_error *err) {
  k_step *step = NULL;
  const uint64_t least = k_limit(n), limit = how->limit > least ? how->limit : least;
  if (how->items == 0) return HEDDLE_OK;
  heddle_status s = k_kernel_add(n->plan, how->kernel, k_groups(how->items), limit, &step, err);
  if (s != HEDDLE_OK) return s;
  step->code.n_types = how->n_types;
  memcpy(step->code.types, how->types, sizeof step->code.types);
  step->code.variant = how->variant;
  step->turns = how->turns;
  memcpy(&step->params, params, params_bytes);
  step->params_bytes = params_bytes;
  step->param_ints = (uint32_t)((params_bytes - how->floats * sizeof(float)) / sizeof(int64_t));
  step->n_args = n_args;
  memcpy(step->args, args, n_args * sizeof *args);
  n->plan->work += (double)how->items * (2.0 + how->turns);
  return HEDDLE_OK;
}
