/* A plugin for another major of the ABI.
 * caught by: ?
 * says: ? */
#include "base.h"

#define BASE_MAJOR (HEDDLE_ABI_MAJOR + 1)
#include "tables.h"
