/* Memory: allocations filled with poison, views, imports, and mappings that, where the setting coherent is 0, show the
 * host a shadow which only flush and invalidate bring in line with what the device sees. */
#include "sim.h"

enum { FRESH = 0xCD, FRESH_SHADOW = 0xCE, FREED = 0xDD };

static const char *kind_name(uint32_t kind) {
  static const char *const names[] = {"device", "pinned", "unified", "imported"};
  return kind < 4 ? names[kind] : "unknown";
}

/* ---- blocks ---- */

void sim_block_destroy(const heddle_host *host, sim_retired *retired) {
  sim_block *block = (sim_block *)retired;
  if (block->poison && block->size != 0) {
    memset(block->bytes, FREED, block->size);
    if (block->shadow != NULL) memset(block->shadow, FREED, block->size);
  }
  if (block->fd >= 0) sim_external_unmap(block);
  else host->free(host->ctx, block->bytes);
  host->free(host->ctx, block->shadow);
  host->free(host->ctx, block);
}

static heddle_status block_new(heddle_pdevice *dev, const heddle_pmemory_desc *desc, sim_block **out,
                               heddle_error *err) {
  const heddle_host *host = dev->host;
  uint64_t align = desc->align > SIM_ALIGNMENT ? desc->align : SIM_ALIGNMENT;
  sim_block *block = sim_alloc(host, sizeof *block);
  if (block == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "sim:%u: no memory for a buffer's record", dev->index);
  block->retired.destroy = sim_block_destroy;
  block->fd = -1;
  block->poison = true;
  heddle_status status = HEDDLE_OK;
  if (desc->bytes != 0 && dev->settings.external && desc->kind == HEDDLE_MEMORY_DEVICE && desc->bytes > SIM_PAGE) {
    status = sim_external_map(desc->bytes, block, err);
  } else if (desc->bytes != 0) {
    block->bytes = host->alloc(host->ctx, desc->bytes, align);
    bool shadow = desc->kind != HEDDLE_MEMORY_DEVICE && !dev->settings.coherent;
    if (shadow) block->shadow = host->alloc(host->ctx, desc->bytes, align);
    if (block->bytes == NULL || (shadow && block->shadow == NULL))
      status = p_fail(err, HEDDLE_ENOMEM, 0, "sim:%u: no memory for %llu bytes", dev->index,
                      (unsigned long long)desc->bytes);
  }
  if (status != HEDDLE_OK) {
    block->poison = false;
    sim_block_destroy(host, &block->retired);
    return status;
  }
  block->size = desc->bytes;
  if (block->size != 0) memset(block->bytes, FRESH, block->size);
  if (block->shadow != NULL) memset(block->shadow, FRESH_SHADOW, block->size);
  *out = block;
  return HEDDLE_OK;
}

/* ---- allocation ---- */

heddle_status sim_memory_reserve(heddle_pdevice *dev, uint64_t bytes, heddle_error *err) {
  uint64_t limit = dev->settings.memory_bytes;
  unsigned long long used = atomic_load(&dev->live_bytes);
  do {
    if (limit != 0 && (bytes > limit || used > limit - bytes))
      return p_fail(err, HEDDLE_ENOMEM, 0, "sim:%u: %llu bytes asked, %llu of %llu in use (setting memory_bytes)",
                    dev->index, (unsigned long long)bytes, used, (unsigned long long)limit);
  } while (!atomic_compare_exchange_weak(&dev->live_bytes, &used, used + bytes));
  return HEDDLE_OK;
}

heddle_status sim_memory_enter(heddle_pdevice *dev, uint32_t kind, uint8_t *bytes, uint8_t *host, uint64_t size,
                               sim_block *block, sim_buffer *parent, heddle_pbuffer **out, heddle_error *err) {
  sim_buffer *b = sim_table_take(dev->self);
  if (b == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "sim:%u: no memory for one more buffer", dev->index);
  b->kind = kind;
  b->dev = dev;
  b->bytes = bytes;
  b->host = host;
  b->size = size;
  b->block = block;
  b->parent = parent;
  b->views = 0;
  b->freed = false;
  b->adopted = false;
  atomic_fetch_add(&dev->live_buffers, 1);
  *out = sim_table_publish(dev->self, b);
  return HEDDLE_OK;
}

static heddle_status memory_alloc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                                  heddle_error *err) {
  heddle_status status = sim_enter(dev, SIM_CALL_ALLOC, err);
  sim_block *block = NULL;
  if (status != HEDDLE_OK) return status;
  if (desc->kind > HEDDLE_MEMORY_UNIFIED)
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: no memory of kind %u", dev->index, desc->kind);
  if (desc->kind == HEDDLE_MEMORY_UNIFIED && !dev->settings.unified)
    return sim_switched_off("unified memory", "unified", err);
  if ((desc->align & (desc->align - 1)) != 0 || desc->align > SIM_PAGE)
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: alignment %llu is no power of two up to %d", dev->index,
                  (unsigned long long)desc->align, SIM_PAGE);
  if (dev->settings.max_buffer_bytes != 0 && desc->bytes > dev->settings.max_buffer_bytes)
    return p_fail(err, HEDDLE_ELIMIT, 0, "sim:%u: %llu bytes asked for one buffer, which may have %llu at most",
                  dev->index, (unsigned long long)desc->bytes, (unsigned long long)dev->settings.max_buffer_bytes);
  if (desc->bytes > (UINT64_MAX >> 16))
    return p_fail(err, HEDDLE_ENOMEM, 0, "sim:%u: no memory for %llu bytes", dev->index,
                  (unsigned long long)desc->bytes);

  status = sim_memory_reserve(dev, desc->bytes, err);
  if (status != HEDDLE_OK) return status;
  status = block_new(dev, desc, &block, err);
  if (status == HEDDLE_OK) {
    uint8_t *host = block->shadow != NULL ? block->shadow : block->bytes;
    if (desc->kind == HEDDLE_MEMORY_DEVICE) host = NULL;
    status = sim_memory_enter(dev, desc->kind, block->bytes, host, desc->bytes, block, NULL, out, err);
    if (status != HEDDLE_OK) sim_block_destroy(dev->host, &block->retired);
  }
  if (status != HEDDLE_OK) atomic_fetch_sub(&dev->live_bytes, desc->bytes);
  return status;
}

/* Frees an entry without views; its handle is stale already. */
static void release(heddle_pdevice *dev, sim_buffer *b) {
  sim_block *block = b->block;
  sim_table_drop(dev->self, b);
  if (block == NULL) return;
  atomic_fetch_sub(&dev->live_bytes, block->size);
  sim_retire(dev, &block->retired);
}

static void memory_free(heddle_pdevice *dev, heddle_pbuffer *handle) {
  sim_buffer *last_of = NULL;
  bool keep = false;
  if (handle == NULL || dev == NULL || dev->magic != SIM_MAGIC_DEVICE) return;
  sim_buffer *b = sim_table_get(dev->self, handle);
  if (b == NULL || b->dev != dev) {
    sim_log(dev->host, HEDDLE_LOG_ERROR, "free: the handle is no live buffer of this device; nothing was freed");
    return;
  }
  atomic_store_explicit(&b->generation, 0, memory_order_release);
  atomic_fetch_sub(&dev->live_buffers, 1);
  pthread_mutex_lock(&dev->self->lock);
  if (b->views != 0) {
    b->freed = true;
    keep = true;
  }
  if (b->parent != NULL && --b->parent->views == 0 && b->parent->freed) last_of = b->parent;
  pthread_mutex_unlock(&dev->self->lock);
  if (keep) sim_log(dev->host, HEDDLE_LOG_ERROR, "free: a buffer was freed before its views; it is kept for them");
  else release(dev, b);
  if (last_of != NULL) release(dev, last_of);
}

uint64_t sim_memory_forget(heddle_pdevice *dev) {
  uint64_t n = 0;
  sim_buffer *b;
  if (atomic_load(&dev->live_buffers) == 0) return 0;
  for (int views = 1; views >= 0; views--) /* views first */
    for (uint32_t slot = 0; (b = sim_table_at(dev->self, slot)) != NULL; slot++) {
      if (atomic_load(&b->generation) == 0 || b->dev != dev || (b->parent != NULL) != (views != 0)) continue;
      memory_free(dev, sim_table_handle(b));
      n++;
    }
  return n;
}

/* ---- views and imports ---- */

/* A range of a buffer as one more buffer, for which the first stays. */
static heddle_status enter_part(heddle_pdevice *dev, sim_buffer *b, uint32_t kind, uint64_t offset, uint64_t bytes,
                                heddle_pbuffer **out, heddle_error *err) {
  uint8_t *at = b->bytes == NULL ? NULL : b->bytes + offset, *host = b->host == NULL ? NULL : b->host + offset;
  pthread_mutex_lock(&dev->self->lock);
  b->views++;
  pthread_mutex_unlock(&dev->self->lock);
  heddle_status status = sim_memory_enter(dev, kind, at, host, bytes, NULL, b, out, err);
  if (status == HEDDLE_OK) return HEDDLE_OK;
  pthread_mutex_lock(&dev->self->lock);
  b->views--;
  pthread_mutex_unlock(&dev->self->lock);
  return status;
}

static heddle_status memory_view(heddle_pdevice *dev, heddle_pbuffer *parent, uint64_t offset, uint64_t bytes,
                                 heddle_pbuffer **out, heddle_error *err) {
  heddle_status status = sim_enter(dev, SIM_CALL_VIEW, err);
  if (status != HEDDLE_OK) return status;
  if (!dev->settings.views) return sim_switched_off("views", "views", err);
  sim_buffer *b = sim_table_get(dev->self, parent);
  if (b == NULL || b->dev != dev)
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: view: the handle is no live buffer of this device", dev->index);
  if (b->parent != NULL && !b->adopted)
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: a view of a view was asked", dev->index);
  if (offset % SIM_ALIGNMENT != 0 || offset > b->size || bytes > b->size - offset)
    return p_fail(err, HEDDLE_EINVAL, 0,
                  "sim:%u: view of bytes %llu to %llu of a buffer of %llu; it must lie inside, and begin at a "
                  "multiple of %d",
                  dev->index, (unsigned long long)offset, (unsigned long long)(offset + bytes),
                  (unsigned long long)b->size, SIM_ALIGNMENT);
  return enter_part(dev, b, b->kind, offset, bytes, out, err);
}

static heddle_status memory_import(heddle_pdevice *dev, void *pointer, uint64_t bytes, heddle_pbuffer **out,
                                   heddle_error *err) {
  heddle_status status = sim_enter(dev, SIM_CALL_IMPORT, err);
  if (status != HEDDLE_OK) return status;
  uint64_t align = dev->settings.import_alignment;
  if (!dev->settings.import) return sim_switched_off("import of host memory", "import", err);
  if ((pointer == NULL && bytes != 0) || (uintptr_t)pointer % align != 0 || bytes % align != 0)
    return p_fail(err, HEDDLE_EINVAL, 0,
                  "sim:%u: import of %llu host bytes: address and size must be multiples of %llu", dev->index,
                  (unsigned long long)bytes, (unsigned long long)align);
  if (dev->settings.import_unified == SIM_LIE) { /* operators compute in memory of its own; copies use the caller's */
    const heddle_pmemory_desc desc = {.kind = HEDDLE_MEMORY_DEVICE, .bytes = bytes};
    sim_block *block = NULL;
    status = sim_memory_reserve(dev, bytes, err);
    if (status == HEDDLE_OK) status = block_new(dev, &desc, &block, err);
    if (status != HEDDLE_OK) return status;
    status = sim_memory_enter(dev, HEDDLE_MEMORY_UNIFIED, block->bytes, pointer, bytes, block, NULL, out, err);
    if (status != HEDDLE_OK) sim_block_destroy(dev->host, &block->retired);
    return status;
  }
  const uint32_t kind = dev->settings.import_unified == SIM_ON ? HEDDLE_MEMORY_UNIFIED : SIM_KIND_IMPORT;
  return sim_memory_enter(dev, kind, pointer, pointer, bytes, NULL, NULL, out, err);
}

/* ---- mappings ---- */

static heddle_status memory_map(heddle_pdevice *dev, heddle_pbuffer *handle, void **out, heddle_error *err) {
  heddle_status status = sim_enter(dev, SIM_CALL_MAP, err);
  if (status != HEDDLE_OK) return status;
  sim_buffer *b = sim_table_get(dev->self, handle);
  if (b == NULL || b->dev != dev)
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: map: the handle is no live buffer of this device", dev->index);
  if (b->kind != HEDDLE_MEMORY_PINNED && b->kind != HEDDLE_MEMORY_UNIFIED)
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: map: %s memory cannot be mapped, only pinned and unified", dev->index,
                  kind_name(b->kind));
  *out = b->host;
  return HEDDLE_OK;
}

static void memory_unmap(heddle_pdevice *dev, heddle_pbuffer *handle) {
  (void)dev; /* a mapping holds for the buffer's life */
  (void)handle;
}

/* The two sides of a range, NULL both where they are one. */
static heddle_status sides(heddle_pdevice *dev, heddle_pbuffer *handle, uint64_t offset, uint64_t bytes,
                           const char *what, uint8_t **host, uint8_t **device, heddle_error *err) {
  heddle_status status = sim_enter(dev, SIM_CALL_FLUSH, err);
  if (status == HEDDLE_OK) status = sim_bytes(dev, handle, offset, bytes, SIM_HOST_SIDE, what, device, err);
  if (status != HEDDLE_OK) return status;
  sim_buffer *b = sim_table_get(dev->self, handle);
  *host = b->host == b->bytes || bytes == 0 ? NULL : b->host + offset;
  return HEDDLE_OK;
}

static heddle_status memory_flush(heddle_pdevice *dev, heddle_pbuffer *handle, uint64_t offset, uint64_t bytes,
                                  heddle_error *err) {
  uint8_t *host, *device;
  heddle_status status = sides(dev, handle, offset, bytes, "flush", &host, &device, err);
  if (status == HEDDLE_OK && host != NULL) memcpy(device, host, bytes);
  return status;
}

static heddle_status memory_invalidate(heddle_pdevice *dev, heddle_pbuffer *handle, uint64_t offset, uint64_t bytes,
                                       heddle_error *err) {
  uint8_t *host, *device;
  heddle_status status = sides(dev, handle, offset, bytes, "invalidate", &host, &device, err);
  if (status == HEDDLE_OK && host != NULL) memcpy(host, device, bytes);
  return status;
}

static heddle_status memory_native(heddle_pdevice *dev, heddle_pbuffer *handle, uint64_t *out, heddle_error *err) {
  heddle_status status = sim_device_check(dev, err);
  if (status != HEDDLE_OK) return status;
  if (sim_table_get(dev->self, handle) == NULL)
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: native: the handle is no live buffer", dev->index);
  *out = (uint64_t)(uintptr_t)handle;
  return HEDDLE_OK;
}

/* A handle of native's is the buffer's own, so that one of a buffer that is gone is seen to be. */
static heddle_status memory_adopt(heddle_pdevice *dev, uint64_t handle, uint64_t offset, uint64_t bytes,
                                  heddle_pbuffer **out, heddle_error *err) {
  heddle_status status = sim_enter(dev, SIM_CALL_IMPORT, err);
  if (status != HEDDLE_OK) return status;
  sim_buffer *b = sim_table_get(dev->self, (heddle_pbuffer *)(uintptr_t)handle);
  if (b == NULL || b->dev != dev)
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: adopt: the handle is no live buffer of this device", dev->index);
  if (b->kind != HEDDLE_MEMORY_DEVICE && b->kind != HEDDLE_MEMORY_UNIFIED)
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: adopt: %s memory; wanted is device memory", dev->index,
                  kind_name(b->kind));
  if (offset > b->size || bytes > b->size - offset)
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: adopt: %llu bytes at %llu do not lie in a buffer of %llu", dev->index,
                  (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)b->size);
  if (offset % SIM_ALIGNMENT != 0)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                  "sim:%u: memory that begins %llu bytes into a buffer, and not at a "
                  "multiple of %d: copy it into a tensor of its own",
                  dev->index, (unsigned long long)offset, SIM_ALIGNMENT);
  status = enter_part(dev, b, HEDDLE_MEMORY_DEVICE, offset, bytes, out, err);
  if (status == HEDDLE_OK) sim_table_get(dev->self, *out)->adopted = true;
  return status;
}

/* ---- resolving ---- */

heddle_status sim_bytes(heddle_pdevice *dev, heddle_pbuffer *handle, uint64_t offset, uint64_t bytes, sim_use use,
                        const char *what, uint8_t **out, heddle_error *err) {
  sim_buffer *b = sim_table_get(dev->self, handle);
  if (b == NULL)
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: %s: the handle is no live buffer of this plugin's instance",
                  dev->index, what);
  bool fits = use == SIM_OPERAND ? b->kind == HEDDLE_MEMORY_DEVICE || b->kind == HEDDLE_MEMORY_UNIFIED
                                 : b->kind != HEDDLE_MEMORY_DEVICE;
  if (!fits)
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: %s: the buffer is %s memory; wanted is %s", dev->index, what,
                  kind_name(b->kind), use == SIM_OPERAND ? "device or unified" : "pinned, unified or imported");
  if (b->dev != dev && (use == SIM_OPERAND || b->dev->event_domain != dev->event_domain))
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: %s: the buffer belongs to sim:%u%s", dev->index, what, b->dev->index,
                  use == SIM_OPERAND ? "" : ", which has another event domain");
  if (offset > b->size || bytes > b->size - offset)
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: %s: %llu bytes at %llu do not lie in a buffer of %llu", dev->index,
                  what, (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)b->size);
  bool lies = use == SIM_HOST_SIDE && b->dev->settings.import_unified == SIM_LIE && b->block != NULL &&
              b->block->shadow == NULL;
  *out = b->bytes == NULL ? NULL : (lies ? b->host : b->bytes) + offset;
  return HEDDLE_OK;
}

#define TABLE(view_fn, import_fn) \
  { \
    .struct_size = sizeof(heddle_memory_table), .free = memory_free, .alloc = memory_alloc, .view = view_fn, \
    .import_host = import_fn, .map = memory_map, .unmap = memory_unmap, .flush = memory_flush, \
    .invalidate = memory_invalidate, .native = memory_native, .adopt = memory_adopt \
  }
const heddle_memory_table sim_memory_tables[4] = {
    TABLE(NULL, NULL),
    TABLE(memory_view, NULL),
    TABLE(NULL, memory_import),
    TABLE(memory_view, memory_import),
};
