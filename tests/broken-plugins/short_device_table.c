/* A device table that ends before a function that is required.
 * caught by: load/sizes
 * and by: load/functions device errors health
 * says: struct_size of the table device */
#include "base.h"

#define BASE_DEVICE_BYTES offsetof(heddle_device_table, health)
#include "tables.h"
