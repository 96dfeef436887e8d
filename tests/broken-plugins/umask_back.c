/* The mode mask of files is changed for a while.
 * caught by: process/functions
 * says: umask */
#include "base.h"

#include <sys/stat.h>

static heddle_status mine_open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  const mode_t before = umask(077);
  umask(before);
  return base_open_instance(host, out, err);
}

#define base_open_instance mine_open_instance
#include "tables.h"
