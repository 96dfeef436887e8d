/* The status in the error is not the one that is returned.
 * caught by: errors/words
 * and by: errors/%
 * says: left another status in its heddle_error (status 17 */
#include "base.h"

static heddle_status open_device(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  heddle_status status = base_device_open(self, index, options, out, err);
  if (status != HEDDLE_OK && err != NULL) err->status = HEDDLE_EINTERNAL;
  return status;
}

#define base_device_open open_device
#include "tables.h"
