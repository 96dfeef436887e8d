/* A stream at work says that it has finished.
 * caught by: streams/query
 * and by: fences/held-% fences/wait-host fences/failed%
 * says: when stream.query said that all is done */
#include "base.h"

static heddle_status query(heddle_pstream *stream, heddle_error *err) {
  return base_failed(stream, err);
}

#define base_stream_query query
#include "tables.h"
