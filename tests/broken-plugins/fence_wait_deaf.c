/* A stream that waits for a fence goes on when the fence fails.
 * caught by: fences/failed
 * and by: fences/f% events/failure, health/lost, health/lost-fences health/reset
 * says: HEDDLE_OK */
#include "base.h"

static heddle_status run_wait(heddle_pstream *stream, base_task *task, heddle_error *err) {
  const heddle_host *host = stream->dev->host;
  (void)err;
  while (host->fence_query(host->ctx, task->fence, task->value) == HEDDLE_EBUSY) base_sleep_ms(1);
  return HEDDLE_OK;
}

static heddle_status wait_deaf(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  base_task task = {.run = run_wait, .fence = fence, .value = value};
  return base_push(stream, &task, err);
}

#define base_fence_wait wait_deaf
#include "tables.h"
