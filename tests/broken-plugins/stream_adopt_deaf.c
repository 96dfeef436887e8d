/* A wait in a stream over one of others does not hold back the owner's work.
 * caught by: streams/adopt-before
 * says: bytes that the owner read behind the wait of an adopted stream */
#include "base.h"

static heddle_status wait(heddle_pstream *stream, heddle_pevent *event, heddle_error *err) {
  return stream->adopted > 0 ? HEDDLE_OK : base_event_wait(stream, event, err);
}

#define base_event_wait wait
#include "tables.h"
