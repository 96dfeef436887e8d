/* A device that was lost is still lost when it is opened again.
 * caught by: health/lost-again
 * and by: health/reset
 * says: device.health of a device opened again */
#include "base.h"

static atomic_bool gone;

static heddle_status health(heddle_pdevice *dev, heddle_error *err) {
  heddle_status status = base_device_health(dev, err);
  if (status != HEDDLE_OK) atomic_store(&gone, true);
  if (status != HEDDLE_OK || !atomic_load(&gone)) return status;
  return p_fail(err, HEDDLE_EDEVICE, 9, "device %u was lost", dev->index);
}

static void close_device(heddle_pdevice *dev) {
  if (dev != NULL) health(dev, NULL);
  base_device_close(dev);
}

#define base_device_health health
#define base_device_close close_device
#include "tables.h"
