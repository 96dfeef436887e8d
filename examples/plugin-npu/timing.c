/* Times: what a stream's work took in cycles of the machine, on a clock that is the host's whenever there is no work. */
#include "npu.h"

static void timing_free(heddle_ptimer *timer) {
  if (timer == NULL) return;
  atomic_fetch_sub(&timer->dev->live_objects, 1);
  timer->dev->host->free(timer->dev->host->ctx, timer);
}

static heddle_status timing_create(heddle_pdevice *dev, uint32_t slots, heddle_ptimer **out, heddle_error *err) {
  heddle_status s = npu_check(dev, err);
  if (s != HEDDLE_OK) return s;
  heddle_ptimer *timer = npu_new(dev->host, sizeof *timer + (uint64_t)slots * sizeof timer->ns[0]);
  if (timer == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "npu:0: no memory for %u times", slots);
  timer->dev = dev;
  timer->slots = slots;
  atomic_fetch_add(&dev->live_objects, 1);
  *out = timer;
  return HEDDLE_OK;
}

static heddle_status timing_mark(heddle_pstream *stream, heddle_ptimer *timer, uint32_t slot, heddle_error *err) {
  const npu_cmd cmd = {.kind = NPU_CMD_MARK, .timer = timer, .slot = slot};
  if (slot >= timer->slots)
    return p_fail(err, HEDDLE_EINVAL, 0, "npu:0: slot %u of a timer with %u", slot, timer->slots);
  return npu_push(stream, &cmd, err);
}

static heddle_status timing_read(heddle_ptimer *timer, uint32_t first, uint32_t count, uint64_t *out_ns,
                                 heddle_error *err) {
  heddle_status s = npu_check(timer->dev, err);
  if (s != HEDDLE_OK) return s;
  if (first > timer->slots || count > timer->slots - first)
    return p_fail(err, HEDDLE_EINVAL, 0, "npu:0: slots %u to %llu of a timer with %u", first,
                  (unsigned long long)first + count, timer->slots);
  for (uint32_t i = 0; i < count; i++) out_ns[i] = atomic_load(&timer->ns[first + i]);
  return HEDDLE_OK;
}

static heddle_status calibrate(heddle_pdevice *dev, uint64_t *device_ns, uint64_t *host_ns, heddle_error *err) {
  heddle_status s = npu_check(dev, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&dev->self->lock);
  *host_ns = dev->host->now_ns(dev->host->ctx);
  *device_ns = npu_clock(dev, *host_ns);
  pthread_mutex_unlock(&dev->self->lock);
  return HEDDLE_OK;
}

const heddle_timing_table npu_timing_table = {
    .struct_size = sizeof npu_timing_table,
    .free = timing_free,
    .create = timing_create,
    .mark = timing_mark,
    .read = timing_read,
    .calibrate = calibrate,
};
