/* Opening a second instance gives the first, which then is closed twice.
 * caught by: root/two_instances
 * and by: root/reopen errors process leaks/instances health/instance-again threads device fences/host-inside fences/slow-host
 * says: two instances are the same pointer */
#include "base.h"

static heddle_pinstance *only;

static heddle_status open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  if (only == NULL) {
    heddle_status status = base_open_instance(host, &only, err);
    if (status != HEDDLE_OK) return status;
  }
  *out = only;
  return HEDDLE_OK;
}

#define base_open_instance open_instance
#include "tables.h"
