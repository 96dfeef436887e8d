/* The entry never returns.
 * caught by: load/entry
 * and by: load process/state process/output
 * limit: 2
 * says: did not end */
#include "base.h"

static void hang(void) {
  for (;;) base_sleep_ms(1000);
}

#define BASE_ENTRY hang
#include "tables.h"
