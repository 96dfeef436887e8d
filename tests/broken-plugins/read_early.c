/* read returns before the bytes are there.
 * caught by: copy/read-there
 * and by: all
 * says: had brought when it returned */
#include "base.h"

static heddle_status run_late(heddle_pstream *stream, base_task *task, heddle_error *err) {
  base_sleep_ms(20);
  return base_run_copy(stream, task, err);
}

static heddle_status read_later(heddle_pstream *stream, void *dst, heddle_pbuffer *src, uint64_t src_offset,
                                uint64_t bytes, heddle_error *err) {
  heddle_status status = base_range(src, src_offset, bytes, err);
  if (status != HEDDLE_OK || bytes == 0) return status;
  base_task task = {.run = run_late, .dst = dst, .src = src->bytes + src_offset, .bytes = bytes};
  return base_push(stream, &task, err);
}

#define base_copy_read read_later
#include "tables.h"
