/* A queue of 512 that is full says that memory is out.
 * caught by: streams/full
 * and by: streams/%, leaks/%, threads/%
 * says: ENOMEM */
#include "base.h"

static uint32_t pending(heddle_pstream *stream) {
  uint32_t n = 0;
  pthread_mutex_lock(&stream->dev->self->lock);
  for (const base_task *t = stream->first; t != NULL && n < 512; t = t->next) n++;
  pthread_mutex_unlock(&stream->dev->self->lock);
  return n;
}

static heddle_status mine_copy_fill(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, uint64_t bytes,
                                    uint32_t pattern, heddle_error *err) {
  if (pending(stream) == 512) return p_fail(err, HEDDLE_ENOMEM, 0, "the queue is full");
  return base_copy_fill(stream, dst, dst_offset, bytes, pattern, err);
}

#define base_copy_fill mine_copy_fill
#include "tables.h"
