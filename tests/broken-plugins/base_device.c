/* The sound plugin's instances, devices and memory. All that is allocated comes from the host and goes back to it. */
#include "base.h"

#include "plugins/common/options.h"

#include <stdlib.h>
#include <time.h>

void base_sleep_ms(uint32_t ms) {
  struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
  nanosleep(&pause, NULL);
}

void *base_zeroed(const heddle_host *host, uint64_t bytes) {
  void *p = host->alloc(host->ctx, bytes, 16);
  if (p != NULL) memset(p, 0, bytes);
  return p;
}

/* ---- instance ---- */

void base_close_instance(heddle_pinstance *self) {
  if (self == NULL) return;
  pthread_cond_destroy(&self->changed);
  pthread_mutex_destroy(&self->lock);
  self->host->free(self->host->ctx, self);
}

static bool init_changed(pthread_cond_t *changed) {
  pthread_condattr_t attr;
  if (pthread_condattr_init(&attr) != 0) return false;
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  bool done = pthread_cond_init(changed, &attr) == 0;
  pthread_condattr_destroy(&attr);
  return done;
}

/* A whole number; UINT64_MAX where it is not set. */
static uint64_t setting(const heddle_host *host, const char *key) {
  char text[24];
  const int64_t length = host->config(host->ctx, key, text, sizeof text);
  return length > 0 && length < (int64_t)sizeof text ? strtoull(text, NULL, 10) : UINT64_MAX;
}

heddle_status base_open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  heddle_pinstance *self = base_zeroed(host, sizeof *self);
  if (self == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory to open an instance");
  self->host = host;
  self->lose_word = setting(host, "lose_on_fill");
  self->fail_word = setting(host, "fail_on_fill");
  self->adopt_own = setting(host, "adopt_own") == 1;
  if (pthread_mutex_init(&self->lock, NULL) != 0) {
    host->free(host->ctx, self);
    return p_fail(err, HEDDLE_ENOMEM, 0, "no lock for an instance");
  }
  if (!init_changed(&self->changed)) {
    pthread_mutex_destroy(&self->lock);
    host->free(host->ctx, self);
    return p_fail(err, HEDDLE_ENOMEM, 0, "no condition for an instance");
  }
  *out = self;
  return HEDDLE_OK;
}

heddle_status base_device_count(heddle_pinstance *self, uint32_t *out, heddle_error *err) {
  (void)self, (void)err;
  *out = BASE_DEVICES;
  return HEDDLE_OK;
}

heddle_status base_index(uint32_t index, heddle_error *err) {
  if (index < BASE_DEVICES) return HEDDLE_OK;
  return p_fail(err, HEDDLE_ENODEV, 0, "there is no device %u; there are %d, from 0", index, BASE_DEVICES);
}

heddle_status base_device_describe(heddle_pinstance *self, uint32_t index, heddle_pdevice_desc *desc,
                                   heddle_error *err) {
  (void)self;
  heddle_status status = base_index(index, err);
  if (status != HEDDLE_OK) return status;
  desc->type = HEDDLE_DEVICE_EXT;
  snprintf(desc->name, sizeof desc->name, "host memory %u", index);
  snprintf(desc->driver, sizeof desc->driver, "base 1");
  memset(desc->uuid, 0x5a, sizeof desc->uuid);
  desc->uuid[15] = (uint8_t)(index + 1);
  desc->pci_domain = desc->pci_bus = desc->pci_device = desc->pci_function = UINT32_MAX;
  desc->caps = HEDDLE_CAP_HOST_CORES | HEDDLE_CAP_VIEWS | HEDDLE_CAP_WAIT_BEFORE_SIGNAL;
  desc->memory_bytes = BASE_MEMORY;
  desc->max_buffer_bytes = BASE_MAX_BUFFER;
  desc->alignment = BASE_ALIGNMENT;
  desc->event_domain = 1;
  desc->compute_units = 1;
  desc->max_streams = 4;
  return HEDDLE_OK;
}

/* ---- device ---- */

heddle_status base_device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                               heddle_pdevice **out, heddle_error *err) {
  heddle_status status = base_index(index, err);
  if (status == HEDDLE_OK) status = p_no_device_settings("device", index, options, err);
  if (status != HEDDLE_OK) return status;
  heddle_pdevice *dev = base_zeroed(self->host, sizeof *dev);
  if (dev == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "device %u: no memory to open it", index);
  dev->self = self;
  dev->host = self->host;
  dev->index = index;
  if (HEDDLE_HAS(heddle_pdevice_options, options, cookie)) dev->cookie = options->cookie;
  *out = dev;
  return HEDDLE_OK;
}

heddle_status base_device_query(heddle_pdevice *dev, uint32_t key, int64_t *out, heddle_error *err) {
  switch (key) {
  case HEDDLE_QUERY_LIVE_BUFFERS: *out = atomic_load(&dev->live_buffers); return HEDDLE_OK;
  case HEDDLE_QUERY_LIVE_BYTES: *out = atomic_load(&dev->live_bytes); return HEDDLE_OK;
  case HEDDLE_QUERY_LIVE_OBJECTS: *out = atomic_load(&dev->live_objects); return HEDDLE_OK;
  default: return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "device %u: no answer to query %u", dev->index, key);
  }
}

heddle_status base_check(heddle_pdevice *dev, heddle_error *err) {
  if (!atomic_load(&dev->lost)) return HEDDLE_OK;
  if (err != NULL) *err = dev->fault; /* written once, before lost */
  return HEDDLE_EDEVICE;
}

heddle_status base_device_health(heddle_pdevice *dev, heddle_error *err) {
  return base_check(dev, err);
}

/* ---- memory ---- */

static heddle_status new_buffer(heddle_pdevice *dev, uint32_t kind, char *bytes, uint64_t size, void *block,
                                heddle_pbuffer **out, heddle_error *err) {
  heddle_pbuffer *buffer = base_zeroed(dev->host, sizeof *buffer);
  if (buffer == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "device %u: no memory for a buffer's handle", dev->index);
  *buffer = (heddle_pbuffer){.bytes = bytes, .size = size, .kind = kind, .block = block};
  atomic_fetch_add(&dev->live_buffers, 1);
  *out = buffer;
  return HEDDLE_OK;
}

void base_memory_free(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  if (buffer == NULL) return;
  atomic_fetch_sub(&dev->live_buffers, 1);
  if (buffer->block != NULL) {
    atomic_fetch_sub(&dev->live_bytes, (int64_t)buffer->size);
    dev->host->free(dev->host->ctx, buffer->block);
  }
  dev->host->free(dev->host->ctx, buffer);
}

heddle_status base_memory_alloc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                                heddle_error *err) {
  uint64_t align = desc->align < BASE_ALIGNMENT ? BASE_ALIGNMENT : desc->align;
  if (atomic_load(&dev->lost)) return base_check(dev, err);
  if (desc->kind != HEDDLE_MEMORY_DEVICE && desc->kind != HEDDLE_MEMORY_PINNED)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "device %u: no memory of kind %u", dev->index, desc->kind);
  if (align > 4096 || (align & (align - 1)) != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "device %u: memory aligned to %llu bytes; a power of two up to 4096 is needed",
                  dev->index, (unsigned long long)desc->align);
  if (desc->bytes > BASE_MAX_BUFFER)
    return p_fail(err, HEDDLE_ELIMIT, 0, "device %u: %llu bytes in one buffer; %llu is the most", dev->index,
                  (unsigned long long)desc->bytes, (unsigned long long)BASE_MAX_BUFFER);
  if (atomic_fetch_add(&dev->live_bytes, (int64_t)desc->bytes) + (int64_t)desc->bytes > (int64_t)BASE_MEMORY) {
    atomic_fetch_sub(&dev->live_bytes, (int64_t)desc->bytes);
    return p_fail(err, HEDDLE_ENOMEM, 0, "device %u: %llu bytes asked, which its memory has not left", dev->index,
                  (unsigned long long)desc->bytes);
  }
  char *bytes = dev->host->alloc(dev->host->ctx, desc->bytes == 0 ? 1 : desc->bytes, align);
  heddle_status status = HEDDLE_OK;
  if (bytes == NULL)
    status = p_fail(err, HEDDLE_ENOMEM, 0, "device %u: no memory for a buffer of %llu bytes", dev->index,
                    (unsigned long long)desc->bytes);
  else status = new_buffer(dev, desc->kind, bytes, desc->bytes, bytes, out, err);
  if (status == HEDDLE_OK) return HEDDLE_OK;
  dev->host->free(dev->host->ctx, bytes);
  atomic_fetch_sub(&dev->live_bytes, (int64_t)desc->bytes);
  return status;
}

heddle_status base_range(const heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes, heddle_error *err) {
  if (buffer == NULL) return p_fail(err, HEDDLE_EINVAL, 0, "no buffer is given");
  if (offset <= buffer->size && bytes <= buffer->size - offset) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "%llu bytes from %llu on are not within a buffer of %llu",
                (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)buffer->size);
}

heddle_status base_memory_view(heddle_pdevice *dev, heddle_pbuffer *parent, uint64_t offset, uint64_t bytes,
                               heddle_pbuffer **out, heddle_error *err) {
  heddle_status status = base_check(dev, err);
  if (status == HEDDLE_OK) status = base_range(parent, offset, bytes, err);
  if (status != HEDDLE_OK) return status;
  if (parent->block == NULL && !parent->adopted)
    return p_fail(err, HEDDLE_EINVAL, 0, "device %u: a view of a view is not taken", dev->index);
  if (offset % BASE_ALIGNMENT != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "device %u: a view from %llu on; offsets are multiples of %llu", dev->index,
                  (unsigned long long)offset, (unsigned long long)BASE_ALIGNMENT);
  return new_buffer(dev, parent->kind, parent->bytes + offset, bytes, NULL, out, err);
}

heddle_status base_memory_native(heddle_pdevice *dev, heddle_pbuffer *buffer, uint64_t *out, heddle_error *err) {
  (void)dev, (void)err;
  *out = (uint64_t)(uintptr_t)buffer->bytes;
  return HEDDLE_OK;
}

heddle_status base_memory_adopt(heddle_pdevice *dev, uint64_t handle, uint64_t offset, uint64_t bytes,
                                heddle_pbuffer **out, heddle_error *err) {
  if (handle == 0) return p_fail(err, HEDDLE_EINVAL, 0, "device %u: no memory has the handle 0", dev->index);
  heddle_status status =
      new_buffer(dev, HEDDLE_MEMORY_DEVICE, (char *)(uintptr_t)handle + offset, bytes, NULL, out, err);
  if (status == HEDDLE_OK) (*out)->adopted = true;
  return status;
}

heddle_status base_memory_map(heddle_pdevice *dev, heddle_pbuffer *buffer, void **out, heddle_error *err) {
  if (buffer == NULL || buffer->kind != HEDDLE_MEMORY_PINNED)
    return p_fail(err, HEDDLE_EINVAL, 0, "device %u: only pinned memory can be mapped", dev->index);
  *out = buffer->bytes;
  return HEDDLE_OK;
}

void base_memory_unmap(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  (void)dev, (void)buffer;
}
