/* The entry never returns.
 * caught by: load/entry
 * says: time */
#include "base.h"

static void hang(void) {
  for (;;) base_sleep_ms(1000);
}

#define BASE_ENTRY hang
#include "tables.h"
