/* Captures: between begin and end the commands of a stream go into a row instead of its queue; replay is one command
 * that executes the row. The row keeps the addresses of the recording, and the launches that it names. */
#include "ops.h"

#define FIRST_ROOM 64

struct heddle_pgraph {
  sim_retired retired; /* first */
  uint32_t magic;
  heddle_pdevice *dev;
  sim_cmd *row;
  uint64_t count;
  uint64_t room;
};

const sim_cmd *sim_graph_commands(const heddle_pgraph *graph, uint64_t *count) {
  *count = graph->count;
  return graph->row;
}

heddle_status sim_graph_add(heddle_pgraph *graph, const sim_cmd *cmd, heddle_error *err) {
  const heddle_host *host = graph->dev->host;
  if (graph->count == graph->room) {
    sim_cmd *row = host->alloc(host->ctx, 2 * graph->room * sizeof *row, _Alignof(sim_cmd));
    if (row == NULL)
      return p_fail(err, HEDDLE_ENOMEM, 0, "sim:%u: no memory to record more commands", graph->dev->index);
    memcpy(row, graph->row, graph->count * sizeof *row);
    host->free(host->ctx, graph->row);
    graph->row = row;
    graph->room *= 2;
  }
  graph->row[graph->count++] = *cmd;
  if (cmd->kind == SIM_CMD_LAUNCH) sim_launch_keep(cmd->u.launch);
  return HEDDLE_OK;
}

static bool graph_ok(const heddle_pgraph *graph) {
  return graph != NULL && graph->magic == SIM_MAGIC_GRAPH;
}

static void graph_destroy(const heddle_host *host, sim_retired *retired) {
  heddle_pgraph *graph = (heddle_pgraph *)retired;
  for (uint64_t i = 0; i < graph->count; i++)
    if (graph->row[i].kind == SIM_CMD_LAUNCH) sim_launch_drop(graph->row[i].u.launch);
  host->free(host->ctx, graph->row);
  host->free(host->ctx, graph);
}

static void graph_free(heddle_pgraph *graph) {
  if (!graph_ok(graph)) return;
  graph->magic = SIM_MAGIC_DEAD;
  atomic_fetch_sub(&graph->dev->live_objects, 1);
  sim_retire(graph->dev, &graph->retired);
}

static heddle_status capture_begin(heddle_pstream *stream, heddle_error *err) {
  heddle_status status = sim_stream_enter(stream, SIM_CALL_BEGIN, NULL, err);
  if (status == HEDDLE_OK) status = sim_stream_no_capture(stream, "begin of a capture", err);
  if (status != HEDDLE_OK) return status;
  heddle_pdevice *dev = stream->dev;
  const heddle_host *host = dev->host;
  if (!dev->settings.capture) return sim_switched_off("capture", "capture", err);
  heddle_pgraph *graph = sim_alloc(host, sizeof *graph);
  if (graph != NULL) graph->row = host->alloc(host->ctx, FIRST_ROOM * sizeof *graph->row, _Alignof(sim_cmd));
  if (graph == NULL || graph->row == NULL) {
    host->free(host->ctx, graph);
    return p_fail(err, HEDDLE_ENOMEM, 0, "sim:%u: no memory for a capture", dev->index);
  }
  graph->retired.destroy = graph_destroy;
  graph->magic = SIM_MAGIC_GRAPH;
  graph->dev = dev;
  graph->room = FIRST_ROOM;
  atomic_fetch_add(&dev->live_objects, 1);
  stream->capture = graph;
  return HEDDLE_OK;
}

static heddle_status capture_end(heddle_pstream *stream, heddle_pgraph **out, heddle_error *err) {
  heddle_status status = sim_stream_enter(stream, SIM_CALL_END, NULL, err);
  if (status == HEDDLE_EINVAL) return status;
  heddle_pgraph *graph = stream->capture;
  stream->capture = NULL; /* whatever comes */
  if (status != HEDDLE_OK) {
    graph_free(graph);
    return status;
  }
  if (graph == NULL)
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: end of a capture on a stream where none was begun",
                  stream->dev->index);
  *out = graph;
  return HEDDLE_OK;
}

static heddle_status capture_replay(heddle_pgraph *graph, heddle_pstream *stream, heddle_error *err) {
  sim_cmd cmd = {.kind = SIM_CMD_REPLAY};
  heddle_status status = sim_stream_enter(stream, SIM_CALL_REPLAY, &cmd, err);
  if (status == HEDDLE_OK) status = sim_stream_no_capture(stream, "replay", err);
  if (status != HEDDLE_OK) return status;
  if (!graph_ok(graph) || graph->dev != stream->dev)
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: replay: the handle is no capture of this device", stream->dev->index);
  cmd.u.graph = graph;
  return sim_push(stream, &cmd, err);
}

const heddle_capture_table sim_capture_table = {
    .struct_size = sizeof(heddle_capture_table),
    .free = graph_free,
    .begin = capture_begin,
    .end = capture_end,
    .replay = capture_replay,
};
