/* A large write reads its source after it has returned.
 * caught by: copy/write-behind
 * and by: copy/% memory/% threads/% numerics/%
 * says: memory that the host then used again */
#include "base.h"

static heddle_status write(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t offset, const void *src,
                           uint64_t bytes, heddle_error *err) {
  heddle_status status = base_range(dst, offset, bytes, err);
  if (status != HEDDLE_OK) return status;
  if (bytes < UINT64_C(1) << 18) return base_copy_write(stream, dst, offset, src, bytes, err);
  base_task task = {.run = base_run_copy, .dst = dst->bytes + offset, .src = src, .bytes = bytes};
  return base_push(stream, &task, err);
}

#define base_copy_write write
#include "tables.h"
