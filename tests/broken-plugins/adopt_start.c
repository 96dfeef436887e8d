/* Memory that is taken by its handle begins where the handle's does, whatever the offset.
 * caught by: memory/adopt-part
 * says: the owner's bytes after a write to an adopted part */
#include "base.h"

static heddle_status adopt(heddle_pdevice *dev, uint64_t handle, uint64_t offset, uint64_t bytes, heddle_pbuffer **out,
                           heddle_error *err) {
  (void)offset;
  return base_memory_adopt(dev, handle, 0, bytes, out, err);
}

#define base_memory_adopt adopt
#include "tables.h"
