/* Fences: a signal is a callback on the event of the last command or a marker, which only records and wakes. Waits on
 * the device are not offered: user events, which they would need, hang several drivers when they are never set. */
#include "opencl.h"

static ocl_signal *take(heddle_pstream *stream, heddle_error *err) {
  void *memory = NULL;
  for (uint32_t i = 0; i < OCL_SIGNALS; i++) {
    ocl_signal *x = &stream->signals[i];
    if (!atomic_load_explicit(&x->busy, memory_order_relaxed) &&
        !atomic_exchange_explicit(&x->busy, true, memory_order_acquire)) {
      return x;
    }
  }
  if (ocl_new(stream->dev->host, sizeof(ocl_signal), "a signal", &memory, err) != HEDDLE_OK) return NULL;
  ocl_signal *x = memory;
  x->stream = stream;
  x->allocated = true;
  return x;
}

/* Gives the signal back, and with it the stream, whose last user this may be. late: in a callback of the driver's, which may
 * release no queue: some drivers wait there for all of its work, this callback too. */
static void give_back(ocl_signal *x, bool late) {
  heddle_pstream *stream = x->stream;
  heddle_pdevice *dev = stream->dev;
  if (x->allocated) dev->host->free(dev->host->ctx, x);
  else atomic_store_explicit(&x->busy, false, memory_order_release);
  if (late) ocl_stream_drop_late(stream);
  else ocl_stream_drop(stream);
  atomic_fetch_sub(&dev->callbacks, 1);
}

static void CL_CALLBACK reached(cl_event event, cl_int state, void *user) {
  ocl_signal *x = user;
  heddle_pdevice *dev = x->stream->dev;
  const heddle_host *host = dev->host;
  (void)event;
  if (state >= 0) {
    host->fence_signal(host->ctx, x->fence, x->value);
  } else {
    heddle_error failed;
    const heddle_status s = ocl_check(dev, state, "work before a fence failed", &failed);
    ocl_stream_failed(x->stream, &failed);
    host->fence_fail(host->ctx, x->fence, s, failed.text);
  }
  give_back(x, true);
}

static heddle_status submit_signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  cl_event mark = NULL;
  heddle_status s = ocl_stream_enter_plain(stream, "signal of a fence", err);
  if (s != HEDDLE_OK) return s;
  ocl_signal *x = take(stream, err);
  if (x == NULL) return HEDDLE_ENOMEM;
  ocl_timer_past(stream);
  x->fence = fence;
  x->value = value;
  atomic_fetch_add(&stream->dev->callbacks, 1);
  ocl_count(&stream->users, 1);
  cl_int code = ocl_stream_tail(stream, &mark);
  if (code == CL_SUCCESS) {
    ocl_stream_count(stream);
    code = clSetEventCallback(mark, CL_COMPLETE, reached, x);
    if (code == CL_SUCCESS) clFlush(stream->queue); /* the callback has x now, and tells of failures */
    clReleaseEvent(mark);
  }
  if (code == CL_SUCCESS) return HEDDLE_OK;
  s = ocl_check(stream->dev, code, "signal a fence", err);
  give_back(x, false);
  return s;
}

static heddle_status fence_signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  heddle_error own;
  if (err == NULL) err = &own;
  const heddle_status s = submit_signal(stream, fence, value, err);
  const heddle_host *host = stream->dev->host;
  if (s != HEDDLE_OK) host->fence_fail(host->ctx, fence, s, err->text); /* waiters must get the failure */
  return s;
}

const heddle_fence_table ocl_fence_table = {
    .struct_size = sizeof ocl_fence_table,
    .signal = fence_signal,
    .wait = NULL,
};
