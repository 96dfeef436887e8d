/* A failure has no words.
 * caught by: errors/words
 * and by: errors/%
 * says: left no text */
#include "base.h"

static heddle_status open_device(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  heddle_status status = base_device_open(self, index, options, out, err);
  if (status != HEDDLE_OK && err != NULL) err->text[0] = '\0';
  return status;
}

#define base_device_open open_device
#include "tables.h"
