/* The calls of plan_portable.h. */
#include "plan_portable.h"

const char *const k_element_names[K_ELEMENT_COUNT] = {
#define NAME(constant, name, bytes) name,
    K_ELEMENTS(NAME)
#undef NAME
};

const uint8_t k_element_bytes[K_ELEMENT_COUNT] = {
#define BYTES(constant, name, bytes) bytes,
    K_ELEMENTS(BYTES)
#undef BYTES
};

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

heddle_status k_more_of(k_node *n, more_op *m, heddle_error *err) {
  char name[DTYPE_NAME_BYTES];
  bool known = false;
  const heddle_status s = more_plan_node(&n->ref, m, NULL, &known, err);
  if (!known) return ref_refuse(&n->ref, err, "it is of no opset");
  for (uint32_t k = 0; s == HEDDLE_OK && (n->entry->types & K_ANY) == 0 && k < MORE_IN; k++)
    if ((k < m->n_in && m->in[k].here && narrow_is(m->in[k].type)) ||
        (k < m->n_out && m->out[k].here && narrow_is(m->out[k].type)))
      return ref_refuse(&n->ref, err, "there is no kernel for types of 8 bits and less but integers");
  if (s == HEDDLE_OK && m->in[0].here && (n->entry->types & K_ANY) == 0 &&
      (types[m->in[0].type].bit & n->entry->types) == 0)
    return ref_refuse(&n->ref, err, "there is no kernel for %s", region_dtype_name(n->ref.in[0]->dtype, name));
  return s;
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

heddle_status k_element_of(const k_node *n, uint32_t type, uint8_t *out, heddle_error *err) {
  *out = types[type].element;
  if (type == REF_TYPE_F64 && (n->plan->features & K_HAS_F64) == 0)
    return ref_refuse(&n->ref, err, "the device does not compute in float64");
  return HEDDLE_OK;
}

uint8_t k_unsigned_element(uint8_t type) {
  return type >= K_ELEMENT_I8 && type <= K_ELEMENT_I64 ? (uint8_t)(type + K_ELEMENT_U8 - K_ELEMENT_I8) : type;
}

static bool is_real(uint8_t type) {
  return type >= K_ELEMENT_F32 && type <= K_ELEMENT_BF16;
}

heddle_status k_launch_add(k_node *n, const k_launch *how, const void *params, uint64_t params_bytes, uint32_t n_args,
                           const uint32_t *args, heddle_error *err) {
  char options[K_OPTIONS_BYTES] = "";
  k_step *step = NULL;
  const uint64_t least = k_limit(n), limit = how->limit > least ? how->limit : least;
  if (how->items == 0) return HEDDLE_OK;
  for (uint32_t t = 0, used = 0; t < how->n_types; t++)
    used += (uint32_t)snprintf(options + used, sizeof options - used, " -DT%u=%s%s", t, k_element_names[how->types[t]],
                               !is_real(how->types[t]) ? ""
                               : t == 0                ? " -DT0_REAL"
                                                       : " -DT1_REAL");
  heddle_status s = k_kernel_add(n->plan, how->text, how->name, k_groups(how->items), limit, "%s", &step, err, options);
  if (s != HEDDLE_OK) return s;
  step->is_portable = true;
  step->n_types = how->n_types;
  memcpy(step->types, how->types, sizeof step->types);
  step->turns = how->turns;
  memcpy(&step->params, params, params_bytes);
  step->params_bytes = params_bytes;
  step->param_ints = (uint32_t)((params_bytes - how->floats * sizeof(float)) / sizeof(int64_t));
  step->n_args = n_args;
  memcpy(step->args, args, n_args * sizeof *args);
  n->plan->work += (double)how->items * (2.0 + how->turns);
  return HEDDLE_OK;
}
