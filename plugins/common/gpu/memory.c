/* Memory. DEVICE comes from the driver's pool or from blocks of our own (blocks.c), and any stream may use it at once.
 * PINNED is the driver's host memory, which all devices reach; on a device that shares the host's memory UNIFIED is the
 * same. An import is host memory registered with the driver, so that copies fetch from it directly. */
#include "gpu.h"

#define MOST_ALIGNMENT UINT64_C(4096)

heddle_status gpu_range(heddle_pdevice *dev, const heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes,
                        const char *what, heddle_error *err) {
  const uint64_t have = buffer != NULL ? buffer->bytes : 0;
  if (offset <= have && bytes <= have - offset) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: %s: %llu bytes at %llu do not lie in a buffer of %llu",
                dev->vendor->name, dev->index, what, (unsigned long long)bytes, (unsigned long long)offset,
                (unsigned long long)have);
}

/* ---------------------------------------------------------------- device memory */

/* Inside the context. What comes from a pool belongs to the order of the service stream: once that is through, it is
 * anybody's. */
static int get_once(heddle_pdevice *dev, uint64_t bytes, gpu_address *out, uint64_t *granted) {
  if (dev->pool == NULL) return gpu_blocks_get(dev, bytes, out, granted);
  int code = dev->driver->alloc_from(out, (size_t)bytes, dev->pool, dev->service);
  if (code != 0) return code;
  code = dev->driver->stream_sync(dev->service);
  if (code != 0) dev->driver->free_async(*out, dev->service);
  *granted = bytes;
  return code;
}

void gpu_memory_trim(heddle_pdevice *dev) {
  const gpu_driver *d = dev->driver;
  if (dev->pool == NULL) gpu_blocks_trim(dev);
  else if (d->pool_trim != NULL && d->stream_sync(dev->service) == 0) d->pool_trim(dev->pool, 0);
}

/* Where memory is out, what is kept is given back, and one more try made. */
static int get_device(heddle_pdevice *dev, uint64_t bytes, gpu_address *out, uint64_t *granted) {
  int code = get_once(dev, bytes, out, granted);
  if (dev->vendor->fate(code) != GPU_NO_MEMORY) return code;
  gpu_memory_trim(dev);
  return get_once(dev, bytes, out, granted);
}

static void put_device(heddle_pdevice *dev, gpu_address address) {
  if (dev->pool == NULL) gpu_blocks_put(dev, address);
  else dev->driver->free_async(address, dev->service);
}

/* "allocate N bytes", and what is free where the code says that memory is out. */
static heddle_status got(heddle_pdevice *dev, int code, uint64_t bytes, heddle_error *err) {
  char what[128];
  uint64_t free_bytes = 0, all = 0;
  snprintf(what, sizeof what, "allocate %llu bytes", (unsigned long long)bytes);
  if (dev->vendor->fate(code) == GPU_NO_MEMORY &&
      gpu_device_table.memory_now(dev, &free_bytes, &all, NULL) == HEDDLE_OK)
    snprintf(what, sizeof what, "allocate %llu bytes where %llu of %llu are free", (unsigned long long)bytes,
             (unsigned long long)free_bytes, (unsigned long long)all);
  return gpu_check(dev, code, what, err);
}

heddle_status gpu_block_get(heddle_pdevice *dev, uint64_t bytes, gpu_address *out, heddle_error *err) {
  gpu_scope scope;
  uint64_t granted = 0;
  *out = 0;
  heddle_status s = gpu_health(dev, err);
  if (s != HEDDLE_OK || bytes == 0) return s;
  s = gpu_enter(dev, &scope, err);
  if (s != HEDDLE_OK) return s;
  const int code = get_device(dev, bytes, out, &granted);
  gpu_leave(dev, &scope);
  if (code != 0) *out = 0;
  return got(dev, code, bytes, err);
}

void gpu_block_put(heddle_pdevice *dev, gpu_address address) {
  gpu_scope scope;
  if (address == 0 || dev->vendor->enter(dev, &scope) != 0) return;
  put_device(dev, address);
  gpu_leave(dev, &scope);
}

/* ---------------------------------------------------------------- freeing */

static heddle_status make(heddle_pdevice *dev, uint32_t kind, uint64_t bytes, heddle_pbuffer **out, heddle_error *err) {
  void *buffer = NULL;
  heddle_status s = gpu_new(dev->host, sizeof **out, "a buffer's handle", &buffer, err);
  if (s != HEDDLE_OK) return s;
  *out = buffer;
  **out = (heddle_pbuffer){.dev = dev, .bytes = bytes, .kind = kind};
  gpu_count(&dev->live_buffers, 1);
  return HEDDLE_OK;
}

static void drop(heddle_pbuffer *b) {
  gpu_count(&b->dev->live_buffers, -1);
  b->dev->host->free(b->dev->host->ctx, b);
}

/* The bytes of the allocation itself. Inside the context. */
static void release(heddle_pbuffer *b) {
  const gpu_driver *d = b->dev->driver;
  if (b->import != NULL) {
    gpu_import_put(b->dev, b->import);
  } else if (b->host_base != NULL) {
    d->host_free(b->host_base);
  } else if (b->base != 0) {
    put_device(b->dev, b->base);
  }
}

void gpu_memory_release(heddle_pdevice *dev) {
  pthread_mutex_lock(&dev->lock);
  heddle_pbuffer *list = dev->kept;
  dev->kept = NULL;
  pthread_mutex_unlock(&dev->lock);
  while (list != NULL) {
    heddle_pbuffer *next = list->next;
    release(list);
    dev->host->free(dev->host->ctx, list);
    list = next;
  }
}

/* The handle of memory that a hung device may touch stays until it is idle. */
static void keep(heddle_pbuffer *b) {
  heddle_pdevice *dev = b->dev;
  gpu_count(&dev->live_buffers, -1);
  pthread_mutex_lock(&dev->lock);
  b->next = dev->kept;
  dev->kept = b;
  pthread_mutex_unlock(&dev->lock);
}

static void memory_free(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  gpu_scope scope;
  (void)dev;
  if (buffer == NULL) return;
  heddle_pdevice *owner = buffer->dev;
  if (!buffer->view && !buffer->adopted && buffer->kind != GPU_KIND_IMPORT)
    gpu_count(&owner->live_bytes, -(int64_t)buffer->bytes);
  if (buffer->base != 0 || buffer->host_base != NULL || buffer->import != NULL) {
    if (gpu_hangs(owner)) {
      keep(buffer);
      return;
    }
    if (owner->vendor->enter(owner, &scope) == 0) {
      release(buffer);
      gpu_leave(owner, &scope);
    }
  }
  drop(buffer);
}

/* ---------------------------------------------------------------- allocation */

/* Host memory of the driver's begins at a page or, where it is small, at less: room for the alignment is asked for. */
static int alloc_host(heddle_pdevice *dev, uint64_t align, heddle_pbuffer *b) {
  const gpu_driver *d = dev->driver;
  const size_t bytes = (size_t)(b->bytes + align - 1);
  int code = d->host_alloc(&b->host_base, bytes, GPU_HOST_PORTABLE | GPU_HOST_MAPPED);
  if (code != 0) {
    b->host_base = NULL;
    return code;
  }
  b->granted = bytes;
  const size_t skip = (size_t)((align - (uintptr_t)b->host_base % align) % align);
  b->host = (char *)b->host_base + skip;
  if (!dev->info->maps_host || d->host_address == NULL) return 0;
  code = d->host_address(&b->address, b->host_base, 0);
  if (code == 0) b->address += skip;
  return b->kind == HEDDLE_MEMORY_UNIFIED ? code : 0;
}

static int alloc_device(heddle_pdevice *dev, uint64_t align, heddle_pbuffer *b) {
  const uint64_t own = dev->info->alignment;
  const int code = get_device(dev, align > own ? b->bytes + align - own : b->bytes, &b->base, &b->granted);
  if (code != 0) b->base = 0;
  b->address = (b->base + align - 1) / align * align;
  return code;
}

static heddle_status check_desc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_error *err) {
  const char *name = dev->vendor->name;
  const uint64_t most = dev->info->memory_bytes;
  if (desc->kind > HEDDLE_MEMORY_UNIFIED || (desc->kind == HEDDLE_MEMORY_UNIFIED && !gpu_unified(dev->self, dev->info)))
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s:%u: memory of kind %u is not supported on this device", name,
                  dev->index, desc->kind);
  if ((desc->align & (desc->align - 1)) != 0 || (desc->align > MOST_ALIGNMENT && desc->align > dev->info->alignment))
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: an alignment is a power of two up to %llu, not %llu", name, dev->index,
                  (unsigned long long)MOST_ALIGNMENT, (unsigned long long)desc->align);
  if (most != 0 && desc->bytes > most)
    return p_fail(err, HEDDLE_ELIMIT, 0, "%s:%u: %llu bytes asked for one buffer, which may have %llu at most", name,
                  dev->index, (unsigned long long)desc->bytes, (unsigned long long)most);
  if (desc->bytes > (uint64_t)INT64_MAX)
    return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no memory for %llu bytes", name, dev->index,
                  (unsigned long long)desc->bytes);
  return HEDDLE_OK;
}

static heddle_status memory_alloc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                                  heddle_error *err) {
  const uint64_t align = desc->align > dev->info->alignment ? desc->align : dev->info->alignment;
  heddle_pbuffer *b = NULL;
  gpu_scope scope;
  int code = 0;
  heddle_status s = gpu_health(dev, err);
  if (s == HEDDLE_OK) s = check_desc(dev, desc, err);
  if (s == HEDDLE_OK) s = make(dev, desc->kind, desc->bytes, &b, err);
  if (s != HEDDLE_OK) return s;
  if (desc->bytes > 0) { /* the driver has no empty ones */
    s = gpu_enter(dev, &scope, err);
    if (s == HEDDLE_OK) {
      code = desc->kind == HEDDLE_MEMORY_DEVICE ? alloc_device(dev, align, b) : alloc_host(dev, align, b);
      if (code != 0) release(b);
      gpu_leave(dev, &scope);
      s = got(dev, code, desc->bytes, err);
    }
  }
  if (s != HEDDLE_OK) {
    drop(b);
    return s;
  }
  gpu_count(&dev->live_bytes, (int64_t)desc->bytes);
  *out = b;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- views and imports */

static heddle_status memory_view(heddle_pdevice *dev, heddle_pbuffer *parent, uint64_t offset, uint64_t bytes,
                                 heddle_pbuffer **out, heddle_error *err) {
  heddle_status s = gpu_range(dev, parent, offset, bytes, "view", err);
  if (s != HEDDLE_OK) return s;
  if (parent == NULL || parent->view || offset % dev->info->alignment != 0)
    return p_fail(err, HEDDLE_EINVAL, 0,
                  "%s:%u: a view is of a buffer that is no view, at a multiple of %llu, not %llu", dev->vendor->name,
                  dev->index, (unsigned long long)dev->info->alignment, (unsigned long long)offset);
  s = make(dev, parent->kind, bytes, out, err);
  if (s != HEDDLE_OK) return s;
  (*out)->dev = parent->dev;
  (*out)->view = true;
  if (parent->address != 0) (*out)->address = parent->address + offset;
  if (parent->host != NULL) (*out)->host = parent->host + offset;
  return HEDDLE_OK;
}

static heddle_status import_host(heddle_pdevice *dev, void *pointer, uint64_t bytes, heddle_pbuffer **out,
                                 heddle_error *err) {
  heddle_pbuffer *b = NULL;
  if (!gpu_takes_imports(dev->self, dev->info))
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s:%u: this device takes no host memory of others", dev->vendor->name,
                  dev->index);
  const uint64_t page = dev->self->page;
  if ((pointer == NULL && bytes > 0) || (uintptr_t)pointer % page != 0 || bytes % page != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: import of %llu bytes: address and size must be multiples of %llu",
                  dev->vendor->name, dev->index, (unsigned long long)bytes, (unsigned long long)page);
  heddle_status s = gpu_health(dev, err);
  if (s == HEDDLE_OK) s = make(dev, GPU_KIND_IMPORT, bytes, &b, err);
  if (s != HEDDLE_OK) return s;
  if (bytes > 0) s = gpu_import_get(dev, pointer, bytes, &b->import, err);
  if (s != HEDDLE_OK) {
    drop(b);
    return s;
  }
  b->host = pointer;
  *out = b;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- mappings */

static heddle_status memory_map(heddle_pdevice *dev, heddle_pbuffer *buffer, void **out, heddle_error *err) {
  if (buffer->kind == HEDDLE_MEMORY_DEVICE)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: memory of kind device cannot be mapped", dev->vendor->name,
                  dev->index);
  *out = buffer->host;
  return HEDDLE_OK;
}

static void memory_unmap(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  (void)dev, (void)buffer; /* mapped for its whole life */
}

static heddle_status memory_native(heddle_pdevice *dev, heddle_pbuffer *buffer, uint64_t *out, heddle_error *err) {
  if (buffer->address == 0)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s:%u: this buffer has no address on the device", dev->vendor->name,
                  dev->index);
  *out = buffer->address;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- memory of others */

/* The driver knows whose an address is; one too old to be asked is believed. */
static heddle_status check_owner(heddle_pdevice *dev, gpu_address address, heddle_error *err) {
  gpu_scope scope;
  int device = dev->info->device;
  if (dev->driver->pointer_attribute == NULL) return HEDDLE_OK;
  heddle_status s = gpu_enter(dev, &scope, err);
  if (s != HEDDLE_OK) return s;
  const int code = dev->driver->pointer_attribute(&device, GPU_POINTER_DEVICE, address);
  gpu_leave(dev, &scope);
  if (code == GPU_CODE_WRONG)
    return p_fail(err, HEDDLE_EINVAL, code, "%s:%u: address 0x%llx is no memory of the driver's", dev->vendor->name,
                  dev->index, (unsigned long long)address);
  if (code != 0) return gpu_check(dev, code, "ask whose memory an address is", err);
  if (device != dev->info->device)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: address 0x%llx is memory of the driver's device %d", dev->vendor->name,
                  dev->index, (unsigned long long)address, device);
  return HEDDLE_OK;
}

static heddle_status memory_adopt(heddle_pdevice *dev, uint64_t handle, uint64_t offset, uint64_t bytes,
                                  heddle_pbuffer **out, heddle_error *err) {
  const gpu_address address = handle + offset;
  if (handle == 0 || address < handle || bytes > UINT64_MAX - address)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: %llu bytes at %llu from 0x%llx are no memory of a device",
                  dev->vendor->name, dev->index, (unsigned long long)bytes, (unsigned long long)offset,
                  (unsigned long long)handle);
  if (address % dev->info->alignment != 0)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                  "%s:%u: memory at 0x%llx does not begin at a multiple of %llu: copy it into an allocation of its own",
                  dev->vendor->name, dev->index, (unsigned long long)address, (unsigned long long)dev->info->alignment);
  if (dev->apart)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                  "%s:%u: the device has a context of its own (setting context), which does not reach memory of other "
                  "code: copy it",
                  dev->vendor->name, dev->index);
  heddle_status s = gpu_health(dev, err);
  if (s == HEDDLE_OK) s = check_owner(dev, address, err);
  if (s == HEDDLE_OK) s = make(dev, HEDDLE_MEMORY_DEVICE, bytes, out, err);
  if (s != HEDDLE_OK) return s;
  (*out)->adopted = true;
  (*out)->address = address;
  return HEDDLE_OK;
}

const heddle_memory_table gpu_memory_table = {
    .struct_size = sizeof gpu_memory_table,
    .free = memory_free,
    .alloc = memory_alloc,
    .view = memory_view,
    .import_host = import_host,
    .map = memory_map,
    .unmap = memory_unmap,
    .native = memory_native,
    .adopt = memory_adopt,
};
