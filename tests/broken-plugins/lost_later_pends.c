/* A signal that a lost device is asked for is refused, and its fence does not fail.
 * caught by: health/lost-later
 * and by: health/lost-fences health/reset
 * says: has not failed */
#include "base.h"

static heddle_status signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  heddle_status status = base_check(stream->dev, err);
  return status != HEDDLE_OK ? status : base_fence_signal(stream, fence, value, err);
}

#define base_fence_signal signal
#include "tables.h"
