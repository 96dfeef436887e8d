/* The threads of a link. The sender takes frames first, then the work of streams in turn, each stream's in order. It asks the
 * server to report the end of a piece of work where something waits for it: a read, a signal, or that no more was submitted.
 * The receiver takes results and reports, and puts the bytes of reads where they belong. */
#include "plugins/remote/remote.h"

#include <stdlib.h>

enum { MOST_REPLY = 1 << 30, MOST_ONE_PIECE = 1 << 14, MOST_PIECES = 64 };

/* ---------------------------------------------------------------- signals that are due. Called and left with the lock. */

static void advance(remote_link *link, heddle_pstream *stream, uint64_t position) {
  const heddle_host *host = link->host;
  heddle_pdevice *dev = stream->dev;
  remote_cmd signal;
  dev->moving++; /* it is not closed meanwhile */
  while (remote_advance(stream, position, &signal)) {
    const heddle_error failure = stream->failure;
    const bool is_lost = atomic_load(&dev->lost);
    pthread_mutex_unlock(&link->lock);
    if (is_lost) host->fence_fail(host->ctx, signal.fence, HEDDLE_EDEVICE, dev->fault.text);
    else if (failure.status != HEDDLE_OK) host->fence_fail(host->ctx, signal.fence, failure.status, failure.text);
    else host->fence_signal(host->ctx, signal.fence, signal.value);
    pthread_mutex_lock(&link->lock);
  }
  dev->moving--;
  pthread_cond_broadcast(&link->done);
  if (link->stalled) pthread_cond_signal(&link->work);
}

/* ---------------------------------------------------------------- memory of the host: a write that follows a read of the same
 * bytes, in its stream or by an event, is sent when they have come */

static void rows_of(const remote_cmd *cmd, const remote_cmd **row, uint64_t *count) {
  const bool is_replay = cmd->kind == CMD_REPLAY;
  *row = is_replay ? cmd->graph->row : cmd;
  *count = is_replay ? cmd->graph->count : 1;
}

static bool meets(const remote_cmd *read, const remote_cmd *write) {
  const remote_cmd *reads, *writes;
  uint64_t n_reads, n_writes;
  rows_of(read, &reads, &n_reads);
  rows_of(write, &writes, &n_writes);
  for (uint64_t i = 0; i < n_writes; i++)
    for (uint64_t k = 0; k < n_reads && writes[i].kind == CMD_WRITE; k++)
      if (remote_overlaps(&reads[k], &writes[i])) return true;
  return false;
}

/* All reads that come before have been sent: their streams', and those before a record that was waited for. */
static bool waits_for_read(const remote_link *link, const remote_cmd *cmd) {
  if (cmd->kind != CMD_WRITE && (cmd->kind != CMD_REPLAY || cmd->graph->in_bytes == 0)) return false;
  for (const heddle_pstream *s = link->streams; s != NULL; s = s->next)
    for (uint64_t i = s->tail; i < s->sent; i++) {
      const remote_cmd *sent = &s->ring[i % s->room];
      const bool reads = sent->kind == CMD_READ || (sent->kind == CMD_REPLAY && sent->graph->out_bytes > 0);
      if (reads && meets(sent, cmd)) return true;
    }
  return false;
}

/* ---------------------------------------------------------------- sending */

/* The next stream with work that may be sent: a wait stays until the record that it waits for was sent. */
static heddle_pstream *pick(remote_link *link) {
  link->stalled = false;
  for (heddle_pstream *s = link->streams; s != NULL; s = s->next) {
    if (s->sent == s->submitted || atomic_load(&s->dev->lost)) continue;
    const remote_cmd *cmd = &s->ring[s->sent % s->room];
    if (cmd->kind == CMD_WAIT && cmd->event->sent < cmd->record) continue;
    if (!waits_for_read(link, cmd)) return s;
    link->stalled = true;
  }
  return NULL;
}

static void to_end(remote_link *link, heddle_pstream *stream) {
  heddle_pstream **at = &link->streams;
  if (stream->next == NULL) return;
  while (*at != stream) at = &(*at)->next;
  *at = stream->next;
  stream->next = NULL;
  while (*at != NULL) at = &(*at)->next;
  *at = stream;
}

/* The message of a command: position, then what the kind has. position 0: no report. */
static void encode(byte_buffer *b, const remote_cmd *cmd, uint64_t position, uint32_t id) {
  static const uint32_t kinds[] = {
      [CMD_NOTHING] = WIRE_MARK,  [CMD_WRITE] = WIRE_WRITE, [CMD_READ] = WIRE_READ,     [CMD_COPY] = WIRE_COPY,
      [CMD_FILL] = WIRE_FILL,     [CMD_RUN] = WIRE_RUN,     [CMD_RECORD] = WIRE_RECORD, [CMD_WAIT] = WIRE_WAIT,
      [CMD_REPLAY] = WIRE_REPLAY, [CMD_SIGNAL] = WIRE_MARK};
  uint64_t more = 0;
  wire_begin(b);
  byte_put_u64(b, position);
  switch (cmd->kind) {
  case CMD_WRITE:
  case CMD_READ:
    byte_put_u64(b, cmd->to);
    byte_put_u64(b, cmd->to_offset);
    byte_put_u64(b, cmd->bytes);
    more = cmd->kind == CMD_WRITE ? cmd->bytes : 0;
    break;
  case CMD_COPY:
    byte_put_u64(b, cmd->to);
    byte_put_u64(b, cmd->to_offset);
    byte_put_u64(b, cmd->from);
    byte_put_u64(b, cmd->from_offset);
    byte_put_u64(b, cmd->bytes);
    break;
  case CMD_FILL:
    byte_put_u64(b, cmd->to);
    byte_put_u64(b, cmd->to_offset);
    byte_put_u64(b, cmd->bytes);
    byte_put_u32(b, cmd->pattern);
    byte_put_u32(b, cmd->value != 0); /* it fails */
    break;
  case CMD_RUN:
  case CMD_RECORD:
  case CMD_WAIT: byte_put_u64(b, cmd->to); break;
  case CMD_REPLAY:
    byte_put_u64(b, cmd->graph->handle);
    more = cmd->graph->in_bytes;
    break;
  default: break;
  }
  wire_end(b, kinds[cmd->kind], id, more);
}

/* Bytes that follow the message: of a write, or of all writes of a capture. Short ones go into the same packet. */
static bool send_work(remote_link *link, byte_buffer *b, const remote_cmd *cmd) {
  const remote_cmd *row = cmd;
  uint64_t count = 1, total = cmd->bytes;
  if (cmd->kind == CMD_REPLAY) {
    row = cmd->graph->row;
    count = cmd->graph->count;
    total = cmd->graph->in_bytes;
  } else if (cmd->kind != CMD_WRITE) {
    count = total = 0;
  }
  const bool is_short = total <= MOST_ONE_PIECE;
  for (uint64_t i = 0; i < count && is_short; i++)
    if (row[i].kind == CMD_WRITE) byte_put(b, row[i].host, row[i].bytes);
  if (b->failed || !transport_send(&link->t, b->data, b->used)) return false;
  for (uint64_t i = 0; i < count && !is_short; i++)
    if (row[i].kind == CMD_WRITE && !transport_send(&link->t, row[i].host, row[i].bytes)) return false;
  return true;
}

/* Sends one command. Called and left with the lock. false: the connection has ended. */
static bool send_next(remote_link *link, heddle_pstream *stream, byte_buffer *b) {
  heddle_pdevice *dev = stream->dev;
  const remote_cmd cmd = stream->ring[stream->sent % stream->room];
  const uint64_t position = stream->sent + 1;
  const bool is_last = position == stream->submitted;
  if (cmd.kind == CMD_RECORD) cmd.event->sent = cmd.record;
  if (cmd.kind == CMD_SIGNAL && (stream->asked >= stream->sent || stream->tail == stream->sent)) {
    stream->sent = position; /* the report of the command before it counts */
    advance(link, stream, stream->tail);
    to_end(link, stream);
    return true;
  }
  const bool signals = !is_last && stream->ring[position % stream->room].kind == CMD_SIGNAL;
  const bool asks = is_last || signals || cmd.kind == CMD_READ || cmd.kind == CMD_SIGNAL ||
                    (cmd.kind == CMD_REPLAY && cmd.graph->out_bytes > 0);
  stream->sent = position;
  if (asks) stream->asked = position;
  stream->sending = true;
  dev->moving++;
  to_end(link, stream);
  pthread_mutex_unlock(&link->lock);
  b->used = 0;
  encode(b, &cmd, asks ? position : 0, stream->id);
  const bool good = send_work(link, b, &cmd);
  pthread_mutex_lock(&link->lock);
  stream->sending = false;
  dev->moving--;
  pthread_cond_broadcast(&link->done);
  return good;
}

static bool send_frame(remote_link *link) {
  remote_frame *frame = link->first;
  link->first = frame->next;
  if (link->first == NULL) link->last = &link->first;
  pthread_mutex_unlock(&link->lock);
  const bool good = transport_send(&link->t, frame->bytes.data, frame->bytes.used);
  byte_finish(&frame->bytes);
  free(frame);
  pthread_mutex_lock(&link->lock);
  return good;
}

/* Nothing else was sent for a while. */
static bool send_alive(remote_link *link) {
  uint8_t head[WIRE_HEAD];
  wire_head_put(head, &(wire_head){.kind = WIRE_ALIVE});
  pthread_mutex_unlock(&link->lock);
  const bool good = transport_send(&link->t, head, sizeof head);
  pthread_mutex_lock(&link->lock);
  return good;
}

/* One of all that waits; NULL: nothing may be sent. */
static bool send_one(remote_link *link, heddle_pstream *stream) {
  link->sending = true;
  const bool good = stream == NULL ? send_frame(link) : send_next(link, stream, &link->buffer);
  link->sending = false;
  return good;
}

static bool is_idle(const remote_link *link) {
  if (link->sending || link->first != NULL || atomic_load(&link->lost)) return false;
  for (const heddle_pstream *s = link->streams; s != NULL; s = s->next)
    if (s->tail != s->sent) return false;
  return true;
}

static uint64_t bytes_of(const heddle_pstream *stream) {
  const remote_cmd *cmd = &stream->ring[stream->sent % stream->room];
  return cmd->kind == CMD_WRITE ? cmd->bytes : cmd->kind == CMD_REPLAY ? cmd->graph->in_bytes : 0;
}

bool remote_send_now(remote_link *link) {
  enum { MOST = 1 << 14, EACH = 128 };
  uint64_t left = MOST;
  heddle_pstream *stream;
  if (!is_idle(link)) return false;
  while (!atomic_load(&link->lost) && (stream = pick(link)) != NULL) {
    if (bytes_of(stream) + EACH > left) return false;
    left -= bytes_of(stream) + EACH;
    if (send_one(link, stream)) continue;
    pthread_mutex_unlock(&link->lock);
    remote_link_lose(link, 0, "the connection to the server has ended");
    pthread_mutex_lock(&link->lock);
  }
  return link->first == NULL;
}

void *remote_send_all(void *arg) {
  remote_link *link = arg;
  bool good = true;
  pthread_mutex_lock(&link->lock);
  while (good && !atomic_load(&link->lost)) {
    heddle_pstream *stream = NULL;
    const bool is_free = !link->sending; /* else a caller sends, who wakes this thread if something is left */
    if (is_free && (link->first != NULL || (stream = pick(link)) != NULL)) {
      good = send_one(link, stream);
    } else {
      if (is_free && link->stop) break;
      const struct timespec until = remote_deadline(link->alive_ms * 1000000);
      if (pthread_cond_timedwait(&link->work, &link->lock, &until) != 0 && !link->sending) {
        link->sending = true;
        good = send_alive(link);
        link->sending = false;
      }
    }
    remote_drop_closed(link);
  }
  pthread_mutex_unlock(&link->lock);
  if (!good) remote_link_lose(link, 0, "the connection to the server has ended");
  return NULL;
}

/* ---------------------------------------------------------------- receiving */

static bool drop_bytes(remote_link *link, uint64_t bytes) {
  char piece[4096];
  while (bytes > 0) {
    const size_t n = bytes < sizeof piece ? (size_t)bytes : sizeof piece;
    if (!transport_receive(&link->t, piece, n)) return false;
    bytes -= n;
  }
  return true;
}

static bool take_result(remote_link *link, const wire_head *head) {
  heddle_error err = {0};
  byte_buffer reply = {0};
  uint8_t *body = head->bytes <= MOST_REPLY ? malloc((size_t)head->bytes + 1) : NULL;
  if (body == NULL || !transport_receive(&link->t, body, (size_t)head->bytes)) {
    free(body);
    return false;
  }
  byte_reader r = {body, (size_t)head->bytes, false};
  const heddle_status s = wire_take_error(&r, &err);
  if (!r.bad) byte_put(&reply, r.at, r.left);
  free(body);
  if (r.bad || reply.failed) {
    byte_finish(&reply);
    return false;
  }
  pthread_mutex_lock(&link->lock);
  remote_call *call = link->calls;
  while (call != NULL && (call->id != head->id || call->is_done)) call = call->next;
  if (call != NULL) {
    call->status = s;
    call->err = err;
    call->reply = reply;
    call->is_done = true;
    pthread_cond_broadcast(&link->done);
  }
  pthread_mutex_unlock(&link->lock);
  if (call == NULL) byte_finish(&reply);
  return call != NULL;
}

static heddle_pstream *find_stream(remote_link *link, uint32_t id) {
  heddle_pstream *s = link->streams;
  while (s != NULL && s->id != id) s = s->next;
  return s;
}

/* The bytes of a read, or of all reads of a capture: each to its place, or nowhere where the device is lost. */
static bool take_bytes(remote_link *link, const remote_cmd *cmd, bool is_lost, uint64_t bytes) {
  const remote_cmd *row = cmd;
  uint64_t count = 1, total = cmd->bytes;
  if (cmd->kind == CMD_REPLAY) {
    row = cmd->graph->row;
    count = cmd->graph->count;
    total = cmd->graph->out_bytes;
  } else if (cmd->kind != CMD_READ) {
    count = total = 0;
  }
  if (bytes != total) return false;
  if (is_lost) return drop_bytes(link, bytes);
  for (uint64_t i = 0; i < count; i++)
    if (row[i].kind == CMD_READ && !transport_receive(&link->t, row[i].host, row[i].bytes)) return false;
  return true;
}

/* position, error, bytes. */
static bool take_done(remote_link *link, const wire_head *head) {
  enum { LEAST = 20 };
  uint8_t start[LEAST];
  char text[sizeof link->fault.text];
  if (head->bytes < LEAST || !transport_receive(&link->t, start, sizeof start)) return false;
  byte_reader r = {start, sizeof start, false};
  const uint64_t position = byte_take_u64(&r);
  const uint32_t status = byte_take_u32(&r), code = byte_take_u32(&r), length = byte_take_u32(&r);
  if (status >= HEDDLE_STATUS_COUNT || length >= sizeof text || length > head->bytes - LEAST ||
      !transport_receive(&link->t, text, length))
    return false;
  text[length] = '\0';
  const uint64_t bytes = head->bytes - LEAST - length;
  pthread_mutex_lock(&link->lock);
  heddle_pstream *stream = find_stream(link, head->id);
  if (stream == NULL || position == 0 || position > stream->asked || position <= stream->tail ||
      (status != HEDDLE_OK && bytes > 0)) {
    const bool was_lost = stream == NULL || atomic_load(&stream->dev->lost);
    pthread_mutex_unlock(&link->lock);
    return was_lost && drop_bytes(link, bytes);
  }
  heddle_pdevice *dev = stream->dev;
  const remote_cmd cmd = stream->ring[(position - 1) % stream->room];
  const bool is_lost = atomic_load(&dev->lost);
  dev->moving++;
  pthread_mutex_unlock(&link->lock);
  const bool good = status != HEDDLE_OK || take_bytes(link, &cmd, is_lost, bytes);
  if (status == HEDDLE_EDEVICE) remote_lose(dev, (int32_t)code, text);
  pthread_mutex_lock(&link->lock);
  if (good && status != HEDDLE_OK && stream->failure.status == HEDDLE_OK)
    (void)p_fail(&stream->failure, (heddle_status)status, (int32_t)code, "%s", text);
  if (good) advance(link, stream, position);
  dev->moving--;
  pthread_cond_broadcast(&link->done);
  pthread_mutex_unlock(&link->lock);
  return good;
}

void *remote_receive_all(void *arg) {
  remote_link *link = arg;
  uint8_t bytes[WIRE_HEAD];
  bool good = true;
  const char *why = "the server broke the protocol";
  while (good && !atomic_load(&link->lost)) {
    if (!transport_receive(&link->t, bytes, sizeof bytes)) {
      why = "the connection to the server has ended";
      break;
    }
    const wire_head head = wire_head_take(bytes);
    if (head.kind == WIRE_RESULT) good = take_result(link, &head);
    else if (head.kind == WIRE_DONE) good = take_done(link, &head);
    else good = head.kind == WIRE_ALIVE && head.bytes == 0;
    if (!good && atomic_load(&link->t.ended)) why = "the connection to the server has ended";
  }
  pthread_mutex_lock(&link->lock);
  const bool is_over = link->stop;
  pthread_mutex_unlock(&link->lock);
  if (is_over) return NULL;
  if (link->t.was_quiet) remote_link_lose(link, 0, "the server was silent for %u ms", link->self->quiet_ms);
  else remote_link_lose(link, 0, "%s", why);
  return NULL;
}
