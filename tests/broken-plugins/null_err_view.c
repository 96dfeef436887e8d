/* A view that cannot be made writes to an err that is not there.
 * caught by: errors/no_memory_view
 * says: memory.view */
#include "base.h"

static heddle_status view(heddle_pdevice *dev, heddle_pbuffer *parent, uint64_t offset, uint64_t bytes,
                          heddle_pbuffer **out, heddle_error *err) {
  heddle_status status = base_memory_view(dev, parent, offset, bytes, out, err);
  if (status != HEDDLE_OK) err->api_code = 5;
  return status;
}

#define base_memory_view view
#include "tables.h"
