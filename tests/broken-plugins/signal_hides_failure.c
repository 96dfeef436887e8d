/* A fence behind work that failed is signalled as if all were well.
 * caught by: fences/failed-signal
 * and by: fences/fails-later, health/lost-fences, health/lost-later, health/reset
 * says: behind failed work was signalled */
#include "base.h"

static heddle_status run_signal(heddle_pstream *stream, base_task *task, heddle_error *err) {
  const heddle_host *host = stream->dev->host;
  (void)err;
  host->fence_signal(host->ctx, task->fence, task->value);
  return HEDDLE_OK;
}

static heddle_status signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  base_task task = {.run = run_signal, .always = true, .fence = fence, .value = value};
  return base_push(stream, &task, err);
}

#define base_fence_signal signal
#include "tables.h"
