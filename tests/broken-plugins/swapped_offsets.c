/* A copy within the device takes the offsets of its two sides for one another.
 * caught by: copy/d2d
 * and by: memory/view-edges copy/d2d-within
 * says: of the destination is */
#include "base.h"

static heddle_status d2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *src,
                         uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  return base_copy_d2d(stream, dst, src_offset, src, dst_offset, bytes, err);
}

#define base_copy_d2d d2d
#include "tables.h"
