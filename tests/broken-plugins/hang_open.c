/* Opening a device never ends.
 * caught by: device/open
 * and by: all
 * limit: 2
 * says: did not end within */
#include "base.h"

static heddle_status open_device(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  for (;;) base_sleep_ms(1000);
  return base_device_open(self, index, options, out, err);
}

#define base_device_open open_device
#include "tables.h"
