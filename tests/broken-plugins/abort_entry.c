/* The entry gives up by abort.
 * caught by: load/entry
 * says: signal */
#include "base.h"

#include <stdlib.h>

#define BASE_ENTRY abort
#include "tables.h"
