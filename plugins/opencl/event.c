/* Events: a record is a marker in a queue, a wait a barrier on it in another. The producing queue is handed over at
 * once, since a queue that waits for one that was not makes no progress. */
#include "opencl.h"

struct heddle_pevent {
  heddle_pdevice *dev;
  pthread_mutex_t lock; /* guards the last record; a leaf */
  cl_event event;       /* NULL: never recorded */
  uint64_t stream;      /* where: the number of a stream of device */
  heddle_pdevice *device;
};

static void event_free(heddle_pevent *event) {
  if (event == NULL) return;
  heddle_pdevice *dev = event->dev;
  if (event->event != NULL) clReleaseEvent(event->event);
  pthread_mutex_destroy(&event->lock);
  ocl_count(&dev->live_objects, -1);
  dev->host->free(dev->host->ctx, event);
}

static heddle_status event_create(heddle_pdevice *dev, heddle_pevent **out, heddle_error *err) {
  void *memory = NULL;
  heddle_status s = ocl_health(dev, err);
  if (s == HEDDLE_OK) s = ocl_new(dev->host, sizeof **out, "an event", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pevent *event = memory;
  event->dev = dev;
  if (pthread_mutex_init(&event->lock, NULL) != 0) {
    dev->host->free(dev->host->ctx, event);
    return p_fail(err, HEDDLE_ENOMEM, 0, "opencl:%u: no lock for an event", dev->index);
  }
  ocl_count(&dev->live_objects, 1);
  *out = event;
  return HEDDLE_OK;
}

static heddle_status same_context(const heddle_pstream *stream, const heddle_pevent *event, heddle_error *err) {
  if (event->dev->context == stream->dev->context) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "the event of opencl:%u does not reach opencl:%u, on another platform",
                event->dev->index, stream->dev->index);
}

static heddle_status event_record(heddle_pevent *event, heddle_pstream *stream, heddle_error *err) {
  cl_event mark = NULL;
  heddle_status s = ocl_stream_enter_plain(stream, "record of an event", err);
  if (s == HEDDLE_OK) s = same_context(stream, event, err);
  if (s == HEDDLE_OK) s = ocl_stream_mark(stream, &mark, err);
  if (s != HEDDLE_OK) return s;
  ocl_stream_count(stream);
  ocl_timer_past(stream);
  pthread_mutex_lock(&event->lock);
  cl_event old = event->event;
  event->event = mark;
  event->stream = stream->number;
  event->device = stream->dev;
  pthread_mutex_unlock(&event->lock);
  if (old != NULL) clReleaseEvent(old);
  return HEDDLE_OK;
}

static heddle_status event_wait(heddle_pstream *stream, heddle_pevent *event, heddle_error *err) {
  heddle_status s = ocl_stream_enter_plain(stream, "wait for an event", err);
  if (s == HEDDLE_OK) s = same_context(stream, event, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&event->lock);
  cl_event mark = event->event;
  if (mark != NULL && event->device == stream->dev && event->stream == stream->number)
    mark = NULL; /* in order anyway */
  if (mark != NULL) clRetainEvent(mark);
  pthread_mutex_unlock(&event->lock);
  if (mark == NULL) return HEDDLE_OK;
  ocl_stream_forget_last(stream);
  ocl_timer_past(stream);
  const cl_int code = clEnqueueBarrierWithWaitList(stream->queue, 1, &mark, NULL);
  clReleaseEvent(mark);
  return ocl_stream_done(stream, code, "wait for an event", err);
}

const heddle_event_table ocl_event_table = {
    .struct_size = sizeof ocl_event_table,
    .free = event_free,
    .create = event_create,
    .record = event_record,
    .wait = event_wait,
};
