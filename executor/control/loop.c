/* executor/control/loop.c: ONNX's Loop: its body runs until the trip count is reached or the condition is false. States go from
 * one iteration's outputs to the next one's inputs, and may change their shape on the way; the other outputs are
 * collected. As in ONNX's reference and ONNX Runtime, what the body says of the condition counts also where the node was
 * not given one. */
#include <string.h>

#include "executor/control/stages.h"
#include "core/error.h"

/* A value for one of the body's first two inputs: of one element, with a dimension where the body wants one. */
static heddle_status make_scalar(const ctl_stage *stage, uint32_t input, heddle_dtype dtype, heddle_tensor **out,
                                 heddle_error *err) {
  static const int64_t one = 1;
  const heddle_graph *body = stage->models[0]->graph;
  const heddle__type *type = &body->types[body->nodes[body->args[input]].first_entry];
  if (*out != NULL) return HEDDLE_OK;
  return heddle_tensor_create(NULL, dtype, &one, type->has_shape && type->ndim == 1 ? 1 : 0, out, err);
}

heddle_status ctl_loop_begin(heddle__staged *st, const ctl_stage *stage, ctl_run *run, heddle_error *err) {
  const heddle__control *c = &stage->shape;
  ctl_unit *u = &run->units[0];
  heddle_tensor *trip = stage->n_inputs > 0 ? ctl_value_of(st, stage->inputs[0]) : NULL;
  heddle_tensor *truth = stage->n_inputs > 1 ? ctl_value_of(st, stage->inputs[1]) : NULL;
  heddle_status s = ctl_unit_make(st, stage->models[0], u, err);
  run->trip = INT64_MAX;
  run->going = true;
  if (s == HEDDLE_OK && trip != NULL) s = ctl_number(trip, "its trip count", &run->trip, err);
  if (s == HEDDLE_OK && truth != NULL) s = ctl_truth(truth, "its condition", &run->going, err);
  if (s == HEDDLE_OK) s = make_scalar(stage, 0, (heddle_dtype){HEDDLE_DTYPE_INT, 64, 1}, &run->number, err);
  if (s == HEDDLE_OK) s = make_scalar(stage, 1, (heddle_dtype){HEDDLE_DTYPE_BOOL, 8, 1}, &run->truth, err);
  for (uint32_t i = 0; i < c->n_states && s == HEDDLE_OK; i++)
    ctl_put(&run->states[i], st->values[stage->inputs[2 + i]]);
  for (uint32_t i = 0; i < c->n_collected && s == HEDDLE_OK; i++) ctl_pile_reset(&run->piles[i]);
  if (s == HEDDLE_OK)
    s = ctl_lend_all(st, u, 2 + c->n_states, stage->inputs + stage->n_inputs - c->n_captured, c->n_captured, err);
  return s;
}

static heddle_status set_inputs(heddle__staged *st, const ctl_stage *stage, ctl_run *run, heddle_error *err) {
  (void)st;
  ctl_unit *u = &run->units[0];
  memcpy(run->number->data, &run->at, sizeof run->at);
  *(unsigned char *)run->truth->data = run->going;
  heddle_status s = ctl_copy(u, 0, run->number, err);
  if (s == HEDDLE_OK) s = ctl_copy(u, 1, run->truth, err);
  for (uint32_t i = 0; i < stage->shape.n_states && s == HEDDLE_OK; i++) s = ctl_copy(u, 2 + i, run->states[i], err);
  return s;
}

static heddle_status take_outputs(const ctl_stage *stage, ctl_run *run, heddle_error *err) {
  const heddle__control *c = &stage->shape;
  ctl_unit *u = &run->units[0];
  heddle_tensor *t = NULL;
  heddle_status s = ctl_view(u, 0, &t, err);
  if (s == HEDDLE_OK) s = ctl_truth(t, "the condition that its body gives", &run->going, err);
  for (uint32_t i = 0; i < c->n_states && s == HEDDLE_OK; i++) {
    s = ctl_view(u, 1 + i, &t, err);
    if (s == HEDDLE_OK) ctl_put(&run->states[i], t);
  }
  for (uint32_t i = 0; i < c->n_collected && s == HEDDLE_OK; i++) {
    if (c->n_states + i >= stage->n_outputs || stage->outputs[c->n_states + i] == HEDDLE__NONE) continue;
    s = ctl_view(u, 1 + c->n_states + i, &t, err);
    if (s == HEDDLE_OK) s = ctl_pile_add(&run->piles[i], t, err);
  }
  return s;
}

static heddle_status finish(heddle__staged *st, const ctl_stage *stage, ctl_run *run, heddle_error *err) {
  const heddle__control *c = &stage->shape;
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < c->n_states && s == HEDDLE_OK; i++) s = ctl_give(st, stage, i, run->states[i], err);
  for (uint32_t i = 0; i < c->n_collected && s == HEDDLE_OK; i++) {
    heddle_tensor *t = NULL;
    if (c->n_states + i >= stage->n_outputs || stage->outputs[c->n_states + i] == HEDDLE__NONE) continue;
    if (run->at == 0) s = set_inputs(st, stage, run, err);
    if (s == HEDDLE_OK && run->at == 0)
      s = ctl_pile_empty(&run->piles[i], &run->units[0], 1 + c->n_states + i, ctl_declared(st, stage, c->n_states + i),
                         0, err);
    if (s == HEDDLE_OK) s = ctl_pile_whole(&run->piles[i], 0, false, &t, err);
    if (s == HEDDLE_OK) s = ctl_give(st, stage, c->n_states + i, t, err);
  }
  return s;
}

static bool goes_on(const ctl_run *run) {
  return run->inside || (run->going && run->at < run->trip);
}

heddle__run_end ctl_loop_drive(heddle__staged *st, const ctl_stage *stage, ctl_run *run, const heddle__helm *helm,
                               heddle_status *status, heddle_error *err) {
  static const ctl_body body = {goes_on, set_inputs, take_outputs, finish};
  return ctl_body_drive(st, stage, run, &body, helm, status, err);
}
