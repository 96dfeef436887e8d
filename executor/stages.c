/* executor/stages.c: what the model and the executor ask of models in stages (executor/control/). */
#include "executor/stages.h"

#include <string.h>

#include "executor/control.h"
#include "core/alloc.h"
#include "core/config.h"
#include "core/error.h"
#include "core/parts.h"
#include "executor/explain.h"
#include "executor/optimize.h"
#include "graph/declared.h"
#include "graph/infer.h"
#include "graph/validate.h"

bool heddle__executor_is_view(heddle_executor *ex, uint32_t i, const heddle_tensor *t) {
  if (ex->staged != NULL) return t == heddle__staged_result(ex, i);
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

heddle_status heddle__stages_explain(heddle_model *m, heddle_executor *ex, heddle_explain_format format, char **out,
                                     heddle_error *err) {
  return ctl_explain(m->stages, ex != NULL ? ex->staged : NULL, format, out, err);
}

heddle_status heddle__staged_make(heddle_executor *ex, heddle_error *err) {
  const heddle_model *m = ex->model;
  static const heddle__course course = {ctl_reset, ctl_drive, ctl_drain};
  ex->drive.course = &course;
  heddle_status s = ctl_start(m->stages, ex, &ex->staged, err);
  ex->drive.course_self = ex->staged;
  return s;
}

void heddle__staged_free(heddle_executor *ex) {
  if (ex->staged == NULL) return;
  ctl_end(ex->staged);
  ex->staged = NULL;
}

heddle_status heddle__staged_begin(heddle_executor *ex, bool timed, heddle_error *err) {
  uint32_t unset = HEDDLE__NONE;
  if (timed)
    return heddle__fail(
        err, HEDDLE_EUNSUPPORTED,
        "%s: this model runs in stages (it has If, Loop or Scan, or shapes that only a run gives), whose "
        "steps a profile cannot list; a trace can (heddle_trace_begin, --trace)",
        ex->model->graph->source);
  heddle_status s = ctl_check(ex->staged, &unset, err);
  if (s != HEDDLE_OK) return s;
  if (unset != HEDDLE__NONE) return heddle__executor_say_unset(ex, unset, err);
  ex->tracing = false; /* the stages' executors have spans of their own */
  atomic_store_explicit(&ex->has_outputs, false, memory_order_relaxed);
  heddle__drive_begin(&ex->drive, NULL, NULL);
  return HEDDLE_OK;
}

heddle_tensor *heddle__staged_result(heddle_executor *ex, uint32_t i) {
  return ctl_result(ex->staged, i);
}

heddle_status heddle__staged_run_to(heddle_executor *ex, const heddle__keep *target, heddle_tensor **out,
                                    heddle_error *err) {
  heddle_status s = heddle__staged_begin(ex, false, err);
  if (s == HEDDLE_OK) s = heddle__drive_wait(&ex->drive, HEDDLE_FOREVER, err);
  return s == HEDDLE_OK ? ctl_value(ex->staged, target, out, err) : s;
}

void heddle__staged_stats(heddle_executor *ex, heddle_executor_stats *all) {
  ctl_stats(ex->staged, all);
}

#else /* no model has stages */

heddle_status heddle__stages_make(heddle_model *m, const char *optimize, heddle_error *err) {
  (void)optimize;
  heddle_status s =
      heddle__left_out(err, "models in stages (If, Loop, Scan, shapes that only a run gives)", "HEDDLE_CONTROL");
  return heddle__prefix(err, s, "%s: ", m->graph->source);
}

void heddle__stages_free(heddle_model *m) {
  (void)m;
}

heddle_status heddle__stages_explain(heddle_model *m, heddle_executor *ex, heddle_explain_format format, char **out,
                                     heddle_error *err) {
  (void)m, (void)ex, (void)format, (void)out;
  return heddle__left_out(err, "models in stages", "HEDDLE_CONTROL");
}

heddle_status heddle__staged_make(heddle_executor *ex, heddle_error *err) {
  (void)ex;
  return heddle__left_out(err, "models in stages", "HEDDLE_CONTROL");
}

void heddle__staged_free(heddle_executor *ex) {
  (void)ex;
}

heddle_status heddle__staged_begin(heddle_executor *ex, bool timed, heddle_error *err) {
  (void)ex, (void)timed;
  return heddle__left_out(err, "models in stages", "HEDDLE_CONTROL");
}

heddle_tensor *heddle__staged_result(heddle_executor *ex, uint32_t i) {
  (void)ex, (void)i;
  return NULL;
}

heddle_status heddle__staged_run_to(heddle_executor *ex, const heddle__keep *target, heddle_tensor **out,
                                    heddle_error *err) {
  (void)ex, (void)target, (void)out;
  return heddle__left_out(err, "models in stages", "HEDDLE_CONTROL");
}

void heddle__staged_stats(heddle_executor *ex, heddle_executor_stats *all) {
  (void)ex, (void)all;
}
#endif
