/* A view that is refused leaves nothing in the out-argument.
 * caught by: errors/no_memory_view
 * and by: memory/view%
 * says: out-argument */
#include "base.h"

static heddle_status mine_memory_view(heddle_pdevice *dev, heddle_pbuffer *parent, uint64_t offset, uint64_t bytes,
                                      heddle_pbuffer **out, heddle_error *err) {
  const heddle_status status = base_memory_view(dev, parent, offset, bytes, out, err);
  if (status != HEDDLE_OK) *out = (heddle_pbuffer *)dev;
  return status;
}

#define base_memory_view mine_memory_view
#include "tables.h"
