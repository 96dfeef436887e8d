/* Events: a record is a number of a stream, a wait a semaphore wait of the next submission of another. */
#include "stream.h"

struct heddle_pevent {
  heddle_pdevice *dev;
  pthread_mutex_t lock;   /* guards the last record; a leaf */
  heddle_pstream *stream; /* NULL: never recorded */
  uint64_t value;
};

static void event_free(heddle_pevent *event) {
  if (event == NULL) return;
  heddle_pdevice *dev = event->dev;
  pthread_mutex_destroy(&event->lock);
  vlk_count(&dev->live_objects, -1);
  dev->host->free(dev->host->ctx, event);
}

static heddle_status event_create(heddle_pdevice *dev, heddle_pevent **out, heddle_error *err) {
  void *memory = NULL;
  heddle_status s = vlk_health(dev, err);
  if (s == HEDDLE_OK) s = vlk_new(dev->host, sizeof **out, "an event", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pevent *event = memory;
  event->dev = dev;
  if (pthread_mutex_init(&event->lock, NULL) != 0) {
    dev->host->free(dev->host->ctx, event);
    return p_fail(err, HEDDLE_ENOMEM, 0, "vulkan:%u: no lock for an event", dev->index);
  }
  vlk_count(&dev->live_objects, 1);
  *out = event;
  return HEDDLE_OK;
}

static heddle_status same_device(const heddle_pstream *stream, const heddle_pevent *event, heddle_error *err) {
  if (event->dev == stream->dev) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "the event of vulkan:%u does not reach vulkan:%u, another device",
                event->dev->index, stream->dev->index);
}

static heddle_status event_record(heddle_pevent *event, heddle_pstream *stream, heddle_error *err) {
  heddle_status s = vlk_stream_enter(stream, "record of an event", err);
  if (s == HEDDLE_OK) s = same_device(stream, event, err);
  if (s == HEDDLE_OK) s = vlk_submit(stream, 0, 0, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&event->lock);
  event->stream = stream;
  event->value = atomic_load_explicit(&stream->submitted, memory_order_relaxed);
  pthread_mutex_unlock(&event->lock);
  return HEDDLE_OK;
}

static heddle_status event_wait(heddle_pstream *stream, heddle_pevent *event, heddle_error *err) {
  heddle_status s = vlk_stream_enter(stream, "wait for an event", err);
  if (s == HEDDLE_OK) s = same_device(stream, event, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&event->lock);
  heddle_pstream *other = event->stream;
  const uint64_t value = event->value;
  pthread_mutex_unlock(&event->lock);
  if (other == NULL || other == stream || value == 0) return HEDDLE_OK; /* in order anyway, or nothing to wait for */
  return vlk_stream_wait_for(stream, other, value, err);
}

const heddle_event_table vlk_event_table = {
    .struct_size = sizeof vlk_event_table,
    .free = event_free,
    .create = event_create,
    .record = event_record,
    .wait = event_wait,
};
