/* Opening an instance registers a function for the end of the process.
 * caught by: process/functions
 * says: atexit */
#include "base.h"

#include <stdlib.h>

static void nothing(void) {}

static heddle_status mine_open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  if (atexit(nothing) != 0) return HEDDLE_EFAILED;
  return base_open_instance(host, out, err);
}

#define base_open_instance mine_open_instance
#include "tables.h"
