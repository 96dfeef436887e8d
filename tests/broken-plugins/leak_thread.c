/* Each stream starts a thread more, which never ends.
 * caught by: process/threads
 * and by: leaks, process/thread_signals
 * says: threads are running */
#include "base.h"

static void *rest(void *arg) {
  for (;;) base_sleep_ms(1000);
  return arg;
}

static heddle_status create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                            heddle_error *err) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, rest, NULL) == 0) pthread_detach(thread);
  return base_stream_create(dev, kind, priority, out, err);
}

#define base_stream_create create
#include "tables.h"
