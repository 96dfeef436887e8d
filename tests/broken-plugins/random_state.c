/* Streams get a number from the random numbers of the process.
 * caught by: process/functions
 * says: rand */
#include "base.h"

#include <stdlib.h>

static heddle_status mine_stream_create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                                        heddle_error *err) {
  if (rand() == 1) return p_fail(err, HEDDLE_EFAILED, 0, "bad luck");
  return base_stream_create(dev, kind, priority, out, err);
}

#define base_stream_create mine_stream_create
#include "tables.h"
