/* Streams: rings of commands with one writer and one of the device's threads as the reader. */
#include "plugins/common/queue/inside.h"

#include <errno.h>

enum { FIRST_ROOM = 64 };

static heddle_status no_capture(const heddle_pstream *stream, const char *what, heddle_error *err) {
  if (stream->capture == NULL) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: %s is not allowed while a capture is open on the stream",
                stream->dev->driver->name, stream->dev->index, what);
}

/* ---------------------------------------------------------------- putting in */

/* A larger ring with the same commands. Called and left with the lock held, which is released meanwhile. Any thread. */
static bool grow(heddle_pstream *stream) {
  heddle_pdevice *dev = stream->dev;
  const uint64_t room = stream->room * 2;
  pthread_mutex_unlock(&dev->lock);
  queue_cmd *ring = dev->host->alloc(dev->host->ctx, room * sizeof *ring, 64), *old = ring;
  pthread_mutex_lock(&dev->lock);
  if (ring != NULL && stream->room < room) { /* else another thread was faster */
    for (uint64_t i = stream->tail; i != stream->head; i++) ring[i % room] = stream->ring[i % stream->room];
    old = stream->ring;
    stream->ring = ring;
    stream->room = room;
  }
  dev->host->free(dev->host->ctx, old);
  return ring != NULL;
}

/* A capture is the writer's alone until it ends. */
static heddle_status record(heddle_pgraph *graph, const queue_cmd *cmd, heddle_error *err) {
  const heddle_host *host = graph->dev->host;
  const char *name = graph->dev->driver->name;
  const bool full = graph->count + (cmd->kind == CMD_RUN ? 0 : graph->places) >= graph->room;
  if (full && cmd->kind == CMD_RUN)
    return p_fail(err, HEDDLE_ELIMIT, 0, "%s:%u: %llu commands are in the capture: no place for a launch", name,
                  graph->dev->index, (unsigned long long)graph->count);
  if (full) {
    queue_cmd *row = host->alloc(host->ctx, 2 * graph->room * sizeof *row, 64);
    if (row == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "%s: no memory to record more commands", name);
    memcpy(row, graph->row, graph->count * sizeof *row);
    host->free(host->ctx, graph->row);
    graph->row = row;
    graph->room *= 2;
  }
  graph->row[graph->count++] = *cmd;
  return HEDDLE_OK;
}

heddle_status queue_push(heddle_pstream *stream, const queue_cmd *cmd, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  const bool is_launch = cmd->kind == CMD_RUN;
  heddle_status s = queue_check(dev, err);
  if (s != HEDDLE_OK) return s;
  if (stream->capture != NULL) {
    if (is_launch || cmd->kind == CMD_COPY) return record(stream->capture, cmd, err);
    return no_capture(stream, "a command other than a launch or a copy", err);
  }
  pthread_mutex_lock(&dev->lock);
  s = queue_check(dev, err); /* what is put in from here on is seen by who loses the device */
  bool has_room = (stream->head - stream->tail) * (is_launch ? 1 : 2) < stream->room;
  if (s == HEDDLE_OK && !has_room && !is_launch) has_room = grow(stream); /* half of it is for launches */
  if (s == HEDDLE_OK && has_room) stream->ring[stream->head++ % stream->room] = *cmd;
  const unsigned long long room = stream->room;
  pthread_mutex_unlock(&dev->lock);
  if (s != HEDDLE_OK || has_room) return s;
  return p_fail(err, is_launch ? HEDDLE_ELIMIT : HEDDLE_ENOMEM, 0,
                "%s:%u: no place for more than %llu pending commands", dev->driver->name, dev->index, room);
}

heddle_status queue_stream_take(heddle_pstream *stream, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  bool done = true;
  pthread_mutex_lock(&dev->lock);
  stream->refs++;
  stream->places += QUEUE_PENDING;
  while (done && stream->room < 2 * stream->places) done = grow(stream);
  if (!done) stream->refs--, stream->places -= QUEUE_PENDING; /* the host has a reference too */
  pthread_mutex_unlock(&dev->lock);
  return done ? HEDDLE_OK : p_fail(err, HEDDLE_ENOMEM, 0, "%s: no memory for a launch's commands", dev->driver->name);
}

void queue_stream_free(heddle_pstream *stream) {
  const heddle_host *host = stream->dev->host;
  host->free(host->ctx, stream->ring);
  host->free(host->ctx, stream);
}

void queue_stream_give(heddle_pstream *stream) {
  heddle_pdevice *dev = stream->dev;
  pthread_mutex_lock(&dev->lock);
  stream->places -= QUEUE_PENDING;
  const bool last = --stream->refs == 0;
  pthread_mutex_unlock(&dev->lock);
  if (last) queue_stream_free(stream);
}

void queue_drop_closed(heddle_pdevice *dev) {
  for (heddle_pstream **link = &dev->streams; *link != NULL;) {
    heddle_pstream *s = *link;
    if (!s->closed || s->tail != s->submitted) {
      link = &s->next;
      continue;
    }
    *link = s->next;
    if (--s->refs == 0) queue_stream_free(s);
  }
}

/* ---------------------------------------------------------------- submitting and waiting */

void queue_submit(heddle_pstream *stream) {
  pthread_mutex_lock(&stream->dev->lock);
  stream->submitted = stream->head;
  pthread_cond_broadcast(&stream->dev->work);
  pthread_mutex_unlock(&stream->dev->lock);
}

/* must_end: the caller's memory is used by the last command. Only a sync forgets a failure. */
static heddle_status wait_for(heddle_pstream *stream, uint64_t timeout_ns, bool must_end, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  const struct timespec until = queue_deadline(timeout_ns);
  int code = 0;
  queue_submit(stream);
  pthread_mutex_lock(&dev->lock);
  const uint64_t position = stream->submitted;
  while (stream->tail < position && code != ETIMEDOUT && (must_end || !atomic_load(&dev->lost)))
    code =
        must_end ? pthread_cond_wait(&dev->done, &dev->lock) : pthread_cond_timedwait(&dev->done, &dev->lock, &until);
  const bool late = stream->tail < position;
  if (late) dev->detached = true;
  heddle_status s = late ? HEDDLE_OK : stream->failure.status;
  if (s != HEDDLE_OK && err != NULL) *err = stream->failure;
  if (!late && !must_end) stream->failure.status = HEDDLE_OK;
  pthread_mutex_unlock(&dev->lock);
  if (atomic_load(&dev->lost)) return queue_check(dev, err);
  if (!late) return s;
  return p_fail(err, HEDDLE_ETIMEOUT, 0, "%s:%u: the work in the stream did not end in time", dev->driver->name,
                dev->index);
}

heddle_status queue_finish(heddle_pstream *stream, heddle_error *err) {
  const heddle_status s = no_capture(stream, "copying from or to a pointer", err);
  return s == HEDDLE_OK ? wait_for(stream, 0, true, err) : s;
}

static heddle_status stream_sync(heddle_pstream *stream, uint64_t timeout_ns, heddle_error *err) {
  const heddle_status s = no_capture(stream, "sync", err);
  return s == HEDDLE_OK ? wait_for(stream, timeout_ns, false, err) : s;
}

static heddle_status stream_submit(heddle_pstream *stream, heddle_error *err) {
  const heddle_status s = no_capture(stream, "submit", err);
  if (s != HEDDLE_OK) return s;
  queue_submit(stream);
  return queue_check(stream->dev, err);
}

static heddle_status stream_query(heddle_pstream *stream, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  pthread_mutex_lock(&dev->lock);
  const bool busy = stream->tail != stream->submitted;
  const heddle_status failed = stream->failure.status;
  if (failed != HEDDLE_OK && err != NULL) *err = stream->failure;
  pthread_mutex_unlock(&dev->lock);
  if (atomic_load(&dev->lost)) return queue_check(dev, err);
  if (!busy) return failed;
  return p_fail(err, HEDDLE_EBUSY, 0, "%s:%u: there is work left in the stream", dev->driver->name, dev->index);
}

/* ---------------------------------------------------------------- making and closing */

static heddle_status stream_create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                                   heddle_error *err) {
  (void)priority;
  heddle_status s = queue_check(dev, err);
  if (s != HEDDLE_OK) return s;
  heddle_pstream *stream = queue_new(dev->host, sizeof *stream);
  if (stream != NULL) stream->ring = queue_new(dev->host, FIRST_ROOM * sizeof *stream->ring);
  if (stream == NULL || stream->ring == NULL) {
    dev->host->free(dev->host->ctx, stream);
    return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no memory for a stream", dev->driver->name, dev->index);
  }
  stream->dev = dev;
  stream->room = FIRST_ROOM;
  stream->refs = 1;
  stream->thread = kind == HEDDLE_STREAM_COPY && dev->driver->copy_thread ? 1 : 0;
  pthread_mutex_lock(&dev->lock);
  stream->next = dev->streams;
  dev->streams = stream;
  pthread_mutex_unlock(&dev->lock);
  queue_count(dev, HEDDLE_QUERY_LIVE_OBJECTS, 1);
  *out = stream;
  return HEDDLE_OK;
}

/* Work that is left goes on; the thread takes the stream away when it has ended. */
static void stream_close(heddle_pstream *stream) {
  if (stream == NULL) return;
  heddle_pdevice *dev = stream->dev;
  queue_count(dev, HEDDLE_QUERY_LIVE_OBJECTS, -1);
  queue_capture_table.free(stream->capture);
  stream->capture = NULL;
  pthread_mutex_lock(&dev->lock);
  stream->submitted = stream->head;
  stream->closed = true;
  queue_drop_closed(dev);
  pthread_cond_broadcast(&dev->work);
  pthread_mutex_unlock(&dev->lock);
}

const heddle_stream_table queue_stream_table = {
    .struct_size = sizeof queue_stream_table,
    .close = stream_close,
    .create = stream_create,
    .submit = stream_submit,
    .sync = stream_sync,
    .query = stream_query,
};
