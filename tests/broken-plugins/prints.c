/* Prints to the program's output.
 * caught by: process/output
 * says: printed to the standard output */
#include "base.h"

#include <stdio.h>

static heddle_status open_device(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  printf("opening device %u\n", index);
  fflush(stdout);
  return base_device_open(self, index, options, out, err);
}

#define base_device_open open_device
#include "tables.h"
