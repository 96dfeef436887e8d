/* A root table that ends before its functions.
 * caught by: ?
 * says: ? */
#include "base.h"

#define BASE_ROOT_BYTES 32
#include "tables.h"
