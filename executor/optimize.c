/* executor/optimize.c: opens libheddle_optimize.so for models that ask for it, and says which graph a program is of: the
 * one that it made, or the given one. The args of the first begin with those of the second. */
#include "executor/optimize.h"

#include <string.h>

#include "core/alloc.h"
#include "core/beside.h"
#include "core/config.h"
#include "core/error.h"
#include "executor/budget.h"
#include "graph/validate.h"

static void log_line(heddle_context *ctx, int32_t level, const char *text) {
  heddle__log_line(heddle__context_log(ctx), level, "optimize", text);
}

static const heddle__optimize_host host = {heddle__alloc,
                                           heddle__alloc_aligned,
                                           heddle__free,
                                           heddle__graph_new,
                                           heddle__graph_index,
                                           heddle_graph_retain,
                                           heddle_graph_release,
                                           heddle__schema_find,
                                           heddle__tensor_bytes,
                                           log_line,
                                           heddle__context_number,
                                           heddle_model_create,
                                           heddle_model_release,
                                           heddle_executor_create,
                                           heddle_executor_release,
                                           heddle_executor_run,
                                           heddle_executor_view_output,
                                           heddle_tensor_data,
                                           heddle_tensor_bytes,
                                           heddle_tensor_release};

const char *heddle__optimize_wish(const heddle_model *m, const char *wish) {
  if (wish == NULL) (void)heddle_context_setting(m->ctx, "optimize", &wish, NULL, NULL);
  const json_t *own = json_object_get(json_object_get(m->graph->raw, "heddle"), "optimize");
  if (wish == NULL) wish = json_is_true(own) ? "on" : json_string_value(own);
  return wish;
}

heddle_status heddle__optimize(heddle_model *m, const char *wish, heddle_error *err) {
  wish = heddle__optimize_wish(m, wish);
  if (wish == NULL || heddle__config_is_off(wish)) return HEDDLE_OK;
  const void *table = NULL;
  heddle_status s = heddle__open_beside("libheddle_optimize.so.0", "optimisations need", "heddle_optimize_entry", 0,
                                        NULL, &table, err);
  if (s != HEDDLE_OK) return heddle__prefix(err, s, "%s: ", m->graph->source);
  m->optimizer = table;
  const heddle__optimize_ask ask = {.host = &host,
                                    .ctx = m->ctx,
                                    .graph = m->graph,
                                    .constants = m->constants,
                                    .keep = m->keep,
                                    .n_keep = m->n_keep,
                                    .rules = m->rules,
                                    .n_rules = m->n_rules,
                                    .wish = wish};
  return m->optimizer->run(&ask, &m->optimized, err);
}

void heddle__optimize_finish(heddle_model *m) {
  if (m->optimizer != NULL) m->optimizer->release(m->optimized);
}

void heddle__optimize_order(heddle_model *m, const heddle__wish *wish, heddle__order *o) {
  const heddle__optimized *other = m->optimized;
  if (other == NULL || wish->target != NULL) return;
  for (uint32_t i = 0; i < m->graph->n_args; i++)
    if (wish->late[i] && other->read[i]) {
      heddle__logf(heddle__context_log(m->ctx), HEDDLE_LOG_INFO, "optimize", "%s: not optimised: '%s' was set anew",
                   m->graph->source, heddle__model_arg(m, i)->name);
      return;
    }
  for (uint32_t i = 0; i < other->n_made; i++) heddle__plan_constant(&o->inputs[m->graph->n_args + i], &other->made[i]);
  o->req.graph = other->graph;
  o->req.keep = other->keep;
  o->req.optimized = other;
}

heddle_status heddle__optimize_plan(heddle_model *m, heddle__order *o, heddle__plan **out, heddle_error *err) {
  heddle_error why = {0};
  if (o->req.optimized == NULL) return heddle__budget_plan(m, &o->req, out, err);
  heddle_status s = heddle__budget_plan(m, &o->req, out, &why);
  if (s == HEDDLE_OK || s == HEDDLE_ENOMEM || s == HEDDLE_ETIMEOUT || s == HEDDLE_ECANCELED) {
    if (s != HEDDLE_OK && err != NULL) *err = why;
    return s;
  }
  o->req.graph = m->graph;
  o->req.keep = m->keep;
  o->req.optimized = NULL;
  s = heddle__budget_plan(m, &o->req, out, err);
  if (s == HEDDLE_OK)
    heddle__logf(heddle__context_log(m->ctx), HEDDLE_LOG_WARN, "optimize", "%s: not optimised: %s", m->graph->source,
                 why.text);
  return s;
}
