/* executor/stages.c: what the model and the executor ask of models in stages (executor/control/). */
#include "executor/stages.h"

#include <string.h>

#include "executor/control.h"
#include "core/alloc.h"
#include "core/config.h"
#include "core/error.h"
#include "core/parts.h"
#include "executor/explain.h"
#include "executor/ranks/spread.h"
#include "executor/states.h"
#include "executor/optimize.h"
#include "graph/declared.h"
#include "graph/infer.h"
#include "graph/validate.h"

bool heddle__executor_is_view(heddle_executor *ex, uint32_t i, const heddle_tensor *t) {
  const heddle_tensor *own = ex->course->result(ex, i);
  if (own != NULL) return t == own;
  if (ex->bound == NULL || ex->results[i].lent != NULL) return false;
  const heddle__port *port = heddle__bound_output_port(ex->bound, i);
  const heddle__known *k = heddle__bound_output(ex->bound, i);
  if (port == NULL) return false;
  const char *at =
      (const char *)ex->bound->memory[port->alloc]->host + ex->bound->program->plan->instances[port->instance].offset;
  return at == (const char *)t->data && heddle__dtype_equal(k->dtype, t->dtype) && k->ndim == t->ndim &&
         memcmp(k->shape, t->shape, t->ndim * sizeof *t->shape) == 0;
}

#if HEDDLE_HAS_CONTROL

heddle_status heddle__stages_make(heddle_model *m, const char *optimize, heddle_error *err) {
  return ctl_make(m, heddle__optimize_wish(m, optimize), &m->stages, err);
}

void heddle__stages_free(heddle_model *m) {
  ctl_free(m->stages);
}

void heddle__staged_profile(const heddle_executor *ex, const heddle_profile_entry **out, size_t *n) {
  ctl_profile(ex->staged, out, n);
}

heddle_status heddle__stages_explain(heddle_model *m, heddle_explain_format format, char **out, heddle_error *err) {
  return ctl_explain(m->stages, NULL, format, out, err);
}

/* ---- the stages as the work of a drive */

static uint32_t say_stages(const void *self, char *what, size_t size) {
  ctl_late(self, what, size);
  return HEDDLE__NONE;
}

static heddle__program *no_program(const void *self) {
  (void)self;
  return NULL;
}

static const heddle__work staged_work = {ctl_drive, ctl_drain, say_stages, no_program};

/* ---- the course */

static heddle_status begin_staged(heddle_executor *ex, bool timed, heddle_error *err) {
  uint32_t unset = HEDDLE__NONE;
  heddle_status s = heddle__executor_check(ex, err);
  if (s == HEDDLE_OK) s = heddle__states_settle(ex, err);
  if (s == HEDDLE_OK) s = heddle__objects_settle(ex, err);
  if (s != HEDDLE_OK) return s;
  s = ctl_check(ex->staged, &unset, err);
  if (s == HEDDLE_OK && unset != HEDDLE__NONE) s = heddle__executor_say_unset(ex, unset, err);
  if (s != HEDDLE_OK) return heddle__spread_fail(ex->model->spread, s, err); /* other ranks may have begun the run */
  ex->tracing = false; /* the stages' executors have spans of their own */
  atomic_store_explicit(&ex->has_outputs, false, memory_order_relaxed);
  ctl_reset(ex->staged);
  ctl_time(ex->staged, timed);
  /* Over ranks the waiting thread drives, so that its error can name the rank that a late run waits for. */
  heddle__drive_begin(&ex->drive, &staged_work, ex->staged, !heddle__spread_cuts(ex->model->spread), NULL);
  return HEDDLE_OK;
}

static heddle_status take_outputs(heddle_executor *ex, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; s == HEDDLE_OK && i < ex->n_results; i++) { /* all of them before the first is written */
    const heddle_tensor *t = ctl_result(ex->staged, i);
    if (t == NULL) continue; /* rank 0 has it */
    if (ex->results[i].lent != NULL) s = heddle__executor_check_lent(ex, i, t->dtype, t->ndim, t->shape, err);
  }
  for (uint32_t i = 0; s == HEDDLE_OK && i < ex->n_results; i++) {
    if (ex->results[i].lent == NULL || ctl_result(ex->staged, i) == NULL) continue;
    s = heddle_tensor_copy(ex->results[i].lent, ctl_result(ex->staged, i), err);
    if (s != HEDDLE_OK) heddle__prefix(err, s, "output '%s': ", ex->results[i].name);
  }
  for (uint32_t i = 0; s == HEDDLE_OK && i < ex->n_results; i++) {
    heddle__state *st = heddle__state_of_output(ex, i);
    if (st != NULL) s = heddle__state_take(ex, st, ctl_result(ex->staged, i), err);
    if (s != HEDDLE_OK) heddle__prefix(err, s, "output '%s': ", ex->results[i].name);
  }
  if (s == HEDDLE_OK && ex->states != NULL) heddle__states_advance(ex);
  atomic_fetch_add_explicit(&ex->runs, 1, memory_order_relaxed);
  atomic_store_explicit(&ex->has_outputs, s == HEDDLE_OK, memory_order_relaxed);
  return s;
}

static heddle_status end_staged(void *user, heddle_status status, const char *hung, heddle_error *words) {
  heddle_executor *ex = user;
  if (status == HEDDLE_OK) status = take_outputs(ex, words);
  return heddle__single_ended(ex, status, hung, words);
}

/* Stages are planned when a run reaches them. */
static heddle_status prepare_staged(heddle_executor *ex, heddle_error *err) {
  (void)ex, (void)err;
  return HEDDLE_OK;
}

static heddle_tensor *result_of_stages(heddle_executor *ex, uint32_t i) {
  const bool whole = !heddle__drive_pending(&ex->drive) && atomic_load(&ex->has_outputs);
  return whole ? ctl_result(ex->staged, i) : NULL;
}

static heddle_status value_of_stages(heddle_executor *ex, const heddle__keep *target, heddle_tensor **out,
                                     heddle_error *err) {
  heddle_status s = begin_staged(ex, false, err);
  if (s == HEDDLE_OK) s = heddle__drive_wait(&ex->drive, HEDDLE_FOREVER, err);
  if (s == HEDDLE_OK) s = ctl_value(ex->staged, target, out, err);
  return heddle__name_file(ex->model, s, err);
}

static heddle_status explain_staged(heddle_executor *ex, heddle_explain_format format, char **out, heddle_error *err) {
  return ctl_explain(ex->model->stages, ex->staged, format, out, err);
}

static heddle_status add_stats_of_stages(heddle_executor *ex, heddle_executor_stats *all, heddle_error *err) {
  if (heddle__drive_pending(&ex->drive)) /* it makes and drops what is counted */
    return heddle__fail(err, HEDDLE_EBUSY, "a run is pending; wait for it, or cancel it");
  heddle_status s = heddle__single_add_stats(ex, all, err);
  if (s == HEDDLE_OK) ctl_stats(ex->staged, all);
  return s;
}

static const heddle__course staged_course = {.lane = NULL,
                                             .holder = heddle__single_holder,
                                             .free = heddle__single_free,
                                             .begin = begin_staged,
                                             .run = heddle__single_run,
                                             .start = heddle__single_start,
                                             .wait = heddle__single_wait,
                                             .cancel = heddle__single_cancel,
                                             .ended = end_staged,
                                             .prepare = prepare_staged,
                                             .result = result_of_stages,
                                             .value = value_of_stages,
                                             .explain = explain_staged,
                                             .add_stats = add_stats_of_stages};

heddle_status heddle__staged_make(heddle_executor *ex, heddle_error *err) {
  ex->course = &staged_course;
  ex->drive.ended = end_staged;
  heddle_status s = heddle__objects_make(ex, err);
  if (s == HEDDLE_OK) s = ctl_start(ex->model->stages, ex, &ex->staged, err);
  if (s != HEDDLE_OK) heddle__objects_free(ex);
  return s;
}

void heddle__staged_free(heddle_executor *ex) {
  if (ex->staged == NULL) return;
  ctl_end(ex->staged);
  ex->staged = NULL;
  heddle__objects_free(ex);
}

#else /* no model has stages */

void heddle__staged_profile(const heddle_executor *ex, const heddle_profile_entry **out, size_t *n) {
  (void)ex, (void)out, (void)n;
}

heddle_status heddle__stages_make(heddle_model *m, const char *optimize, heddle_error *err) {
  (void)optimize;
  heddle_status s =
      heddle__left_out(err, "models in stages (If, Loop, Scan, shapes that only a run gives)", "HEDDLE_CONTROL");
  return heddle__prefix(err, s, "%s: ", m->graph->source);
}

void heddle__stages_free(heddle_model *m) {
  (void)m;
}

heddle_status heddle__stages_explain(heddle_model *m, heddle_explain_format format, char **out, heddle_error *err) {
  (void)m, (void)format, (void)out;
  return heddle__left_out(err, "models in stages", "HEDDLE_CONTROL");
}

heddle_status heddle__staged_make(heddle_executor *ex, heddle_error *err) {
  (void)ex;
  return heddle__left_out(err, "models in stages", "HEDDLE_CONTROL");
}

void heddle__staged_free(heddle_executor *ex) {
  (void)ex;
}
#endif
