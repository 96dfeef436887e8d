/* Fences: the queue's thread reports a signal when the stream has reached it. Waits on the device are not offered: a
 * semaphore that is never raised would hold up the queue, and with it every stream that shares it. */
#include "stream.h"

static heddle_status fence_signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  const heddle_host *host = stream->dev->host;
  heddle_error own;
  if (err == NULL) err = &own;
  heddle_status s = vlk_stream_enter(stream, "signal of a fence", err);
  if (s == HEDDLE_OK) s = vlk_submit(stream, fence, value, err);
  if (s != HEDDLE_OK) host->fence_fail(host->ctx, fence, s, err->text); /* waiters must get the failure */
  return s;
}

const heddle_fence_table vlk_fence_table = {
    .struct_size = sizeof vlk_fence_table,
    .signal = fence_signal,
    .wait = NULL,
};
