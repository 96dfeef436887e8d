/* remote/work.c: the work of streams. A failure stays with its stream, whose work is passed over until the client says that it
 * knows; the bytes that follow a message are read in any case. */
#include <stdlib.h>
#include <string.h>

#include "plugins/common/perror.h"
#include "remote/session.h"

enum { LONGEST_WORK = 64 };

static void fail(remote_stream *st, heddle_status status, const heddle_error *err) {
  if (status == HEDDLE_OK || st->failure.status != HEDDLE_OK) return;
  st->failure = *err;
  st->failure.status = status;
}

/* ---- bytes */

static bool drop(remote_session *s, uint64_t bytes) {
  while (bytes > 0) {
    const size_t n = bytes < REMOTE_PIECE ? (size_t)bytes : REMOTE_PIECE;
    if (!transport_receive(s->t, s->piece, n)) return false;
    bytes -= n;
  }
  return true;
}

/* From the client into a buffer, whose range was checked. false: the connection has ended. */
static bool take_bytes(remote_session *s, remote_stream *st, const remote_buffer *b, uint64_t offset, uint64_t bytes) {
  enum { PIECE = 1 << 18 };
  heddle_error err = {0};
  if (b->address != NULL) return transport_receive(s->t, b->address + offset, (size_t)bytes);
  while (bytes > 0) {
    const size_t n = bytes < PIECE ? (size_t)bytes : PIECE;
    if (!transport_receive(s->t, s->piece, n)) return false;
    if (st->failure.status == HEDDLE_OK)
      fail(st, st->device->dev->t->copy.write(st->stream, b->buffer, offset, s->piece, n, &err), &err);
    offset += n;
    bytes -= n;
  }
  st->is_dirty = true;
  return true;
}

/* From a buffer to the client, after all work of the stream has ended. false: the session cannot go on. */
static bool give_bytes(remote_session *s, remote_stream *st, const remote_buffer *b, uint64_t offset, uint64_t bytes) {
  if (b->address != NULL) return transport_send(s->t, b->address + offset, (size_t)bytes);
  while (bytes > 0) {
    const size_t n = bytes < REMOTE_PIECE ? (size_t)bytes : REMOTE_PIECE;
    if (st->device->dev->t->copy.read(st->stream, s->piece, b->buffer, offset, n, NULL) != HEDDLE_OK ||
        !transport_send(s->t, s->piece, n))
      return false;
    offset += n;
    bytes -= n;
  }
  return true;
}

/* ---- reports */

/* DONE: position, status, code, text, and the bytes that follow, which the caller sends before it gives up the lock. */
static bool begin_report(remote_session *s, const remote_stream *st, uint64_t position, uint64_t more,
                         const void *first, size_t first_bytes) {
  byte_buffer b = {0};
  wire_begin(&b);
  byte_put_u64(&b, position);
  wire_put_error(&b, st->failure.status, &st->failure);
  wire_end(&b, WIRE_DONE, st->id, st->failure.status == HEDDLE_OK ? more : 0);
  if (st->failure.status == HEDDLE_OK) byte_put(&b, first, first_bytes);
  const bool good = !b.failed && transport_send(s->t, b.data, b.used);
  byte_finish(&b);
  return good;
}

static bool report(remote_session *s, remote_stream *st, uint64_t position) {
  if (position == 0) return true;
  (void)remote_settle(st);
  pthread_mutex_lock(&s->send_lock);
  const bool good = begin_report(s, st, position, 0, NULL, 0);
  pthread_mutex_unlock(&s->send_lock);
  return good;
}

static bool report_read(remote_session *s, remote_stream *st, uint64_t position, const remote_buffer *b,
                        uint64_t offset, uint64_t bytes) {
  enum { SHORT = 1 << 14 };
  (void)remote_settle(st);
  const bool is_short = bytes <= SHORT && st->failure.status == HEDDLE_OK;
  const char *first = b->address != NULL ? b->address + offset : s->piece;
  if (is_short && b->address == NULL) {
    heddle_error err = {0};
    fail(st, st->device->dev->t->copy.read(st->stream, s->piece, b->buffer, offset, bytes, &err), &err);
  }
  pthread_mutex_lock(&s->send_lock);
  bool good = begin_report(s, st, position, bytes, first, is_short ? (size_t)bytes : 0);
  if (good && !is_short && st->failure.status == HEDDLE_OK) good = give_bytes(s, st, b, offset, bytes);
  pthread_mutex_unlock(&s->send_lock);
  return good;
}

/* ---- single pieces */

static heddle_status run_launch(remote_stream *st, const remote_launch *l, heddle_error *err) {
  const heddle__tables *t = st->device->dev->t;
  if (l->head.device != st->device || l->stream != st->id)
    return p_fail(err, HEDDLE_EINVAL, 0, "the launch is bound to another stream");
  if (l->is_short) return p_fail(err, HEDDLE_EINVAL, 0, "the launch was not resized to the shapes of its operands");
  heddle_status s = l->op->table->run(l->launch, err);
  if (s == HEDDLE_ELIMIT) { /* the row is full: places become free as work ends */
    s = t->stream.sync(st->stream, UINT64_MAX, err);
    if (s == HEDDLE_OK) s = l->op->table->run(l->launch, err);
  }
  if (s == HEDDLE_OK) s = t->stream.submit(st->stream, err);
  return s;
}

/* Between two devices of the server, directly where they can, else piece by piece through this process. */
static heddle_status copy_between(remote_session *s, remote_stream *st, const remote_buffer *to, uint64_t to_offset,
                                  const remote_buffer *from, uint64_t from_offset, uint64_t bytes, heddle_error *err) {
  const remote_device *td = to->head.device, *fd = from->head.device;
  remote_settle_all(s, td);
  remote_settle_all(s, fd);
  (void)st;
  heddle_status status = HEDDLE_OK;
  while (bytes > 0 && status == HEDDLE_OK) {
    const uint64_t n = bytes < REMOTE_PIECE ? bytes : REMOTE_PIECE;
    status = fd->dev->t->copy.read(fd->util, s->piece, from->buffer, from_offset, n, err);
    if (status == HEDDLE_OK) status = td->dev->t->copy.write(td->util, to->buffer, to_offset, s->piece, n, err);
    to_offset += n;
    from_offset += n;
    bytes -= n;
  }
  if (status == HEDDLE_OK) status = td->dev->t->stream.sync(td->util, UINT64_MAX, err);
  return status;
}

static heddle_status copy(remote_session *s, remote_stream *st, const remote_buffer *to, uint64_t to_offset,
                          const remote_buffer *from, uint64_t from_offset, uint64_t bytes, heddle_error *err) {
  if (to->head.device != st->device && from->head.device != st->device)
    return p_fail(err, HEDDLE_EINVAL, 0, "a copy is of neither side's stream");
  if (to == from && to_offset < from_offset + bytes && from_offset < to_offset + bytes)
    return p_fail(err, HEDDLE_EINVAL, 0, "the ranges of a copy overlap");
  if (to->head.device != from->head.device) return copy_between(s, st, to, to_offset, from, from_offset, bytes, err);
  return st->device->dev->t->copy.d2d(st->stream, to->buffer, to_offset, from->buffer, from_offset, bytes, err);
}

static heddle_status do_copy(remote_session *s, remote_stream *st, byte_reader *r, heddle_error *err) {
  remote_buffer *to, *from;
  const uint64_t to_handle = byte_take_u64(r), to_offset = byte_take_u64(r);
  const uint64_t from_handle = byte_take_u64(r), from_offset = byte_take_u64(r), bytes = byte_take_u64(r);
  heddle_status status = remote_get(s, to_handle, REMOTE_BUFFER, NULL, &to, err);
  if (status == HEDDLE_OK) status = remote_get(s, from_handle, REMOTE_BUFFER, NULL, &from, err);
  if (status == HEDDLE_OK) status = remote_range(to, to_offset, bytes, err);
  if (status == HEDDLE_OK) status = remote_range(from, from_offset, bytes, err);
  return status == HEDDLE_OK ? copy(s, st, to, to_offset, from, from_offset, bytes, err) : status;
}

static heddle_status do_fill(remote_session *s, remote_stream *st, byte_reader *r, heddle_error *err) {
  remote_buffer *to;
  const uint64_t handle = byte_take_u64(r), offset = byte_take_u64(r), bytes = byte_take_u64(r);
  const uint32_t pattern = byte_take_u32(r), fails = byte_take_u32(r);
  if (fails != 0) return p_fail(err, HEDDLE_EFAILED, 0, "a fill with the word of the setting fail_on_fill");
  heddle_status status = remote_get(s, handle, REMOTE_BUFFER, st->device, &to, err);
  if (status == HEDDLE_OK) status = remote_range(to, offset, bytes, err);
  if (status == HEDDLE_OK && (offset % 4 != 0 || bytes % 4 != 0))
    status = p_fail(err, HEDDLE_EINVAL, 0, "a fill is not of whole words");
  if (status == HEDDLE_OK) status = st->device->dev->t->copy.fill(st->stream, to->buffer, offset, bytes, pattern, err);
  return status;
}

/* ---- events: the failure of the work before the record goes on to the stream that waits */

static heddle_status do_record(remote_session *s, const remote_stream *st, uint64_t id, heddle_error *err) {
  uint32_t at = 0;
  if ((id & WIRE_EVENT) == 0) return p_fail(err, HEDDLE_EINVAL, 0, "the number is of no event");
  while (at < s->n_events && s->events[at].id != id) at++;
  if (at == s->n_events && at == s->event_room) {
    const uint32_t room = at > 0 ? 2 * at : 64;
    remote_event *more = room <= REMOTE_MOST_EVENTS ? realloc(s->events, room * sizeof *more) : NULL;
    if (more == NULL) return p_fail(err, HEDDLE_ELIMIT, 0, "a session has too many events, or memory is out");
    s->events = more;
    s->event_room = room;
  }
  if (at == s->n_events) s->n_events++;
  s->events[at] = (remote_event){.id = id, .stream = st->id, .failure = st->failure};
  return HEDDLE_OK;
}

static heddle_status do_wait(remote_session *s, uint64_t id, heddle_error *err) {
  const remote_event *event = NULL;
  for (uint32_t i = 0; i < s->n_events; i++)
    if (s->events[i].id == id) event = &s->events[i];
  if (event == NULL) return HEDDLE_OK; /* never recorded, or freed: it counts as reached */
  heddle_error failure = event->failure;
  remote_stream *other = remote_find_stream(s, event->stream);
  if (failure.status == HEDDLE_OK && other != NULL && other->is_dirty && remote_settle(other) != HEDDLE_OK)
    failure = other->failure;
  if (failure.status == HEDDLE_OK) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EFAILED, 0, "waited for an event whose work failed: %.700s", failure.text);
}

/* ---- replays */

static bool replay_steps(remote_session *s, remote_stream *st, const remote_graph *g) {
  uint64_t at = 0;
  heddle_error err = {0};
  for (uint32_t i = 0; i < g->tail; i++) {
    const remote_step *step = &g->steps[i];
    const remote_buffer *to = (const remote_buffer *)step->to;
    const heddle__tables *t = st->device->dev->t;
    const bool goes_on = st->failure.status == HEDDLE_OK;
    if (step->kind == WIRE_WRITE) {
      if (!(goes_on ? take_bytes(s, st, to, step->to_offset, step->bytes) : drop(s, step->bytes))) return false;
      continue;
    }
    if (!goes_on) continue;
    st->is_dirty = true;
    if (step->kind == WIRE_RUN) fail(st, run_launch(st, (const remote_launch *)step->to, &err), &err);
    else if (step->kind == WIRE_COPY)
      fail(st,
           copy(s, st, to, step->to_offset, (const remote_buffer *)step->from, step->from_offset, step->bytes, &err),
           &err);
    else if (step->kind == WIRE_FILL)
      fail(st, t->copy.fill(st->stream, to->buffer, step->to_offset, step->bytes, step->pattern, &err), &err);
    else {
      fail(st, t->copy.read(st->stream, g->out + at, to->buffer, step->to_offset, step->bytes, &err), &err);
      at += step->bytes;
    }
  }
  return true;
}

static bool replay(remote_session *s, remote_stream *st, const remote_graph *g, uint64_t position) {
  enum { SHORT = 1 << 14 };
  if (!replay_steps(s, st, g)) return false;
  if (position == 0) return true;
  if (g->out_bytes == 0) return report(s, st, position);
  if (g->count - g->tail == 1 && g->out_early == 0) {
    const remote_step *step = &g->steps[g->tail];
    return report_read(s, st, position, (const remote_buffer *)step->to, step->to_offset, step->bytes);
  }
  (void)remote_settle(st);
  pthread_mutex_lock(&s->send_lock);
  bool good = begin_report(s, st, position, g->out_bytes, g->out, (size_t)g->out_early);
  for (uint32_t i = g->tail; i < g->count && good && st->failure.status == HEDDLE_OK; i++)
    good = give_bytes(s, st, (const remote_buffer *)g->steps[i].to, g->steps[i].to_offset, g->steps[i].bytes);
  pthread_mutex_unlock(&s->send_lock);
  return good;
}

static bool do_replay(remote_session *s, remote_stream *st, uint64_t handle, uint64_t position, uint64_t follow) {
  heddle_error err = {0};
  remote_graph *g = NULL;
  heddle_status status = remote_get(s, handle, REMOTE_GRAPH, st->device, &g, &err);
  if (status == HEDDLE_OK && (follow != g->in_bytes || (g->out_bytes > 0 && position == 0)))
    status = p_fail(&err, HEDDLE_EINVAL, 0, "a replay does not fit its capture");
  if (status == HEDDLE_OK) return replay(s, st, g, position);
  fail(st, status, &err);
  return drop(s, follow) && report(s, st, position);
}

/* ---- writes and reads */

static bool do_write(remote_session *s, remote_stream *st, byte_reader *r, uint64_t position, uint64_t follow) {
  heddle_error err = {0};
  remote_buffer *b = NULL;
  const uint64_t handle = byte_take_u64(r), offset = byte_take_u64(r), bytes = byte_take_u64(r);
  if (bytes != follow) return false;
  heddle_status status = remote_get(s, handle, REMOTE_BUFFER, st->device, &b, &err);
  if (status == HEDDLE_OK) status = remote_range(b, offset, bytes, &err);
  fail(st, status, &err);
  const bool goes_on = st->failure.status == HEDDLE_OK;
  return (goes_on ? take_bytes(s, st, b, offset, bytes) : drop(s, bytes)) && report(s, st, position);
}

static bool do_read(remote_session *s, remote_stream *st, byte_reader *r, uint64_t position) {
  heddle_error err = {0};
  remote_buffer *b = NULL;
  const uint64_t handle = byte_take_u64(r), offset = byte_take_u64(r), bytes = byte_take_u64(r);
  if (position == 0) return false;
  heddle_status status = remote_get(s, handle, REMOTE_BUFFER, st->device, &b, &err);
  if (status == HEDDLE_OK) status = remote_range(b, offset, bytes, &err);
  fail(st, status, &err);
  return status == HEDDLE_OK ? report_read(s, st, position, b, offset, bytes) : report(s, st, position);
}

/* The client has returned the failure: the device's own stream forgets it, too. */
static void resume(remote_stream *st) {
  if (!heddle__device_inline(st->device->dev)) (void)st->device->dev->t->stream.sync(st->stream, UINT64_MAX, NULL);
  st->failure.status = HEDDLE_OK;
  st->is_dirty = false;
}

static heddle_status do_other(remote_session *s, remote_stream *st, uint32_t kind, byte_reader *r, heddle_error *err) {
  remote_launch *l;
  const bool goes_on = st->failure.status == HEDDLE_OK;
  if (kind == WIRE_RECORD) return do_record(s, st, byte_take_u64(r), err);
  if (!goes_on) return HEDDLE_OK;
  switch (kind) {
  case WIRE_COPY: st->is_dirty = true; return do_copy(s, st, r, err);
  case WIRE_FILL: st->is_dirty = true; return do_fill(s, st, r, err);
  case WIRE_WAIT: return do_wait(s, byte_take_u64(r), err);
  case WIRE_RUN: {
    heddle_status status = remote_get(s, byte_take_u64(r), REMOTE_LAUNCH, st->device, &l, err);
    st->is_dirty = true;
    return status == HEDDLE_OK ? run_launch(st, l, err) : status;
  }
  default: return HEDDLE_OK;
  }
}

/* Bytes of each kind's message, its position among them; those of a write and a replay are followed by more. */
static uint64_t size_of(uint32_t kind) {
  static const uint8_t words[] = {
      [WIRE_WRITE] = 4,  [WIRE_READ] = 4, [WIRE_COPY] = 6,   [WIRE_FILL] = 5, [WIRE_RUN] = 2,
      [WIRE_RECORD] = 2, [WIRE_WAIT] = 2, [WIRE_REPLAY] = 2, [WIRE_MARK] = 1, [WIRE_RESUME] = 1};
  return (uint64_t)8 * words[kind];
}

bool remote_work(remote_session *s, const wire_head *head) {
  uint8_t start[LONGEST_WORK];
  heddle_error err = {0};
  const uint64_t size = size_of(head->kind);
  const bool has_more = head->kind == WIRE_WRITE || head->kind == WIRE_REPLAY;
  remote_stream *st = remote_find_stream(s, head->id);
  if (st == NULL || head->bytes < size || (!has_more && head->bytes != size) ||
      !transport_receive(s->t, start, (size_t)size))
    return false;
  byte_reader r = {start, (size_t)size, false};
  const uint64_t position = byte_take_u64(&r);
  switch (head->kind) {
  case WIRE_WRITE: return do_write(s, st, &r, position, head->bytes - size);
  case WIRE_READ: return do_read(s, st, &r, position);
  case WIRE_REPLAY: return do_replay(s, st, byte_take_u64(&r), position, head->bytes - size);
  case WIRE_RESUME: resume(st); return true;
  default: fail(st, do_other(s, st, head->kind, &r, &err), &err); return report(s, st, position);
  }
}
