/* executor/storage_updates.c: which state values are updated in place: their input and output are one piece of memory.
 * That takes an operator which leaves the elements that the input holds as they are, so that a run which fails has not
 * changed the value, and no step that reads the input after that operator has begun. prove.c checks both. Where the axis
 * along which a value grows is not its first one, its rows lie apart: as far as they do for the bound of the plan, so that
 * sizes of a root append where they are. */
#include "core/error.h"
#include "core/parts.h"
#include "executor/storage_blocks.h"
#include "plugins/common/check/offer.h"

static uint32_t writer_of(const heddle__plan *plan, const heddle__uses *uses, uint32_t instance) {
  for (uint32_t k = uses->first[instance]; k < uses->first[instance + 1]; k++) {
    const heddle__step *step = &plan->steps[uses->steps[k]];
    for (uint32_t a = 0; a < step->n_accesses; a++)
      if (step->accesses[a].instance == instance && step->accesses[a].kind == HEDDLE__ACCESS_WRITE)
        return uses->steps[k];
  }
  return HEDDLE__NONE;
}

/* The entry by which the operator's offer lets the output extend the instance, which is one operand; NULL: there is none. */
static const int32_t *entry_of(const heddle__plan *plan, const heddle__step *step, uint32_t in, uint32_t out) {
  const heddle__region *r = &plan->regions[step->region];
  if (r->n_offers == 0) return NULL;
  const heddle__offer *offer = &r->offers[r->offer];
  const int32_t *found = NULL;
  uint32_t uses = 0;
  for (uint32_t i = 0; i < r->n_inputs; i++) {
    if (step->in[i] != in) continue;
    uses++;
    for (uint64_t k = 0; k < offer->n_extends && found == NULL; k++) {
      const int32_t *entry = &offer->extends[OFFER_EXTENDS * k];
      if (entry[0] == (int32_t)i && step->out[entry[1]] == out) found = entry;
    }
  }
  return uses == 1 ? found : NULL;
}

/* Whether all that use an instance take it with room: operators on the host's memory, as the value that it is, and the
 * caller, by the end of the run. */
static bool take_room(const heddle__plan *plan, const heddle__uses *uses, uint32_t instance, uint32_t writer) {
  for (uint32_t k = uses->first[instance]; k < uses->first[instance + 1]; k++) {
    const heddle__step *step = &plan->steps[uses->steps[k]];
    if (step->kind == HEDDLE__STEP_FINISH || uses->steps[k] == writer) continue;
    if (step->kind != HEDDLE__STEP_OP) return false;
    const heddle__region *r = &plan->regions[step->region];
    for (uint32_t i = 0; i < r->n_inputs; i++)
      if (step->in[i] == instance && (r->inputs[i] != plan->instances[instance].value ||
                                      (r->offers[r->offer].input_flags[i] & HEDDLE_INPUT_ROOM) == 0))
        return false;
  }
  return true;
}

/* Gives the two instances room along an axis, where they need it; false: something cannot take that. */
static bool find_room(heddle__plan *plan, const heddle__uses *uses, heddle__update *u, uint32_t writer, int32_t axis) {
  heddle__instance *in = &plan->instances[u->input], *out = &plan->instances[u->output];
  const heddle__region *r = &plan->regions[plan->steps[writer].region];
  const heddle__known *known = &plan->values[out->value].known;
  bool good = axis < (int32_t)known->ndim && plan->devices[plan->spaces[in->space].device].is_inline &&
              take_room(plan, uses, u->input, writer) && take_room(plan, uses, u->output, writer);
  for (uint32_t i = 0; i < r->n_inputs; i++) /* no view of it */
    good = good && (plan->steps[writer].in[i] != u->input || r->inputs[i] == in->value);
  for (uint32_t i = 0; i < r->n_outputs; i++)
    good = good && (plan->steps[writer].out[i] != u->output || r->outputs[i] == out->value);
  if (!good) return false;
  u->axis = (uint32_t)axis;
  u->room = known->shape[axis];
  in->bytes = out->bytes;
  return true;
}

/* Why a value cannot be updated in place; NULL: by *step it can. */
static const char *refusal(heddle__plan *plan, const heddle__uses *uses, heddle__update *u, uint32_t *step) {
  if (plan->req.no_reuse) return "memory is not shared";
  if (u->input == HEDDLE__NONE) return "nothing reads it where it is computed";
  const heddle__instance *in = &plan->instances[u->input], *out = &plan->instances[u->output];
  if (plan->values[in->value].feeds_shape) return "it decides shapes";
  const uint32_t writer = writer_of(plan, uses, u->output);
  if (writer == HEDDLE__NONE || plan->steps[writer].kind != HEDDLE__STEP_OP) return "no operator computes it";
  if (in->space != out->space || plan->spaces[in->space].image.width > 0) return "input and output lie in other memory";
  const int32_t *entry = entry_of(plan, &plan->steps[writer], u->input, u->output);
  if (entry == NULL) return "its operator overwrites what a failed run must keep, or cannot append there";
  if (out->bytes < in->bytes) return "it becomes smaller";
  for (uint32_t k = uses->first[u->input]; k < uses->first[u->input + 1]; k++)
    if (uses->steps[k] != writer && !heddle__step_before(plan, uses->steps[k], writer))
      return "its former value is read after the update may have begun";
  if (entry[2] >= 0 && !find_room(plan, uses, u, writer, entry[2]))
    return "what uses it cannot read memory with room between its rows";
  *step = writer;
  return NULL;
}

void heddle__give_room(const heddle__plan *plan, const heddle__region *r, heddle_pregion *ask) {
  heddle_pvalue *values = (heddle_pvalue *)(uintptr_t)ask->values.data;
  for (uint32_t k = 0; HEDDLE_HAS_STATE && k < plan->req.n_ties; k++) {
    const heddle__update *u = &plan->updates[k];
    if (u->step == HEDDLE__NONE || u->room == 0) continue;
    const uint32_t in = plan->instances[u->input].value, out = plan->instances[u->output].value;
    for (uint32_t i = 0; i < r->n_inputs + r->n_outputs; i++) {
      const uint32_t value = i < r->n_inputs ? r->inputs[i] : r->outputs[i - r->n_inputs];
      if (value != in && value != out) continue;
      heddle_pvalue *v = &values[i < r->n_inputs ? ask->inputs[i] : ask->outputs[i - r->n_inputs]];
      v->room = u->room;
      v->room_axis = (int32_t)u->axis;
    }
  }
}

heddle_status heddle__find_updates(heddle__plan *plan, const heddle__uses *uses, heddle_error *err) {
  if (!HEDDLE_HAS_STATE) return HEDDLE_OK;
  plan->updates = heddle__plan_alloc(plan, plan->req.n_ties, sizeof *plan->updates);
  if (plan->updates == NULL) return heddle__no_memory(err, "the state values of a plan");
  for (uint32_t k = 0; k < plan->req.n_ties; k++) {
    const heddle__tie *tie = &plan->req.ties[k];
    heddle__update *u = &plan->updates[k];
    *u = (heddle__update){.input = heddle__input_instance(plan, tie->arg),
                          .output = plan->outputs[tie->output].instance,
                          .step = HEDDLE__NONE};
    u->why = refusal(plan, uses, u, &u->step);
  }
  for (uint32_t i = 0; i < plan->n_regions && plan->req.n_ties > 0; i++)
    if (plan->regions[i].ask != NULL) heddle__give_room(plan, &plan->regions[i], plan->regions[i].ask);
  return HEDDLE_OK;
}
