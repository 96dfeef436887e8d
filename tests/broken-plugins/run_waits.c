/* op.run returns when its launch has ended.
 * caught by: calls/run-returns
 * and by: numerics, fences/%
 * limit: 2
 * says: op.run did not return */
#include "base.h"

static heddle_status run(heddle_plaunch *launch, heddle_error *err) {
  heddle_status status = base_op_run(launch, err);
  return status != HEDDLE_OK ? status : base_stream_wait(launch->stream, err);
}

#define base_op_run run
#include "tables.h"
