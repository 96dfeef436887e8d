/* The entry gives up by abort.
 * caught by: load/entry
 * and by: load process/state process/output
 * says: died of signal 6 */
#include "base.h"

#include <stdlib.h>

#define BASE_ENTRY abort
#include "tables.h"
