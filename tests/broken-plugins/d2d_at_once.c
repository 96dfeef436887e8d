/* copy.d2d waits for the work before it and moves the bytes itself, on a device that does not wait for fences.
 * caught by: calls/d2d-returns
 * and by: all
 * limit: 2
 * says: only an inline device */
#include "base.h"

static heddle_status describe(heddle_pinstance *self, uint32_t index, heddle_pdevice_desc *desc, heddle_error *err) {
  heddle_status status = base_device_describe(self, index, desc, err);
  desc->caps &= ~HEDDLE_CAP_WAIT_BEFORE_SIGNAL;
  return status;
}

static heddle_status copy(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t to, heddle_pbuffer *src, uint64_t from,
                          uint64_t bytes, heddle_error *err) {
  heddle_status status = base_copy_d2d(stream, dst, to, src, from, bytes, err);
  base_stream_wait(stream, NULL);
  return status;
}

#define base_copy_d2d copy
#define base_fence_wait NULL
#define base_device_describe describe
#include "tables.h"
