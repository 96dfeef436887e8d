/* Freeing a view does nothing.
 * caught by: leaks/views
 * and by: leaks errors/no_memory_view memory/adopt-freed
 * says: LIVE_BUFFERS is off by */
#include "base.h"

static void free_most(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  if (buffer != NULL && buffer->block != NULL) base_memory_free(dev, buffer);
}

#define base_memory_free free_most
#include "tables.h"
