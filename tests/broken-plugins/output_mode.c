/* The standard error output no longer blocks.
 * caught by: process/state
 * and by: process/%
 * says: the standard */
#define _GNU_SOURCE
#include "base.h"

#include <fcntl.h>

static heddle_status mine_open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  fcntl(2, F_SETFL, fcntl(2, F_GETFL) | O_NONBLOCK);
  return base_open_instance(host, out, err);
}

#define base_open_instance mine_open_instance
#include "tables.h"
