/* The device that was opened last is known at file scope.
 * caught by: process/globals
 * says: file scope */
#include "base.h"

static heddle_pdevice *last;

static heddle_status mine_device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                      heddle_pdevice **out, heddle_error *err) {
  const heddle_status status = base_device_open(self, index, options, out, err);
  if (status == HEDDLE_OK) last = *out;
  return status;
}

static heddle_status mine_stream_create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                                        heddle_error *err) {
  if (last == NULL) return p_fail(err, HEDDLE_EFAILED, 0, "no device");
  return base_stream_create(dev, kind, priority, out, err);
}

#define base_device_open mine_device_open
#define base_stream_create mine_stream_create
#include "tables.h"
