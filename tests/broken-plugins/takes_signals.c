/* A thread of the plugin, which runs as long as a stream is open, takes the signals of the program.
 * caught by: process/thread_signals
 * and by: process/threads, leaks
 * says: does not block signal */
#include "base.h"

static atomic_uint streams;

static void *rest(void *arg) {
  while (atomic_load(&streams) != 0) base_sleep_ms(5);
  return arg;
}

static heddle_status create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                            heddle_error *err) {
  heddle_status status = base_stream_create(dev, kind, priority, out, err);
  pthread_t thread;
  if (status == HEDDLE_OK && atomic_fetch_add(&streams, 1) == 0 && pthread_create(&thread, NULL, rest, NULL) == 0)
    pthread_detach(thread);
  return status;
}

static void close_stream(heddle_pstream *stream) {
  if (stream != NULL) atomic_fetch_sub(&streams, 1);
  base_stream_close(stream);
}

#define base_stream_create create
#define base_stream_close close_stream
#include "tables.h"
