/* conformance/device.c: the group "device": opening and closing a device, and what can be asked of an open one. */
#include <string.h>

#include "conformance/kit_side.h"

static void open_once(kit *k) {
  if (kit_stage_device(k)) return;
  kit_fail(k, "%s", k->err.text);
}

KIT_GROUP(kit_device, "device",
          {"device/open", "device.open opens every device that device_describe describes", KIT_STAGE_INSTANCE, 0, 30,
           open_once, NULL});
