/* A reset after which the host is not called: the loss of the device shows in answers alone.
 * caught by: health/reset
 * says: host.device_fault was called 0 times */
#include "base.h"

static heddle_status reset(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  pthread_mutex_lock(&dev->self->lock);
  p_fail(&dev->fault, HEDDLE_EDEVICE, 9, "device %u is lost: it was reset", dev->index);
  atomic_store(&dev->lost, true);
  pthread_cond_broadcast(&dev->self->changed);
  pthread_mutex_unlock(&dev->self->lock);
  const heddle_status status = base_device_idle(dev, timeout_ns, err);
  return status == HEDDLE_EDEVICE ? HEDDLE_OK : status;
}

#define base_device_reset reset
#include "tables.h"
