/* Installs a signal handler.
 * caught by: process/state
 * says: changed the handler of signal 10 */
#include "base.h"

#include <signal.h>

static void nothing(int number) {
  (void)number;
}

static heddle_status open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  signal(SIGUSR1, nothing);
  return base_open_instance(host, out, err);
}

#define base_open_instance open_instance
#include "tables.h"
