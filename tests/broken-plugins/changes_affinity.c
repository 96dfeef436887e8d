/* The calling thread is bound to one processor for the new stream.
 * caught by: process/state
 * and by: process/%
 * says: affinity */
#define _GNU_SOURCE
#include "base.h"

#include <sched.h>

static heddle_status mine_stream_create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                                        heddle_error *err) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    int last = 0;
    for (int i = 0; i < CPU_SETSIZE; i++) last = CPU_ISSET(i, &set) ? i : last;
    if (CPU_COUNT(&set) > 1) CPU_CLR(last, &set);
    sched_setaffinity(0, sizeof set, &set);
  }
  return base_stream_create(dev, kind, priority, out, err);
}

#define base_stream_create mine_stream_create
#include "tables.h"
