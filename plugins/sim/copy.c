/* Copies: each becomes a command that the stream's thread executes, so that a host buffer that is used again too early
 * shows as wrong data. Ranges and kinds are checked when the call is made. */
#include "stream.h"

/* One copy whose ends are resolved. */
static heddle_status put(heddle_pstream *stream, sim_cmd *cmd, uint8_t *dst, uint8_t *src, uint64_t bytes,
                         heddle_error *err) {
  cmd->kind = SIM_CMD_COPY;
  cmd->u.copy.dst = dst;
  cmd->u.copy.src = src;
  cmd->u.copy.bytes = bytes;
  return sim_push(stream, cmd, err);
}

static heddle_status copy_h2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *host,
                              uint64_t host_offset, uint64_t bytes, heddle_error *err) {
  sim_cmd cmd = {0};
  uint8_t *to, *from;
  heddle_status status = sim_stream_enter(stream, SIM_CALL_H2D, &cmd, err);
  if (status != HEDDLE_OK) return status;
  status = sim_bytes(stream->dev, dst, dst_offset, bytes, SIM_OPERAND, "destination of h2d", &to, err);
  if (status != HEDDLE_OK) return status;
  status = sim_bytes(stream->dev, host, host_offset, bytes, SIM_HOST_SIDE, "host side of h2d", &from, err);
  return status != HEDDLE_OK ? status : put(stream, &cmd, to, from, bytes, err);
}

static heddle_status copy_d2h(heddle_pstream *stream, heddle_pbuffer *host, uint64_t host_offset, heddle_pbuffer *src,
                              uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  sim_cmd cmd = {0};
  uint8_t *to, *from;
  heddle_status status = sim_stream_enter(stream, SIM_CALL_D2H, &cmd, err);
  if (status != HEDDLE_OK) return status;
  status = sim_bytes(stream->dev, host, host_offset, bytes, SIM_HOST_SIDE, "host side of d2h", &to, err);
  if (status != HEDDLE_OK) return status;
  status = sim_bytes(stream->dev, src, src_offset, bytes, SIM_OPERAND, "source of d2h", &from, err);
  if (stream->dev->settings.copy == SIM_LIE) cmd.flags |= SIM_FLAG_LIE;
  return status != HEDDLE_OK ? status : put(stream, &cmd, to, from, bytes, err);
}

/* The bytes are taken over, so that the call need not wait for the stream. */
static heddle_status copy_write(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, const void *src,
                                uint64_t bytes, heddle_error *err) {
  sim_cmd cmd = {0};
  uint8_t *to;
  heddle_status status = sim_stream_enter(stream, SIM_CALL_H2D, &cmd, err);
  if (status == HEDDLE_OK) status = sim_stream_no_capture(stream, "write", err);
  if (status != HEDDLE_OK) return status;
  status = sim_bytes(stream->dev, dst, dst_offset, bytes, SIM_OPERAND, "destination of write", &to, err);
  if (status != HEDDLE_OK || bytes == 0) return status;

  const heddle_host *host = stream->dev->host;
  uint8_t *kept = host->alloc(host->ctx, bytes, 64);
  if (kept == NULL)
    return p_fail(err, HEDDLE_ENOMEM, 0, "sim:%u: no memory to stage a write of %llu bytes", stream->dev->index,
                  (unsigned long long)bytes);
  memcpy(kept, src, bytes);
  cmd.flags |= SIM_FLAG_FREE;
  status = put(stream, &cmd, to, kept, bytes, err);
  if (status != HEDDLE_OK) host->free(host->ctx, kept);
  else sim_submit(stream);
  return status;
}

static heddle_status copy_read(heddle_pstream *stream, void *dst, heddle_pbuffer *src, uint64_t src_offset,
                               uint64_t bytes, heddle_error *err) {
  sim_cmd cmd = {0};
  sim_failure failure;
  uint8_t *from;
  heddle_status status = sim_stream_enter(stream, SIM_CALL_D2H, &cmd, err);
  if (status == HEDDLE_OK) status = sim_stream_no_capture(stream, "read", err);
  if (status != HEDDLE_OK) return status;
  status = sim_bytes(stream->dev, src, src_offset, bytes, SIM_OPERAND, "source of read", &from, err);
  if (status != HEDDLE_OK || bytes == 0) return status;
  status = put(stream, &cmd, dst, from, bytes, err);
  if (status != HEDDLE_OK) return status;
  sim_submit(stream);
  /* What hangs ends only as a failure, after which the copy is passed over: dst is not touched any more. */
  if (sim_stream_wait(stream, stream->head, UINT64_MAX, true) != HEDDLE_OK) {
    atomic_store(&stream->dev->detached, true);
    return p_fail(err, HEDDLE_ETIMEOUT, 0, "sim:%u: read behind a command that never completes", stream->dev->index);
  }
  if (sim_stream_failure_at(stream, stream->head - 1, &failure) == HEDDLE_OK) return HEDDLE_OK;
  return p_fail(err, failure.status, failure.api_code, "%s", failure.text);
}

static heddle_status copy_d2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *src,
                              uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  sim_cmd cmd = {0};
  uint8_t *to, *from;
  heddle_status status = sim_stream_enter(stream, SIM_CALL_D2D, &cmd, err);
  if (status != HEDDLE_OK) return status;
  status = sim_bytes(stream->dev, dst, dst_offset, bytes, SIM_OPERAND, "destination of d2d", &to, err);
  if (status != HEDDLE_OK) return status;
  status = sim_bytes(stream->dev, src, src_offset, bytes, SIM_OPERAND, "source of d2d", &from, err);
  if (status != HEDDLE_OK) return status;
  uintptr_t a = (uintptr_t)to, b = (uintptr_t)from;
  if (bytes != 0 && a < b + bytes && b < a + bytes)
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: d2d: source and destination of %llu bytes overlap",
                  stream->dev->index, (unsigned long long)bytes);
  return put(stream, &cmd, to, from, bytes, err);
}

static heddle_status copy_fill(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, uint64_t bytes,
                               uint32_t pattern, heddle_error *err) {
  sim_cmd cmd = {0};
  uint8_t *to;
  heddle_status status = sim_stream_enter(stream, SIM_CALL_FILL, &cmd, err);
  if (status != HEDDLE_OK) return status;
  if (dst_offset % 4 != 0 || bytes % 4 != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: fill of %llu bytes at %llu: both must be multiples of 4",
                  stream->dev->index, (unsigned long long)bytes, (unsigned long long)dst_offset);
  status = sim_bytes(stream->dev, dst, dst_offset, bytes, SIM_OPERAND, "destination of fill", &to, err);
  if (status != HEDDLE_OK) return status;
  cmd.kind = SIM_CMD_FILL;
  cmd.u.fill.dst = to;
  cmd.u.fill.bytes = bytes;
  cmd.u.fill.pattern = pattern;
  return sim_push(stream, &cmd, err);
}

/* ---- between devices ---- */

static heddle_status copy_can_peer(heddle_pinstance *self, uint32_t dst_index, uint32_t src_index, heddle_error *err) {
  heddle_status status = sim_index_check(self, dst_index, err);
  if (status == HEDDLE_OK) status = sim_index_check(self, src_index, err);
  if (status != HEDDLE_OK) return status;
  if (self->settings.peer == SIM_OFF) return sim_switched_off("a direct path between devices", "peer", err);
  return HEDDLE_OK;
}

static heddle_status copy_peer(heddle_pstream *stream, heddle_pdevice *dst_dev, heddle_pbuffer *dst,
                               uint64_t dst_offset, heddle_pdevice *src_dev, heddle_pbuffer *src, uint64_t src_offset,
                               uint64_t bytes, heddle_error *err) {
  sim_cmd cmd = {0};
  uint8_t *to, *from;
  heddle_status status = sim_stream_enter(stream, SIM_CALL_PEER, &cmd, err);
  if (status == HEDDLE_OK) status = sim_device_check(dst_dev, err);
  if (status == HEDDLE_OK) status = sim_device_check(src_dev, err);
  if (status != HEDDLE_OK) return status;
  heddle_pinstance *self = stream->self;
  if (dst_dev->self != self || src_dev->self != self || (stream->dev != dst_dev && stream->dev != src_dev))
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: peer copy on a stream that belongs to neither of the two devices",
                  stream->dev->index);
  if (self->settings.peer == SIM_OFF) return sim_switched_off("a direct path between devices", "peer", err);
  status = sim_bytes(dst_dev, dst, dst_offset, bytes, SIM_OPERAND, "destination of peer copy", &to, err);
  if (status != HEDDLE_OK) return status;
  status = sim_bytes(src_dev, src, src_offset, bytes, SIM_OPERAND, "source of peer copy", &from, err);
  if (status != HEDDLE_OK) return status;
  if (self->settings.peer == SIM_LIE) cmd.flags |= SIM_FLAG_LIE;
  return put(stream, &cmd, to, from, bytes, err);
}

#define TABLE(can_peer_fn, peer_fn) \
  { \
    .struct_size = sizeof(heddle_copy_table), .h2d = copy_h2d, .d2h = copy_d2h, .write = copy_write, \
    .read = copy_read, .d2d = copy_d2d, .fill = copy_fill, .can_peer = can_peer_fn, .peer = peer_fn \
  }
const heddle_copy_table sim_copy_tables[2] = {TABLE(NULL, NULL), TABLE(copy_can_peer, copy_peer)};
