/* Opening a device leaves the standard output unbuffered.
 *
 * caught by: process/state
 * says: standard output is buffered
 */
#include "base.h"

#include <stdio.h>

static heddle_status mine_device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                      heddle_pdevice **out, heddle_error *err) {
  setvbuf(stdout, NULL, _IONBF, 0);
  return base_device_open(self, index, options, out, err);
}

#define base_device_open mine_device_open
#include "tables.h"
