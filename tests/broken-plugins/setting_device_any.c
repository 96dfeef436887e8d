/* A setting of one device takes any value.
 * caught by: settings/device
 * says: 'depth' */
#include "base.h"

#include <string.h>

static heddle_status mine_device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                      heddle_pdevice **out, heddle_error *err) {
  const heddle_pdevice_options plain = {.struct_size = sizeof plain, .cookie = options->cookie};
  const char *key = options->settings.count > 0 ? ((const heddle_pkeyvalue *)options->settings.data)->key : "depth";
  if (strcmp(key, "depth") == 0) options = &plain;
  return base_device_open(self, index, options, out, err);
}

#define base_device_open mine_device_open
#include "plugins/common/setting.h"

static const heddle_psetting settings[] = {P_SETTING_NUMBER("lose_on_fill", "", 0, UINT32_MAX, "loses"),
                                           P_SETTING_NUMBER("fail_on_fill", "", 0, UINT32_MAX, "fails"),
                                           P_SETTING_SWITCH("adopt_own", "0", "adopts"),
                                           P_SETTING(NUMBER, "depth", "16", .flags = HEDDLE_SETTING_DEVICE, .low = 1,
                                                     .high = 1024, .help = "depth of the queues")};
#define BASE_SETTINGS P_SETTINGS(settings)
#include "tables.h"
