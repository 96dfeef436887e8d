/* Fences: a signal is a number that the stream writes into pinned memory, where a thread that waits may look at it, and behind
 * it a host function, which signals what no thread has seen by then. After a fault the driver makes no such calls any
 * more: then the watch fails the fence. Waits on the device are not offered: neither API can hold
 * a stream back until the host signals without occupying the device (a kernel or a stream wait on memory that is
 * never written would never end). */
#include "plugins/common/gpu/stream.h"

#include <sched.h>
#include <time.h>

/* ---------------------------------------------------------------- slots */

static bool move(gpu_signal *x, unsigned from, unsigned to) {
  return atomic_compare_exchange_strong_explicit(&x->state, &from, to, memory_order_acq_rel, memory_order_relaxed);
}

/* The next slot of the ring, or a new one in front of it where that is still under way. The stream's thread. */
static gpu_signal *take(heddle_pstream *stream, heddle_error *err) {
  gpu_stream_own *own = stream->own;
  void *memory = NULL;
  gpu_signal *x = own->turn;
  if (atomic_load_explicit(&x->state, memory_order_acquire) != GPU_SIGNAL_FREE) {
    if (gpu_new(stream->dev->host, sizeof *x, "a signal", &memory, err) != HEDDLE_OK) return NULL;
    x = memory;
    x->stream = stream;
    atomic_init(&x->next, own->turn);
    atomic_store_explicit(&own->last->next, x, memory_order_release);
  }
  own->last = x;
  own->turn = atomic_load_explicit(&x->next, memory_order_relaxed);
  return x;
}

/* The caller has signalled a slot's fence, or failed it. */
static void disarmed_one(heddle_pstream *stream) {
  atomic_fetch_sub(&stream->own->armed, 1);
  gpu_watch_end(stream->dev);
}

static void disarmed(gpu_signal *x) {
  disarmed_one(x->stream);
}

uint64_t gpu_signals_last(heddle_pstream *stream) {
  gpu_signal *first = &stream->own->slots[0], *x = first;
  uint64_t last = 0;
  do {
    const uint64_t order = atomic_load_explicit(&x->order, memory_order_acquire);
    if (order > last && atomic_load_explicit(&x->state, memory_order_acquire) == GPU_SIGNAL_ARMED) last = order;
    x = atomic_load_explicit(&x->next, memory_order_acquire);
  } while (x != first);
  return last;
}

void gpu_signals_fail(heddle_pstream *stream, uint64_t from, uint64_t last, const heddle_error *failure) {
  const heddle_host *host = stream->dev->host;
  gpu_signal *first = &stream->own->slots[0], *x = first;
  if (atomic_load(&stream->own->armed) == 0) return;
  do {
    const uint64_t order = atomic_load_explicit(&x->order, memory_order_acquire);
    if (order >= from && order <= last && move(x, GPU_SIGNAL_ARMED, GPU_SIGNAL_TAKEN)) {
      const heddle_pfence fence = x->fence;
      atomic_store_explicit(&x->state, GPU_SIGNAL_SETTLED, memory_order_release);
      host->fence_fail(host->ctx, fence, failure->status, failure->text);
      disarmed(x);
    }
    x = atomic_load_explicit(&x->next, memory_order_acquire);
  } while (x != first);
}

/* ---------------------------------------------------------------- the driver's calls */

/* The stream is known to have got so far; several threads may report it. */
static void set_reached(gpu_stream_own *own, uint64_t order) {
  uint64_t before = atomic_load_explicit(&own->reached, memory_order_relaxed);
  while (before < order && !atomic_compare_exchange_weak_explicit(&own->reached, &before, order, memory_order_release,
                                                                  memory_order_relaxed))
    continue;
}

/* The oldest slot under way with a number up to last; NULL: none. */
static gpu_signal *oldest(gpu_stream_own *own, uint64_t last) {
  gpu_signal *first = &own->slots[0], *x = first, *found = NULL;
  uint64_t least = last;
  do {
    const uint64_t order = atomic_load_explicit(&x->order, memory_order_acquire);
    if (atomic_load_explicit(&x->state, memory_order_acquire) == GPU_SIGNAL_ARMED && order <= least) {
      found = x;
      least = order;
    }
    x = atomic_load_explicit(&x->next, memory_order_acquire);
  } while (x != first);
  return found;
}

bool gpu_signals_poll(heddle_pstream *stream) {
  gpu_stream_own *own = stream->own;
  const heddle_host *host = stream->dev->host;
  if (own->counter == NULL || atomic_load(&own->armed) == 0) return false;
  const uint64_t last = atomic_load_explicit(own->counter, memory_order_acquire);
  if (last <= atomic_load_explicit(&own->reached, memory_order_acquire)) return true;
  gpu_watch_heed(stream); /* as below */
  for (gpu_signal *x = oldest(own, last); x != NULL; x = oldest(own, last)) {
    const uint64_t order = atomic_load_explicit(&x->order, memory_order_acquire);
    if (order > last || !move(x, GPU_SIGNAL_ARMED, GPU_SIGNAL_TAKEN)) continue;
    const heddle_pfence fence = x->fence;
    const uint64_t value = x->value;
    atomic_store_explicit(&x->state, GPU_SIGNAL_SETTLED, memory_order_release);
    set_reached(own, order);
    host->fence_signal(host->ctx, fence, value);
    disarmed_one(stream);
  }
  return atomic_load(&own->armed) > 0;
}

/* The stream got there. */
static void reached(void *arg) {
  gpu_signal *x = arg;
  gpu_stream_own *own = x->stream->own;
  const heddle_host *host = x->stream->dev->host;
  gpu_watch_heed(x->stream); /* a driver may let a stream go on that waited for a device that was lost */
  if (!move(x, GPU_SIGNAL_ARMED, GPU_SIGNAL_TAKEN)) {
    /* Failed or signalled before. Who did that may be between taking the slot and saying so: two instructions. */
    while (!move(x, GPU_SIGNAL_SETTLED, GPU_SIGNAL_FREE)) sched_yield();
    return;
  }
  set_reached(own, atomic_load_explicit(&x->order, memory_order_relaxed));
  host->fence_signal(host->ctx, x->fence, x->value);
  disarmed(x);
  atomic_store_explicit(&x->state, GPU_SIGNAL_FREE, memory_order_release);
}

/* The same of the older call, which comes after a failure too, however late: the device is there until it was made. */
static void reached_with(void *handle, int code, void *arg) {
  gpu_signal *x = arg;
  heddle_pstream *stream = x->stream;
  heddle_error failed;
  (void)handle;
  if (code == 0) {
    reached(x);
  } else {
    const uint64_t last = gpu_signals_last(stream);
    gpu_check(stream->dev, code, "work before a fence failed", &failed);
    gpu_stream_keep(stream, &failed);
    gpu_signals_fail(stream, atomic_load_explicit(&x->order, memory_order_relaxed), last, &failed);
    move(x, GPU_SIGNAL_SETTLED, GPU_SIGNAL_FREE);
  }
  atomic_fetch_sub_explicit(&stream->own->calls, 1, memory_order_release);
}

bool gpu_signals_over(heddle_pdevice *dev, uint64_t limit_ns) {
  const heddle_host *host = dev->host;
  const uint64_t start = host->now_ns(host->ctx);
  const struct timespec nap = {0, 200000};
  for (heddle_pstream *s = gpu_streams_of(dev); s != NULL;) {
    if (atomic_load_explicit(&s->own->calls, memory_order_acquire) == 0) {
      s = s->next;
    } else {
      if (host->now_ns(host->ctx) - start > limit_ns) return false;
      nanosleep(&nap, NULL);
    }
  }
  return true;
}

/* Puts the number before the call. A stream whose driver does not write numbers after all goes on without. */
static void count_up(heddle_pstream *stream, uint64_t order) {
  gpu_stream_own *own = stream->own;
  if (own->writes && stream->dev->driver->stream_write(stream->handle, own->counter_at, order, 0) != 0)
    own->writes = false;
}

static int call_back(heddle_pstream *stream, gpu_signal *x) {
  const gpu_driver *driver = stream->dev->driver;
  count_up(stream, atomic_load_explicit(&x->order, memory_order_relaxed));
  if (driver->host_func != NULL) return driver->host_func(stream->handle, reached, x);
  atomic_fetch_add(&stream->own->calls, 1);
  const int code = driver->stream_callback(stream->handle, reached_with, x, 0);
  if (code != 0) atomic_fetch_sub(&stream->own->calls, 1);
  return code;
}

/* ---------------------------------------------------------------- the table */

/* Puts the call into the stream; *failed: the fence has been failed meanwhile. */
static heddle_status enqueue(heddle_pstream *stream, gpu_signal *x, const gpu_scope *scope, bool *failed,
                             heddle_error *err) {
  gpu_stream_own *own = stream->own;
  atomic_store_explicit(&x->order, ++own->signals, memory_order_relaxed);
  atomic_fetch_add(&own->armed, 1);
  atomic_store_explicit(&x->state, GPU_SIGNAL_ARMED, memory_order_release);
  const heddle_status s = gpu_stream_done(stream, scope, call_back(stream, x), "signal a fence", err);
  if (s == HEDDLE_OK) return s;
  if (move(x, GPU_SIGNAL_ARMED, GPU_SIGNAL_TAKEN)) {
    disarmed(x);
    atomic_store_explicit(&x->state, GPU_SIGNAL_FREE, memory_order_release);
  } else { /* there will be no call */
    *failed = true;
    move(x, GPU_SIGNAL_SETTLED, GPU_SIGNAL_FREE);
  }
  return s;
}

static heddle_status submit_signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, bool *failed,
                                   heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  gpu_scope scope;
  heddle_status s = gpu_stream_kept(stream, err);
  if (s != HEDDLE_OK) return s;
  if (dev->driver->host_func == NULL && dev->driver->stream_callback == NULL)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s:%u: the driver tells the host of no completions", dev->vendor->name,
                  dev->index);
  s = gpu_stream_enter_plain(stream, "signal of a fence", &scope, err);
  if (s != HEDDLE_OK) return s;
  gpu_signal *x = take(stream, err);
  s = x != NULL ? gpu_watch_begin(dev, err) : HEDDLE_ENOMEM;
  if (s == HEDDLE_OK) {
    x->fence = fence;
    x->value = value;
    return enqueue(stream, x, &scope, failed, err);
  }
  gpu_stream_leave(stream, &scope);
  return s;
}

static heddle_status fence_signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  const heddle_host *host = stream->dev->host;
  heddle_error own;
  bool failed = false;
  if (err == NULL) err = &own;
  const heddle_status s = submit_signal(stream, fence, value, &failed, err);
  if (s != HEDDLE_OK && !failed) host->fence_fail(host->ctx, fence, s, err->text); /* waiters must get the failure */
  return s;
}

const heddle_fence_table gpu_fence_table = {
    .struct_size = sizeof gpu_fence_table,
    .signal = fence_signal,
    .wait = NULL,
};
