/* Exports a function beside the entry.
 * caught by: load/exports
 * says: exports 'broken_extra' */
#include "base.h"

HEDDLE_PLUGIN_EXPORT int broken_extra(void);

int broken_extra(void) {
  return 1;
}

#include "tables.h"
