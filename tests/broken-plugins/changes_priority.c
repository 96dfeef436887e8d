/* Opening a device makes the process nicer.
 * caught by: process/state
 * and by: process/%
 * says: nice */
#include "base.h"

#include <sys/resource.h>

static heddle_status mine_device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                      heddle_pdevice **out, heddle_error *err) {
  setpriority(PRIO_PROCESS, 0, 5);
  return base_device_open(self, index, options, out, err);
}

#define base_device_open mine_device_open
#include "tables.h"
