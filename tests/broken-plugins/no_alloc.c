/* There is no memory.alloc.
 * caught by: ?
 * says: ? */
#include "base.h"

#define base_memory_alloc NULL
#include "tables.h"
