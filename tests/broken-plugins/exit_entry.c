/* The entry ends the process, with the status of success.
 * caught by: load/entry
 * and by: load process/state process/output
 * says: ended with status 0 */
#include "base.h"

#include <stdlib.h>

static void leave(void) {
  exit(0);
}

#define BASE_ENTRY leave
#include "tables.h"
