/* A copy that fails leaves HEDDLE_OK in its heddle_error.
 * caught by: health/lost
 * and by: health/% calls/% fences/%
 * says: copy.d2d returned HEDDLE_EDEVICE and left another status */
#include "base.h"

static heddle_status d2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *src,
                         uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  heddle_status status = base_copy_d2d(stream, dst, dst_offset, src, src_offset, bytes, err);
  if (status != HEDDLE_OK && err != NULL) err->status = HEDDLE_OK;
  return status;
}

#define base_copy_d2d d2d
#include "tables.h"
