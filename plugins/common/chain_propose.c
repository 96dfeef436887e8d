/* Which nodes of a region make a chain. From the last node to the first, each one that is free becomes the end of a
 * chain and takes in the nodes before it whose result only the chain uses. All ways out of such a chain lead through
 * its last node, so it is convex, and chains cannot wait for each other in a circle. */
#include "chain.h"

#include "chain_node.h"
#include "perror.h"
#include "region.h"
#include "setting.h"

#define NOBODY UINT32_MAX

enum { MOST_NODES = EXPR_STEPS, SHARED_DIMS = 8 };

typedef struct grower {
  const heddle_pregion *region;
  unsigned char *taken;
  uint32_t *uses, *inside; /* of each value: by nodes of the region and outside, by nodes of the chain that grows */
  uint32_t *producer;      /* the node; NOBODY */
  uint32_t nodes[MOST_NODES], count;
} grower;

static bool takes(const grower *g, uint32_t i) {
  int32_t op;
  float params[2];
  const heddle_pnode *node = region_node(g->region, i);
  return !g->taken[i] && chain_node_read(g->region, node, &op, params) &&
         region_value(g->region, node->outputs[0])->ndim <= SHARED_DIMS;
}

static bool in_chain(const grower *g, uint32_t node) {
  for (uint32_t i = 0; i < g->count; i++) {
    if (g->nodes[i] == node) return true;
  }
  return false;
}

/* Adds a value to a list of different ones; false where it is full. */
static bool list_add(int32_t *list, uint32_t *count, uint32_t cap, int32_t value) {
  for (uint32_t i = 0; i < *count; i++) {
    if (list[i] == value) return true;
  }
  if (*count == cap) return false;
  list[(*count)++] = value;
  return true;
}

/* Is the chain within the limits of an expression, and are Clip's bounds none of its results? */
static bool fits(const grower *g) {
  int32_t inputs[EXPR_INPUTS], numbers[EXPR_NUMBERS - 2]; /* two for the bounds that Clips lack */
  uint32_t n_inputs = 0, n_numbers = 0, steps = 0;
  for (uint32_t i = 0; i < g->count; i++) {
    const heddle_pnode *node = region_node(g->region, g->nodes[i]);
    int32_t op = 0;
    float params[2];
    if (!chain_node_read(g->region, node, &op, params)) return false;
    steps += expr_ops[op].most == UINT8_MAX && node->n_inputs > 1 ? node->n_inputs - 1 : 1;
    for (uint32_t k = 0; k < node->n_inputs; k++) {
      const int32_t v = node->inputs[k];
      if (v < 0) continue;
      if (g->producer[v] != NOBODY && in_chain(g, g->producer[v])) {
        if (expr_ops[op].most == EXPR_ARGS && k > 0) return false;
        continue;
      }
      const bool number = chain_number(region_value(g->region, v)) != NULL;
      if (number && list_add(numbers, &n_numbers, EXPR_NUMBERS - 2, v)) continue;
      if (!list_add(inputs, &n_inputs, EXPR_INPUTS, v)) return false;
    }
  }
  return steps <= EXPR_STEPS;
}

static void count_uses(grower *g, const heddle_pnode *node, bool add) {
  for (uint32_t k = 0; k < node->n_inputs; k++) {
    if (node->inputs[k] < 0) continue;
    if (add) g->inside[node->inputs[k]]++;
    else g->inside[node->inputs[k]]--;
  }
}

/* The node that makes v joins, if only the chain uses v. */
static bool try_join(grower *g, int32_t v) {
  if (v < 0 || g->inside[v] != g->uses[v] || g->producer[v] == NOBODY || g->count == MOST_NODES) return false;
  const uint32_t i = g->producer[v];
  const heddle_pnode *node = region_node(g->region, i), *root = region_node(g->region, g->nodes[0]);
  if (in_chain(g, i) || !takes(g, i)) return false;
  if (!region_shape_equal(region_value(g->region, v), region_value(g->region, root->outputs[0]))) return false;
  g->nodes[g->count++] = i;
  if (!fits(g)) {
    g->count--;
    return false;
  }
  count_uses(g, node, true);
  return true;
}

static heddle_status grow(grower *g, uint32_t root, heddle_propose_fn propose, void *sink, heddle_error *err) {
  g->nodes[0] = root;
  g->count = 1;
  if (!fits(g)) return HEDDLE_OK;
  count_uses(g, region_node(g->region, root), true);
  for (bool grew = true; grew;) {
    grew = false;
    for (uint32_t i = 0; i < g->count; i++) {
      const heddle_pnode *node = region_node(g->region, g->nodes[i]);
      for (uint32_t k = 0; k < node->n_inputs; k++) grew = try_join(g, node->inputs[k]) || grew;
    }
  }
  for (uint32_t i = 0; i < g->count; i++) count_uses(g, region_node(g->region, g->nodes[i]), false);
  if (g->count == 1) return HEDDLE_OK;
  for (uint32_t i = 1; i < g->count; i++) { /* ascending, as a region lists them */
    const uint32_t node = g->nodes[i];
    uint32_t k = i;
    for (; k > 0 && g->nodes[k - 1] > node; k--) g->nodes[k] = g->nodes[k - 1];
    g->nodes[k] = node;
  }
  for (uint32_t i = 0; i < g->count; i++) g->taken[g->nodes[i]] = 1;
  return propose(sink, g->nodes, g->count, err);
}

heddle_status heddle_chain_propose(const heddle_host *host, const heddle_pregion *region, unsigned char *taken,
                                   heddle_propose_fn propose, void *sink, heddle_error *err) {
  const uint64_t values = region->values.count, nodes = region->nodes.count;
  if (nodes < 2 || nodes >= NOBODY || values >= INT32_MAX) return HEDDLE_OK;
  uint32_t *memory = host->alloc(host->ctx, 3 * values * sizeof *memory, _Alignof(uint32_t));
  if (memory == NULL)
    return p_fail(err, HEDDLE_ENOMEM, 0, "no memory to part a region of %llu nodes", (unsigned long long)nodes);
  grower g = {.region = region, .taken = taken};
  g.uses = memory;
  g.inside = memory + values;
  g.producer = memory + 2 * values;
  memset(memory, 0, 2 * values * sizeof *memory);
  for (uint64_t v = 0; v < values; v++) g.producer[v] = NOBODY;
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < nodes; i++) {
    const heddle_pnode *node = region_node(region, i);
    for (uint32_t k = 0; k < node->n_inputs + node->n_outputs; k++) {
      const bool in = k < node->n_inputs;
      const int32_t v = in ? node->inputs[k] : node->outputs[k - node->n_inputs];
      if (v >= (int64_t)values) s = p_fail(err, HEDDLE_EINVAL, 0, "a region with indices outside it");
      else if (v >= 0 && in) g.uses[v]++;
      else if (v >= 0) g.producer[v] = i;
    }
  }
  for (uint32_t k = 0; k < region->n_outputs; k++) {
    if (region_value(region, region->outputs[k]) != NULL) g.uses[region->outputs[k]]++;
  }
  for (uint32_t i = (uint32_t)nodes; i-- > 0 && s == HEDDLE_OK;) {
    if (takes(&g, i)) s = grow(&g, i, propose, sink, err);
  }
  host->free(host->ctx, memory);
  return s;
}

heddle_status heddle_chain_wanted(const heddle_host *host, bool *out, heddle_error *err) {
  char text[16] = "";
  *out = true;
  if (host->config(host->ctx, "fuse", text, sizeof text) < 0 || p_switch(text, out)) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "setting fuse: '%s' is neither 0 nor 1", text);
}
