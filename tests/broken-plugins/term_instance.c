/* Ends the process with SIGTERM when an instance is opened.
 * caught by: root/open
 * and by: errors/no_memory_instance process/state process/output
 * says: died of signal 15 */
#include "base.h"

#include <signal.h>

static heddle_status open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  raise(SIGTERM);
  return base_open_instance(host, out, err);
}

#define base_open_instance open_instance
#include "tables.h"
