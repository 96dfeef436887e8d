/* A setting of one device is described, and device.open does not know it.
 * caught by: settings/device
 * says: 'depth' */
#include "base.h"

#include "plugins/common/setting.h"

static const heddle_psetting settings[] = {P_SETTING_NUMBER("lose_on_fill", "", 0, UINT32_MAX, "loses"),
                                           P_SETTING_NUMBER("fail_on_fill", "", 0, UINT32_MAX, "fails"),
                                           P_SETTING_SWITCH("adopt_own", "0", "adopts"),
                                           P_SETTING(NUMBER, "depth", "16", .flags = HEDDLE_SETTING_DEVICE, .low = 1,
                                                     .high = 1024, .help = "depth of the queues")};
#define BASE_SETTINGS P_SETTINGS(settings)
#include "tables.h"
