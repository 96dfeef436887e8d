/* A device table that ends before a function that is required.
 * caught by: ?
 * says: ? */
#include "base.h"

#define BASE_DEVICE_BYTES offsetof(heddle_device_table, health)
#include "tables.h"
