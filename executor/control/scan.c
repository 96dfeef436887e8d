/* executor/control/scan.c: ONNX's Scan (opset 9 and later): its body runs once for each place along an axis of the scanned inputs,
 * of which it is given a slice each; states go from iteration to iteration, the other outputs are collected. */
#include <inttypes.h>
#include <string.h>

#include "executor/control/stages.h"
#include "core/error.h"
#include "graph/infer.h"

/* One of the lists of axes or directions: 0 where it is not given. */
static int64_t listed(const ctl_stage *stage, const char *name, uint32_t i) {
  uint64_t count = 0;
  const int64_t *list = heddle__attr_ints(stage->node, name, &count);
  return list != NULL && i < count ? list[i] : 0;
}

static heddle_status axis_of(const ctl_stage *stage, uint32_t i, const heddle_tensor *t, uint32_t *out,
                             heddle_error *err) {
  int64_t axis = listed(stage, "scan_input_axes", i), ndim = t->ndim;
  if (axis < -ndim || axis >= ndim)
    return heddle__fail(err, HEDDLE_EINVAL, "scanned input %u is to be scanned along axis %" PRId64 ", of %" PRId64,
                        (unsigned)i, axis, ndim);
  *out = (uint32_t)(axis < 0 ? axis + ndim : axis);
  return HEDDLE_OK;
}

/* The tensor that slices of input i are copied to, in the shape of the present input. */
static heddle_status make_slice(const ctl_stage *stage, ctl_run *run, uint32_t i, const heddle_tensor *t,
                                heddle_error *err) {
  int64_t shape[HEDDLE__MAX_NDIM];
  uint32_t axis = 0, n = 0;
  heddle_status s = axis_of(stage, i, t, &axis, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t d = 0; d < t->ndim; d++)
    if (d != axis) shape[n++] = t->shape[d];
  heddle_tensor *old = run->slices[i], *made = NULL;
  if (old != NULL && old->ndim == n && memcmp(&old->dtype, &t->dtype, sizeof old->dtype) == 0 &&
      memcmp(old->shape, shape, n * sizeof *shape) == 0)
    return HEDDLE_OK;
  s = heddle_tensor_create(NULL, t->dtype, shape, n, &made, err);
  if (s != HEDDLE_OK) return s;
  ctl_put(&run->slices[i], made);
  heddle_tensor_release(made);
  return HEDDLE_OK;
}

static heddle_tensor *scanned(const heddle__staged *st, const ctl_stage *stage, uint32_t i) {
  return st->values[stage->inputs[stage->shape.n_states + i]];
}

heddle_status ctl_scan_begin(heddle__staged *st, const ctl_stage *stage, ctl_run *run, heddle_error *err) {
  const heddle__control *c = &stage->shape;
  ctl_unit *u = &run->units[0];
  heddle_status s = ctl_unit_make(st, stage->models[0], u, err);
  run->trip = -1;
  for (uint32_t i = 0; i < c->n_states && s == HEDDLE_OK; i++) ctl_put(&run->states[i], st->values[stage->inputs[i]]);
  for (uint32_t i = 0; i < c->n_scanned && s == HEDDLE_OK; i++) {
    const heddle_tensor *t = scanned(st, stage, i);
    uint32_t axis = 0;
    if (t->dev != NULL || !t->contiguous)
      return heddle__fail(err, HEDDLE_EUNSUPPORTED,
                          "scanned input %u is not row-major memory of the host: use set_input", (unsigned)i);
    s = axis_of(stage, i, t, &axis, err);
    if (s == HEDDLE_OK && run->trip >= 0 && run->trip != t->shape[axis])
      s = heddle__fail(err, HEDDLE_EINVAL, "scanned input %u has %" PRId64 " slices, those before it have %" PRId64,
                       (unsigned)i, t->shape[axis], run->trip);
    if (s == HEDDLE_OK) run->trip = t->shape[axis];
    if (s == HEDDLE_OK) s = make_slice(stage, run, i, t, err);
    if (s == HEDDLE_OK) s = ctl_lend(u, c->n_states + i, run->slices[i], err);
  }
  for (uint32_t i = 0; i < c->n_collected && s == HEDDLE_OK; i++) ctl_pile_reset(&run->piles[i]);
  if (s == HEDDLE_OK)
    s = ctl_lend_all(st, u, c->n_states + c->n_scanned, stage->inputs + stage->n_inputs - c->n_captured, c->n_captured,
                     err);
  return s;
}

static void copy_slice(const heddle_tensor *t, uint32_t axis, int64_t at, heddle_tensor *to) {
  uint64_t outer = 1;
  for (uint32_t d = 0; d < axis; d++) outer *= (uint64_t)t->shape[d];
  if (outer == 0 || to->bytes == 0) return;
  const uint64_t inner = to->bytes / outer;
  for (uint64_t o = 0; o < outer; o++)
    memcpy((char *)to->data + o * inner, (const char *)t->data + (o * (uint64_t)t->shape[axis] + (uint64_t)at) * inner,
           (size_t)inner);
}

static heddle_status set_states(const ctl_stage *stage, ctl_run *run, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < stage->shape.n_states && s == HEDDLE_OK; i++)
    s = ctl_copy(&run->units[0], i, run->states[i], err);
  return s;
}

static heddle_status set_inputs(heddle__staged *st, const ctl_stage *stage, ctl_run *run, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < stage->shape.n_scanned && s == HEDDLE_OK; i++) {
    const heddle_tensor *t = scanned(st, stage, i);
    uint32_t axis = 0;
    s = axis_of(stage, i, t, &axis, err);
    bool back = listed(stage, "scan_input_directions", i) != 0;
    if (s == HEDDLE_OK) copy_slice(t, axis, back ? run->trip - 1 - run->at : run->at, run->slices[i]);
  }
  return s == HEDDLE_OK ? set_states(stage, run, err) : s;
}

static heddle_status take_outputs(const ctl_stage *stage, ctl_run *run, heddle_error *err) {
  const heddle__control *c = &stage->shape;
  heddle_tensor *t = NULL;
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < c->n_states && s == HEDDLE_OK; i++) {
    s = ctl_view(&run->units[0], i, &t, err);
    if (s == HEDDLE_OK) ctl_put(&run->states[i], t);
  }
  for (uint32_t i = 0; i < c->n_collected && s == HEDDLE_OK; i++) {
    s = ctl_view(&run->units[0], c->n_states + i, &t, err);
    if (s == HEDDLE_OK) s = ctl_pile_add(&run->piles[i], t, err);
  }
  return s;
}

static heddle_status finish(heddle__staged *st, const ctl_stage *stage, ctl_run *run, heddle_error *err) {
  const heddle__control *c = &stage->shape;
  heddle_status s = run->trip == 0 ? set_states(stage, run, err) : HEDDLE_OK;
  for (uint32_t i = 0; i < c->n_states && s == HEDDLE_OK; i++) s = ctl_give(st, stage, i, run->states[i], err);
  for (uint32_t i = 0; i < c->n_collected && s == HEDDLE_OK; i++) {
    heddle_tensor *t = NULL;
    bool back = listed(stage, "scan_output_directions", i) != 0;
    const int64_t axis = listed(stage, "scan_output_axes", i);
    if (run->trip == 0)
      s = ctl_pile_empty(&run->piles[i], &run->units[0], c->n_states + i, ctl_declared(st, stage, c->n_states + i),
                         axis, err);
    if (s == HEDDLE_OK) s = ctl_pile_whole(&run->piles[i], axis, back, &t, err);
    if (s == HEDDLE_OK) s = ctl_give(st, stage, c->n_states + i, t, err);
  }
  return s;
}

static bool goes_on(const ctl_run *run) {
  return run->at < run->trip;
}

heddle__run_end ctl_scan_drive(heddle__staged *st, const ctl_stage *stage, ctl_run *run, const heddle__helm *helm,
                               heddle_status *status, heddle_error *err) {
  static const ctl_body body = {goes_on, set_inputs, take_outputs, finish};
  return ctl_body_drive(st, stage, run, &body, helm, status, err);
}
