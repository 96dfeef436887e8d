/* Nodes whose kernels compute in another type than operands and results have: float16 and bfloat16 by the plan of float32, and
 * operands of several types in one. Operands are converted into the workspace, the kernels run there, and results are
 * rounded once. */
#include "plan_portable.h"

/* What a plan sees of each value of the region, REF_TYPE_* or MORE_TYPE_*, in place of the value's own type. */
typedef struct seen {
  uint8_t types[MORE_WIDENED];
} seen;

static bool is_half(int type) {
  return type == MORE_TYPE_F16 || type == MORE_TYPE_BF16;
}

heddle_status k_convert_add(k_node *n, int from, int to, uint64_t count, uint32_t arg, uint32_t result,
                            heddle_error *err) {
  const bool widens = is_half(from) && to == REF_TYPE_F32, narrows = is_half(to) && from == REF_TYPE_F32;
  const k_general p = {.count = (int64_t)count, .step = 1};
  k_launch how = {.n_types = 1, .items = count};
  uint8_t types[2];
  heddle_status s = k_element_of(n, (uint32_t)from, &types[0], err);
  if (s == HEDDLE_OK) s = k_element_of(n, (uint32_t)to, &types[1], err);
  if (s != HEDDLE_OK) return s;
  if (count > INT32_MAX) return ref_refuse(&n->ref, err, "an operand has over 2147483647 elements");
  if (widens || narrows) {
    how.kernel = widens ? KERNEL_to_workspace : KERNEL_from_workspace;
    how.types[0] = types[widens ? 0 : 1];
  } else {
    how.kernel = is_half(to) ? KERNEL_narrow : KERNEL_convert;
    how.n_types = 2;
    memcpy(how.types, types, sizeof types);
  }
  return k_launch_add(n, &how, &p, sizeof p, 2, (uint32_t[]){arg, result}, err);
}

/* The part of the workspace that holds a value; parts are those of the inputs and then of the outputs. */
static heddle_status part_of(k_node *n, uint32_t i, int type, uint64_t count, heddle_error *err) {
  if (i >= K_WORKSPACES) return ref_refuse(&n->ref, err, "it has more operands and results than are converted here");
  n->plan->part_bytes[i] = count * more_type_bytes(type);
  return HEDDLE_OK;
}

static bool reads(const k_plan *plan, uint32_t arg) {
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    for (uint32_t k = 0; k < plan->steps[i].n_args; k++) {
      if (plan->steps[i].args[k] == arg) return true;
    }
  }
  return false;
}

static bool is_seen_as_it_is(const heddle_pregion *region, const seen *as, uint32_t index) {
  const heddle_pvalue *value = region_value(region, index);
  return value == NULL || more_type_of(value->dtype) == as->types[index];
}

/* Puts parts in the place of operands and results that are converted, in the steps from first on, whose own parts come
 * behind. */
static void use_parts(const heddle_pregion *region, const seen *as, k_plan *plan, uint32_t first) {
  const uint32_t shift = region->n_inputs + region->n_outputs;
  for (uint32_t i = first; i < plan->n_steps; i++) {
    for (uint32_t k = 0; k < plan->steps[i].n_args; k++) {
      uint32_t *arg = &plan->steps[i].args[k];
      if (K_IS_WORKSPACE(*arg)) *arg += shift;
      if (*arg == K_TABLE || K_IS_WORKSPACE(*arg)) continue;
      const bool out = (*arg & K_OUTPUT) != 0;
      const uint32_t at = *arg & ~K_OUTPUT;
      if (!is_seen_as_it_is(region, as, out ? region->outputs[at] : region->inputs[at]))
        *arg = K_WORKSPACE + (out ? region->n_inputs + at : at);
    }
  }
}

/* The parts that the inner plan has itself. */
static heddle_status keep_parts(k_node *n, const k_plan *looked, heddle_error *err) {
  const uint32_t shift = n->ref.region->n_inputs + n->ref.region->n_outputs;
  for (uint32_t i = 0; i < K_WORKSPACES; i++) {
    if (looked->part_bytes[i] == 0) continue;
    if (shift + i >= K_WORKSPACES)
      return ref_refuse(&n->ref, err, "it has more operands and results than are converted here");
    n->plan->part_bytes[shift + i] = looked->part_bytes[i];
  }
  return HEDDLE_OK;
}

/* The steps of the inner plan, which the outer one has from here on. */
static heddle_status take_steps(k_node *n, k_plan *looked, heddle_error *err) {
  for (uint32_t i = 0; i < looked->n_steps; i++) {
    k_step *step = k_step_add(n->plan, err);
    if (step == NULL) return HEDDLE_ENOMEM;
    *step = looked->steps[i];
    looked->steps[i].chain = NULL; /* the step's now */
  }
  n->plan->table = looked->table;
  n->plan->table_bytes = looked->table_bytes;
  n->plan->work += looked->work;
  looked->table = NULL;
  return keep_parts(n, looked, err);
}

static heddle_status convert_value(k_node *n, const seen *as, uint32_t at, bool out, heddle_error *err) {
  const heddle_pregion *region = n->ref.region;
  const uint32_t index = out ? region->outputs[at] : region->inputs[at];
  const uint32_t part = out ? region->n_inputs + at : at;
  const heddle_pvalue *value = region_value(region, index);
  const int own = more_type_of(value->dtype), type = as->types[index];
  uint64_t count = 0;
  region_value_count(value, &count);
  heddle_status s = part_of(n, part, type, count, err);
  if (s != HEDDLE_OK) return s;
  return out ? k_convert_add(n, type, own, count, K_WORKSPACE + part, at | K_OUTPUT, err)
             : k_convert_add(n, own, type, count, at, K_WORKSPACE + part, err);
}

/* The node's plan, which sees its values as w has them. It is made first, as what it reads is what is converted. */
static heddle_status plan_seen(k_node *n, const seen *as, more_widened *w, heddle_error *err) {
  const heddle_pregion *region = n->ref.region;
  k_plan *plan = n->plan, looked = *plan;
  k_node inner = *n;
  inner.ref.region = &w->region;
  for (uint32_t k = 0; k < REF_OPERANDS; k++) inner.ref.in[k] = region_node_input(&w->region, n->ref.node, k);
  inner.ref.out = region_node_output(&w->region, n->ref.node, 0);
  inner.plan = &looked;
  heddle_status s = n->entry->plan(&inner, err);
  for (uint32_t i = 0; i < region->n_inputs && s == HEDDLE_OK; i++) {
    if (!is_seen_as_it_is(region, as, region->inputs[i]) && reads(&looked, i)) s = convert_value(n, as, i, false, err);
  }
  const uint32_t first = plan->n_steps;
  if (s == HEDDLE_OK) s = take_steps(n, &looked, err);
  if (s == HEDDLE_OK) use_parts(region, as, plan, first);
  for (uint32_t i = 0; i < region->n_outputs && s == HEDDLE_OK; i++) {
    if (!is_seen_as_it_is(region, as, region->outputs[i])) s = convert_value(n, as, i, true, err);
  }
  k_plan_free(&looked);
  return s;
}

heddle_status k_plan_widened(k_node *n, bool *widened, heddle_error *err) {
  more_widened w;
  seen as;
  *widened = more_widen(n->ref.region, &w);
  if (!*widened) return HEDDLE_OK;
  for (uint32_t i = 0; i < w.region.values.count; i++) as.types[i] = (uint8_t)more_type_of(w.values[i].dtype);
  return plan_seen(n, &as, &w, err);
}

static bool is_real(const heddle_pvalue *value) {
  return value != NULL && (value->dtype.code == HEDDLE_DTYPE_FLOAT || value->dtype.code == HEDDLE_DTYPE_BFLOAT);
}
static bool is_whole(const heddle_pvalue *value) {
  return value != NULL && (value->dtype.code == HEDDLE_DTYPE_INT || value->dtype.code == HEDDLE_DTYPE_UINT);
}

heddle_status k_plan_in_one_type(k_node *n, uint32_t also, bool *converted, heddle_error *err) {
  const heddle_pregion *region = n->ref.region;
  const heddle_pvalue *first = NULL;
  more_widened w;
  seen as;
  bool wide = false;
  *converted = false;
  if (region->values.count > MORE_WIDENED) return HEDDLE_OK;
  for (uint32_t i = 0; i < region->n_inputs + region->n_outputs; i++) {
    const heddle_pvalue *value =
        region_value(region, i < region->n_inputs ? region->inputs[i] : region->outputs[i - region->n_inputs]);
    if (!is_real(value)) continue;
    if (first == NULL) first = value;
    wide |= value->dtype.bits == 64;
    *converted |= !region_dtype_equal(value->dtype, first->dtype);
  }
  const heddle_pvalue *other = region_node_input(region, n->ref.node, also);
  *converted |= is_whole(other);
  if (!*converted) return HEDDLE_OK;
  const int type = wide ? REF_TYPE_F64 : REF_TYPE_F32;
  for (uint32_t i = 0; i < region->values.count; i++) {
    const heddle_pvalue *value = region_value(region, i);
    w.values[i] = *value;
    as.types[i] = (uint8_t)more_type_of(value->dtype);
    if (as.types[i] == type || (!is_real(value) && (!is_whole(value) || value != other))) continue;
    as.types[i] = (uint8_t)type;
    w.values[i].dtype = more_dtype(type);
    w.values[i].data = NULL;
    w.values[i].data_bytes = 0;
  }
  w.region = *region;
  w.region.values = (heddle_parray){w.values, region->values.count, sizeof w.values[0]};
  return plan_seen(n, &as, &w, err);
}
