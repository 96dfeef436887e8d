/* Joins: convolutions, with what follows each, whose results are only put side by side (Concat of channels) write to
 * their places in the result at once. Each member is a chain of its own, which onednn.h prepares and runs. */
#ifndef HEDDLE_PLUGINS_CPU_ONEDNN_JOIN_H
#define HEDDLE_PLUGINS_CPU_ONEDNN_JOIN_H

#include "onednn.h"

typedef struct onednn_join onednn_join;               /* a prepared region; immutable, for any thread */
typedef struct onednn_join_launch onednn_join_launch; /* with its operands; one thread at a time */

#ifdef HEDDLE_ONEDNN

/* Is the region one of several nodes that ends in a Concat? Only then are the functions below for it. */
bool onednn_join_is(const heddle_pregion *region);

/* As those of onednn.h; there is one offer, or HEDDLE_EUNSUPPORTED. */
heddle_status onednn_join_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                                heddle_error *err);
heddle_status onednn_join_prepare(onednn *self, const heddle_pregion *region, cpu_operand *operands, onednn_join **out,
                                  heddle_error *err);
void onednn_join_free(onednn_join *join);
uint64_t onednn_join_workspace(const onednn_join *join);
heddle_status onednn_join_bind(onednn_join *join, void *const *inputs, void *const *outputs, void *workspace,
                               onednn_join_launch **out, heddle_error *err);
void onednn_join_launch_free(onednn_join_launch *launch);
heddle_status onednn_join_run(onednn_join_launch *launch, heddle_error *err);

/* Proposes joins. taken: as of onednn_propose, before which this must be called. Pure. */
heddle_status onednn_join_propose(const onednn *self, const heddle_pregion *region, unsigned char *taken,
                                  heddle_propose_fn propose, void *sink, heddle_error *err);

#else

static inline bool onednn_join_is(const heddle_pregion *region) {
  (void)region;
  return false;
}

static inline heddle_status onednn_join_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer,
                                              void *sink, heddle_error *err) {
  (void)self, (void)region, (void)offer, (void)sink, (void)err;
  return HEDDLE_EUNSUPPORTED;
}

static inline heddle_status onednn_join_prepare(onednn *self, const heddle_pregion *region, cpu_operand *operands,
                                                onednn_join **out, heddle_error *err) {
  (void)self, (void)region, (void)operands, (void)err;
  *out = NULL;
  return HEDDLE_EUNSUPPORTED;
}

static inline void onednn_join_free(onednn_join *join) {
  (void)join;
}

static inline uint64_t onednn_join_workspace(const onednn_join *join) {
  (void)join;
  return 0;
}

static inline heddle_status onednn_join_bind(onednn_join *join, void *const *inputs, void *const *outputs,
                                             void *workspace, onednn_join_launch **out, heddle_error *err) {
  (void)join, (void)inputs, (void)outputs, (void)workspace, (void)err;
  *out = NULL;
  return HEDDLE_EUNSUPPORTED;
}

static inline void onednn_join_launch_free(onednn_join_launch *launch) {
  (void)launch;
}

static inline heddle_status onednn_join_run(onednn_join_launch *launch, heddle_error *err) {
  (void)launch, (void)err;
  return HEDDLE_OK;
}

static inline heddle_status onednn_join_propose(const onednn *self, const heddle_pregion *region, unsigned char *taken,
                                                heddle_propose_fn propose, void *sink, heddle_error *err) {
  (void)self, (void)region, (void)taken, (void)propose, (void)sink, (void)err;
  return HEDDLE_OK;
}

#endif

#endif
