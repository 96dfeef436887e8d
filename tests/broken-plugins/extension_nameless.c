/* A member of the chain of extensions has no name.
 * caught by: settings/extensions
 * says: no name */
#include "base.h"

static const heddle_pextension mine = {.struct_size = sizeof mine, .version = 1};
#define BASE_EXTENSIONS &mine
#include "tables.h"
