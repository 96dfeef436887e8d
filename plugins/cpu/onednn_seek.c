/* Finding attention among the nodes of a large region: from each Softmax back to the product before it and on to the one
 * behind it, then what lies between their operands and the rest of the graph and only moves elements. */
#include "onednn_attention.h"

typedef struct seeker {
  const heddle_pregion *region;
  const unsigned char *taken;
  uint32_t picks[ATTENTION_NODES], count, core; /* the first `core` cannot be left out */
} seeker;

static bool is(const heddle_pnode *node, const char *op) {
  return node->op != NULL && (node->domain == NULL || node->domain[0] == '\0') && strcmp(node->op, op) == 0;
}

static bool picked(const seeker *s, uint64_t i) {
  for (uint32_t k = 0; k < s->count; k++)
    if (s->picks[k] == i) return true;
  return false;
}

static bool pick(seeker *s, uint64_t i) {
  if (picked(s, i)) return true;
  if (s->count == ATTENTION_NODES || s->taken[i] != 0) return false;
  s->picks[s->count++] = (uint32_t)i;
  return true;
}

/* Which node makes a value, of those before one; UINT64_MAX where none does. */
static uint64_t maker_of(const seeker *s, int32_t value, uint64_t before) {
  while (value >= 0 && before-- > 0) {
    const heddle_pnode *node = region_node(s->region, before);
    for (uint32_t k = 0; k < node->n_outputs; k++)
      if (node->outputs[k] == value) return before;
  }
  return UINT64_MAX;
}

/* The first node behind one that uses a value; UINT64_MAX where none does. */
static uint64_t user_of(const seeker *s, int32_t value, uint64_t behind) {
  for (uint64_t i = behind + 1; i < s->region->nodes.count; i++) {
    const heddle_pnode *node = region_node(s->region, i);
    for (uint32_t k = 0; k < node->n_inputs; k++)
      if (node->inputs[k] == value) return i;
  }
  return UINT64_MAX;
}

/* The scores' product, through what scales and masks them. */
static uint64_t find_product(seeker *s, int32_t value, uint64_t before, int depth) {
  const uint64_t at = maker_of(s, value, before);
  if (at == UINT64_MAX || depth == 0) return UINT64_MAX;
  const heddle_pnode *node = region_node(s->region, at);
  if (is(node, "MatMul") && node->n_inputs == 2) return pick(s, at) ? at : UINT64_MAX;
  if (!is(node, "Mul") && !is(node, "Div") && !is(node, "Add")) return UINT64_MAX;
  for (uint32_t k = 0; k < node->n_inputs && k < 2; k++) {
    const uint64_t product = find_product(s, node->inputs[k], at, depth - 1);
    if (product != UINT64_MAX) return pick(s, at) ? product : UINT64_MAX;
  }
  return UINT64_MAX;
}

static void pick_views(seeker *s, int32_t value, uint64_t before) {
  const uint64_t at = maker_of(s, value, before);
  if (at == UINT64_MAX || !attention_is_view(s->region, region_node(s->region, at)) || !pick(s, at)) return;
  const heddle_pnode *node = region_node(s->region, at);
  for (uint32_t k = 0; k < node->n_inputs; k++)
    if (node->inputs[k] >= 0 && region_node_input(s->region, node, k)->data == NULL) pick_views(s, node->inputs[k], at);
}

/* Is a result of the node used by others than the picked ones? */
static bool leaks(const seeker *s, uint32_t i) {
  const heddle_pnode *node = region_node(s->region, i);
  for (uint32_t k = 0; k < node->n_outputs; k++) {
    const int32_t value = node->outputs[k];
    if (region_output_slot(s->region, value) >= 0) return true;
    for (uint64_t user = user_of(s, value, i); user != UINT64_MAX; user = user_of(s, value, user))
      if (!picked(s, user)) return true;
  }
  return false;
}

/* Leaves out what others use too. False where it is one of the core; last is the node that gives the result. */
static bool close_up(seeker *s, uint32_t last) {
  for (uint32_t i = 0; i < s->count;) {
    if (s->picks[i] == last || !leaks(s, s->picks[i])) {
      i++;
      continue;
    }
    if (i < s->core) return false;
    s->picks[i] = s->picks[--s->count];
    i = 0;
  }
  return true;
}

/* Picks Where(IsNaN(y), 0, y) of a result y of node at; gives the node that has what is used from there on. */
static uint64_t pick_guard(seeker *s, uint64_t at) {
  const int32_t y = region_node(s->region, at)->outputs[0];
  const uint64_t test = user_of(s, y, at);
  if (test == UINT64_MAX || !is(region_node(s->region, test), "IsNaN")) return at;
  const uint64_t choice = user_of(s, region_node(s->region, test)->outputs[0], test);
  if (choice == UINT64_MAX || !is(region_node(s->region, choice), "Where") ||
      region_node(s->region, choice)->inputs[2] != y || !pick(s, test) || !pick(s, choice))
    return at;
  return choice;
}

static bool seek(seeker *s, uint64_t softmax) {
  enum { STEPS = 4 };
  const heddle_pnode *node = region_node(s->region, softmax);
  s->count = 0;
  if (node->n_inputs < 1 || node->n_outputs != 1 || !pick(s, softmax)) return false;
  const uint64_t first = find_product(s, node->inputs[0], softmax, STEPS);
  const uint64_t weights = pick_guard(s, softmax);
  node = region_node(s->region, weights);
  const uint64_t second = user_of(s, node->outputs[0], weights);
  if (first == UINT64_MAX || second == UINT64_MAX) return false;
  const heddle_pnode *scores = region_node(s->region, first), *result = region_node(s->region, second);
  if (!is(result, "MatMul") || result->n_inputs != 2 || result->inputs[0] != node->outputs[0] || !pick(s, second))
    return false;
  uint64_t last = user_of(s, result->outputs[0], second);
  if (last == UINT64_MAX || !is(region_node(s->region, last), "Transpose") ||
      region_output_slot(s->region, result->outputs[0]) >= 0 || user_of(s, result->outputs[0], last) != UINT64_MAX ||
      !pick(s, last))
    last = second;
  s->core = s->count;
  pick_views(s, scores->inputs[0], first);
  pick_views(s, scores->inputs[1], first);
  pick_views(s, result->inputs[1], second);
  return close_up(s, (uint32_t)last);
}

static void sort(uint32_t *picks, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    const uint32_t it = picks[i];
    uint32_t k = i;
    for (; k > 0 && picks[k - 1] > it; k--) picks[k] = picks[k - 1];
    picks[k] = it;
  }
}

heddle_status onednn_propose_attention(const onednn *self, const heddle_pregion *region, unsigned char *taken,
                                       heddle_propose_fn propose, void *sink, heddle_error *err) {
  seeker s = {.region = region, .taken = taken};
  for (uint64_t i = 0; self != NULL && i < region->nodes.count; i++) {
    bool whole = false;
    if (!is(region_node(region, i), "Softmax") || !seek(&s, i)) continue;
    uint32_t core[ATTENTION_NODES];
    memcpy(core, s.picks, s.core * sizeof *core);
    sort(s.picks, s.count);
    heddle_status status = onednn_takes_picks(self, region, s.picks, s.count, &whole, err);
    if (status == HEDDLE_OK && !whole && s.count > s.core) { /* as it is without what only moves elements */
      memcpy(s.picks, core, s.core * sizeof *core);
      s.count = s.core;
      sort(s.picks, s.count);
      status = onednn_takes_picks(self, region, s.picks, s.count, &whole, err);
    }
    if (status == HEDDLE_OK && whole) status = propose(sink, s.picks, s.count, err);
    if (status != HEDDLE_OK) return status;
    for (uint32_t k = 0; whole && k < s.count; k++) taken[s.picks[k]] = 1;
  }
  return HEDDLE_OK;
}
