/* Streams: a command queue in order each. Where a stream is asked whether it is done, a marker behind its work answers;
 * a wait with a time limit is a callback on that marker, since OpenCL's own waits have none. */
#include "opencl.h"

#include <time.h>

/* ---------------------------------------------------------------- the queue */

static cl_command_queue make_queue(heddle_pdevice *dev, bool profiles, cl_int *code) {
  return clCreateCommandQueue(dev->context, dev->info->id, profiles ? CL_QUEUE_PROFILING_ENABLE : 0, code);
}

/* Goes on in a queue that takes times, behind all that is in the old one, which stays until the stream is closed: a
 * thread that asks the stream may be using it. */
static heddle_status start_profiling(heddle_pstream *stream, heddle_error *err) {
  cl_event last = NULL;
  cl_int code = CL_SUCCESS;
  heddle_status s = ocl_stream_mark(stream, &last, err);
  if (s != HEDDLE_OK) return s;
  cl_command_queue queue = make_queue(stream->dev, true, &code);
  if (code == CL_SUCCESS) {
    code = clEnqueueBarrierWithWaitList(queue, 1, &last, NULL);
    if (code != CL_SUCCESS) clReleaseCommandQueue(queue);
  }
  clReleaseEvent(last);
  s = ocl_check(stream->dev, code, "make a queue that takes times", err);
  if (s != HEDDLE_OK) return s;
  ocl_stream_forget_last(stream);
  pthread_mutex_lock(&stream->lock);
  stream->before = stream->queue;
  stream->queue = queue;
  stream->profiles = true;
  pthread_mutex_unlock(&stream->lock);
  return HEDDLE_OK;
}

heddle_status ocl_stream_enter(heddle_pstream *stream, heddle_error *err) {
  heddle_status s = ocl_health(stream->dev, err);
  if (s != HEDDLE_OK) return s;
  if (!stream->profiles && stream->capture == NULL && atomic_load_explicit(&stream->dev->timed, memory_order_acquire))
    return start_profiling(stream, err);
  return HEDDLE_OK;
}

heddle_status ocl_stream_enter_plain(heddle_pstream *stream, const char *what, heddle_error *err) {
  if (stream->capture != NULL)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: %s inside a capture", stream->dev->index, what);
  return ocl_stream_enter(stream, err);
}

void ocl_stream_failed(heddle_pstream *stream, const heddle_error *failure) {
  pthread_mutex_lock(&stream->lock);
  if (stream->failure.status == HEDDLE_OK) stream->failure = *failure;
  pthread_mutex_unlock(&stream->lock);
}

heddle_status ocl_stream_done(heddle_pstream *stream, cl_int code, const char *what, heddle_error *err) {
  if (code != CL_SUCCESS) return ocl_check(stream->dev, code, what, err);
  ocl_stream_count(stream);
  return HEDDLE_OK;
}

heddle_status ocl_stream_mark(heddle_pstream *stream, cl_event *out, heddle_error *err) {
  cl_event event = NULL;
  pthread_mutex_lock(&stream->lock);
  cl_int code = clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &event);
  if (code == CL_SUCCESS) code = clFlush(stream->queue);
  pthread_mutex_unlock(&stream->lock);
  if (code != CL_SUCCESS && event != NULL) clReleaseEvent(event);
  *out = code == CL_SUCCESS ? event : NULL;
  return ocl_check(stream->dev, code, "mark a point in a stream", err);
}

void ocl_stream_reached(heddle_pstream *stream, cl_event mark, uint64_t enqueued) {
  pthread_mutex_lock(&stream->lock);
  const bool newer = enqueued >= stream->marked;
  cl_event old = newer ? stream->mark : mark;
  if (newer) {
    stream->mark = mark;
    stream->marked = enqueued;
  }
  pthread_mutex_unlock(&stream->lock);
  if (old != NULL) clReleaseEvent(old);
}

/* ---------------------------------------------------------------- waiting */

/* Shared by the thread that waits and the callback; the last one frees it. */
typedef struct waiter {
  const heddle_host *host;
  heddle_pdevice *dev;
  pthread_mutex_t lock; /* guards done and users */
  pthread_cond_t changed;
  uint32_t users;
  bool done;
} waiter;

static void waiter_drop(waiter *w) {
  const heddle_host *host = w->host;
  pthread_mutex_lock(&w->lock);
  const bool last = --w->users == 0;
  pthread_mutex_unlock(&w->lock);
  if (!last) return;
  pthread_cond_destroy(&w->changed);
  pthread_mutex_destroy(&w->lock);
  host->free(host->ctx, w);
}

static void CL_CALLBACK reached(cl_event event, cl_int state, void *user) {
  waiter *w = user;
  heddle_pdevice *dev = w->dev;
  (void)event, (void)state;
  pthread_mutex_lock(&w->lock);
  w->done = true;
  pthread_cond_signal(&w->changed);
  pthread_mutex_unlock(&w->lock);
  waiter_drop(w);
  atomic_fetch_sub(&dev->callbacks, 1);
}

static waiter *waiter_new(heddle_pdevice *dev, heddle_error *err) {
  void *memory = NULL;
  pthread_condattr_t monotonic;
  if (ocl_new(dev->host, sizeof(waiter), "a wait", &memory, err) != HEDDLE_OK) return NULL;
  waiter *w = memory;
  w->host = dev->host;
  w->dev = dev;
  w->users = 2;
  pthread_mutex_init(&w->lock, NULL);
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&w->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  return w;
}

static heddle_status wait_until(heddle_pdevice *dev, cl_event event, uint64_t timeout_ns, heddle_error *err) {
  struct timespec until;
  waiter *w = waiter_new(dev, err);
  if (w == NULL) return HEDDLE_ENOMEM;
  clock_gettime(CLOCK_MONOTONIC, &until);
  if (timeout_ns > UINT64_C(1000000000) * 1000000) timeout_ns = UINT64_C(1000000000) * 1000000;
  const uint64_t ns = (uint64_t)until.tv_nsec + timeout_ns;
  until.tv_sec += (time_t)(ns / 1000000000u);
  until.tv_nsec = (long)(ns % 1000000000u);

  atomic_fetch_add(&dev->callbacks, 1);
  const cl_int code = clSetEventCallback(event, CL_COMPLETE, reached, w);
  if (code != CL_SUCCESS) {
    atomic_fetch_sub(&dev->callbacks, 1);
    waiter_drop(w);
    waiter_drop(w);
    return ocl_check(dev, code, "wait for an event", err);
  }
  int late = 0;
  pthread_mutex_lock(&w->lock);
  while (!w->done && late == 0) late = pthread_cond_timedwait(&w->changed, &w->lock, &until);
  const bool done = w->done;
  pthread_mutex_unlock(&w->lock);
  waiter_drop(w);
  if (done) return HEDDLE_OK;
  return p_fail(err, HEDDLE_ETIMEOUT, 0, "opencl:%u: work did not finish within %llu ns", dev->index,
                (unsigned long long)timeout_ns);
}

/* HEDDLE_OK, HEDDLE_EBUSY, or the failure of the work before an event. */
static heddle_status state_of(heddle_pdevice *dev, cl_event event, heddle_error *err) {
  cl_int state = CL_COMPLETE;
  const cl_int code = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
  if (code != CL_SUCCESS) return ocl_check(dev, code, "ask an event", err);
  if (state < 0) return ocl_check(dev, state, "work in a stream failed", err);
  if (state == CL_COMPLETE) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EBUSY, 0, "opencl:%u: the stream has work left", dev->index);
}

heddle_status ocl_wait(heddle_pdevice *dev, cl_event event, uint64_t timeout_ns, heddle_error *err) {
  heddle_status s = state_of(dev, event, err);
  if (s != HEDDLE_EBUSY) return s;
  if (timeout_ns == UINT64_MAX) {
    const cl_int code = clWaitForEvents(1, &event);
    if (code != CL_SUCCESS && code != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
      return ocl_check(dev, code, "wait for an event", err);
  } else {
    s = wait_until(dev, event, timeout_ns, err);
    if (s != HEDDLE_OK) return s;
  }
  return state_of(dev, event, err);
}

/* ---------------------------------------------------------------- making and closing */

/* Newest first, by falling number. */
heddle_pstream *ocl_stream_next(heddle_pdevice *dev, uint64_t *last) {
  heddle_pstream *next = NULL;
  pthread_mutex_lock(&dev->lock);
  for (heddle_pstream *x = dev->streams; x != NULL; x = x->next)
    if (x->number < *last && (next == NULL || x->number > next->number)) next = x;
  if (next != NULL) {
    ocl_count(&next->users, 1);
    *last = next->number;
  }
  pthread_mutex_unlock(&dev->lock);
  return next;
}

/* Ends a use; true: it was the last, and the stream is no longer among the device's. late: it goes to those that are gone. */
static bool end_use(heddle_pstream *stream, bool late) {
  heddle_pdevice *dev = stream->dev;
  pthread_mutex_lock(&dev->lock);
  const bool last = atomic_fetch_sub(&stream->users, 1) == 1;
  if (last) {
    heddle_pstream **link = &dev->streams;
    while (*link != NULL && *link != stream) link = &(*link)->next;
    if (*link == stream) *link = stream->next;
  }
  if (last && late) {
    stream->next = dev->gone;
    dev->gone = stream;
  }
  pthread_mutex_unlock(&dev->lock);
  return last;
}

static void stream_free(heddle_pstream *stream) {
  heddle_pdevice *dev = stream->dev;
  if (stream->mark != NULL) clReleaseEvent(stream->mark);
  if (stream->since_first != NULL) clReleaseEvent(stream->since_first);
  if (stream->since_last != NULL) clReleaseEvent(stream->since_last);
  if (stream->before != NULL) clReleaseCommandQueue(stream->before);
  clReleaseCommandQueue(stream->queue); /* what is in it finishes first, without us */
  pthread_mutex_destroy(&stream->lock);
  dev->host->free(dev->host->ctx, stream);
}

void ocl_stream_drop(heddle_pstream *stream) {
  if (end_use(stream, false)) stream_free(stream);
}

void ocl_stream_drop_late(heddle_pstream *stream) {
  end_use(stream, true);
}

void ocl_streams_reap(heddle_pdevice *dev) {
  pthread_mutex_lock(&dev->lock);
  heddle_pstream *list = dev->gone;
  dev->gone = NULL;
  pthread_mutex_unlock(&dev->lock);
  while (list != NULL) {
    heddle_pstream *next = list->next;
    stream_free(list);
    list = next;
  }
}

/* Round a queue, which it takes over on success. */
static heddle_status wrap_queue(heddle_pdevice *dev, cl_command_queue queue, heddle_pstream **out, heddle_error *err) {
  void *memory = NULL;
  heddle_status s = ocl_new(dev->host, sizeof **out, "a stream", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pstream *stream = memory;
  stream->dev = dev;
  stream->queue = queue;
  atomic_init(&stream->users, 1);
  for (uint32_t i = 0; i < OCL_SIGNALS; i++) stream->signals[i].stream = stream;
  if (pthread_mutex_init(&stream->lock, NULL) != 0) {
    dev->host->free(dev->host->ctx, stream);
    return p_fail(err, HEDDLE_ENOMEM, 0, "opencl:%u: no lock for a stream", dev->index);
  }
  stream->number = atomic_fetch_add(&dev->next_stream, 1);
  ocl_count(&dev->live_objects, 1);
  *out = stream;
  return HEDDLE_OK;
}

static void enlist(heddle_pstream *stream) {
  heddle_pdevice *dev = stream->dev;
  pthread_mutex_lock(&dev->lock);
  stream->next = dev->streams;
  dev->streams = stream;
  pthread_mutex_unlock(&dev->lock);
}

static heddle_status stream_create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                                   heddle_error *err) {
  cl_int code = CL_SUCCESS;
  heddle_pstream *stream = NULL;
  (void)kind, (void)priority; /* hints that the OpenCL of today's drivers has no use for */
  ocl_streams_reap(dev);
  heddle_status s = ocl_health(dev, err);
  if (s != HEDDLE_OK) return s;
  const bool profiles = atomic_load(&dev->timed);
  cl_command_queue queue = make_queue(dev, profiles, &code);
  s = ocl_check(dev, code, "make a queue", err);
  if (s != HEDDLE_OK) return s;
  s = wrap_queue(dev, queue, &stream, err);
  if (s != HEDDLE_OK) {
    clReleaseCommandQueue(queue);
    return s;
  }
  stream->profiles = profiles;
  enlist(stream);
  *out = stream;
  return HEDDLE_OK;
}

/* What a queue that is no use here belongs to, by name. */
static heddle_status other_queue(const heddle_pdevice *dev, cl_device_id id, heddle_error *err) {
  const heddle_pinstance *self = dev->self;
  char name[200] = "unknown";
  for (uint32_t i = 0; i < self->n_devices; i++)
    if (self->devices[i].id == id && i != dev->index)
      return p_fail(err, HEDDLE_EINVAL, 0, "the queue is of opencl:%u, not of opencl:%u", i, dev->index);
  if (id == dev->info->id)
    return p_fail(err, HEDDLE_EINVAL, 0,
                  "the queue of opencl:%u was made in another OpenCL context than Heddle's, with which it shares no "
                  "events: make it in the context of one of Heddle's buffers (CL_MEM_CONTEXT)",
                  dev->index);
  clGetDeviceInfo(id, CL_DEVICE_NAME, sizeof name - 1, name, NULL);
  return p_fail(err, HEDDLE_EINVAL, 0, "the queue is of a device '%s', not of opencl:%u", name, dev->index);
}

static heddle_status stream_adopt(heddle_pdevice *dev, uint64_t handle, heddle_pstream **out, heddle_error *err) {
  cl_command_queue queue =
      dev->self->adopt_own ? ((heddle_pstream *)(uintptr_t)handle)->queue : (cl_command_queue)(uintptr_t)handle;
  cl_device_id id = NULL;
  cl_context context = NULL;
  heddle_status s = ocl_health(dev, err);
  if (s != HEDDLE_OK) return s;
  if (queue == NULL)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: 0 is no command queue: OpenCL has no default one", dev->index);
  cl_int code = clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof id, &id, NULL);
  if (code == CL_SUCCESS) code = clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
  if (code != CL_SUCCESS) {
    s = ocl_check(dev, code, "ask a command queue", err);
    return s == HEDDLE_EFAILED && err != NULL ? (err->status = HEDDLE_EINVAL) : s;
  }
  if (id != dev->info->id || context != dev->context) return other_queue(dev, id, err);
  s = wrap_queue(dev, queue, out, err);
  if (s != HEDDLE_OK) return s;
  clRetainCommandQueue(queue);
  (*out)->adopted = true;
  (*out)->profiles = true; /* never replaced by one that takes times */
  enlist(*out);
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- using */

static heddle_status stream_submit(heddle_pstream *stream, heddle_error *err) {
  heddle_status s = ocl_stream_enter_plain(stream, "submit", err);
  return s == HEDDLE_OK ? ocl_check(stream->dev, clFlush(stream->queue), "submit", err) : s;
}

/* The failure that is kept, which is forgotten where forget is set. */
static heddle_status kept_failure(heddle_pstream *stream, bool forget, heddle_error *err) {
  pthread_mutex_lock(&stream->lock);
  const heddle_status s = stream->failure.status;
  if (s != HEDDLE_OK && err != NULL) *err = stream->failure;
  if (forget) stream->failure.status = HEDDLE_OK;
  pthread_mutex_unlock(&stream->lock);
  return s;
}

static heddle_status stream_sync(heddle_pstream *stream, uint64_t timeout_ns, heddle_error *err) {
  cl_event mark = NULL;
  heddle_status s = ocl_stream_enter_plain(stream, "sync", err);
  const uint64_t enqueued = atomic_load_explicit(&stream->enqueued, memory_order_relaxed);
  if (s == HEDDLE_OK) s = ocl_stream_mark(stream, &mark, err);
  if (s != HEDDLE_OK) return s;
  ocl_timer_past(stream);
  s = ocl_wait(stream->dev, mark, timeout_ns, err);
  if (s == HEDDLE_OK) ocl_stream_reached(stream, mark, enqueued);
  else clReleaseEvent(mark);
  if (s == HEDDLE_ETIMEOUT || s == HEDDLE_EDEVICE) return s;
  const heddle_status kept = kept_failure(stream, true, err);
  return kept != HEDDLE_OK ? kept : s;
}

/* HEDDLE_OK, HEDDLE_EBUSY, or the failure of the work, on a device that is lost too. */
static heddle_status work_state(heddle_pstream *stream, heddle_error *err) {
  cl_int code = CL_SUCCESS;
  pthread_mutex_lock(&stream->lock);
  const uint64_t enqueued = atomic_load_explicit(&stream->enqueued, memory_order_acquire);
  if (stream->marked != enqueued) {
    cl_event mark = NULL;
    code = clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &mark);
    if (code == CL_SUCCESS) {
      clFlush(stream->queue);
      if (stream->mark != NULL) clReleaseEvent(stream->mark);
      stream->mark = mark;
      stream->marked = enqueued;
    }
  }
  cl_event mark = stream->mark;
  if (mark != NULL) clRetainEvent(mark);
  pthread_mutex_unlock(&stream->lock);
  heddle_status s = ocl_check(stream->dev, code, "ask a stream", err);
  if (s == HEDDLE_OK && mark != NULL) s = state_of(stream->dev, mark, err);
  if (mark != NULL) clReleaseEvent(mark);
  return s;
}

static heddle_status stream_query(heddle_pstream *stream, heddle_error *err) {
  heddle_status s = ocl_health(stream->dev, err);
  if (s == HEDDLE_OK) s = work_state(stream, err);
  return s == HEDDLE_OK ? kept_failure(stream, false, err) : s;
}

static void CL_CALLBACK left_behind(cl_event event, cl_int state, void *user) {
  heddle_pstream *stream = user;
  heddle_pdevice *dev = stream->dev;
  (void)event, (void)state;
  ocl_stream_drop_late(stream);
  atomic_fetch_sub(&dev->callbacks, 1);
}

/* Work that is not done keeps the stream among the device's, so that idle waits for it. */
static void stream_close(heddle_pstream *stream) {
  if (stream == NULL) return;
  ocl_count(&stream->dev->live_objects, -1);
  ocl_graph_free(stream->capture);
  stream->capture = NULL;
  ocl_stream_forget_last(stream);
  clFlush(stream->queue);
  if (!stream->adopted && work_state(stream, NULL) == HEDDLE_EBUSY) {
    atomic_fetch_add(&stream->dev->callbacks, 1);
    ocl_count(&stream->users, 1);
    if (clSetEventCallback(stream->mark, CL_COMPLETE, left_behind, stream) != CL_SUCCESS) {
      ocl_count(&stream->users, -1);
      atomic_fetch_sub(&stream->dev->callbacks, 1);
    }
  }
  ocl_stream_drop(stream);
}

const heddle_stream_table ocl_stream_table = {
    .struct_size = sizeof ocl_stream_table,
    .close = stream_close,
    .create = stream_create,
    .submit = stream_submit,
    .sync = stream_sync,
    .query = stream_query,
    .adopt = stream_adopt,
};
