/* The name of the device is no UTF-8 and has no end.
 * caught by: root/texts
 * says: name is not terminated */
#include "base.h"

static heddle_status describe(heddle_pinstance *self, uint32_t index, heddle_pdevice_desc *desc, heddle_error *err) {
  heddle_status status = base_device_describe(self, index, desc, err);
  if (status == HEDDLE_OK) memset(desc->name, 0xfe, sizeof desc->name);
  return status;
}

#define base_device_describe describe
#include "tables.h"
