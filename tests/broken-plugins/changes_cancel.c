/* The calling thread can no longer be cancelled.
 * caught by: process/state
 * and by: process/%
 * says: cancelled */
#include "base.h"

static heddle_status mine_stream_create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                                        heddle_error *err) {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  return base_stream_create(dev, kind, priority, out, err);
}

#define base_stream_create mine_stream_create
#include "tables.h"
