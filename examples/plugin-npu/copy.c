/* Copies: work of a stream between DRAM and pinned memory, within DRAM, and with a plain pointer of the host's. */
#include "npu.h"

static heddle_status copy(heddle_pstream *stream, heddle_pbuffer *dst, uint32_t dst_kind, uint64_t dst_offset,
                          heddle_pbuffer *src, uint32_t src_kind, uint64_t src_offset, uint64_t bytes, const char *what,
                          heddle_error *err) {
  npu_cmd cmd = {.kind = NPU_CMD_COPY, .bytes = bytes};
  uint8_t *from = NULL;
  heddle_status s = npu_bytes(stream->dev, dst, dst_kind, dst_offset, bytes, what, &cmd.dst, err);
  if (s == HEDDLE_OK) s = npu_bytes(stream->dev, src, src_kind, src_offset, bytes, what, &from, err);
  if (s != HEDDLE_OK) return s;
  cmd.src = from;
  return npu_push(stream, &cmd, err);
}

static heddle_status copy_h2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *host,
                              uint64_t host_offset, uint64_t bytes, heddle_error *err) {
  return copy(stream, dst, HEDDLE_MEMORY_DEVICE, dst_offset, host, HEDDLE_MEMORY_PINNED, host_offset, bytes, "h2d",
              err);
}

static heddle_status copy_d2h(heddle_pstream *stream, heddle_pbuffer *host, uint64_t host_offset, heddle_pbuffer *src,
                              uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  return copy(stream, host, HEDDLE_MEMORY_PINNED, host_offset, src, HEDDLE_MEMORY_DEVICE, src_offset, bytes, "d2h",
              err);
}

static heddle_status copy_d2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *src,
                              uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  return copy(stream, dst, HEDDLE_MEMORY_DEVICE, dst_offset, src, HEDDLE_MEMORY_DEVICE, src_offset, bytes, "d2d", err);
}

/* The command reads the caller's memory, so the call waits for it. */
static heddle_status copy_write(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, const void *src,
                                uint64_t bytes, heddle_error *err) {
  npu_cmd cmd = {.kind = NPU_CMD_COPY, .bytes = bytes, .src = src};
  heddle_status s = npu_bytes(stream->dev, dst, HEDDLE_MEMORY_DEVICE, dst_offset, bytes, "write", &cmd.dst, err);
  if (s == HEDDLE_OK) s = npu_push(stream, &cmd, err);
  return s == HEDDLE_OK ? npu_finish(stream, UINT64_MAX, err) : s;
}

static heddle_status copy_read(heddle_pstream *stream, void *dst, heddle_pbuffer *src, uint64_t src_offset,
                               uint64_t bytes, heddle_error *err) {
  npu_cmd cmd = {.kind = NPU_CMD_COPY, .bytes = bytes, .dst = dst};
  uint8_t *from = NULL;
  heddle_status s = npu_bytes(stream->dev, src, HEDDLE_MEMORY_DEVICE, src_offset, bytes, "read", &from, err);
  cmd.src = from;
  if (s == HEDDLE_OK) s = npu_push(stream, &cmd, err);
  return s == HEDDLE_OK ? npu_finish(stream, UINT64_MAX, err) : s;
}

static heddle_status copy_fill(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, uint64_t bytes,
                               uint32_t pattern, heddle_error *err) {
  npu_cmd cmd = {.kind = NPU_CMD_FILL, .bytes = bytes, .value = pattern};
  if (dst_offset % 4 != 0 || bytes % 4 != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "npu:0: fill of %llu bytes at %llu: both must be multiples of 4",
                  (unsigned long long)bytes, (unsigned long long)dst_offset);
  heddle_status s = npu_bytes(stream->dev, dst, HEDDLE_MEMORY_DEVICE, dst_offset, bytes, "fill", &cmd.dst, err);
  return s == HEDDLE_OK ? npu_push(stream, &cmd, err) : s;
}

const heddle_copy_table npu_copy_table = {
    .struct_size = sizeof npu_copy_table,
    .h2d = copy_h2d,
    .d2h = copy_d2h,
    .write = copy_write,
    .read = copy_read,
    .d2d = copy_d2d,
    .fill = copy_fill,
};
