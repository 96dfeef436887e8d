/* Copies and fills. The host side of h2d and d2h is memory that the driver knows, so they return before the bytes have
 * moved; write and read take any address and wait until the driver is finished with it. Between two devices the driver
 * copies directly where each reaches the other's memory, and through the host where it does not. */
#include "gpu.h"

static bool same_device(const heddle_pdevice *a, const heddle_pdevice *b) {
  return a->info == b->info && a->context == b->context;
}

/* A range of memory that the device computes in. */
static heddle_status object(heddle_pdevice *dev, const heddle_pbuffer *b, uint64_t offset, uint64_t bytes,
                            const char *what, heddle_error *err) {
  const char *name = dev->vendor->name;
  heddle_status s = gpu_range(dev, b, offset, bytes, what, err);
  if (s != HEDDLE_OK || bytes == 0) return s;
  if (b->kind == GPU_KIND_IMPORT)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: %s: imported memory is only the host side of copies", name, dev->index,
                  what);
  if (!same_device(b->dev, dev))
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: %s: the buffer belongs to %s:%u", name, dev->index, what, name,
                  b->dev->index);
  if (b->address == 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: %s: the buffer has no address on the device", name, dev->index, what);
  return HEDDLE_OK;
}

static heddle_status host_side(heddle_pdevice *dev, const heddle_pbuffer *b, uint64_t offset, uint64_t bytes,
                               const char *what, heddle_error *err) {
  heddle_status s = gpu_range(dev, b, offset, bytes, what, err);
  if (s != HEDDLE_OK || bytes == 0 || b->host != NULL) return s;
  return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: %s: the host side is memory of kind device", dev->vendor->name,
                dev->index, what);
}

static heddle_status copy_h2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *host,
                              uint64_t host_offset, uint64_t bytes, heddle_error *err) {
  static const char what[] = "copy to the device";
  gpu_scope scope;
  heddle_status s = object(stream->dev, dst, dst_offset, bytes, what, err);
  if (s == HEDDLE_OK) s = host_side(stream->dev, host, host_offset, bytes, what, err);
  if (s == HEDDLE_OK) s = gpu_stream_enter(stream, &scope, err);
  if (s != HEDDLE_OK) return s;
  const int code = bytes == 0 ? 0
                              : stream->dev->driver->copy_h2d(dst->address + dst_offset, host->host + host_offset,
                                                              (size_t)bytes, stream->handle);
  return gpu_stream_done(stream, &scope, code, what, err);
}

static heddle_status copy_d2h(heddle_pstream *stream, heddle_pbuffer *host, uint64_t host_offset, heddle_pbuffer *src,
                              uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  static const char what[] = "copy to the host";
  gpu_scope scope;
  heddle_status s = object(stream->dev, src, src_offset, bytes, what, err);
  if (s == HEDDLE_OK) s = host_side(stream->dev, host, host_offset, bytes, what, err);
  if (s == HEDDLE_OK) s = gpu_stream_enter(stream, &scope, err);
  if (s != HEDDLE_OK) return s;
  const int code = bytes == 0 ? 0
                              : stream->dev->driver->copy_d2h(host->host + host_offset, src->address + src_offset,
                                                              (size_t)bytes, stream->handle);
  return gpu_stream_done(stream, &scope, code, what, err);
}

/* Some systems copy from any memory without staging it, behind the caller's back: so both of these wait. */
static heddle_status copy_write(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, const void *src,
                                uint64_t bytes, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  gpu_scope scope;
  heddle_status s = object(dev, dst, dst_offset, bytes, "write", err);
  if (s == HEDDLE_OK) s = gpu_stream_enter_plain(stream, "write", &scope, err);
  if (s != HEDDLE_OK) return s;
  int code = 0;
  for (uint64_t at = 0, n = 0; at < bytes && code == 0; at += n) {
    const char *from = (const char *)src + at;
    n = gpu_import_run(dev->self, from, bytes - at);
    code = dev->driver->copy_h2d(dst->address + dst_offset + at, from, (size_t)n, stream->handle);
  }
  s = gpu_stream_done(stream, &scope, code, "write", err);
  return s == HEDDLE_OK && bytes > 0 ? gpu_stream_wait(dev, stream->handle, UINT64_MAX, err) : s;
}

static heddle_status copy_read(heddle_pstream *stream, void *dst, heddle_pbuffer *src, uint64_t src_offset,
                               uint64_t bytes, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  gpu_scope scope;
  heddle_status s = object(dev, src, src_offset, bytes, "read", err);
  if (s == HEDDLE_OK) s = gpu_stream_enter_plain(stream, "read", &scope, err);
  if (s != HEDDLE_OK) return s;
  int code = 0;
  for (uint64_t at = 0, n = 0; at < bytes && code == 0; at += n) {
    char *to = (char *)dst + at;
    n = gpu_import_run(dev->self, to, bytes - at);
    code = dev->driver->copy_d2h(to, src->address + src_offset + at, (size_t)n, stream->handle);
  }
  s = gpu_stream_done(stream, &scope, code, "read", err);
  return s == HEDDLE_OK && bytes > 0 ? gpu_stream_wait(dev, stream->handle, UINT64_MAX, err) : s;
}

static heddle_status copy_d2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *src,
                              uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  gpu_scope scope;
  heddle_status s = object(stream->dev, dst, dst_offset, bytes, "copy", err);
  if (s == HEDDLE_OK) s = object(stream->dev, src, src_offset, bytes, "copy", err);
  if (s == HEDDLE_OK) s = gpu_stream_enter(stream, &scope, err);
  if (s != HEDDLE_OK) return s;
  const int code = bytes == 0 ? 0
                              : stream->dev->driver->copy_d2d(dst->address + dst_offset, src->address + src_offset,
                                                              (size_t)bytes, stream->handle);
  return gpu_stream_done(stream, &scope, code, "copy", err);
}

static heddle_status copy_fill(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, uint64_t bytes,
                               uint32_t pattern, heddle_error *err) {
  gpu_scope scope;
  heddle_status s = object(stream->dev, dst, dst_offset, bytes, "fill", err);
  if (s != HEDDLE_OK) return s;
  if (dst_offset % sizeof pattern != 0 || bytes % sizeof pattern != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: fill of %llu bytes at %llu: both must be multiples of 4",
                  stream->dev->vendor->name, stream->dev->index, (unsigned long long)bytes,
                  (unsigned long long)dst_offset);
  s = gpu_stream_enter(stream, &scope, err);
  if (s != HEDDLE_OK) return s;
  const int code = bytes == 0 ? 0
                              : stream->dev->driver->fill32(dst->address + dst_offset, pattern,
                                                            (size_t)(bytes / sizeof pattern), stream->handle);
  return gpu_stream_done(stream, &scope, code, "fill", err);
}

/* ---------------------------------------------------------------- between devices */

static heddle_status can_peer(heddle_pinstance *self, uint32_t dst_index, uint32_t src_index, heddle_error *err) {
  if (dst_index >= self->n_devices || src_index >= self->n_devices)
    return p_fail(err, HEDDLE_ENODEV, 0, "%s: there are %u devices", self->vendor->name, self->n_devices);
  if (self->peer) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s: the setting peer is 0", self->vendor->name);
}

static heddle_status copy_peer(heddle_pstream *stream, heddle_pdevice *dst_dev, heddle_pbuffer *dst,
                               uint64_t dst_offset, heddle_pdevice *src_dev, heddle_pbuffer *src, uint64_t src_offset,
                               uint64_t bytes, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  gpu_scope scope;
  heddle_status s = can_peer(dev->self, dst_dev->index, src_dev->index, err);
  if (s == HEDDLE_OK) s = object(dst_dev, dst, dst_offset, bytes, "copy between devices", err);
  if (s == HEDDLE_OK) s = object(src_dev, src, src_offset, bytes, "copy between devices", err);
  if (s == HEDDLE_OK) s = gpu_stream_enter(stream, &scope, err);
  if (s != HEDDLE_OK) return s;
  int code = 0;
  if (bytes == 0) {
  } else if (same_device(dst_dev, src_dev)) {
    code = dev->driver->copy_d2d(dst->address + dst_offset, src->address + src_offset, (size_t)bytes, stream->handle);
  } else {
    code = dev->vendor->peer_copy(dst_dev, dst->address + dst_offset, src_dev, src->address + src_offset, (size_t)bytes,
                                  stream->handle);
  }
  return gpu_stream_done_with(stream, &scope, dst_dev != dev ? dst_dev : src_dev, code, "copy between devices", err);
}

const heddle_copy_table gpu_copy_table = {
    .struct_size = sizeof gpu_copy_table,
    .h2d = copy_h2d,
    .d2h = copy_d2h,
    .write = copy_write,
    .read = copy_read,
    .d2d = copy_d2d,
    .fill = copy_fill,
    .can_peer = can_peer,
    .peer = copy_peer,
};
