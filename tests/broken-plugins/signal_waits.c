/* fence.signal returns when the fence was raised.
 * caught by: calls/signal-returns
 * and by: all
 * limit: 2
 * says: fence.signal did not return */
#include "base.h"

static heddle_status signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  heddle_status status = base_fence_signal(stream, fence, value, err);
  base_stream_wait(stream, NULL);
  return status;
}

#define base_fence_signal signal
#include "tables.h"
