/* copy.d2h returns when the bytes were moved.
 * caught by: calls/d2h-returns
 * and by: all
 * limit: 2
 * says: copy.d2h did not return */
#include "base.h"

static heddle_status copy(heddle_pstream *stream, heddle_pbuffer *host, uint64_t to, heddle_pbuffer *src, uint64_t from,
                          uint64_t bytes, heddle_error *err) {
  heddle_status status = base_copy_d2h(stream, host, to, src, from, bytes, err);
  base_stream_wait(stream, NULL);
  return status;
}

#define base_copy_d2h copy
#include "tables.h"
