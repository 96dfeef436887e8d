/* executor/control/unit.c: an executor of a stage: its inputs by reference or as copies, its outputs as tensors that stay the same
 * while nothing changes, and one run of it as a part of the run of the whole. */
#include <string.h>

#include "executor/control/stages.h"
#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"

#define SLICE_NS UINT64_C(20000000) /* how long an inner run may go on before a cancellation is looked for */

void ctl_put(heddle_tensor **place, heddle_tensor *t) {
  if (*place == t) return;
  heddle_tensor *before = *place;
  *place = t != NULL ? heddle_tensor_retain(t) : NULL;
  heddle_tensor_release(before);
}

heddle_status ctl_unit_make(const heddle__staged *st, heddle_model *m, ctl_unit *u, heddle_error *err) {
  if (u->ex != NULL) return HEDDLE_OK;
  if (u->bound == NULL || u->views == NULL) {
    if (u->bound == NULL) u->bound = heddle__alloc(m->graph->n_args, sizeof *u->bound);
    if (u->views == NULL) u->views = heddle__alloc(m->graph->n_heads, sizeof *u->views);
    if (u->bound == NULL || u->views == NULL) return heddle__no_memory(err, "a stage");
    u->n_in = m->graph->n_args;
    u->n_out = m->graph->n_heads;
  }
  heddle_status s = heddle__executor_single(m, &u->ex, err);
  if (s == HEDDLE_OK) heddle__objects_lend(u->ex, st->owner->objects);
  return s;
}

void ctl_unit_free(ctl_unit *u) {
  for (uint32_t i = 0; u->views != NULL && i < u->n_out; i++) ctl_put(&u->views[i], NULL);
  if (u->ex != NULL) heddle_executor_release(u->ex);
  for (uint32_t i = 0; u->bound != NULL && i < u->n_in; i++) ctl_put(&u->bound[i], NULL);
  heddle__free(u->bound);
  heddle__free(u->views);
}

heddle_status ctl_copy(ctl_unit *u, uint32_t i, const heddle_tensor *t, heddle_error *err) {
  return heddle_executor_set_input(u->ex, i, t, err);
}

heddle_status ctl_lend(ctl_unit *u, uint32_t i, heddle_tensor *t, heddle_error *err) {
  if (t->dev != NULL) { /* it may decide shapes, for which the host has to read it */
    heddle_status copied = ctl_copy(u, i, t, err);
    if (copied == HEDDLE_OK) ctl_put(&u->bound[i], NULL);
    return copied;
  }
  if (u->bound[i] == t) return HEDDLE_OK;
  heddle_status s = heddle_executor_bind_input(u->ex, i, t, err);
  if (s == HEDDLE_OK) ctl_put(&u->bound[i], t);
  return s;
}

heddle_status ctl_view(ctl_unit *u, uint32_t i, heddle_tensor **out, heddle_error *err) {
  heddle_tensor *t = u->views[i];
  if (t == NULL || !heddle__executor_is_view(u->ex, i, t)) {
    heddle_status s = heddle_executor_view_output(u->ex, i, &t, err);
    if (s != HEDDLE_OK) return s;
    ctl_put(&u->views[i], t);
    heddle_tensor_release(t);
  }
  *out = u->views[i];
  return HEDDLE_OK;
}

static bool heeds(const heddle__helm *helm) {
  return atomic_load_explicit(helm->attention, memory_order_relaxed) != 0 && helm->heed(helm->user);
}

heddle__run_end ctl_unit_run(heddle__staged *st, ctl_unit *u, const heddle__helm *helm, heddle_status *status,
                             heddle_error *err) {
  for (;;) {
    if (heeds(helm)) return HEDDLE__RUN_STOPPED;
    if (st->pending == NULL) {
      *status = u->ex->course->begin(u->ex, st->timed, err);
      if (*status != HEDDLE_OK) return HEDDLE__RUN_FAILED;
      st->pending = u->ex;
    }
    uint64_t now = heddle__now_ns(), until = now + SLICE_NS;
    *status = heddle__drive_wait(&u->ex->drive, until < helm->deadline_ns ? until : helm->deadline_ns, err);
    if (!heddle__drive_pending(&u->ex->drive)) {
      st->pending = NULL;
      if (*status == HEDDLE_OK && st->timed) *status = ctl_note_times(st, u->ex, err);
      return *status == HEDDLE_OK ? HEDDLE__RUN_DONE : HEDDLE__RUN_FAILED;
    }
    if (helm->deadline_ns != HEDDLE_FOREVER && heddle__now_ns() >= helm->deadline_ns) return HEDDLE__RUN_LATE;
  }
}

/* ---- numbers that the host reads */

static heddle_status not_one(const heddle_tensor *t, const char *what, const char *wanted, heddle_error *err) {
  char name[32];
  heddle__dtype_name(t->dtype, name);
  return heddle__fail(err, HEDDLE_EINVAL, "%s is %llu elements of %s; expected one %s", what,
                      (unsigned long long)t->count, name, wanted);
}

heddle_status ctl_number(const heddle_tensor *t, const char *what, int64_t *out, heddle_error *err) {
  char bytes[8] = {0};
  const bool is_int =
      t->dtype.code == HEDDLE_DTYPE_INT && t->dtype.lanes == 1 && (t->dtype.bits == 64 || t->dtype.bits == 32);
  if (t->count != 1 || !is_int) return not_one(t, what, "int64", err);
  heddle_status s = heddle__tensor_read(t, bytes, err);
  if (t->dtype.bits == 64) {
    memcpy(out, bytes, 8);
  } else {
    int32_t narrow;
    memcpy(&narrow, bytes, 4);
    *out = narrow;
  }
  return s;
}

heddle_status ctl_truth(const heddle_tensor *t, const char *what, bool *out, heddle_error *err) {
  unsigned char byte = 0;
  if (t->count != 1 || t->dtype.code != HEDDLE_DTYPE_BOOL || t->dtype.bits != 8 || t->dtype.lanes != 1)
    return not_one(t, what, "bool", err);
  heddle_status s = heddle__tensor_read(t, &byte, err);
  *out = byte != 0;
  return s;
}

heddle_status ctl_say(const heddle__staged *st, const ctl_stage *stage, int64_t at, heddle_status s,
                      heddle_error *err) {
  const char *file = st->stages->model->graph->source;
  char place[sizeof err->text];
  snprintf(place, sizeof place, "%s: ", file); /* it stands before the words; once is enough */
  heddle__unprefix(err, place);
  if (stage->node == NULL) return s;
  heddle__at_node(s, err, HEDDLE__NO_NODE, stage->node->name);
  if (at < 0) return heddle__prefix(err, s, "node '%.100s' (%s): ", stage->node->name, stage->node->op);
  return heddle__prefix(err, s, "node '%.100s' (%s), iteration %lld: ", stage->node->name, stage->node->op,
                        (long long)at);
}

heddle__run_end ctl_body_drive(heddle__staged *st, const ctl_stage *stage, ctl_run *run, const ctl_body *body,
                               const heddle__helm *helm, heddle_status *status, heddle_error *err) {
  *status = HEDDLE_OK;
  while (body->goes_on(run)) {
    if (!run->inside) {
      *status = body->set_inputs(st, stage, run, err);
      if (*status != HEDDLE_OK) return HEDDLE__RUN_FAILED;
      run->inside = true;
    }
    const heddle__run_end end = ctl_unit_run(st, &run->units[0], helm, status, err);
    if (end != HEDDLE__RUN_DONE) return end;
    run->inside = false;
    *status = body->take_outputs(stage, run, err);
    if (*status != HEDDLE_OK) return HEDDLE__RUN_FAILED;
    run->at++;
  }
  *status = body->finish(st, stage, run, err);
  return *status == HEDDLE_OK ? HEDDLE__RUN_DONE : HEDDLE__RUN_FAILED;
}
