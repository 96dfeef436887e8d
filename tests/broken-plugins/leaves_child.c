/* A process is started with each device and left behind when the device is closed.
 * caught by: process/children
 * and by: process, leaks
 * says: still runs when all is closed */
#include "base.h"

#include <unistd.h>

static heddle_status open_device(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  if (fork() == 0) {
    base_sleep_ms(20000);
    _exit(0);
  }
  return base_device_open(self, index, options, out, err);
}

#define base_device_open open_device
#include "tables.h"
