/* op.run returns when its launch has ended, on a device that does not wait for fences.
 * caught by: calls/run-returns
 * and by: numerics, fences/%
 * limit: 2
 * says: op.run took */
#include "base.h"

static heddle_status describe(heddle_pinstance *self, uint32_t index, heddle_pdevice_desc *desc, heddle_error *err) {
  heddle_status status = base_device_describe(self, index, desc, err);
  desc->caps &= ~HEDDLE_CAP_WAIT_BEFORE_SIGNAL;
  return status;
}

static heddle_status run(heddle_plaunch *launch, heddle_error *err) {
  heddle_status status = base_op_run(launch, err);
  return status != HEDDLE_OK ? status : base_stream_wait(launch->stream, err);
}

#define base_op_run run
#define base_fence_wait NULL
#define base_device_describe describe
#include "tables.h"
