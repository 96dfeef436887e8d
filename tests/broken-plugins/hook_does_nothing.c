/* The plugin asks for the setting lose_on_fill, and a fill with its word loses nothing.
 * caught by: health/lost
 * and by: health
 * says: asked for the setting lose_on_fill */
#include "base.h"

static heddle_status fill(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, uint64_t bytes,
                          uint32_t pattern, heddle_error *err) {
  return base_copy_fill(stream, dst, dst_offset, bytes, pattern == stream->dev->self->lose_word ? 0 : pattern, err);
}

#define base_copy_fill fill
#include "tables.h"
