/* The level of the log is asked for whether the host has it or not.
 * caught by: load/older_host
 * says: signal 11 */
#include "base.h"

static heddle_status mine_open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  if (host->log_level(host->ctx) > HEDDLE_LOG_TRACE) return p_fail(err, HEDDLE_EFAILED, 0, "no log");
  return base_open_instance(host, out, err);
}

#define base_open_instance mine_open_instance
#include "tables.h"
