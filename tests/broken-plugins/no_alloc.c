/* There is no memory.alloc.
 * caught by: load/functions
 * and by: memory/required
 * says: memory.alloc is missing */
#include "base.h"

#define base_memory_alloc NULL
#include "tables.h"
