/* A line of the log has a component of two words.
 * caught by: errors/log
 * says: no single word */
#include "base.h"

static heddle_status mine_stream_create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                                        heddle_error *err) {
  dev->host->log(dev->host->ctx, HEDDLE_LOG_DEBUG, "my device", "a stream");
  return base_stream_create(dev, kind, priority, out, err);
}

#define base_stream_create mine_stream_create
#include "tables.h"
