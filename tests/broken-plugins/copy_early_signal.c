/* Streams of kind COPY signal when they are asked to.
 * caught by: streams/of-copy-signal
 * and by: streams/of-copy%
 * says: what d2h */
#include "base.h"

static heddle_status mine_fence_signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  if (stream->kind != HEDDLE_STREAM_COPY) return base_fence_signal(stream, fence, value, err);
  stream->dev->host->fence_signal(stream->dev->host->ctx, fence, value);
  return HEDDLE_OK;
}

#define base_fence_signal mine_fence_signal
#include "tables.h"
