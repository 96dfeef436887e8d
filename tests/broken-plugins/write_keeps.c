/* write returns at once and reads the caller's memory later.
 * caught by: copy/write-reused
 * and by: all
 * says: from memory that the host then used again */
#include "base.h"

static heddle_status run_late(heddle_pstream *stream, base_task *task, heddle_error *err) {
  base_sleep_ms(20);
  return base_run_copy(stream, task, err);
}

static heddle_status write_later(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, const void *src,
                                 uint64_t bytes, heddle_error *err) {
  heddle_status status = base_range(dst, dst_offset, bytes, err);
  if (status != HEDDLE_OK || bytes == 0) return status;
  base_task task = {.run = run_late, .dst = dst->bytes + dst_offset, .src = src, .bytes = bytes};
  return base_push(stream, &task, err);
}

#define base_copy_write write_later
#include "tables.h"
