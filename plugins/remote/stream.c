/* Streams: rings of commands, which the link's sender takes in order, and which end when the server has reported it. */
#include "plugins/remote/remote.h"

#include <errno.h>

enum { FIRST_ROOM = 64 };

static heddle_status no_capture(const heddle_pstream *stream, const char *what, heddle_error *err) {
  if (stream->capture == NULL) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "remote:%u: %s is not allowed while a capture is open on the stream",
                stream->dev->index, what);
}

/* ---------------------------------------------------------------- putting in */

/* A larger ring with the same commands. Called and left with the lock held, which is released meanwhile. */
static bool grow(heddle_pstream *stream) {
  heddle_pdevice *dev = stream->dev;
  const uint64_t room = stream->room * 2;
  pthread_mutex_unlock(&dev->link->lock);
  remote_cmd *ring = dev->host->alloc(dev->host->ctx, room * sizeof *ring, 64), *old = ring;
  pthread_mutex_lock(&dev->link->lock);
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
static heddle_status record(heddle_pgraph *graph, const remote_cmd *cmd, heddle_error *err) {
  const heddle_host *host = graph->dev->host;
  const bool full = graph->count + (cmd->kind == CMD_RUN ? 0 : graph->places) >= graph->room;
  if (full && cmd->kind == CMD_RUN)
    return p_fail(err, HEDDLE_ELIMIT, 0, "remote:%u: %llu commands are in the capture: no place for a launch",
                  graph->dev->index, (unsigned long long)graph->count);
  if (full) {
    remote_cmd *row = host->alloc(host->ctx, 2 * graph->room * sizeof *row, 64);
    if (row == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "remote: no memory to record more commands");
    memcpy(row, graph->row, graph->count * sizeof *row);
    host->free(host->ctx, graph->row);
    graph->row = row;
    graph->room *= 2;
  }
  graph->row[graph->count++] = *cmd;
  if (cmd->kind == CMD_WRITE) graph->in_bytes += cmd->bytes;
  if (cmd->kind == CMD_READ) graph->out_bytes += cmd->bytes;
  return HEDDLE_OK;
}

heddle_status remote_push(heddle_pstream *stream, const remote_cmd *cmd, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  const bool is_launch = cmd->kind == CMD_RUN;
  heddle_status s = remote_check(dev, err);
  if (s != HEDDLE_OK) return s;
  if (stream->capture != NULL) {
    if (cmd->kind >= CMD_WRITE && cmd->kind <= CMD_RUN) return record(stream->capture, cmd, err);
    return no_capture(stream, "a command other than a launch or a copy", err);
  }
  pthread_mutex_lock(&dev->link->lock);
  s = remote_check(dev, err); /* what is put in from here on is seen by who loses the device */
  bool has_room = (stream->head - stream->tail) * (is_launch ? 1 : 2) < stream->room;
  if (s == HEDDLE_OK && !has_room && !is_launch) has_room = grow(stream); /* half of it is for launches */
  if (s == HEDDLE_OK && has_room) stream->ring[stream->head++ % stream->room] = *cmd;
  const unsigned long long room = stream->room;
  pthread_mutex_unlock(&dev->link->lock);
  if (s != HEDDLE_OK || has_room) return s;
  return p_fail(err, is_launch ? HEDDLE_ELIMIT : HEDDLE_ENOMEM, 0,
                "remote:%u: no place for more than %llu pending commands", dev->index, room);
}

heddle_status remote_stream_take(heddle_pstream *stream, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  bool done = true;
  pthread_mutex_lock(&dev->link->lock);
  stream->refs++;
  stream->places += REMOTE_PENDING;
  while (done && stream->room < 2 * stream->places) done = grow(stream);
  if (!done) stream->refs--, stream->places -= REMOTE_PENDING; /* the host has a reference too */
  pthread_mutex_unlock(&dev->link->lock);
  return done ? HEDDLE_OK : p_fail(err, HEDDLE_ENOMEM, 0, "remote: no memory for a launch's commands");
}

void remote_stream_free(heddle_pstream *stream) {
  const heddle_host *host = stream->dev->host;
  host->free(host->ctx, stream->ring);
  host->free(host->ctx, stream);
}

void remote_stream_give(heddle_pstream *stream) {
  heddle_pdevice *dev = stream->dev;
  pthread_mutex_lock(&dev->link->lock);
  stream->places -= REMOTE_PENDING;
  const bool last = --stream->refs == 0;
  pthread_mutex_unlock(&dev->link->lock);
  if (last) remote_stream_free(stream);
}

static bool is_over(const heddle_pstream *s) {
  return s->closed && !s->sending && (s->tail == s->submitted || atomic_load(&s->dev->lost));
}

void remote_drop_closed(remote_link *link) {
  for (heddle_pstream **at = &link->streams; *at != NULL;) {
    heddle_pstream *s = *at;
    if (!is_over(s) || s->dev->moving > 0) {
      at = &s->next;
      continue;
    }
    *at = s->next;
    if (--s->refs == 0) remote_stream_free(s);
  }
}

/* ---------------------------------------------------------------- ending */

bool remote_advance(heddle_pstream *stream, uint64_t position, remote_cmd *signal) {
  while (stream->tail < stream->sent) {
    const remote_cmd *cmd = &stream->ring[stream->tail % stream->room];
    if (cmd->kind == CMD_SIGNAL) {
      *signal = *cmd;
      stream->tail++;
      return true;
    }
    if (stream->tail >= position) break;
    stream->tail++;
  }
  return false;
}

void remote_submit(heddle_pstream *stream) {
  pthread_mutex_lock(&stream->dev->link->lock);
  if (stream->submitted != stream->head) {
    stream->submitted = stream->head;
    if (!remote_send_now(stream->dev->link)) pthread_cond_signal(&stream->dev->link->work);
  }
  pthread_mutex_unlock(&stream->dev->link->lock);
}

/* Work that follows a failure counts again at the server, too: frames are sent before a stream's work. */
static void resume(heddle_pstream *stream) {
  byte_buffer b = {0};
  wire_begin(&b);
  byte_put_u64(&b, 0);
  if (remote_post(stream->dev->link, WIRE_RESUME, stream->id, &b, NULL) != HEDDLE_OK)
    remote_link_lose(stream->dev->link, 0, "no memory for a message");
}

/* must_end: the caller's memory is used by the last command. Only a sync forgets a failure. */
static heddle_status wait_for(heddle_pstream *stream, uint64_t timeout_ns, bool must_end, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  remote_link *link = dev->link;
  const struct timespec until = remote_deadline(timeout_ns);
  int code = 0;
  remote_submit(stream);
  pthread_mutex_lock(&link->lock);
  const uint64_t position = stream->submitted;
  /* The server may answer before the thread that sent the caller's bytes is through with them. */
  while ((stream->tail < position || (must_end && stream->sending)) && code != ETIMEDOUT &&
         !(atomic_load(&dev->lost) && (!must_end || dev->moving == 0)))
    code = must_end ? pthread_cond_wait(&link->done, &link->lock)
                    : pthread_cond_timedwait(&link->done, &link->lock, &until);
  const bool late = stream->tail < position;
  if (late) dev->detached = true;
  heddle_status s = late ? HEDDLE_OK : stream->failure.status;
  if (s != HEDDLE_OK && err != NULL) *err = stream->failure;
  const bool forgets = s != HEDDLE_OK && !must_end && !atomic_load(&dev->lost);
  if (forgets) stream->failure.status = HEDDLE_OK;
  pthread_mutex_unlock(&link->lock);
  if (forgets) resume(stream);
  if (atomic_load(&dev->lost)) return remote_check(dev, err);
  if (!late) return s;
  return p_fail(err, HEDDLE_ETIMEOUT, 0, "remote:%u: the work in the stream did not end in time", dev->index);
}

heddle_status remote_finish(heddle_pstream *stream, heddle_error *err) {
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
  remote_submit(stream);
  return remote_check(stream->dev, err);
}

static heddle_status stream_query(heddle_pstream *stream, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  pthread_mutex_lock(&dev->link->lock);
  const bool busy = stream->tail != stream->submitted;
  const heddle_status failed = stream->failure.status;
  if (failed != HEDDLE_OK && err != NULL) *err = stream->failure;
  pthread_mutex_unlock(&dev->link->lock);
  if (atomic_load(&dev->lost)) return remote_check(dev, err);
  if (failed != HEDDLE_OK || !busy) return failed;
  return p_fail(err, HEDDLE_EBUSY, 0, "remote:%u: there is work left in the stream", dev->index);
}

/* ---------------------------------------------------------------- making and closing */

static heddle_status stream_create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                                   heddle_error *err) {
  uint64_t id = 0;
  heddle_status s = remote_check(dev, err);
  if (s != HEDDLE_OK) return s;
  heddle_pstream *stream = remote_new(dev->host, sizeof *stream);
  if (stream != NULL) stream->ring = remote_new(dev->host, FIRST_ROOM * sizeof *stream->ring);
  if (stream == NULL || stream->ring == NULL) {
    dev->host->free(dev->host->ctx, stream);
    return p_fail(err, HEDDLE_ENOMEM, 0, "remote:%u: no memory for a stream", dev->index);
  }
  byte_buffer b = {0};
  wire_begin(&b);
  byte_put_u32(&b, dev->remote);
  byte_put_u32(&b, kind);
  byte_put_u32(&b, (uint32_t)priority);
  s = remote_ask_number(dev->link, WIRE_STREAM, &b, &id, err);
  if (s != HEDDLE_OK) {
    dev->host->free(dev->host->ctx, stream->ring);
    dev->host->free(dev->host->ctx, stream);
    return s;
  }
  stream->dev = dev;
  stream->id = (uint32_t)id;
  stream->room = FIRST_ROOM;
  stream->refs = 1;
  pthread_mutex_lock(&dev->link->lock);
  stream->next = dev->link->streams;
  dev->link->streams = stream;
  pthread_mutex_unlock(&dev->link->lock);
  remote_count(dev, HEDDLE_QUERY_LIVE_OBJECTS, 1);
  *out = stream;
  return HEDDLE_OK;
}

/* Work that is left goes on; the stream is taken away when it has ended. The server's is freed with its device. */
static void stream_close(heddle_pstream *stream) {
  if (stream == NULL) return;
  heddle_pdevice *dev = stream->dev;
  remote_count(dev, HEDDLE_QUERY_LIVE_OBJECTS, -1);
  remote_capture_table.free(stream->capture);
  stream->capture = NULL;
  pthread_mutex_lock(&dev->link->lock);
  stream->submitted = stream->head;
  stream->closed = true;
  const bool is_quiet = stream->tail == stream->submitted;
  const uint32_t id = stream->id;
  remote_drop_closed(dev->link);
  pthread_cond_signal(&dev->link->work);
  pthread_mutex_unlock(&dev->link->lock);
  if (is_quiet) remote_forget(dev->link, id);
}

const heddle_stream_table remote_stream_table = {
    .struct_size = sizeof remote_stream_table,
    .close = stream_close,
    .create = stream_create,
    .submit = stream_submit,
    .sync = stream_sync,
    .query = stream_query,
};
