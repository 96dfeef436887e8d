/* Memory: buffers, views, imports and mappings. Memory that the host sees is mapped for its whole life; on a device that
 * shares the host's memory that of kind DEVICE is too, so that plain reads and writes need no staging. */
#include "vulkan.h"

#define MOST_ALIGNMENT UINT64_C(4096)

heddle_status vlk_range(heddle_pdevice *dev, const heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes,
                        const char *what, heddle_error *err) {
  const uint64_t have = buffer != NULL ? buffer->bytes : 0;
  if (offset <= have && bytes <= have - offset) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "vulkan:%u: %s: %llu bytes at %llu do not lie in a buffer of %llu", dev->index,
                what, (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)have);
}

static heddle_status make(heddle_pdevice *dev, uint32_t kind, uint64_t bytes, heddle_pbuffer **out, heddle_error *err) {
  void *buffer = NULL;
  heddle_status s = vlk_new(dev->host, sizeof **out, "a buffer's handle", &buffer, err);
  if (s != HEDDLE_OK) return s;
  *out = buffer;
  **out = (heddle_pbuffer){.dev = dev, .bytes = bytes, .kind = kind};
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- allocation */

static heddle_status allocate(heddle_pdevice *dev, uint32_t kind, uint64_t bytes, uint64_t align, heddle_pbuffer **out,
                              heddle_error *err) {
  heddle_pbuffer *b = NULL;
  char what[64];
  heddle_status s = make(dev, kind, bytes, &b, err);
  if (s != HEDDLE_OK) return s;
  const VkResult code = bytes > 0 ? vlk_block_take(dev, align, b) : VK_SUCCESS; /* Vulkan has no empty buffers */
  if (code != VK_SUCCESS) {
    dev->host->free(dev->host->ctx, b);
    snprintf(what, sizeof what, "allocate %llu bytes", (unsigned long long)bytes);
    return vlk_check(dev, code, what, err);
  }
  *out = b;
  return HEDDLE_OK;
}

heddle_status vlk_buffer_make(heddle_pdevice *dev, uint32_t kind, uint64_t bytes, heddle_pbuffer **out,
                              heddle_error *err) {
  return allocate(dev, kind, bytes, dev->info->alignment, out, err);
}

void vlk_buffer_free(heddle_pbuffer *buffer) {
  if (buffer == NULL) return;
  const heddle_host *host = buffer->dev->host;
  if (!buffer->view) vlk_block_give(buffer);
  host->free(host->ctx, buffer);
}

static void memory_free(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  (void)dev;
  if (buffer == NULL) return;
  heddle_pdevice *owner = buffer->dev;
  vlk_count(&owner->live_buffers, -1);
  if (!buffer->view && buffer->kind != VLK_KIND_IMPORT) vlk_count(&owner->live_bytes, -(int64_t)buffer->bytes);
  vlk_buffer_free(buffer);
}

static heddle_status check_desc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_error *err) {
  const uint64_t most = dev->info->max_buffer_bytes;
  if (desc->kind > HEDDLE_MEMORY_UNIFIED || (desc->kind == HEDDLE_MEMORY_UNIFIED && !dev->info->unified))
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "vulkan:%u: memory of kind %u is not supported on this device",
                  dev->index, desc->kind);
  if ((desc->align & (desc->align - 1)) != 0 || (desc->align > MOST_ALIGNMENT && desc->align > dev->info->alignment))
    return p_fail(err, HEDDLE_EINVAL, 0, "vulkan:%u: an alignment is a power of two up to %llu, not %llu", dev->index,
                  (unsigned long long)MOST_ALIGNMENT, (unsigned long long)desc->align);
  if (most != 0 && desc->bytes > most)
    return p_fail(err, HEDDLE_ELIMIT, 0, "vulkan:%u: %llu bytes asked for one buffer, which may have %llu at most",
                  dev->index, (unsigned long long)desc->bytes, (unsigned long long)most);
  if (desc->bytes > (uint64_t)INT64_MAX)
    return p_fail(err, HEDDLE_ENOMEM, 0, "vulkan:%u: no memory for %llu bytes", dev->index,
                  (unsigned long long)desc->bytes);
  return HEDDLE_OK;
}

static heddle_status memory_alloc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                                  heddle_error *err) {
  const uint64_t align = desc->align > dev->info->alignment ? desc->align : dev->info->alignment;
  heddle_status s = vlk_health(dev, err);
  if (s == HEDDLE_OK) s = check_desc(dev, desc, err);
  if (s == HEDDLE_OK) s = allocate(dev, desc->kind, desc->bytes, align, out, err);
  if (s != HEDDLE_OK) return s;
  vlk_count(&dev->live_buffers, 1);
  vlk_count(&dev->live_bytes, (int64_t)desc->bytes);
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- views and imports */

static heddle_status memory_view(heddle_pdevice *dev, heddle_pbuffer *parent, uint64_t offset, uint64_t bytes,
                                 heddle_pbuffer **out, heddle_error *err) {
  heddle_status s = vlk_range(dev, parent, offset, bytes, "view", err);
  if (s != HEDDLE_OK) return s;
  if (parent == NULL || parent->view || offset % dev->info->alignment != 0)
    return p_fail(err, HEDDLE_EINVAL, 0,
                  "vulkan:%u: a view is of a buffer that is no view, at a multiple of %llu, not %llu", dev->index,
                  (unsigned long long)dev->info->alignment, (unsigned long long)offset);
  heddle_pbuffer *b = NULL;
  s = make(dev, parent->kind, bytes, &b, err);
  if (s != HEDDLE_OK) return s;
  b->view = true;
  b->buffer = parent->buffer;
  b->block = parent->block;
  b->base = parent->base + offset;
  b->host = parent->host != NULL ? parent->host + offset : NULL;
  vlk_count(&dev->live_buffers, 1);
  *out = b;
  return HEDDLE_OK;
}

static heddle_status import_host(heddle_pdevice *dev, void *pointer, uint64_t bytes, heddle_pbuffer **out,
                                 heddle_error *err) {
  const uint64_t align = dev->info->import_alignment;
  heddle_pbuffer *b = NULL;
  heddle_status s = vlk_health(dev, err);
  if (s != HEDDLE_OK) return s;
  if (align == 0)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "vulkan:%u: the driver has no VK_EXT_external_memory_host", dev->index);
  if ((uintptr_t)pointer % align != 0 || bytes % align != 0 || (pointer == NULL && bytes > 0))
    return p_fail(err, HEDDLE_EINVAL, 0,
                  "vulkan:%u: import of %llu bytes: address and size must be multiples of %llu, and there must be one",
                  dev->index, (unsigned long long)bytes, (unsigned long long)align);
  s = make(dev, VLK_KIND_IMPORT, bytes, &b, err);
  if (s != HEDDLE_OK) return s;
  const VkResult code = bytes > 0 ? vlk_block_import(dev, pointer, b) : VK_SUCCESS;
  if (code != VK_SUCCESS) {
    dev->host->free(dev->host->ctx, b);
    if (code == VK_ERROR_FEATURE_NOT_PRESENT || code == VK_ERROR_INVALID_EXTERNAL_HANDLE)
      return p_fail(err, HEDDLE_EUNSUPPORTED, code, "vulkan:%u: the driver does not take this memory of the host's",
                    dev->index);
    return vlk_check(dev, code, "import memory", err);
  }
  vlk_count(&dev->live_buffers, 1);
  *out = b;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- mappings */

static heddle_status memory_map(heddle_pdevice *dev, heddle_pbuffer *buffer, void **out, heddle_error *err) {
  if (buffer->kind == HEDDLE_MEMORY_DEVICE)
    return p_fail(err, HEDDLE_EINVAL, 0, "vulkan:%u: memory of kind device cannot be mapped", dev->index);
  *out = buffer->host;
  return HEDDLE_OK;
}

static void memory_unmap(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  (void)dev, (void)buffer; /* mapped for its whole life */
}

static heddle_status make_visible(heddle_pdevice *dev, heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes,
                                  bool to_device, heddle_error *err) {
  const char *what = to_device ? "flush" : "invalidate";
  heddle_status s = vlk_range(dev, buffer, offset, bytes, what, err);
  if (s != HEDDLE_OK || bytes == 0 || buffer->kind != HEDDLE_MEMORY_PINNED || !dev->info->noncoherent) return s;
  return vlk_check(dev, vlk_block_sync(buffer, offset, bytes, to_device), what, err);
}

static heddle_status memory_flush(heddle_pdevice *dev, heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes,
                                  heddle_error *err) {
  return make_visible(dev, buffer, offset, bytes, true, err);
}

static heddle_status memory_invalidate(heddle_pdevice *dev, heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes,
                                       heddle_error *err) {
  return make_visible(dev, buffer, offset, bytes, false, err);
}

const heddle_memory_table vlk_memory_table = {
    .struct_size = sizeof vlk_memory_table,
    .free = memory_free,
    .alloc = memory_alloc,
    .view = memory_view,
    .import_host = import_host,
    .map = memory_map,
    .unmap = memory_unmap,
    .flush = memory_flush,
    .invalidate = memory_invalidate,
};
