/* Opening a device makes the process a child subreaper.
 *
 * caught by: process/state
 * says: the child subreaper
 */
#define _GNU_SOURCE
#include "base.h"

#include <sys/prctl.h>

static heddle_status mine_device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                      heddle_pdevice **out, heddle_error *err) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  return base_device_open(self, index, options, out, err);
}

#define base_device_open mine_device_open
#include "tables.h"
