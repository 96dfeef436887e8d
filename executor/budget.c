/* executor/budget.c: counts what a plan takes of its devices, and plans within the limits of models that have some. */
#include "executor/budget.h"

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"
#include "core/registry.h"
#include "core/watch.h"
#include "executor/constants.h"

#define MOST (UINT64_MAX >> 3) /* larger numbers count as this, so that sums of them do not overflow */

/* What operators on a device keep for themselves, as their plugin says: each once, and each launch for each run in
 * flight. */
static uint64_t kept_bytes(const heddle__plan *plan, uint32_t device) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < plan->n_steps && sum < MOST; i++) {
    if (plan->steps[i].kind != HEDDLE__STEP_OP) continue;
    const heddle__region *r = &plan->regions[plan->steps[i].region];
    if (r->device != device || r->offers == NULL || r->offer >= r->n_offers) continue;
    const heddle__offer *o = &r->offers[r->offer];
    if (o->kept_bytes > MOST - sum || o->launch_bytes > (MOST - sum - o->kept_bytes) / plan->req.in_flight) return MOST;
    sum += o->kept_bytes + o->launch_bytes * plan->req.in_flight;
  }
  return sum;
}

uint64_t heddle__plan_bytes(const heddle__plan *plan, uint32_t device, uint32_t kind) {
  const heddle_device *dev = plan->devices[device].dev;
  uint64_t granule = heddle__plan_granule(plan);
  uint64_t sum = kind == HEDDLE_MEMORY_DEVICE ? kept_bytes(plan, device) : 0;
  for (uint32_t i = 0; i < plan->n_allocs; i++) {
    const heddle__allocation *a = &plan->allocs[i];
    const heddle__space *space = &plan->spaces[a->space];
    if (space->device != device || space->kind != kind) continue;
    uint64_t bytes = a->bytes, sets = plan->req.in_flight; /* all but constants is there for each run in flight */
    if (a->kind == HEDDLE__ALLOC_CONSTANT) {
      if (heddle__constant_lent(plan, &plan->instances[a->instance])) continue;
      bytes = plan->instances[a->instance].bytes;
      sets = 1;
    }
    bytes = heddle__memory_size(dev, kind, bytes, granule);
    if (bytes > (MOST - sum) / sets) return MOST;
    sum += sets * bytes;
  }
  return sum;
}

uint64_t heddle__plan_counted(const heddle__plan *plan, uint32_t device) {
  return heddle__plan_bytes(plan, device, HEDDLE_MEMORY_DEVICE) +
         heddle__plan_bytes(plan, device, HEDDLE_MEMORY_UNIFIED);
}

static heddle_status note(void *any, const char *rest, const char *value, heddle_error *err) {
  (void)rest, (void)value, (void)err;
  *(bool *)any = true;
  return HEDDLE_OK;
}

heddle_status heddle__budget_read(heddle_model *m, const char *list, heddle_error *err) {
  const char *from = "call";
  bool strict = list != NULL, any = strict || heddle__config_get(m->ctx->config, "limit.memory", &list, &from);
  heddle_status s = HEDDLE_OK;
  if (!any) {
    from = "limit.memory";
    s = heddle__config_each(m->ctx->config, "limit.memory.", note, &any, err);
  }
  if (s != HEDDLE_OK || !any) return s;
#if !HEDDLE_HAS_BUDGET
  s = heddle__left_out(err, "limits on memory", "HEDDLE_BUDGET");
  return heddle__prefix(err, s, "%s: ", m->graph->source);
#else
  m->limits = heddle__alloc(m->n_devices, sizeof *m->limits);
  if (m->limits == NULL) return heddle__no_memory(err, "a model's limits");
  m->limits_from = from;
  if (strict && (m->limits_text = heddle__strdup(list)) == NULL) return heddle__no_memory(err, "a model's limits");
  return heddle__limits_read(m, list, from, strict, m->limits, err);
#endif
}

heddle_status heddle__budget_plan(const heddle_model *m, const heddle__request *request, heddle__plan **out,
                                  heddle_error *err) {
  heddle__watch watch = {.deadline_ns = heddle__model_plan_deadline(m)};
  heddle_status s;
  heddle__watch_enter(&watch);
#if HEDDLE_HAS_BUDGET
  s = m->limits != NULL ? heddle__budget_fit(request, out, err) : heddle__plan_make(request, out, err);
#else
  s = heddle__plan_make(request, out, err);
#endif
  heddle__watch_leave(&watch);
  return s;
}
