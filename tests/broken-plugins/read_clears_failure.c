/* copy.read clears a failure.
 * caught by: fences/failed-kept
 * says: copy.read */
#include "base.h"

static void forget(heddle_pstream *stream) {
  pthread_mutex_lock(&stream->dev->self->lock);
  stream->failure.status = HEDDLE_OK;
  pthread_mutex_unlock(&stream->dev->self->lock);
}

static heddle_status mine_copy_read(heddle_pstream *stream, void *dst, heddle_pbuffer *src, uint64_t src_offset,
                                    uint64_t bytes, heddle_error *err) {
  const heddle_status status = base_copy_read(stream, dst, src, src_offset, bytes, err);
  forget(stream);
  return status;
}

#define base_copy_read mine_copy_read
#include "tables.h"
