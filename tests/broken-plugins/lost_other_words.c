/* A lost device answers each call with a text of its own.
 * caught by: health/lost-words
 * and by: health/reset
 * says: the first text was */
#include "base.h"

static heddle_status sync(heddle_pstream *stream, uint64_t timeout_ns, heddle_error *err) {
  heddle_status status = base_stream_sync(stream, timeout_ns, err);
  if (status != HEDDLE_EDEVICE) return status;
  return p_fail(err, HEDDLE_EDEVICE, 9, "device %u: sync: the device is gone", stream->dev->index);
}

#define base_stream_sync sync
#include "tables.h"
