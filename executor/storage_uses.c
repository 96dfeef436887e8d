/* executor/storage_uses.c: which steps touch each instance, and which output is written over which input.
 * Order is happens-before, as the clock of the plan gives it; positions in the list of steps decide nothing. */
#include "core/alloc.h"
#include "core/error.h"
#include "executor/storage_blocks.h"

/* Adds a use, or only counts it while steps is NULL. A step that has touched the instance already is its last use. */
static void touch(heddle__uses *uses, uint32_t *counts, uint32_t *latest, uint32_t instance, uint32_t step) {
  if (instance == HEDDLE__NONE || latest[instance] == step + 1) return;
  latest[instance] = step + 1;
  if (uses->steps != NULL) uses->steps[uses->first[instance] + counts[instance]] = step;
  counts[instance]++;
}

static void touch_all(heddle__uses *uses, const heddle__plan *plan, uint32_t *counts, uint32_t *latest) {
  for (uint32_t i = 0; i < plan->n_instances; i++) counts[i] = latest[i] = 0;
  for (uint32_t s = 0; s < plan->n_steps; s++) {
    const heddle__step *step = &plan->steps[s];
    for (uint32_t k = 0; k < step->n_accesses; k++) touch(uses, counts, latest, step->accesses[k].instance, s);
    if (step->kind == HEDDLE__STEP_OP) touch(uses, counts, latest, step->workspace, s);
  }
}

static bool read_steps(heddle__uses *uses, const heddle__plan *plan) {
  uint32_t n = plan->n_instances;
  uint32_t *scratch = heddle__alloc((size_t)n * 2, sizeof *scratch);
  uses->first = heddle__alloc((size_t)n + 1, sizeof *uses->first);
  if (scratch == NULL || uses->first == NULL) {
    heddle__free(scratch);
    return false;
  }
  touch_all(uses, plan, scratch, scratch + n);
  for (uint32_t i = 0; i < n; i++) uses->first[i + 1] = uses->first[i] + scratch[i];
  uses->steps = heddle__alloc(uses->first[n], sizeof *uses->steps);
  if (uses->steps != NULL) touch_all(uses, plan, scratch, scratch + n);
  heddle__free(scratch);
  return uses->steps != NULL;
}

/* Every input that is this instance (a value and a view of it may both be inputs) may share the output's bytes. */
static bool offer_allows(const heddle__plan *plan, const heddle__step *step, uint32_t instance, uint32_t output) {
  const heddle__region *region = &plan->regions[step->region];
  const heddle__offer *offer = &region->offers[region->offer];
  for (uint32_t i = 0; i < region->n_inputs; i++) {
    if (step->in[i] != instance) continue;
    bool pair = false;
    for (uint64_t k = 0; k < offer->n_in_place && !pair; k++)
      pair = offer->in_place[2 * k] == (int32_t)i && offer->in_place[2 * k + 1] == (int32_t)output;
    if (!pair) return false;
  }
  return true;
}

static bool may_inherit(const heddle__plan *plan, const heddle__uses *uses, uint32_t step, uint32_t in, uint32_t out) {
  if (in == HEDDLE__NONE || out == HEDDLE__NONE || in == out) return false;
  const heddle__instance *a = &plan->instances[in], *b = &plan->instances[out];
  if (a->role != HEDDLE__ROLE_TEMP || b->role != HEDDLE__ROLE_TEMP || a->space != b->space || a->bytes != b->bytes)
    return false;
  if (uses->heir[in] != HEDDLE__NONE || uses->inherits[out]) return false;
  for (uint32_t k = uses->first[in]; k < uses->first[in + 1]; k++)
    if (uses->steps[k] != step && !heddle__step_before(plan, uses->steps[k], step)) return false;
  for (uint32_t k = uses->first[out]; k < uses->first[out + 1]; k++)
    if (uses->steps[k] != step && !heddle__step_before(plan, step, uses->steps[k])) return false;
  return true;
}

static void choose_heirs(heddle__uses *uses, const heddle__plan *plan) {
  for (uint32_t s = 0; s < plan->n_steps; s++) {
    const heddle__step *step = &plan->steps[s];
    if (step->kind != HEDDLE__STEP_OP) continue;
    const heddle__region *region = &plan->regions[step->region];
    if (region->n_offers == 0) continue;
    const heddle__offer *offer = &region->offers[region->offer];
    for (uint64_t k = 0; k < offer->n_in_place; k++) {
      int32_t i = offer->in_place[2 * k], o = offer->in_place[2 * k + 1];
      if (i < 0 || o < 0 || (uint32_t)i >= region->n_inputs || (uint32_t)o >= region->n_outputs) continue;
      uint32_t in = step->in[i], out = step->out[o];
      if (!may_inherit(plan, uses, s, in, out) || !offer_allows(plan, step, in, (uint32_t)o)) continue;
      uses->heir[in] = out;
      uses->inherits[out] = true;
    }
  }
}

heddle_status heddle__uses_init(heddle__uses *uses, const heddle__plan *plan, heddle_error *err) {
  *uses = (heddle__uses){0};
  uses->heir = heddle__alloc(plan->n_instances, sizeof *uses->heir);
  uses->inherits = heddle__alloc(plan->n_instances, sizeof *uses->inherits);
  if (uses->heir == NULL || uses->inherits == NULL || !read_steps(uses, plan))
    return heddle__no_memory(err, "the uses of a plan's values");
  for (uint32_t i = 0; i < plan->n_instances; i++) uses->heir[i] = HEDDLE__NONE;
  if (!plan->req.no_reuse) choose_heirs(uses, plan);
  return HEDDLE_OK;
}

void heddle__uses_finish(heddle__uses *uses) {
  heddle__free(uses->first);
  heddle__free(uses->steps);
  heddle__free(uses->heir);
  heddle__free(uses->inherits);
}
