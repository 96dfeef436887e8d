/* Copies. Both sides of one are ranges of VkBuffers, memory of the host's too. Plain pointers go through the buffer's own
 * mapping where it has one, after what is in the stream, else through two halves of staging memory that the stream
 * keeps. */
#include "stream.h"

static heddle_status operand(heddle_pstream *stream, const heddle_pbuffer *b, uint64_t offset, uint64_t bytes,
                             const char *what, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  heddle_status s = vlk_range(dev, b, offset, bytes, what, err);
  if (s != HEDDLE_OK || bytes == 0 || b->dev == dev) return s;
  return p_fail(err, HEDDLE_EINVAL, 0, "vulkan:%u: %s: the buffer belongs to vulkan:%u", dev->index, what,
                b->dev->index);
}

static heddle_status host_side(heddle_pstream *stream, const heddle_pbuffer *b, uint64_t offset, uint64_t bytes,
                               const char *what, heddle_error *err) {
  heddle_status s = operand(stream, b, offset, bytes, what, err);
  if (s != HEDDLE_OK || bytes == 0 || b->kind != HEDDLE_MEMORY_DEVICE) return s;
  return p_fail(err, HEDDLE_EINVAL, 0, "vulkan:%u: %s: the host side is memory of kind device", stream->dev->index,
                what);
}

static heddle_status record(heddle_pstream *stream, const heddle_pbuffer *dst, uint64_t dst_offset,
                            const heddle_pbuffer *src, uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  const VkBufferCopy range = {.srcOffset = src->base + src_offset, .dstOffset = dst->base + dst_offset, .size = bytes};
  VkCommandBuffer commands = VK_NULL_HANDLE;
  heddle_status s = vlk_stream_work(stream, &commands, err);
  if (s != HEDDLE_OK) return s;
  stream->dev->vk.CmdCopyBuffer(commands, src->buffer, dst->buffer, 1, &range);
  vlk_stream_worked(stream);
  return HEDDLE_OK;
}

static heddle_status copy_h2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *host,
                              uint64_t host_offset, uint64_t bytes, heddle_error *err) {
  heddle_status s = vlk_health(stream->dev, err);
  if (s == HEDDLE_OK) s = operand(stream, dst, dst_offset, bytes, "copy to the device", err);
  if (s == HEDDLE_OK) s = host_side(stream, host, host_offset, bytes, "copy to the device", err);
  return s != HEDDLE_OK || bytes == 0 ? s : record(stream, dst, dst_offset, host, host_offset, bytes, err);
}

static heddle_status copy_d2h(heddle_pstream *stream, heddle_pbuffer *host, uint64_t host_offset, heddle_pbuffer *src,
                              uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  heddle_status s = vlk_health(stream->dev, err);
  if (s == HEDDLE_OK) s = operand(stream, src, src_offset, bytes, "copy to the host", err);
  if (s == HEDDLE_OK) s = host_side(stream, host, host_offset, bytes, "copy to the host", err);
  return s != HEDDLE_OK || bytes == 0 ? s : record(stream, host, host_offset, src, src_offset, bytes, err);
}

static heddle_status copy_d2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *src,
                              uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  heddle_status s = vlk_health(stream->dev, err);
  if (s == HEDDLE_OK) s = operand(stream, dst, dst_offset, bytes, "copy", err);
  if (s == HEDDLE_OK) s = operand(stream, src, src_offset, bytes, "copy", err);
  return s != HEDDLE_OK || bytes == 0 ? s : record(stream, dst, dst_offset, src, src_offset, bytes, err);
}

static heddle_status copy_fill(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, uint64_t bytes,
                               uint32_t pattern, heddle_error *err) {
  VkCommandBuffer commands = VK_NULL_HANDLE;
  heddle_status s = vlk_health(stream->dev, err);
  if (s == HEDDLE_OK) s = operand(stream, dst, dst_offset, bytes, "fill", err);
  if (s == HEDDLE_OK && (dst_offset % 4 != 0 || bytes % 4 != 0))
    s = p_fail(err, HEDDLE_EINVAL, 0, "vulkan:%u: fill of %llu bytes at %llu: both must be multiples of 4",
               stream->dev->index, (unsigned long long)bytes, (unsigned long long)dst_offset);
  if (s == HEDDLE_OK && bytes > 0) s = vlk_stream_work(stream, &commands, err);
  if (s != HEDDLE_OK || bytes == 0) return s;
  stream->dev->vk.CmdFillBuffer(commands, dst->buffer, dst->base + dst_offset, bytes, pattern);
  vlk_stream_worked(stream);
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- plain pointers */

static heddle_status finish(heddle_pstream *stream, heddle_error *err) {
  heddle_status s = vlk_submit(stream, 0, 0, err);
  return s == HEDDLE_OK ? vlk_wait(stream, atomic_load(&stream->submitted), UINT64_MAX, err) : s;
}

/* Whether the bytes can be had at buffer->host; what is not coherent is flushed and invalidated here. */
static bool at_hand(const heddle_pbuffer *b) {
  return b->host != NULL;
}

static heddle_status visible(const heddle_pbuffer *b, uint64_t offset, uint64_t bytes, bool to_device,
                             heddle_error *err) {
  if (b->kind != HEDDLE_MEMORY_PINNED || !b->dev->info->noncoherent) return HEDDLE_OK;
  return vlk_check(b->dev, vlk_block_sync(b, offset, bytes, to_device), "make bytes visible", err);
}

/* The half of the staging memory for the next piece, free of what was staged in it before. */
static heddle_status stage(heddle_pstream *stream, uint64_t piece, uint64_t *offset, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  if (stream->stage == NULL)
    s = vlk_buffer_make(stream->dev, HEDDLE_MEMORY_PINNED, VLK_STAGES * VLK_STAGE_BYTES, &stream->stage, err);
  *offset = piece % VLK_STAGES * VLK_STAGE_BYTES;
  return s == HEDDLE_OK ? vlk_wait(stream, stream->staged[piece % VLK_STAGES], UINT64_MAX, err) : s;
}

static heddle_status copy_write(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, const void *src,
                                uint64_t bytes, heddle_error *err) {
  const char *from = src;
  heddle_status s = vlk_stream_enter(stream, "write", err);
  if (s == HEDDLE_OK) s = operand(stream, dst, dst_offset, bytes, "write", err);
  if (s != HEDDLE_OK || bytes == 0) return s;
  if (at_hand(dst)) {
    s = finish(stream, err);
    if (s != HEDDLE_OK) return s;
    memcpy(dst->host + dst_offset, from, (size_t)bytes);
    return visible(dst, dst_offset, bytes, true, err);
  }
  for (uint64_t at = 0, piece = 0; at < bytes && s == HEDDLE_OK; at += VLK_STAGE_BYTES, piece++) {
    const uint64_t n = bytes - at < VLK_STAGE_BYTES ? bytes - at : VLK_STAGE_BYTES;
    uint64_t offset = 0;
    s = stage(stream, piece, &offset, err);
    if (s != HEDDLE_OK) break;
    memcpy(stream->stage->host + offset, from + at, (size_t)n);
    s = visible(stream->stage, offset, n, true, err);
    if (s == HEDDLE_OK) s = record(stream, dst, dst_offset + at, stream->stage, offset, n, err);
    if (s == HEDDLE_OK) s = vlk_submit(stream, 0, 0, err);
    stream->staged[piece % VLK_STAGES] = atomic_load(&stream->submitted);
  }
  return s;
}

static heddle_status copy_read(heddle_pstream *stream, void *dst, heddle_pbuffer *src, uint64_t src_offset,
                               uint64_t bytes, heddle_error *err) {
  char *to = dst;
  heddle_status s = vlk_stream_enter(stream, "read", err);
  if (s == HEDDLE_OK) s = operand(stream, src, src_offset, bytes, "read", err);
  if (s != HEDDLE_OK || bytes == 0) return s;
  if (at_hand(src)) {
    s = finish(stream, err);
    if (s == HEDDLE_OK) s = visible(src, src_offset, bytes, false, err);
    if (s == HEDDLE_OK) memcpy(to, src->host + src_offset, (size_t)bytes);
    return s;
  }
  for (uint64_t at = 0; at < bytes && s == HEDDLE_OK; at += VLK_STAGE_BYTES) {
    const uint64_t n = bytes - at < VLK_STAGE_BYTES ? bytes - at : VLK_STAGE_BYTES;
    uint64_t offset = 0;
    s = stage(stream, 0, &offset, err);
    if (s == HEDDLE_OK) s = record(stream, stream->stage, offset, src, src_offset + at, n, err);
    if (s == HEDDLE_OK) s = finish(stream, err);
    if (s == HEDDLE_OK) s = visible(stream->stage, offset, n, false, err);
    if (s == HEDDLE_OK) memcpy(to + at, stream->stage->host + offset, (size_t)n);
  }
  return s;
}

heddle_status vlk_upload(heddle_pdevice *dev, heddle_pbuffer *buffer, const void *data, uint64_t bytes,
                         heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  pthread_mutex_lock(&dev->service_lock);
  if (dev->service == NULL) s = vlk_stream_make(dev, HEDDLE_STREAM_COMPUTE, &dev->service, err);
  if (s == HEDDLE_OK) s = copy_write(dev->service, buffer, 0, data, bytes, err);
  if (s == HEDDLE_OK) s = finish(dev->service, err);
  if (s != HEDDLE_OK && dev->service != NULL) vlk_stream_drop_work(dev->service); /* the buffer may go now */
  pthread_mutex_unlock(&dev->service_lock);
  return s;
}

const heddle_copy_table vlk_copy_table = {
    .struct_size = sizeof vlk_copy_table,
    .h2d = copy_h2d,
    .d2h = copy_d2h,
    .write = copy_write,
    .read = copy_read,
    .d2d = copy_d2d,
    .fill = copy_fill,
};
