/* The watch of a device: after a fault a driver makes no more host functions, so a thread of each device looks every few
 * milliseconds whether streams with fences under way still run, and fails those fences when the device is lost. It fails
 * those too whose stream waited for another device that is lost. It starts with the first fence, and sleeps where none is
 * under way. */
#include "plugins/common/gpu/stream.h"

#include <signal.h>
#include <time.h>

#define POLL_NS 4000000
enum { LINGER = 64 /* polls with nothing under way before the thread sleeps: a run does not wake it each time */ };

struct gpu_watch {
  const heddle_host *host;
  heddle_pdevice *dev; /* not to be used by those that hold a reference from other devices */
  atomic_uint users;   /* the device, and each wait of another device's stream */
  atomic_bool lost;    /* fault is set, for good */
  heddle_error fault;
  atomic_uint armed;     /* fences under way */
  pthread_mutex_t lock;  /* guards started and stop; a leaf */
  pthread_cond_t change; /* of stop, and of armed while asleep */
  atomic_bool started, asleep;
  bool stop;
  pthread_t thread;
  pthread_mutex_t clock_lock; /* guards clock; the driver is called with it held */
  gpu_clock *clock;
};

/* ---------------------------------------------------------------- looking */

static void drop(gpu_watch *w) {
  const heddle_host *host = w->host;
  if (atomic_fetch_sub(&w->users, 1) > 1) return;
  pthread_mutex_destroy(&w->clock_lock);
  pthread_cond_destroy(&w->change);
  pthread_mutex_destroy(&w->lock);
  host->free(host->ctx, w);
}

/* Takes entry i out of the stream's waits; its lock is held. */
static void forget(gpu_stream_own *own, uint32_t i) {
  const uint32_t last = atomic_load_explicit(&own->n_waits, memory_order_relaxed) - 1;
  drop(own->waits[i].on);
  own->waits[i] = own->waits[last];
  atomic_store_explicit(&own->n_waits, last, memory_order_release);
}

void gpu_watch_heed(heddle_pstream *stream) {
  gpu_stream_own *own = stream->own;
  heddle_error why = {0};
  uint64_t from = UINT64_MAX;
  if (atomic_load_explicit(&own->n_waits, memory_order_acquire) == 0) return;
  pthread_mutex_lock(&stream->lock);
  for (uint32_t i = 0; i < atomic_load(&own->n_waits);) {
    const gpu_wait *x = &own->waits[i];
    if (!atomic_load_explicit(&x->on->lost, memory_order_acquire)) {
      i++;
      continue;
    }
    if (x->behind > atomic_load(&own->reached)) { /* else it was passed before */
      if (why.status == HEDDLE_OK) why = x->on->fault;
      if (x->behind < from) from = x->behind;
    }
    forget(own, i);
  }
  pthread_mutex_unlock(&stream->lock);
  if (why.status == HEDDLE_OK) return;
  why.status = HEDDLE_EFAILED; /* this device is not lost */
  p_prefix(&why, "%s:%u waited for an event whose work failed: ", stream->dev->vendor->name, stream->dev->index);
  const uint64_t last = gpu_signals_last(stream);
  gpu_stream_keep(stream, &why);
  gpu_signals_fail(stream, from, last, &why);
}

static void look_at(heddle_pstream *stream) {
  gpu_stream_own *own = stream->own;
  heddle_error failed = {0};
  if (atomic_load(&own->armed) == 0) return;
  gpu_watch_heed(stream);
  const uint64_t reached = atomic_load(&own->reached);
  if (own->polled != reached) { /* it gets on */
    own->polled = reached;
    return;
  }
  const heddle_status s = gpu_stream_ask(stream, &failed);
  if (s == HEDDLE_OK || s == HEDDLE_EBUSY || s == HEDDLE_EDEVICE) return; /* EDEVICE: look comes to that */
  const uint64_t last = gpu_signals_last(stream);
  gpu_stream_keep(stream, &failed);
  gpu_signals_fail(stream, 0, last, &failed);
}

static void look(gpu_watch *w) {
  heddle_pstream *first = gpu_streams_of(w->dev);
  for (heddle_pstream *x = first; x != NULL && !atomic_load(&w->lost); x = x->next) look_at(x);
  if (!atomic_load_explicit(&w->lost, memory_order_acquire)) return;
  for (heddle_pstream *x = first; x != NULL; x = x->next) gpu_signals_fail(x, 0, UINT64_MAX, &w->fault);
}

/* Else a question of this thread's would break a capture that the program records for itself in mode GLOBAL. */
static void leave_captures_alone(const gpu_watch *w) {
  int mode = GPU_CAPTURE_RELAXED;
  if (w->dev->driver->thread_capture_mode != NULL) w->dev->driver->thread_capture_mode(&mode);
}

static void *run_watch(void *arg) {
  gpu_watch *w = arg;
  uint32_t quiet = 0;
  leave_captures_alone(w);
  pthread_mutex_lock(&w->lock);
  while (!w->stop) {
    struct timespec until;
    if (quiet >= LINGER) {
      atomic_store(&w->asleep, true); /* before armed is read: a thread that arms then wakes us */
      if (atomic_load(&w->armed) == 0) pthread_cond_wait(&w->change, &w->lock);
      atomic_store(&w->asleep, false);
      quiet = 0;
      continue;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += POLL_NS;
    if (until.tv_nsec >= 1000000000) {
      until.tv_nsec -= 1000000000;
      until.tv_sec++;
    }
    pthread_cond_timedwait(&w->change, &w->lock, &until);
    if (w->stop) break;
    quiet = atomic_load(&w->armed) > 0 ? 0 : quiet + 1;
    if (quiet > 0) continue;
    pthread_mutex_unlock(&w->lock);
    look(w);
    pthread_mutex_lock(&w->lock);
  }
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

/* ---------------------------------------------------------------- fences under way */

static heddle_status start(gpu_watch *w, heddle_error *err) {
  sigset_t all, before;
  int failed = 0;
  pthread_mutex_lock(&w->lock);
  if (!atomic_load(&w->started)) {
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&w->thread, NULL, run_watch, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    atomic_store_explicit(&w->started, failed == 0, memory_order_release);
  }
  pthread_mutex_unlock(&w->lock);
  if (failed == 0) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EFAILED, failed, "%s:%u: no thread to watch the device", w->dev->vendor->name,
                w->dev->index);
}

heddle_status gpu_watch_begin(heddle_pdevice *dev, heddle_error *err) {
  gpu_watch *w = dev->watch;
  if (!atomic_load_explicit(&w->started, memory_order_acquire)) {
    heddle_status s = start(w, err);
    if (s != HEDDLE_OK) return s;
  }
  atomic_fetch_add(&w->armed, 1);
  if (atomic_load(&w->asleep)) {
    pthread_mutex_lock(&w->lock);
    pthread_cond_signal(&w->change);
    pthread_mutex_unlock(&w->lock);
  }
  return HEDDLE_OK;
}

void gpu_watch_end(heddle_pdevice *dev) {
  atomic_fetch_sub(&dev->watch->armed, 1);
}

void gpu_watch_fault(heddle_pdevice *dev, const heddle_error *fault) {
  gpu_watch *w = dev->watch;
  if (w == NULL) return;
  pthread_mutex_lock(&w->lock);
  const bool first = !atomic_load(&w->lost);
  if (first) {
    w->fault = *fault;
    atomic_store_explicit(&w->lost, true, memory_order_release);
  }
  pthread_mutex_unlock(&w->lock);
  if (!first) return;
  for (heddle_pstream *x = gpu_streams_of(dev); x != NULL; x = x->next) gpu_signals_fail(x, 0, UINT64_MAX, fault);
}

/* ---------------------------------------------------------------- waits for other devices */

heddle_status gpu_watch_wait(heddle_pstream *stream, heddle_pdevice *on, heddle_error *err) {
  gpu_stream_own *own = stream->own;
  uint32_t i = 0;
  pthread_mutex_lock(&stream->lock);
  while (i < atomic_load(&own->n_waits) && own->waits[i].on != on->watch) {
    if (own->waits[i].behind <= atomic_load(&own->reached)) forget(own, i);
    else i++;
  }
  if (i == GPU_WAITS) {
    pthread_mutex_unlock(&stream->lock);
    return p_fail(err, HEDDLE_ELIMIT, 0, "%s:%u: a stream waits for more than %d devices", stream->dev->vendor->name,
                  stream->dev->index, GPU_WAITS);
  }
  if (i == atomic_load(&own->n_waits)) {
    atomic_fetch_add(&on->watch->users, 1);
    own->waits[i].on = on->watch;
    atomic_store_explicit(&own->n_waits, i + 1, memory_order_release);
  }
  own->waits[i].behind = own->signals + 1;
  pthread_mutex_unlock(&stream->lock);
  return HEDDLE_OK;
}

void gpu_watch_forget(heddle_pstream *stream) {
  gpu_stream_own *own = stream->own;
  if (atomic_load_explicit(&own->n_waits, memory_order_acquire) == 0) return;
  pthread_mutex_lock(&stream->lock);
  while (atomic_load(&own->n_waits) > 0) forget(own, 0);
  pthread_mutex_unlock(&stream->lock);
}

/* ---------------------------------------------------------------- opening and closing */

heddle_status gpu_watch_open(heddle_pdevice *dev, heddle_error *err) {
  pthread_condattr_t monotonic;
  void *memory = NULL;
  heddle_status s = gpu_new(dev->host, sizeof(gpu_watch), "a watch", &memory, err);
  if (s != HEDDLE_OK) return s;
  gpu_watch *w = memory;
  w->host = dev->host;
  w->dev = dev;
  atomic_init(&w->users, 1);
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  const bool locks = pthread_mutex_init(&w->lock, NULL) == 0 && pthread_mutex_init(&w->clock_lock, NULL) == 0 &&
                     pthread_cond_init(&w->change, &monotonic) == 0;
  pthread_condattr_destroy(&monotonic);
  if (!locks) { /* on this system they hold nothing that would have to be given back */
    dev->host->free(dev->host->ctx, w);
    return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no lock for a watch", dev->vendor->name, dev->index);
  }
  dev->watch = w;
  return HEDDLE_OK;
}

void gpu_watch_close(heddle_pdevice *dev) {
  gpu_watch *w = dev->watch;
  gpu_scope scope;
  if (w == NULL) return;
  if (atomic_load(&w->started)) {
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_signal(&w->change);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
  }
  const bool entered = gpu_enter(dev, &scope, NULL) == HEDDLE_OK;
  gpu_streams_destroy(dev);
  gpu_clock_destroy(dev, w->clock);
  w->clock = NULL;
  if (entered) gpu_leave(dev, &scope);
  dev->watch = NULL;
  drop(w);
}

gpu_clock **gpu_watch_clock(heddle_pdevice *dev, pthread_mutex_t **lock) {
  *lock = &dev->watch->clock_lock;
  return &dev->watch->clock;
}
