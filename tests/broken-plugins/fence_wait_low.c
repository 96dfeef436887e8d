/* A wait for a fence looks at the low 32 bits of its value.
 * caught by: fences/wait-value
 * says: 0x900000005
 * and by: fences/% */
#include "base.h"

static heddle_status wait_low(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  return base_fence_wait(stream, fence, (uint32_t)value, err);
}

#define base_fence_wait wait_low
#include "tables.h"
