/* executor/open_dims.c: which dimensions of a plan's values change with those of the inputs that are open. Shapes are
 * inferred again for a few smaller inputs: what differs is open. This is an estimate: each resize checks it
 * (heddle__is_within). */
#include "core/alloc.h"
#include "core/error.h"
#include "executor/plan.h"

enum { PROBES = 3 };

/* Of a bound of at least 2. */
static int64_t smaller(int64_t bound, int probe) {
  return probe == 0 ? bound - 1 : probe == 1 ? (bound + 1) / 2 : 1;
}

static bool is_set(const heddle__plan_input *in) {
  return in->source == HEDDLE__SOURCE_INPUT && in->has_shape;
}

/* The inputs, smaller where they are open. */
static heddle_status shrink(const heddle__plan *plan, int probe, heddle__plan_input *inputs, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < plan->req.graph->n_args && s == HEDDLE_OK; i++) {
    heddle__known *k = &inputs[i].known;
    inputs[i] = plan->req.inputs[i];
    if (!is_set(&inputs[i])) continue;
    for (uint32_t d = 0; d < k->ndim; d++)
      if (k->shape[d] > 1 && (inputs[i].open_dims >> d & 1) != 0) k->shape[d] = smaller(k->shape[d], probe);
    s = heddle__tensor_bytes(k->dtype, k->ndim, k->shape, &k->bytes, err);
  }
  return s;
}

static void compare(heddle__plan *plan, const heddle__plan *other) {
  for (uint32_t i = 0; i < plan->n_values; i++) {
    heddle__value *v = &plan->values[i];
    const heddle__known *now = &other->values[i].known;
    if (!v->used) continue;
    if (now->ndim != v->known.ndim) v->open_dims = UINT32_MAX;
    for (uint32_t d = 0; d < v->known.ndim && now->ndim == v->known.ndim; d++)
      if (now->shape[d] != v->known.shape[d]) v->open_dims |= UINT32_C(1) << d;
  }
}

/* Only what ends the planning is an error: *known says whether there are shapes for such inputs. */
static heddle_status try_inputs(heddle__plan *plan, const heddle__plan_input *inputs, bool *known, heddle_error *err) {
  heddle__plan *other = heddle__alloc(1, sizeof *other);
  heddle_error why = {0};
  if (other == NULL) return heddle__no_memory(err, "a plan");
  other->req = plan->req;
  other->req.inputs = inputs;
  other->req.open = false;
  other->req.quiet = true;
  other->schemas = plan->schemas;
  const heddle_status s = heddle__pass_infer(other, &why);
  if (s == HEDDLE_OK) compare(plan, other);
  heddle__plan_free(other);
  *known = *known || s == HEDDLE_OK;
  if (s != HEDDLE_ENOMEM && s != HEDDLE_ETIMEOUT && s != HEDDLE_ECANCELED) return HEDDLE_OK;
  if (err != NULL) *err = why;
  return s;
}

heddle_status heddle__open_dims(heddle__plan *plan, heddle_error *err) {
  const uint32_t n = plan->req.graph->n_args;
  heddle__plan_input *inputs = heddle__alloc(n, sizeof *inputs);
  bool known = false, decides = false; /* bytes of an input decide shapes: they change too */
  heddle_status s = inputs != NULL ? HEDDLE_OK : heddle__no_memory(err, "a plan's inputs");
  for (uint32_t i = 0; i < n; i++)
    decides = decides || (is_set(&plan->req.inputs[i]) && plan->req.inputs[i].known.data);
  for (int probe = 0; probe < PROBES && s == HEDDLE_OK && !decides; probe++) {
    s = shrink(plan, probe, inputs, err);
    if (s == HEDDLE_OK) s = try_inputs(plan, inputs, &known, err);
  }
  heddle__free(inputs);
  for (uint32_t i = 0; i < plan->n_values && !known; i++) plan->values[i].open_dims = UINT32_MAX;
  return s;
}
