/* remote/session.c: a session from its first message to its last. */
#define _GNU_SOURCE
#include "remote/session.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plugins/common/fnv.h"
#include "plugins/common/perror.h"
#include "remote/tunnel.h"
#include "rpc/net.h"

bool remote_send(remote_session *s, const void *data, size_t bytes, const void *more, size_t more_bytes) {
  pthread_mutex_lock(&s->send_lock);
  const bool good = transport_send(s->t, data, bytes) && (more_bytes == 0 || transport_send(s->t, more, more_bytes));
  pthread_mutex_unlock(&s->send_lock);
  return good;
}

/* ---- the thread that tells the client that the server is alive, and ends the process when the client is gone or the
 * session's time is over, whatever the other thread waits for */

static void *tick(void *session) {
  remote_session *s = session;
  uint8_t head[WIRE_HEAD];
  const int64_t until = s->limits->seconds > 0 ? transport_now_ms() + (int64_t)s->limits->seconds * 1000 : INT64_MAX;
  wire_head_put(head, &(wire_head){.kind = WIRE_ALIVE});
  pthread_mutex_lock(&s->tick_lock);
  while (!s->is_over) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += REMOTE_ALIVE_MS / 1000;
    if (pthread_cond_timedwait(&s->tick, &s->tick_lock, &at) != ETIMEDOUT) continue;
    pthread_mutex_unlock(&s->tick_lock);
    if (transport_now_ms() >= until) {
      rpc_log("heddle device-server: a session took longer than its limit");
      _exit(0);
    }
    if (!remote_send(s, head, sizeof head, NULL, 0)) _exit(0);
    pthread_mutex_lock(&s->tick_lock);
  }
  pthread_mutex_unlock(&s->tick_lock);
  return NULL;
}

static bool start_ticker(remote_session *s) {
  sigset_t all, before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return false;
  s->has_ticker = pthread_create(&s->ticker, NULL, tick, s) == 0;
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  return s->has_ticker;
}

/* ---- start and end */

static heddle_status list_devices(remote_session *s, heddle_error *err) {
  heddle_device *found[WIRE_MOST_DEVICES];
  size_t n = 0;
  heddle_status status = heddle_context_select(s->ctx, s->limits->devices, found, WIRE_MOST_DEVICES, &n, NULL, err);
  if (status != HEDDLE_OK) return status;
  if (n > WIRE_MOST_DEVICES) n = WIRE_MOST_DEVICES;
  s->devices = calloc(n, sizeof *s->devices);
  if (s->devices == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a session");
  for (size_t i = 0; i < n; i++) s->devices[i].dev = found[i];
  s->n_devices = (uint32_t)n;
  return HEDDLE_OK;
}

heddle_status remote_session_init(remote_session *s, transport *t, const remote_limits *limits, heddle_error *err) {
  pthread_condattr_t monotonic;
  *s = (remote_session){.t = t, .limits = limits};
  (void)pthread_mutex_init(&s->send_lock, NULL); /* cannot fail on this system */
  (void)pthread_mutex_init(&s->tick_lock, NULL);
  (void)pthread_condattr_init(&monotonic);
  (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  (void)pthread_cond_init(&s->tick, &monotonic);
  (void)pthread_condattr_destroy(&monotonic);
  s->piece = malloc(REMOTE_PIECE);
  s->streams = calloc(REMOTE_MOST_STREAMS, sizeof *s->streams);
  heddle_status status = HEDDLE_OK;
  if (s->piece == NULL || s->streams == NULL) status = p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a session");
  if (status == HEDDLE_OK) status = heddle_context_create(NULL, 0, NULL, NULL, &s->ctx, err);
  return status == HEDDLE_OK ? list_devices(s, err) : status;
}

void remote_session_finish(remote_session *s) {
  pthread_mutex_lock(&s->tick_lock);
  s->is_over = true;
  pthread_cond_signal(&s->tick);
  pthread_mutex_unlock(&s->tick_lock);
  if (s->has_ticker) pthread_join(s->ticker, NULL);
  for (uint32_t i = 0; i < s->n_devices; i++) remote_close_device(s, &s->devices[i]);
  remote_libraries_finish(s);
  remote_drop_blobs(s);
  free(s->blobs);
  free(s->events);
  free(s->streams);
  free(s->devices);
  free(s->piece);
  rpc_handles_finish(&s->handles);
  heddle_context_release(s->ctx);
  pthread_cond_destroy(&s->tick);
  pthread_mutex_destroy(&s->tick_lock);
  pthread_mutex_destroy(&s->send_lock);
}

/* ---- messages */

/* The body of a message, in memory that grows as its bytes come. NULL: the connection has ended, or it is over the limit. */
static uint8_t *take_body(remote_session *s, uint64_t bytes) {
  size_t room = 1 << 16, have = 0;
  if (bytes > s->limits->memory - s->held) {
    rpc_log("heddle device-server: a message of %llu bytes is over the session's limit", (unsigned long long)bytes);
    return NULL;
  }
  if (room > bytes) room = (size_t)bytes + 1;
  uint8_t *body = malloc(room);
  while (body != NULL && have < bytes) {
    if (have == room) {
      room = room < bytes / 2 ? 2 * room : (size_t)bytes;
      uint8_t *more = realloc(body, room);
      if (more == NULL) break;
      body = more;
    }
    const size_t n = (size_t)(bytes < room ? bytes : room) - have;
    if (!transport_receive(s->t, body + have, n)) break;
    have += n;
  }
  if (have == bytes) return body;
  free(body);
  return NULL;
}

static bool take_blob(remote_session *s, uint8_t *body, uint64_t bytes) {
  heddle_error err;
  byte_reader r = {body, (size_t)bytes, false};
  wire_blob_id id;
  id.bytes = byte_take_u64(&r);
  id.hash[0] = byte_take_u64(&r);
  id.hash[1] = byte_take_u64(&r);
  if (r.bad || r.left != id.bytes) return false;
  const wire_blob_id real = wire_blob_of(r.at, id.bytes);
  if (memcmp(&real, &id, sizeof id) != 0) return false;
  if (s->n_blobs == s->blob_room) {
    const uint32_t room = s->blob_room > 0 ? 2 * s->blob_room : 64;
    remote_blob *more = realloc(s->blobs, room * sizeof *more);
    if (more == NULL) return false;
    s->blobs = more;
    s->blob_room = room;
  }
  void *data = NULL;
  if (!remote_hold(s, id.bytes, &err)) {
    rpc_log("heddle device-server: %s", err.text);
    return false;
  }
  if (posix_memalign(&data, 64, (size_t)id.bytes + 1) != 0) {
    remote_unhold(s, id.bytes);
    return false;
  }
  memcpy(data, r.at, (size_t)id.bytes);
  s->blobs[s->n_blobs++] = (remote_blob){id, data};
  return true;
}

static bool answer_request(remote_session *s, const wire_head *head, const uint8_t *body) {
  heddle_error err = {0};
  byte_reader r = {body, (size_t)head->bytes, false};
  byte_buffer out = {0}, b = {0};
  heddle_status status = remote_request(s, head->kind, &r, &out, &err);
  if (status == HEDDLE_OK && out.failed) status = p_fail(&err, HEDDLE_ENOMEM, 0, "no memory for an answer");
  wire_begin(&b);
  wire_put_error(&b, status, &err);
  if (status == HEDDLE_OK) byte_put(&b, out.data, out.used);
  wire_end(&b, WIRE_RESULT, head->id, 0);
  byte_finish(&out);
  const bool good = !b.failed && remote_send(s, b.data, b.used, NULL, 0);
  byte_finish(&b);
  return good;
}

bool remote_session_answer(remote_session *s, const wire_head *head) {
  if (head->kind >= WIRE_WRITE && head->kind <= WIRE_LAST_WORK) return remote_work(s, head);
  if (head->kind == WIRE_ALIVE) return head->bytes == 0;
  const bool is_request = head->kind >= WIRE_OPEN && head->kind <= WIRE_LAST_REQUEST;
  if (!is_request && head->kind != WIRE_BLOB && head->kind != WIRE_FREE) return false;
  uint8_t *body = take_body(s, head->bytes);
  if (body == NULL) return false;
  bool good = true;
  byte_reader r = {body, (size_t)head->bytes, false};
  if (head->kind == WIRE_BLOB) {
    good = take_blob(s, body, head->bytes);
  } else if (head->kind == WIRE_FREE) {
    const uint64_t handle = byte_take_u64(&r);
    good = wire_is_done(&r);
    if (good) remote_release(s, handle);
  } else if (head->kind == WIRE_CLOSE) {
    const uint32_t index = byte_take_u32(&r);
    good = wire_is_done(&r) && index < s->n_devices;
    if (good) remote_close_device(s, &s->devices[index]);
  } else if (head->kind == WIRE_RESIZE && head->id == 0) {
    good = remote_resize_unasked(s, &r);
  } else {
    good = answer_request(s, head, body);
  }
  free(body);
  return good;
}

/* ---- the first messages */

static void put_device(byte_buffer *b, const heddle_device *dev, bool allow_libraries) {
  const heddle_pdevice_desc *d = &dev->desc;
  const heddle__tables *t = dev->t;
  const char *colon = strchr(dev->name, ':');
  const size_t n = colon != NULL ? (size_t)(colon - dev->name) : strlen(dev->name);
  uint64_t tokens = fnv1a(FNV1A_START, dev->name, n);
  if (tokens == 0) tokens = 1;
  wire_put_text(b, dev->name);
  byte_put_u64(b, tokens);
  byte_put_u32(b, (t->has_op ? 1u : 0u) | (t->has_layout ? 2u : 0u) | (t->has_op && t->op.partition != NULL ? 4u : 0u) |
                      (t->has_op && t->op.list != NULL ? 8u : 0u) | (t->has_op && t->op.resize != NULL ? 16u : 0u) |
                      (allow_libraries ? 32u : 0u));
  wire_put_text(b, d->name);
  wire_put_text(b, d->driver);
  byte_put(b, d->uuid, sizeof d->uuid);
  byte_put_u64(b, d->memory_bytes);
  byte_put_u64(b, d->max_buffer_bytes);
  byte_put_u64(b, d->alignment);
  byte_put_u32(b, d->compute_units);
  byte_put_u32(b, d->max_streams);
}

static bool send_hello(remote_session *s, heddle_status status, const heddle_error *err) {
  byte_buffer b = {0};
  wire_begin(&b);
  byte_put_u64(&b, WIRE_MAGIC);
  byte_put_u32(&b, WIRE_MAJOR);
  byte_put_u32(&b, WIRE_MINOR);
  wire_put_error(&b, status, err);
  if (status == HEDDLE_OK) {
    byte_put_u64(&b, s->limits->memory / 2);
    byte_put_u32(&b, REMOTE_ALIVE_MS);
    byte_put_u32(&b, s->n_devices);
    for (uint32_t i = 0; i < s->n_devices; i++) put_device(&b, s->devices[i].dev, s->limits->allow_libraries);
  }
  wire_end(&b, WIRE_HELLO, 0, 0);
  const bool good = !b.failed && remote_send(s, b.data, b.used, NULL, 0);
  byte_finish(&b);
  return good;
}

static heddle_status take_hello(transport *t, uint32_t *of_client, bool *is_tunnel, heddle_error *err) {
  enum { BODY = 16 };
  uint8_t bytes[WIRE_HEAD + BODY];
  if (!transport_receive(t, bytes, sizeof bytes)) return p_fail(err, HEDDLE_EIO, 0, "the client sent nothing");
  const wire_head head = wire_head_take(bytes);
  byte_reader r = {bytes + WIRE_HEAD, BODY, false};
  const uint64_t magic = byte_take_u64(&r);
  const uint32_t major = byte_take_u32(&r), minor = byte_take_u32(&r);
  *is_tunnel = head.kind == WIRE_TUNNEL;
  if ((head.kind != WIRE_HELLO && !*is_tunnel) || head.bytes != BODY || magic != WIRE_MAGIC)
    return p_fail(err, HEDDLE_EIO, 0, "the client does not speak the protocol");
  *of_client = minor;
  if (major == WIRE_MAJOR) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EABI, 0, "the client speaks version %u.%u of the protocol, and this server %d.%d", major,
                minor, (int)WIRE_MAJOR, (int)WIRE_MINOR);
}

int remote_session_serve(transport *t, const remote_limits *limits, remote_admit_fn admit, void *user) {
  enum { FIRST_MS = 10000 };
  heddle_error err = {0};
  remote_session s = {.t = t, .limits = limits};
  t->quiet_ms = FIRST_MS;
  bool is_tunnel = false;
  uint32_t minor = 0;
  heddle_status status = take_hello(t, &minor, &is_tunnel, &err);
  if (status == HEDDLE_EIO) {
    rpc_log("heddle device-server: a client is refused: %s%s%s", err.text, t->why[0] != '\0' ? ": " : "", t->why);
    return 1;
  }
  t->quiet_ms = (int64_t)limits->idle_ms;
  if (status == HEDDLE_OK) status = admit(user, &err);
  if (status == HEDDLE_OK && is_tunnel) {
    if (limits->rpc_program == NULL)
      status = p_fail(&err, HEDDLE_EUNSUPPORTED, 0, "it carries no TVM RPC; heddle device-server --tvm-rpc does");
    (void)pthread_mutex_init(&s.send_lock, NULL);
    return send_hello(&s, status, &err) && status == HEDDLE_OK ? remote_tunnel_serve(t, limits) : 1;
  }
  const bool is_admitted = status == HEDDLE_OK;
  if (is_admitted) status = remote_session_init(&s, t, limits, &err);
  else (void)pthread_mutex_init(&s.send_lock, NULL);
  if (status != HEDDLE_OK) rpc_log("heddle device-server: a client is refused: %s", err.text);
  s.minor = minor;
  const bool is_met = send_hello(&s, status, &err) && status == HEDDLE_OK;
  bool good = is_met && start_ticker(&s);
  uint8_t bytes[WIRE_HEAD];
  while (good && transport_receive(t, bytes, sizeof bytes)) {
    const wire_head head = wire_head_take(bytes);
    good = remote_session_answer(&s, &head);
  }
  if (is_admitted) remote_session_finish(&s);
  return good || (!is_met && status == HEDDLE_OK) ? 0 : 1;
}
