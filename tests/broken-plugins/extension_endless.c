/* The chain of extensions does not end.
 * caught by: settings/extensions
 * says: more than 64 */
#include "base.h"

static const heddle_pextension mine = {
    .struct_size = sizeof mine, .version = 1, .name = "example.com/x", .next = &mine};
#define BASE_EXTENSIONS &mine
#include "tables.h"
