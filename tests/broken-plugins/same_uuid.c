/* Two devices have one UUID.
 * caught by: root/uuids
 * says: have the same uuid */
#include "base.h"

static heddle_status describe(heddle_pinstance *self, uint32_t index, heddle_pdevice_desc *desc, heddle_error *err) {
  heddle_status status = base_device_describe(self, index, desc, err);
  if (status == HEDDLE_OK) desc->uuid[15] = 1;
  return status;
}

#define base_device_describe describe
#include "tables.h"
