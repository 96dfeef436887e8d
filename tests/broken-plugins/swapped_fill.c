/* A fill takes its pattern for its size.
 * caught by: copy/fill
 * and by: all
 * says: copy.fill */
#include "base.h"

static heddle_status fill(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, uint64_t bytes,
                          uint32_t pattern, heddle_error *err) {
  return base_copy_fill(stream, dst, dst_offset, pattern, (uint32_t)bytes, err);
}

#define base_copy_fill fill
#include "tables.h"
