/* Streams of kind COPY copy from the host at once.
 * caught by: streams/of-copy-behind
 * and by: streams/of-copy%
 * says: to the host and back */
#include "base.h"

#include <string.h>

static heddle_status mine_copy_h2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset,
                                   heddle_pbuffer *host, uint64_t host_offset, uint64_t bytes, heddle_error *err) {
  if (stream->kind != HEDDLE_STREAM_COPY || base_range(dst, dst_offset, bytes, err) != HEDDLE_OK)
    return base_copy_h2d(stream, dst, dst_offset, host, host_offset, bytes, err);
  memcpy(dst->bytes + dst_offset, host->bytes + host_offset, bytes);
  return HEDDLE_OK;
}

#define base_copy_h2d mine_copy_h2d
#include "tables.h"
