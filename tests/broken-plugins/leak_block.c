/* Each launch leaves a block of the host's memory behind when it is freed.
 * caught by: leaks/launches
 * and by: leaks errors/no_memory_bind
 * says: blocks of host.alloc grow */
#include "base.h"

static void free_launch(heddle_plaunch *launch) {
  if (launch != NULL) base_zeroed(launch->op->dev->host, 64);
  base_launch_free(launch);
}

#define base_launch_free free_launch
#include "tables.h"
