/* Says that nothing is alive, whatever is.
 * caught by: memory/counts
 * and by: %/counts device/live memory/adopt-freed
 * says: LIVE_BUFFERS grew by 0 */
#include "base.h"

static heddle_status count(heddle_pdevice *dev, uint32_t key, int64_t *out, heddle_error *err) {
  heddle_status status = base_device_query(dev, key, out, err);
  if (status == HEDDLE_OK) *out = 0;
  return status;
}

#define base_device_query count
#include "tables.h"
