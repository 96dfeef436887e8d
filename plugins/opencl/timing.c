/* Times: a mark is a marker whose profiling time of completion is read later. Queues take times from the moment that a
 * device's first timer is made, so that runs that nobody times pay nothing. */
#include "opencl.h"

struct heddle_ptimer {
  heddle_pdevice *dev;
  uint32_t slots, reserved;
  cl_event marks[];
};

static void times_free(heddle_ptimer *timer) {
  if (timer == NULL) return;
  heddle_pdevice *dev = timer->dev;
  for (uint32_t i = 0; i < timer->slots; i++) {
    if (timer->marks[i] != NULL) clReleaseEvent(timer->marks[i]);
  }
  ocl_count(&dev->live_objects, -1);
  dev->host->free(dev->host->ctx, timer);
}

static heddle_status make_service(heddle_pdevice *dev, heddle_error *err) {
  cl_int code = CL_SUCCESS;
  pthread_mutex_lock(&dev->build_lock);
  if (dev->service == NULL) {
    dev->service = clCreateCommandQueue(dev->context, dev->info->id, CL_QUEUE_PROFILING_ENABLE, &code);
    if (code != CL_SUCCESS) dev->service = NULL;
  }
  pthread_mutex_unlock(&dev->build_lock);
  return ocl_check(dev, code, "make a queue that takes times", err);
}

static heddle_status times_create(heddle_pdevice *dev, uint32_t slots, heddle_ptimer **out, heddle_error *err) {
  void *timer = NULL;
  heddle_status s = ocl_health(dev, err);
  if (s == HEDDLE_OK) s = make_service(dev, err);
  if (s == HEDDLE_OK) s = ocl_new(dev->host, sizeof **out + slots * (uint64_t)sizeof(cl_event), "a timer", &timer, err);
  if (s != HEDDLE_OK) return s;
  *out = timer;
  (*out)->dev = dev;
  (*out)->slots = slots;
  atomic_store(&dev->timed, true);
  ocl_count(&dev->live_objects, 1);
  return HEDDLE_OK;
}

cl_int ocl_timer_mark(heddle_pstream *stream, heddle_ptimer *timer, uint32_t slot) {
  cl_event mark = NULL;
  const cl_int code = clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &mark);
  if (code != CL_SUCCESS) return code;
  if (timer->marks[slot] != NULL) clReleaseEvent(timer->marks[slot]);
  timer->marks[slot] = mark;
  return CL_SUCCESS;
}

static heddle_status times_mark(heddle_pstream *stream, heddle_ptimer *timer, uint32_t slot, heddle_error *err) {
  heddle_status s = ocl_stream_enter(stream, err);
  if (s != HEDDLE_OK) return s;
  if (timer->dev != stream->dev || slot >= timer->slots)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: mark of slot %u: no such slot, or no timer of this device",
                  stream->dev->index, slot);
  const cl_int code = ocl_put(stream, &(ocl_command){.kind = OCL_MARK, .number = slot, .host = timer});
  return ocl_stream_done(stream, code, "mark a time", err);
}

static heddle_status time_of(heddle_pdevice *dev, cl_event mark, uint64_t *out, heddle_error *err) {
  cl_ulong ns = 0;
  const cl_int code = clGetEventProfilingInfo(mark, CL_PROFILING_COMMAND_END, sizeof ns, &ns, NULL);
  if (code == CL_PROFILING_INFO_NOT_AVAILABLE)
    return p_fail(err, HEDDLE_EBUSY, code, "opencl:%u: no stream has reached a mark of the timer yet", dev->index);
  *out = ns;
  return ocl_check(dev, code, "read a time", err);
}

static heddle_status times_read(heddle_ptimer *timer, uint32_t first, uint32_t count, uint64_t *out_ns,
                                heddle_error *err) {
  heddle_pdevice *dev = timer->dev;
  heddle_status s = HEDDLE_OK;
  if (first > timer->slots || count > timer->slots - first)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: times %u and %u more asked of a timer with %u", dev->index, first,
                  count, timer->slots);
  for (uint32_t i = 0; i < count && s == HEDDLE_OK; i++) {
    if (timer->marks[first + i] == NULL)
      return p_fail(err, HEDDLE_EBUSY, 0, "opencl:%u: slot %u was never marked", dev->index, first + i);
    s = time_of(dev, timer->marks[first + i], &out_ns[i], err);
  }
  return s;
}

/* The end of a marker of our own, between two readings of the host's clock; the closest of a few. */
static heddle_status times_calibrate(heddle_pdevice *dev, uint64_t *device_ns, uint64_t *host_ns, heddle_error *err) {
  const heddle_host *host = dev->host;
  uint64_t best = UINT64_MAX;
  heddle_status s = ocl_health(dev, err);
  if (s == HEDDLE_OK) s = make_service(dev, err);
  for (int i = 0; i < 8 && s == HEDDLE_OK; i++) {
    cl_event mark = NULL;
    uint64_t at = 0;
    const uint64_t before = host->now_ns(host->ctx);
    cl_int code = clEnqueueMarkerWithWaitList(dev->service, 0, NULL, &mark);
    if (code == CL_SUCCESS) code = clWaitForEvents(1, &mark);
    const uint64_t after = host->now_ns(host->ctx);
    s = ocl_check(dev, code, "calibrate", err);
    if (s == HEDDLE_OK) s = time_of(dev, mark, &at, err);
    if (mark != NULL) clReleaseEvent(mark);
    if (s != HEDDLE_OK || after - before >= best) continue;
    best = after - before;
    *device_ns = at;
    *host_ns = before + best / 2;
  }
  return s;
}

const heddle_timing_table ocl_timing_table = {
    .struct_size = sizeof ocl_timing_table,
    .free = times_free,
    .create = times_create,
    .mark = times_mark,
    .read = times_read,
    .calibrate = times_calibrate,
};
