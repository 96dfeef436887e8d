/* sync waits for the work however short its time limit is.
 * caught by: fences/held-sync
 * and by: fences
 * limit: 2
 * says: did not end within */
#include "base.h"

static heddle_status sync_all(heddle_pstream *stream, uint64_t timeout_ns, heddle_error *err) {
  (void)timeout_ns;
  return base_stream_sync(stream, UINT64_MAX, err);
}

#define base_stream_sync sync_all
#include "tables.h"
