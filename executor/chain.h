/* executor/chain.h: the order of an executor's runs beside the work of others on the same devices: of executors that use
 * the same tensors, and of a stream of the caller's. It is kept by events. Before a run its streams wait for what was
 * submitted by others; when all of the run is submitted, its marks are recorded, and others wait for these. An executor has
 * a chain from the first tensor on a device that is bound to it, or the first use_stream. One thread at a time, but for
 * hand, which is the driver's. */
#ifndef HEDDLE_EXECUTOR_CHAIN_H
#define HEDDLE_EXECUTOR_CHAIN_H

#include "core/parts.h"
#include "executor/state.h"

#if HEDDLE_HAS_STREAMS

/* Makes the chain where a tensor on a device is to be bound. */
heddle_status heddle__chain_need(heddle_executor *ex, const heddle_tensor *t, heddle_error *err);

/* Before a run of what is bound, when its devices were checked: everything of others that it must follow comes first. Where
 * that fails, the run does not begin. */
heddle_status heddle__chain_begin(heddle_executor *ex, heddle_error *err);

/* Waits on the host for the work that is in the caller's stream now. */
heddle_status heddle__chain_settle(heddle_executor *ex, heddle_error *err);

/* The run, or its beginning, has ended. */
void heddle__chain_end(heddle_executor *ex, heddle_status status);

/* Drives the run that was begun until all of it is submitted. Without a stream of the caller's it does no work of the
 * host's for that, and does not wait. */
void heddle__chain_start(heddle_executor *ex);

void heddle__chain_free(heddle_executor *ex);

/* No run is pending: gives up the events, which keep their devices open. */
void heddle__chain_renew(heddle_executor *ex);

/* For run.c, after each row of submissions: records the marks once nothing of the run is left to do but its end. */
heddle_status heddle__chain_hand(heddle__bound *b, heddle_error *err);
bool heddle__chain_handed(const heddle__bound *b);

#else

static inline heddle_status heddle__chain_need(heddle_executor *ex, const heddle_tensor *t, heddle_error *err) {
  (void)ex, (void)t, (void)err;
  return HEDDLE_OK;
}
static inline heddle_status heddle__chain_begin(heddle_executor *ex, heddle_error *err) {
  (void)ex, (void)err;
  return HEDDLE_OK;
}
static inline heddle_status heddle__chain_settle(heddle_executor *ex, heddle_error *err) {
  (void)ex, (void)err;
  return HEDDLE_OK;
}
static inline void heddle__chain_end(heddle_executor *ex, heddle_status status) {
  (void)ex, (void)status;
}
static inline void heddle__chain_start(heddle_executor *ex) {
  (void)ex;
}
static inline void heddle__chain_free(heddle_executor *ex) {
  (void)ex;
}
static inline void heddle__chain_renew(heddle_executor *ex) {
  (void)ex;
}
static inline heddle_status heddle__chain_hand(heddle__bound *b, heddle_error *err) {
  (void)b, (void)err;
  return HEDDLE_OK;
}
static inline bool heddle__chain_handed(const heddle__bound *b) {
  (void)b;
  return true;
}

#endif
#endif
