/* The entry crashes.
 * caught by: load/entry
 * says: signal */
#include "base.h"

#include <signal.h>

static void crash(void) {
  raise(SIGSEGV);
}

#define BASE_ENTRY crash
#include "tables.h"
