/* Memory that is taken by its handle is a copy of it.
 * caught by: memory/adopt
 * and by: memory/adopt-part memory/adopt-freed
 * says: an adopted buffer after a write to its owner's */
#include "base.h"

static heddle_status adopt(heddle_pdevice *dev, uint64_t handle, uint64_t offset, uint64_t bytes, heddle_pbuffer **out,
                           heddle_error *err) {
  const heddle_pmemory_desc desc = {.struct_size = sizeof desc, .bytes = bytes, .align = 1};
  heddle_status status = base_memory_alloc(dev, &desc, out, err);
  if (status == HEDDLE_OK) memcpy((*out)->bytes, (char *)(uintptr_t)handle + offset, bytes);
  return status;
}

#define base_memory_adopt adopt
#include "tables.h"
