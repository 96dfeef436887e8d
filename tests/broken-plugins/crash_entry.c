/* The entry crashes.
 * caught by: load/entry
 * and by: load process/state process/output
 * says: died of signal 11 */
#include "base.h"

#include <signal.h>

static void crash(void) {
  raise(SIGSEGV);
}

#define BASE_ENTRY crash
#include "tables.h"
