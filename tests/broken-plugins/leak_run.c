/* Each run keeps a block of malloc's.
 * caught by: leaks/runs
 * and by: leaks/%
 * says: bytes of malloc grow */
#include "base.h"

#include <stdlib.h>

static void *volatile kept;

static heddle_status run(heddle_plaunch *launch, heddle_error *err) {
  kept = malloc(256);
  return base_op_run(launch, err);
}

#define base_op_run run
#include "tables.h"
