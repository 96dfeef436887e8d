/* A stream over one of others is a stream of its own, without order with the owner's work.
 * caught by: streams/adopt-after
 * and by: streams/adopt-before streams/adopt-sync streams/adopt-close
 * says: bytes that the owner of an adopted stream wrote before the event */
#include "base.h"

static heddle_status adopt(heddle_pdevice *dev, uint64_t handle, heddle_pstream **out, heddle_error *err) {
  heddle_pstream *theirs = NULL;
  heddle_status status = base_stream_adopt(dev, handle, &theirs, err);
  if (status != HEDDLE_OK) return status;
  base_stream_close(theirs);
  return base_stream_create(dev, HEDDLE_STREAM_COMPUTE, 0, out, err);
}

#define base_stream_adopt adopt
#include "tables.h"
