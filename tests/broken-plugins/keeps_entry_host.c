/* The table that the entry got is used later.
 * caught by: load/entry_host
 * says: signal 11 */
#include "base.h"

static const heddle_host *entered;

static heddle_status mine_open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  if (entered != NULL && entered->now_ns(host->ctx) == 0) return p_fail(err, HEDDLE_EFAILED, 0, "no time");
  return base_open_instance(host, out, err);
}

#define base_open_instance mine_open_instance
#define BASE_OWN_ENTRY
#include "tables.h"

const heddle_plugin *heddle_plugin_entry(const heddle_host *host, heddle_error *err) {
  entered = host;
  if (host->abi_major == HEDDLE_ABI_MAJOR) return &root_table;
  p_fail(err, HEDDLE_EABI, 0, "%s: the host has ABI major %u", BASE_FILE_NAME, host->abi_major);
  return NULL;
}
