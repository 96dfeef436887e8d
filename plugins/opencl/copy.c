/* Copies: reads and writes of buffer objects to and from addresses, and copies between objects. Ranges are given to the
 * object that was allocated, never to a view's own, so that two of one allocation are seen to be apart. */
#include "opencl.h"

/* A range of an object: what is read and written must be one. */
static heddle_status object(heddle_pstream *stream, const heddle_pbuffer *b, uint64_t offset, uint64_t bytes,
                            const char *what, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  heddle_status s = ocl_range(dev, b, offset, bytes, what, err);
  if (s == HEDDLE_OK && bytes > 0) s = ocl_image_whole(dev, b, offset, bytes, what, err);
  if (s == HEDDLE_OK && bytes > 0 && b->mem == NULL)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: %s: imported memory is only the host side of copies", dev->index,
                  what);
  if (s == HEDDLE_OK && bytes > 0 && b->dev->context != dev->context)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: %s: the buffer belongs to opencl:%u, on another platform",
                  dev->index, what, b->dev->index);
  return s;
}

static heddle_status host_side(heddle_pstream *stream, const heddle_pbuffer *b, uint64_t offset, uint64_t bytes,
                               const char *what, heddle_error *err) {
  heddle_status s = ocl_range(stream->dev, b, offset, bytes, what, err);
  if (s != HEDDLE_OK || bytes == 0 || b->host != NULL) return s;
  return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: %s: the host side is memory of kind device", stream->dev->index,
                what);
}

static heddle_status copy_h2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *host,
                              uint64_t host_offset, uint64_t bytes, heddle_error *err) {
  heddle_status s = ocl_stream_enter(stream, err);
  if (s == HEDDLE_OK) s = object(stream, dst, dst_offset, bytes, "copy to the device", err);
  if (s == HEDDLE_OK) s = host_side(stream, host, host_offset, bytes, "copy to the device", err);
  if (s != HEDDLE_OK || bytes == 0) return s;
  if (dst->image[0] != 0)
    return ocl_stream_done(stream, ocl_image_put(stream, dst, NULL, host->host + host_offset, 0), "copy to the device",
                           err);
  const cl_int code = ocl_put(stream, &(ocl_command){.kind = OCL_WRITE,
                                                     .dst = dst->mem,
                                                     .dst_at = (size_t)(dst->base + dst_offset),
                                                     .bytes = (size_t)bytes,
                                                     .host = host->host + host_offset});
  return ocl_stream_done(stream, code, "copy to the device", err);
}

static heddle_status copy_d2h(heddle_pstream *stream, heddle_pbuffer *host, uint64_t host_offset, heddle_pbuffer *src,
                              uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  heddle_status s = ocl_stream_enter(stream, err);
  if (s == HEDDLE_OK) s = object(stream, src, src_offset, bytes, "copy to the host", err);
  if (s == HEDDLE_OK) s = host_side(stream, host, host_offset, bytes, "copy to the host", err);
  if (s != HEDDLE_OK || bytes == 0) return s;
  if (src->image[0] != 0)
    return ocl_stream_done(stream, ocl_image_put(stream, NULL, src, host->host + host_offset, 0), "copy to the host",
                           err);
  const cl_int code = ocl_put(stream, &(ocl_command){.kind = OCL_READ,
                                                     .src = src->mem,
                                                     .src_at = (size_t)(src->base + src_offset),
                                                     .bytes = (size_t)bytes,
                                                     .host = host->host + host_offset});
  return ocl_stream_done(stream, code, "copy to the host", err);
}

static heddle_status copy_write(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, const void *src,
                                uint64_t bytes, heddle_error *err) {
  heddle_status s = ocl_stream_enter_plain(stream, "write", err);
  if (s == HEDDLE_OK) s = object(stream, dst, dst_offset, bytes, "write", err);
  if (s != HEDDLE_OK || bytes == 0) return s;
  const cl_int code = dst->image[0] != 0
                          ? ocl_image_enqueue(stream->queue,
                                              &(ocl_command){.number = OCL_IMAGE_WRITE,
                                                             .global = {dst->image[0], dst->image[1], 1},
                                                             .dst = dst->mem,
                                                             .host = (void *)(uintptr_t)src},
                                              true, NULL)
                          : clEnqueueWriteBuffer(stream->queue, dst->mem, CL_TRUE, (size_t)(dst->base + dst_offset),
                                                 (size_t)bytes, src, 0, NULL, NULL);
  return ocl_stream_done(stream, code, "write", err);
}

static heddle_status copy_read(heddle_pstream *stream, void *dst, heddle_pbuffer *src, uint64_t src_offset,
                               uint64_t bytes, heddle_error *err) {
  heddle_status s = ocl_stream_enter_plain(stream, "read", err);
  if (s == HEDDLE_OK) s = object(stream, src, src_offset, bytes, "read", err);
  if (s != HEDDLE_OK || bytes == 0) return s;
  const cl_int code = src->image[0] != 0
                          ? ocl_image_enqueue(stream->queue,
                                              &(ocl_command){.number = OCL_IMAGE_READ,
                                                             .global = {src->image[0], src->image[1], 1},
                                                             .src = src->mem,
                                                             .host = dst},
                                              true, NULL)
                          : clEnqueueReadBuffer(stream->queue, src->mem, CL_TRUE, (size_t)(src->base + src_offset),
                                                (size_t)bytes, dst, 0, NULL, NULL);
  return ocl_stream_done(stream, code, "read", err);
}

static heddle_status copy_d2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *src,
                              uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  heddle_status s = ocl_stream_enter(stream, err);
  if (s == HEDDLE_OK) s = object(stream, dst, dst_offset, bytes, "copy", err);
  if (s == HEDDLE_OK) s = object(stream, src, src_offset, bytes, "copy", err);
  if (s != HEDDLE_OK || bytes == 0) return s;
  const bool images = dst->image[0] != 0 && src->image[0] != 0;
  if (images && (dst->image[0] != src->image[0] || dst->image[1] != src->image[1]))
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: copy of an image of %zu x %zu pixels into one of %zu x %zu",
                  stream->dev->index, src->image[0], src->image[1], dst->image[0], dst->image[1]);
  if (images || dst->image[0] != 0 || src->image[0] != 0)
    return ocl_stream_done(stream, ocl_image_put(stream, dst, src, NULL, dst->image[0] != 0 ? src_offset : dst_offset),
                           "copy", err);
  const cl_int code = ocl_put_copy(stream, src->mem, dst->mem, (size_t)(src->base + src_offset),
                                   (size_t)(dst->base + dst_offset), (size_t)bytes);
  return ocl_stream_done(stream, code, "copy", err);
}

static heddle_status copy_fill(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, uint64_t bytes,
                               uint32_t pattern, heddle_error *err) {
  heddle_status s = ocl_stream_enter(stream, err);
  if (s == HEDDLE_OK) s = object(stream, dst, dst_offset, bytes, "fill", err);
  if (s != HEDDLE_OK) return s;
  if (dst_offset % sizeof pattern != 0 || bytes % sizeof pattern != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: fill of %llu bytes at %llu: both must be multiples of 4",
                  stream->dev->index, (unsigned long long)bytes, (unsigned long long)dst_offset);
  if (bytes == 0) return HEDDLE_OK;
  if (dst->image[0] != 0) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "opencl:%u: fill of an image", stream->dev->index);
  const cl_int code = ocl_put(stream, &(ocl_command){.kind = OCL_FILL,
                                                     .number = pattern,
                                                     .dst = dst->mem,
                                                     .dst_at = (size_t)(dst->base + dst_offset),
                                                     .bytes = (size_t)bytes});
  return ocl_stream_done(stream, code, "fill", err);
}

/* ---------------------------------------------------------------- between devices */

static heddle_status can_peer(heddle_pinstance *self, uint32_t dst_index, uint32_t src_index, heddle_error *err) {
  if (dst_index >= self->n_devices || src_index >= self->n_devices)
    return p_fail(err, HEDDLE_ENODEV, 0, "opencl: there are %u devices", self->n_devices);
  if (!self->peer) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "opencl: the setting peer is 0");
  if (self->devices[dst_index].platform == self->devices[src_index].platform) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "opencl:%u and opencl:%u are of different platforms", dst_index,
                src_index);
}

static heddle_status copy_peer(heddle_pstream *stream, heddle_pdevice *dst_dev, heddle_pbuffer *dst,
                               uint64_t dst_offset, heddle_pdevice *src_dev, heddle_pbuffer *src, uint64_t src_offset,
                               uint64_t bytes, heddle_error *err) {
  (void)dst_dev, (void)src_dev; /* buffers know their device, and one context serves both */
  return copy_d2d(stream, dst, dst_offset, src, src_offset, bytes, err);
}

const heddle_copy_table ocl_copy_table = {
    .struct_size = sizeof ocl_copy_table,
    .h2d = copy_h2d,
    .d2h = copy_d2h,
    .write = copy_write,
    .read = copy_read,
    .d2d = copy_d2d,
    .fill = copy_fill,
    .can_peer = can_peer,
    .peer = copy_peer,
};
