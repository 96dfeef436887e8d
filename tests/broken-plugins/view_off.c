/* A view begins one byte late.
 * caught by: memory/view
 * and by: memory/view-% memory/adopt-part leaks/views
 * says: a view of bytes written to the parent */
#include "base.h"

static heddle_status view(heddle_pdevice *dev, heddle_pbuffer *parent, uint64_t offset, uint64_t bytes,
                          heddle_pbuffer **out, heddle_error *err) {
  heddle_status status = base_memory_view(dev, parent, offset, bytes, out, err);
  if (status == HEDDLE_OK) (*out)->bytes++;
  return status;
}

#define base_memory_view view
#include "tables.h"
