/* The default of a setting is not among its values.
 * caught by: settings/list
 * and by: settings/%
 * says: none of its values */
#include "base.h"

#include "plugins/common/setting.h"

static const heddle_psetting settings[] = {P_SETTING_NUMBER("lose_on_fill", "", 0, UINT32_MAX, "loses"),
                                           P_SETTING_NUMBER("fail_on_fill", "", 0, UINT32_MAX, "fails"),
                                           P_SETTING_SWITCH("adopt_own", "0", "adopts"),
                                           P_SETTING_NUMBER("depth", "0", 1, 1024, "depth of the queues")};
#define BASE_SETTINGS P_SETTINGS(settings)
#include "tables.h"
