/* Calls a function of libheddle, which no other host has.
 * caught by: load/exports
 * and by: load/file load/entry
 * says: needs the symbol 'heddle_version' */
#include "base.h"

extern const char *heddle_version(void);

static void version(void) {
  if (heddle_version()[0] == '\0') base_sleep_ms(1);
}

#define BASE_ENTRY version
#include "tables.h"
