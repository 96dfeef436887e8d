/* op.resize takes memory from the host, which it gives back.
 * caught by: numerics/resize
 * says: op.resize called host.alloc 1 times */
#include "base.h"

static heddle_status resize(heddle_plaunch *launch, const heddle_pregion *region, const heddle_pbind *operands,
                            heddle_error *err) {
  const heddle_host *host = launch->op->dev->host;
  void *room = host->alloc(host->ctx, 64, 16);
  if (room == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory to resize");
  const heddle_status status = base_op_resize(launch, region, operands, err);
  host->free(host->ctx, room);
  return status;
}

#define base_op_resize resize
#include "tables.h"
