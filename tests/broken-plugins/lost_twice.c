/* The third copy to the host finds the device lost, and reports it to the host twice.
 * caught by: health/lost
 * and by: all
 * says: every call answers HEDDLE_EDEVICE until it is opened again */
#include "base.h"

static _Atomic unsigned copies;

static heddle_status health(heddle_pdevice *dev, heddle_error *err) {
  if (atomic_load(&copies) < 3) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EDEVICE, 7, "device %u: it does not answer", dev->index);
}

static heddle_status read_lost(heddle_pstream *stream, void *dst, heddle_pbuffer *src, uint64_t src_offset,
                               uint64_t bytes, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  if (atomic_fetch_add(&copies, 1) < 2) return base_copy_read(stream, dst, src, src_offset, bytes, err);
  for (int i = 0; i < 2; i++) dev->host->device_fault(dev->host->ctx, dev->cookie, 7, "it does not answer");
  return health(dev, err);
}

#define base_copy_read read_lost
#define base_device_health health
#include "tables.h"
