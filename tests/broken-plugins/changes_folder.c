/* Changes the current directory.
 * caught by: process/state
 * says: changed the current folder */
#include "base.h"

#include <unistd.h>

static heddle_status open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  if (chdir("/") != 0) return p_fail(err, HEDDLE_EIO, 0, "no root folder");
  return base_open_instance(host, out, err);
}

#define base_open_instance open_instance
#include "tables.h"
