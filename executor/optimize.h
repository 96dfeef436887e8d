/* executor/optimize.h: a model's graph as it is rewritten before it is placed. The optimisations are in
 * graph/optimize/. */
#ifndef HEDDLE_EXECUTOR_OPTIMIZE_H
#define HEDDLE_EXECUTOR_OPTIMIZE_H

#include "executor/model.h"

/* Fills m->optimized as the wish says; NULL: the setting optimize, else the graph's own, else off. The last step of a
 * model's creation. HEDDLE_EINVAL for a wish that names no optimisation. */
heddle_status heddle__optimize(heddle_model *m, const char *wish, heddle_error *err);
/* The wish that heddle__optimize follows; borrowed, NULL: none. */
const char *heddle__optimize_wish(const heddle_model *m, const char *wish);
void heddle__optimize_finish(heddle_model *m);

/* The plan of an order. Where the optimised graph cannot be planned, the given one is, and the log says why. */
heddle_status heddle__optimize_plan(heddle_model *m, heddle__order *order, heddle__plan **out, heddle_error *err);

/* The outputs of a plan of an optimised graph against what the given graph says of them. HEDDLE_EINVAL. */
heddle_status heddle__optimize_check(const heddle_model *m, const heddle__plan *plan, heddle_error *err);

/* Makes an order one of the optimised graph, unless what is wished for is in the given one only: a value between nodes,
 * or another value for a constant that the optimised graph is built on. */
void heddle__optimize_order(heddle_model *m, const heddle__wish *wish, heddle__order *order);

#endif
