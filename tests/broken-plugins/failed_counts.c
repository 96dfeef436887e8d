/* An allocation that fails for want of memory stays in LIVE_BYTES.
 *
 * caught by: leaks/after-failure
 * says: LIVE_BYTES by
 */
#include "base.h"

static heddle_status mine_memory_alloc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                                       heddle_error *err) {
  const heddle_status status = base_memory_alloc(dev, desc, out, err);
  if (status == HEDDLE_ENOMEM && desc->bytes < BASE_MAX_BUFFER)
    atomic_fetch_add(&dev->live_bytes, (int64_t)desc->bytes);
  return status;
}

#define base_memory_alloc mine_memory_alloc
#include "tables.h"
