/* executor/homes.c: inputs and outputs that lie in memory of a device and not in a slot of the host's: tensors that the
 * caller has there, and state values. Of a state value the device is chosen here; its input and its output have one. */
#include "core/error.h"
#include "core/parts.h"
#include "executor/copies.h"

/* The device on which a value is made by an operator; HEDDLE__NONE: by none. */
static uint32_t made_on(const heddle__plan *plan, uint32_t value) {
  const heddle__value *v = &plan->values[plan->values[value].same_as];
  return v->kind == HEDDLE__VALUE_COMPUTED ? plan->regions[v->region].device : HEDDLE__NONE;
}

/* The first device on which an operator reads a value. */
static uint32_t read_on(const heddle__copier *c, uint32_t value) {
  const heddle__plan *plan = c->plan;
  const bool *consumer = c->consumer + (size_t)plan->values[value].same_as * plan->n_devices;
  for (uint32_t d = 0; d < plan->n_devices; d++)
    if (consumer[d]) return d;
  return HEDDLE__NONE;
}

static uint32_t value_of_arg(const heddle__plan *plan, uint32_t arg) {
  const heddle_graph *g = plan->req.graph;
  return g->nodes[g->args[arg]].first_entry;
}

static heddle_status choose_tie(heddle__copier *c, const heddle__tie *tie, heddle_error *err) {
  heddle__plan *plan = c->plan;
  uint32_t in = value_of_arg(plan, tie->arg), out = plan->outputs[tie->output].value;
  uint32_t home = made_on(plan, out);
  if (home == HEDDLE__NONE) home = read_on(c, in);
  if (home == HEDDLE__NONE) home = 0;
  if (plan->values[in].feeds_shape) { /* the host reads it before each run */
    home = heddle__host_device(plan);
    if (home == HEDDLE__NONE)
      return heddle__fail(err, HEDDLE_EUNSUPPORTED,
                          "%s: the state value '%s' decides shapes: a device that computes in the host's memory (cpu) "
                          "must be in the list",
                          plan->req.graph->source, plan->values[in].name);
  }
  c->home_of[in] = c->output_home[tie->output] = home;
  return HEDDLE_OK;
}

heddle_status heddle__choose_homes(heddle__copier *c, heddle_error *err) {
  heddle__plan *plan = c->plan;
  for (uint32_t i = 0; i < plan->n_values; i++) c->home_of[i] = HEDDLE__NONE;
  for (uint32_t i = 0; i < plan->n_outputs; i++)
    c->output_home[i] = plan->req.homes != NULL && plan->req.homes[i] > 0 ? plan->req.homes[i] - 1 : HEDDLE__NONE;
  for (uint32_t i = 0; i < plan->req.graph->n_args; i++) {
    const heddle__plan_input *in = &plan->req.inputs[i];
    if (in->source == HEDDLE__SOURCE_INPUT && in->home > 0) c->home_of[value_of_arg(plan, i)] = in->home - 1;
  }
  for (uint32_t i = 0; i < plan->req.n_ties; i++) {
    heddle_status s = choose_tie(c, &plan->req.ties[i], err);
    if (s != HEDDLE_OK) return s;
  }
  for (uint32_t i = plan->n_outputs; i-- > 0;) {
    uint32_t root = plan->values[plan->outputs[i].value].same_as;
    if (c->output_home[i] == HEDDLE__NONE || c->output_home[i] != made_on(plan, root)) continue;
    c->as_resident[root] = i;
  }
  return HEDDLE_OK;
}

static bool touches(const heddle__step *step, uint32_t instance, heddle__access_kind kind) {
  for (uint32_t k = 0; k < step->n_accesses; k++)
    if (step->accesses[k].instance == instance && step->accesses[k].kind == kind) return true;
  return false;
}

/* Steps before a step that read an instance are added to what it comes after. */
static heddle_status add_readers(heddle__plan *plan, uint32_t step, uint32_t instance, heddle_error *err) {
  heddle__step *s = &plan->steps[step];
  uint32_t *deps = heddle__plan_alloc(plan, (size_t)s->n_deps + step, sizeof *deps), n = 0;
  if (deps == NULL) return heddle__no_memory(err, "the order of state values");
  for (; n < s->n_deps; n++) deps[n] = s->deps[n];
  for (uint32_t i = 0; i < step; i++)
    if (touches(&plan->steps[i], instance, HEDDLE__ACCESS_READ)) deps[n++] = i;
  s->deps = deps;
  s->n_deps = n;
  return HEDDLE_OK;
}

heddle_status heddle__order_updates(heddle__copier *c, heddle_error *err) {
  heddle__plan *plan = c->plan;
  for (uint32_t k = 0; HEDDLE_HAS_STATE && k < plan->req.n_ties; k++) {
    const heddle__tie *tie = &plan->req.ties[k];
    const uint32_t out = plan->outputs[tie->output].instance;
    const uint32_t in = heddle__input_instance(plan, tie->arg);
    uint32_t step = 0;
    while (step < plan->n_steps && !touches(&plan->steps[step], out, HEDDLE__ACCESS_WRITE)) step++;
    if (in == HEDDLE__NONE || step == plan->n_steps || plan->steps[step].kind != HEDDLE__STEP_OP) continue;
    const heddle__region *r = &plan->regions[plan->steps[step].region];
    if (r->n_offers == 0 || r->offers[r->offer].n_extends == 0) continue;
    heddle_status s = add_readers(plan, step, in, err);
    if (s != HEDDLE_OK) return s;
  }
  return HEDDLE_OK;
}
