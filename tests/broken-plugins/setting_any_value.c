/* A setting takes any value, and what it does not know is nothing.
 * caught by: settings/values
 * says: 'depth' */
#include "base.h"

#include <stdlib.h>

static heddle_status mine_open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  char text[24];
  if (host->config(host->ctx, "depth", text, sizeof text) > 0 && atoi(text) < 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "depth");
  return base_open_instance(host, out, err);
}

#define base_open_instance mine_open_instance
#include "plugins/common/setting.h"

static const heddle_psetting settings[] = {P_SETTING_NUMBER("lose_on_fill", "", 0, UINT32_MAX, "loses"),
                                           P_SETTING_NUMBER("fail_on_fill", "", 0, UINT32_MAX, "fails"),
                                           P_SETTING_SWITCH("adopt_own", "0", "adopts"),
                                           P_SETTING_NUMBER("depth", "16", 1, 1024, "depth of the queues")};
#define BASE_SETTINGS P_SETTINGS(settings)
#include "tables.h"
