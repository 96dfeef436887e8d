/* The words of a failure are no UTF-8, and what it prints beside them suits no report.
 * caught by: errors/words
 * and by: errors/%
 * says: is not UTF-8 */
#include "base.h"

#include <stdio.h>

static heddle_status open_device(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  heddle_status status = base_device_open(self, index, options, out, err);
  if (status != HEDDLE_OK) fputs("\x1b[31mred \xff\xfe \xef\xbf\xbf \xc2\x9b gr\xc3\xbcn\n", stderr);
  if (status != HEDDLE_OK && err != NULL) memcpy(err->text, "no device \xff\xfe\x80", sizeof "no device \xff\xfe\x80");
  return status;
}

#define base_device_open open_device
#include "tables.h"
