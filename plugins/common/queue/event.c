/* Events and fences. A record is a command that reaches a point, and a wait holds that point, so that it keeps its meaning
 * when the event is recorded again. */
#include "plugins/common/queue/inside.h"

void queue_point_drop(const heddle_host *host, queue_point *point) {
  if (point != NULL && --point->refs == 0) host->free(host->ctx, point);
}

static void drop(heddle_pdevice *dev, queue_point *point) {
  pthread_mutex_lock(&dev->lock);
  queue_point_drop(dev->host, point);
  pthread_mutex_unlock(&dev->lock);
}

static void event_free(heddle_pevent *event) {
  if (event == NULL) return;
  heddle_pdevice *dev = event->dev;
  drop(dev, event->point);
  queue_count(dev, HEDDLE_QUERY_LIVE_OBJECTS, -1);
  dev->host->free(dev->host->ctx, event);
}

static heddle_status event_create(heddle_pdevice *dev, heddle_pevent **out, heddle_error *err) {
  heddle_status s = queue_check(dev, err);
  if (s != HEDDLE_OK) return s;
  heddle_pevent *event = queue_new(dev->host, sizeof *event);
  if (event == NULL)
    return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no memory for an event", dev->driver->name, dev->index);
  event->dev = dev;
  queue_count(dev, HEDDLE_QUERY_LIVE_OBJECTS, 1);
  *out = event;
  return HEDDLE_OK;
}

static heddle_status check(const heddle_pevent *event, const heddle_pstream *stream, heddle_error *err) {
  if (event != NULL && event->dev == stream->dev) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: the event is not of this device", stream->dev->driver->name,
                stream->dev->index);
}

/* The event's own point again where nothing else holds it, else a new one; with the reference of a command. */
static queue_point *next_point(heddle_pevent *event) {
  heddle_pdevice *dev = event->dev;
  pthread_mutex_lock(&dev->lock);
  queue_point *point = event->point != NULL && event->point->refs == 1 ? event->point : NULL;
  if (point != NULL) point->refs++, point->reached = false;
  pthread_mutex_unlock(&dev->lock);
  if (point != NULL) return point;
  point = queue_new(dev->host, sizeof *point);
  if (point == NULL) return NULL;
  point->refs = 2;
  pthread_mutex_lock(&dev->lock);
  queue_point_drop(dev->host, event->point);
  event->point = point;
  pthread_mutex_unlock(&dev->lock);
  return point;
}

static heddle_status event_record(heddle_pevent *event, heddle_pstream *stream, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  heddle_status s = check(event, stream, err);
  if (s == HEDDLE_OK) s = queue_check(dev, err);
  if (s != HEDDLE_OK) return s;
  queue_cmd cmd = {.kind = CMD_RECORD};
  cmd.u.point = next_point(event);
  if (cmd.u.point == NULL)
    return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no memory for an event", dev->driver->name, dev->index);
  s = queue_push(stream, &cmd, err);
  pthread_mutex_lock(&dev->lock);
  event->stream = stream;
  if (s != HEDDLE_OK) { /* it counts as reached */
    cmd.u.point->reached = true;
    queue_point_drop(dev->host, cmd.u.point);
  }
  pthread_mutex_unlock(&dev->lock);
  return s;
}

static heddle_status event_wait(heddle_pstream *stream, heddle_pevent *event, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  heddle_status s = check(event, stream, err);
  if (s == HEDDLE_OK) s = queue_check(dev, err);
  if (s != HEDDLE_OK) return s;
  queue_cmd cmd = {.kind = CMD_WAIT};
  pthread_mutex_lock(&dev->lock);
  if (event->stream != stream) cmd.u.point = event->point; /* a stream is behind its own work anyway */
  if (cmd.u.point != NULL) cmd.u.point->refs++;
  pthread_mutex_unlock(&dev->lock);
  if (cmd.u.point == NULL) return HEDDLE_OK;
  s = queue_push(stream, &cmd, err);
  if (s != HEDDLE_OK) drop(dev, cmd.u.point);
  return s;
}

const heddle_event_table queue_event_table = {
    .struct_size = sizeof queue_event_table,
    .free = event_free,
    .create = event_create,
    .record = event_record,
    .wait = event_wait,
};

/* ---------------------------------------------------------------- fences */

static heddle_status fence_signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  queue_cmd cmd = {.kind = CMD_SIGNAL};
  const heddle_host *host = stream->dev->host;
  heddle_error own;
  if (err == NULL) err = &own;
  cmd.u.fence.fence = fence;
  cmd.u.fence.value = value;
  const heddle_status s = queue_push(stream, &cmd, err);
  if (s == HEDDLE_OK) queue_submit(stream);
  else if (s != HEDDLE_EINVAL) host->fence_fail(host->ctx, fence, s, err->text); /* its waiters get the failure */
  return s;
}

static heddle_status fence_wait(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  queue_cmd cmd = {.kind = CMD_FENCE_WAIT};
  cmd.u.fence.fence = fence;
  cmd.u.fence.value = value;
  return queue_push(stream, &cmd, err);
}

const heddle_fence_table queue_fence_table = {
    .struct_size = sizeof queue_fence_table, .signal = fence_signal, .wait = fence_wait};
