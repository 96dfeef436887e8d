/* stream.query says that a failed stream is well.
 * caught by: fences/failed
 * and by: fences/failed-%
 * says: stream.query answered HEDDLE_OK before a sync */
#include "base.h"

static heddle_status query(heddle_pstream *stream, heddle_error *err) {
  heddle_status status = base_stream_query(stream, err);
  return status == HEDDLE_EBUSY || status == HEDDLE_EDEVICE ? status : HEDDLE_OK;
}

#define base_stream_query query
#include "tables.h"
