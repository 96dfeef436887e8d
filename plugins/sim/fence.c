/* Fences: signals and waits on the host's timelines, as commands of a stream. */
#include "stream.h"

static heddle_status fence_signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  sim_cmd cmd = {.kind = SIM_CMD_FENCE_SIGNAL};
  heddle_error own;
  if (err == NULL) err = &own;
  heddle_status status = sim_stream_enter(stream, SIM_CALL_SIGNAL, &cmd, err);
  if (status == HEDDLE_EINVAL) return status;
  if (status == HEDDLE_OK) {
    status = sim_stream_no_capture(stream, "fence signal", err);
    if (status != HEDDLE_OK) return status;
    cmd.u.fence.fence = fence;
    cmd.u.fence.value = value;
    status = sim_push(stream, &cmd, err);
  }
  if (status == HEDDLE_OK) {
    sim_submit(stream);
  } else { /* could not be submitted: waiters must get the failure */
    const heddle_host *host = stream->dev->host;
    host->fence_fail(host->ctx, fence, status, err->text);
  }
  return status;
}

static heddle_status fence_wait(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  sim_cmd cmd = {.kind = SIM_CMD_FENCE_WAIT};
  heddle_status status = sim_stream_enter(stream, SIM_CALL_WAIT, &cmd, err);
  if (status == HEDDLE_OK) status = sim_stream_no_capture(stream, "fence wait", err);
  if (status != HEDDLE_OK) return status;
  if (!stream->dev->settings.fence_wait) return sim_switched_off("waiting for fences on the device", "fence_wait", err);
  cmd.u.fence.fence = fence;
  cmd.u.fence.value = value;
  return sim_push(stream, &cmd, err);
}

const heddle_fence_table sim_fence_tables[2] = {
    {.struct_size = sizeof(heddle_fence_table), .signal = fence_signal, .wait = NULL},
    {.struct_size = sizeof(heddle_fence_table), .signal = fence_signal, .wait = fence_wait},
};
