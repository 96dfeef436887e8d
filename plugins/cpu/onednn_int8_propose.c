/* Which nodes belong together. A quantised sum: two DequantizeLinear, their Add or Mul, maybe a Relu, and the QuantizeLinear
 * that alone sees the result. A function of a byte, between those two. What makes floats of a MatMulInteger: Cast, Mul,
 * and maybe an Add. */
#include "onednn_int8.h"

enum { SUM_NODES = INT8_STEPS };
_Static_assert((int)SUM_NODES <= (int)ONEDNN_PICKS, "onednn_pick takes that many");

/* The one node that makes a value which one other uses and nothing outside; UINT64_MAX where it is otherwise. */
static uint64_t inner_maker(const heddle_pregion *region, int32_t value, uint64_t before, const char *op) {
  uint64_t maker = UINT64_MAX, users = 0;
  if (value < 0 || region_output_slot(region, value) >= 0) return UINT64_MAX;
  for (uint64_t i = 0; i < region->nodes.count; i++) {
    const heddle_pnode *node = region_node(region, i);
    for (uint32_t k = 0; k < node->n_inputs; k++) users += node->inputs[k] == value;
    if (i < before && node->n_outputs == 1 && node->outputs[0] == value && node->op != NULL &&
        strcmp(node->op, op) == 0)
      maker = i;
  }
  return users == 1 ? maker : UINT64_MAX;
}

/* The nodes of a sum that ends with QuantizeLinear i, in their order; how many, or 0. */
static uint32_t find_sum(const heddle_pregion *region, uint64_t i, uint32_t picks[SUM_NODES]) {
  const heddle_pnode *last = region_node(region, i);
  uint64_t on = inner_maker(region, last->inputs[0], i, "Relu"), found[SUM_NODES];
  uint32_t count = 0;
  found[count++] = i;
  if (on != UINT64_MAX) found[count++] = on;
  const heddle_pnode *above = on != UINT64_MAX ? region_node(region, on) : last;
  uint64_t add = above->n_inputs > 0 ? inner_maker(region, above->inputs[0], i, "Add") : UINT64_MAX;
  if (add == UINT64_MAX && above->n_inputs > 0) add = inner_maker(region, above->inputs[0], i, "Mul");
  if (add == UINT64_MAX || region_node(region, add)->n_inputs != 2) return 0;
  found[count++] = add;
  for (int k = 1; k >= 0; k--) {
    const uint64_t from = inner_maker(region, region_node(region, add)->inputs[k], add, "DequantizeLinear");
    if (from == UINT64_MAX) return 0;
    found[count++] = from;
  }
  if (found[count - 1] > found[count - 2]) { /* the order in which they stand */
    const uint64_t other = found[count - 1];
    found[count - 1] = found[count - 2];
    found[count - 2] = other;
  }
  for (uint32_t k = 0; k < count; k++) picks[k] = (uint32_t)found[count - 1 - k];
  return count;
}

/* The nodes of a function of bytes that ends with QuantizeLinear i, in their order; how many, or 0. */
static uint32_t find_table(const heddle_pregion *region, uint64_t i, uint32_t picks[SUM_NODES]) {
  uint32_t found[SUM_NODES], count = 0;
  int32_t on = region_node(region, i)->inputs[0];
  found[count++] = (uint32_t)i;
  while (count < SUM_NODES) {
    int32_t before = -1;
    uint64_t maker = inner_maker(region, on, i, "DequantizeLinear");
    if (maker != UINT64_MAX) {
      found[count++] = (uint32_t)maker;
      for (uint32_t k = 0; k < count; k++) picks[k] = found[count - 1 - k];
      return count;
    }
    for (uint64_t k = 0; k < i && maker == UINT64_MAX; k++) {
      const heddle_pnode *node = region_node(region, k);
      if (node->n_outputs == 1 && node->outputs[0] == on && int8_is_function(region, node, &before) &&
          inner_maker(region, on, i, node->op) == k)
        maker = k;
    }
    if (maker == UINT64_MAX) return 0;
    found[count++] = (uint32_t)maker;
    on = before;
  }
  return 0;
}

/* The one node of an operator that uses a value, as its only user; UINT64_MAX. */
static uint64_t only_user(const heddle_pregion *region, int32_t value, uint64_t from, const char *op) {
  uint64_t user = UINT64_MAX, users = 0;
  if (value < 0 || region_output_slot(region, value) >= 0) return UINT64_MAX;
  for (uint64_t i = from; i < region->nodes.count; i++) {
    const heddle_pnode *node = region_node(region, i);
    for (uint32_t k = 0; k < node->n_inputs; k++) {
      if (node->inputs[k] != value) continue;
      users++;
      if (node->n_outputs == 1 && node->op != NULL && strcmp(node->op, op) == 0) user = i;
    }
  }
  return users == 1 ? user : UINT64_MAX;
}

/* MatMulInteger i with what is behind it; how many, or 0. */
static uint32_t find_real(const heddle_pregion *region, uint64_t i, uint32_t picks[SUM_NODES]) {
  static const char *const behind[] = {"Cast", "Mul", "Add"};
  uint32_t count = 0;
  picks[count++] = (uint32_t)i;
  for (int k = 0; k < 3; k++) {
    const uint64_t next = only_user(region, region_node(region, picks[count - 1])->outputs[0], i + 1, behind[k]);
    if (next == UINT64_MAX) break;
    picks[count++] = (uint32_t)next;
  }
  return count >= 3 ? count : 0;
}

static bool is_free(const unsigned char *taken, const uint32_t *picks, uint32_t count) {
  bool all = count > 0;
  for (uint32_t k = 0; k < count; k++) all = all && taken[picks[k]] == 0;
  return all;
}

/* The nodes from i on that are read as a region, if there are any. */
static uint32_t find(const heddle_pregion *region, uint64_t i, const unsigned char *taken, uint32_t picks[SUM_NODES]) {
  const heddle_pnode *node = region_node(region, i);
  onednn_picked p;
  int8_sum sum;
  int8_product product;
  int8_table table;
  if (node->op == NULL || node->n_outputs != 1 || node->n_inputs < 2) return 0;
  if (strcmp(node->op, "QuantizeLinear") == 0) {
    uint32_t count = find_sum(region, i, picks);
    if (is_free(taken, picks, count) && onednn_pick(region, picks, count, &p) && int8_read_sum(&p.region, &sum))
      return count;
    count = find_table(region, i, picks);
    return is_free(taken, picks, count) && onednn_pick(region, picks, count, &p) && int8_read_table(&p.region, &table)
               ? count
               : 0;
  }
  if (strcmp(node->op, "MatMulInteger") != 0) return 0;
  for (uint32_t count = find_real(region, i, picks); count >= 3; count--)
    if (is_free(taken, picks, count) && onednn_pick(region, picks, count, &p) && int8_read_product(&p.region, &product))
      return count;
  return 0;
}

heddle_status onednn_int8_propose(const onednn *self, const heddle_pregion *region, unsigned char *taken,
                                  heddle_propose_fn propose, void *sink, heddle_error *err) {
  for (uint64_t i = 0; onednn_int8_able(self) && i < region->nodes.count; i++) {
    uint32_t picks[SUM_NODES];
    const uint32_t count = find(region, i, taken, picks);
    if (count == 0) continue;
    heddle_status s = propose(sink, picks, count, err);
    if (s != HEDDLE_OK) return s;
    for (uint32_t k = 0; k < count; k++) taken[picks[k]] = 1;
  }
  return HEDDLE_OK;
}
