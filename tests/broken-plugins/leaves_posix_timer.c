/* A timer of the process is left behind by each stream.
 * caught by: process/state
 * and by: process/%, leaks/%
 * says: timer_create */
#include "base.h"

#include <signal.h>
#include <time.h>

static heddle_status mine_stream_create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                                        heddle_error *err) {
  timer_t timer;
  struct sigevent none = {.sigev_notify = SIGEV_NONE};
  (void)timer_create(CLOCK_MONOTONIC, &none, &timer);
  return base_stream_create(dev, kind, priority, out, err);
}

#define base_stream_create mine_stream_create
#include "tables.h"
