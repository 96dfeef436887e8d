/* Planning a region: which layouts its operands could have, what is absorbed, what may share bytes, and where plain
 * bytes of each value lie in the workspace. */
#include "ops.h"

#define UNSET UINT64_MAX

static uint64_t round_up(uint64_t n) {
  return (n + SIM_ALIGNMENT - 1) / SIM_ALIGNMENT * SIM_ALIGNMENT;
}

void sim_plan_finish(const heddle_host *host, sim_plan *plan) {
  host->free(host->ctx, plan->subs);
  host->free(host->ctx, plan->input_layouts);
  host->free(host->ctx, plan->output_layouts);
  host->free(host->ctx, plan->wanted);
  host->free(host->ctx, plan->input_flags);
  host->free(host->ctx, plan->in_place);
  host->free(host->ctx, plan->extends);
  memset(plan, 0, sizeof *plan);
}

/* ---- layouts ---- */

/* Notes the layout in which a node would like a value; false where it cannot have it or another node wants another. */
static bool want(const heddle_pregion *region, sim_plan *plan, int32_t value, heddle_layout token) {
  if (value < 0) return true;
  if (token != 0 && !sim_layout_takes(region_value(region, value))) return false;
  if (plan->wanted[value] != UNSET && plan->wanted[value] != token) return false;
  plan->wanted[value] = token;
  return true;
}

static bool want_all(const heddle_pregion *region, sim_plan *plan, const heddle_pnode *node) {
  const int32_t *in = node->inputs, *out = node->outputs;
  for (uint32_t k = 1; k < node->n_outputs; k++)
    if (out[k] >= 0) return false;
  if (node->n_inputs == 0 || node->n_outputs == 0) return false;
  if (sim_node_is(node, "", "Conv")) {
    const heddle_pvalue *weights = region_node_input(region, node, 1);
    bool packed = sim_layout_takes(weights) && weights->data != NULL;
    return want(region, plan, in[0], SIM_NCHW8C) && want(region, plan, out[0], SIM_NCHW8C) &&
           want(region, plan, in[1], packed ? SIM_OIHW8O : 0) && (node->n_inputs < 3 || want(region, plan, in[2], 0));
  }
  if (sim_node_is(node, "", "Relu") || sim_node_is(node, "", "MaxPool"))
    return want(region, plan, in[0], SIM_NCHW8C) && want(region, plan, out[0], SIM_NCHW8C);
  if (sim_node_is(node, "", "Add"))
    return region_shape_equal(region_node_input(region, node, 0), region_node_input(region, node, 1)) &&
           want(region, plan, in[0], SIM_NCHW8C) && want(region, plan, in[1], SIM_NCHW8C) &&
           want(region, plan, out[0], SIM_NCHW8C);
  if (sim_node_is(node, "", "GlobalAveragePool"))
    return want(region, plan, in[0], SIM_NCHW8C) && want(region, plan, out[0], 0);
  return false;
}

/* Decides whether there is a blocked offer, and with which layouts. */
static void choose_layouts(const heddle_pregion *region, sim_plan *plan) {
  bool any = false;
  for (uint64_t v = 0; v < region->values.count; v++) plan->wanted[v] = UNSET;
  for (uint32_t i = 0; i < plan->n_nodes; i++)
    if (!want_all(region, plan, region_node(region, i))) return;
  for (uint32_t k = 0; k < plan->n_inputs; k++) {
    heddle_layout token = plan->wanted[region->inputs[k]];
    plan->input_layouts[k] = token == UNSET || plan->input_flags[k] != 0 ? 0 : token;
    any = any || plan->input_layouts[k] != 0;
  }
  for (uint32_t k = 0; k < plan->n_outputs; k++) {
    heddle_layout token = plan->wanted[region->outputs[k]];
    plan->output_layouts[k] = token == UNSET ? 0 : token;
    any = any || plan->output_layouts[k] != 0;
  }
  plan->blocked = any;
}

/* ---- what else an offer says ---- */

/* An input is absorbed where every node that reads it absorbs it. */
static heddle_status find_absorbed(const heddle_host *host, const heddle_pregion *region, sim_plan *plan,
                                   heddle_error *err) {
  if (plan->n_nodes == 1) {
    ref_input_flags(region, plan->input_flags);
    return HEDDLE_OK;
  }
  uint32_t most = 1;
  for (uint32_t i = 0; i < plan->n_nodes; i++)
    if (plan->subs[i].region.n_inputs > most) most = plan->subs[i].region.n_inputs;
  uint32_t *flags = sim_alloc(host, most * sizeof *flags);
  if (flags == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory for the inputs of a region");
  for (uint32_t k = 0; k < plan->n_inputs; k++) plan->input_flags[k] = HEDDLE_INPUT_ABSORBED;
  for (uint32_t i = 0; i < plan->n_nodes; i++) {
    const heddle_pregion *sub = &plan->subs[i].region;
    ref_input_flags(sub, flags);
    for (uint32_t k = 0; k < sub->n_inputs; k++) {
      int64_t slot = region_input_slot(region, sub->inputs[k]);
      if (slot >= 0) plan->input_flags[slot] &= flags[k];
    }
  }
  host->free(host->ctx, flags);
  return HEDDLE_OK;
}

static heddle_status plan_reorder(const heddle_pregion *region, sim_plan *plan, heddle_error *err) {
  sim_blocking b;
  uint64_t bytes;
  const heddle_pnode *node = region_node(region, 0);
  const char *name = node->name == NULL ? "" : node->name;
  if (plan->n_inputs != 1 || plan->n_outputs != 1)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%s': Reorder takes one input and gives one output", name);
  const heddle_pvalue *in = region_value(region, region->inputs[0]), *out = region_value(region, region->outputs[0]);
  if (!region_dtype_equal(in->dtype, out->dtype) || !region_shape_equal(in, out))
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%s': Reorder between different dtypes or shapes", name);
  if (!sim_blocking_of(in, in->layout, &b, &bytes) || !sim_blocking_of(out, out->layout, &b, &bytes))
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                  "node '%s': Reorder from layout 0x%llx to 0x%llx: sim knows nchw8c and oihw8o, of four dimensions of "
                  "float32",
                  name, (unsigned long long)in->layout, (unsigned long long)out->layout);
  plan->reorder = true;
  plan->input_layouts[0] = in->layout;
  plan->output_layouts[0] = out->layout;
  plan->cost_ns = 100 + (double)bytes / 4;
  return HEDDLE_OK;
}

heddle_status sim_plan_init(heddle_pinstance *self, const heddle_pregion *region, sim_plan *plan, heddle_error *err) {
  const heddle_host *host = self->host;
  memset(plan, 0, sizeof *plan);
  heddle_status status = sim_subs_make(host, region, &plan->subs, err);
  if (status != HEDDLE_OK) return status;
  plan->n_nodes = (uint32_t)region->nodes.count;
  plan->n_inputs = region->n_inputs;
  plan->n_outputs = region->n_outputs;
  plan->input_layouts = sim_alloc(host, (plan->n_inputs + 1) * sizeof(heddle_layout));
  plan->output_layouts = sim_alloc(host, (plan->n_outputs + 1) * sizeof(heddle_layout));
  plan->wanted = sim_alloc(host, (region->values.count + 1) * sizeof(heddle_layout));
  plan->input_flags = sim_alloc(host, (plan->n_inputs + 1) * sizeof(uint32_t));
  plan->in_place = sim_alloc(host, (plan->n_inputs + 1) * 2 * sizeof(int32_t));
  plan->extends = sim_alloc(host, (plan->n_inputs + 1) * 3 * sizeof(int32_t));
  if (plan->input_layouts == NULL || plan->output_layouts == NULL || plan->wanted == NULL ||
      plan->input_flags == NULL || plan->in_place == NULL || plan->extends == NULL)
    status = p_fail(err, HEDDLE_ENOMEM, 0, "no memory to plan a region of %u nodes", plan->n_nodes);
  const heddle_pnode *first = region_node(region, 0);
  if (status == HEDDLE_OK && plan->n_nodes == 1 && sim_node_is(first, "heddle", "Reorder")) {
    status =
        self->settings.layouts ? plan_reorder(region, plan, err) : sim_switched_off("operator Reorder", "layouts", err);
  } else if (status == HEDDLE_OK) {
    if (plan->n_nodes > 1 && !self->settings.fuse)
      status = p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                      "node '%s' and %u more as one: sim takes regions of several nodes only with its setting fuse",
                      first->name == NULL ? "" : first->name, plan->n_nodes - 1);
    if (status == HEDDLE_OK && plan->n_nodes > 1) status = sim_region_connected(host, region, err);
    for (uint32_t i = 0; i < plan->n_nodes && status == HEDDLE_OK; i++) {
      status = ref_query(&plan->subs[i].region, err);
      plan->cost_ns += ref_cost_ns(&plan->subs[i].region, 1);
    }
    if (status == HEDDLE_OK) status = find_absorbed(host, region, plan, err);
    if (status == HEDDLE_OK && plan->n_nodes == 1) {
      plan->n_in_place = ref_in_place(region, plan->in_place, plan->n_inputs);
      plan->n_extends = ref_extends(region, plan->extends, plan->n_inputs);
    }
    if (status == HEDDLE_OK && self->settings.layouts) choose_layouts(region, plan);
  }
  if (status != HEDDLE_OK) sim_plan_finish(host, plan);
  return status;
}

/* ---- places ---- */

heddle_status sim_plan_places(const heddle_pregion *region, const sim_plan *plan, bool blocked, sim_place *places,
                              uint64_t *scratch, uint64_t *workspace_bytes, heddle_error *err) {
  uint64_t at = 0, most = 0;
  bool tokens = blocked || plan->reorder;
  for (uint64_t v = 0; v < region->values.count; v++) {
    int64_t in = region_input_slot(region, (int64_t)v), out = region_output_slot(region, (int64_t)v);
    bool produced = false, packed = false;
    places[v] = (sim_place){.at = SIM_AT_NOWHERE};
    if (in >= 0) {
      if (plan->input_flags[in] != 0) continue;
      places[v] = (sim_place){.at = SIM_AT_INPUT, .slot = (uint32_t)in};
      packed = tokens && plan->input_layouts[in] != 0;
      /* One blocked side of a Reorder needs no plain copy. */
      if (plan->reorder) packed = packed && plan->output_layouts[0] != 0;
    } else if (out >= 0) {
      places[v] = (sim_place){.at = SIM_AT_OUTPUT, .slot = (uint32_t)out};
      packed = tokens && plan->output_layouts[out] != 0 && !plan->reorder;
    }
    for (uint32_t i = 0; in < 0 && out < 0 && !produced && i < plan->n_nodes; i++)
      produced = region_output_slot(&plan->subs[i].region, (int64_t)v) >= 0;
    if (!packed && !produced) continue;
    uint64_t bytes;
    if (!region_value_bytes(region_value(region, (int64_t)v), &bytes) || bytes > (UINT64_MAX >> 8) ||
        at > (UINT64_MAX >> 8))
      return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "a value of a region has no size in bytes");
    if (bytes == 0 && packed) continue; /* nothing to unpack */
    places[v].at = SIM_AT_WORKSPACE;
    places[v].offset = at;
    at += round_up(bytes);
  }
  for (uint32_t i = 0; i < plan->n_nodes && !plan->reorder; i++) {
    uint64_t need = ref_workspace(&plan->subs[i].region);
    if (need > most) most = need;
  }
  *scratch = at;
  *workspace_bytes = at + round_up(most);
  return HEDDLE_OK;
}
