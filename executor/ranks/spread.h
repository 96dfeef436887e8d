/* executor/ranks/spread.h: a model over the ranks of its context: the devices of all ranks, which of them each node runs on,
 * and the acts of each rank (script.h). The model's graph is cut into stages by rank (executor/control/cut.c); a rank
 * has models of its own stages only, so that it loads no other weights. Here is what executor/ and executor/control/ call. */
#ifndef HEDDLE_EXECUTOR_RANKS_SPREAD_H
#define HEDDLE_EXECUTOR_RANKS_SPREAD_H

#include "core/parts.h"
#include "executor/model.h"
#include "executor/run.h"

struct heddle__ranks;
struct heddle__staged;
struct heddle__stages;
typedef struct heddle__spread heddle__spread;           /* of a model */
typedef struct heddle__spread_lane heddle__spread_lane; /* of an executor */

#if HEDDLE_HAS_RANKS

/* ---- list.c. A first step of the model's creation, before its options are read: agrees with the other ranks on the devices
 * of all, and leaves in o what is for this rank's own devices; what o then has is of the spread. With one rank it is an ordinary
 * model with those options. */
heddle_status heddle__spread_open(heddle_context *ctx, const heddle_graph *graph, const heddle_params *params,
                                  heddle_model_options *o, heddle__spread **out, heddle_error *err);
void heddle__spread_close(heddle__spread *s); /* takes NULL */

/* Whether the model is cut: there are several ranks. NULL: the model is of one process. */
bool heddle__spread_cuts(const heddle__spread *s);
bool heddle__spread_idle(const heddle__spread *s); /* this rank has no device in the list */
uint32_t heddle__spread_rank(const heddle__spread *s);

/* A failure of this rank outside of a run ends the work of all ranks; gives status. s may be NULL. */
heddle_status heddle__spread_fail(const heddle__spread *s, heddle_status status, heddle_error *err);
heddle_status heddle__spread_check(const heddle__spread *s, heddle_error *err);

/* ---- place.c: the rank of each node (rank_of, a number per node), where m is whole but for its stages. */
heddle_status heddle__spread_place(heddle_model *m, uint32_t *rank_of, heddle_error *err);

/* The device that a node of this rank is to run on, as this rank calls it; NULL: the order of preference decides. */
const char *heddle__spread_device(const heddle__spread *s, uint32_t node);

/* ---- messages.c: once stages are numbered, with their inputs and outputs: the acts of all ranks, which are proved. Then
 * what all ranks have is compared. */
heddle_status heddle__spread_script(heddle_model *m, const struct heddle__stages *stages, const uint32_t *rank_of_stage,
                                    heddle_error *err);

/* ---- lane.c: an executor's requests, and its run */
heddle_status heddle__spread_start(const heddle__spread *s, struct heddle__staged *st, heddle__spread_lane **out,
                                   heddle_error *err);
void heddle__spread_end(heddle__spread_lane *lane); /* takes NULL */
heddle__run_end heddle__spread_drive(struct heddle__staged *st, const heddle__helm *helm, heddle_status *status,
                                     heddle_error *err);
void heddle__spread_say(const struct heddle__staged *st, char *what, size_t size);

/* ---- explain.c: what the plan's text or JSON has of the ranks. json: members of an object, with a comma behind them. */
struct heddle__sheet;
void heddle__spread_explain(const heddle_model *m, bool json, struct heddle__sheet *sheet);

#else

static inline bool heddle__spread_cuts(const heddle__spread *s) {
  return (void)s, false;
}
static inline bool heddle__spread_idle(const heddle__spread *s) {
  return (void)s, false;
}
static inline uint32_t heddle__spread_rank(const heddle__spread *s) {
  return (void)s, 0;
}
static inline heddle_status heddle__spread_fail(const heddle__spread *s, heddle_status status,
                                                const heddle_error *err) {
  return (void)s, (void)err, status;
}
static inline void heddle__spread_close(heddle__spread *s) {
  (void)s;
}

#endif

#endif
