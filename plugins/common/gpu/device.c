/* The device: opening and closing, how much of what is alive on it, and waiting for all its work. */
#include "gpu.h"
#include "library.h"

#include "plugins/common/options.h"

/* How long closing waits for work before it leaves a hung device behind. */
#define CLOSE_NS UINT64_C(2000000000)

/* ---------------------------------------------------------------- opening */

/* Devices of an instance reach each other's memory from the moment that both are open, so that no copy has to see to it
 * in a run. Where the hardware cannot, the driver's copies go through the host. */
static void meet(heddle_pdevice *dev, heddle_pdevice *other) {
  const gpu_driver *d = dev->driver;
  gpu_scope scope;
  int can = 0;
  if (d->device_can_peer == NULL || d->device_can_peer(&can, dev->info->device, other->info->device) != 0 || !can)
    return;
  if (dev->vendor->enter(dev, &scope) != 0) return;
  const int code = dev->vendor->peer_enable(dev, other);
  gpu_leave(dev, &scope);
  if (code != 0) {
    char words[200], line[300];
    dev->vendor->code_words(dev->self, code, words, sizeof words);
    snprintf(line, sizeof line, "%s:%u does not reach the memory of %s:%u: %s", dev->vendor->name, dev->index,
             dev->vendor->name, other->index, words);
    dev->host->log(dev->host->ctx, HEDDLE_LOG_DEBUG, dev->vendor->name, line);
  }
}

/* With the lock of the instance held from meeting to joining, no two that are opened at once miss each other. */
static void join(heddle_pdevice *dev) {
  heddle_pinstance *self = dev->self;
  pthread_mutex_lock(&self->lock);
  for (heddle_pdevice *x = self->open; self->peer && x != NULL; x = x->next) {
    if (x->index == dev->index) continue;
    meet(dev, x);
    meet(x, dev);
  }
  dev->next = self->open;
  self->open = dev;
  pthread_mutex_unlock(&self->lock);
}

static void part(heddle_pdevice *dev) {
  heddle_pinstance *self = dev->self;
  pthread_mutex_lock(&self->lock);
  for (heddle_pdevice **at = &self->open; *at != NULL; at = &(*at)->next) {
    if (*at != dev) continue;
    *at = dev->next;
    break;
  }
  pthread_mutex_unlock(&self->lock);
}

/* The driver gives its memory back once nothing of it is allocated any more. */
static void close_pool(heddle_pdevice *dev) {
  if (dev->pool != NULL) dev->driver->pool_destroy(dev->pool);
  dev->pool = NULL;
}

/* A pool of the device's own, which keeps all that is freed to it, so that memory is asked of the system once. The
 * device's default pool belongs to the whole process and stays as other code set it. */
static int open_pool(heddle_pdevice *dev) {
  const gpu_driver *d = dev->driver;
  const gpu_pool_props props = {.kind = GPU_POOL_PINNED, .place = GPU_POOL_DEVICE, .device = dev->info->device};
  uint64_t all = UINT64_MAX;
  if (!dev->self->pools || !dev->info->pools || d->alloc_from == NULL || d->free_async == NULL ||
      d->pool_create == NULL || d->pool_destroy == NULL || d->pool_set == NULL)
    return 0;
  int code = d->pool_create(&dev->pool, &props);
  if (code != 0) dev->pool = NULL;
  if (code == 0) code = d->pool_set(dev->pool, GPU_POOL_RELEASE_THRESHOLD, &all);
  if (code != 0) close_pool(dev);
  return dev->vendor->fate(code) == GPU_UNSUPPORTED ? 0 : code;
}

static void free_device(heddle_pdevice *dev) {
  const heddle_host *host = dev->host;
  pthread_mutex_destroy(&dev->build_lock);
  pthread_mutex_destroy(&dev->lock);
  host->free(host->ctx, dev);
}

/* Inside the context. */
static heddle_status open_inside(heddle_pdevice *dev, heddle_error *err) {
  int code = dev->driver->stream_create(&dev->service, GPU_STREAM_NON_BLOCKING, 0);
  if (code == 0) code = open_pool(dev);
  heddle_status s = gpu_check(dev, code, "open the device", err);
  if (s == HEDDLE_OK && dev->pool == NULL) s = gpu_blocks_open(dev, err);
  if (s == HEDDLE_OK) s = gpu_weights_open(dev, err);
  if (s == HEDDLE_OK) s = gpu_watch_open(dev, err);
  if (s != HEDDLE_OK) {
    gpu_weights_close(dev);
    gpu_blocks_close(dev);
    close_pool(dev);
    if (dev->service != NULL) dev->driver->stream_destroy(dev->service);
  }
  return s;
}

static heddle_status open_context(heddle_pdevice *dev, heddle_error *err) {
  gpu_scope scope;
  const int code = dev->vendor->context_get(dev);
  char words[300];
  if (dev->vendor->fate(code) == GPU_LOST) { /* no fault of this device: it was never open */
    dev->vendor->code_words(dev->self, code, words, sizeof words);
    return p_fail(err, HEDDLE_EDEVICE, code,
                  "%s:%u: its context in this process is lost, and other code, such as a vendor's library, holds it: "
                  "restart the process (%s)",
                  dev->vendor->name, dev->index, words);
  }
  heddle_status s = gpu_check(dev, code, "make a context", err);
  if (s != HEDDLE_OK) return s;
  s = gpu_enter(dev, &scope, err);
  if (s == HEDDLE_OK) {
    s = open_inside(dev, err);
    gpu_leave(dev, &scope);
  }
  if (s != HEDDLE_OK) dev->vendor->context_put(dev);
  return s;
}

static heddle_status device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  void *memory = NULL;
  if (index >= self->n_devices)
    return p_fail(err, HEDDLE_ENODEV, 0, "%s:%u: there are %u devices", self->vendor->name, index, self->n_devices);
  heddle_status s = p_no_device_settings(self->vendor->name, index, options, err);
  if (s == HEDDLE_OK) s = gpu_new(self->host, sizeof **out, "a device", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pdevice *dev = memory;
  dev->host = self->host;
  dev->self = self;
  dev->vendor = self->vendor;
  dev->driver = &self->driver;
  dev->info = &self->devices[index];
  dev->index = index;
  dev->cookie = options != NULL ? options->cookie : 0;
  if (pthread_mutex_init(&dev->lock, NULL) != 0) goto no_lock;
  if (pthread_mutex_init(&dev->build_lock, NULL) != 0) goto no_build_lock;
  s = open_context(dev, err);
  if (s != HEDDLE_OK) {
    free_device(dev);
    return s;
  }
  join(dev);
  *out = dev;
  return HEDDLE_OK;

no_build_lock:
  pthread_mutex_destroy(&dev->lock);
no_lock:
  self->host->free(self->host->ctx, dev);
  return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no lock for a device", self->vendor->name, index);
}

/* ---------------------------------------------------------------- waiting and closing */

/* Nothing of the device's touches memory any more. */
static void settled(heddle_pdevice *dev) {
  gpu_scope scope;
  atomic_store_explicit(&dev->hung, false, memory_order_release);
  if (dev->vendor->enter(dev, &scope) != 0) return;
  gpu_memory_release(dev);
  gpu_leave(dev, &scope);
}

static heddle_status device_idle(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  const heddle_status s = gpu_streams_idle(dev, timeout_ns, err);
  if (s == HEDDLE_ETIMEOUT) atomic_store_explicit(&dev->hung, true, memory_order_release);
  else settled(dev);
  return s;
}

bool gpu_hangs(heddle_pdevice *dev) {
  if (!atomic_load_explicit(&dev->hung, memory_order_acquire)) return false;
  return device_idle(dev, 0, NULL) == HEDDLE_ETIMEOUT;
}

static void device_close(heddle_pdevice *dev) {
  gpu_scope scope;
  if (dev == NULL) return;
  const heddle_host *host = dev->host;
  part(dev);
  if (device_idle(dev, CLOSE_NS, NULL) == HEDDLE_ETIMEOUT ||
      !gpu_signals_over(dev, CLOSE_NS)) { /* what may still write finds its memory */
    atomic_store(&dev->self->left_behind, true);
    host->log(host->ctx, HEDDLE_LOG_WARN, dev->vendor->name,
              "a device is closed while its work hangs; it is left behind");
    return;
  }
  if (dev->vendor->enter(dev, &scope) == 0) {
    gpu_library_device_close(dev); /* before the streams that their handles still have */
    gpu_leave(dev, &scope);
  }
  gpu_watch_close(dev);
  if (dev->vendor->enter(dev, &scope) == 0) {
    gpu_memory_release(dev);
    gpu_spares_close(dev);
    gpu_programs_close(dev);
    gpu_memory_trim(dev); /* the frees are through */
    close_pool(dev);
    gpu_blocks_close(dev);
    dev->driver->stream_destroy(dev->service);
    gpu_leave(dev, &scope);
  }
  gpu_weights_close(dev);
  dev->vendor->context_put(dev);
  free_device(dev);
}

/* ---------------------------------------------------------------- questions */

static heddle_status device_query(heddle_pdevice *dev, uint32_t key, int64_t *out, heddle_error *err) {
  switch (key) {
  case HEDDLE_QUERY_LIVE_BUFFERS: *out = atomic_load_explicit(&dev->live_buffers, memory_order_relaxed); break;
  case HEDDLE_QUERY_LIVE_BYTES: *out = atomic_load_explicit(&dev->live_bytes, memory_order_relaxed); break;
  case HEDDLE_QUERY_LIVE_OBJECTS: *out = atomic_load_explicit(&dev->live_objects, memory_order_relaxed); break;
  default:
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s:%u: query of key %u is not supported", dev->vendor->name, dev->index,
                  key);
  }
  return HEDDLE_OK;
}

/* What the pool or our blocks keep of freed memory is free too, once the frees have had their turn. */
static heddle_status device_memory_now(heddle_pdevice *dev, uint64_t *free_bytes, uint64_t *total_bytes,
                                       heddle_error *err) {
  size_t free_now = 0, all = 0;
  uint64_t reserved = 0, used = 0;
  gpu_scope scope;
  heddle_status s = gpu_health(dev, err);
  if (s == HEDDLE_OK) s = gpu_enter(dev, &scope, err);
  if (s != HEDDLE_OK) return s;
  int code = dev->driver->stream_sync(dev->service);
  if (code == 0) code = dev->driver->memory_now(&free_now, &all);
  if (code == 0 && dev->pool != NULL && dev->driver->pool_get != NULL) {
    if (dev->driver->pool_get(dev->pool, GPU_POOL_RESERVED, &reserved) != 0 ||
        dev->driver->pool_get(dev->pool, GPU_POOL_USED, &used) != 0 || used > reserved)
      reserved = used = 0;
  }
  gpu_leave(dev, &scope);
  s = gpu_check(dev, code, "ask for free memory", err);
  if (s != HEDDLE_OK) return s;
  *free_bytes = free_now + (reserved - used) + gpu_blocks_kept(dev);
  *total_bytes = all;
  return HEDDLE_OK;
}

const heddle_device_table gpu_device_table = {
    .struct_size = sizeof gpu_device_table,
    .close = device_close,
    .open = device_open,
    .query = device_query,
    .health = gpu_health,
    .idle = device_idle,
    .memory_now = device_memory_now,
};
