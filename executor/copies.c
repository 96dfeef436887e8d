/* executor/copies.c: the pass that says which bytes lie where and writes the list of steps: operators, and the copies
 * between them, each as early as its value is there. The list is an order in which the steps could run. */
#include <string.h>

#include "core/error.h"
#include "executor/copies.h"

static bool absorbed(const heddle__region *r, uint32_t input) {
  return r->kind != HEDDLE__REGION_VIEW && (r->offers[r->offer].input_flags[input] & HEDDLE_INPUT_ABSORBED) != 0;
}

static bool is_needed(const heddle__copier *c, const heddle__region *r) {
  for (uint32_t i = 0; i < r->n_outputs; i++) {
    if (c->needed[r->outputs[i]]) return true;
  }
  return false;
}

/* Whether an output stays in memory of a device, whichever. */
static bool has_home(const heddle__plan *plan, uint32_t output) {
  bool has = plan->req.homes != NULL && plan->req.homes[output] > 0;
  for (uint32_t i = 0; i < plan->req.n_ties && !has; i++) has = plan->req.ties[i].output == output;
  return has;
}

/* From the outputs back: which values are read, and on which devices. */
static heddle_status mark(heddle__copier *c, heddle_error *err) {
  heddle__plan *plan = c->plan;
  for (uint32_t i = 0; i < plan->n_values; i++) c->as_output[i] = c->as_resident[i] = HEDDLE__NONE;
  for (uint32_t i = plan->n_outputs; i-- > 0;) {
    uint32_t root = plan->values[plan->outputs[i].value].same_as;
    c->needed[plan->outputs[i].value] = c->needed[root] = true;
    /* A head that is an input, a constant or a repeat gets a copy of its own. */
    if (plan->values[root].kind == HEDDLE__VALUE_COMPUTED && !has_home(plan, i)) c->as_output[root] = i;
  }
  for (uint32_t i = plan->n_regions; i-- > 0;) {
    const heddle__region *r = &plan->regions[i];
    if (!is_needed(c, r)) continue;
    if (r->unasked)
      return heddle__fail(err, HEDDLE_EUNSUPPORTED, "node '%s' is run, which it was not for earlier shapes", r->label);
    for (uint32_t k = 0; k < r->n_inputs; k++) {
      if (absorbed(r, k)) continue;
      uint32_t root = plan->values[r->inputs[k]].same_as;
      c->needed[r->inputs[k]] = c->needed[root] = true;
      if (r->kind == HEDDLE__REGION_VIEW) continue;
      c->consumer[(size_t)root * plan->n_devices + r->device] = true;
      c->read_as[(size_t)root * plan->n_devices + r->device] = heddle__value_form(plan, r->inputs[k], r->device);
    }
  }
  return HEDDLE_OK;
}

/* Where an operator on a device writes its result. */
static heddle_status result_space(heddle__copier *c, uint32_t value, uint32_t device, uint32_t *out,
                                  heddle_error *err) {
  heddle__plan *plan = c->plan;
  if (plan->devices[device].is_inline) {
    heddle_status s = heddle__host_space(c, value, device, out, err);
    if (s != HEDDLE_OK || heddle__space_usable(plan, *out, device)) return s;
    return heddle__space_get(c, device, HEDDLE_MEMORY_DEVICE, true, out, err);
  }
  const heddle__image *image = heddle__value_form(plan, value, device);
  if (image->width > 0) return heddle__space_form(c, device, image, false, out, err);
  uint32_t owner = heddle__page_owner(c, value, device);
  return heddle__space_get(c, owner != HEDDLE__NONE ? owner : device,
                           owner != HEDDLE__NONE ? HEDDLE_MEMORY_UNIFIED : HEDDLE_MEMORY_DEVICE, false, out, err);
}

static heddle_status place_result(heddle__copier *c, uint32_t value, uint32_t device, uint32_t *out,
                                  heddle_error *err) {
  uint32_t space = HEDDLE__NONE, resident = c->as_resident[value];
  if (heddle__value_form(c->plan, value, device)->width > 0) resident = HEDDLE__NONE; /* a copy follows */
  heddle_status s = resident == HEDDLE__NONE ? result_space(c, value, device, &space, err)
                                             : heddle__space_get(c, device, HEDDLE_MEMORY_DEVICE, true, &space, err);
  if (s != HEDDLE_OK) return s;
  if (resident != HEDDLE__NONE) {
    c->as_resident[value] = HEDDLE__NONE;
    s = heddle__add_instance(c, value, space, HEDDLE__ROLE_OUTPUT, resident, out, err);
    c->plan->outputs[resident].instance = *out;
    return s;
  }
  uint32_t output = c->as_output[value];
  bool direct = output != HEDDLE__NONE && c->plan->spaces[space].host_visible;
  s = heddle__add_instance(c, value, space, direct ? HEDDLE__ROLE_OUTPUT : HEDDLE__ROLE_TEMP,
                           direct ? output : HEDDLE__NONE, out, err);
  if (s == HEDDLE_OK && direct) {
    c->plan->outputs[output].instance = *out;
    c->as_output[value] = HEDDLE__NONE;
  }
  return s;
}

/* Copies of a value to all that read it, now that it is there; to a device that is short of memory later, when the
 * first operator there reads it. */
static heddle_status spread(heddle__copier *c, uint32_t value, heddle_error *err) {
  heddle__plan *plan = c->plan;
  heddle__holder *h = NULL;
  for (uint32_t d = 0; d < plan->n_devices; d++) {
    if (!c->consumer[(size_t)value * plan->n_devices + d]) continue;
    const heddle__image *image = c->read_as[(size_t)value * plan->n_devices + d];
    if (plan->req.late && plan->req.limits[d] != 0 && heddle__find_usable(c, value, d, image) == NULL) continue;
    heddle_status s = heddle__reach_device(c, value, d, image, &h, err);
    if (s != HEDDLE_OK) return s;
    uint32_t owner = plan->spaces[plan->instances[h->instance].space].device;
    bool shares = plan->spaces[plan->instances[h->instance].space].kind == HEDDLE_MEMORY_UNIFIED && owner != d;
    const heddle__value *v = &plan->values[value];
    bool crosses = v->kind == HEDDLE__VALUE_COMPUTED && plan->regions[v->region].device != d;
    /* Of what the host gives, only what lies in a page of another device is worth a word. */
    crosses = crosses || (v->kind == HEDDLE__VALUE_INPUT && shares && !plan->devices[d].is_inline);
    if (crosses && (shares || (owner == d && h == c->holders[value] &&
                               plan->spaces[plan->instances[h->instance].space].kind == HEDDLE_MEMORY_UNIFIED))) {
      s = heddle__add_crossing(c, value, d, HEDDLE__ROUTE_SHARED, h, err);
      if (s != HEDDLE_OK) return s;
    }
  }
  const uint32_t steps = plan->n_steps;
  if (c->as_output[value] == HEDDLE__NONE) return HEDDLE_OK;
  heddle_status s = heddle__reach_host(c, value, &h, err);
  if (s != HEDDLE_OK || plan->n_steps == steps) return s;
  return heddle__add_crossing(c, value, HEDDLE__NONE, HEDDLE__ROUTE_DIRECT, c->holders[value], err);
}

static heddle_status add_operator(heddle__copier *c, uint32_t number, heddle_error *err) {
  heddle__plan *plan = c->plan;
  const heddle__region *r = &plan->regions[number];
  const heddle__offer *o = &r->offers[r->offer];
  bool on_host = plan->devices[r->device].is_inline;
  uint32_t most = r->n_inputs + r->n_outputs + 1;
  heddle__access *accesses = heddle__plan_alloc(plan, most, sizeof *accesses);
  uint32_t *deps = heddle__plan_alloc(plan, most, sizeof *deps);
  uint32_t *in = heddle__plan_alloc(plan, r->n_inputs, sizeof *in);
  uint32_t *out = heddle__plan_alloc(plan, r->n_outputs, sizeof *out);
  if (!accesses || !deps || !in || !out) return heddle__no_memory(err, "a step");
  uint32_t n = 0, n_deps = 0;
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < r->n_inputs; i++) {
    in[i] = HEDDLE__NONE;
    if (absorbed(r, i)) continue;
    heddle__holder *h = NULL;
    s = heddle__reach_device(c, plan->values[r->inputs[i]].same_as, r->device,
                             heddle__value_form(plan, r->inputs[i], r->device), &h, err);
    if (s == HEDDLE_OK) s = heddle__ready(c, h, on_host, &deps[n_deps], err);
    if (s != HEDDLE_OK) return s;
    n_deps++;
    in[i] = h->instance;
    accesses[n++] = (heddle__access){h->instance, HEDDLE__ACCESS_READ};
  }
  heddle__step x = {.kind = HEDDLE__STEP_OP,
                    .region = number,
                    .device = r->device,
                    .src = HEDDLE__NONE,
                    .dst = HEDDLE__NONE,
                    .workspace = HEDDLE__NONE,
                    .in = in,
                    .out = out};
  for (uint32_t i = 0; i < r->n_outputs; i++) {
    s = place_result(c, r->outputs[i], r->device, &out[i], err);
    if (s != HEDDLE_OK) return s;
    accesses[n++] = (heddle__access){out[i], HEDDLE__ACCESS_WRITE};
  }
  if (o->workspace_bytes != 0) {
    uint32_t space = HEDDLE__NONE;
    s = heddle__space_get(c, r->device, HEDDLE_MEMORY_DEVICE, false, &space, err);
    if (s == HEDDLE_OK) {
      s = heddle__add_instance(c, HEDDLE__NONE, space, HEDDLE__ROLE_WORKSPACE, HEDDLE__NONE, &x.workspace, err);
    }
    if (s != HEDDLE_OK) return s;
    plan->instances[x.workspace].bytes = o->workspace_bytes;
    if (o->workspace_align > plan->instances[x.workspace].align) {
      plan->instances[x.workspace].align = o->workspace_align;
    }
    accesses[n++] = (heddle__access){x.workspace, HEDDLE__ACCESS_WRITE};
  }
  uint32_t step = HEDDLE__NONE;
  s = heddle__add_step(c, &x, accesses, n, deps, n_deps, &step, err);
  for (uint32_t i = 0; s == HEDDLE_OK && i < r->n_outputs; i++) {
    s = heddle__add_holder(c, r->outputs[i], out[i], step, on_host, NULL, err);
    if (s == HEDDLE_OK && c->needed[r->outputs[i]]) s = spread(c, r->outputs[i], err);
  }
  return s;
}

/* Outputs that no step has written to yet: copies of what lies elsewhere. */
static heddle_status add_outputs(heddle__copier *c, heddle_error *err) {
  static const heddle__image plain = {0};
  heddle__plan *plan = c->plan;
  uint32_t host = heddle__host_device(plan);
  for (uint32_t i = 0; i < plan->n_outputs; i++) {
    if (plan->outputs[i].instance != HEDDLE__NONE) continue;
    uint32_t root = plan->values[plan->outputs[i].value].same_as, space = HEDDLE__NONE, dst = HEDDLE__NONE;
    heddle__holder *src = NULL, *made = NULL;
    uint32_t home = c->output_home[i];
    heddle_status s = HEDDLE_OK;
    if (home != HEDDLE__NONE) { /* it was made elsewhere, or lies there under another name */
      src = heddle__find_on(c, root, home);
      if (src == NULL) s = heddle__reach_device(c, root, home, &plain, &src, err);
      if (s == HEDDLE_OK) s = heddle__space_get(c, home, HEDDLE_MEMORY_DEVICE, true, &space, err);
      if (s == HEDDLE_OK) s = heddle__add_instance(c, root, space, HEDDLE__ROLE_OUTPUT, i, &dst, err);
      if (s == HEDDLE_OK)
        s = plan->devices[home].is_inline
                ? heddle__add_copy(c, HEDDLE__STEP_HOST_COPY, HEDDLE__NONE, src, dst, &made, err)
                : heddle__add_copy(c, HEDDLE__STEP_D2D, home, src, dst, &made, err);
      if (s != HEDDLE_OK) return s;
      plan->outputs[i].instance = dst;
      continue;
    }
    s = heddle__reach_host(c, root, &src, err);
    if (s == HEDDLE_OK && plan->outputs[i].instance != HEDDLE__NONE) continue;
    if (s == HEDDLE_OK) {
      s = heddle__space_get(c, host != HEDDLE__NONE ? host : 0,
                            host != HEDDLE__NONE ? HEDDLE_MEMORY_DEVICE : HEDDLE_MEMORY_PINNED, true, &space, err);
    }
    if (s == HEDDLE_OK) s = heddle__add_instance(c, root, space, HEDDLE__ROLE_OUTPUT, i, &dst, err);
    if (s == HEDDLE_OK) s = heddle__add_copy(c, HEDDLE__STEP_HOST_COPY, HEDDLE__NONE, src, dst, &made, err);
    if (s != HEDDLE_OK) return s;
    plan->outputs[i].instance = dst;
  }
  return HEDDLE_OK;
}

/* The last step: it comes after all others and reads the outputs. streams adds what it waits for. */
static heddle_status add_finish(heddle__copier *c, heddle_error *err) {
  heddle__plan *plan = c->plan;
  heddle__access *accesses = heddle__plan_alloc(plan, plan->n_outputs, sizeof *accesses);
  uint32_t *deps = heddle__plan_alloc(plan, plan->n_outputs, sizeof *deps);
  if (accesses == NULL || deps == NULL) return heddle__no_memory(err, "a step");
  for (uint32_t i = 0; i < plan->n_outputs; i++) {
    uint32_t instance = plan->outputs[i].instance;
    accesses[i] = (heddle__access){instance, HEDDLE__ACCESS_READ};
    heddle__holder *h = c->holders[plan->instances[instance].value];
    while (h != NULL && h->instance != instance) h = h->next;
    if (h == NULL) return heddle__fail(err, HEDDLE_EINTERNAL, "output %u has no producer", (unsigned)i);
    heddle_status s = heddle__ready(c, h, true, &deps[i], err);
    if (s != HEDDLE_OK) return s;
  }
  heddle__step x = {.kind = HEDDLE__STEP_FINISH,
                    .region = HEDDLE__NONE,
                    .device = HEDDLE__NONE,
                    .src = HEDDLE__NONE,
                    .dst = HEDDLE__NONE,
                    .workspace = HEDDLE__NONE};
  uint32_t step = 0;
  return heddle__add_step(c, &x, accesses, plan->n_outputs, deps, plan->n_outputs, &step, err);
}

/* What earlier processes found out about the routes between devices that run something. */
static heddle_status recall(heddle__plan *plan, heddle_error *err) {
  heddle_device **used = heddle__plan_alloc(plan, plan->n_devices, sizeof *used);
  uint32_t n = 0;
  if (used == NULL) return heddle__no_memory(err, "copies");
  for (uint32_t d = 0; d < plan->n_devices; d++)
    if (plan->devices[d].used) used[n++] = plan->devices[d].dev;
  heddle__routes_recall(used, n);
  return HEDDLE_OK;
}

heddle_status heddle__pass_copies(heddle__plan *plan, heddle_error *err) {
  heddle__copier c = {.plan = plan, .host_align = 64};
  size_t pairs = (size_t)plan->n_values * plan->n_devices;
  c.space_of = heddle__plan_alloc(plan, plan->n_devices, sizeof *c.space_of);
  c.holders = heddle__plan_alloc(plan, plan->n_values, sizeof *c.holders);
  c.needed = heddle__plan_alloc(plan, plan->n_values, sizeof *c.needed);
  c.consumer = heddle__plan_alloc(plan, pairs, sizeof *c.consumer);
  c.read_as = heddle__plan_alloc(plan, pairs, sizeof *c.read_as);
  c.as_output = heddle__plan_alloc(plan, plan->n_values, sizeof *c.as_output);
  c.as_resident = heddle__plan_alloc(plan, plan->n_values, sizeof *c.as_resident);
  c.home_of = heddle__plan_alloc(plan, plan->n_values, sizeof *c.home_of);
  c.output_home = heddle__plan_alloc(plan, plan->n_outputs, sizeof *c.output_home);
  if (!c.space_of || !c.holders || !c.needed || !c.consumer || !c.read_as || !c.as_output || !c.as_resident ||
      !c.home_of || !c.output_home)
    return heddle__no_memory(err, "copies");
  for (uint32_t d = 0; d < plan->n_devices; d++) {
    for (int k = 0; k < 3; k++) c.space_of[d][k][0] = c.space_of[d][k][1] = HEDDLE__NONE;
    const heddle__plan_device *x = &plan->devices[d];
    if (x->is_inline && x->dev->desc.alignment > c.host_align) c.host_align = x->dev->desc.alignment;
  }
  heddle_status s = mark(&c, err);
  if (s == HEDDLE_OK) s = heddle__choose_homes(&c, err);
  if (s == HEDDLE_OK) s = recall(plan, err);
  for (uint32_t i = 0; s == HEDDLE_OK && i < plan->n_values; i++) {
    const heddle__value *v = &plan->values[i];
    if (v->kind == HEDDLE__VALUE_INPUT && v->same_as == i && c.needed[i]) s = spread(&c, i, err);
  }
  for (uint32_t i = 0; s == HEDDLE_OK && i < plan->n_regions; i++) {
    const heddle__region *r = &plan->regions[i];
    if (r->kind != HEDDLE__REGION_VIEW && is_needed(&c, r)) s = add_operator(&c, i, err);
  }
  if (s == HEDDLE_OK) s = add_outputs(&c, err);
  if (s == HEDDLE_OK) s = heddle__order_updates(&c, err);
  if (s == HEDDLE_OK) s = add_finish(&c, err);
  return s;
}
