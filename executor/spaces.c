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
  const heddle_device *dev = plan->devices[device].dev;
  uint32_t host = heddle__host_device(plan);
  if (plan->devices[device].is_inline || (dev->desc.caps & HEDDLE_CAP_UNIFIED) == 0) return false;
  return host == HEDDLE__NONE || plan->devices[host].dev->desc.import_alignment == 0 ||
         heddle__route_shares(dev, plan->devices[host].dev);
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
  for (uint32_t i = 0; kind == HEDDLE_MEMORY_UNIFIED && i < plan->n_devices; i++) {
    const heddle_device *user = plan->devices[i].dev;
    if (!plan->devices[i].is_inline && heddle__route_shares(d->dev, user) && user->desc.alignment > x->align)
      x->align = user->desc.alignment;
  }
  *out = *mine = plan->n_spaces++;
  return HEDDLE_OK;
}

const heddle__image *heddle__value_form(const heddle__plan *plan, uint32_t value, uint32_t device) {
  static const heddle__image plain = {0};
  return plan->devices[device].is_inline ? &plain : &plan->values[value].image;
}

heddle_status heddle__space_form(heddle__copier *c, uint32_t device, const heddle__image *image, bool host_writes,
                                 uint32_t *out, heddle_error *err) {
  heddle__plan *plan = c->plan;
  if (image->width == 0) return heddle__space_get(c, device, HEDDLE_MEMORY_DEVICE, host_writes, out, err);
  for (*out = 0; *out < plan->n_spaces; (*out)++) {
    const heddle__space *x = &plan->spaces[*out];
    if (x->device == device && heddle__image_same(&x->image, image)) return HEDDLE_OK;
  }
  heddle_status s = HEDDLE__GROW(plan, plan->spaces, plan->n_spaces, c->cap_spaces, err);
  if (s != HEDDLE_OK) return s;
  plan->spaces[plan->n_spaces++] = (heddle__space){.device = device,
                                                   .kind = HEDDLE_MEMORY_DEVICE,
                                                   .coherent = true,
                                                   .align = plan->devices[device].dev->desc.alignment,
                                                   .image = *image};
  return HEDDLE_OK;
}

bool heddle__space_usable(const heddle__plan *plan, uint32_t space, uint32_t device) {
  const heddle__space *x = &plan->spaces[space];
  const heddle__plan_device *d = &plan->devices[device];
  if (x->device == device) return d->is_inline || x->kind != HEDDLE_MEMORY_PINNED;
  if (x->kind == HEDDLE_MEMORY_UNIFIED && !heddle__route_shares(plan->devices[x->device].dev, d->dev)) return false;
  if (!d->is_inline) return x->kind == HEDDLE_MEMORY_UNIFIED;
  uint64_t import = d->dev->desc.import_alignment;
  return x->host_visible && import != 0 && x->align % import == 0;
}

bool heddle__space_host_side(const heddle__plan *plan, uint32_t space, uint32_t device) {
  const heddle__space *x = &plan->spaces[space];
  return x->host_visible && heddle__route_fetches(plan->devices[x->device].dev, plan->devices[device].dev);
}

/* How many of a value's readers, beside the device that writes it, can use a page of owner's; the host for an output is
 * one. */
static uint32_t count_users(const heddle__copier *c, uint32_t value, uint32_t owner, uint32_t writer) {
  const heddle__plan *plan = c->plan;
  const bool *consumer = c->consumer + (size_t)value * plan->n_devices;
  uint32_t n = c->as_output[value] != HEDDLE__NONE;
  for (uint32_t d = 0; d < plan->n_devices; d++) {
    if (!consumer[d] || (d == writer && !plan->devices[d].is_inline)) continue;
    n += d == owner || plan->devices[d].is_inline ||
         heddle__route_shares(plan->devices[owner].dev, plan->devices[d].dev);
  }
  return n;
}

uint32_t heddle__page_owner(const heddle__copier *c, uint32_t value, uint32_t writer) {
  const heddle__plan *plan = c->plan;
  const bool *consumer = c->consumer + (size_t)value * plan->n_devices;
  bool by_device = writer != HEDDLE__NONE && !plan->devices[writer].is_inline;
  uint32_t best = HEDDLE__NONE, most = 0;
  for (uint32_t turn = 0; turn <= plan->n_devices; turn++) { /* of equal ones the writer's own, then the first */
    uint32_t d = turn == 0 ? writer : turn - 1;
    if (d == HEDDLE__NONE || (turn > 0 && !consumer[d]) || !heddle__is_unified(plan, d)) continue;
    if (by_device && d != writer && !heddle__route_shares(plan->devices[d].dev, plan->devices[writer].dev)) continue;
    uint32_t users = count_users(c, value, d, writer);
    if (users <= most) continue;
    best = d;
    most = users;
  }
  return best;
}

heddle_status heddle__host_space(heddle__copier *c, uint32_t value, uint32_t home, uint32_t *out, heddle_error *err) {
  heddle__plan *plan = c->plan;
  const bool *consumer = c->consumer + (size_t)value * plan->n_devices;
  uint32_t first = HEDDLE__NONE, unified = heddle__page_owner(c, value, home);
  for (uint32_t d = plan->n_devices; d-- > 0;)
    if (consumer[d] && !plan->devices[d].is_inline) first = d;
  if (first == HEDDLE__NONE && home != HEDDLE__NONE)
    return heddle__space_get(c, home, HEDDLE_MEMORY_DEVICE, true, out, err);
  uint32_t owner = unified != HEDDLE__NONE ? unified : first != HEDDLE__NONE ? first : 0;
  uint32_t kind = unified != HEDDLE__NONE ? HEDDLE_MEMORY_UNIFIED : HEDDLE_MEMORY_PINNED;
  heddle_status s = heddle__space_get(c, owner, kind, true, out, err);
  if (s != HEDDLE_OK || home == HEDDLE__NONE || heddle__space_usable(plan, *out, home)) return s;
  return heddle__space_get(c, home, HEDDLE_MEMORY_DEVICE, true, out, err); /* home cannot import: a host copy follows */
}
