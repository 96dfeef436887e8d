/* A root table that ends before its functions.
 * caught by: load/sizes
 * and by: load/functions root/open errors/no_memory_instance %/required
 * says: struct_size of the root table is 32 */
#include "base.h"

#define BASE_ROOT_BYTES 32
#include "tables.h"
