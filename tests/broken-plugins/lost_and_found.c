/* The third copy to the host says that the device is lost; what is asked after it works again.
 * caught by: health/lost
 * and by: all
 * says: lost */
#include "base.h"

static _Atomic unsigned copies;

static heddle_status read_lost(heddle_pstream *stream, void *dst, heddle_pbuffer *src, uint64_t src_offset,
                               uint64_t bytes, heddle_error *err) {
  if (atomic_fetch_add(&copies, 1) == 2)
    return p_fail(err, HEDDLE_EDEVICE, 7, "device %u: it does not answer", stream->dev->index);
  return base_copy_read(stream, dst, src, src_offset, bytes, err);
}

#define base_copy_read read_lost
#include "tables.h"
