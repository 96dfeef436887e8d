/* Streams are counted at file scope.
 * caught by: process/globals
 * says: file scope */
#include "base.h"

static atomic_uint streams;

static heddle_status mine_stream_create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                                        heddle_error *err) {
  atomic_fetch_add(&streams, 1);
  return base_stream_create(dev, kind, priority, out, err);
}

#define base_stream_create mine_stream_create
#include "tables.h"
