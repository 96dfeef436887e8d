/* A device that was lost cannot be opened again.
 * caught by: health/lost-again
 * and by: health/reset
 * says: device.open after a lost device was closed */
#include "base.h"

static atomic_bool gone;

static heddle_status open_device(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  if (atomic_load(&gone)) return p_fail(err, HEDDLE_EDEVICE, 9, "device %u was lost", index);
  return base_device_open(self, index, options, out, err);
}

static void close_device(heddle_pdevice *dev) {
  if (dev != NULL && base_check(dev, NULL) != HEDDLE_OK) atomic_store(&gone, true);
  base_device_close(dev);
}

#define base_device_open open_device
#define base_device_close close_device
#include "tables.h"
