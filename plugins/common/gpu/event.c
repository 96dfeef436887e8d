/* Events: a record marks a point of a stream, a wait holds another stream back until that point. The driver's events
 * belong to a device each, so one that is recorded on another device than before gets a new one there. */
#include "plugins/common/gpu/stream.h"

struct heddle_pevent {
  heddle_pdevice *dev;
  pthread_mutex_t lock;   /* guards what follows; the driver is called with it held */
  void *handle;           /* NULL: never recorded */
  heddle_pdevice *at;     /* the device of handle */
  heddle_pstream *stream; /* of the last record */
  heddle_error failed;    /* of the work before it; status 0: none */
};

/* The driver's part, on its device. */
static void drop_handle(heddle_pevent *event) {
  gpu_scope scope;
  if (event->handle == NULL) return;
  if (gpu_enter(event->at, &scope, NULL) == HEDDLE_OK) {
    event->at->driver->event_destroy(event->handle);
    gpu_leave(event->at, &scope);
  }
  event->handle = NULL;
}

static void event_free(heddle_pevent *event) {
  if (event == NULL) return;
  heddle_pdevice *dev = event->dev;
  drop_handle(event);
  pthread_mutex_destroy(&event->lock);
  gpu_count(&dev->live_objects, -1);
  dev->host->free(dev->host->ctx, event);
}

/* Inside gpu_enter(dev). */
static int make_handle(heddle_pevent *event, heddle_pdevice *dev) {
  const int code = dev->driver->event_create(&event->handle, GPU_EVENT_NO_TIMES);
  if (code != 0) event->handle = NULL;
  event->at = dev;
  return code;
}

static heddle_status event_create(heddle_pdevice *dev, heddle_pevent **out, heddle_error *err) {
  void *memory = NULL;
  gpu_scope scope;
  heddle_status s = gpu_health(dev, err);
  if (s == HEDDLE_OK) s = gpu_new(dev->host, sizeof **out, "an event", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pevent *event = memory;
  event->dev = dev;
  if (pthread_mutex_init(&event->lock, NULL) != 0) {
    dev->host->free(dev->host->ctx, event);
    return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no lock for an event", dev->vendor->name, dev->index);
  }
  s = gpu_enter(dev, &scope, err);
  if (s == HEDDLE_OK) {
    s = gpu_check(dev, make_handle(event, dev), "make an event", err);
    gpu_leave(dev, &scope);
  }
  if (s != HEDDLE_OK) {
    pthread_mutex_destroy(&event->lock);
    dev->host->free(dev->host->ctx, event);
    return s;
  }
  gpu_count(&dev->live_objects, 1);
  *out = event;
  return HEDDLE_OK;
}

static heddle_status same_instance(const heddle_pstream *stream, const heddle_pevent *event, heddle_error *err) {
  const heddle_pdevice *a = event->dev, *b = stream->dev;
  if (a->self == b->self) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "the event of %s:%u does not reach %s:%u of another instance", a->vendor->name,
                a->index, b->vendor->name, b->index);
}

static heddle_status event_record(heddle_pevent *event, heddle_pstream *stream, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  gpu_scope scope;
  int code = 0;
  heddle_status s = same_instance(stream, event, err);
  if (s == HEDDLE_OK) s = gpu_stream_enter_plain(stream, "record of an event", &scope, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&event->lock);
  if (event->at != dev) {
    drop_handle(event); /* waits that were put in keep the record */
    code = make_handle(event, dev);
  }
  if (code == 0) code = dev->driver->event_record(event->handle, stream->handle);
  if (code == 0) {
    event->stream = stream;
    event->failed.status = HEDDLE_OK;
    gpu_stream_kept(stream, &event->failed);
  }
  pthread_mutex_unlock(&event->lock);
  return gpu_stream_done(stream, &scope, code, "record an event", err);
}

/* What is known to have failed before the record: reported to the stream that waits, which fails too. */
static heddle_status failure_before(heddle_pstream *stream, heddle_pevent *event, heddle_error *err) {
  heddle_error why = event->failed, lost;
  if (why.status == HEDDLE_OK && event->at != stream->dev && gpu_health(event->at, &lost) != HEDDLE_OK) {
    why = lost;
    why.status = HEDDLE_EFAILED; /* this device is not lost */
  }
  if (why.status == HEDDLE_OK) return HEDDLE_OK;
  p_prefix(&why, "%s:%u waited for an event whose work failed: ", stream->dev->vendor->name, stream->dev->index);
  gpu_stream_keep(stream, &why);
  if (err != NULL) *err = why;
  return why.status;
}

static heddle_status event_wait(heddle_pstream *stream, heddle_pevent *event, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  gpu_scope scope;
  heddle_pdevice *at = dev;
  int code = 0;
  heddle_status s = same_instance(stream, event, err);
  if (s == HEDDLE_OK) s = gpu_stream_enter_plain(stream, "wait for an event", &scope, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&event->lock);
  /* Else it was never recorded, or is in order anyway; what was another's stream then may have another handle now. */
  if (event->stream != NULL && (event->stream != stream || stream->own->adopted)) {
    at = event->at;
    s = failure_before(stream, event, err);
    if (s == HEDDLE_OK && event->at != dev) s = gpu_watch_wait(stream, event->at, err);
    if (s == HEDDLE_OK) code = dev->driver->stream_wait(stream->handle, event->handle, 0);
  }
  pthread_mutex_unlock(&event->lock);
  if (s == HEDDLE_OK) return gpu_stream_done_with(stream, &scope, at, code, "wait for an event", err);
  gpu_stream_leave(stream, &scope);
  return s;
}

const heddle_event_table gpu_event_table = {
    .struct_size = sizeof gpu_event_table,
    .free = event_free,
    .create = event_create,
    .record = event_record,
    .wait = event_wait,
};
