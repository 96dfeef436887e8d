/* Closing a stream over one of others closes the owner's too.
 * caught by: streams/adopt-close
 * says: the owner's stream after
 * and by: streams/adopt% */
#include "base.h"

static _Atomic(heddle_pstream *) gone;

static void close_both(heddle_pstream *stream) {
  if (stream != NULL && stream->adopted > 0) atomic_store(&gone, stream);
  base_stream_close(stream);
}

static heddle_status sync(heddle_pstream *stream, uint64_t timeout_ns, heddle_error *err) {
  if (stream == atomic_load(&gone)) return p_fail(err, HEDDLE_EINVAL, 0, "the stream is closed");
  return base_stream_sync(stream, timeout_ns, err);
}

#define base_stream_close close_both
#define base_stream_sync sync
#include "tables.h"
