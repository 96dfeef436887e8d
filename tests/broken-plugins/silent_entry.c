/* The entry refuses without words.
 * caught by: load/entry
 * says: refused the kit */
#include "base.h"

#define BASE_OWN_ENTRY
#include "tables.h"

const heddle_plugin *heddle_plugin_entry(const heddle_host *host, heddle_error *err) {
  (void)err;
  return host->abi_major == HEDDLE_ABI_MAJOR + 1000 ? &root_table : NULL;
}
