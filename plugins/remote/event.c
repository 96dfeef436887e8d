/* Events and fences. An event is a number that the client gives; the server knows it from its first record. A signal is no
 * message: it is due when all work before it was reported as ended. */
#include "plugins/remote/remote.h"

static void destroy(heddle_pdevice *dev, remote_kept *kept) {
  heddle_pevent *event = (heddle_pevent *)(void *)kept;
  if (event->records > 0) remote_forget(dev->link, event->handle);
  dev->host->free(dev->host->ctx, event);
}

static void event_free(heddle_pevent *event) {
  if (event == NULL) return;
  heddle_pdevice *dev = event->dev;
  remote_count(dev, HEDDLE_QUERY_LIVE_OBJECTS, -1);
  remote_give(dev, &event->kept);
}

static heddle_status event_create(heddle_pdevice *dev, heddle_pevent **out, heddle_error *err) {
  heddle_status s = remote_check(dev, err);
  if (s != HEDDLE_OK) return s;
  heddle_pevent *event = remote_new(dev->host, sizeof *event);
  if (event == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "remote:%u: no memory for an event", dev->index);
  event->kept.destroy = destroy;
  event->dev = dev;
  pthread_mutex_lock(&dev->link->lock);
  event->handle = WIRE_EVENT | ++dev->link->next_event;
  pthread_mutex_unlock(&dev->link->lock);
  remote_count(dev, HEDDLE_QUERY_LIVE_OBJECTS, 1);
  *out = event;
  return HEDDLE_OK;
}

static heddle_status check(const heddle_pevent *event, const heddle_pstream *stream, heddle_error *err) {
  if (event != NULL && event->dev->link == stream->dev->link) return remote_check(stream->dev, err);
  return p_fail(err, HEDDLE_EINVAL, 0, "remote:%u: the event is not of this device's session", stream->dev->index);
}

static heddle_status event_record(heddle_pevent *event, heddle_pstream *stream, heddle_error *err) {
  remote_cmd cmd = {.kind = CMD_RECORD, .event = event};
  heddle_status s = check(event, stream, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&stream->dev->link->lock);
  cmd.record = event->records + 1;
  cmd.to = event->handle;
  pthread_mutex_unlock(&stream->dev->link->lock);
  s = remote_push(stream, &cmd, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&stream->dev->link->lock);
  event->records++;
  event->stream = stream;
  pthread_mutex_unlock(&stream->dev->link->lock);
  return HEDDLE_OK;
}

static heddle_status event_wait(heddle_pstream *stream, heddle_pevent *event, heddle_error *err) {
  remote_cmd cmd = {.kind = CMD_WAIT, .event = event};
  heddle_status s = check(event, stream, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&stream->dev->link->lock);
  cmd.record = event->records;
  cmd.to = event->handle;
  const bool is_own = event->stream == stream; /* a stream is behind its own work anyway */
  pthread_mutex_unlock(&stream->dev->link->lock);
  if (cmd.record == 0 || is_own) return HEDDLE_OK;
  return remote_push(stream, &cmd, err);
}

const heddle_event_table remote_event_table = {
    .struct_size = sizeof remote_event_table,
    .free = event_free,
    .create = event_create,
    .record = event_record,
    .wait = event_wait,
};

/* ---------------------------------------------------------------- fences */

static heddle_status fence_signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  const remote_cmd cmd = {.kind = CMD_SIGNAL, .fence = fence, .value = value};
  const heddle_host *host = stream->dev->host;
  heddle_error own;
  if (err == NULL) err = &own;
  const heddle_status s = remote_push(stream, &cmd, err);
  if (s == HEDDLE_OK) remote_submit(stream);
  else if (s != HEDDLE_EINVAL) host->fence_fail(host->ctx, fence, s, err->text); /* its waiters get the failure */
  return s;
}

const heddle_fence_table remote_fence_table = {.struct_size = sizeof remote_fence_table, .signal = fence_signal};
