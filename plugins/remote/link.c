/* A link: opening it with its threads, requests and their results, its loss and its end. */
#include "plugins/remote/remote.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

struct timespec remote_deadline(uint64_t timeout_ns) {
  const uint64_t most = UINT64_C(4000000000) * 1000000000; /* past the year 2090 on any clock */
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const uint64_t start = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
  const uint64_t end = timeout_ns > most - start ? most : start + timeout_ns;
  return (struct timespec){.tv_sec = (time_t)(end / 1000000000), .tv_nsec = (long)(end % 1000000000)};
}

heddle_status remote_link_check(remote_link *link, heddle_error *err) {
  if (!atomic_load(&link->lost)) return HEDDLE_OK;
  if (err != NULL) *err = link->fault;
  return HEDDLE_EDEVICE;
}

/* ---------------------------------------------------------------- loss */

/* The next device that does not know yet, or NULL; it cannot be closed while its number of movers is raised. */
static heddle_pdevice *take_device(remote_link *link) {
  heddle_pdevice *dev = link->devices;
  while (dev != NULL && atomic_load(&dev->lost)) dev = dev->next;
  if (dev != NULL) dev->moving++;
  return dev;
}

void remote_link_lose(remote_link *link, int32_t code, const char *format, ...) {
  char text[600];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  pthread_mutex_lock(&link->lock);
  if (!atomic_load(&link->lost)) {
    p_fail(&link->fault, HEDDLE_EDEVICE, code, "%s: %s", link->address, text);
    atomic_store(&link->lost, true);
  }
  transport_end(&link->t);
  for (remote_call *c = link->calls; c != NULL; c = c->next) {
    if (c->is_done) continue;
    c->is_done = true;
    c->status = HEDDLE_EDEVICE;
    c->err = link->fault;
  }
  pthread_cond_broadcast(&link->work);
  pthread_cond_broadcast(&link->done);
  for (heddle_pdevice *dev; (dev = take_device(link)) != NULL;) {
    pthread_mutex_unlock(&link->lock);
    remote_lose(dev, code, link->fault.text);
    pthread_mutex_lock(&link->lock);
    dev->moving--;
    pthread_cond_broadcast(&link->done);
  }
  pthread_mutex_unlock(&link->lock);
}

/* ---------------------------------------------------------------- frames and requests */

static heddle_status no_memory(const remote_link *link, heddle_error *err) {
  return p_fail(err, HEDDLE_ENOMEM, 0, "%s: no memory for a message", link->address);
}

/* Takes the body, which begins with the place of its head. With the lock. */
static bool enqueue(remote_link *link, uint32_t kind, uint32_t id, byte_buffer *body) {
  remote_frame *frame = body->failed ? NULL : calloc(1, sizeof *frame);
  if (frame == NULL) {
    byte_finish(body);
    return false;
  }
  wire_end(body, kind, id, 0);
  frame->bytes = *body;
  *body = (byte_buffer){0};
  *link->last = frame;
  link->last = &frame->next;
  pthread_cond_signal(&link->work);
  return true;
}

heddle_status remote_post(remote_link *link, uint32_t kind, uint32_t id, byte_buffer *body, heddle_error *err) {
  pthread_mutex_lock(&link->lock);
  const bool good = enqueue(link, kind, id, body);
  pthread_mutex_unlock(&link->lock);
  return good ? HEDDLE_OK : no_memory(link, err);
}

void remote_forget(remote_link *link, uint64_t handle) {
  byte_buffer b = {0};
  if (handle == 0 || atomic_load(&link->lost)) return;
  wire_begin(&b);
  byte_put_u64(&b, handle);
  (void)remote_post(link, WIRE_FREE, 0, &b, NULL);
}

heddle_status remote_ask_begin(remote_link *link, uint32_t kind, byte_buffer *body, remote_call *call,
                               heddle_error *err) {
  *call = (remote_call){0};
  pthread_mutex_lock(&link->lock);
  heddle_status s = remote_link_check(link, err);
  call->id = ++link->next_id;
  if (s == HEDDLE_OK && !enqueue(link, kind, call->id, body)) s = no_memory(link, err);
  if (s == HEDDLE_OK) {
    call->next = link->calls;
    link->calls = call;
  }
  pthread_mutex_unlock(&link->lock);
  if (s != HEDDLE_OK) byte_finish(body);
  return s;
}

heddle_status remote_ask_end(remote_link *link, remote_call *call, byte_buffer *reply, heddle_error *err) {
  const struct timespec until = remote_deadline((uint64_t)link->self->request_ms * 1000000);
  int code = 0;
  *reply = (byte_buffer){0};
  pthread_mutex_lock(&link->lock);
  while (!call->is_done && code != ETIMEDOUT) code = pthread_cond_timedwait(&link->done, &link->lock, &until);
  if (!call->is_done) {
    pthread_mutex_unlock(&link->lock);
    remote_link_lose(link, 0, "the server did not answer a request in %u ms", link->self->request_ms);
    pthread_mutex_lock(&link->lock);
  }
  remote_call **at = &link->calls;
  while (*at != call) at = &(*at)->next;
  *at = call->next;
  pthread_mutex_unlock(&link->lock);
  if (call->status == HEDDLE_OK) {
    *reply = call->reply;
    return HEDDLE_OK;
  }
  byte_finish(&call->reply);
  if (err != NULL) *err = call->err;
  return call->status;
}

heddle_status remote_ask(remote_link *link, uint32_t kind, byte_buffer *body, byte_buffer *reply, heddle_error *err) {
  remote_call call;
  *reply = (byte_buffer){0};
  const heddle_status s = remote_ask_begin(link, kind, body, &call, err);
  return s == HEDDLE_OK ? remote_ask_end(link, &call, reply, err) : s;
}

heddle_status remote_ask_number(remote_link *link, uint32_t kind, byte_buffer *body, uint64_t *out, heddle_error *err) {
  byte_buffer reply;
  heddle_status s = remote_ask(link, kind, body, &reply, err);
  if (s != HEDDLE_OK) return s;
  byte_reader r = {reply.data, reply.used, false};
  *out = byte_take_u64(&r);
  if (!wire_is_done(&r)) s = p_fail(err, HEDDLE_EFAILED, 0, "%s: an answer of the server is malformed", link->address);
  byte_finish(&reply);
  return s;
}

/* ---------------------------------------------------------------- the first messages */

static void take_about(byte_reader *r, remote_about *a, const char *address) {
  heddle_pdevice_desc *d = &a->desc;
  char product[sizeof d->name];
  wire_take_text(r, a->name, sizeof a->name);
  a->tokens = byte_take_u64(r);
  const uint32_t has = byte_take_u32(r);
  a->has_op = (has & 1) != 0;
  a->has_layout = (has & 2) != 0;
  a->has_partition = (has & 4) != 0;
  a->has_list = (has & 8) != 0;
  a->has_resize = (has & 16) != 0;
  a->has_libraries = (has & 32) != 0;
  wire_take_text(r, product, sizeof product);
  wire_take_text(r, d->driver, sizeof d->driver);
  (void)snprintf(d->name, sizeof d->name, "%.56s/%.20s: %.46s", address, a->name, product);
  p_one_line(d->name);
  p_one_line(d->driver);
  const uint8_t *uuid = byte_take(r, sizeof d->uuid);
  if (uuid != NULL) memcpy(d->uuid, uuid, sizeof d->uuid);
  d->memory_bytes = byte_take_u64(r);
  d->max_buffer_bytes = byte_take_u64(r);
  d->alignment = byte_take_u64(r);
  d->compute_units = byte_take_u32(r);
  d->max_streams = byte_take_u32(r);
  if (d->alignment == 0 || d->alignment > 4096 || (d->alignment & (d->alignment - 1)) != 0 || d->max_streams == 0)
    r->bad = true;
}

static heddle_status take_hello(remote_link *link, byte_reader *r, heddle_error *err) {
  const uint64_t magic = byte_take_u64(r);
  const uint32_t major = byte_take_u32(r), minor = byte_take_u32(r);
  if (r->bad || magic != WIRE_MAGIC)
    return p_fail(err, HEDDLE_ENODEV, 0, "%s: it is no device server of Heddle", link->address);
  if (major != WIRE_MAJOR)
    return p_fail(err, HEDDLE_ENODEV, 0, "%s: the server speaks version %u.%u of the protocol, and this plugin %d.%d",
                  link->address, major, minor, (int)WIRE_MAJOR, (int)WIRE_MINOR);
  link->minor = minor;
  heddle_error theirs;
  const heddle_status s = wire_take_error(r, &theirs);
  if (s != HEDDLE_OK)
    return p_fail(err, r->bad ? HEDDLE_EFAILED : s, 0, "%s: the server refuses: %.500s", link->address, theirs.text);
  link->most_blob_bytes = byte_take_u64(r);
  link->alive_ms = byte_take_u32(r);
  if (link->alive_ms < 50) link->alive_ms = 50;
  link->n_about = wire_take_count(r, WIRE_MOST_DEVICES, 80);
  link->about = remote_new(link->host, (link->n_about + 1) * sizeof *link->about);
  if (link->about == NULL) return no_memory(link, err);
  for (uint32_t i = 0; i < link->n_about && !r->bad; i++) take_about(r, &link->about[i], link->address);
  if (wire_is_done(r)) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EFAILED, 0, "%s: the server's description of its devices is malformed", link->address);
}

static heddle_status greet(remote_link *link, heddle_error *err) {
  uint8_t head[WIRE_HEAD];
  byte_buffer b = {0};
  wire_begin(&b);
  byte_put_u64(&b, WIRE_MAGIC);
  byte_put_u32(&b, WIRE_MAJOR);
  byte_put_u32(&b, WIRE_MINOR);
  wire_end(&b, WIRE_HELLO, 0, 0);
  bool good = !b.failed && transport_send(&link->t, b.data, b.used) && transport_receive(&link->t, head, sizeof head);
  byte_finish(&b);
  const wire_head h = good ? wire_head_take(head) : (wire_head){0};
  if (good && (h.kind != WIRE_HELLO || h.bytes > WIRE_MOST_HELLO))
    return p_fail(err, HEDDLE_ENODEV, 0, "%s: it is no device server of Heddle", link->address);
  uint8_t *body = good ? malloc((size_t)h.bytes + 1) : NULL;
  good = body != NULL && transport_receive(&link->t, body, (size_t)h.bytes);
  byte_reader r = {body, (size_t)h.bytes, false};
  heddle_status s;
  if (good) s = take_hello(link, &r, err);
  else
    s = p_fail(err, HEDDLE_ENODEV, 0, "%s: the server %s%s%s", link->address,
               link->t.was_quiet ? "does not answer" : "ended the connection", link->t.why[0] != '\0' ? ": " : "",
               link->t.why);
  free(body);
  return s;
}

/* ---------------------------------------------------------------- opening and ending */

/* All signals of the program are for its own threads. */
static int start_threads(remote_link *link) {
  sigset_t all, before;
  sigfillset(&all);
  int code = pthread_sigmask(SIG_SETMASK, &all, &before);
  if (code != 0) return code;
  code = pthread_create(&link->sender, NULL, remote_send_all, link);
  link->has_sender = code == 0;
  if (code == 0) code = pthread_create(&link->receiver, NULL, remote_receive_all, link);
  link->has_receiver = link->has_sender && code == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return code;
}

static void end_child(uint64_t child) {
  const struct timespec moment = {0, 10000000};
  if (child == 0) return;
  for (int i = 0; i < 50; i++) {
    if (waitpid((pid_t)child, NULL, WNOHANG) != 0) return;
    nanosleep(&moment, NULL);
  }
  (void)kill((pid_t)child, SIGKILL);
  while (waitpid((pid_t)child, NULL, 0) < 0 && errno == EINTR) continue;
}

static void destroy(remote_link *link) {
  const heddle_host *host = link->host;
  pthread_mutex_lock(&link->lock);
  link->stop = true;
  pthread_cond_broadcast(&link->work);
  pthread_mutex_unlock(&link->lock);
  if (link->has_sender) pthread_join(link->sender, NULL);
  transport_end(&link->t);
  if (link->has_receiver) pthread_join(link->receiver, NULL);
  transport_close(&link->t);
  end_child(link->child);
  while (link->first != NULL) {
    remote_frame *frame = link->first;
    link->first = frame->next;
    byte_finish(&frame->bytes);
    free(frame);
  }
  while (link->streams != NULL) {
    heddle_pstream *stream = link->streams;
    link->streams = stream->next;
    remote_stream_free(stream);
  }
  pthread_cond_destroy(&link->done);
  pthread_cond_destroy(&link->work);
  pthread_mutex_destroy(&link->regions);
  pthread_mutex_destroy(&link->lock);
  host->free(host->ctx, link->about);
  byte_finish(&link->buffer);
  free(link->blobs);
  host->free(host->ctx, link);
}

static bool init_locks(remote_link *link) {
  pthread_condattr_t monotonic;
  if (pthread_condattr_init(&monotonic) != 0) return false;
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  bool good = pthread_mutex_init(&link->lock, NULL) == 0;
  if (good && pthread_mutex_init(&link->regions, NULL) != 0) {
    pthread_mutex_destroy(&link->lock);
    good = false;
  }
  if (good && pthread_cond_init(&link->work, &monotonic) != 0) {
    pthread_mutex_destroy(&link->regions);
    pthread_mutex_destroy(&link->lock);
    good = false;
  }
  if (good && pthread_cond_init(&link->done, &monotonic) != 0) {
    pthread_cond_destroy(&link->work);
    pthread_mutex_destroy(&link->regions);
    pthread_mutex_destroy(&link->lock);
    good = false;
  }
  pthread_condattr_destroy(&monotonic);
  return good;
}

heddle_status remote_link_open(heddle_pinstance *self, const char *address, remote_link **out, heddle_error *err) {
  const heddle_host *host = self->host;
  remote_link *link = remote_new(host, sizeof *link);
  if (link == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "%s: no memory for a connection", address);
  link->host = host;
  link->self = self;
  link->refs = 1;
  link->last = &link->first;
  (void)snprintf(link->address, sizeof link->address, "%s", address);
  atomic_init(&link->lost, false);
  if (!init_locks(link)) {
    host->free(host->ctx, link);
    return p_fail(err, HEDDLE_ENOMEM, 0, "%s: no locks for a connection", address);
  }
  heddle_status s = remote_connect(self, address, &link->t, &link->child, err);
  if (s != HEDDLE_OK) {
    pthread_cond_destroy(&link->done);
    pthread_cond_destroy(&link->work);
    pthread_mutex_destroy(&link->regions);
    pthread_mutex_destroy(&link->lock);
    host->free(host->ctx, link);
    return s;
  }
  s = greet(link, err);
  link->t.quiet_ms = self->quiet_ms;
  const int code = s == HEDDLE_OK ? start_threads(link) : 0;
  if (code != 0) s = p_fail(err, HEDDLE_ENOMEM, code, "%s: no threads for a connection (errno %d)", address, code);
  if (s == HEDDLE_OK) *out = link;
  else destroy(link);
  return s;
}

void remote_link_drop(remote_link *link) {
  if (link == NULL) return;
  pthread_mutex_lock(&link->lock);
  const bool is_last = --link->refs == 0;
  pthread_mutex_unlock(&link->lock);
  if (is_last) destroy(link);
}

/* Whether a server has the devices that it had. */
static bool has_same(const remote_server *server, const remote_link *link) {
  if (server->n_devices != link->n_about) return false;
  for (uint32_t i = 0; i < server->n_devices; i++) {
    const remote_about *a = &server->devices[i], *b = &link->about[i];
    if (strcmp(a->name, b->name) != 0 || strcmp(a->desc.driver, b->desc.driver) != 0 || a->tokens != b->tokens ||
        a->desc.alignment != b->desc.alignment || a->has_resize != b->has_resize ||
        a->has_libraries != b->has_libraries)
      return false;
  }
  return true;
}

heddle_status remote_link_get(heddle_pinstance *self, uint32_t index, remote_link **out, heddle_error *err) {
  remote_server *server = &self->servers[index];
  remote_link *old = NULL;
  heddle_status s = HEDDLE_OK;
  pthread_mutex_lock(&self->lock);
  if (server->link == NULL || atomic_load(&server->link->lost)) {
    remote_link *link = NULL;
    s = remote_link_open(self, server->address, &link, err);
    if (s == HEDDLE_OK && !has_same(server, link)) {
      s = p_fail(err, HEDDLE_ENODEV, 0, "%s: the server has other devices than before", server->address);
      remote_link_drop(link);
    }
    if (s == HEDDLE_OK) {
      old = server->link;
      server->link = link;
    }
  }
  if (s == HEDDLE_OK) {
    pthread_mutex_lock(&server->link->lock);
    server->link->refs++;
    pthread_mutex_unlock(&server->link->lock);
    *out = server->link;
  }
  pthread_mutex_unlock(&self->lock);
  remote_link_drop(old);
  return s;
}
