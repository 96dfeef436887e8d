/* A setting comes from the environment.
 * caught by: process/environment
 * says: the variable BROKEN_DEBUG */
#include "base.h"

#include <stdlib.h>

static heddle_status open_device(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  const char *debug = getenv("BROKEN_DEBUG");
  if (debug != NULL && debug[0] != '\0') return p_fail(err, HEDDLE_EFAILED, 0, "debugging is not supported");
  return base_device_open(self, index, options, out, err);
}

#define base_device_open open_device
#include "tables.h"
