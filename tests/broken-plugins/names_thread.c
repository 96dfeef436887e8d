/* The calling thread gets another name.
 * caught by: process/state
 * and by: process/%
 * says: name of the calling thread */
#include "base.h"

#include <sys/prctl.h>

static heddle_status mine_device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                      heddle_pdevice **out, heddle_error *err) {
  prctl(PR_SET_NAME, "mine", 0, 0, 0);
  return base_device_open(self, index, options, out, err);
}

#define base_device_open mine_device_open
#include "tables.h"
