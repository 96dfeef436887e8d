/* copy.h2d returns when the bytes were moved.
 * caught by: calls/h2d-returns
 * and by: all
 * limit: 2
 * says: copy.h2d did not return */
#include "base.h"

static heddle_status copy(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t to, heddle_pbuffer *host, uint64_t from,
                          uint64_t bytes, heddle_error *err) {
  heddle_status status = base_copy_h2d(stream, dst, to, host, from, bytes, err);
  base_stream_wait(stream, NULL);
  return status;
}

#define base_copy_h2d copy
#include "tables.h"
