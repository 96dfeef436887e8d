/* executor/budget/peak.c: finds the step of a plan's list at which a device's values take most bytes, and what lies there
 * then. */
#include <string.h>

#include "core/error.h"
#include "core/alloc.h"
#include "executor/budget/net.h"

static bool is_kept(const heddle__instance *it) {
  return it->role != HEDDLE__ROLE_TEMP && it->role != HEDDLE__ROLE_WORKSPACE;
}

heddle_status budget_peak_init(budget_peak *peak, const heddle__plan *plan, uint32_t device, heddle_error *err) {
  *peak = (budget_peak){.live = heddle__alloc((size_t)plan->n_instances + 1, sizeof *peak->live)};
  uint64_t *change = heddle__alloc((size_t)plan->n_steps * 2 + 2, sizeof *change), live = 0, most = 0;
  if (peak->live == NULL || change == NULL) {
    heddle__free(peak->live);
    heddle__free(change);
    *peak = (budget_peak){0};
    return heddle__no_memory(err, "the peak of a plan");
  }
  uint64_t *ends = change + plan->n_steps + 1; /* bytes that are over after a step */
  for (uint32_t i = 0; i < plan->n_instances; i++) {
    const heddle__instance *it = &plan->instances[i];
    if (is_kept(it) || it->first_step == HEDDLE__NONE || !budget_counts(plan, it, device)) continue;
    change[it->first_step] += it->bytes;
    ends[it->last_step] += it->bytes;
  }
  for (uint32_t s = 0; s < plan->n_steps; s++) {
    live += change[s];
    if (live > most) {
      most = live;
      peak->step = s;
    }
    live -= ends[s];
  }
  for (uint32_t i = 0; i < plan->n_instances; i++) {
    const heddle__instance *it = &plan->instances[i];
    bool there = it->first_step != HEDDLE__NONE && it->first_step <= peak->step && it->last_step >= peak->step;
    peak->live[i] = budget_counts(plan, it, device) && (is_kept(it) || there);
  }
  heddle__free(change);
  return HEDDLE_OK;
}
