/* The table of operators: query hands over the offers of a plan, prepare turns one of them into an op. */
#include "ops.h"

#define BLOCKED_GAIN 0.8 /* of the plain cost: so that the executor prefers it, and its passes are exercised */

static heddle_status ask_places(heddle_pinstance *self, const heddle_pregion *region, const sim_plan *plan,
                                bool blocked, uint64_t *bytes, heddle_error *err) {
  const heddle_host *host = self->host;
  uint64_t scratch;
  sim_place *places = sim_alloc(host, (region->values.count + 1) * sizeof *places);
  if (places == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory to plan a region");
  heddle_status status = sim_plan_places(region, plan, blocked, places, &scratch, bytes, err);
  host->free(host->ctx, places);
  return status;
}

/* In-place pairs hold for an offer whose two sides lie alike; the others are left out. */
static uint64_t keep_pairs(const sim_plan *plan, bool blocked, int32_t *pairs) {
  uint64_t n = 0;
  for (uint64_t i = 0; i < plan->n_in_place; i++) {
    int32_t in = plan->in_place[2 * i], out = plan->in_place[2 * i + 1];
    if (blocked && plan->input_layouts[in] != plan->output_layouts[out]) continue;
    pairs[2 * n] = in;
    pairs[2 * n + 1] = out;
    n++;
  }
  return n;
}

/* Whether launches of an offer can be resized: one node on plain bytes. */
static bool resizes(const heddle_pregion *region, const sim_plan *plan, bool blocked) {
  return (region->flags & HEDDLE_REGION_OPEN) != 0 && plan->n_nodes == 1 && !plan->reorder && !blocked;
}

static heddle_status make_offer(heddle_pinstance *self, const heddle_pregion *region, const sim_plan *plan,
                                bool blocked, heddle_offer_fn offer, void *sink, heddle_error *err) {
  const heddle_host *host = self->host;
  bool tokens = blocked || plan->reorder;
  heddle_poffer o = {
      .struct_size = sizeof o,
      .flags =
          (self->settings.bare ? HEDDLE_OFFER_BARE : 0) | (resizes(region, plan, blocked) ? HEDDLE_OFFER_RESIZES : 0),
      .input_layouts = tokens ? plan->input_layouts : NULL,
      .output_layouts = tokens ? plan->output_layouts : NULL,
      .input_flags = plan->input_flags,
      .workspace_align = SIM_ALIGNMENT,
      .cost_ns = blocked ? plan->cost_ns * BLOCKED_GAIN : plan->cost_ns,
      .launch_bytes = self->settings.launch_bytes,
  };
  for (uint32_t i = 0; plan->subs != NULL && !plan->reorder && i < plan->n_nodes; i++)
    o.kept_bytes += ref_kept(&plan->subs[i].region);
  heddle_status status = ask_places(self, region, plan, blocked, &o.workspace_bytes, err);
  if (status != HEDDLE_OK) return status;
  int32_t *pairs = sim_alloc(host, (plan->n_in_place + 1) * 2 * sizeof *pairs);
  if (pairs == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory for an offer");
  o.n_in_place = keep_pairs(plan, blocked, pairs);
  o.in_place = o.n_in_place == 0 ? NULL : pairs;
  o.extends = plan->extends;
  o.n_extends = blocked ? 0 : plan->n_extends; /* rows of channels in blocks are padded */
  status = offer(sink, &o, err);
  host->free(host->ctx, pairs);
  return status;
}

static heddle_status op_query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                              heddle_offer_fn offer, void *sink, heddle_error *err) {
  sim_plan plan;
  heddle_status status = sim_pure_check(self, index, err);
  if (status == HEDDLE_OK) status = sim_enter_pure(self, index, SIM_CALL_QUERY, err);
  if (status == HEDDLE_OK) status = sim_plan_init(self, region, &plan, err);
  if (status != HEDDLE_OK) return status;
  if (plan.blocked) status = make_offer(self, region, &plan, true, offer, sink, err);
  if (status == HEDDLE_OK) status = make_offer(self, region, &plan, false, offer, sink, err);
  sim_plan_finish(self->host, &plan);
  return status;
}

static heddle_status op_list(heddle_pinstance *self, uint32_t index, heddle_list_fn list, void *sink,
                             heddle_error *err) {
  heddle_status status = sim_index_check(self, index, err);
  if (status == HEDDLE_OK) status = ref_list(list, sink, err);
  if (status == HEDDLE_OK && self->settings.layouts) status = list(sink, "heddle", "Reorder", 1, 1, "any", err);
  return status;
}

/* ---- prepare ---- */

static void op_destroy(const heddle_host *host, sim_retired *retired) {
  heddle_pop *op = (heddle_pop *)retired;
  for (uint32_t i = 0; op->steps != NULL && i < op->n_steps; i++) ref_free(op->steps[i].op);
  host->free(host->ctx, op->operands);
  host->free(host->ctx, op->steps);
  host->free(host->ctx, op->places);
  host->free(host->ctx, op);
}

void sim_op_drop(heddle_pop *op) {
  if (atomic_fetch_sub(&op->references, 1) == 1) sim_retire(op->dev, &op->retired);
}

static void op_free(heddle_pop *op) {
  if (op == NULL || op->magic != SIM_MAGIC_OP) return;
  op->magic = SIM_MAGIC_DEAD;
  atomic_fetch_sub(&op->dev->live_objects, 1);
  sim_op_drop(op);
}

/* Fills an operand from its value and its place; the region says the layout, which must be the offer's. */
static heddle_status fill_operand(const heddle_pop *op, const heddle_pvalue *value, heddle_layout token, bool absorbed,
                                  const sim_place *place, sim_operand *operand, heddle_error *err) {
  if (value->layout != token && !absorbed)
    return p_fail(err, HEDDLE_EINVAL, 0, "node '%s': an operand has layout 0x%llx where the offer says 0x%llx",
                  op->name, (unsigned long long)value->layout, (unsigned long long)token);
  operand->absorbed = absorbed;
  operand->plain_offset = place->offset;
  if (sim_blocking_of(value, token, &operand->blocking, &operand->bytes)) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%s': an operand has no size in bytes", op->name);
}

static heddle_status fill_operands(heddle_pop *op, const heddle_pregion *region, const sim_plan *plan, bool blocked,
                                   const sim_place *places, heddle_error *err) {
  heddle_status status = HEDDLE_OK;
  bool tokens = blocked || plan->reorder;
  for (uint32_t k = 0; k < op->n_inputs + op->n_outputs && status == HEDDLE_OK; k++) {
    bool in = k < op->n_inputs;
    uint32_t slot = in ? k : k - op->n_inputs;
    int32_t v = in ? region->inputs[slot] : region->outputs[slot];
    heddle_layout token = !tokens ? 0 : in ? plan->input_layouts[slot] : plan->output_layouts[slot];
    bool absorbed = in && plan->input_flags[slot] != 0;
    status = fill_operand(op, region_value(region, v), token, absorbed, &places[v], &op->operands[k], err);
    if (op->operands[k].blocking.token != 0 && op->operands[k].bytes != 0) op->any_blocked = true;
  }
  return status;
}

static heddle_status fill_steps(heddle_pop *op, const sim_plan *plan, const sim_place *places, heddle_error *err) {
  const heddle_host *host = op->dev->host;
  heddle_status status = HEDDLE_OK;
  sim_place *next = op->places;
  for (uint32_t i = 0; i < op->n_steps && status == HEDDLE_OK; i++) {
    const heddle_pregion *sub = &plan->subs[i].region;
    sim_step *step = &op->steps[i];
    step->first = (uint32_t)(next - op->places);
    step->n_inputs = sub->n_inputs;
    step->n_outputs = sub->n_outputs;
    for (uint32_t k = 0; k < sub->n_inputs; k++) *next++ = places[sub->inputs[k]];
    for (uint32_t k = 0; k < sub->n_outputs; k++) *next++ = places[sub->outputs[k]];
    sim_wrong_plant(&op->dev->settings, sub, step);
    status = ref_prepare(host, sub, &step->op, err);
  }
  return status;
}

static heddle_status op_build(heddle_pop *op, const heddle_pregion *region, const sim_plan *plan, bool blocked,
                              heddle_error *err) {
  const heddle_host *host = op->dev->host;
  sim_place *places = sim_alloc(host, (region->values.count + 1) * sizeof *places);
  op->operands = sim_alloc(host, (op->n_inputs + op->n_outputs + 1) * sizeof *op->operands);
  op->steps = sim_alloc(host, (op->n_steps + 1) * sizeof *op->steps);
  op->places = sim_alloc(host, (op->n_places + 1) * sizeof *op->places);
  heddle_status status = HEDDLE_OK;
  if (places == NULL || op->operands == NULL || op->steps == NULL || op->places == NULL)
    status = p_fail(err, HEDDLE_ENOMEM, 0, "node '%s': no memory to prepare it", op->name);
  if (status == HEDDLE_OK)
    status = sim_plan_places(region, plan, blocked, places, &op->scratch, &op->workspace_bytes, err);
  if (status == HEDDLE_OK) status = fill_operands(op, region, plan, blocked, places, err);
  if (status == HEDDLE_OK) status = fill_steps(op, plan, places, err);
  host->free(host->ctx, places);
  return status;
}

static heddle_status op_prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                                heddle_error *err) {
  sim_plan plan;
  heddle_status status = sim_enter(dev, SIM_CALL_PREPARE, err);
  if (status == HEDDLE_OK) status = sim_plan_init(dev->self, region, &plan, err);
  if (status != HEDDLE_OK) return status;
  const heddle_host *host = dev->host;
  const heddle_pnode *first = region_node(region, 0);
  heddle_pop *op = NULL;
  if (offer > (plan.blocked ? 1u : 0u))
    status = p_fail(err, HEDDLE_EINVAL, 0, "node '%s': there was no offer %u", first->name == NULL ? "" : first->name,
                    offer);
  if (status == HEDDLE_OK && (op = sim_alloc(host, sizeof *op)) == NULL)
    status = p_fail(err, HEDDLE_ENOMEM, 0, "sim:%u: no memory for an op", dev->index);
  if (status == HEDDLE_OK) {
    op->retired.destroy = op_destroy;
    op->magic = SIM_MAGIC_OP;
    atomic_init(&op->references, 1);
    op->dev = dev;
    op->n_inputs = plan.n_inputs;
    op->n_outputs = plan.n_outputs;
    op->reorder = plan.reorder;
    op->bare = dev->settings.bare;
    for (uint32_t i = 0; i < region->nodes.count; i++)
      op->busy_us += sim_settings_busy_us(&dev->settings, region_node(region, i)->op);
    op->n_steps = plan.reorder ? 0 : plan.n_nodes;
    for (uint32_t i = 0; i < op->n_steps; i++)
      op->n_places += plan.subs[i].region.n_inputs + plan.subs[i].region.n_outputs;
    snprintf(op->name, sizeof op->name, "%s", first->name == NULL ? "" : first->name);
    status = op_build(op, region, &plan, plan.blocked && offer == 0, err);
    op->open = status == HEDDLE_OK && resizes(region, &plan, plan.blocked && offer == 0);
    if (status != HEDDLE_OK) op_destroy(host, &op->retired);
  }
  sim_plan_finish(host, &plan);
  if (status != HEDDLE_OK) return status;
  atomic_fetch_add(&dev->live_objects, 1);
  *out = op;
  return HEDDLE_OK;
}

const heddle_op_table sim_op_table = {
    .struct_size = sizeof(heddle_op_table),
    .launch_free = sim_launch_free,
    .op_free = op_free,
    .query = op_query,
    .prepare = op_prepare,
    .bind = sim_op_bind,
    .run = sim_op_run,
    .partition = sim_partition,
    .list = op_list,
    .resize = sim_op_resize,
};
