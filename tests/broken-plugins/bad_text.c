/* The words of a failure are no UTF-8.
 * caught by: errors/words
 * and by: errors/no_memory_device
 * says: is not UTF-8 */
#include "base.h"

static heddle_status open_device(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  heddle_status status = base_device_open(self, index, options, out, err);
  if (status != HEDDLE_OK && err != NULL) memcpy(err->text, "no device \xff\xfe\x80", sizeof "no device \xff\xfe\x80");
  return status;
}

#define base_device_open open_device
#include "tables.h"
