/* Timing: slots that a stream writes the device's clock to. Each device has a clock of its own, which is the host's
 * with a constant offset, so that times are wrong until they are calibrated. */
#include "stream.h"

struct heddle_ptimer {
  sim_retired retired; /* first */
  uint32_t magic;
  uint32_t n_slots;
  heddle_pdevice *dev;
  uint64_t offset_ns;
  atomic_ullong slots[]; /* 0: not reached yet */
};

void sim_mark_execute(const heddle_host *host, heddle_ptimer *timer, uint32_t slot) {
  atomic_store(&timer->slots[slot], host->now_ns(host->ctx) + timer->offset_ns);
}

static bool timer_ok(const heddle_ptimer *timer) {
  return timer != NULL && timer->magic == SIM_MAGIC_TIMER;
}

static void times_destroy(const heddle_host *host, sim_retired *retired) {
  host->free(host->ctx, retired);
}

static void times_free(heddle_ptimer *timer) {
  if (!timer_ok(timer)) return;
  heddle_pdevice *dev = timer->dev;
  timer->magic = SIM_MAGIC_DEAD;
  atomic_fetch_sub(&dev->live_objects, 1);
  sim_retire(dev, &timer->retired);
}

static heddle_status times_create(heddle_pdevice *dev, uint32_t slots, heddle_ptimer **out, heddle_error *err) {
  heddle_status status = sim_enter(dev, SIM_CALL_TIMER, err);
  if (status != HEDDLE_OK) return status;
  heddle_ptimer *timer = sim_alloc(dev->host, sizeof *timer + slots * (uint64_t)sizeof timer->slots[0]);
  if (timer == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "sim:%u: no memory for %u times", dev->index, slots);
  timer->retired.destroy = times_destroy;
  timer->magic = SIM_MAGIC_TIMER;
  timer->n_slots = slots;
  timer->dev = dev;
  timer->offset_ns = dev->clock_offset_ns;
  atomic_fetch_add(&dev->live_objects, 1);
  *out = timer;
  return HEDDLE_OK;
}

static heddle_status times_mark(heddle_pstream *stream, heddle_ptimer *timer, uint32_t slot, heddle_error *err) {
  sim_cmd cmd = {.kind = SIM_CMD_MARK};
  heddle_status status = sim_stream_enter(stream, SIM_CALL_MARK, &cmd, err);
  if (status != HEDDLE_OK) return status;
  if (!timer_ok(timer) || timer->dev != stream->dev || slot >= timer->n_slots)
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: mark of slot %u: no such slot, or no timer of this device",
                  stream->dev->index, slot);
  cmd.u.mark.timer = timer;
  cmd.u.mark.slot = slot;
  return sim_push(stream, &cmd, err);
}

static heddle_status times_read(heddle_ptimer *timer, uint32_t first, uint32_t count, uint64_t *out_ns,
                                heddle_error *err) {
  if (!timer_ok(timer)) return p_fail(err, HEDDLE_EINVAL, 0, "read: the handle is no live timer of sim");
  if (first > timer->n_slots || count > timer->n_slots - first)
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: times %u and %u more asked of a timer with %u", timer->dev->index,
                  first, count, timer->n_slots);
  for (uint32_t i = 0; i < count; i++)
    if (atomic_load(&timer->slots[first + i]) == 0)
      return p_fail(err, HEDDLE_EBUSY, 0, "sim:%u: no stream has reached the mark of slot %u yet", timer->dev->index,
                    first + i);
  for (uint32_t i = 0; i < count; i++) out_ns[i] = atomic_load(&timer->slots[first + i]);
  return HEDDLE_OK;
}

static heddle_status calibrate(heddle_pdevice *dev, uint64_t *device_ns, uint64_t *host_ns, heddle_error *err) {
  heddle_status status = sim_device_check(dev, err);
  if (status != HEDDLE_OK) return status;
  *host_ns = dev->host->now_ns(dev->host->ctx);
  *device_ns = *host_ns + dev->clock_offset_ns;
  return HEDDLE_OK;
}

const heddle_timing_table sim_timing_table = {
    .struct_size = sizeof(heddle_timing_table),
    .free = times_free,
    .create = times_create,
    .mark = times_mark,
    .read = times_read,
    .calibrate = calibrate,
};
