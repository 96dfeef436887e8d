/* Regions of several nodes: taking them apart into one-node regions for the reference kernels, seeing that they are in
 * one piece, and proposing the chains that this device likes to have together. */
#include "ops.h"

bool sim_node_is(const heddle_pnode *node, const char *domain, const char *op) {
  const char *own = node->domain == NULL || strcmp(node->domain, "ai.onnx") == 0 ? "" : node->domain;
  return node->op != NULL && strcmp(own, domain) == 0 && strcmp(node->op, op) == 0;
}

/* Do the indices of the region lie inside it? */
static heddle_status check_indices(const heddle_pregion *region, heddle_error *err) {
  bool good = region->nodes.count != 0 && region->nodes.count < INT32_MAX && region->values.count < INT32_MAX;
  for (uint64_t i = 0; good && i < region->nodes.count; i++) {
    const heddle_pnode *node = region_node(region, i);
    for (uint32_t k = 0; k < node->n_inputs; k++) good = good && node->inputs[k] < (int64_t)region->values.count;
    for (uint32_t k = 0; k < node->n_outputs; k++) good = good && node->outputs[k] < (int64_t)region->values.count;
  }
  for (uint32_t k = 0; good && k < region->n_inputs; k++) good = region_value(region, region->inputs[k]) != NULL;
  for (uint32_t k = 0; good && k < region->n_outputs; k++) good = region_value(region, region->outputs[k]) != NULL;
  return good ? HEDDLE_OK : p_fail(err, HEDDLE_EINVAL, 0, "a region without nodes, or with indices outside it");
}

static bool listed(const int32_t *list, uint32_t count, int32_t value) {
  for (uint32_t i = 0; i < count; i++)
    if (list[i] == value) return true;
  return false;
}

/* How many operands of the region's nodes a value is. */
static uint32_t uses_of(const heddle_pregion *region, int32_t value) {
  uint32_t n = 0;
  for (uint64_t i = 0; i < region->nodes.count; i++) {
    const heddle_pnode *node = region_node(region, i);
    for (uint32_t k = 0; k < node->n_inputs; k++) n += node->inputs[k] == value;
  }
  return n;
}

heddle_status sim_subs_make(const heddle_host *host, const heddle_pregion *region, sim_sub **out, heddle_error *err) {
  heddle_status status = check_indices(region, err);
  if (status != HEDDLE_OK) return status;
  uint64_t n = region->nodes.count, indices = 0;
  for (uint64_t i = 0; i < n; i++)
    indices += (uint64_t)region_node(region, i)->n_inputs + region_node(region, i)->n_outputs;
  sim_sub *subs = sim_alloc(host, n * sizeof *subs + indices * sizeof(int32_t));
  if (subs == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a region of %llu nodes", (unsigned long long)n);
  int32_t *at = (int32_t *)(void *)(subs + n);
  for (uint64_t i = 0; i < n; i++) {
    const heddle_pnode *node = region_node(region, i);
    heddle_pregion *sub = &subs[i].region;
    *sub = *region;
    sub->struct_size = sizeof *sub;
    if (n == 1) break; /* it is one already */
    sub->nodes.data = node;
    sub->nodes.count = 1;
    sub->inputs = at;
    sub->n_inputs = sub->n_outputs = 0;
    for (uint32_t k = 0; k < node->n_inputs; k++)
      if (node->inputs[k] >= 0 && !listed(sub->inputs, sub->n_inputs, node->inputs[k])) {
        *at++ = node->inputs[k];
        sub->n_inputs++;
      }
    sub->outputs = at;
    for (uint32_t k = 0; k < node->n_outputs; k++)
      if (node->outputs[k] >= 0 &&
          (region_output_slot(region, node->outputs[k]) >= 0 || uses_of(region, node->outputs[k]) != 0)) {
        *at++ = node->outputs[k];
        sub->n_outputs++;
      }
  }
  *out = subs;
  return HEDDLE_OK;
}

/* ---- in one piece ---- */

static uint32_t root_of(uint32_t *group, uint32_t i) {
  while (group[i] != i) i = group[i] = group[group[i]];
  return i;
}

heddle_status sim_region_connected(const heddle_host *host, const heddle_pregion *region, heddle_error *err) {
  uint32_t n = (uint32_t)region->nodes.count, pieces = n;
  uint64_t v = region->values.count;
  uint32_t *group = sim_alloc(host, (n + v) * sizeof *group), *owner = group + n; /* of a value: node + 1 */
  if (group == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory to look at a region of %u nodes", n);
  for (uint32_t i = 0; i < n; i++) group[i] = i;
  for (uint32_t i = 0; i < n; i++) {
    const heddle_pnode *node = region_node(region, i);
    for (uint32_t k = 0; k < node->n_inputs + node->n_outputs; k++) {
      int32_t value = k < node->n_inputs ? node->inputs[k] : node->outputs[k - node->n_inputs];
      if (value < 0) continue;
      if (owner[value] != 0) {
        uint32_t a = root_of(group, owner[value] - 1), b = root_of(group, i);
        if (a != b) pieces--;
        group[a] = b;
      }
      owner[value] = i + 1;
    }
  }
  const char *name = region_node(region, 0)->name;
  host->free(host->ctx, group);
  if (pieces == 1) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "the region of %u nodes that begins with '%s' is in %u pieces", n,
                name == NULL ? "" : name, pieces);
}

/* ---- proposals ---- */

/* The node that is the only user of node i's only result, where nothing outside uses that; -1 where there is none. It
 * comes later, and i has no other way out: the two are convex, and joining them closes no cycle. */
static int64_t only_follower(const heddle_pregion *region, uint64_t i) {
  const heddle_pnode *node = region_node(region, i);
  if (node->n_outputs != 1 || node->outputs[0] < 0) return -1;
  int32_t value = node->outputs[0];
  if (region_output_slot(region, value) >= 0 || uses_of(region, value) != 1) return -1;
  for (uint64_t j = i + 1; j < region->nodes.count; j++) {
    const heddle_pnode *next = region_node(region, j);
    if (listed(next->inputs, next->n_inputs, value)) return (int64_t)j;
  }
  return -1;
}

static bool wanted_after(const heddle_pnode *node, const heddle_pnode *next, bool last_was_relu) {
  if (last_was_relu) return false;
  if (sim_node_is(next, "", "Relu"))
    return sim_node_is(node, "", "Conv") || sim_node_is(node, "", "Add") || sim_node_is(node, "", "Gemm");
  return sim_node_is(next, "", "Add") && sim_node_is(node, "", "MatMul");
}

/* Would the node alone be taken? A chain with one that is not would be refused. */
static bool takes(const sim_sub *sub) {
  heddle_error ignored;
  return ref_query(&sub->region, &ignored) == HEDDLE_OK;
}

heddle_status sim_partition(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                            heddle_propose_fn propose, void *sink, heddle_error *err) {
  heddle_status status = sim_pure_check(self, index, err);
  if (status != HEDDLE_OK || !self->settings.fuse || region->nodes.count == 0) return status;
  const heddle_host *host = self->host;
  sim_sub *subs = NULL;
  status = sim_subs_make(host, region, &subs, err);
  if (status != HEDDLE_OK) return status;
  uint64_t n = region->nodes.count;
  bool *taken = sim_alloc(host, n * sizeof *taken);
  if (taken == NULL) status = p_fail(err, HEDDLE_ENOMEM, 0, "no memory to part a region");
  for (uint64_t i = 0; i < n && status == HEDDLE_OK; i++) {
    uint32_t chain[3], length = 1;
    bool relu = sim_node_is(region_node(region, i), "", "Relu");
    if (taken[i] || !takes(&subs[i])) continue;
    chain[0] = (uint32_t)i;
    while (length < 3) {
      int64_t next = only_follower(region, chain[length - 1]);
      if (next < 0 || taken[next] || !takes(&subs[next])) break;
      const heddle_pnode *node = region_node(region, (uint64_t)next);
      if (!wanted_after(region_node(region, chain[length - 1]), node, relu)) break;
      relu = sim_node_is(node, "", "Relu");
      chain[length++] = (uint32_t)next;
    }
    if (length == 1) continue;
    for (uint32_t k = 0; k < length; k++) taken[chain[k]] = true;
    status = propose(sink, chain, length, err);
  }
  host->free(host->ctx, taken);
  host->free(host->ctx, subs);
  return status;
}
