/* A copy within the device moves one byte more than it was asked for, where the buffers have it.
 * caught by: copy/d2d
 * and by: copy memory
 * says: of the destination is */
#include "base.h"

static heddle_status d2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *src,
                         uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  if (base_range(dst, dst_offset, bytes + 1, NULL) == HEDDLE_OK &&
      base_range(src, src_offset, bytes + 1, NULL) == HEDDLE_OK)
    bytes++;
  return base_copy_d2d(stream, dst, dst_offset, src, src_offset, bytes, err);
}

#define base_copy_d2d d2d
#include "tables.h"
