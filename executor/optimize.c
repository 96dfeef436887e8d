/* executor/optimize.c: rewrites graphs (graph/optimize/) for models that ask for it, and says which graph a program is of: the
 * rewritten or the given one. The args of the first begin with those of the second. */
#include "executor/optimize.h"

#include <string.h>

#include "core/alloc.h"
#include "core/config.h"
#include "core/error.h"
#include "core/parts.h"
#include "executor/budget.h"
#include "graph/declared.h"
#include "graph/validate.h"

const char *heddle__optimize_wish(const heddle_model *m, const char *wish) {
  if (wish == NULL) (void)heddle_context_setting(m->ctx, "optimize", &wish, NULL, NULL);
  const json_t *own = json_object_get(json_object_get(m->graph->raw, "heddle"), "optimize");
  if (wish == NULL) wish = json_is_true(own) ? "on" : json_string_value(own);
  return wish;
}

heddle_status heddle__optimize(heddle_model *m, const char *wish, heddle_error *err) {
  wish = heddle__optimize_wish(m, wish);
  if (wish == NULL || heddle__config_is_off(wish)) return HEDDLE_OK;
#if HEDDLE_HAS_OPTIMIZE
  const heddle__optimize_ask ask = {.ctx = m->ctx,
                                    .graph = m->graph,
                                    .constants = m->constants,
                                    .keep = m->keep,
                                    .n_keep = m->n_keep,
                                    .rules = m->rules,
                                    .n_rules = m->n_rules,
                                    .wish = wish};
  return heddle__optimize_graph(&ask, &m->optimized, err);
#else
  heddle_status s = heddle__left_out(err, "optimisations", "HEDDLE_OPTIMIZE");
  return heddle__prefix(err, s, "%s: ", m->graph->source);
#endif
}

void heddle__optimize_finish(heddle_model *m) {
#if HEDDLE_HAS_OPTIMIZE
  heddle__optimized_free(m->optimized);
#else
  (void)m; /* it was not optimised */
#endif
}

void heddle__optimize_order(heddle_model *m, const heddle__wish *wish, heddle__order *o) {
  const heddle__optimized *other = m->optimized;
  if (!HEDDLE_HAS_OPTIMIZE || other == NULL || wish->target != NULL) return;
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

/* An optimised graph says nothing of what its nodes give: its outputs are compared with what the given graph says of
 * them. */
heddle_status heddle__optimize_check(const heddle_model *m, const heddle__plan *plan, heddle_error *err) {
  const heddle_graph *g = m->graph, *made = plan->req.graph;
  heddle_status s = HEDDLE_OK;
  if (!HEDDLE_HAS_OPTIMIZE || made == g) return s;
  for (uint32_t i = 0; i < g->n_heads + m->n_keep && s == HEDDLE_OK; i++) {
    const bool is_head = i < g->n_heads;
    const heddle__keep given = is_head ? g->heads[i] : m->keep[i - g->n_heads];
    const heddle__keep other = is_head ? made->heads[i] : plan->req.keep[i - g->n_heads];
    const heddle__known *known = &plan->values[heddle__entry_id(made, other)].known;
    const heddle__node *node = &g->nodes[given.node];
    s = heddle__declared_check(g, node, given.index, known->dtype, known->ndim, known->shape, err);
    heddle__declared_tell(heddle__context_log(m->ctx), g, node, given.index, known->dtype, known->ndim, known->shape);
  }
  return s;
}

heddle_status heddle__optimize_plan(heddle_model *m, heddle__order *o, heddle__plan **out, heddle_error *err) {
  heddle_error why = {0};
  if (!HEDDLE_HAS_OPTIMIZE || o->req.optimized == NULL) return heddle__budget_plan(m, &o->req, out, err);
  heddle_status s = heddle__budget_plan(m, &o->req, out, &why);
  if (s == HEDDLE_OK) {
    s = heddle__optimize_check(m, *out, err);
    if (s == HEDDLE_OK) return s;
    heddle__plan_free(*out);
    *out = NULL;
    return s;
  }
  if (s == HEDDLE_ENOMEM || s == HEDDLE_ETIMEOUT || s == HEDDLE_ECANCELED) {
    if (err != NULL) *err = why;
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
