/* Nodes of float16 and bfloat16 whose kernels compute with float32: operands are widened into the workspace, the kernels run
 * there, and results are rounded once. */
#include "plan_portable.h"

/* A launch of to_workspace or from_workspace for a value of the region: between its argument and its part. */
static heddle_status convert(k_node *n, uint8_t kernel, const heddle_pvalue *value, uint32_t from, uint32_t to,
                             heddle_error *err) {
  uint64_t count = 0;
  region_value_count(value, &count);
  const bool brain = value->dtype.code == HEDDLE_DTYPE_BFLOAT;
  const k_general p = {.count = (int64_t)count, .step = 1};
  const k_launch how = {
      .kernel = kernel, .n_types = 1, .types = {brain ? K_ELEMENT_BF16 : K_ELEMENT_F16}, .items = count};
  return k_launch_add(n, &how, &p, sizeof p, 2, (uint32_t[]){from, to}, err);
}

/* The part of the workspace that holds a value; parts are those of the inputs and then of the outputs. */
static heddle_status part_of(k_node *n, uint32_t i, const heddle_pvalue *value, heddle_error *err) {
  uint64_t count = 0;
  if (i >= K_WORKSPACES) return ref_refuse(&n->ref, err, "it has more operands and results than are widened here");
  if (!region_value_count(value, &count) || count > INT32_MAX)
    return ref_refuse(&n->ref, err, "an operand has over 2147483647 elements");
  n->plan->part_bytes[i] = count * sizeof(float);
  return HEDDLE_OK;
}

static bool reads(const k_plan *plan, uint32_t first, uint32_t arg) {
  for (uint32_t i = first; i < plan->n_steps; i++) {
    for (uint32_t k = 0; k < plan->steps[i].n_args; k++) {
      if (plan->steps[i].args[k] == arg) return true;
    }
  }
  return false;
}

/* Puts parts in the place of operands and results that are halves, in the steps from first on, whose own parts come behind. */
static void use_parts(const heddle_pregion *region, k_plan *plan, uint32_t first) {
  const uint32_t shift = region->n_inputs + region->n_outputs;
  for (uint32_t i = first; i < plan->n_steps; i++) {
    for (uint32_t k = 0; k < plan->steps[i].n_args; k++) {
      uint32_t *arg = &plan->steps[i].args[k];
      if (K_IS_WORKSPACE(*arg)) *arg += shift;
      if (*arg == K_TABLE || K_IS_WORKSPACE(*arg)) continue;
      const bool out = (*arg & K_OUTPUT) != 0;
      const uint32_t at = *arg & ~K_OUTPUT;
      const heddle_pvalue *value = region_value(region, out ? region->outputs[at] : region->inputs[at]);
      if (value != NULL && more_is_half(value->dtype)) *arg = K_WORKSPACE + (out ? region->n_inputs + at : at);
    }
  }
}

/* The parts that the float32 plan has itself. */
static heddle_status keep_parts(k_node *n, const k_plan *looked, heddle_error *err) {
  const uint32_t shift = n->ref.region->n_inputs + n->ref.region->n_outputs;
  for (uint32_t i = 0; i < K_WORKSPACES; i++) {
    if (looked->part_bytes[i] == 0) continue;
    if (shift + i >= K_WORKSPACES)
      return ref_refuse(&n->ref, err, "it has more operands and results than are widened here");
    n->plan->part_bytes[shift + i] = looked->part_bytes[i];
  }
  return HEDDLE_OK;
}

heddle_status k_plan_widened_if_mixed(k_node *n, bool *widened, heddle_error *err) {
  const heddle_pregion *region = n->ref.region;
  const heddle_pvalue *first = NULL;
  *widened = false;
  for (uint32_t i = 0; i < region->n_inputs; i++) {
    const heddle_pvalue *value = region_value(region, region->inputs[i]);
    if (value == NULL || (value->dtype.code != HEDDLE_DTYPE_FLOAT && value->dtype.code != HEDDLE_DTYPE_BFLOAT))
      continue;
    if (first == NULL) first = value;
    if (!region_dtype_equal(value->dtype, first->dtype)) return k_plan_widened(n, widened, err);
  }
  return HEDDLE_OK;
}

heddle_status k_plan_widened(k_node *n, bool *widened, heddle_error *err) {
  const heddle_pregion *region = n->ref.region;
  more_widened w;
  k_plan *plan = n->plan;
  k_node inner = *n;
  k_plan looked = *plan;
  *widened = more_widen(region, &w);
  if (!*widened) return HEDDLE_OK;
  inner.ref.region = &w.region;
  for (uint32_t k = 0; k < REF_OPERANDS; k++) inner.ref.in[k] = region_node_input(&w.region, n->ref.node, k);
  inner.ref.out = region_node_output(&w.region, n->ref.node, 0);

  /* The float32 plan first, in a plan of its own, since what it reads is what is widened. */
  inner.plan = &looked;
  heddle_status s = n->entry->plan(&inner, err);
  for (uint32_t i = 0; i < region->n_inputs && s == HEDDLE_OK; i++) {
    const heddle_pvalue *value = region_value(region, region->inputs[i]);
    if (!more_is_half(value->dtype) || !reads(&looked, 0, i)) continue;
    s = part_of(n, i, value, err);
    if (s == HEDDLE_OK) s = convert(n, KERNEL_to_workspace, value, i, K_WORKSPACE + i, err);
  }
  const uint32_t first = plan->n_steps;
  for (uint32_t i = 0; i < looked.n_steps && s == HEDDLE_OK; i++) {
    k_step *step = k_step_add(plan, err);
    if (step == NULL) s = HEDDLE_ENOMEM;
    else {
      *step = looked.steps[i];
      looked.steps[i].chain = NULL; /* the step's now */
    }
  }
  if (s == HEDDLE_OK) s = keep_parts(n, &looked, err);
  plan->table = looked.table;
  plan->table_bytes = looked.table_bytes;
  plan->work += looked.work;
  looked.table = NULL;
  if (s == HEDDLE_OK) use_parts(region, plan, first);
  for (uint32_t i = 0; i < region->n_outputs && s == HEDDLE_OK; i++) {
    const heddle_pvalue *value = region_value(region, region->outputs[i]);
    const uint32_t part = region->n_inputs + i;
    if (!more_is_half(value->dtype)) continue;
    s = part_of(n, part, value, err);
    if (s == HEDDLE_OK) s = convert(n, KERNEL_from_workspace, value, K_WORKSPACE + part, i | K_OUTPUT, err);
  }
  k_plan_free(&looked);
  return s;
}
