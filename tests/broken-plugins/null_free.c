/* Freeing nothing crashes.
 * caught by: memory/free-null
 * and by: memory/view-of-view device/nulls leaks threads errors, health/lost%, health/reset
 * says: died of signal 11 */
#include "base.h"

#include <signal.h>

static void free_blindly(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  if (buffer == NULL) raise(SIGSEGV);
  base_memory_free(dev, buffer);
}

#define base_memory_free free_blindly
#include "tables.h"
