/* Times: the device's clock is the host's, and a mark is reached when it is made. */
#include "cpu.h"

struct heddle_ptimer {
  heddle_pdevice *dev;
  uint32_t slots, reserved;
  uint64_t ns[];
};

static void timer_free(heddle_ptimer *timer) {
  if (timer == NULL) return;
  heddle_pdevice *dev = timer->dev;
  cpu_count(&dev->live_objects, -1);
  dev->host->free(dev->host->ctx, timer);
}

static heddle_status timer_create(heddle_pdevice *dev, uint32_t slots, heddle_ptimer **out, heddle_error *err) {
  void *timer = NULL;
  heddle_status s = cpu_new(dev->host, sizeof **out + slots * sizeof(uint64_t), "a timer", &timer, err);
  if (s != HEDDLE_OK) return s;
  *out = timer;
  (*out)->dev = dev;
  (*out)->slots = slots;
  cpu_count(&dev->live_objects, 1);
  return HEDDLE_OK;
}

static heddle_status timer_mark(heddle_pstream *stream, heddle_ptimer *timer, uint32_t slot, heddle_error *err) {
  const heddle_host *host = stream->dev->host;
  if (slot >= timer->slots) {
    return p_fail(err, HEDDLE_EINVAL, 0, "cpu:0: slot %u of a timer of %u", slot, timer->slots);
  }
  timer->ns[slot] = host->now_ns(host->ctx);
  return HEDDLE_OK;
}

static heddle_status timer_read(heddle_ptimer *timer, uint32_t first, uint32_t count, uint64_t *out_ns,
                                heddle_error *err) {
  if (first > timer->slots || count > timer->slots - first) {
    return p_fail(err, HEDDLE_EINVAL, 0, "cpu:0: slots %u to %u + %u of a timer of %u", first, first, count,
                  timer->slots);
  }
  for (uint32_t i = 0; i < count; i++) out_ns[i] = timer->ns[first + i];
  return HEDDLE_OK;
}

static heddle_status timer_calibrate(heddle_pdevice *dev, uint64_t *device_ns, uint64_t *host_ns, heddle_error *err) {
  (void)err;
  *device_ns = *host_ns = dev->host->now_ns(dev->host->ctx);
  return HEDDLE_OK;
}

const heddle_timing_table cpu_timing_table = {
    .struct_size = sizeof cpu_timing_table,
    .free = timer_free,
    .create = timer_create,
    .mark = timer_mark,
    .read = timer_read,
    .calibrate = timer_calibrate,
};
