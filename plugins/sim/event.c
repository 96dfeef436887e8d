/* Events: a record is a position in a stream, and a wait is a command that waits until that stream has got there. So a
 * wait keeps meaning the record that it was made after, whatever is recorded later. */
#include "stream.h"

struct heddle_pevent {
  uint32_t magic;
  heddle_pdevice *dev;
  pthread_mutex_t lock; /* guards the last record; a leaf */
  heddle_pstream *stream;
  uint64_t position;
};

static bool event_ok(const heddle_pevent *event) {
  return event != NULL && event->magic == SIM_MAGIC_EVENT;
}

static void event_free(heddle_pevent *event) {
  if (!event_ok(event)) return;
  heddle_pdevice *dev = event->dev;
  event->magic = SIM_MAGIC_DEAD;
  pthread_mutex_destroy(&event->lock);
  dev->host->free(dev->host->ctx, event); /* a wait that is pending holds the position, not the event */
  atomic_fetch_sub(&dev->live_objects, 1);
}

static heddle_status event_create(heddle_pdevice *dev, heddle_pevent **out, heddle_error *err) {
  heddle_status status = sim_enter(dev, SIM_CALL_EVENT, err);
  if (status != HEDDLE_OK) return status;
  heddle_pevent *event = sim_alloc(dev->host, sizeof *event);
  if (event == NULL || pthread_mutex_init(&event->lock, NULL) != 0) {
    dev->host->free(dev->host->ctx, event);
    return p_fail(err, HEDDLE_ENOMEM, 0, "sim:%u: no memory for an event", dev->index);
  }
  event->magic = SIM_MAGIC_EVENT;
  event->dev = dev;
  atomic_fetch_add(&dev->live_objects, 1);
  *out = event;
  return HEDDLE_OK;
}

static heddle_status check(heddle_pstream *stream, const heddle_pevent *event, const char *what, heddle_error *err) {
  heddle_status status = sim_stream_no_capture(stream, what, err);
  if (status != HEDDLE_OK) return status;
  if (!event_ok(event)) return p_fail(err, HEDDLE_EINVAL, 0, "%s: the handle is no live event of sim", what);
  if (event->dev->self != stream->self || event->dev->event_domain != stream->dev->event_domain)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s: the event of sim:%u does not reach sim:%u, another event domain", what,
                  event->dev->index, stream->dev->index);
  return HEDDLE_OK;
}

static heddle_status event_record(heddle_pevent *event, heddle_pstream *stream, heddle_error *err) {
  sim_cmd cmd = {.kind = SIM_CMD_RECORD};
  heddle_status status = sim_stream_enter(stream, SIM_CALL_RECORD, &cmd, err);
  if (status == HEDDLE_OK) status = check(stream, event, "event record", err);
  if (status == HEDDLE_OK) status = sim_push(stream, &cmd, err);
  if (status != HEDDLE_OK) return status;
  pthread_mutex_lock(&event->lock);
  event->stream = stream;
  event->position = stream->head;
  pthread_mutex_unlock(&event->lock);
  return HEDDLE_OK;
}

static heddle_status event_wait(heddle_pstream *stream, heddle_pevent *event, heddle_error *err) {
  sim_cmd cmd = {.kind = SIM_CMD_WAIT};
  heddle_status status = sim_stream_enter(stream, SIM_CALL_WAIT, &cmd, err);
  if (status == HEDDLE_OK) status = check(stream, event, "event wait", err);
  if (status != HEDDLE_OK) return status;
  pthread_mutex_lock(&event->lock);
  cmd.u.wait.stream = event->stream;
  cmd.u.wait.position = event->position;
  pthread_mutex_unlock(&event->lock);
  bool needless = cmd.u.wait.stream == NULL || cmd.u.wait.stream == stream;
  return needless && cmd.flags == 0 ? HEDDLE_OK : sim_push(stream, &cmd, err);
}

const heddle_event_table sim_event_table = {
    .struct_size = sizeof(heddle_event_table),
    .free = event_free,
    .create = event_create,
    .record = event_record,
    .wait = event_wait,
};
