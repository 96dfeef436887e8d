/* Freeing a buffer over memory of others clears that memory.
 * caught by: memory/adopt-freed
 * says: the owner's buffer after an adopted one was freed */
#include "base.h"

static void free_and_clear(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  if (buffer != NULL && buffer->adopted) memset(buffer->bytes, 0, buffer->size);
  base_memory_free(dev, buffer);
}

#define base_memory_free free_and_clear
#include "tables.h"
