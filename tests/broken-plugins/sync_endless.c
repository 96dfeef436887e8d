/* A sync without a limit waits for nothing.
 * caught by: streams/sync-endless
 * says: stream.sync without a limit */
#include "base.h"

static heddle_status sync(heddle_pstream *stream, uint64_t timeout_ns, heddle_error *err) {
  return base_stream_sync(stream, timeout_ns == UINT64_MAX ? 0 : timeout_ns, err);
}

#define base_stream_sync sync
#include "tables.h"
