/* A reset that ends nothing: the device goes on as before.
 * caught by: health/reset
 * says: device.health answers 0 after device.reset */
#include "base.h"

static heddle_status reset(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  (void)dev, (void)timeout_ns, (void)err;
  return HEDDLE_OK;
}

#define base_device_reset reset
#include "tables.h"
