/* Prepared operators, their launches, and captures of them. */
#include "plugins/common/queue/inside.h"

static void destroy_op(heddle_pdevice *dev, queue_kept *kept) {
  heddle_pop *op = (heddle_pop *)(void *)kept;
  dev->driver->op_free(op->op);
  dev->host->free(dev->host->ctx, op);
}

void queue_op_free(heddle_pop *op) {
  if (op == NULL) return;
  queue_count(op->dev, HEDDLE_QUERY_LIVE_OBJECTS, -1);
  queue_give(op->dev, &op->kept);
}

heddle_status queue_prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                            heddle_error *err) {
  heddle_status s = queue_check(dev, err);
  if (s != HEDDLE_OK) return s;
  heddle_pop *op = queue_new(dev->host, sizeof *op);
  if (op == NULL)
    return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no memory for an operator", dev->driver->name, dev->index);
  *op = (heddle_pop){.kept = {NULL, destroy_op}, .dev = dev};
  s = dev->driver->prepare(dev->device, region, offer, &op->op, err);
  if (s != HEDDLE_OK) {
    dev->host->free(dev->host->ctx, op);
    return s;
  }
  queue_count(dev, HEDDLE_QUERY_LIVE_OBJECTS, 1);
  *out = op;
  return HEDDLE_OK;
}

static void destroy_launch(heddle_pdevice *dev, queue_kept *kept) {
  heddle_plaunch *launch = (heddle_plaunch *)(void *)kept;
  queue_stream_give(launch->stream);
  dev->host->free(dev->host->ctx, launch);
}

void queue_launch_free(heddle_plaunch *launch) {
  if (launch == NULL) return;
  heddle_pdevice *dev = launch->stream->dev;
  queue_count(dev, HEDDLE_QUERY_LIVE_OBJECTS, -1);
  queue_give(dev, &launch->kept);
}

static heddle_status find_memory(heddle_pdevice *dev, const heddle_pslice *slice, queue_slice *out, heddle_error *err) {
  *out = (queue_slice){NULL, 0, 0};
  if (slice->buffer == NULL) return HEDDLE_OK; /* absent, absorbed or empty */
  return queue_range(dev, slice->buffer, HEDDLE_MEMORY_DEVICE, slice->offset, slice->bytes, "an operand", out, err);
}

heddle_status queue_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands, heddle_plaunch **out,
                         heddle_error *err) {
  heddle_pdevice *dev = op->dev;
  const uint64_t n = (uint64_t)operands->n_inputs + operands->n_outputs;
  heddle_status s = queue_check(dev, err);
  if (s != HEDDLE_OK) return s;
  heddle_plaunch *launch = queue_new(dev->host, sizeof *launch + n * sizeof launch->slices[0]);
  if (launch == NULL)
    return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no memory for a launch", dev->driver->name, dev->index);
  launch->kept.destroy = destroy_launch;
  launch->stream = stream;
  launch->work = (queue_work){.op = op->op,
                              .inputs = launch->slices,
                              .outputs = launch->slices + operands->n_inputs,
                              .n_inputs = operands->n_inputs,
                              .n_outputs = operands->n_outputs};
  s = find_memory(dev, &operands->workspace, &launch->work.workspace, err);
  for (uint64_t i = 0; i < n && s == HEDDLE_OK; i++)
    s = find_memory(dev, i < operands->n_inputs ? &operands->inputs[i] : &operands->outputs[i - operands->n_inputs],
                    &launch->slices[i], err);
  if (s == HEDDLE_OK) s = queue_stream_take(stream, err);
  if (s != HEDDLE_OK) {
    dev->host->free(dev->host->ctx, launch);
    return s;
  }
  queue_count(dev, HEDDLE_QUERY_LIVE_OBJECTS, 1);
  *out = launch;
  return HEDDLE_OK;
}

heddle_status queue_run(heddle_plaunch *launch, heddle_error *err) {
  queue_cmd cmd = {.kind = CMD_RUN};
  cmd.u.launch = launch;
  return queue_push(launch->stream, &cmd, err);
}

/* ---------------------------------------------------------------- captures */

static void destroy_graph(heddle_pdevice *dev, queue_kept *kept) {
  heddle_pgraph *graph = (heddle_pgraph *)(void *)kept;
  dev->host->free(dev->host->ctx, graph->row);
  dev->host->free(dev->host->ctx, graph);
}

static void capture_free(heddle_pgraph *graph) {
  if (graph == NULL) return;
  queue_count(graph->dev, HEDDLE_QUERY_LIVE_OBJECTS, -1);
  queue_give(graph->dev, &graph->kept);
}

static heddle_status capture_begin(heddle_pstream *stream, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  heddle_status s = queue_check(dev, err);
  if (s != HEDDLE_OK) return s;
  if (stream->capture != NULL)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: a capture is open on the stream", dev->driver->name, dev->index);
  heddle_pgraph *graph = queue_new(dev->host, sizeof *graph);
  if (graph != NULL) {
    pthread_mutex_lock(&dev->lock);
    graph->places = stream->places;
    pthread_mutex_unlock(&dev->lock);
    graph->room = 64 + 2 * graph->places;
    graph->row = queue_new(dev->host, graph->room * sizeof *graph->row);
  }
  if (graph == NULL || graph->row == NULL) {
    dev->host->free(dev->host->ctx, graph);
    return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no memory for a capture", dev->driver->name, dev->index);
  }
  graph->kept.destroy = destroy_graph;
  graph->dev = dev;
  queue_count(dev, HEDDLE_QUERY_LIVE_OBJECTS, 1);
  stream->capture = graph;
  return HEDDLE_OK;
}

static heddle_status capture_end(heddle_pstream *stream, heddle_pgraph **out, heddle_error *err) {
  heddle_pgraph *graph = stream->capture;
  const heddle_status s = queue_check(stream->dev, err);
  stream->capture = NULL; /* whatever comes */
  if (s != HEDDLE_OK) capture_free(graph);
  if (s == HEDDLE_OK && graph == NULL)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: no capture was begun on the stream", stream->dev->driver->name,
                  stream->dev->index);
  if (s == HEDDLE_OK) *out = graph;
  return s;
}

static heddle_status capture_replay(heddle_pgraph *graph, heddle_pstream *stream, heddle_error *err) {
  queue_cmd cmd = {.kind = CMD_REPLAY};
  if (graph == NULL || graph->dev != stream->dev)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: the capture is not of this device", stream->dev->driver->name,
                  stream->dev->index);
  cmd.u.graph = graph;
  return queue_push(stream, &cmd, err);
}

const heddle_capture_table queue_capture_table = {
    .struct_size = sizeof queue_capture_table,
    .free = capture_free,
    .begin = capture_begin,
    .end = capture_end,
    .replay = capture_replay,
};
