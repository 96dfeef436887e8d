/* The entry ends the process, with the status of success.
 * caught by: load/entry
 * says: exit */
#include "base.h"

#include <stdlib.h>

static void leave(void) {
  exit(0);
}

#define BASE_ENTRY leave
#include "tables.h"
