/* The device: opening it with its threads, closing it, its health, its loss and its reset. */
#include "plugins/common/queue/inside.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define CLOSE_NS UINT64_C(500000000) /* how long close waits for the threads, before and after the driver's stop */

heddle_status queue_instance_init(queue_instance *self, const heddle_host *host, const queue_driver *driver,
                                  heddle_error *err) {
  char text[24], *end = text;
  *self = (queue_instance){host, driver, UINT64_MAX};
  const int64_t length = host->config(host->ctx, "lose_on_fill", text, sizeof text);
  if (length < 0) return HEDDLE_OK;
  const unsigned long long word = length < (int64_t)sizeof text ? strtoull(text, &end, 10) : 0;
  if (end == text || *end != '\0' || text[0] == '-' || word > UINT32_MAX)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s: the setting lose_on_fill is a whole number from 0 to %u", driver->name,
                  UINT32_MAX);
  self->lose_at = word;
  return HEDDLE_OK;
}

void *queue_new(const heddle_host *host, uint64_t bytes) {
  void *p = host->alloc(host->ctx, bytes, 64);
  if (p != NULL) memset(p, 0, bytes);
  return p;
}

struct timespec queue_deadline(uint64_t timeout_ns) {
  const uint64_t most = UINT64_C(4000000000) * 1000000000; /* past the year 2090 on any clock */
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const uint64_t start = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
  const uint64_t end = timeout_ns > most - start ? most : start + timeout_ns;
  return (struct timespec){.tv_sec = (time_t)(end / 1000000000), .tv_nsec = (long)(end % 1000000000)};
}

heddle_status queue_check(heddle_pdevice *dev, heddle_error *err) {
  if (!atomic_load(&dev->lost)) return HEDDLE_OK;
  if (err != NULL) *err = dev->fault;
  return HEDDLE_EDEVICE;
}

/* ---------------------------------------------------------------- loss */

void queue_lose(heddle_pdevice *dev, int32_t api_code, const char *text) {
  pthread_mutex_lock(&dev->lock);
  const bool first = !atomic_load(&dev->lost);
  if (first) {
    p_fail(&dev->fault, HEDDLE_EDEVICE, api_code, "%s", text);
    atomic_store(&dev->lost, true);
    pthread_cond_broadcast(&dev->work);
    pthread_cond_broadcast(&dev->done);
  }
  pthread_mutex_unlock(&dev->lock);
  if (!first || atomic_load(&dev->abandoned)) return;
  dev->host->device_fault(dev->host->ctx, dev->cookie, api_code, dev->fault.text);
  queue_fail_signals(dev);
}

static bool is_running(const heddle_pdevice *dev) {
  return dev->threads[0].running || dev->threads[1].running;
}

static bool has_ended(const heddle_pdevice *dev) {
  return (!dev->threads[0].started || dev->threads[0].ended) && (!dev->threads[1].started || dev->threads[1].ended);
}

static heddle_status device_reset(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  const struct timespec until = queue_deadline(timeout_ns);
  char text[200];
  int code = 0;
  snprintf(text, sizeof text, "%s:%u was reset: its work did not end", dev->driver->name, dev->index);
  queue_lose(dev, 0, text);
  if (dev->driver->stop != NULL) dev->driver->stop(dev->device);
  pthread_mutex_lock(&dev->lock);
  while (queue_busy(dev) && code != ETIMEDOUT) code = pthread_cond_timedwait(&dev->done, &dev->lock, &until);
  const bool busy = queue_busy(dev);
  pthread_mutex_unlock(&dev->lock);
  if (!busy) return HEDDLE_OK;
  return p_fail(err, HEDDLE_ETIMEOUT, 0, "%s:%u: a call of its driver has not returned", dev->driver->name, dev->index);
}

/* ---------------------------------------------------------------- what is kept */

bool queue_busy(const heddle_pdevice *dev) {
  for (const heddle_pstream *s = dev->streams; s != NULL; s = s->next)
    if (s->tail != s->submitted) return true;
  return is_running(dev);
}

void queue_give(heddle_pdevice *dev, queue_kept *item) {
  pthread_mutex_lock(&dev->lock);
  const bool keep = (dev->detached || atomic_load(&dev->lost)) && queue_busy(dev);
  if (keep) {
    item->next = dev->kept;
    dev->kept = item;
  }
  pthread_mutex_unlock(&dev->lock);
  if (!keep) item->destroy(dev, item);
}

/* ---------------------------------------------------------------- open and close */

static void free_device(heddle_pdevice *dev) {
  pthread_cond_destroy(&dev->done);
  pthread_cond_destroy(&dev->work);
  pthread_mutex_destroy(&dev->lock);
  dev->host->free(dev->host->ctx, dev);
}

/* Ends the threads; false: one is still in a call of the driver. */
static bool end_threads(heddle_pdevice *dev) {
  bool ended = false;
  for (int turn = 0; turn < 2 && !ended; turn++) {
    const struct timespec until = queue_deadline(CLOSE_NS);
    if (turn > 0 && dev->driver->stop != NULL) dev->driver->stop(dev->device);
    pthread_mutex_lock(&dev->lock);
    dev->stop = true;
    pthread_cond_broadcast(&dev->work);
    while (!has_ended(dev) && pthread_cond_timedwait(&dev->done, &dev->lock, &until) == 0) {}
    ended = has_ended(dev);
    if (!ended && turn > 0) atomic_store(&dev->abandoned, true);
    pthread_mutex_unlock(&dev->lock);
  }
  for (int i = 0; i < 2; i++) {
    if (!dev->threads[i].started) continue;
    if (ended) pthread_join(dev->threads[i].thread, NULL);
    else pthread_detach(dev->threads[i].thread);
  }
  return ended;
}

static void device_close(heddle_pdevice *dev) {
  if (dev == NULL) return;
  const heddle_host *host = dev->host;
  if (!end_threads(dev)) {
    host->log(host->ctx, HEDDLE_LOG_WARN, dev->driver->name,
              "a device was closed with work that does not end; its memory is kept");
    return;
  }
  while (dev->kept != NULL) {
    queue_kept *item = dev->kept;
    dev->kept = item->next;
    item->destroy(dev, item);
  }
  while (dev->streams != NULL) {
    heddle_pstream *s = dev->streams;
    dev->streams = s->next;
    queue_stream_free(s);
  }
  dev->driver->close(dev->device);
  free_device(dev);
}

static int init(heddle_pdevice *dev) {
  pthread_condattr_t monotonic;
  int code = pthread_condattr_init(&monotonic);
  if (code != 0) return code;
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  code = pthread_mutex_init(&dev->lock, NULL);
  if (code == 0 && (code = pthread_cond_init(&dev->work, &monotonic)) != 0) pthread_mutex_destroy(&dev->lock);
  if (code == 0 && (code = pthread_cond_init(&dev->done, &monotonic)) != 0) {
    pthread_cond_destroy(&dev->work);
    pthread_mutex_destroy(&dev->lock);
  }
  pthread_condattr_destroy(&monotonic);
  return code;
}

/* All signals of the program are for its own threads. */
static int start_threads(heddle_pdevice *dev) {
  sigset_t all, before;
  sigfillset(&all);
  int code = pthread_sigmask(SIG_SETMASK, &all, &before);
  if (code != 0) return code;
  for (uint32_t i = 0; i < (dev->driver->copy_thread ? 2u : 1u) && code == 0; i++) {
    queue_thread *t = &dev->threads[i];
    t->dev = dev;
    t->number = i;
    code = pthread_create(&t->thread, NULL, queue_work_off, t);
    t->started = code == 0;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return code;
}

static heddle_status device_open(heddle_pinstance *instance, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  const queue_instance *self = (const queue_instance *)(const void *)instance; /* its first member */
  const heddle_host *host = self->host;
  const char *name = self->driver->name;
  heddle_pdevice *dev = queue_new(host, sizeof *dev);
  if (dev == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no memory for a device", name, index);
  dev->host = host;
  dev->driver = self->driver;
  dev->lose_at = self->lose_at;
  dev->index = index;
  if (HEDDLE_HAS(heddle_pdevice_options, options, cookie)) dev->cookie = options->cookie;
  int code = init(dev);
  if (code != 0) {
    host->free(host->ctx, dev);
    return p_fail(err, HEDDLE_ENOMEM, code, "%s:%u: no lock for a device (errno %d)", name, index, code);
  }
  const heddle_status s = self->driver->open(instance, index, options, dev, &dev->device, err);
  if (s != HEDDLE_OK) {
    free_device(dev);
    return s;
  }
  code = start_threads(dev);
  if (code != 0) {
    device_close(dev);
    return p_fail(err, HEDDLE_ENOMEM, code, "%s:%u: no thread for a device (errno %d)", name, index, code);
  }
  *out = dev;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- queries */

static heddle_status device_query(heddle_pdevice *dev, uint32_t key, int64_t *out, heddle_error *err) {
  if (key < HEDDLE_QUERY_LIVE_BUFFERS || key > HEDDLE_QUERY_LIVE_OBJECTS)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s:%u: query of key %u is not supported", dev->driver->name, dev->index,
                  key);
  *out = atomic_load(&dev->live[key]);
  return HEDDLE_OK;
}

static heddle_status device_idle(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  const struct timespec until = queue_deadline(timeout_ns);
  int code = 0;
  pthread_mutex_lock(&dev->lock);
  while (queue_busy(dev) && code != ETIMEDOUT) code = pthread_cond_timedwait(&dev->done, &dev->lock, &until);
  const bool busy = queue_busy(dev);
  dev->detached = busy;
  pthread_mutex_unlock(&dev->lock);
  if (busy)
    return p_fail(err, HEDDLE_ETIMEOUT, 0, "%s:%u: the device did not become idle in time", dev->driver->name,
                  dev->index);
  return queue_check(dev, err);
}

const heddle_device_table queue_device_table = {
    .struct_size = sizeof queue_device_table,
    .close = device_close,
    .open = device_open,
    .query = device_query,
    .health = queue_check,
    .idle = device_idle,
    .reset = device_reset,
};
