/* A view of mapped memory is the whole of it.
 * caught by: memory/view-page
 * says: h2d from a view of mapped memory */
#include "base.h"

static heddle_status view(heddle_pdevice *dev, heddle_pbuffer *parent, uint64_t offset, uint64_t bytes,
                          heddle_pbuffer **out, heddle_error *err) {
  heddle_status status = base_memory_view(dev, parent, offset, bytes, out, err);
  if (status == HEDDLE_OK && parent->kind == HEDDLE_MEMORY_PINNED) (*out)->bytes = parent->bytes;
  return status;
}

#define base_memory_view view
#include "tables.h"
