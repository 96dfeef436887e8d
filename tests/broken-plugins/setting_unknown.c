/* Settings of a device are passed over.
 * caught by: settings/unknown
 * and by: settings/device
 * says: no_such_setting */
#include "base.h"

static heddle_status mine_device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                      heddle_pdevice **out, heddle_error *err) {
  const heddle_pdevice_options plain = {.struct_size = sizeof plain, .cookie = options->cookie};
  options = &plain;
  return base_device_open(self, index, options, out, err);
}

#define base_device_open mine_device_open
#include "tables.h"
