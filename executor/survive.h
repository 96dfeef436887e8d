/* executor/survive.h: what becomes of a run that a device failed, where the model has a policy for that;
 * docs/failures.md. What is done is decided in executor/survive/. */
#ifndef HEDDLE_EXECUTOR_SURVIVE_H
#define HEDDLE_EXECUTOR_SURVIVE_H

#include "core/trace.h"
#include "executor/state.h"

/* Makes an executor ready to run again after a failure (status and words) that a policy is for. quiet: nothing of the run
 * is on a device any more. HEDDLE_OK: it is bound and filled, perhaps anew and on other devices; else the first failure,
 * with why nothing helped behind its words: then it may be bound to nothing. One thread at a time, a run may be pending;
 * blocks. */
heddle_status heddle__survive_failure(heddle_executor *ex, heddle_status status, bool quiet, heddle_error *words);

/* Reads a policy: "error", "retry", "retry:N" or "failover"; NULL: the setting run.on_failure. HEDDLE_EINVAL;
 * HEDDLE_EUNSUPPORTED for another one than "error" in a build without it. */
heddle_status heddle__survive_read(heddle_model *m, const char *word, heddle_error *err);

/* heddle__survive_failure where the executor's model has a policy for such a status; else gives the status back. err is
 * not NULL. */
heddle_status heddle__survive(heddle_executor *ex, heddle_status s, bool quiet, heddle_error *err);

#endif
