/* executor/budget/fit.c: plans a request again and again, each time with more done against the bytes that it takes, until
 * the plan keeps its limits. */
#include "core/error.h"
#include "core/alloc.h"
#include "executor/budget/net.h"

static uint64_t excess_of(const heddle__plan *plan) {
  uint64_t sum = 0;
  for (uint32_t d = 0; d < plan->n_devices; d++) sum += budget_excess(plan, d);
  return sum;
}

/* The ranks of all nodes in an order that is better than the plan's; NULL where none was found. */
static heddle_status rank_of(const heddle__plan *plan, bool thorough, uint32_t **out, heddle_error *err) {
  budget_net net;
  uint32_t *order = heddle__alloc((size_t)plan->n_steps + 1, sizeof *order);
  uint32_t *rank = heddle__alloc((size_t)plan->req.graph->n_nodes + 1, sizeof *rank);
  bool better = false;
  heddle_status s = budget_net_init(&net, plan, err);
  if (s == HEDDLE_OK && (order == NULL || rank == NULL)) s = heddle__no_memory(err, "the search for a smaller plan");
  if (s == HEDDLE_OK) s = budget_search(&net, thorough, order, &better, err);
  for (uint32_t i = 0; better && i < net.n_tasks; i++) {
    const heddle__region *r = &plan->regions[net.tasks[order[i]].region];
    for (uint32_t k = 0; k < r->n_nodes; k++) rank[r->nodes[k]] = i + 1;
  }
  budget_net_finish(&net);
  heddle__free(order);
  *out = s == HEDDLE_OK && better ? rank : NULL;
  if (*out == NULL) heddle__free(rank);
  return s;
}

/* What is done, one after another, until a plan fits; each is planned as the steps are listed, and in the order that is
 * found for that plan. */
static const struct {
  bool late, one_stream, plain;
  const char *listed, *reordered;
} ways[] = {
    {false, false, false, NULL, "reordered for memory"},
    {true, true, false, "one stream a device", "reordered for memory, one stream a device"},
    {true, true, true, "plain layouts, one stream a device",
     "reordered for memory, plain layouts, one stream a device"},
};

/* Plans once. A way that cannot make a plan is skipped; the first way must make one. */
static heddle_status make(const heddle__request *req, const char *words, heddle__plan **best, uint64_t *over,
                          heddle__plan **out, heddle_error *err) {
  heddle_error why = {0};
  *out = NULL;
  heddle_status s = heddle__plan_make(req, out, &why);
  if (s != HEDDLE_OK) {
    if (*best != NULL && s != HEDDLE_ENOMEM) return HEDDLE_OK;
    if (err != NULL) *err = why;
    return s;
  }
  (*out)->req.rank = NULL;
  (*out)->fitted = words;
  if (excess_of(*out) >= *over && *best != NULL) return HEDDLE_OK;
  *over = excess_of(*out);
  *best = *out;
  return HEDDLE_OK;
}

static heddle_status try_way(heddle__request *req, size_t way, bool thorough, heddle__plan **best, uint64_t *over,
                             heddle_error *err) {
  heddle__plan *old = *best, *listed = NULL, *reordered = NULL;
  uint32_t *rank = NULL;
  heddle_status s = make(req, ways[way].listed, best, over, &listed, err);
  if (s == HEDDLE_OK && *over > 0 && listed != NULL) s = rank_of(listed, thorough, &rank, err);
  if (rank != NULL) {
    req->rank = rank;
    req->late = true;
    s = make(req, ways[way].reordered, best, over, &reordered, err);
    req->rank = NULL;
    heddle__free(rank);
  }
  if (old != *best) heddle__plan_free(old);
  if (listed != *best) heddle__plan_free(listed);
  if (reordered != *best) heddle__plan_free(reordered);
  return s;
}

heddle_status budget_fit(const heddle__request *request, bool thorough, heddle__plan **out, uint64_t *over,
                         heddle_error *err) {
  heddle__request req = *request;
  heddle_status s = HEDDLE_OK;
  *out = NULL;
  *over = UINT64_MAX;
  for (size_t w = 0; s == HEDDLE_OK && *over > 0 && w < sizeof ways / sizeof ways[0]; w++) {
    if (w > 0 && !ways[w].plain && req.max_streams == 1) continue;
    req.late = ways[w].late;
    req.plain = ways[w].plain;
    if (ways[w].one_stream) req.max_streams = 1;
    s = try_way(&req, w, thorough, out, over, err);
  }
  if (s != HEDDLE_OK) {
    heddle__plan_free(*out);
    *out = NULL;
  } else if (thorough && (*out)->fitted != NULL) {
    budget_log(&req.ctx->log, "%s: %s: %llu bytes over its limits", request->graph->source, (*out)->fitted,
               (unsigned long long)*over);
  }
  return s;
}
