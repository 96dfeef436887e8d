/* op.run takes memory from the host, which it gives back when the launch was put into the stream.
 * caught by: calls/run-allocates
 * says: host.alloc 1 times */
#include "base.h"

static heddle_status run(heddle_plaunch *launch, heddle_error *err) {
  const heddle_host *host = launch->op->dev->host;
  void *room = host->alloc(host->ctx, 64, 16);
  if (room == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory to run");
  heddle_status status = base_op_run(launch, err);
  host->free(host->ctx, room);
  return status;
}

#define base_op_run run
#include "tables.h"
