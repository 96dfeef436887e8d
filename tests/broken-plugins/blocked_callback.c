/* Holds its lock while it calls fence_signal, and takes it in stream.query: who queries another stream from
 * inside the call waits forever.
 * caught by: fences/host-inside
 * and by: health/lost-%
 * limit: 2
 * says: stream.query */
#include "base.h"

static heddle_status run_locked(heddle_pstream *stream, base_task *task, heddle_error *err) {
  const heddle_host *host = stream->dev->host;
  (void)err;
  pthread_mutex_lock(&stream->dev->self->lock);
  if (stream->failure.status == HEDDLE_OK) host->fence_signal(host->ctx, task->fence, task->value);
  else host->fence_fail(host->ctx, task->fence, stream->failure.status, stream->failure.text);
  pthread_mutex_unlock(&stream->dev->self->lock);
  return HEDDLE_OK;
}

static heddle_status signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  base_task task = {.run = run_locked, .always = true, .fence = fence, .value = value};
  return base_push(stream, &task, err);
}

#define base_fence_signal signal
#include "tables.h"
