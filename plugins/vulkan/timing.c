/* Times: a timer is a row of timestamp queries. A mark resets its query and writes it, in the stream and so in a capture
 * too; on a queue that only copies, which cannot reset, the host resets it when the mark is put in. */
#include "stream.h"

struct heddle_ptimer {
  heddle_pdevice *dev;
  VkQueryPool pool;
  uint32_t slots, reserved;
  atomic_bool marked[];
};

static void times_free(heddle_ptimer *timer) {
  if (timer == NULL) return;
  heddle_pdevice *dev = timer->dev;
  dev->vk.DestroyQueryPool(dev->device, timer->pool, NULL);
  vlk_count(&dev->live_objects, -1);
  dev->host->free(dev->host->ctx, timer);
}

static heddle_status has_times(heddle_pdevice *dev, heddle_error *err) {
  heddle_status s = vlk_health(dev, err);
  if (s != HEDDLE_OK || dev->info->timestamp_bits > 0) return s;
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "vulkan:%u: the device's queues take no times", dev->index);
}

static heddle_status times_create(heddle_pdevice *dev, uint32_t slots, heddle_ptimer **out, heddle_error *err) {
  const VkQueryPoolCreateInfo how = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                     .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                     .queryCount = slots > 0 ? slots : 1};
  void *memory = NULL;
  heddle_status s = has_times(dev, err);
  if (s == HEDDLE_OK) s = vlk_new(dev->host, sizeof **out + slots * (uint64_t)sizeof(bool), "a timer", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_ptimer *timer = memory;
  timer->dev = dev;
  timer->slots = slots;
  s = vlk_check(dev, dev->vk.CreateQueryPool(dev->device, &how, NULL, &timer->pool), "make a timer", err);
  if (s != HEDDLE_OK) {
    dev->host->free(dev->host->ctx, timer);
    return s;
  }
  /* So that one that was only recorded can be asked for. */
  if (dev->info->host_reset) dev->vk.ResetQueryPool(dev->device, timer->pool, 0, how.queryCount);
  vlk_count(&dev->live_objects, 1);
  *out = timer;
  return HEDDLE_OK;
}

static heddle_status times_mark(heddle_pstream *stream, heddle_ptimer *timer, uint32_t slot, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  heddle_status s = vlk_health(dev, err);
  if (s != HEDDLE_OK) return s;
  if (timer->dev != dev || slot >= timer->slots)
    return p_fail(err, HEDDLE_EINVAL, 0, "vulkan:%u: mark of slot %u: no such slot, or no timer of this device",
                  dev->index, slot);
  s = vlk_stream_work(stream, &commands, err);
  if (s != HEDDLE_OK) return s;
  if (stream->queue->computes) dev->vk.CmdResetQueryPool(commands, timer->pool, slot, 1);
  else dev->vk.ResetQueryPool(dev->device, timer->pool, slot, 1);
  dev->vk.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, timer->pool, slot);
  vlk_stream_worked(stream);
  atomic_store_explicit(&timer->marked[slot], true, memory_order_relaxed);
  return HEDDLE_OK;
}

/* Ticks of a clock that may be shorter than 64 bits. */
static uint64_t to_ns(const heddle_pdevice *dev, uint64_t ticks) {
  const uint32_t bits = dev->info->timestamp_bits;
  if (bits < 64) ticks &= (UINT64_C(1) << bits) - 1;
  if (dev->info->timestamp_period == 1.0F) return ticks;
  return (uint64_t)((double)ticks * (double)dev->info->timestamp_period);
}

static heddle_status times_read(heddle_ptimer *timer, uint32_t first, uint32_t count, uint64_t *out_ns,
                                heddle_error *err) {
  heddle_pdevice *dev = timer->dev;
  heddle_status s = vlk_health(dev, err);
  if (s != HEDDLE_OK) return s;
  if (first > timer->slots || count > timer->slots - first)
    return p_fail(err, HEDDLE_EINVAL, 0, "vulkan:%u: times %u and %u more asked of a timer with %u", dev->index, first,
                  count, timer->slots);
  for (uint32_t i = 0; i < count; i++) {
    if (!atomic_load_explicit(&timer->marked[first + i], memory_order_relaxed))
      return p_fail(err, HEDDLE_EBUSY, 0, "vulkan:%u: slot %u was never marked", dev->index, first + i);
  }
  for (uint32_t i = 0; i < count; i++) {
    uint64_t ticks = 0;
    const VkResult code = dev->vk.GetQueryPoolResults(dev->device, timer->pool, first + i, 1, sizeof ticks, &ticks,
                                                      sizeof ticks, VK_QUERY_RESULT_64_BIT);
    if (code == VK_NOT_READY)
      return p_fail(err, HEDDLE_EBUSY, code, "vulkan:%u: no stream has reached slot %u of the timer yet", dev->index,
                    first + i);
    s = vlk_check(dev, code, "read a time", err);
    if (s != HEDDLE_OK) return s;
    out_ns[i] = to_ns(dev, ticks);
  }
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- the two clocks */

static heddle_status read_clock(heddle_pdevice *dev, uint64_t *ticks, heddle_error *err) {
  const VkCalibratedTimestampInfoEXT what = {.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT,
                                             .timeDomain = VK_TIME_DOMAIN_DEVICE_EXT};
  uint64_t deviation = 0;
  return vlk_check(dev, dev->vk.GetCalibratedTimestampsEXT(dev->device, 1, &what, ticks, &deviation), "calibrate", err);
}

/* A mark of our own, which the host waits for: the time is that of the submission. */
static heddle_status mark_clock(heddle_pdevice *dev, uint64_t *before, uint64_t *after, uint64_t *ns,
                                heddle_error *err) {
  const heddle_host *host = dev->host;
  heddle_ptimer *timer = NULL;
  heddle_status s = times_create(dev, 1, &timer, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&dev->service_lock);
  if (dev->service == NULL) s = vlk_stream_make(dev, HEDDLE_STREAM_COMPUTE, &dev->service, err);
  if (s == HEDDLE_OK) s = times_mark(dev->service, timer, 0, err);
  *before = host->now_ns(host->ctx);
  if (s == HEDDLE_OK) s = vlk_submit(dev->service, 0, 0, err);
  if (s == HEDDLE_OK) s = vlk_wait(dev->service, atomic_load(&dev->service->submitted), UINT64_MAX, err);
  *after = host->now_ns(host->ctx);
  if (s != HEDDLE_OK && dev->service != NULL) vlk_stream_drop_work(dev->service);
  pthread_mutex_unlock(&dev->service_lock);
  if (s == HEDDLE_OK) s = times_read(timer, 0, 1, ns, err);
  times_free(timer);
  return s;
}

static heddle_status times_calibrate(heddle_pdevice *dev, uint64_t *device_ns, uint64_t *host_ns, heddle_error *err) {
  const heddle_host *host = dev->host;
  uint64_t before = 0, after = 0, at = 0;
  heddle_status s = has_times(dev, err);
  if (s != HEDDLE_OK) return s;
  if (dev->info->calibrates && dev->vk.GetCalibratedTimestampsEXT != NULL) {
    before = host->now_ns(host->ctx);
    s = read_clock(dev, &at, err);
    after = host->now_ns(host->ctx);
    at = to_ns(dev, at);
  } else {
    s = mark_clock(dev, &before, &after, &at, err);
  }
  if (s != HEDDLE_OK) return s;
  *device_ns = at;
  *host_ns = before + (after - before) / 2;
  return HEDDLE_OK;
}

const heddle_timing_table vlk_timing_table = {
    .struct_size = sizeof vlk_timing_table,
    .free = times_free,
    .create = times_create,
    .mark = times_mark,
    .read = times_read,
    .calibrate = times_calibrate,
};
