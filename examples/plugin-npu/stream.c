/* Streams, events and fences. An event is a position in a stream, so a wait keeps meaning the record that it was made
 * after, whatever is recorded later. */
#include "npu.h"

/* A stream with work left is taken away by the device's thread, once it is empty. */
static void stream_close(heddle_pstream *stream) {
  if (stream == NULL) return;
  heddle_pdevice *dev = stream->dev;
  atomic_fetch_sub(&dev->live_objects, 1);
  pthread_mutex_lock(&dev->self->lock);
  stream->submitted = stream->head;
  stream->closed = true;
  npu_drop_closed(dev);
  pthread_cond_broadcast(&dev->self->work);
  pthread_mutex_unlock(&dev->self->lock);
}

static heddle_status stream_create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                                   heddle_error *err) {
  enum { ROOM = 256 };
  (void)kind, (void)priority;
  heddle_status s = npu_check(dev, err);
  if (s != HEDDLE_OK) return s;
  heddle_pstream *stream = npu_new(dev->host, sizeof *stream);
  if (stream != NULL) stream->ring = npu_new(dev->host, ROOM * sizeof *stream->ring);
  if (stream == NULL || stream->ring == NULL) {
    dev->host->free(dev->host->ctx, stream);
    return p_fail(err, HEDDLE_ENOMEM, 0, "npu:0: no memory for a stream");
  }
  stream->self = dev->self;
  stream->dev = dev;
  stream->room = ROOM;
  stream->refs = 1;
  pthread_mutex_lock(&dev->self->lock);
  stream->next = dev->streams;
  dev->streams = stream;
  pthread_mutex_unlock(&dev->self->lock);
  atomic_fetch_add(&dev->live_objects, 1);
  *out = stream;
  return HEDDLE_OK;
}

static heddle_status stream_submit(heddle_pstream *stream, heddle_error *err) {
  npu_submit(stream);
  return npu_check(stream->dev, err);
}

static heddle_status stream_query(heddle_pstream *stream, heddle_error *err) {
  pthread_mutex_lock(&stream->dev->self->lock);
  const bool busy = stream->tail != stream->submitted;
  pthread_mutex_unlock(&stream->dev->self->lock);
  const heddle_status s = npu_check(stream->dev, err);
  if (s != HEDDLE_OK || !busy) return s;
  return p_fail(err, HEDDLE_EBUSY, 0, "npu:0: there is work left in the stream");
}

const heddle_stream_table npu_stream_table = {
    .struct_size = sizeof npu_stream_table,
    .close = stream_close,
    .create = stream_create,
    .submit = stream_submit,
    .sync = npu_finish,
    .query = stream_query,
};

/* ---------------------------------------------------------------- events */

static void event_free(heddle_pevent *event) {
  if (event == NULL) return;
  heddle_pdevice *dev = event->dev;
  pthread_mutex_lock(&dev->self->lock);
  npu_stream_drop(event->stream);
  pthread_mutex_unlock(&dev->self->lock);
  atomic_fetch_sub(&dev->live_objects, 1);
  dev->host->free(dev->host->ctx, event);
}

static heddle_status event_create(heddle_pdevice *dev, heddle_pevent **out, heddle_error *err) {
  heddle_status s = npu_check(dev, err);
  if (s != HEDDLE_OK) return s;
  heddle_pevent *event = npu_new(dev->host, sizeof *event);
  if (event == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "npu:0: no memory for an event");
  event->dev = dev;
  atomic_fetch_add(&dev->live_objects, 1);
  *out = event;
  return HEDDLE_OK;
}

static heddle_status event_record(heddle_pevent *event, heddle_pstream *stream, heddle_error *err) {
  heddle_status s = npu_check(stream->dev, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&stream->dev->self->lock);
  stream->refs++;
  npu_stream_drop(event->stream);
  event->stream = stream;
  event->position = stream->head;
  pthread_mutex_unlock(&stream->dev->self->lock);
  return HEDDLE_OK;
}

static heddle_status event_wait(heddle_pstream *stream, heddle_pevent *event, heddle_error *err) {
  npu_cmd cmd = {.kind = NPU_CMD_WAIT};
  pthread_mutex_lock(&stream->dev->self->lock);
  cmd.stream = event->stream;
  cmd.value = event->position;
  if (cmd.stream != NULL) cmd.stream->refs++; /* the event may be recorded anew as soon as the lock is given up */
  pthread_mutex_unlock(&stream->dev->self->lock);
  const bool pushes = cmd.stream != NULL && cmd.stream != stream;
  const heddle_status s = pushes ? npu_push(stream, &cmd, err) : npu_check(stream->dev, err);
  if (pushes && s == HEDDLE_OK) return HEDDLE_OK; /* the command has the reference */
  pthread_mutex_lock(&stream->dev->self->lock);
  npu_stream_drop(cmd.stream);
  pthread_mutex_unlock(&stream->dev->self->lock);
  return s;
}

const heddle_event_table npu_event_table = {
    .struct_size = sizeof npu_event_table,
    .free = event_free,
    .create = event_create,
    .record = event_record,
    .wait = event_wait,
};

/* ---------------------------------------------------------------- fences */

static heddle_status fence_signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  const npu_cmd cmd = {.kind = NPU_CMD_SIGNAL, .fence = fence, .value = value};
  const heddle_host *host = stream->dev->host;
  heddle_error own;
  if (err == NULL) err = &own;
  const heddle_status s = npu_push(stream, &cmd, err);
  if (s != HEDDLE_OK) host->fence_fail(host->ctx, fence, s, err->text); /* waiters must get the failure */
  npu_submit(stream);
  return s;
}

const heddle_fence_table npu_fence_table = {.struct_size = sizeof npu_fence_table, .signal = fence_signal};
