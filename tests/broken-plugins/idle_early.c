/* idle does not wait.
 * caught by: ?
 * says: ? */
#include "base.h"

static heddle_status idle(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  (void)dev, (void)timeout_ns, (void)err;
  return HEDDLE_OK;
}

#define base_device_idle idle
#include "tables.h"
