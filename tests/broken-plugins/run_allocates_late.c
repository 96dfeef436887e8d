/* op.run takes memory from the host where the stream is at work already.
 * caught by: calls/run-allocates
 * says: behind at most 64 launches */
#include "base.h"

static heddle_status run(heddle_plaunch *launch, heddle_error *err) {
  const heddle_host *host = launch->op->dev->host;
  if (base_stream_query(launch->stream, NULL) == HEDDLE_EBUSY) host->free(host->ctx, host->alloc(host->ctx, 64, 16));
  return base_op_run(launch, err);
}

#define base_op_run run
#include "tables.h"
