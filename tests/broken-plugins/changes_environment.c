/* Sets a variable of the environment.
 * caught by: process/state
 * says: changed the variable BROKEN_PLUGIN */
#include "base.h"

#include <stdlib.h>

static heddle_status open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  setenv("BROKEN_PLUGIN", "1", 1);
  return base_open_instance(host, out, err);
}

#define base_open_instance open_instance
#include "tables.h"
