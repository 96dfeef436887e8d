/* stream.submit returns when the work has ended.
 * caught by: calls/submit-returns
 * and by: all
 * limit: 2
 * says: stream.submit did not return */
#include "base.h"

static heddle_status submit(heddle_pstream *stream, heddle_error *err) {
  (void)err;
  base_stream_wait(stream, NULL);
  return HEDDLE_OK;
}

#define base_stream_submit submit
#include "tables.h"
