/* device.idle clears the failures of all streams.
 * caught by: fences/failed-kept
 * and by: fences/failed-alone
 * says: device.idle */
#include "base.h"

static heddle_status mine_device_idle(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  const heddle_status status = base_device_idle(dev, timeout_ns, err);
  pthread_mutex_lock(&dev->self->lock);
  for (heddle_pstream *s = dev->streams; s != NULL; s = s->next) s->failure.status = HEDDLE_OK;
  pthread_mutex_unlock(&dev->self->lock);
  return status;
}

#define base_device_idle mine_device_idle
#include "tables.h"
