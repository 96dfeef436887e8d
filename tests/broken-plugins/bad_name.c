/* A name with a capital letter and a hyphen.
 * caught by: ?
 * says: ? */
#include "base.h"

#define BASE_NAME "Bad-Name"
#include "tables.h"
