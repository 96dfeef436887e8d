/* Times: a mark behind work is the end of that work; one that work follows, and nothing went before since the last mark,
 * is the beginning of it; else a marker's time of completion. So two marks around a kernel say when it ran, and not how
 * long it waited for a free core. Work before a wait, a record or a signal is past: a mark behind those is not the end of
 * it, which may be long ago, when the stream had nothing to do. Queues take times from the moment that
 * a device's first timer is made, so that runs that are not timed pay nothing. */
#include "opencl.h"

typedef struct mark {
  cl_event event; /* NULL: never marked */
  cl_profiling_info of;
} mark;

struct heddle_ptimer {
  heddle_pdevice *dev;
  uint32_t slots, reserved;
  mark marks[];
};

void ocl_timer_saw(heddle_pstream *stream) {
  cl_event event = stream->last;
  if (event == NULL) return;
  clRetainEvent(event);
  if (stream->since_first == NULL) {
    clRetainEvent(event);
    stream->since_first = event;
  }
  if (stream->since_last != NULL) clReleaseEvent(stream->since_last);
  stream->since_last = event;
}

static void times_free(heddle_ptimer *timer) {
  if (timer == NULL) return;
  heddle_pdevice *dev = timer->dev;
  pthread_mutex_lock(&dev->lock);
  for (heddle_pstream *s = dev->streams; s != NULL; s = s->next) {
    if (s->opened == timer) s->opened = NULL;
  }
  pthread_mutex_unlock(&dev->lock);
  for (uint32_t i = 0; i < timer->slots; i++) {
    if (timer->marks[i].event != NULL) clReleaseEvent(timer->marks[i].event);
  }
  atomic_fetch_sub(&dev->timers, 1);
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
  if (s == HEDDLE_OK) s = ocl_new(dev->host, sizeof **out + slots * (uint64_t)sizeof(mark), "a timer", &timer, err);
  if (s != HEDDLE_OK) return s;
  *out = timer;
  (*out)->dev = dev;
  (*out)->slots = slots;
  atomic_fetch_add(&dev->timers, 1);
  atomic_store(&dev->timed, true);
  ocl_count(&dev->live_objects, 1);
  return HEDDLE_OK;
}

/* Puts an event, which the timer then owns, into a slot. */
static void put(heddle_ptimer *timer, uint32_t slot, cl_event event, cl_profiling_info of) {
  if (timer->marks[slot].event != NULL) clReleaseEvent(timer->marks[slot].event);
  timer->marks[slot] = (mark){event, of};
}

/* The timer that the stream's work since the last mark belongs to; the next work belongs to next. */
static heddle_ptimer *close_mark(heddle_pstream *stream, uint32_t *slot, heddle_ptimer *next, uint32_t next_slot) {
  pthread_mutex_lock(&stream->dev->lock);
  heddle_ptimer *opened = stream->opened;
  *slot = stream->opened_slot;
  stream->opened = next;
  stream->opened_slot = next_slot;
  pthread_mutex_unlock(&stream->dev->lock);
  return opened;
}

void ocl_timer_past(heddle_pstream *stream) {
  cl_event first = stream->since_first;
  uint32_t slot = 0;
  if (first == NULL) return;
  heddle_ptimer *opened = close_mark(stream, &slot, NULL, 0);
  if (opened != NULL) put(opened, slot, first, CL_PROFILING_COMMAND_START);
  else clReleaseEvent(first);
  clReleaseEvent(stream->since_last);
  stream->since_first = stream->since_last = NULL;
}

cl_int ocl_timer_mark(heddle_pstream *stream, heddle_ptimer *timer, uint32_t slot) {
  cl_event first = stream->since_first, event = stream->since_last;
  uint32_t opened_slot = 0;
  cl_int code = CL_SUCCESS;
  if (event == NULL) code = clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &event);
  if (code != CL_SUCCESS) return code;
  heddle_ptimer *opened = close_mark(stream, &opened_slot, first == NULL ? timer : NULL, slot);
  if (first != NULL && opened != NULL) put(opened, opened_slot, first, CL_PROFILING_COMMAND_START);
  else if (first != NULL) clReleaseEvent(first);
  stream->since_first = stream->since_last = NULL;
  put(timer, slot, event, CL_PROFILING_COMMAND_END);
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

static heddle_status time_of(heddle_pdevice *dev, const mark *m, uint64_t *out, heddle_error *err) {
  cl_ulong ns = 0;
  const cl_int code = clGetEventProfilingInfo(m->event, m->of, sizeof ns, &ns, NULL);
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
    if (timer->marks[first + i].event == NULL)
      return p_fail(err, HEDDLE_EBUSY, 0, "opencl:%u: slot %u was never marked", dev->index, first + i);
    s = time_of(dev, &timer->marks[first + i], &out_ns[i], err);
  }
  return s;
}

/* The end of a marker of our own, between two readings of the host's clock. One marker: the shorter the call, the less
 * the caller has to distrust it. */
static heddle_status times_calibrate(heddle_pdevice *dev, uint64_t *device_ns, uint64_t *host_ns, heddle_error *err) {
  const heddle_host *host = dev->host;
  mark m = {NULL, CL_PROFILING_COMMAND_END};
  uint64_t at = 0;
  heddle_status s = ocl_health(dev, err);
  if (s == HEDDLE_OK) s = make_service(dev, err);
  if (s != HEDDLE_OK) return s;
  const uint64_t before = host->now_ns(host->ctx);
  cl_int code = clEnqueueMarkerWithWaitList(dev->service, 0, NULL, &m.event);
  if (code == CL_SUCCESS) code = clWaitForEvents(1, &m.event);
  const uint64_t after = host->now_ns(host->ctx);
  s = ocl_check(dev, code, "calibrate", err);
  if (s == HEDDLE_OK) s = time_of(dev, &m, &at, err);
  if (m.event != NULL) clReleaseEvent(m.event);
  if (s != HEDDLE_OK) return s;
  *device_ns = at;
  *host_ns = before + (after - before) / 2;
  return HEDDLE_OK;
}

const heddle_timing_table ocl_timing_table = {
    .struct_size = sizeof ocl_timing_table,
    .free = times_free,
    .create = times_create,
    .mark = times_mark,
    .read = times_read,
    .calibrate = times_calibrate,
};
