/* The words of a failure are two lines.
 * caught by: errors/words
 * and by: errors/%
 * says: has several lines */
#include "base.h"

static heddle_status open_device(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  heddle_status status = base_device_open(self, index, options, out, err);
  if (status != HEDDLE_OK && err != NULL) p_fail(err, status, 0, "no device"), err->text[2] = '\n';
  return status;
}

#define base_device_open open_device
#include "tables.h"
