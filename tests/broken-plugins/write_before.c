/* A fill begins a word too early, where the buffer has one.
 * caught by: copy/fill
 * and by: all
 * says: byte 0 is 0xff and should be */
#include "base.h"

static heddle_status fill(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, uint64_t bytes,
                          uint32_t pattern, heddle_error *err) {
  if (dst_offset >= 4 && bytes != 0) {
    dst_offset -= 4;
    bytes += 4;
  }
  return base_copy_fill(stream, dst, dst_offset, bytes, pattern, err);
}

#define base_copy_fill fill
#include "tables.h"
