/* Buffers of a lost device are not given back.
 * caught by: health/lost-memory
 * and by: health/reset
 * says: LIVE_BUFFERS */
#include "base.h"

static void free_buffer(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  if (base_check(dev, NULL) == HEDDLE_OK) base_memory_free(dev, buffer);
}

#define base_memory_free free_buffer
#include "tables.h"
