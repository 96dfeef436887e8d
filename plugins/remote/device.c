/* Devices of servers: opening and closing them, their health, loss and reset. */
#include "plugins/remote/remote.h"

#include <errno.h>

#include "plugins/common/options.h"

#define CLOSE_NS UINT64_C(500000000) /* how long close waits for what moves */

void *remote_new(const heddle_host *host, uint64_t bytes) {
  void *p = host->alloc(host->ctx, bytes, 64);
  if (p != NULL) memset(p, 0, bytes);
  return p;
}

heddle_status remote_find(heddle_pinstance *self, uint32_t index, remote_server **server, uint32_t *remote,
                          heddle_error *err) {
  uint32_t first = 0;
  for (uint32_t i = 0; i < self->n_servers; i++) {
    *server = &self->servers[i];
    *remote = index - first;
    if (index - first < self->servers[i].n_devices) return HEDDLE_OK;
    first += self->servers[i].n_devices;
  }
  return p_fail(err, HEDDLE_ENODEV, 0, "remote:%u: the servers have %u devices together", index, self->n_devices);
}

heddle_status remote_check(heddle_pdevice *dev, heddle_error *err) {
  if (!atomic_load(&dev->lost)) return HEDDLE_OK;
  if (err != NULL) *err = dev->fault;
  return HEDDLE_EDEVICE;
}

/* ---------------------------------------------------------------- loss */

/* Takes the first signal that is pending; it is nobody else's then. With the lock. */
static bool take_signal(heddle_pdevice *dev, heddle_pfence *fence) {
  for (heddle_pstream *s = dev->link->streams; s != NULL; s = s->next) {
    for (uint64_t i = s->tail; i != s->submitted && s->dev == dev; i++) {
      remote_cmd *cmd = &s->ring[i % s->room];
      if (cmd->kind != CMD_SIGNAL) continue;
      *fence = cmd->fence;
      cmd->kind = CMD_NOTHING;
      return true;
    }
  }
  return false;
}

void remote_lose(heddle_pdevice *dev, int32_t code, const char *text) {
  const heddle_host *host = dev->host;
  heddle_pfence fence;
  pthread_mutex_lock(&dev->link->lock);
  const bool first = !atomic_load(&dev->lost);
  if (first) {
    p_fail(&dev->fault, HEDDLE_EDEVICE, code, "remote:%u (%s) is lost: %.700s", dev->index, dev->about->name, text);
    atomic_store(&dev->lost, true);
  }
  pthread_cond_broadcast(&dev->link->work);
  pthread_cond_broadcast(&dev->link->done);
  pthread_mutex_unlock(&dev->link->lock);
  if (first) host->device_fault(host->ctx, dev->cookie, code, dev->fault.text);
  pthread_mutex_lock(&dev->link->lock);
  while (take_signal(dev, &fence)) {
    pthread_mutex_unlock(&dev->link->lock);
    host->fence_fail(host->ctx, fence, HEDDLE_EDEVICE, dev->fault.text);
    pthread_mutex_lock(&dev->link->lock);
  }
  pthread_mutex_unlock(&dev->link->lock);
}

/* Waits until nothing of the device moves. With the lock. */
static bool settle(heddle_pdevice *dev, uint64_t timeout_ns) {
  const struct timespec until = remote_deadline(timeout_ns);
  int code = 0;
  while (remote_busy(dev) && code != ETIMEDOUT)
    code = pthread_cond_timedwait(&dev->link->done, &dev->link->lock, &until);
  return !remote_busy(dev);
}

/* The server ends the session with the connection, and all that runs in it. */
static heddle_status device_reset(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  pthread_mutex_lock(&dev->link->lock);
  const bool is_quiet = atomic_load(&dev->lost) && !remote_busy(dev);
  pthread_mutex_unlock(&dev->link->lock);
  if (!is_quiet) remote_link_lose(dev->link, 0, "a device was reset, since its work did not end");
  pthread_mutex_lock(&dev->link->lock);
  const bool is_done = settle(dev, timeout_ns);
  pthread_mutex_unlock(&dev->link->lock);
  if (is_done) return HEDDLE_OK;
  return p_fail(err, HEDDLE_ETIMEOUT, 0, "remote:%u: the connection did not end in time", dev->index);
}

/* ---------------------------------------------------------------- what is kept */

bool remote_busy(const heddle_pdevice *dev) {
  if (dev->moving > 0) return true;
  if (atomic_load(&dev->lost)) return false;
  for (const heddle_pstream *s = dev->link->streams; s != NULL; s = s->next)
    if (s->dev == dev && s->tail != s->submitted) return true;
  return false;
}

static void free_kept(heddle_pdevice *dev, remote_kept *item) {
  while (item != NULL) {
    remote_kept *next = item->next;
    item->destroy(dev, item);
    item = next;
  }
}

/* What work may still use is freed with the first that is freed when the device is idle, or when it is closed. */
void remote_give(heddle_pdevice *dev, remote_kept *item) {
  remote_kept *others = NULL;
  pthread_mutex_lock(&dev->link->lock);
  const bool keep = remote_busy(dev);
  if (keep) {
    item->next = dev->kept;
    dev->kept = item;
  } else {
    others = dev->kept;
    dev->kept = NULL;
  }
  pthread_mutex_unlock(&dev->link->lock);
  free_kept(dev, others);
  if (!keep) item->destroy(dev, item);
}

/* ---------------------------------------------------------------- open and close */

static void device_close(heddle_pdevice *dev) {
  if (dev == NULL) return;
  remote_link *link = dev->link;
  const heddle_host *host = dev->host;
  pthread_mutex_lock(&link->lock);
  bool is_done = settle(dev, CLOSE_NS);
  pthread_mutex_unlock(&link->lock);
  if (!is_done) {
    remote_link_lose(link, 0, "a device was closed with work that did not end");
    pthread_mutex_lock(&link->lock);
    is_done = settle(dev, 4 * CLOSE_NS);
    pthread_mutex_unlock(&link->lock);
  }
  if (!is_done) {
    host->log(host->ctx, HEDDLE_LOG_WARN, "remote",
              "a device was closed with work that does not end; its memory is kept");
    return;
  }
  free_kept(dev, dev->kept);
  pthread_mutex_lock(&link->lock);
  heddle_pdevice **at = &link->devices;
  while (*at != dev) at = &(*at)->next;
  *at = dev->next;
  for (heddle_pstream **s = &link->streams; *s != NULL;) {
    heddle_pstream *stream = *s;
    if (stream->dev != dev) {
      s = &stream->next;
      continue;
    }
    *s = stream->next;
    remote_stream_free(stream);
  }
  pthread_mutex_unlock(&link->lock);
  if (!atomic_load(&link->lost)) {
    byte_buffer b = {0};
    wire_begin(&b);
    byte_put_u32(&b, dev->remote);
    (void)remote_post(link, WIRE_CLOSE, 0, &b, NULL);
  }
  remote_link_drop(link);
  host->free(host->ctx, dev);
}

/* Settings of one device alone: there are none. */
static heddle_status device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  remote_server *server;
  uint32_t remote;
  uint64_t nothing;
  heddle_status s = remote_find(self, index, &server, &remote, err);
  if (s != HEDDLE_OK) return s;
  s = p_no_device_settings("remote", index, options, err);
  if (s != HEDDLE_OK) return s;
  heddle_pdevice *dev = remote_new(self->host, sizeof *dev);
  if (dev == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "remote:%u: no memory for a device", index);
  s = remote_link_get(self, (uint32_t)(server - self->servers), &dev->link, err);
  if (s == HEDDLE_OK) {
    byte_buffer b = {0};
    wire_begin(&b);
    byte_put_u32(&b, remote);
    s = remote_ask_number(dev->link, WIRE_OPEN, &b, &nothing, err);
    if (s != HEDDLE_OK) remote_link_drop(dev->link);
  }
  if (s != HEDDLE_OK) {
    self->host->free(self->host->ctx, dev);
    return s;
  }
  dev->self = self;
  dev->host = self->host;
  dev->about = &server->devices[remote];
  dev->index = index;
  dev->remote = remote;
  if (HEDDLE_HAS(heddle_pdevice_options, options, cookie)) dev->cookie = options->cookie;
  pthread_mutex_lock(&dev->link->lock);
  dev->next = dev->link->devices;
  dev->link->devices = dev;
  const bool is_lost = atomic_load(&dev->link->lost);
  pthread_mutex_unlock(&dev->link->lock);
  if (is_lost) remote_lose(dev, dev->link->fault.api_code, dev->link->fault.text);
  *out = dev;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- queries */

static heddle_status device_query(heddle_pdevice *dev, uint32_t key, int64_t *out, heddle_error *err) {
  if (key < HEDDLE_QUERY_LIVE_BUFFERS || key > HEDDLE_QUERY_LIVE_OBJECTS)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "remote:%u: query of key %u is not supported", dev->index, key);
  *out = atomic_load(&dev->live[key]);
  return HEDDLE_OK;
}

static heddle_status device_idle(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  pthread_mutex_lock(&dev->link->lock);
  const bool is_idle = settle(dev, timeout_ns);
  pthread_mutex_unlock(&dev->link->lock);
  if (!is_idle) return p_fail(err, HEDDLE_ETIMEOUT, 0, "remote:%u: the device did not become idle in time", dev->index);
  return remote_check(dev, err);
}

static heddle_status device_memory_now(heddle_pdevice *dev, uint64_t *free_bytes, uint64_t *total_bytes,
                                       heddle_error *err) {
  byte_buffer b = {0}, reply;
  heddle_status s = remote_check(dev, err);
  if (s != HEDDLE_OK) return s;
  wire_begin(&b);
  byte_put_u32(&b, dev->remote);
  s = remote_ask(dev->link, WIRE_MEMORY_NOW, &b, &reply, err);
  if (s != HEDDLE_OK) return s;
  byte_reader r = {reply.data, reply.used, false};
  *free_bytes = byte_take_u64(&r);
  *total_bytes = byte_take_u64(&r);
  if (!wire_is_done(&r)) s = p_fail(err, HEDDLE_EFAILED, 0, "remote:%u: an answer is malformed", dev->index);
  byte_finish(&reply);
  return s;
}

const heddle_device_table remote_device_table = {
    .struct_size = sizeof remote_device_table,
    .close = device_close,
    .open = device_open,
    .query = device_query,
    .health = remote_check,
    .idle = device_idle,
    .memory_now = device_memory_now,
    .reset = device_reset,
};
