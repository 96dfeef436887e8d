/* A stream of another device is taken as one of this.
 * caught by: streams/adopt-other
 * says: stream.adopt of a stream of another device */
#include "base.h"

static heddle_status adopt(heddle_pdevice *dev, uint64_t handle, heddle_pstream **out, heddle_error *err) {
  const heddle_pstream *theirs = (const heddle_pstream *)(uintptr_t)handle;
  return base_stream_adopt(theirs->dev != NULL ? theirs->dev : dev, handle, out, err);
}

#define base_stream_adopt adopt
#include "tables.h"
