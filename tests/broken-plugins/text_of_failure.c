/* A fence that fails says nothing of why.
 * caught by: fences/failed-signal
 * and by: fences/% health/% threads/%
 * says: without words */
#include "base.h"

static heddle_status run(heddle_pstream *stream, base_task *task, heddle_error *err) {
  const heddle_host *host = stream->dev->host;
  const heddle_status status = base_failed(stream, NULL);
  if (status == HEDDLE_OK) return base_run_signal(stream, task, err);
  host->fence_fail(host->ctx, task->fence, status, "");
  return HEDDLE_OK;
}

static heddle_status signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  return base_push_signal(stream, run, fence, value, err);
}

#define base_fence_signal signal
#include "tables.h"
