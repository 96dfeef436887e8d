/* executor/routes.c: how a value gets to where it is wanted, with as few copies as the devices allow.
 * Each copy is made once per (value, device) and used by all who want the value there. */
#include "core/error.h"
#include "executor/copies.h"
#include "executor/grow.h"

heddle_status heddle__add_crossing(heddle__copier *c, uint32_t value, uint32_t to, heddle__route route,
                                   const heddle__holder *src, heddle_error *err) {
  heddle__plan *plan = c->plan;
  heddle_status s = HEDDLE__GROW(plan, plan->crossings, plan->n_crossings, c->cap_crossings, err);
  if (s != HEDDLE_OK) return s;
  const heddle__value *v = &plan->values[value];
  bool shared = route == HEDDLE__ROUTE_SHARED;
  uint32_t owner = plan->spaces[plan->instances[src->instance].space].device;
  uint32_t from = v->kind == HEDDLE__VALUE_COMPUTED ? plan->regions[v->region].device : c->home_of[value];
  /* Where it is copied from: of a direct route a page of another device than the one that made the value, where that
   * device's own pages cannot be fetched from. */
  bool from_owner = route == HEDDLE__ROUTE_DIRECT && from != HEDDLE__NONE && to != HEDDLE__NONE && owner != to &&
                    !plan->devices[from].is_inline && !plan->devices[to].is_inline &&
                    !heddle__route_fetches(plan->devices[from].dev, plan->devices[to].dev);
  if (route == HEDDLE__ROUTE_PEER || from_owner) from = owner;
  uint32_t with = shared && owner != from && owner != to ? owner : to; /* at least the owner of the page is known */
  const heddle_device *a = from != HEDDLE__NONE ? plan->devices[from].dev : NULL;
  const heddle_device *b = with != HEDDLE__NONE ? plan->devices[with].dev : NULL;
  heddle__route_cost cost = heddle__route_cost_of(a, b, route);
  plan->crossings[plan->n_crossings++] =
      (heddle__crossing){value, from, to, shared ? owner : HEDDLE__NONE, route, cost, shared ? 0 : v->size};
  return HEDDLE_OK;
}

heddle__holder *heddle__find_usable(const heddle__copier *c, uint32_t value, uint32_t device,
                                    const heddle__image *image) {
  for (heddle__holder *h = c->holders[value]; h != NULL; h = h->next) {
    const uint32_t space = c->plan->instances[h->instance].space;
    if (heddle__space_usable(c->plan, space, device) && heddle__image_same(&c->plan->spaces[space].image, image))
      return h;
  }
  return NULL;
}

heddle__holder *heddle__find_on(const heddle__copier *c, uint32_t value, uint32_t device) {
  heddle__holder *h = c->holders[value];
  while (h != NULL && (c->plan->spaces[c->plan->instances[h->instance].space].device != device ||
                       c->plan->spaces[c->plan->instances[h->instance].space].kind == HEDDLE_MEMORY_PINNED))
    h = h->next;
  return h;
}

/* One that the host sees; of several the one that can be the host side of the device's copies (device may be NONE). */
static heddle__holder *find_host(const heddle__copier *c, uint32_t value, uint32_t device) {
  heddle__holder *any = NULL;
  for (heddle__holder *h = c->holders[value]; h != NULL; h = h->next) {
    uint32_t space = c->plan->instances[h->instance].space;
    if (!c->plan->spaces[space].host_visible) continue;
    if (device != HEDDLE__NONE && heddle__space_host_side(c->plan, space, device)) return h;
    if (any == NULL) any = h;
  }
  return any;
}

/* An input or a constant gets its first instance. Inputs lie where the host writes them and the first device that is
 * not inline can fetch them; a constant lies on each device that reads it. */
static heddle_status bring_in(heddle__copier *c, uint32_t value, uint32_t device, const heddle__image *image,
                              heddle_error *err) {
  heddle__plan *plan = c->plan;
  const heddle__value *v = &plan->values[value];
  uint32_t space = HEDDLE__NONE, instance = HEDDLE__NONE;
  bool constant = v->kind == HEDDLE__VALUE_CONSTANT;
  uint32_t host = device != HEDDLE__NONE && plan->devices[device].is_inline ? device : heddle__host_device(plan);
  heddle_status s;
  if (constant) {
    uint32_t where = device != HEDDLE__NONE ? device : host != HEDDLE__NONE ? host : 0;
    s = heddle__space_form(c, where, image, true, &space, err);
  } else if (c->home_of[value] != HEDDLE__NONE) {
    s = heddle__space_get(c, c->home_of[value], HEDDLE_MEMORY_DEVICE, true, &space, err);
  } else {
    s = heddle__host_space(c, value, host, &space, err);
  }
  heddle__role role = constant ? HEDDLE__ROLE_CONSTANT : HEDDLE__ROLE_INPUT;
  if (s == HEDDLE_OK) s = heddle__add_instance(c, value, space, role, v->arg, &instance, err);
  if (s == HEDDLE_OK) s = heddle__add_holder(c, value, instance, HEDDLE__NONE, true, NULL, err);
  return s;
}

/* The instance into which a value is copied for the host: the output itself, where the value is one. */
static heddle_status host_target(heddle__copier *c, uint32_t value, uint32_t space, uint32_t *out, heddle_error *err) {
  uint32_t output = c->as_output[value];
  heddle__role role = output != HEDDLE__NONE ? HEDDLE__ROLE_OUTPUT : HEDDLE__ROLE_TEMP;
  heddle_status s = heddle__add_instance(c, value, space, role, output, out, err);
  if (s == HEDDLE_OK && output != HEDDLE__NONE) {
    c->plan->outputs[output].instance = *out;
    c->as_output[value] = HEDDLE__NONE;
  }
  return s;
}

heddle_status heddle__reach_host(heddle__copier *c, uint32_t value, heddle__holder **out, heddle_error *err) {
  static const heddle__image plain = {0};
  heddle__plan *plan = c->plan;
  *out = find_host(c, value, HEDDLE__NONE);
  if (*out != NULL) return HEDDLE_OK;
  heddle_status s;
  if (c->holders[value] == NULL) {
    s = bring_in(c, value, HEDDLE__NONE, &plain, err);
    if (s != HEDDLE_OK) return s;
    *out = find_host(c, value, HEDDLE__NONE);
    if (*out != NULL) return HEDDLE_OK;
  }
  heddle__holder *src = c->holders[value];
  uint32_t device = plan->spaces[plan->instances[src->instance].space].device;
  uint32_t space = HEDDLE__NONE, dst = HEDDLE__NONE;
  s = heddle__space_get(c, device, HEDDLE_MEMORY_PINNED, false, &space, err);
  if (s == HEDDLE_OK) s = host_target(c, value, space, &dst, err);
  if (s == HEDDLE_OK) s = heddle__add_copy(c, HEDDLE__STEP_D2H, device, src, dst, out, err);
  return s;
}

/* A holder on a device of the same plugin from which a direct copy is possible. */
static heddle__holder *find_peer(const heddle__copier *c, uint32_t value, uint32_t device) {
  const heddle__plan *plan = c->plan;
  for (heddle__holder *h = c->holders[value]; h != NULL; h = h->next) {
    const heddle__space *x = &plan->spaces[plan->instances[h->instance].space];
    if (x->kind != HEDDLE_MEMORY_PINNED && heddle__route_peers(plan->devices[x->device].dev, plan->devices[device].dev))
      return h;
  }
  return NULL;
}

/* To an inline device that cannot compute where the value lies: a copy by the host. */
static heddle_status to_inline(heddle__copier *c, uint32_t value, uint32_t device, heddle__holder **out,
                               heddle_error *err) {
  heddle__holder *src = NULL;
  heddle_status s = heddle__reach_host(c, value, &src, err);
  if (s != HEDDLE_OK) return s;
  if (heddle__space_usable(c->plan, c->plan->instances[src->instance].space, device)) {
    *out = src;
    return heddle__add_crossing(c, value, device, HEDDLE__ROUTE_DIRECT, src, err);
  }
  uint32_t space = HEDDLE__NONE, dst = HEDDLE__NONE;
  s = heddle__space_get(c, device, HEDDLE_MEMORY_DEVICE, true, &space, err);
  if (s == HEDDLE_OK) s = host_target(c, value, space, &dst, err);
  if (s == HEDDLE_OK) s = heddle__add_copy(c, HEDDLE__STEP_HOST_COPY, HEDDLE__NONE, src, dst, out, err);
  return s == HEDDLE_OK ? heddle__add_crossing(c, value, device, HEDDLE__ROUTE_STAGED, src, err) : s;
}

/* What the host made, or was given, a device fetches from the host: a peer would have to fetch it first. */
static bool host_has_it_first(const heddle__copier *c, uint32_t value, uint32_t device) {
  const heddle__plan *plan = c->plan;
  const heddle__value *v = &plan->values[value];
  if (v->kind == HEDDLE__VALUE_COMPUTED && !plan->devices[plan->regions[v->region].device].is_inline) return false;
  if (c->home_of[value] != HEDDLE__NONE && !plan->devices[c->home_of[value]].is_inline) return false;
  const heddle__holder *h = find_host(c, value, device);
  return h != NULL && heddle__space_host_side(plan, plan->instances[h->instance].space, device);
}

static heddle_status to_accelerator(heddle__copier *c, uint32_t value, uint32_t device, const heddle__image *image,
                                    heddle__holder **out, heddle_error *err) {
  heddle__plan *plan = c->plan;
  uint32_t space = HEDDLE__NONE, dst = HEDDLE__NONE;
  heddle_status s = heddle__space_form(c, device, image, true, &space, err);
  if (s != HEDDLE_OK) return s;
  heddle__holder *other = heddle__find_on(c, value, device); /* an image, where bytes are wanted, or the reverse */
  if (other != NULL) {
    s = heddle__add_instance(c, value, space, HEDDLE__ROLE_TEMP, HEDDLE__NONE, &dst, err);
    return s == HEDDLE_OK ? heddle__add_copy(c, HEDDLE__STEP_D2D, device, other, dst, out, err) : s;
  }
  heddle__holder *src = host_has_it_first(c, value, device) ? NULL : find_peer(c, value, device);
  if (src != NULL) {
    s = heddle__add_instance(c, value, space, HEDDLE__ROLE_TEMP, HEDDLE__NONE, &dst, err);
    if (s == HEDDLE_OK) s = heddle__add_copy(c, HEDDLE__STEP_PEER, device, src, dst, out, err);
    return s == HEDDLE_OK ? heddle__add_crossing(c, value, device, HEDDLE__ROUTE_PEER, src, err) : s;
  }
  heddle__route route = find_host(c, value, device) != NULL ? HEDDLE__ROUTE_DIRECT : HEDDLE__ROUTE_STAGED;
  s = heddle__reach_host(c, value, &src, err);
  if (s != HEDDLE_OK) return s;
  src = find_host(c, value, device);
  if (!heddle__space_host_side(plan, plan->instances[src->instance].space, device)) {
    uint32_t pinned = HEDDLE__NONE, hop = HEDDLE__NONE;
    s = heddle__space_get(c, device, HEDDLE_MEMORY_PINNED, true, &pinned, err);
    if (s == HEDDLE_OK) s = heddle__add_instance(c, value, pinned, HEDDLE__ROLE_TEMP, HEDDLE__NONE, &hop, err);
    if (s == HEDDLE_OK) s = heddle__add_copy(c, HEDDLE__STEP_HOST_COPY, HEDDLE__NONE, src, hop, &src, err);
    if (s != HEDDLE_OK) return s;
    route = route == HEDDLE__ROUTE_DIRECT ? HEDDLE__ROUTE_STAGED : HEDDLE__ROUTE_STAGED2;
  }
  s = heddle__add_instance(c, value, space, HEDDLE__ROLE_TEMP, HEDDLE__NONE, &dst, err);
  if (s == HEDDLE_OK) s = heddle__add_copy(c, HEDDLE__STEP_H2D, device, src, dst, out, err);
  return s == HEDDLE_OK ? heddle__add_crossing(c, value, device, route, src, err) : s;
}

heddle_status heddle__reach_device(heddle__copier *c, uint32_t value, uint32_t device, const heddle__image *image,
                                   heddle__holder **out, heddle_error *err) {
  heddle__plan *plan = c->plan;
  const heddle__value *v = &plan->values[value];
  *out = heddle__find_usable(c, value, device, image);
  if (*out != NULL) return HEDDLE_OK;
  if (v->kind == HEDDLE__VALUE_CONSTANT || c->holders[value] == NULL) {
    heddle_status s = bring_in(c, value, device, image, err);
    if (s != HEDDLE_OK) return s;
    *out = heddle__find_usable(c, value, device, image);
    if (*out != NULL) return HEDDLE_OK;
  }
  return plan->devices[device].is_inline ? to_inline(c, value, device, out, err)
                                         : to_accelerator(c, value, device, image, out, err);
}
