/* A plugin for another major of the ABI.
 * caught by: load/entry
 * and by: load
 * says: is written for plugin ABI 2.2 */
#include "base.h"

#define BASE_MAJOR (HEDDLE_ABI_MAJOR + 1)
#include "tables.h"
