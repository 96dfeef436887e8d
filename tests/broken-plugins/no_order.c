/* A fill happens at once, whatever the stream has before it.
 * caught by: copy/order
 * and by: all
 * says: the last fill of a row */
#include "base.h"

static heddle_status fill(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, uint64_t bytes,
                          uint32_t pattern, heddle_error *err) {
  heddle_status status = base_range(dst, dst_offset, bytes, err);
  if (status == HEDDLE_OK && (dst_offset % 4 != 0 || bytes % 4 != 0))
    status = p_fail(err, HEDDLE_EINVAL, 0, "a fill of a part of a word");
  if (status != HEDDLE_OK) return status;
  base_task task = {.dst = dst->bytes + dst_offset, .bytes = bytes, .pattern = pattern};
  return base_run_fill(stream, &task, err);
}

#define base_copy_fill fill
#include "tables.h"
