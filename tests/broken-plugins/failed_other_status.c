/* query gives another status for failed work than sync.
 * caught by: fences/failed-status
 * and by: fences/failed%
 * says: stream.query gives */
#include "base.h"

static heddle_status mine_stream_query(heddle_pstream *stream, heddle_error *err) {
  const heddle_status status = base_stream_query(stream, err);
  if (status == HEDDLE_OK || status == HEDDLE_EBUSY || status == HEDDLE_EDEVICE) return status;
  return p_fail(err, HEDDLE_EIO, 0, "work of the stream failed");
}

#define base_stream_query mine_stream_query
#include "tables.h"
