/* A name with a capital letter and a hyphen.
 * caught by: load/name
 * says: does not begin with a lower-case letter */
#include "base.h"

#define BASE_NAME "Bad-Name"
#include "tables.h"
