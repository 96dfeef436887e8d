/* Only the first signal behind failed work fails its fence.
 * caught by: fences/failed-signals
 * says: was a signal */
#include "base.h"

static heddle_status first_only(heddle_pstream *stream, base_task *task, heddle_error *err) {
  const heddle_status failed = base_failed(stream, NULL);
  if (failed == HEDDLE_OK) stream->more = 0;
  if (failed == HEDDLE_OK || failed == HEDDLE_EDEVICE || stream->more++ == 0) return base_run_signal(stream, task, err);
  stream->dev->host->fence_signal(stream->dev->host->ctx, task->fence, task->value);
  return HEDDLE_OK;
}

static heddle_status mine_fence_signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  return base_push_signal(stream, first_only, fence, value, err);
}

#define base_fence_signal mine_fence_signal
#include "tables.h"
