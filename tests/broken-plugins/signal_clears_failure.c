/* A signal that fails its fence clears the failure.
 * caught by: fences/failed-signal
 * and by: fences/failed%, fences/fails-later, streams/of-copy-failed%, events/failure
 * says: row behind failed work */
#include "base.h"

static heddle_status signal_once(heddle_pstream *stream, base_task *task, heddle_error *err) {
  const heddle_status status = base_run_signal(stream, task, err);
  if (base_failed(stream, NULL) == HEDDLE_EDEVICE) return status;
  pthread_mutex_lock(&stream->dev->self->lock);
  stream->failure.status = HEDDLE_OK;
  pthread_mutex_unlock(&stream->dev->self->lock);
  return status;
}

static heddle_status mine_fence_signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  return base_push_signal(stream, signal_once, fence, value, err);
}

#define base_fence_signal mine_fence_signal
#include "tables.h"
