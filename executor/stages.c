/* executor/stages.c: opens libheddle_control.so for models that need stages, and hands it what it asks for. */
#include "executor/stages.h"

#include <string.h>

#include "executor/control.h"
#include "core/alloc.h"
#include "core/beside.h"
#include "core/config.h"
#include "core/error.h"
#include "executor/explain.h"
#include "executor/optimize.h"
#include "graph/declared.h"
#include "graph/infer.h"
#include "graph/validate.h"

/* Whether a tensor still is the output's memory: so that a run that changes nothing makes no tensor. */
static bool is_view(heddle_executor *ex, uint32_t i, const heddle_tensor *t) {
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

static const heddle__control_host host = {heddle__alloc,
                                          heddle__grow,
                                          heddle__free,
                                          heddle__format,
                                          heddle__now_ns,
                                          heddle__graph_new,
                                          heddle__graph_index,
                                          heddle__graph_arg,
                                          heddle_graph_retain,
                                          heddle_graph_release,
                                          heddle__graph_cuts,
                                          heddle__control_of,
                                          heddle__inner,
                                          heddle__is_control,
                                          heddle__declared_check,
                                          heddle__attr_ints,
                                          heddle__params_new,
                                          heddle_params_retain,
                                          heddle_params_release,
                                          heddle_model_create,
                                          heddle_model_release,
                                          heddle_model_explain,
                                          heddle__executor_single,
                                          heddle_executor_release,
                                          heddle__executor_begin,
                                          heddle__drive_wait,
                                          heddle__drive_cancel,
                                          heddle_executor_set_input,
                                          heddle_executor_bind_input,
                                          heddle_executor_view_output,
                                          is_view,
                                          heddle__executor_prepare,
                                          heddle_executor_output_info,
                                          heddle_executor_run_to,
                                          heddle_executor_get_stats,
                                          heddle_executor_explain,
                                          heddle_tensor_create,
                                          heddle_tensor_wrap,
                                          heddle_tensor_retain,
                                          heddle_tensor_release,
                                          heddle__tensor_read,
                                          heddle_tensor_copy,
                                          heddle__tensor_bytes,
                                          heddle__type_words,
                                          heddle__dtype_name};

heddle_status heddle__stages_make(heddle_model *m, const char *optimize, heddle_error *err) {
  const void *table = NULL;
  heddle_status s = heddle__open_beside("libheddle_control.so.0", "models in stages need", "heddle_control_entry", 0,
                                        &host, &table, err);
  if (s != HEDDLE_OK) return heddle__prefix(err, s, "%s: ", m->graph->source);
  m->control = table;
  return m->control->make(m, heddle__optimize_wish(m, optimize), &m->stages, err);
}

void heddle__stages_free(heddle_model *m) {
  if (m->control != NULL) m->control->free(m->stages);
}

heddle_status heddle__stages_explain(heddle_model *m, heddle_executor *ex, heddle_explain_format format, char **out,
                                     heddle_error *err) {
  return m->control->explain(m->stages, ex != NULL ? ex->staged : NULL, format, out, err);
}

heddle_status heddle__staged_make(heddle_executor *ex, heddle_error *err) {
  const heddle_model *m = ex->model;
  ex->drive.course = &m->control->course;
  heddle_status s = m->control->start(m->stages, ex, &ex->staged, err);
  ex->drive.course_self = ex->staged;
  return s;
}

void heddle__staged_free(heddle_executor *ex) {
  if (ex->staged == NULL) return;
  ex->model->control->end(ex->staged);
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
  heddle_status s = ex->model->control->check(ex->staged, &unset, err);
  if (s != HEDDLE_OK) return s;
  if (unset != HEDDLE__NONE) return heddle__executor_say_unset(ex, unset, err);
  ex->tracing = false; /* the stages' executors have spans of their own */
  atomic_store_explicit(&ex->has_outputs, false, memory_order_relaxed);
  heddle__drive_begin(&ex->drive, NULL, NULL);
  return HEDDLE_OK;
}

heddle_tensor *heddle__staged_result(heddle_executor *ex, uint32_t i) {
  return ex->model->control->result(ex->staged, i);
}

heddle_status heddle__staged_run_to(heddle_executor *ex, const heddle__keep *target, heddle_tensor **out,
                                    heddle_error *err) {
  heddle_status s = heddle__staged_begin(ex, false, err);
  if (s == HEDDLE_OK) s = heddle__drive_wait(&ex->drive, HEDDLE_FOREVER, err);
  return s == HEDDLE_OK ? ex->model->control->value(ex->staged, target, out, err) : s;
}

void heddle__staged_stats(heddle_executor *ex, heddle_executor_stats *all) {
  ex->model->control->stats(ex->staged, all);
}
