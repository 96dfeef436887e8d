/* Crashes when the process ends.
 * caught by: load/entry
 * and by: all
 * says: while the process ended */
#include "base.h"

#include <signal.h>

__attribute__((destructor)) static void crash(void) {
  raise(SIGSEGV);
}
#include "tables.h"
