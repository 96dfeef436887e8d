/* Signals that are pending when the device is lost are forgotten.
 * caught by: health/lost-fences
 * and by: health/reset
 * says: has not failed */
#include "base.h"

static heddle_status run_signal(heddle_pstream *stream, base_task *task, heddle_error *err) {
  return base_check(stream->dev, NULL) == HEDDLE_OK ? base_run_signal(stream, task, err) : HEDDLE_OK;
}

static heddle_status signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  const base_task task = {.run = run_signal, .always = true, .fence = fence, .value = value};
  if (base_check(stream->dev, NULL) != HEDDLE_OK) return base_fence_signal(stream, fence, value, err);
  return base_push(stream, &task, err);
}

#define base_fence_signal signal
#include "tables.h"
