/* modules/call_device.h: calls of a library's functions by name whose tensors are on a device, outside of any run. */
#ifndef HEDDLE_MODULES_CALL_DEVICE_H
#define HEDDLE_MODULES_CALL_DEVICE_H

#include "modules/module.h"

/* Runs a function on a stream of this module's on the device, and waits for what it launched. The device is opened by
 * the first call and stays open until the module ends. HEDDLE_EUNSUPPORTED where the function has no code for such a
 * device. Several calls may run at once, and a function may call others; any thread; blocks. */
heddle_status heddle__call_on_device(heddle_module *m, heddle_device *dev, const char *function,
                                     const heddle_value *args, uint32_t n_args, heddle_value *result,
                                     heddle_error *err);

/* Closes them; no call is running. */
void heddle__call_devices_close(heddle_module *m);

/* HEDDLE_OK when a function can run on a device; HEDDLE_ENOTFOUND, or HEDDLE_EUNSUPPORTED with the kind of its code and
 * the plugin that runs it. annotated: the device type that a graph gives a function without device code, 0: none. */
heddle_status heddle__library_fits(const heddle_module *m, const char *function, int32_t annotated,
                                   const heddle_device *dev, heddle_error *err);

#endif
