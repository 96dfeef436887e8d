/* Has left a function with atexit, which crashes.
 * caught by: root/open
 * and by: all
 * says: while the process ended */
#include "base.h"

#include <signal.h>
#include <stdlib.h>

static void crash(void) {
  raise(SIGSEGV);
}

static heddle_status open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  atexit(crash);
  return base_open_instance(host, out, err);
}

#define base_open_instance open_instance
#include "tables.h"
