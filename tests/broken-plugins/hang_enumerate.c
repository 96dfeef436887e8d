/* Counting the devices never ends.
 * caught by: root/open
 * and by: process/state process/output
 * limit: 2
 * says: in root.device_count */
#include "base.h"

static heddle_status count(heddle_pinstance *self, uint32_t *out, heddle_error *err) {
  for (;;) base_sleep_ms(1000);
  return base_device_count(self, out, err);
}

#define base_device_count count
#include "tables.h"
