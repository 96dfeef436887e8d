/* The calls of plan.h: finds a region's node in the tables, checks what all operators have in common, and lets the
 * operator's plan add its steps. What an input is used for follows from the steps. */
#include "plan_op.h"

/* The last one is of domain "heddle". */
static const k_entry *const tables[] = {
    k_elementwise_table, k_contract_table, k_shape_table,     k_rows_table,   k_norm_table,     k_pool_table,
    k_pick_table,        k_along_table,    k_fill_table,      k_resize_table, k_select_table,   k_lines_table,
    k_losses_table,      k_general_table,  k_attention_table, k_signal_table, k_products_table, k_recurrent_table,
    k_tfidf_table,       k_quantize_table, k_random_table,    k_own_table};
enum { N_TABLES = sizeof tables / sizeof tables[0] };

static const k_entry *find_entry(const char *op, bool own) {
  for (uint32_t t = own ? N_TABLES - 1 : 0; t < (own ? N_TABLES : N_TABLES - 1); t++) {
    for (const k_entry *e = tables[t]; e->op != NULL; e++) {
      if (strcmp(e->op, op) == 0) return e;
    }
  }
  return k_scalar_entry(own, op);
}

heddle_status k_plan_list(heddle_list_fn list, void *sink, heddle_error *err) {
  for (uint32_t i = 0; i < heddle__operator_count; i++) {
    const heddle__operator *op = &heddle__operators[i];
    if (find_entry(op->name, op->own) == NULL) continue;
    heddle_status s = heddle__operator_list(op, op->types, list, sink, err);
    if (s != HEDDLE_OK) return s;
  }
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- for the families */

k_step *k_step_add(k_plan *plan, heddle_error *err) {
  const heddle_host *host = plan->host;
  if (plan->n_steps == plan->cap_steps) {
    uint32_t cap = plan->cap_steps > 0 ? 2 * plan->cap_steps : 2;
    k_step *steps = host->alloc(host->ctx, cap * sizeof *steps, _Alignof(k_step));
    if (steps == NULL) {
      p_fail(err, HEDDLE_ENOMEM, 0, "no memory to plan an operator");
      return NULL;
    }
    if (plan->n_steps > 0) memcpy(steps, plan->steps, plan->n_steps * sizeof *steps);
    host->free(host->ctx, plan->steps);
    plan->steps = steps;
    plan->cap_steps = cap;
  }
  k_step *step = &plan->steps[plan->n_steps++];
  memset(step, 0, sizeof *step);
  return step;
}

heddle_status k_kernel_add(k_plan *plan, uint8_t kernel, uint64_t groups, uint64_t index_limit, k_step **out,
                           heddle_error *err) {
  k_step *step = k_step_add(plan, err);
  if (step == NULL) return HEDDLE_ENOMEM;
  step->kind = K_STEP_KERNEL;
  step->code.kernel = kernel;
  step->code.wide =
      index_limit >= UINT64_C(0x7ffff000); /* the last group may count past the end, and a tile's edge too */
  step->groups = groups;
  *out = step;
  return HEDDLE_OK;
}

const k_step *k_like(const k_node *n) {
  const k_plan *like = n->plan->like;
  const uint32_t at = n->plan->n_steps;
  return like != NULL && at < like->n_steps && like->steps[at].kind == K_STEP_KERNEL ? &like->steps[at] : NULL;
}

bool k_prefers(const k_node *n, uint8_t kernel, bool chosen) {
  const k_step *like = k_like(n);
  return like != NULL ? like->code.kernel == kernel : chosen;
}

uint32_t k_input(const k_node *n, uint32_t k) {
  return (uint32_t)region_input_slot(n->ref.region, n->ref.node->inputs[k]);
}

uint32_t k_output(const k_node *n, uint32_t k) {
  return (uint32_t)region_output_slot(n->ref.region, n->ref.node->outputs[k]) | K_OUTPUT;
}

void k_ref_op(const k_node *n, ref_op *op) {
  memset(op, 0, sizeof *op);
  for (uint32_t k = 0; k < REF_OPERANDS; k++) {
    if (n->ref.in[k] == NULL) continue;
    op->slot[k] = k_input(n, k);
    op->present |= UINT32_C(1) << k;
  }
  for (uint32_t k = 0; k < REF_RESULTS; k++) {
    const bool is_there = region_node_output(n->ref.region, n->ref.node, k) != NULL;
    op->result[k] = is_there ? k_output(n, k) & ~K_OUTPUT : UINT32_MAX;
  }
}

heddle_status k_table_new(k_node *n, uint64_t bytes, void **out, heddle_error *err) {
  k_plan *plan = n->plan;
  plan->table = plan->host->alloc(plan->host->ctx, bytes, 8);
  if (plan->table == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory to plan an operator");
  plan->table_bytes = bytes;
  *out = plan->table;
  return HEDDLE_OK;
}

uint64_t k_limit(const k_node *n) {
  uint64_t limit = 0, count = 0;
  for (uint32_t k = 0; k < REF_OPERANDS; k++) {
    if (n->ref.in[k] != NULL && region_value_count(n->ref.in[k], &count) && count > limit) limit = count;
  }
  return region_value_count(n->ref.out, &count) && count > limit ? count : limit;
}

void k_allow_in_place(k_node *n, uint32_t k) {
  k_plan *plan = n->plan;
  plan->pairs[2 * plan->n_pairs] = (int32_t)k_input(n, k);
  plan->pairs[2 * plan->n_pairs++ + 1] = 0;
}

void k_allow_extending(k_node *n, uint32_t k, uint32_t r) {
  k_plan *plan = n->plan;
  int32_t *entry = plan->extends + 3 * plan->n_extends++;
  entry[0] = (int32_t)k_input(n, k);
  entry[1] = (int32_t)(k_output(n, r) & ~K_OUTPUT);
  entry[2] = -1;
}

/* ---------------------------------------------------------------- from region to plan */

static heddle_status check_value(const k_node *n, const heddle_pvalue *value, const char *what, uint32_t k,
                                 heddle_error *err) {
  uint64_t bytes = 0;
  if (!region_value_bytes(value, &bytes)) return ref_refuse(&n->ref, err, "%s %u has no size in bytes", what, k);
  if (value->layout != 0) return ref_refuse(&n->ref, err, "%s %u is not row-major", what, k);
  return HEDDLE_OK;
}

static heddle_status check_values(const k_node *n, const heddle__version *version, heddle_error *err) {
  const heddle_pregion *region = n->ref.region;
  const heddle_pnode *node = n->ref.node;
  const bool many = version->max_inputs == HEDDLE__VARIADIC;
  uint32_t wanted = 0;
  heddle_status s = HEDDLE_OK;
  if (node->n_inputs > version->max_inputs && !many)
    return ref_refuse(&n->ref, err, "it has %u operands", node->n_inputs);
  for (uint32_t k = 0; (k < node->n_inputs || k < version->min_inputs) && s == HEDDLE_OK; k++) {
    const heddle_pvalue *value = region_node_input(region, node, k);
    if (value == NULL && (k < version->min_inputs || many)) return ref_refuse(&n->ref, err, "operand %u is missing", k);
    if (value == NULL) continue;
    if (region_input_slot(region, node->inputs[k]) < 0)
      return ref_refuse(&n->ref, err, "operand %u is not an input of its region", k);
    s = check_value(n, value, "operand", k, err);
  }
  for (uint32_t k = 0; k < node->n_outputs && s == HEDDLE_OK; k++) {
    const heddle_pvalue *value = region_node_output(region, node, k);
    if (value == NULL) continue;
    if (k >= version->max_outputs) return ref_refuse(&n->ref, err, "it has %u results", node->n_outputs);
    wanted++;
    if (region_output_slot(region, node->outputs[k]) < 0)
      return ref_refuse(&n->ref, err, "result %u is not an output of its region", k);
    s = check_value(n, value, "result", k, err);
  }
  if (s != HEDDLE_OK) return s;
  if (n->ref.out == NULL || region->n_outputs != wanted)
    return ref_refuse(&n->ref, err, "its results are not the outputs of its region");
  return HEDDLE_OK;
}

static heddle_status plan_region(k_node *n, heddle_error *err) {
  const heddle_pregion *region = n->ref.region;
  const heddle_pnode *node = region_node(region, 0);
  n->ref.node = node;
  if (node == NULL) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "a region without nodes");
  if (region->nodes.count > 1) return k_plan_fused(n, err);
  for (uint32_t k = 0; k < REF_OPERANDS; k++) n->ref.in[k] = region_node_input(region, node, k);
  n->ref.out = region_node_output(region, node, 0);
  if (n->ref.out == NULL && n->ref.in[0] == NULL)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%.200s': it has neither operand nor result",
                  node->name != NULL ? node->name : "");
  if (node->op == NULL) return ref_refuse(&n->ref, err, "it names no operator");
  const bool own = node->domain != NULL && strcmp(node->domain, "heddle") == 0;
  if (!own && node->domain != NULL && node->domain[0] != '\0')
    return ref_refuse(&n->ref, err, "operators of domain '%s' are not supported", node->domain);
  const heddle__operator *op = heddle__operator_find(own, node->op);
  n->entry = op != NULL ? find_entry(node->op, own) : NULL;
  if (n->entry == NULL) return ref_refuse(&n->ref, err, "there is no kernel for this operator");
  n->types = op->types;
  const heddle__version *version = NULL;
  heddle_status s = ref_find_version(&n->ref, own, &version, err);
  if (s == HEDDLE_OK) s = ref_check_attrs(&n->ref, version, err);
  if (s == HEDDLE_OK) s = check_values(n, version, err);
  bool widened = false;
  if (s == HEDDLE_OK && (n->entry->flags & K_WIDENS) != 0) s = k_plan_widened(n, &widened, err);
  return s == HEDDLE_OK && !widened ? n->entry->plan(n, err) : s;
}

static bool input_is_used(const k_plan *plan, uint32_t slot) {
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    for (uint32_t k = 0; k < plan->steps[i].n_args; k++) {
      if (plan->steps[i].args[k] == slot) return true;
    }
  }
  return false;
}

heddle_status k_plan_make(const heddle_host *host, const heddle_pregion *region, uint64_t features, k_plan *out,
                          heddle_error *err) {
  return k_plan_make_like(host, region, features, NULL, out, err);
}

heddle_status k_plan_make_like(const heddle_host *host, const heddle_pregion *region, uint64_t features,
                               const k_plan *like, k_plan *out, heddle_error *err) {
  k_node n = {.ref = {.region = region}, .plan = out};
  memset(out, 0, sizeof *out);
  out->host = host;
  out->features = features;
  out->like = like;
  heddle_status s = plan_region(&n, err);
  if (s == HEDDLE_OK && region->n_inputs > 0) {
    out->input_flags = host->alloc(host->ctx, region->n_inputs * sizeof(uint32_t), _Alignof(uint32_t));
    if (out->input_flags == NULL) s = p_fail(err, HEDDLE_ENOMEM, 0, "no memory to plan an operator");
  }
  for (uint32_t i = 0; i < region->n_inputs && s == HEDDLE_OK; i++) {
    const heddle_pvalue *value = region_value(region, region->inputs[i]);
    const bool absorbed = value != NULL && value->data != NULL && !input_is_used(out, i);
    out->input_flags[i] = absorbed ? HEDDLE_INPUT_ABSORBED : 0;
  }
  out->like = NULL;
  if (s != HEDDLE_OK) k_plan_free(out);
  return s;
}

void k_plan_free(k_plan *plan) {
  const heddle_host *host = plan->host;
  if (host == NULL) return;
  for (uint32_t i = 0; i < plan->n_steps; i++) host->free(host->ctx, plan->steps[i].chain);
  host->free(host->ctx, plan->steps);
  host->free(host->ctx, plan->input_flags);
  host->free(host->ctx, plan->table);
  memset(plan, 0, sizeof *plan);
}
