/* Memory: ranges of the device's DRAM, and pinned memory of the host's that copies go through. */
#include "npu.h"

static uint64_t round_up(uint64_t n, uint64_t to) {
  return (n + to - 1) / to * to;
}

heddle_status npu_dram_take(heddle_pdevice *dev, uint64_t bytes, uint64_t align, heddle_pbuffer **out,
                            heddle_error *err) {
  const uint64_t all = dev->self->dram_bytes;
  heddle_pbuffer *b = npu_new(dev->host, sizeof *b);
  bool found = false;
  if (b == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "npu:0: no memory to keep account of memory");
  *b = (heddle_pbuffer){.dev = dev, .bytes = bytes, .kind = HEDDLE_MEMORY_DEVICE};
  pthread_mutex_lock(&dev->self->lock);
  uint64_t end = 0; /* of the range before */
  for (heddle_pbuffer **link = &dev->used;; link = &(*link)->next) {
    const uint64_t at = round_up(end, align), limit = *link != NULL ? (*link)->at : all;
    if (at <= limit && bytes <= limit - at) { /* first fit */
      b->at = at;
      b->data = dev->machine->dram + at;
      b->next = *link;
      *link = b;
      found = true;
      break;
    }
    if (*link == NULL) break;
    end = (*link)->at + (*link)->bytes;
  }
  pthread_mutex_unlock(&dev->self->lock);
  if (found) {
    *out = b;
    return HEDDLE_OK;
  }
  dev->host->free(dev->host->ctx, b);
  return p_fail(err, HEDDLE_ENOMEM, 0,
                "npu:0: %llu bytes do not fit what is free of %llu bytes of DRAM (setting dram_mb)",
                (unsigned long long)bytes, (unsigned long long)all);
}

void npu_dram_give(heddle_pbuffer *range) {
  if (range == NULL) return;
  heddle_pdevice *dev = range->dev;
  pthread_mutex_lock(&dev->self->lock);
  heddle_pbuffer **link = &dev->used;
  while (*link != NULL && *link != range) link = &(*link)->next;
  if (*link != NULL) *link = range->next;
  pthread_mutex_unlock(&dev->self->lock);
  dev->host->free(dev->host->ctx, range);
}

heddle_status npu_bytes(heddle_pdevice *dev, const heddle_pbuffer *buffer, uint32_t kind, uint64_t offset,
                        uint64_t bytes, const char *what, uint8_t **out, heddle_error *err) {
  *out = NULL;
  if (buffer == NULL && bytes == 0) return HEDDLE_OK;
  /* Pinned memory of any device here will do: they have the same event domain. */
  if (buffer == NULL || buffer->kind != kind || (kind == HEDDLE_MEMORY_DEVICE && buffer->dev != dev))
    return p_fail(err, HEDDLE_EINVAL, 0, "npu:0: %s: the buffer is not %s", what,
                  kind == HEDDLE_MEMORY_DEVICE ? "in DRAM of this device" : "pinned memory");
  if (offset > buffer->bytes || bytes > buffer->bytes - offset)
    return p_fail(err, HEDDLE_EINVAL, 0, "npu:0: %s: %llu bytes at %llu are outside a buffer of %llu", what,
                  (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)buffer->bytes);
  *out = buffer->data + offset;
  return HEDDLE_OK;
}

static void memory_free(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  if (buffer == NULL) return;
  atomic_fetch_sub(&dev->live_buffers, 1);
  atomic_fetch_sub(&dev->live_bytes, (long long)buffer->bytes);
  if (buffer->kind == HEDDLE_MEMORY_DEVICE) {
    npu_dram_give(buffer);
    return;
  }
  dev->host->free(dev->host->ctx, buffer->data);
  dev->host->free(dev->host->ctx, buffer);
}

static heddle_status alloc_pinned(heddle_pdevice *dev, uint64_t bytes, uint64_t align, heddle_pbuffer **out,
                                  heddle_error *err) {
  const heddle_host *host = dev->host;
  heddle_pbuffer *b = npu_new(host, sizeof *b);
  uint8_t *data = b != NULL ? host->alloc(host->ctx, bytes > 0 ? bytes : 1, align) : NULL;
  if (data == NULL) {
    host->free(host->ctx, b);
    return p_fail(err, HEDDLE_ENOMEM, 0, "npu:0: no memory for a pinned buffer of %llu bytes",
                  (unsigned long long)bytes);
  }
  *b = (heddle_pbuffer){.dev = dev, .bytes = bytes, .data = data, .kind = HEDDLE_MEMORY_PINNED};
  *out = b;
  return HEDDLE_OK;
}

static heddle_status memory_alloc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                                  heddle_error *err) {
  const uint64_t align = desc->align > NPU_ALIGNMENT ? desc->align : NPU_ALIGNMENT;
  heddle_status s = npu_check(dev, err);
  if (s != HEDDLE_OK) return s;
  if (desc->kind != HEDDLE_MEMORY_DEVICE && desc->kind != HEDDLE_MEMORY_PINNED)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "npu:0: there is no memory of kind %u, only DEVICE and PINNED",
                  desc->kind);
  if (align > 4096 || (align & (align - 1)) != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "npu:0: an alignment of %llu is no power of two up to 4096",
                  (unsigned long long)align);
  if (desc->bytes > dev->self->dram_bytes)
    return p_fail(err, HEDDLE_ELIMIT, 0, "npu:0: a buffer of %llu bytes is over the limit of %llu",
                  (unsigned long long)desc->bytes, (unsigned long long)dev->self->dram_bytes);
  if (desc->kind == HEDDLE_MEMORY_PINNED) s = alloc_pinned(dev, desc->bytes, align, out, err);
  else s = npu_dram_take(dev, desc->bytes, align, out, err);
  if (s != HEDDLE_OK) return s;
  atomic_fetch_add(&dev->live_buffers, 1);
  atomic_fetch_add(&dev->live_bytes, (long long)desc->bytes);
  return HEDDLE_OK;
}

static heddle_status memory_map(heddle_pdevice *dev, heddle_pbuffer *buffer, void **out, heddle_error *err) {
  uint8_t *data;
  heddle_status s = npu_check(dev, err);
  if (s == HEDDLE_OK) s = npu_bytes(dev, buffer, HEDDLE_MEMORY_PINNED, 0, 0, "map", &data, err);
  if (s != HEDDLE_OK) return s;
  if (buffer == NULL) return p_fail(err, HEDDLE_EINVAL, 0, "npu:0: map: there is no buffer");
  *out = data;
  return HEDDLE_OK;
}

/* A mapping lasts as long as its buffer. */
static void memory_unmap(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  (void)dev, (void)buffer;
}

const heddle_memory_table npu_memory_table = {
    .struct_size = sizeof npu_memory_table,
    .free = memory_free,
    .alloc = memory_alloc,
    .map = memory_map,
    .unmap = memory_unmap,
};
