/* Says that its device is one of CUDA's.
 * caught by: root/type
 * says: that of the plugin 'cuda' */
#include "base.h"

static heddle_status describe(heddle_pinstance *self, uint32_t index, heddle_pdevice_desc *desc, heddle_error *err) {
  heddle_status status = base_device_describe(self, index, desc, err);
  if (status == HEDDLE_OK) desc->type = HEDDLE_DEVICE_CUDA;
  return status;
}

#define base_device_describe describe
#include "tables.h"
