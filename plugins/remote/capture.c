/* Captures: the commands go to the server once, when the capture ends. A replay is one message: the capture's number and the
 * bytes of all copies to the device; its report has the bytes of all copies to the host. */
#include "plugins/remote/remote.h"

static void destroy(heddle_pdevice *dev, remote_kept *kept) {
  heddle_pgraph *graph = (heddle_pgraph *)(void *)kept;
  remote_forget(dev->link, graph->handle);
  dev->host->free(dev->host->ctx, graph->row);
  dev->host->free(dev->host->ctx, graph);
}

static void capture_free(heddle_pgraph *graph) {
  if (graph == NULL) return;
  remote_count(graph->dev, HEDDLE_QUERY_LIVE_OBJECTS, -1);
  remote_give(graph->dev, &graph->kept);
}

static heddle_status capture_begin(heddle_pstream *stream, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  heddle_status s = remote_check(dev, err);
  if (s != HEDDLE_OK) return s;
  if (stream->capture != NULL)
    return p_fail(err, HEDDLE_EINVAL, 0, "remote:%u: a capture is open on the stream", dev->index);
  heddle_pgraph *graph = remote_new(dev->host, sizeof *graph);
  if (graph != NULL) {
    pthread_mutex_lock(&dev->link->lock);
    graph->places = stream->places;
    pthread_mutex_unlock(&dev->link->lock);
    graph->room = 64 + 2 * graph->places;
    graph->row = remote_new(dev->host, graph->room * sizeof *graph->row);
  }
  if (graph == NULL || graph->row == NULL) {
    dev->host->free(dev->host->ctx, graph);
    return p_fail(err, HEDDLE_ENOMEM, 0, "remote:%u: no memory for a capture", dev->index);
  }
  graph->kept.destroy = destroy;
  graph->dev = dev;
  remote_count(dev, HEDDLE_QUERY_LIVE_OBJECTS, 1);
  stream->capture = graph;
  return HEDDLE_OK;
}

bool remote_overlaps(const remote_cmd *read, const remote_cmd *write) {
  const uintptr_t a = (uintptr_t)read->host, b = (uintptr_t)write->host;
  return read->kind == CMD_READ && write->kind == CMD_WRITE && a < b + write->bytes && b < a + read->bytes;
}

/* The bytes of all writes are sent before those of the first read come. */
static bool reads_before_writes(const heddle_pgraph *graph) {
  for (uint64_t i = 0; i < graph->count; i++)
    for (uint64_t k = 0; k < i; k++)
      if (remote_overlaps(&graph->row[k], &graph->row[i])) return true;
  return false;
}

/* kind of the work's message, then to, to_offset, from, from_offset, bytes, and a fill's word. */
static heddle_status send_row(heddle_pgraph *graph, heddle_error *err) {
  static const uint32_t kinds[] = {[CMD_WRITE] = WIRE_WRITE,
                                   [CMD_READ] = WIRE_READ,
                                   [CMD_COPY] = WIRE_COPY,
                                   [CMD_FILL] = WIRE_FILL,
                                   [CMD_RUN] = WIRE_RUN};
  heddle_pdevice *dev = graph->dev;
  byte_buffer b = {0};
  if (graph->count > WIRE_MOST_STEPS)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "remote:%u: a capture of %llu commands is too long", dev->index,
                  (unsigned long long)graph->count);
  if (reads_before_writes(graph))
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "remote:%u: the capture copies to the host and back from there",
                  dev->index);
  wire_begin(&b);
  byte_put_u32(&b, dev->remote);
  byte_put_u32(&b, (uint32_t)graph->count);
  for (uint64_t i = 0; i < graph->count; i++) {
    const remote_cmd *cmd = &graph->row[i];
    byte_put_u32(&b, kinds[cmd->kind]);
    byte_put_u32(&b, cmd->pattern);
    byte_put_u64(&b, cmd->to);
    byte_put_u64(&b, cmd->to_offset);
    byte_put_u64(&b, cmd->from);
    byte_put_u64(&b, cmd->from_offset);
    byte_put_u64(&b, cmd->bytes);
  }
  return remote_ask_number(dev->link, WIRE_GRAPH, &b, &graph->handle, err);
}

static heddle_status capture_end(heddle_pstream *stream, heddle_pgraph **out, heddle_error *err) {
  heddle_pgraph *graph = stream->capture;
  heddle_status s = remote_check(stream->dev, err);
  stream->capture = NULL; /* whatever comes */
  if (s == HEDDLE_OK && graph == NULL)
    return p_fail(err, HEDDLE_EINVAL, 0, "remote:%u: no capture was begun on the stream", stream->dev->index);
  if (s == HEDDLE_OK) s = send_row(graph, err);
  if (s == HEDDLE_OK) *out = graph;
  else capture_free(graph);
  return s;
}

static heddle_status capture_replay(heddle_pgraph *graph, heddle_pstream *stream, heddle_error *err) {
  const remote_cmd cmd = {.kind = CMD_REPLAY, .graph = graph};
  if (graph == NULL || graph->dev != stream->dev)
    return p_fail(err, HEDDLE_EINVAL, 0, "remote:%u: the capture is not of this device", stream->dev->index);
  return remote_push(stream, &cmd, err);
}

const heddle_capture_table remote_capture_table = {
    .struct_size = sizeof remote_capture_table,
    .free = capture_free,
    .begin = capture_begin,
    .end = capture_end,
    .replay = capture_replay,
};
