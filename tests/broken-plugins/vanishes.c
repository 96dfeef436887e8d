/* Removes its own file when a device is opened: what comes after finds no plugin. tests/conformance/test_words.py checks a
 * copy of it; it is not one of those that a case of the kit must catch. */
#define _GNU_SOURCE /* dladdr */
#include "base.h"

#include <dlfcn.h>
#include <unistd.h>

static heddle_status open_device(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  static const char here;
  Dl_info info;
  if (dladdr(&here, &info) != 0) unlink(info.dli_fname);
  return base_device_open(self, index, options, out, err);
}

#define base_device_open open_device
#include "tables.h"
