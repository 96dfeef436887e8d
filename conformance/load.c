/* conformance/load.c: the group "load": the file, its one symbol, the entry, and the tables that it gives. */
#include <string.h>

#include "conformance/kit_side.h"

static void entry(kit *k) {
  if (!kit_stage_library(k) || !kit_stage_entry(k)) kit_fail(k, "%s", k->err.text);
}

KIT_GROUP(kit_load, "load",
          {"load/entry", "heddle_plugin_entry returns a table of the host's major version", KIT_STAGE_FILE, 0, 0, entry,
           NULL});
