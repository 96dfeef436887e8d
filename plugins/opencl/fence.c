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
  pthread_mutex_lock(&stream->lock);
  x->next = stream->more;
  stream->more = x;
  pthread_mutex_unlock(&stream->lock);
  return x;
}

static void forget(ocl_signal *x) {
  heddle_pstream *stream = x->stream;
  pthread_mutex_lock(&stream->lock);
  ocl_signal **link = &stream->more;
  while (*link != x) link = &(*link)->next;
  *link = x->next;
  pthread_mutex_unlock(&stream->lock);
  stream->dev->host->free(stream->dev->host->ctx, x);
}

/* Gives the signal back, and with it the stream, whose last user this may be. late: in a callback of the driver's, which may
 * release no queue: some drivers wait there for all of its work, this callback too. */
static void give_back(ocl_signal *x, bool late) {
  heddle_pstream *stream = x->stream;
  heddle_pdevice *dev = stream->dev;
  if (x->allocated) forget(x);
  else atomic_store_explicit(&x->busy, false, memory_order_release);
  if (late) ocl_stream_drop_late(stream);
  else ocl_stream_drop(stream);
  atomic_fetch_sub(&dev->callbacks, 1);
}

/* Whether the host is still to hear of the signal; it does so from the caller, who takes it. */
static bool take_pending(ocl_signal *x, heddle_pfence *fence) {
  pthread_mutex_lock(&x->stream->lock);
  const bool pending = x->pending;
  x->pending = false;
  *fence = x->fence;
  pthread_mutex_unlock(&x->stream->lock);
  return pending;
}

static void CL_CALLBACK reached(cl_event event, cl_int state, void *user) {
  ocl_signal *x = user;
  heddle_pdevice *dev = x->stream->dev;
  const heddle_host *host = dev->host;
  heddle_pfence fence;
  (void)event;
  const bool pending = take_pending(x, &fence);
  if (state < 0) {
    heddle_error failed;
    const heddle_status s = ocl_check(dev, state, "work before a fence failed", &failed);
    ocl_stream_failed(x->stream, &failed);
    if (pending) host->fence_fail(host->ctx, fence, s, failed.text);
  } else if (pending) {
    host->fence_signal(host->ctx, fence, x->value);
  }
  give_back(x, true);
}

/* The fence of one pending signal of the stream's, which is no longer pending; false where there is none. */
static bool next_pending(heddle_pstream *stream, heddle_pfence *fence) {
  ocl_signal *found = NULL;
  pthread_mutex_lock(&stream->lock);
  for (uint32_t i = 0; i < OCL_SIGNALS && found == NULL; i++)
    if (stream->signals[i].pending) found = &stream->signals[i];
  for (ocl_signal *x = stream->more; x != NULL && found == NULL; x = x->next)
    if (x->pending) found = x;
  if (found != NULL) {
    found->pending = false;
    *fence = found->fence;
  }
  pthread_mutex_unlock(&stream->lock);
  return found != NULL;
}

void ocl_signals_fail(heddle_pdevice *dev) {
  const heddle_host *host = dev->host;
  heddle_pstream *stream;
  heddle_pfence fence;
  for (uint64_t last = UINT64_MAX; (stream = ocl_stream_next(dev, &last)) != NULL; ocl_stream_drop(stream))
    while (next_pending(stream, &fence)) host->fence_fail(host->ctx, fence, HEDDLE_EDEVICE, dev->fault.text);
}

/* HEDDLE_OK: the host hears of the signal by the callback or by a reset. *told: it has heard of it. */
static heddle_status submit_signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, bool *told,
                                   heddle_error *err) {
  cl_event mark = NULL;
  heddle_status s = ocl_stream_enter_plain(stream, "signal of a fence", err);
  if (s != HEDDLE_OK) return s;
  ocl_signal *x = take(stream, err);
  if (x == NULL) return HEDDLE_ENOMEM;
  ocl_timer_past(stream);
  atomic_fetch_add(&stream->dev->callbacks, 1);
  ocl_count(&stream->users, 1);
  pthread_mutex_lock(&stream->lock);
  x->fence = fence;
  x->value = value;
  x->pending = true;
  pthread_mutex_unlock(&stream->lock);
  s = ocl_health(stream->dev, err); /* a reset that came before is not going to see it */
  cl_int code = s == HEDDLE_OK ? ocl_stream_tail(stream, &mark) : CL_SUCCESS;
  if (s == HEDDLE_OK && code == CL_SUCCESS) {
    ocl_stream_count(stream);
    code = clSetEventCallback(mark, CL_COMPLETE, reached, x);
    if (code == CL_SUCCESS) clFlush(stream->queue); /* the callback has x now, and tells of failures */
    clReleaseEvent(mark);
  }
  if (s == HEDDLE_OK && code == CL_SUCCESS) return HEDDLE_OK;
  if (s == HEDDLE_OK) s = ocl_check(stream->dev, code, "signal a fence", err);
  *told = !take_pending(x, &fence);
  give_back(x, false);
  return s;
}

static heddle_status fence_signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  heddle_error own;
  bool told = false;
  if (err == NULL) err = &own;
  const heddle_status s = submit_signal(stream, fence, value, &told, err);
  const heddle_host *host = stream->dev->host;
  if (s != HEDDLE_OK && !told) host->fence_fail(host->ctx, fence, s, err->text); /* waiters must get the failure */
  return s;
}

const heddle_fence_table ocl_fence_table = {
    .struct_size = sizeof ocl_fence_table,
    .signal = fence_signal,
    .wait = NULL,
};
