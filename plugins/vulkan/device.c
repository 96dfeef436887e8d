/* The device: opening and closing, how much of what is alive on it, and waiting for all its work. */
#include "stream.h"

#include "plugins/common/options.h"

/* How long closing waits for work before it leaves a hung device behind. */
#define CLOSE_NS UINT64_C(2000000000)

static void destroy(heddle_pdevice *dev) {
  const heddle_host *host = dev->host;
  for (uint32_t i = 0; i < dev->n_all_queues; i++) vlk_queue_destroy(&dev->queues[i]);
  if (dev->device != VK_NULL_HANDLE) {
    vlk_ops_close(dev);
    vlk_streams_destroy(dev);
    vlk_graphs_sweep(dev);
    dev->vk.DestroyDevice(dev->device, NULL);
  }
  pthread_mutex_destroy(&dev->service_lock);
  pthread_mutex_destroy(&dev->build_lock);
  pthread_mutex_destroy(&dev->memory_lock);
  pthread_mutex_destroy(&dev->lock);
  host->free(host->ctx, dev->queues);
  host->free(host->ctx, dev);
}

static heddle_status make_queues(heddle_pdevice *dev, heddle_error *err) {
  const vlk_info *info = dev->info;
  void *memory = NULL;
  dev->n_queues = dev->timeline ? info->n_queues : 1;
  const uint32_t all = dev->n_queues + (info->copy_family != UINT32_MAX ? 1 : 0);
  heddle_status s = vlk_new(dev->host, all * sizeof *dev->queues, "queues", &memory, err);
  dev->queues = memory;
  for (uint32_t i = 0; i < all && s == HEDDLE_OK; i++) {
    const bool computes = i < dev->n_queues;
    s = vlk_check(
        dev,
        vlk_queue_init(&dev->queues[i], dev, computes ? info->family : info->copy_family, computes ? i : 0, computes),
        "make a queue", err);
    if (s == HEDDLE_OK) dev->n_all_queues++;
  }
  return s;
}

static bool make_locks(heddle_pdevice *dev) {
  pthread_mutex_t *const locks[] = {&dev->lock, &dev->memory_lock, &dev->build_lock, &dev->service_lock};
  size_t n = 0;
  while (n < 4 && pthread_mutex_init(locks[n], NULL) == 0) n++;
  if (n == 4) return true;
  while (n > 0) pthread_mutex_destroy(locks[--n]);
  return false;
}

static heddle_status device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  void *memory = NULL;
  if (index >= self->n_devices)
    return p_fail(err, HEDDLE_ENODEV, 0, "vulkan:%u: there are %u devices", index, self->n_devices);
  heddle_status s = p_no_device_settings("vulkan", index, options, err);
  if (s == HEDDLE_OK) s = vlk_new(self->host, sizeof **out, "a device", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pdevice *dev = memory;
  dev->host = self->host;
  dev->self = self;
  dev->info = &self->devices[index];
  dev->index = index;
  dev->cookie = options != NULL ? options->cookie : 0;
  dev->timeline = dev->info->timeline;
  if (!make_locks(dev)) {
    self->host->free(self->host->ctx, dev);
    return p_fail(err, HEDDLE_ENOMEM, 0, "vulkan:%u: no lock for a device", index);
  }
  VkResult code = vlk_make_device(self, dev->info, &dev->device, &dev->vk);
  if (code != VK_SUCCESS) dev->device = VK_NULL_HANDLE;
  s = vlk_check(dev, code, "open the device", err);
  uint32_t allowed = 0;
  if (s == HEDDLE_OK) s = vlk_check(dev, vlk_block_types(dev, &allowed), "ask where buffers may lie", err);
  if (s == HEDDLE_OK) s = vlk_choose_memory(dev, allowed, err);
  if (s == HEDDLE_OK) s = make_queues(dev, err);
  if (s != HEDDLE_OK) destroy(dev);
  else *out = dev;
  return s;
}

static heddle_status device_idle(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  const heddle_host *host = dev->host;
  const uint64_t start = host->now_ns(host->ctx);
  heddle_status s = HEDDLE_OK;
  pthread_mutex_lock(&dev->lock);
  heddle_pstream *stream = dev->streams;
  pthread_mutex_unlock(&dev->lock);
  for (; stream != NULL && s == HEDDLE_OK; stream = stream->next) {
    const uint64_t used = host->now_ns(host->ctx) - start;
    const uint64_t left = timeout_ns == UINT64_MAX ? UINT64_MAX : used < timeout_ns ? timeout_ns - used : 0;
    s = vlk_wait(stream, atomic_load(&stream->submitted), left, err);
  }
  if (s == HEDDLE_OK) vlk_graphs_sweep(dev);
  return s == HEDDLE_OK ? vlk_health(dev, err) : s;
}

static void device_close(heddle_pdevice *dev) {
  if (dev == NULL) return;
  const heddle_host *host = dev->host;
  const heddle_status s = device_idle(dev, CLOSE_NS, NULL);
  if (s != HEDDLE_OK && s != HEDDLE_EDEVICE) { /* its work may still use all that it has */
    atomic_store(&dev->self->left_behind, true);
    host->log(host->ctx, HEDDLE_LOG_WARN, "vulkan", "a device is closed while its work hangs; it is left behind");
    return;
  }
  /* A semaphore's value may be seen before the driver's thread is done with the submission that brought it, and Mesa's
   * then still looks at the semaphores that the submission waited for. */
  if (s == HEDDLE_OK) dev->vk.DeviceWaitIdle(dev->device);
  destroy(dev);
}

static heddle_status device_query(heddle_pdevice *dev, uint32_t key, int64_t *out, heddle_error *err) {
  switch (key) {
  case HEDDLE_QUERY_LIVE_BUFFERS: *out = atomic_load_explicit(&dev->live_buffers, memory_order_relaxed); break;
  case HEDDLE_QUERY_LIVE_BYTES: *out = atomic_load_explicit(&dev->live_bytes, memory_order_relaxed); break;
  case HEDDLE_QUERY_LIVE_OBJECTS: *out = atomic_load_explicit(&dev->live_objects, memory_order_relaxed); break;
  default: return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "vulkan:%u: query of key %u is not supported", dev->index, key);
  }
  return HEDDLE_OK;
}

const heddle_device_table vlk_device_table = {
    .struct_size = sizeof vlk_device_table,
    .close = device_close,
    .open = device_open,
    .query = device_query,
    .health = vlk_health,
    .idle = device_idle,
};
