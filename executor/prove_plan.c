/* executor/prove_plan.c: the pass that hands a plan to prove and puts names to what it finds.
 * A plan that cannot be proved is never bound: it is a fault of a pass, reported as HEDDLE_EPLAN. */
#include "core/alloc.h"
#include "core/error.h"
#include "executor/plan.h"
#include "executor/prove.h"

static heddle__access_mode mode_of(const heddle__step *s, const heddle__access *a) {
  if (a->kind == HEDDLE__ACCESS_READ) return HEDDLE__READ;
  if (a->kind == HEDDLE__ACCESS_WRITE) return HEDDLE__WRITE;
  return s->kind == HEDDLE__STEP_RELEASE ? HEDDLE__RELEASE : HEDDLE__ACQUIRE;
}

/* 1 + the value of an instance; 0: there is none. */
static uint32_t value_of(const heddle__plan *plan, uint32_t instance) {
  return instance != HEDDLE__NONE ? 1 + plan->instances[instance].value : 0;
}

static heddle_status describe(heddle__plan *plan, heddle__proof *proof, heddle_error *err) {
  heddle__proof_step *steps = heddle__plan_alloc(plan, plan->n_steps, sizeof *steps);
  heddle__proof_alloc *allocs = heddle__plan_alloc(plan, plan->n_allocs, sizeof *allocs);
  heddle__proof_initial *initial = heddle__plan_alloc(plan, plan->n_instances, sizeof *initial);
  bool *is_host = heddle__plan_alloc(plan, plan->n_streams, sizeof *is_host);
  if (!steps || !allocs || !initial || !is_host) return heddle__no_memory(err, "a proof");
  for (uint32_t i = 0; i < plan->n_streams; i++) is_host[i] = plan->streams[i].is_host;
  for (uint32_t i = 0; i < plan->n_allocs; i++) {
    allocs[i] = (heddle__proof_alloc){plan->allocs[i].bytes, plan->spaces[plan->allocs[i].space].coherent,
                                      heddle__plan_sets(plan, i)};
  }
  for (uint32_t i = 0; i < plan->n_instances; i++) {
    const heddle__instance *x = &plan->instances[i];
    if (x->role != HEDDLE__ROLE_CONSTANT && x->role != HEDDLE__ROLE_INPUT) continue;
    initial[proof->n_initial++] = (heddle__proof_initial){x->alloc, x->value, x->offset, x->bytes,
                                                          value_of(plan, heddle__input_becomes(plan, i))};
  }
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    const heddle__step *s = &plan->steps[i];
    heddle__proof_access *accesses = heddle__plan_alloc(plan, s->n_accesses, sizeof *accesses);
    uint32_t *waits = heddle__plan_alloc(plan, s->n_waits, sizeof *waits);
    if (accesses == NULL || waits == NULL) return heddle__no_memory(err, "a proof");
    for (uint32_t k = 0; k < s->n_accesses; k++) {
      const heddle__instance *x = &plan->instances[s->accesses[k].instance];
      heddle__access_mode mode = mode_of(s, &s->accesses[k]);
      bool sync = mode == HEDDLE__RELEASE || mode == HEDDLE__ACQUIRE;
      const uint32_t kept =
          mode == HEDDLE__WRITE ? heddle__write_keeps(plan, i, s->accesses[k].instance) : HEDDLE__NONE;
      accesses[k] = (heddle__proof_access){
          x->alloc, sync ? HEDDLE__NO_VALUE : x->value, x->offset, x->bytes, mode, value_of(plan, kept)};
    }
    for (uint32_t k = 0; k < s->n_waits; k++) waits[k] = s->waits[k].step;
    steps[i] = (heddle__proof_step){s->stream, s->n_accesses, s->n_waits, accesses, waits};
  }
  proof->n_streams = plan->n_streams;
  proof->n_allocs = plan->n_allocs;
  proof->n_values = plan->n_values;
  proof->n_steps = plan->n_steps;
  proof->in_flight = plan->req.in_flight;
  proof->stream_sets = plan->req.in_flight; /* a lane has its own */
  proof->stream_is_host = is_host;
  proof->allocs = allocs;
  proof->initial = initial;
  proof->steps = steps;
  return HEDDLE_OK;
}

/* The proof has a run begin when the one before has wholly finished, and the runner begins it after the finish: so the
 * finish must come after every step, on each stream. */
static heddle_status check_finish(heddle__plan *plan, uint32_t *faulty, heddle_error *err) {
  bool *awaited = heddle__plan_alloc(plan, plan->n_steps, sizeof *awaited);
  bool *streams = heddle__plan_alloc(plan, plan->n_streams, sizeof *streams); /* a later step of it is before the end */
  if (awaited == NULL || streams == NULL) return heddle__no_memory(err, "a proof");
  if (plan->n_steps == 0 || plan->steps[plan->n_steps - 1].kind != HEDDLE__STEP_FINISH) return HEDDLE_OK; /* no run */
  for (uint32_t i = plan->n_steps; i-- > 0;) {
    const heddle__step *s = &plan->steps[i];
    if (i + 1 < plan->n_steps && !awaited[i] && !streams[s->stream]) {
      *faulty = i;
      return heddle__fail(err, HEDDLE_EPLAN, "the end of the run does not come after step %u on stream %u", (unsigned)i,
                          (unsigned)s->stream);
    }
    streams[s->stream] = true;
    for (uint32_t k = 0; k < s->n_waits; k++) awaited[s->waits[k].step] = true;
  }
  return HEDDLE_OK;
}

/* Whether an operand lies in the image that the operator takes it for, whole, or in plain bytes. */
static bool has_form(const heddle__plan *plan, uint32_t instance, uint32_t value, uint32_t device) {
  static const heddle__image plain = {0};
  const heddle__instance *x = &plan->instances[instance];
  const heddle__image *is = &plan->spaces[x->space].image;
  return heddle__image_same(is, plan->devices[device].is_inline ? &plain : &plan->values[value].image) &&
         (is->width == 0 || (x->offset == 0 && plan->allocs[x->alloc].kind != HEDDLE__ALLOC_ARENA));
}

static heddle_status check_forms(const heddle__plan *plan, uint32_t *faulty, heddle_error *err) {
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    const heddle__step *s = &plan->steps[i];
    if (s->kind != HEDDLE__STEP_OP) continue;
    const heddle__region *r = &plan->regions[s->region];
    bool good = true;
    for (uint32_t k = 0; k < r->n_inputs && good; k++)
      good = s->in[k] == HEDDLE__NONE || has_form(plan, s->in[k], r->inputs[k], r->device);
    for (uint32_t k = 0; k < r->n_outputs && good; k++)
      good = s->out[k] == HEDDLE__NONE || has_form(plan, s->out[k], r->outputs[k], r->device);
    if (good) continue;
    *faulty = i;
    return heddle__fail(err, HEDDLE_EPLAN, "step %u takes an image for bytes, or the reverse", (unsigned)i);
  }
  return HEDDLE_OK;
}

heddle_status heddle__pass_prove(heddle__plan *plan, heddle_error *err) {
  heddle__proof proof = {0};
  heddle_status s = describe(plan, &proof, err);
  if (s != HEDDLE_OK) return s;
  uint32_t faulty = HEDDLE__NONE;
  s = heddle__prove(&proof, &faulty, err);
  if (s == HEDDLE_OK) s = check_finish(plan, &faulty, err);
  if (s == HEDDLE_OK) s = check_forms(plan, &faulty, err);
  if (s != HEDDLE_EPLAN) return s;
  const char *what = "";
  if (faulty < plan->n_steps) {
    const heddle__step *x = &plan->steps[faulty];
    if (x->kind == HEDDLE__STEP_OP) what = plan->regions[x->region].label;
    else if (x->src != HEDDLE__NONE) what = plan->values[plan->instances[x->src].value].name;
  }
  return heddle__prefix(err, s,
                        "%s: the plan is wrong at '%s', and is not run (a fault of Heddle's; please report it): ",
                        plan->req.graph->source, what);
}
