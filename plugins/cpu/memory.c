/* Memory: a buffer is a range of host memory, allocated, imported from the caller or a view of another. DEVICE and
 * PINNED are the same here. */
#include "cpu.h"

#define MOST_ALIGNMENT UINT64_C(4096)

heddle_status cpu_range(const heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes, const char *what, char **out,
                        heddle_error *err) {
  const uint64_t have = buffer != NULL ? buffer->bytes : 0;
  if (offset > have || bytes > have - offset) {
    return p_fail(err, HEDDLE_EINVAL, 0, "cpu:0: %s: bytes %llu to %llu + %llu of a buffer of %llu", what,
                  (unsigned long long)offset, (unsigned long long)offset, (unsigned long long)bytes,
                  (unsigned long long)have);
  }
  *out = buffer != NULL && buffer->base != NULL ? buffer->base + offset : NULL;
  return HEDDLE_OK;
}

static heddle_status make(heddle_pdevice *dev, char *base, uint64_t bytes, bool owned, heddle_pbuffer **out,
                          heddle_error *err) {
  void *buffer = NULL;
  heddle_status s = cpu_new(dev->host, sizeof **out, "a buffer's handle", &buffer, err);
  if (s != HEDDLE_OK) return s;
  *out = buffer;
  **out = (heddle_pbuffer){.dev = dev, .base = base, .bytes = bytes, .owned = owned};
  cpu_count(&dev->live_buffers, 1);
  return HEDDLE_OK;
}

static void memory_free(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  (void)dev;
  if (buffer == NULL) return;
  heddle_pdevice *owner = buffer->dev;
  cpu_count(&owner->live_buffers, -1);
  if (buffer->owned) {
    cpu_count(&owner->live_bytes, -(int64_t)buffer->bytes);
    owner->host->free(owner->host->ctx, buffer->base);
  }
  owner->host->free(owner->host->ctx, buffer);
}

static heddle_status memory_alloc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                                  heddle_error *err) {
  const uint64_t align = desc->align > CPU_ALIGNMENT ? desc->align : CPU_ALIGNMENT;
  if (desc->kind != HEDDLE_MEMORY_DEVICE && desc->kind != HEDDLE_MEMORY_PINNED) {
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "cpu:0: memory of kind %u is not supported, device and pinned are",
                  desc->kind);
  }
  if ((align & (align - 1)) != 0 || align > MOST_ALIGNMENT) {
    return p_fail(err, HEDDLE_EINVAL, 0, "cpu:0: an alignment is a power of two up to %llu, not %llu",
                  (unsigned long long)MOST_ALIGNMENT, (unsigned long long)desc->align);
  }
  char *base = NULL;
  if (desc->bytes <= (uint64_t)INT64_MAX) {
    base = dev->host->alloc(dev->host->ctx, desc->bytes > 0 ? desc->bytes : 1, align);
  }
  if (base == NULL) {
    return p_fail(err, HEDDLE_ENOMEM, 0, "cpu:0: no memory for a buffer of %llu bytes",
                  (unsigned long long)desc->bytes);
  }
  heddle_status s = make(dev, base, desc->bytes, true, out, err);
  if (s != HEDDLE_OK) dev->host->free(dev->host->ctx, base);
  else cpu_count(&dev->live_bytes, (int64_t)desc->bytes);
  return s;
}

static heddle_status memory_view(heddle_pdevice *dev, heddle_pbuffer *parent, uint64_t offset, uint64_t bytes,
                                 heddle_pbuffer **out, heddle_error *err) {
  char *base = NULL;
  heddle_status s = cpu_range(parent, offset, bytes, "view", &base, err);
  if (s != HEDDLE_OK) return s;
  if (parent == NULL || parent->view || offset % CPU_ALIGNMENT != 0) {
    return p_fail(err, HEDDLE_EINVAL, 0,
                  "cpu:0: a view is of a buffer that is no view, at a multiple of %llu, not %llu",
                  (unsigned long long)CPU_ALIGNMENT, (unsigned long long)offset);
  }
  s = make(dev, base, bytes, false, out, err);
  if (s == HEDDLE_OK) (*out)->view = true;
  return s;
}

static heddle_status import_host(heddle_pdevice *dev, void *pointer, uint64_t bytes, heddle_pbuffer **out,
                                 heddle_error *err) {
  if (pointer == NULL && bytes > 0) {
    return p_fail(err, HEDDLE_EINVAL, 0, "cpu:0: import of %llu bytes without an address", (unsigned long long)bytes);
  }
  return make(dev, pointer, bytes, false, out, err);
}

static heddle_status memory_map(heddle_pdevice *dev, heddle_pbuffer *buffer, void **out, heddle_error *err) {
  (void)dev, (void)err;
  *out = buffer->base;
  return HEDDLE_OK;
}

static void memory_unmap(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  (void)dev, (void)buffer;
}

static heddle_status memory_native(heddle_pdevice *dev, heddle_pbuffer *buffer, uint64_t *out, heddle_error *err) {
  (void)dev, (void)err;
  *out = (uint64_t)(uintptr_t)buffer->base;
  return HEDDLE_OK;
}

const heddle_memory_table cpu_memory_table = {
    .struct_size = sizeof cpu_memory_table,
    .free = memory_free,
    .alloc = memory_alloc,
    .view = memory_view,
    .import_host = import_host,
    .map = memory_map,
    .unmap = memory_unmap,
    .native = memory_native,
};
