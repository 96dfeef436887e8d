/* executor/steps.c: instances and steps as the copies pass collects them, and the visibility of what was written. */
#include <string.h>

#include "core/error.h"
#include "executor/copies.h"
#include "executor/grow.h"

heddle_status heddle__plan_grow(heddle__plan *plan, void **array, uint32_t count, uint32_t *cap, size_t size,
                                heddle_error *err) {
  if (count < *cap) return HEDDLE_OK;
  uint32_t more = *cap < 8 ? 16 : *cap * 2;
  void *fresh = heddle__plan_alloc(plan, more, size);
  if (fresh == NULL) return heddle__no_memory(err, "a plan");
  if (count != 0) memcpy(fresh, *array, count * size);
  *array = fresh;
  *cap = more;
  return HEDDLE_OK;
}

heddle_status heddle__add_instance(heddle__copier *c, uint32_t value, uint32_t space, heddle__role role, uint32_t io,
                                   uint32_t *out, heddle_error *err) {
  heddle__plan *plan = c->plan;
  heddle_status s = HEDDLE__GROW(plan, plan->instances, plan->n_instances, c->cap_instances, err);
  if (s != HEDDLE_OK) return s;
  heddle__instance *i = &plan->instances[plan->n_instances];
  *i = (heddle__instance){.value = value,
                          .space = space,
                          .role = role,
                          .io = io,
                          .align = plan->spaces[space].align,
                          .alloc = HEDDLE__NONE,
                          .first_step = HEDDLE__NONE,
                          .last_step = HEDDLE__NONE};
  if (value != HEDDLE__NONE) {
    i->bytes = plan->values[value].size;
    if (plan->values[value].align > i->align) i->align = plan->values[value].align;
  }
  *out = plan->n_instances++;
  return HEDDLE_OK;
}

heddle_status heddle__add_holder(heddle__copier *c, uint32_t value, uint32_t instance, uint32_t writer, bool host_wrote,
                                 heddle__holder **out, heddle_error *err) {
  heddle__holder *h = heddle__plan_alloc(c->plan, 1, sizeof *h);
  if (h == NULL) return heddle__no_memory(err, "a plan");
  *h = (heddle__holder){NULL, instance, writer, HEDDLE__NONE, host_wrote};
  heddle__holder **end = &c->holders[value];
  while (*end != NULL) end = &(*end)->next;
  *end = h;
  if (out != NULL) *out = h;
  return HEDDLE_OK;
}

heddle_status heddle__add_step(heddle__copier *c, const heddle__step *step, const heddle__access *accesses,
                               uint32_t n_accesses, const uint32_t *deps, uint32_t n_deps, uint32_t *out,
                               heddle_error *err) {
  heddle__plan *plan = c->plan;
  heddle_status s = HEDDLE__GROW(plan, plan->steps, plan->n_steps, c->cap_steps, err);
  if (s != HEDDLE_OK) return s;
  heddle__access *mine = heddle__plan_alloc(plan, n_accesses, sizeof *mine);
  uint32_t *after = heddle__plan_alloc(plan, n_deps, sizeof *after);
  if (mine == NULL || after == NULL) return heddle__no_memory(err, "a plan");
  heddle__step *x = &plan->steps[plan->n_steps];
  *x = *step;
  for (uint32_t i = 0; i < n_accesses; i++) {
    bool seen = false; /* one operand twice is one access */
    for (uint32_t k = 0; k < x->n_accesses; k++) {
      seen = seen || (mine[k].instance == accesses[i].instance && mine[k].kind == accesses[i].kind);
    }
    if (seen) continue;
    mine[x->n_accesses++] = accesses[i];
    heddle__instance *inst = &plan->instances[accesses[i].instance];
    if (inst->first_step == HEDDLE__NONE) inst->first_step = plan->n_steps;
    inst->last_step = plan->n_steps;
  }
  for (uint32_t i = 0; i < n_deps; i++) {
    bool seen = deps[i] == HEDDLE__NONE;
    for (uint32_t k = 0; k < x->n_deps; k++) seen = seen || after[k] == deps[i];
    if (!seen) after[x->n_deps++] = deps[i];
  }
  x->accesses = mine;
  x->deps = after;
  *out = plan->n_steps++;
  return HEDDLE_OK;
}

heddle_status heddle__ready(heddle__copier *c, heddle__holder *h, bool for_host, uint32_t *step, heddle_error *err) {
  heddle__plan *plan = c->plan;
  *step = h->writer;
  if (h->writer == HEDDLE__NONE || h->host_wrote == for_host) return HEDDLE_OK;
  if (plan->spaces[plan->instances[h->instance].space].coherent) return HEDDLE_OK;
  if (h->sync == HEDDLE__NONE) {
    heddle__step x = {.kind = for_host ? HEDDLE__STEP_ACQUIRE : HEDDLE__STEP_RELEASE,
                      .region = HEDDLE__NONE,
                      .device = HEDDLE__NONE,
                      .src = h->instance,
                      .dst = HEDDLE__NONE,
                      .workspace = HEDDLE__NONE};
    heddle__access a = {h->instance, HEDDLE__ACCESS_SYNC};
    heddle_status s = heddle__add_step(c, &x, &a, 1, &h->writer, 1, &h->sync, err);
    if (s != HEDDLE_OK) return s;
  }
  *step = h->sync;
  return HEDDLE_OK;
}

heddle_status heddle__add_copy(heddle__copier *c, heddle__step_kind kind, uint32_t device, heddle__holder *src,
                               uint32_t dst, heddle__holder **out, heddle_error *err) {
  bool on_host = kind == HEDDLE__STEP_HOST_COPY;
  uint32_t dep = HEDDLE__NONE, step = HEDDLE__NONE;
  heddle_status s = heddle__ready(c, src, on_host, &dep, err);
  if (s != HEDDLE_OK) return s;
  heddle__step x = {.kind = kind,
                    .region = HEDDLE__NONE,
                    .device = device,
                    .src = src->instance,
                    .dst = dst,
                    .workspace = HEDDLE__NONE};
  heddle__access a[2] = {{src->instance, HEDDLE__ACCESS_READ}, {dst, HEDDLE__ACCESS_WRITE}};
  s = heddle__add_step(c, &x, a, 2, &dep, 1, &step, err);
  if (s != HEDDLE_OK) return s;
  return heddle__add_holder(c, c->plan->instances[dst].value, dst, step, on_host, out, err);
}
