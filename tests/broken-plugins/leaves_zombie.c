/* A process is started with each device, ends, and is not waited for.
 * caught by: process/children
 * and by: process, leaks
 * says: zombie */
#include "base.h"

#include <unistd.h>

static heddle_status open_device(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  if (fork() == 0) _exit(0);
  return base_device_open(self, index, options, out, err);
}

#define base_device_open open_device
#include "tables.h"
