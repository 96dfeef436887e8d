/* Which nodes belong together, and where the values of a region lie. */
#include "program.h"

static void *new_array(const heddle_host *host, uint64_t count, uint64_t size) {
  void *p = host->alloc(host->ctx, count * size + 1, 16);
  if (p != NULL) memset(p, 0, count * size + 1);
  return p;
}

/* ---------------------------------------------------------------- proposals
 *
 * Every node that the machine runs has one operand that is no constant. So a node with all those that follow from it
 * through supported nodes alone is a tree with one way in: no path leaves it and comes back, and no two such trees can
 * wait for each other. */

/* The node before i that makes its operand; -1 where none of this region does. */
static int64_t maker_of(const heddle_pregion *region, uint64_t i) {
  const int32_t x = region_node(region, i)->inputs[0];
  for (uint64_t j = 0; j < i; j++) {
    const heddle_pnode *node = region_node(region, j);
    for (uint32_t k = 0; k < node->n_outputs; k++)
      if (node->outputs[k] == x) return (int64_t)j;
  }
  return -1;
}

heddle_status npu_propose(const heddle_host *host, const heddle_pregion *region, heddle_propose_fn propose, void *sink,
                          heddle_error *err) {
  const uint64_t n = region->nodes.count;
  int64_t *root = new_array(host, n, sizeof *root); /* of the tree that a node is in; -1: not ours */
  uint32_t *members = new_array(host, n, sizeof *members);
  heddle_status s = HEDDLE_OK;
  if (root == NULL || members == NULL)
    s = p_fail(err, HEDDLE_ENOMEM, 0, "npu: no memory to part a graph of %llu nodes", (unsigned long long)n);
  for (uint64_t i = 0; i < n && s == HEDDLE_OK; i++) {
    npu_layer layer;
    heddle_error ignored;
    root[i] = -1;
    if (npu_layer_read(region, region_node(region, i), &layer, &ignored) != HEDDLE_OK) continue;
    const int64_t before = maker_of(region, i);
    root[i] = before >= 0 && root[before] >= 0 ? root[before] : (int64_t)i;
  }
  for (uint64_t i = 0; i < n && s == HEDDLE_OK; i++) {
    uint32_t count = 0;
    if (root[i] != (int64_t)i) continue;
    for (uint64_t j = i; j < n; j++)
      if (root[j] == (int64_t)i) members[count++] = (uint32_t)j;
    if (count > 1) s = propose(sink, members, count, err);
  }
  host->free(host->ctx, members);
  host->free(host->ctx, root);
  return s;
}

/* ---------------------------------------------------------------- views */

npu_view npu_plan_view(const npu_plan *plan, const npu_layer *l, int is_result) {
  npu_view view = plan->places[is_result ? l->y : l->x], *v = &view;
  const int64_t c = is_result ? l->m : l->c, h = is_result ? l->oh : l->h, w = is_result ? l->ow : l->w;
  if (v->blocked) {
    v->step_lane = 1, v->step_x = NPU_LANES, v->step_y = w * NPU_LANES, v->step_block = h * w * NPU_LANES;
    v->step_n = (c + NPU_LANES - 1) / NPU_LANES * v->step_block;
  } else if (l->is_matrix) {
    v->step_lane = 1, v->step_x = c, v->step_y = w * c, v->step_block = NPU_LANES, v->step_n = 0;
  } else {
    v->step_lane = h * w, v->step_x = 1, v->step_y = w, v->step_block = NPU_LANES * h * w, v->step_n = c * h * w;
  }
  return view;
}

/* Does every layer that reads value v see it as its maker does, an image or a matrix? */
static int same_form(const npu_plan *plan, int32_t v, int is_matrix) {
  for (uint32_t i = 0; i < plan->n_layers; i++)
    if (plan->layers[i].x == v && plan->layers[i].is_matrix != is_matrix) return 0;
  return 1;
}

static void place_values(npu_plan *plan, const heddle_pregion *region) {
  for (uint32_t i = 0; i < region->n_inputs; i++) plan->places[region->inputs[i]].operand = NPU_OPERAND_INPUT(i);
  for (uint32_t i = 0; i < plan->n_layers; i++) {
    const npu_layer *l = &plan->layers[i];
    npu_view *v = &plan->places[l->y];
    const int64_t slot = region_output_slot(region, l->y);
    if (slot >= 0) {
      v->operand = NPU_OPERAND_OUTPUT((uint32_t)slot);
    } else {
      const int64_t lanes = (l->m + NPU_LANES - 1) / NPU_LANES * NPU_LANES;
      v->operand = NPU_OPERAND_WORKSPACE;
      v->blocked = same_form(plan, l->y, l->is_matrix) != 0;
      v->offset = plan->workspace_bytes;
      plan->workspace_bytes += (uint64_t)((int64_t)l->n * lanes * l->oh * l->ow + 63) / 64 * 64;
    }
  }
}

/* Nanoseconds that the matrix core and the ALU are busy with a layer. */
static double estimate(const npu_layer *l) {
  const double blocks_in = (l->c + NPU_LANES - 1) / NPU_LANES, blocks_out = (l->m + NPU_LANES - 1) / NPU_LANES;
  const double pixels = (double)l->n * l->oh * l->ow, window = (double)l->kh * l->kw;
  const double products = l->is_pool ? pixels * blocks_out * window : pixels * window * blocks_in * blocks_out;
  return (products + pixels * blocks_out * 6 + 200) * 1000 / NPU_MHZ;
}

/* ---------------------------------------------------------------- plan */

int npu_plan_absorbs(const npu_plan *plan, const heddle_pregion *region, int32_t v) {
  for (uint32_t i = 0; i < plan->n_layers; i++)
    if (plan->layers[i].x == v) return 0;
  return region_value(region, v)->data != NULL;
}

heddle_status npu_plan_make(const heddle_host *host, const heddle_pregion *region, npu_plan *out, heddle_error *err) {
  npu_plan plan = {.host = host, .n_layers = (uint32_t)region->nodes.count};
  heddle_status s = HEDDLE_OK;
  plan.layers = new_array(host, region->nodes.count, sizeof *plan.layers);
  plan.places = new_array(host, region->values.count, sizeof *plan.places);
  if (plan.layers == NULL || plan.places == NULL) s = p_fail(err, HEDDLE_ENOMEM, 0, "npu: no memory for a plan");
  for (uint32_t i = 0; i < plan.n_layers && s == HEDDLE_OK; i++) {
    s = npu_layer_read(region, region_node(region, i), &plan.layers[i], err);
    plan.cost_ns += s == HEDDLE_OK ? estimate(&plan.layers[i]) : 0;
  }
  if (s != HEDDLE_OK) {
    npu_plan_free(&plan);
    return s;
  }
  place_values(&plan, region);
  *out = plan;
  return HEDDLE_OK;
}

void npu_plan_free(npu_plan *plan) {
  plan->host->free(plan->host->ctx, plan->layers);
  plan->host->free(plan->host->ctx, plan->places);
}
