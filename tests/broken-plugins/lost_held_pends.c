/* Work of another stream that waits for a fence goes on waiting when the device is lost.
 * caught by: health/lost-fences
 * and by: health/lost health/reset
 * limit: 2
 * says: has not failed */
#include "base.h"

static heddle_status run_wait(heddle_pstream *stream, base_task *task, heddle_error *err) {
  const heddle_host *host = stream->dev->host;
  heddle_status status;
  while ((status = host->fence_query(host->ctx, task->fence, task->value)) == HEDDLE_EBUSY) base_sleep_ms(1);
  if (status == HEDDLE_OK) return HEDDLE_OK;
  return p_fail(err, status, 0, "device %u: a fence that a stream waited for failed", stream->dev->index);
}

static heddle_status wait_fence(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  const base_task task = {.run = run_wait, .fence = fence, .value = value};
  return base_push(stream, &task, err);
}

#define base_fence_wait wait_fence
#include "tables.h"
