/* Offsets of writes have 24 bits.
 * caught by: copy/far-offsets
 * says: at offset 16777216 */
#include "base.h"

static heddle_status write(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t offset, const void *src,
                           uint64_t bytes, heddle_error *err) {
  return base_copy_write(stream, dst, offset & 0xffffff, src, bytes, err);
}

#define base_copy_write write
#include "tables.h"
