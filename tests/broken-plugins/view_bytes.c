/* The bytes of a view count as an allocation's.
 * caught by: memory/view-counts
 * and by: leaks/%, memory/%, device/%, health/%
 * says: whose bytes are its parent's */
#include "base.h"

static heddle_status view(heddle_pdevice *dev, heddle_pbuffer *parent, uint64_t offset, uint64_t bytes,
                          heddle_pbuffer **out, heddle_error *err) {
  const heddle_status status = base_memory_view(dev, parent, offset, bytes, out, err);
  if (status == HEDDLE_OK) atomic_fetch_add(&dev->live_bytes, (int64_t)bytes);
  return status;
}

static void release(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  if (buffer != NULL && buffer->block == NULL && !buffer->adopted)
    atomic_fetch_sub(&dev->live_bytes, (int64_t)buffer->size);
  base_memory_free(dev, buffer);
}

#define base_memory_view view
#define base_memory_free release
#include "tables.h"
