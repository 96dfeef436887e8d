/* A fence is signalled when it is asked for, before the work in front of it.
 * caught by: fences/signal-after-work
 * and by: fences threads/signals, health/lost-fences, health/lost-later, health/reset
 * says: when the fence behind it was reached */
#include "base.h"

static heddle_status signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  const heddle_host *host = stream->dev->host;
  (void)err;
  host->fence_signal(host->ctx, fence, value);
  return HEDDLE_OK;
}

#define base_fence_signal signal
#include "tables.h"
