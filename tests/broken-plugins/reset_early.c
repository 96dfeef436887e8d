/* A reset does not wait for the copy that is under way.
 * caught by: health/reset
 * says: memory changes after device.reset */
#include "base.h"

static heddle_status reset(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  heddle_status status = base_device_reset(dev, 0, err);
  (void)timeout_ns;
  return status == HEDDLE_ETIMEOUT ? HEDDLE_OK : status;
}

#define base_device_reset reset
#include "tables.h"
