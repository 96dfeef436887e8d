/* Crashes when the process ends.
 * caught by: ?
 * says: ? */
#include "base.h"

#include <signal.h>

__attribute__((destructor)) static void crash(void) {
  raise(SIGSEGV);
}
#include "tables.h"
