/* conformance/root.c: the group "root": instances, how many devices there are, and what is said of them. */
#include <string.h>

#include "conformance/kit_side.h"

static void open_once(kit *k) {
  if (kit_stage_instance(k)) return;
  if (k->err.status == HEDDLE_ENODEV || (k->instance != NULL && k->n_devices == 0)) kit_skip(k, "%s", k->err.text);
  kit_fail(k, "%s", k->err.text);
}

KIT_GROUP(kit_root, "root",
          {"root/open", "open_instance starts the driver far enough to list devices, or fails with words",
           KIT_STAGE_ENTRY, 0, 30, open_once, NULL});
