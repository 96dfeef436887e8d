/* The device: opening and closing it with its thread, its health, and what is alive on it. */
#include "npu.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

void *npu_new(const heddle_host *host, uint64_t bytes) {
  void *p = host->alloc(host->ctx, bytes, 64);
  if (p != NULL) memset(p, 0, bytes);
  return p;
}

heddle_status npu_check(heddle_pdevice *dev, heddle_error *err) {
  if (!atomic_load(&dev->lost)) return HEDDLE_OK;
  if (err != NULL) *err = dev->fault; /* written once, before lost */
  return HEDDLE_EDEVICE;
}

static void free_device(heddle_pdevice *dev) {
  const heddle_host *host = dev->host;
  if (dev->machine != NULL) host->free(host->ctx, dev->machine->dram);
  host->free(host->ctx, dev->machine);
  host->free(host->ctx, dev);
}

/* The thread ends when all streams are empty: nothing that it waits for lies outside the instance. */
static void device_close(heddle_pdevice *dev) {
  if (dev == NULL) return;
  pthread_mutex_lock(&dev->self->lock);
  dev->stop = true;
  pthread_cond_broadcast(&dev->self->work);
  pthread_mutex_unlock(&dev->self->lock);
  pthread_join(dev->thread, NULL);
  free_device(dev);
}

/* All signals of the program are for its own threads. */
static int start_thread(heddle_pdevice *dev) {
  sigset_t all, before;
  sigfillset(&all);
  int code = pthread_sigmask(SIG_SETMASK, &all, &before);
  if (code != 0) return code;
  code = pthread_create(&dev->thread, NULL, npu_thread, dev);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return code;
}

static heddle_status device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  const heddle_host *host = self->host;
  if (index != 0) return p_fail(err, HEDDLE_ENODEV, 0, "npu:%u: there is one device, npu:0", index);
  if (HEDDLE_HAS(heddle_pdevice_options, options, settings) && options->settings.count > 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "npu:0: there is no setting '%.100s' of one device",
                  ((const heddle_pkeyvalue *)options->settings.data)->key);
  heddle_pdevice *dev = npu_new(host, sizeof *dev);
  if (dev != NULL) {
    dev->self = self;
    dev->host = host;
    dev->cookie = options != NULL ? options->cookie : 0;
    dev->machine = npu_new(host, sizeof *dev->machine);
    if (dev->machine != NULL) dev->machine->dram = host->alloc(host->ctx, self->dram_bytes, 4096);
  }
  if (dev == NULL || dev->machine == NULL || dev->machine->dram == NULL) {
    if (dev != NULL) free_device(dev);
    return p_fail(err, HEDDLE_ENOMEM, 0, "npu:0: no memory for a device with %llu bytes of DRAM",
                  (unsigned long long)self->dram_bytes);
  }
  dev->machine->dram_bytes = self->dram_bytes;
  const int code = start_thread(dev);
  if (code != 0) {
    free_device(dev);
    return p_fail(err, HEDDLE_ENOMEM, code, "npu:0: no thread for the device (errno %d)", code);
  }
  *out = dev;
  return HEDDLE_OK;
}

static heddle_status device_query(heddle_pdevice *dev, uint32_t key, int64_t *out, heddle_error *err) {
  switch (key) {
  case HEDDLE_QUERY_LIVE_BUFFERS: *out = atomic_load(&dev->live_buffers); return HEDDLE_OK;
  case HEDDLE_QUERY_LIVE_BYTES: *out = atomic_load(&dev->live_bytes); return HEDDLE_OK;
  case HEDDLE_QUERY_LIVE_OBJECTS: *out = atomic_load(&dev->live_objects); return HEDDLE_OK;
  default: return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "npu:0: query of key %u is not supported", key);
  }
}

static bool is_busy(const heddle_pdevice *dev) {
  for (const heddle_pstream *s = dev->streams; s != NULL; s = s->next)
    if (s->tail != s->submitted) return true;
  return dev->running;
}

static heddle_status device_idle(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  const struct timespec until = npu_deadline(timeout_ns);
  int code = 0;
  pthread_mutex_lock(&dev->self->lock);
  while (is_busy(dev) && code != ETIMEDOUT) code = pthread_cond_timedwait(&dev->self->done, &dev->self->lock, &until);
  const bool busy = is_busy(dev);
  pthread_mutex_unlock(&dev->self->lock);
  if (busy) return p_fail(err, HEDDLE_ETIMEOUT, 0, "npu:0: the device did not become idle in time");
  return npu_check(dev, err);
}

/* The thread passes over what is left in the streams of a lost device, and fails its fences. */
static heddle_status device_reset(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  const struct timespec until = npu_deadline(timeout_ns);
  heddle_error why;
  int code = 0;
  p_fail(&why, HEDDLE_EDEVICE, 0, "npu:0 was reset: its work did not end");
  npu_lose(dev, &why);
  pthread_mutex_lock(&dev->self->lock);
  while (is_busy(dev) && code != ETIMEDOUT) code = pthread_cond_timedwait(&dev->self->done, &dev->self->lock, &until);
  const bool busy = is_busy(dev);
  pthread_mutex_unlock(&dev->self->lock);
  return busy ? p_fail(err, HEDDLE_ETIMEOUT, 0, "npu:0: its program did not stop in time") : HEDDLE_OK;
}

static heddle_status memory_now(heddle_pdevice *dev, uint64_t *free_bytes, uint64_t *total_bytes, heddle_error *err) {
  (void)err;
  uint64_t used = 0;
  pthread_mutex_lock(&dev->self->lock);
  for (const heddle_pbuffer *b = dev->used; b != NULL; b = b->next) used += b->bytes;
  pthread_mutex_unlock(&dev->self->lock);
  *total_bytes = dev->self->dram_bytes;
  *free_bytes = *total_bytes - used;
  return HEDDLE_OK;
}

const heddle_device_table npu_device_table = {
    .struct_size = sizeof npu_device_table,
    .close = device_close,
    .open = device_open,
    .query = device_query,
    .health = npu_check,
    .idle = device_idle,
    .memory_now = memory_now,
    .reset = device_reset,
};
