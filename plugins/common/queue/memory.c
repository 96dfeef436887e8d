/* Memory of the driver's, PINNED memory of the host's, and copies between them. */
#include "plugins/common/queue/inside.h"

static void destroy(heddle_pdevice *dev, queue_kept *kept) {
  heddle_pbuffer *buffer = (heddle_pbuffer *)(void *)kept;
  if (buffer->kind == HEDDLE_MEMORY_DEVICE) dev->driver->free(dev->device, buffer->memory);
  else dev->host->free(dev->host->ctx, buffer->memory);
  dev->host->free(dev->host->ctx, buffer);
}

static void memory_free(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  if (buffer == NULL) return;
  queue_count(dev, HEDDLE_QUERY_LIVE_BUFFERS, -1);
  queue_count(dev, HEDDLE_QUERY_LIVE_BYTES, -(long long)buffer->bytes);
  queue_give(dev, &buffer->kept);
}

static heddle_status get(heddle_pdevice *dev, uint32_t kind, uint64_t bytes, uint64_t align, void **out,
                         heddle_error *err) {
  const queue_driver *driver = dev->driver;
  if (kind == HEDDLE_MEMORY_DEVICE && driver->max_buffer_bytes != 0 && bytes > driver->max_buffer_bytes)
    return p_fail(err, HEDDLE_ELIMIT, 0, "%s:%u: a buffer of %llu bytes is over the limit of %llu", driver->name,
                  dev->index, (unsigned long long)bytes, (unsigned long long)driver->max_buffer_bytes);
  if (bytes == 0) bytes = 1;
  if (kind == HEDDLE_MEMORY_DEVICE) return driver->alloc(dev->device, bytes, align, out, err);
  *out = dev->host->alloc(dev->host->ctx, bytes, align);
  if (*out != NULL) return HEDDLE_OK;
  return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no memory for a pinned buffer of %llu bytes", driver->name, dev->index,
                (unsigned long long)bytes);
}

static heddle_status memory_alloc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                                  heddle_error *err) {
  const uint64_t align = desc->align > dev->driver->alignment ? desc->align : dev->driver->alignment;
  heddle_status s = queue_check(dev, err);
  if (s != HEDDLE_OK) return s;
  if (desc->kind != HEDDLE_MEMORY_DEVICE && desc->kind != HEDDLE_MEMORY_PINNED)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s:%u: there is no memory of kind %u, only DEVICE and PINNED",
                  dev->driver->name, dev->index, desc->kind);
  if (align > 4096 || (align & (align - 1)) != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: an alignment of %llu is no power of two up to 4096", dev->driver->name,
                  dev->index, (unsigned long long)align);
  heddle_pbuffer *buffer = queue_new(dev->host, sizeof *buffer);
  if (buffer == NULL)
    return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no memory for a buffer", dev->driver->name, dev->index);
  *buffer = (heddle_pbuffer){.kept = {NULL, destroy}, .dev = dev, .bytes = desc->bytes, .kind = desc->kind};
  s = get(dev, desc->kind, desc->bytes, align, &buffer->memory, err);
  if (s != HEDDLE_OK) {
    dev->host->free(dev->host->ctx, buffer);
    return s;
  }
  queue_count(dev, HEDDLE_QUERY_LIVE_BUFFERS, 1);
  queue_count(dev, HEDDLE_QUERY_LIVE_BYTES, (long long)desc->bytes);
  *out = buffer;
  return HEDDLE_OK;
}

heddle_status queue_range(heddle_pdevice *dev, const heddle_pbuffer *buffer, uint32_t kind, uint64_t offset,
                          uint64_t bytes, const char *what, queue_slice *out, heddle_error *err) {
  *out = (queue_slice){NULL, 0, bytes};
  if (buffer == NULL && bytes == 0) return HEDDLE_OK;
  if (buffer == NULL || buffer->kind != kind || buffer->dev != dev)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: %s: the buffer is not %s memory of this device", dev->driver->name,
                  dev->index, what, kind == HEDDLE_MEMORY_DEVICE ? "DEVICE" : "PINNED");
  if (offset > buffer->bytes || bytes > buffer->bytes - offset)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: %s: %llu bytes at %llu are outside a buffer of %llu",
                  dev->driver->name, dev->index, what, (unsigned long long)bytes, (unsigned long long)offset,
                  (unsigned long long)buffer->bytes);
  *out = (queue_slice){buffer->memory, offset, bytes};
  return HEDDLE_OK;
}

static heddle_status memory_map(heddle_pdevice *dev, heddle_pbuffer *buffer, void **out, heddle_error *err) {
  heddle_status s = queue_check(dev, err);
  if (s != HEDDLE_OK) return s;
  if (buffer == NULL || buffer->kind != HEDDLE_MEMORY_PINNED)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: map: the buffer is not PINNED memory", dev->driver->name, dev->index);
  *out = buffer->memory;
  return HEDDLE_OK;
}

/* A mapping lasts as long as its buffer. */
static void memory_unmap(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  (void)dev, (void)buffer;
}

const heddle_memory_table queue_memory_table = {
    .struct_size = sizeof queue_memory_table,
    .free = memory_free,
    .alloc = memory_alloc,
    .map = memory_map,
    .unmap = memory_unmap,
};

/* ---------------------------------------------------------------- copies */

static void *at(const queue_slice *slice) {
  return slice->memory != NULL ? (char *)slice->memory + slice->offset : NULL;
}

static heddle_status push(heddle_pstream *stream, const queue_copy *copy, heddle_error *err) {
  queue_cmd cmd = {.kind = CMD_COPY};
  if (copy->bytes == 0) return queue_check(stream->dev, err);
  cmd.u.copy = *copy;
  return queue_push(stream, &cmd, err);
}

static heddle_status copy_h2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *host,
                              uint64_t host_offset, uint64_t bytes, heddle_error *err) {
  queue_slice to, from;
  heddle_status s = queue_range(stream->dev, dst, HEDDLE_MEMORY_DEVICE, dst_offset, bytes, "h2d", &to, err);
  if (s == HEDDLE_OK) s = queue_range(stream->dev, host, HEDDLE_MEMORY_PINNED, host_offset, bytes, "h2d", &from, err);
  if (s != HEDDLE_OK) return s;
  const queue_copy c = {QUEUE_TO_DEVICE, 0, to.memory, to.offset, at(&from), 0, bytes};
  return push(stream, &c, err);
}

static heddle_status copy_d2h(heddle_pstream *stream, heddle_pbuffer *host, uint64_t host_offset, heddle_pbuffer *src,
                              uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  queue_slice to, from;
  heddle_status s = queue_range(stream->dev, host, HEDDLE_MEMORY_PINNED, host_offset, bytes, "d2h", &to, err);
  if (s == HEDDLE_OK) s = queue_range(stream->dev, src, HEDDLE_MEMORY_DEVICE, src_offset, bytes, "d2h", &from, err);
  if (s != HEDDLE_OK) return s;
  const queue_copy c = {QUEUE_TO_HOST, 0, at(&to), 0, from.memory, from.offset, bytes};
  return push(stream, &c, err);
}

static heddle_status copy_d2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *src,
                              uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  queue_slice to, from;
  heddle_status s = queue_range(stream->dev, dst, HEDDLE_MEMORY_DEVICE, dst_offset, bytes, "d2d", &to, err);
  if (s == HEDDLE_OK) s = queue_range(stream->dev, src, HEDDLE_MEMORY_DEVICE, src_offset, bytes, "d2d", &from, err);
  if (s != HEDDLE_OK) return s;
  const queue_copy c = {QUEUE_WITHIN, 0, to.memory, to.offset, from.memory, from.offset, bytes};
  return push(stream, &c, err);
}

static heddle_status copy_fill(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, uint64_t bytes,
                               uint32_t pattern, heddle_error *err) {
  queue_slice to;
  if (dst_offset % 4 != 0 || bytes % 4 != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: fill of %llu bytes at %llu: both must be multiples of 4",
                  stream->dev->driver->name, stream->dev->index, (unsigned long long)bytes,
                  (unsigned long long)dst_offset);
  heddle_status s = queue_range(stream->dev, dst, HEDDLE_MEMORY_DEVICE, dst_offset, bytes, "fill", &to, err);
  if (s != HEDDLE_OK) return s;
  const queue_copy c = {QUEUE_FILL, pattern, to.memory, to.offset, NULL, 0, bytes};
  return push(stream, &c, err);
}

/* A command that uses the caller's memory: the call waits for it. */
static heddle_status push_and_finish(heddle_pstream *stream, const queue_copy *copy, heddle_error *err) {
  if (stream->capture != NULL) return queue_finish(stream, err); /* which refuses it */
  heddle_status s = push(stream, copy, err);
  return s == HEDDLE_OK ? queue_finish(stream, err) : s;
}

static heddle_status copy_write(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, const void *src,
                                uint64_t bytes, heddle_error *err) {
  queue_slice to;
  heddle_status s = queue_range(stream->dev, dst, HEDDLE_MEMORY_DEVICE, dst_offset, bytes, "write", &to, err);
  if (s != HEDDLE_OK) return s;
  const queue_copy c = {QUEUE_TO_DEVICE, 0, to.memory, to.offset, src, 0, bytes};
  return push_and_finish(stream, &c, err);
}

static heddle_status copy_read(heddle_pstream *stream, void *dst, heddle_pbuffer *src, uint64_t src_offset,
                               uint64_t bytes, heddle_error *err) {
  queue_slice from;
  heddle_status s = queue_range(stream->dev, src, HEDDLE_MEMORY_DEVICE, src_offset, bytes, "read", &from, err);
  if (s != HEDDLE_OK) return s;
  const queue_copy c = {QUEUE_TO_HOST, 0, dst, 0, from.memory, from.offset, bytes};
  return push_and_finish(stream, &c, err);
}

const heddle_copy_table queue_copy_table = {
    .struct_size = sizeof queue_copy_table,
    .h2d = copy_h2d,
    .d2h = copy_d2h,
    .write = copy_write,
    .read = copy_read,
    .d2d = copy_d2d,
    .fill = copy_fill,
};
