/* executor/spaces.c: the memories that a plan uses, and who can reach them. */
#include "core/error.h"
#include "executor/copies.h"
#include "executor/grow.h"

uint32_t heddle__host_device(const heddle__plan *plan) {
  for (uint32_t i = 0; i < plan->n_devices; i++) {
    if (plan->devices[i].is_inline) return i;
  }
  return HEDDLE__NONE;
}

bool heddle__is_unified(const heddle__plan *plan, uint32_t device) {
  return !plan->devices[device].is_inline && (plan->devices[device].dev->desc.caps & HEDDLE_CAP_UNIFIED) != 0;
}

heddle_status heddle__space_get(heddle__copier *c, uint32_t device, uint32_t kind, bool host_writes, uint32_t *out,
                                heddle_error *err) {
  heddle__plan *plan = c->plan;
  const heddle__plan_device *d = &plan->devices[device];
  if (d->is_inline) kind = HEDDLE_MEMORY_DEVICE;
  bool coherent = d->is_inline || kind == HEDDLE_MEMORY_DEVICE || (d->dev->desc.caps & HEDDLE_CAP_NONCOHERENT) == 0;
  uint32_t *mine = &c->space_of[device][kind][!coherent && host_writes ? 1 : 0];
  *out = *mine;
  if (*out != HEDDLE__NONE) return HEDDLE_OK;
  heddle_status s = HEDDLE__GROW(plan, plan->spaces, plan->n_spaces, c->cap_spaces, err);
  if (s != HEDDLE_OK) return s;
  heddle__space *x = &plan->spaces[plan->n_spaces];
  x->device = device;
  x->kind = kind;
  x->host_visible = d->is_inline || kind != HEDDLE_MEMORY_DEVICE;
  x->coherent = coherent;
  x->align = d->dev->desc.alignment;
  if (x->host_visible && x->align < c->host_align) x->align = c->host_align;
  *out = *mine = plan->n_spaces++;
  return HEDDLE_OK;
}

bool heddle__space_usable(const heddle__plan *plan, uint32_t space, uint32_t device) {
  const heddle__space *x = &plan->spaces[space];
  const heddle__plan_device *d = &plan->devices[device];
  if (x->device == device) return d->is_inline || x->kind != HEDDLE_MEMORY_PINNED;
  uint64_t import = d->dev->desc.import_alignment;
  return d->is_inline && x->host_visible && import != 0 && x->align % import == 0;
}

bool heddle__space_host_side(const heddle__plan *plan, uint32_t space, uint32_t device) {
  const heddle__space *x = &plan->spaces[space];
  if (!x->host_visible) return false;
  if (x->device == device) return true;
  const heddle_device *owner = plan->devices[x->device].dev, *dev = plan->devices[device].dev;
  if (!plan->devices[x->device].is_inline && owner->instance == dev->instance &&
      owner->desc.event_domain == dev->desc.event_domain) {
    return true;
  }
  /* A range of plain host memory or of another plugin's pinned memory, imported whole (arenas are page-aligned). */
  return x->coherent && dev->desc.import_alignment != 0 && dev->desc.import_alignment <= 4096 &&
         dev->t->memory.import_host != NULL;
}

heddle_status heddle__host_space(heddle__copier *c, uint32_t value, uint32_t home, uint32_t *out, heddle_error *err) {
  heddle__plan *plan = c->plan;
  const bool *consumer = c->consumer + (size_t)value * plan->n_devices;
  uint32_t first = HEDDLE__NONE, unified = HEDDLE__NONE;
  for (uint32_t d = plan->n_devices; d-- > 0;) {
    if (!consumer[d] || plan->devices[d].is_inline) continue;
    first = d;
    if (heddle__is_unified(plan, d)) unified = d;
  }
  if (first == HEDDLE__NONE && home != HEDDLE__NONE)
    return heddle__space_get(c, home, HEDDLE_MEMORY_DEVICE, true, out, err);
  uint32_t owner = unified != HEDDLE__NONE ? unified : first != HEDDLE__NONE ? first : 0;
  uint32_t kind = unified != HEDDLE__NONE ? HEDDLE_MEMORY_UNIFIED : HEDDLE_MEMORY_PINNED;
  heddle_status s = heddle__space_get(c, owner, kind, true, out, err);
  if (s != HEDDLE_OK || home == HEDDLE__NONE || heddle__space_usable(plan, *out, home)) return s;
  return heddle__space_get(c, home, HEDDLE_MEMORY_DEVICE, true, out, err); /* home cannot import: a host copy follows */
}
