/* The device: opening and closing, how much of what is alive on it, and waiting for all its work. */
#include "opencl.h"

#include "plugins/common/options.h"

#include <time.h>

/* How long closing waits for work and callbacks before it leaves a hung device behind. */
#define CLOSE_NS UINT64_C(2000000000)

static void destroy(heddle_pdevice *dev) {
  const heddle_host *host = dev->host;
  pthread_mutex_destroy(&dev->build_lock);
  pthread_mutex_destroy(&dev->lock);
  host->free(host->ctx, dev);
}

static heddle_status device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  void *memory = NULL;
  if (index >= self->n_devices)
    return p_fail(err, HEDDLE_ENODEV, 0, "opencl:%u: there are %u devices", index, self->n_devices);
  heddle_status s = p_no_device_settings("opencl", index, options, err);
  if (s == HEDDLE_OK) s = ocl_new(self->host, sizeof **out, "a device", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pdevice *dev = memory;
  dev->host = self->host;
  dev->self = self;
  dev->info = &self->devices[index];
  dev->index = index;
  dev->cookie = options != NULL ? options->cookie : 0;
  if (pthread_mutex_init(&dev->lock, NULL) != 0) goto no_lock;
  if (pthread_mutex_init(&dev->build_lock, NULL) != 0) goto no_build_lock;
  s = ocl_context_get(self, dev->info, &dev->context, err);
  if (s != HEDDLE_OK) {
    destroy(dev);
    return s;
  }
  *out = dev;
  return HEDDLE_OK;

no_build_lock:
  pthread_mutex_destroy(&dev->lock);
no_lock:
  self->host->free(self->host->ctx, dev);
  return p_fail(err, HEDDLE_ENOMEM, 0, "opencl:%u: no lock for a device", index);
}

static heddle_status device_idle(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  const heddle_host *host = dev->host;
  const uint64_t start = host->now_ns(host->ctx);
  heddle_status s = HEDDLE_OK;
  heddle_pstream *next;
  for (uint64_t last = UINT64_MAX; s == HEDDLE_OK && (next = ocl_stream_next(dev, &last)) != NULL;) {
    cl_event mark = NULL;
    const uint64_t enqueued = atomic_load_explicit(&next->enqueued, memory_order_acquire);
    if (!next->adopted) s = ocl_stream_mark(next, &mark, err);
    if (mark != NULL) {
      const uint64_t used = host->now_ns(host->ctx) - start;
      const uint64_t left = timeout_ns == UINT64_MAX ? UINT64_MAX : used < timeout_ns ? timeout_ns - used : 0;
      heddle_error failed = {0};
      s = ocl_wait(dev, mark, left, &failed);
      if (s == HEDDLE_OK) ocl_stream_reached(next, mark, enqueued);
      else clReleaseEvent(mark);
      if (s == HEDDLE_ETIMEOUT || s == HEDDLE_EDEVICE) {
        if (err != NULL) *err = failed;
      } else if (s != HEDDLE_OK) { /* work that failed is finished too; its stream tells */
        ocl_stream_failed(next, &failed);
        s = HEDDLE_OK;
      }
    }
    ocl_stream_drop(next);
  }
  ocl_streams_reap(dev);
  if (s == HEDDLE_OK) s = ocl_health(dev, err);
  return s;
}

/* Waits until the driver has made its callbacks; false where the time is over. */
static bool callbacks_done(heddle_pdevice *dev, uint64_t timeout_ns) {
  const struct timespec nap = {0, 200000};
  for (uint64_t waited = 0; atomic_load(&dev->callbacks) > 0; waited += 200000) {
    if (waited > timeout_ns) return false;
    nanosleep(&nap, NULL);
  }
  return true;
}

/* OpenCL takes no work back and stops none: what is enqueued must end by itself within the time. Then the context may go,
 * and with it all that a fault has left there; it goes with its last device. What ends later finds its fences failed. */
static heddle_status device_reset(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  const heddle_host *host = dev->host;
  const uint64_t start = host->now_ns(host->ctx);
  heddle_error fault;
  p_fail(&fault, HEDDLE_EDEVICE, 0, "opencl:%u: device lost: it was reset", dev->index);
  ocl_fault(dev, &fault);
  ocl_signals_fail(dev);
  heddle_status s = device_idle(dev, timeout_ns, err);
  const uint64_t used = host->now_ns(host->ctx) - start;
  const bool quiet = s != HEDDLE_ETIMEOUT && callbacks_done(dev, used < timeout_ns ? timeout_ns - used : 0);
  dev->hangs = !quiet;
  if (quiet) return HEDDLE_OK;
  return p_fail(err, HEDDLE_ETIMEOUT, 0,
                "opencl:%u: the work that hangs did not end within %llu ms, and OpenCL stops none", dev->index,
                (unsigned long long)(timeout_ns / 1000000));
}

static void device_close(heddle_pdevice *dev) {
  if (dev == NULL) return;
  const heddle_host *host = dev->host;
  const heddle_status s = device_idle(dev, dev->hangs ? 0 : CLOSE_NS, NULL);
  if (s == HEDDLE_ETIMEOUT || !callbacks_done(dev, CLOSE_NS)) { /* a callback may still come and finds its device */
    host->log(host->ctx, HEDDLE_LOG_WARN, "opencl", "a device is closed while its work hangs; it is left behind");
    ocl_context_abandon(dev->self, dev->info);
    return;
  }
  ocl_streams_reap(dev);
  ocl_programs_release(dev);
  if (dev->service != NULL) clReleaseCommandQueue(dev->service);
  ocl_context_put(dev->self, dev->info);
  destroy(dev);
}

static heddle_status device_query(heddle_pdevice *dev, uint32_t key, int64_t *out, heddle_error *err) {
  switch (key) {
  case HEDDLE_QUERY_LIVE_BUFFERS: *out = atomic_load_explicit(&dev->live_buffers, memory_order_relaxed); break;
  case HEDDLE_QUERY_LIVE_BYTES: *out = atomic_load_explicit(&dev->live_bytes, memory_order_relaxed); break;
  case HEDDLE_QUERY_LIVE_OBJECTS: *out = atomic_load_explicit(&dev->live_objects, memory_order_relaxed); break;
  default: return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "opencl:%u: query of key %u is not supported", dev->index, key);
  }
  return HEDDLE_OK;
}

const heddle_device_table ocl_device_table = {
    .struct_size = sizeof ocl_device_table,
    .close = device_close,
    .open = device_open,
    .query = device_query,
    .health = ocl_health,
    .idle = device_idle,
    .reset = device_reset,
};
