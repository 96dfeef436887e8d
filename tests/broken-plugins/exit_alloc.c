/* Ends the process with the status of success where memory is asked for.
 * caught by: memory/sizes
 * and by: all
 * says: ended with status 0 in the middle of the case in memory.alloc */
#include "base.h"

#include <stdlib.h>

static heddle_status alloc_nothing(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                                   heddle_error *err) {
  (void)dev, (void)desc, (void)out, (void)err;
  exit(0);
}

#define base_memory_alloc alloc_nothing
#include "tables.h"
