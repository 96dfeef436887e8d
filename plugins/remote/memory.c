/* Memory of servers' devices, PINNED memory of the host's, imports, and copies between them. */
#include "plugins/remote/remote.h"

static void destroy(heddle_pdevice *dev, remote_kept *kept) {
  heddle_pbuffer *buffer = (heddle_pbuffer *)(void *)kept;
  if (buffer->kind == HEDDLE_MEMORY_DEVICE) remote_forget(dev->link, buffer->handle);
  else if (!buffer->imported) dev->host->free(dev->host->ctx, buffer->address);
  dev->host->free(dev->host->ctx, buffer);
}

static void memory_free(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  if (buffer == NULL) return;
  remote_count(dev, HEDDLE_QUERY_LIVE_BUFFERS, -1);
  if (!buffer->imported) remote_count(dev, HEDDLE_QUERY_LIVE_BYTES, -(long long)buffer->bytes);
  remote_give(dev, &buffer->kept);
}

static heddle_status get(heddle_pdevice *dev, heddle_pbuffer *buffer, uint64_t align, heddle_error *err) {
  const uint64_t most = dev->about->desc.max_buffer_bytes;
  if (buffer->kind == HEDDLE_MEMORY_PINNED) {
    buffer->address = dev->host->alloc(dev->host->ctx, buffer->bytes > 0 ? buffer->bytes : 1, align);
    if (buffer->address != NULL) return HEDDLE_OK;
    return p_fail(err, HEDDLE_ENOMEM, 0, "remote:%u: no memory for a pinned buffer of %llu bytes", dev->index,
                  (unsigned long long)buffer->bytes);
  }
  if (most != 0 && buffer->bytes > most)
    return p_fail(err, HEDDLE_ELIMIT, 0, "remote:%u: a buffer of %llu bytes is over the limit of %llu", dev->index,
                  (unsigned long long)buffer->bytes, (unsigned long long)most);
  byte_buffer b = {0};
  wire_begin(&b);
  byte_put_u32(&b, dev->remote);
  byte_put_u64(&b, buffer->bytes);
  byte_put_u64(&b, align);
  return remote_ask_number(dev->link, WIRE_ALLOC, &b, &buffer->handle, err);
}

static heddle_status make(heddle_pdevice *dev, const heddle_pbuffer *from, heddle_pbuffer **out, heddle_error *err) {
  heddle_pbuffer *buffer = remote_new(dev->host, sizeof *buffer);
  if (buffer == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "remote:%u: no memory for a buffer", dev->index);
  *buffer = *from;
  buffer->kept.destroy = destroy;
  buffer->dev = dev;
  *out = buffer;
  return HEDDLE_OK;
}

static heddle_status memory_alloc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                                  heddle_error *err) {
  const uint64_t least = dev->about->desc.alignment, align = desc->align > least ? desc->align : least;
  heddle_pbuffer *buffer = NULL;
  heddle_status s = remote_check(dev, err);
  if (s != HEDDLE_OK) return s;
  if (desc->kind != HEDDLE_MEMORY_DEVICE && desc->kind != HEDDLE_MEMORY_PINNED)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "remote:%u: there is no memory of kind %u, only DEVICE and PINNED",
                  dev->index, desc->kind);
  if (align > 4096 || (align & (align - 1)) != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "remote:%u: an alignment of %llu is no power of two up to 4096", dev->index,
                  (unsigned long long)align);
  const heddle_pbuffer from = {.bytes = desc->bytes, .kind = desc->kind};
  s = make(dev, &from, &buffer, err);
  if (s != HEDDLE_OK) return s;
  s = get(dev, buffer, align, err);
  if (s != HEDDLE_OK) {
    dev->host->free(dev->host->ctx, buffer);
    return s;
  }
  remote_count(dev, HEDDLE_QUERY_LIVE_BUFFERS, 1);
  remote_count(dev, HEDDLE_QUERY_LIVE_BYTES, (long long)desc->bytes);
  *out = buffer;
  return HEDDLE_OK;
}

/* The caller's memory as the host side of copies. */
static heddle_status memory_import(heddle_pdevice *dev, void *pointer, uint64_t bytes, heddle_pbuffer **out,
                                   heddle_error *err) {
  heddle_status s = remote_check(dev, err);
  if (s != HEDDLE_OK) return s;
  const heddle_pbuffer from = {.bytes = bytes, .kind = HEDDLE_MEMORY_PINNED, .imported = true, .address = pointer};
  s = make(dev, &from, out, err);
  if (s == HEDDLE_OK) remote_count(dev, HEDDLE_QUERY_LIVE_BUFFERS, 1);
  return s;
}

heddle_status remote_range(heddle_pdevice *dev, const heddle_pbuffer *buffer, uint32_t kind, uint64_t offset,
                           uint64_t bytes, const char *what, heddle_error *err) {
  if (buffer == NULL && bytes == 0) return HEDDLE_OK;
  if (buffer == NULL || buffer->kind != kind ||
      (kind == HEDDLE_MEMORY_DEVICE ? buffer->dev != dev : buffer->dev->link != dev->link))
    return p_fail(err, HEDDLE_EINVAL, 0, "remote:%u: %s: the buffer is not %s memory of this device", dev->index, what,
                  kind == HEDDLE_MEMORY_DEVICE ? "DEVICE" : "PINNED");
  if (offset <= buffer->bytes && bytes <= buffer->bytes - offset) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "remote:%u: %s: %llu bytes at %llu are outside a buffer of %llu", dev->index,
                what, (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)buffer->bytes);
}

static heddle_status memory_map(heddle_pdevice *dev, heddle_pbuffer *buffer, void **out, heddle_error *err) {
  heddle_status s = remote_check(dev, err);
  if (s != HEDDLE_OK) return s;
  if (buffer == NULL || buffer->kind != HEDDLE_MEMORY_PINNED)
    return p_fail(err, HEDDLE_EINVAL, 0, "remote:%u: map: the buffer is not PINNED memory", dev->index);
  *out = buffer->address;
  return HEDDLE_OK;
}

/* A mapping lasts as long as its buffer. */
static void memory_unmap(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  (void)dev, (void)buffer;
}

const heddle_memory_table remote_memory_table = {
    .struct_size = sizeof remote_memory_table,
    .free = memory_free,
    .alloc = memory_alloc,
    .import_host = memory_import,
    .map = memory_map,
    .unmap = memory_unmap,
};

/* ---------------------------------------------------------------- copies */

static heddle_status push(heddle_pstream *stream, const remote_cmd *cmd, heddle_error *err) {
  if (cmd->bytes == 0) return remote_check(stream->dev, err);
  return remote_push(stream, cmd, err);
}

static heddle_status move(heddle_pstream *stream, uint32_t kind, const char *what, heddle_pbuffer *device,
                          uint64_t offset, heddle_pbuffer *host, uint64_t host_offset, uint64_t bytes,
                          heddle_error *err) {
  heddle_status s = remote_range(stream->dev, device, HEDDLE_MEMORY_DEVICE, offset, bytes, what, err);
  if (s == HEDDLE_OK) s = remote_range(stream->dev, host, HEDDLE_MEMORY_PINNED, host_offset, bytes, what, err);
  if (s != HEDDLE_OK) return s;
  remote_cmd cmd = {.kind = kind, .bytes = bytes};
  if (bytes > 0) {
    cmd.to = device->handle;
    cmd.to_offset = offset;
    cmd.host = host->address + host_offset;
  }
  return push(stream, &cmd, err);
}

static heddle_status copy_h2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *host,
                              uint64_t host_offset, uint64_t bytes, heddle_error *err) {
  return move(stream, CMD_WRITE, "h2d", dst, dst_offset, host, host_offset, bytes, err);
}

static heddle_status copy_d2h(heddle_pstream *stream, heddle_pbuffer *host, uint64_t host_offset, heddle_pbuffer *src,
                              uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  return move(stream, CMD_READ, "d2h", src, src_offset, host, host_offset, bytes, err);
}

/* A command that uses the caller's memory: the call waits for it. */
static heddle_status move_now(heddle_pstream *stream, uint32_t kind, const char *what, heddle_pbuffer *device,
                              uint64_t offset, void *host, uint64_t bytes, heddle_error *err) {
  heddle_status s = remote_range(stream->dev, device, HEDDLE_MEMORY_DEVICE, offset, bytes, what, err);
  if (s != HEDDLE_OK) return s;
  if (stream->capture != NULL) return remote_finish(stream, err); /* which refuses it */
  remote_cmd cmd = {.kind = kind, .bytes = bytes, .to_offset = offset, .host = host};
  if (bytes > 0) cmd.to = device->handle;
  s = push(stream, &cmd, err);
  return s == HEDDLE_OK ? remote_finish(stream, err) : s;
}

static heddle_status copy_write(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, const void *src,
                                uint64_t bytes, heddle_error *err) {
  return move_now(stream, CMD_WRITE, "write", dst, dst_offset, (void *)(uintptr_t)src, bytes, err);
}

static heddle_status copy_read(heddle_pstream *stream, void *dst, heddle_pbuffer *src, uint64_t src_offset,
                               uint64_t bytes, heddle_error *err) {
  return move_now(stream, CMD_READ, "read", src, src_offset, dst, bytes, err);
}

static heddle_status within(heddle_pstream *stream, heddle_pdevice *to, heddle_pbuffer *dst, uint64_t dst_offset,
                            heddle_pdevice *from, heddle_pbuffer *src, uint64_t src_offset, uint64_t bytes,
                            const char *what, heddle_error *err) {
  heddle_status s = remote_range(to, dst, HEDDLE_MEMORY_DEVICE, dst_offset, bytes, what, err);
  if (s == HEDDLE_OK) s = remote_range(from, src, HEDDLE_MEMORY_DEVICE, src_offset, bytes, what, err);
  if (s != HEDDLE_OK) return s;
  remote_cmd cmd = {.kind = CMD_COPY, .bytes = bytes, .to_offset = dst_offset, .from_offset = src_offset};
  if (bytes > 0) {
    cmd.to = dst->handle;
    cmd.from = src->handle;
  }
  return push(stream, &cmd, err);
}

static heddle_status copy_d2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *src,
                              uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  return within(stream, stream->dev, dst, dst_offset, stream->dev, src, src_offset, bytes, "d2d", err);
}

static heddle_status copy_fill(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, uint64_t bytes,
                               uint32_t pattern, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  if (dst_offset % 4 != 0 || bytes % 4 != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "remote:%u: fill of %llu bytes at %llu: both must be multiples of 4",
                  dev->index, (unsigned long long)bytes, (unsigned long long)dst_offset);
  heddle_status s = remote_range(dev, dst, HEDDLE_MEMORY_DEVICE, dst_offset, bytes, "fill", err);
  if (s != HEDDLE_OK) return s;
  if (bytes > 0 && pattern == dev->self->lose_at && stream->capture == NULL) {
    remote_lose(dev, 0, "a fill with the word of the setting lose_on_fill");
    return remote_check(dev, err);
  }
  remote_cmd cmd = {.kind = CMD_FILL, .bytes = bytes, .to_offset = dst_offset, .pattern = pattern};
  if (bytes > 0) cmd.to = dst->handle;
  cmd.value = pattern == dev->self->fail_at;
  return push(stream, &cmd, err);
}

/* ---------------------------------------------------------------- between devices of one server */

static heddle_status can_peer(heddle_pinstance *self, uint32_t dst_index, uint32_t src_index, heddle_error *err) {
  remote_server *to, *from;
  uint32_t remote;
  heddle_status s = remote_find(self, dst_index, &to, &remote, err);
  if (s == HEDDLE_OK) s = remote_find(self, src_index, &from, &remote, err);
  if (s != HEDDLE_OK || to == from) return s;
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "remote:%u and remote:%u are devices of two servers", dst_index,
                src_index);
}

static heddle_status copy_peer(heddle_pstream *stream, heddle_pdevice *dst_dev, heddle_pbuffer *dst,
                               uint64_t dst_offset, heddle_pdevice *src_dev, heddle_pbuffer *src, uint64_t src_offset,
                               uint64_t bytes, heddle_error *err) {
  if (stream->capture != NULL)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "remote:%u: copies between devices are not recorded",
                  stream->dev->index);
  if (dst_dev->link != src_dev->link || stream->dev->link != dst_dev->link)
    return p_fail(err, HEDDLE_EINVAL, 0, "remote:%u and remote:%u are in two sessions of their server", dst_dev->index,
                  src_dev->index);
  heddle_status s = remote_check(dst_dev, err);
  if (s == HEDDLE_OK) s = remote_check(src_dev, err);
  if (s != HEDDLE_OK) return s;
  return within(stream, dst_dev, dst, dst_offset, src_dev, src, src_offset, bytes, "peer", err);
}

const heddle_copy_table remote_copy_table = {
    .struct_size = sizeof remote_copy_table,
    .h2d = copy_h2d,
    .d2h = copy_d2h,
    .write = copy_write,
    .read = copy_read,
    .d2d = copy_d2d,
    .fill = copy_fill,
    .can_peer = can_peer,
    .peer = copy_peer,
};
