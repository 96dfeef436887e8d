/* Streams: making, closing, waiting. A stream that is closed stays with its device and is used again once its work is
 * done, so that events, fences and the watch may name it as long as they like. Waits poll, since a driver's own waits have
 * no time limit. */
#include "plugins/common/gpu/stream.h"

#include <time.h>

#define SPIN_NS UINT64_C(20000)      /* as long as that the driver is asked without a pause */
#define FIRST_NAP_NS UINT64_C(20000) /* then with pauses that double */
#define LAST_NAP_NS UINT64_C(160000)

/* ---------------------------------------------------------------- failures */

void gpu_stream_keep(heddle_pstream *stream, const heddle_error *failure) {
  pthread_mutex_lock(&stream->lock);
  if (stream->failure.status == HEDDLE_OK) stream->failure = *failure;
  atomic_store_explicit(&stream->own->failed, true, memory_order_release);
  pthread_mutex_unlock(&stream->lock);
}

/* The failure that is kept, which is forgotten where forget is set. */
static heddle_status kept_failure(heddle_pstream *stream, bool forget, heddle_error *err) {
  if (!atomic_load_explicit(&stream->own->failed, memory_order_acquire)) return HEDDLE_OK;
  pthread_mutex_lock(&stream->lock);
  const heddle_status s = stream->failure.status;
  if (s != HEDDLE_OK && err != NULL) *err = stream->failure;
  if (forget) {
    stream->failure.status = HEDDLE_OK;
    atomic_store_explicit(&stream->own->failed, false, memory_order_relaxed);
  }
  pthread_mutex_unlock(&stream->lock);
  return s;
}

heddle_status gpu_stream_kept(heddle_pstream *stream, heddle_error *err) {
  return kept_failure(stream, false, err);
}

/* ---------------------------------------------------------------- a piece of work */

heddle_status gpu_stream_enter(heddle_pstream *stream, gpu_scope *scope, heddle_error *err) {
  heddle_status s = gpu_health(stream->dev, err);
  return s == HEDDLE_OK ? gpu_enter(stream->dev, scope, err) : s;
}

static heddle_status plain(const heddle_pstream *stream, const char *what, heddle_error *err) {
  if (!stream->capturing) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: %s inside a capture", stream->dev->vendor->name, stream->dev->index,
                what);
}

heddle_status gpu_stream_enter_plain(heddle_pstream *stream, const char *what, gpu_scope *scope, heddle_error *err) {
  heddle_status s = plain(stream, what, err);
  return s == HEDDLE_OK ? gpu_stream_enter(stream, scope, err) : s;
}

heddle_status gpu_stream_done(heddle_pstream *stream, const gpu_scope *scope, int code, const char *what,
                              heddle_error *err) {
  heddle_error own;
  if (err == NULL) err = &own;
  heddle_status s = gpu_check(stream->dev, code, what, err);
  gpu_leave(stream->dev, scope);
  if (s == HEDDLE_OK) return s;
  if (stream->capturing) gpu_capture_broken(stream->capture, err);
  else gpu_stream_keep(stream, err);
  return s;
}

/* Asks the driver, and notes a fault that it tells of. */
static bool is_lost(heddle_pdevice *dev) {
  gpu_scope scope;
  if (gpu_health(dev, NULL) != HEDDLE_OK || gpu_enter(dev, &scope, NULL) != HEDDLE_OK) return true;
  const int code = dev->driver->stream_query(dev->service);
  gpu_leave(dev, &scope);
  if (gpu_fate_of(dev, code) != GPU_LOST) return false;
  gpu_check(dev, code, "the device is lost", NULL);
  return true;
}

heddle_status gpu_stream_done_with(heddle_pstream *stream, const gpu_scope *scope, heddle_pdevice *other, int code,
                                   const char *what, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  heddle_error why;
  if (gpu_fate_of(dev, code) != GPU_LOST || other == dev || is_lost(dev) || !is_lost(other) ||
      gpu_health(other, &why) == HEDDLE_OK)
    return gpu_stream_done(stream, scope, code, what, err);
  gpu_leave(dev, scope);
  why.status = HEDDLE_EFAILED; /* this device is not lost */
  p_prefix(&why, "%s:%u: %s: ", dev->vendor->name, dev->index, what);
  if (stream->capturing) gpu_capture_broken(stream->capture, &why);
  else gpu_stream_keep(stream, &why);
  if (err != NULL) *err = why;
  return why.status;
}

/* ---------------------------------------------------------------- asking and waiting */

static heddle_status ask(heddle_pdevice *dev, void *handle, heddle_error *err) {
  gpu_scope scope;
  heddle_status s = gpu_health(dev, err);
  if (s == HEDDLE_OK) s = gpu_enter(dev, &scope, err);
  if (s != HEDDLE_OK) return s;
  const int code = dev->driver->stream_query(handle);
  if (code != 0 && dev->vendor->fate(code) == GPU_NOT_READY)
    s = p_fail(err, HEDDLE_EBUSY, 0, "%s:%u: the stream has work left", dev->vendor->name, dev->index);
  else s = gpu_check(dev, code, "work in a stream failed", err);
  gpu_leave(dev, &scope);
  return s;
}

heddle_status gpu_stream_ask(heddle_pstream *stream, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  heddle_status s = HEDDLE_OK;
  pthread_mutex_lock(&stream->own->ask);
  if (stream->own->recording)
    s = p_fail(err, HEDDLE_EBUSY, 0, "%s:%u: a capture of the stream is being recorded", dev->vendor->name, dev->index);
  else s = ask(dev, stream->handle, err);
  pthread_mutex_unlock(&stream->own->ask);
  return s;
}

/* How long to go on: false when the time is over. */
typedef struct patience {
  const heddle_host *host;
  uint64_t start, timeout_ns, nap_ns;
} patience;

static bool pause_longer(patience *p) {
  const uint64_t used = p->host->now_ns(p->host->ctx) - p->start;
  if (used >= p->timeout_ns) return false;
  if (used < SPIN_NS) return true;
  uint64_t ns = p->nap_ns;
  if (ns > p->timeout_ns - used) ns = p->timeout_ns - used;
  nanosleep(&(struct timespec){0, (long)ns}, NULL);
  if (p->nap_ns < LAST_NAP_NS) p->nap_ns *= 2;
  return true;
}

static patience patience_of(const heddle_pdevice *dev, uint64_t timeout_ns) {
  return (patience){dev->host, dev->host->now_ns(dev->host->ctx), timeout_ns, FIRST_NAP_NS};
}

static heddle_status too_late(const heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  return p_fail(err, HEDDLE_ETIMEOUT, 0, "%s:%u: work did not finish within %llu ns", dev->vendor->name, dev->index,
                (unsigned long long)timeout_ns);
}

heddle_status gpu_stream_wait(heddle_pdevice *dev, void *handle, uint64_t timeout_ns, heddle_error *err) {
  patience p = patience_of(dev, timeout_ns);
  for (;;) {
    heddle_status s = ask(dev, handle, err);
    if (s != HEDDLE_EBUSY) return s;
    if (!pause_longer(&p)) return too_late(dev, timeout_ns, err);
  }
}

heddle_status gpu_streams_idle(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  heddle_error failed = {0};
  patience p = patience_of(dev, timeout_ns);
  for (heddle_pstream *x = gpu_streams_of(dev); x != NULL;) {
    if (x->own->adopted) { /* its work is another's */
      x = x->next;
      continue;
    }
    heddle_status s = gpu_stream_ask(x, &failed);
    if (s == HEDDLE_EBUSY) {
      if (!pause_longer(&p)) return too_late(dev, timeout_ns, err);
      continue;
    }
    if (s == HEDDLE_EDEVICE) {
      if (err != NULL) *err = failed;
      return s;
    }
    if (s != HEDDLE_OK) gpu_stream_keep(x, &failed);
    x = x->next;
    p.nap_ns = FIRST_NAP_NS;
  }
  if (dev->service == NULL) return gpu_health(dev, err);
  const uint64_t used = dev->host->now_ns(dev->host->ctx) - p.start;
  const uint64_t left = timeout_ns == UINT64_MAX ? UINT64_MAX : used < timeout_ns ? timeout_ns - used : 0;
  return gpu_stream_wait(dev, dev->service, left, err);
}

/* ---------------------------------------------------------------- making and closing */

heddle_pstream *gpu_streams_of(heddle_pdevice *dev) {
  pthread_mutex_lock(&dev->lock);
  heddle_pstream *first = dev->streams;
  pthread_mutex_unlock(&dev->lock);
  return first;
}

/* Ours: 0 is normal and more is sooner; the driver's: less is sooner, and the range is asked for. Inside gpu_enter. */
static int driver_priority(heddle_pdevice *dev, int32_t priority) {
  int least = 0, greatest = 0;
  if (dev->driver->stream_priorities == NULL || dev->driver->stream_priorities(&least, &greatest) != 0) return 0;
  const int64_t wanted = -(int64_t)priority;
  return wanted < greatest ? greatest : wanted > least ? least : (int)wanted;
}

static void destroy(heddle_pstream *stream) {
  heddle_pdevice *dev = stream->dev;
  const heddle_host *host = dev->host;
  gpu_stream_own *own = stream->own;
  for (gpu_signal *x = atomic_load(&own->slots[0].next), *next; x != &own->slots[0]; x = next) {
    next = atomic_load(&x->next);
    if (x < own->slots || x >= own->slots + GPU_SIGNALS) host->free(host->ctx, x);
  }
  gpu_watch_forget(stream);
  if (stream->handle != NULL && !own->adopted) dev->driver->stream_destroy(stream->handle);
  if (own->counter != NULL) dev->driver->host_free(own->counter);
  pthread_mutex_destroy(&own->ask);
  pthread_mutex_destroy(&stream->lock);
  host->free(host->ctx, own);
  host->free(host->ctx, stream);
}

void gpu_streams_destroy(heddle_pdevice *dev) {
  while (dev->streams != NULL) {
    heddle_pstream *stream = dev->streams;
    dev->streams = stream->next;
    destroy(stream);
  }
}

/* Takes a closed stream of that priority, or leaves it. */
static bool claim(heddle_pstream *stream, int priority, bool adopted) {
  gpu_stream_own *own = stream->own;
  pthread_mutex_lock(&stream->dev->lock);
  const bool mine =
      own->closed && own->adopted == adopted && own->priority == priority && atomic_load(&own->armed) == 0;
  if (mine) own->closed = false;
  pthread_mutex_unlock(&stream->dev->lock);
  return mine;
}

static void give_up(heddle_pstream *stream) {
  pthread_mutex_lock(&stream->dev->lock);
  stream->own->closed = true;
  pthread_mutex_unlock(&stream->dev->lock);
}

/* A closed stream of that priority whose work is done, without failure; NULL: none. */
static heddle_pstream *take_closed(heddle_pdevice *dev, int priority) {
  for (heddle_pstream *x = gpu_streams_of(dev); x != NULL; x = x->next) {
    if (!claim(x, priority, false)) continue;
    if (gpu_stream_ask(x, NULL) == HEDDLE_OK) {
      kept_failure(x, true, NULL);
      gpu_watch_forget(x);
      return x;
    }
    give_up(x);
  }
  return NULL;
}

static heddle_status new_record(heddle_pdevice *dev, int priority, heddle_pstream **out, heddle_error *err) {
  const heddle_host *host = dev->host;
  void *stream_memory = NULL, *own_memory = NULL;
  heddle_status s = gpu_new(host, sizeof **out, "a stream", &stream_memory, err);
  if (s != HEDDLE_OK) return s;
  s = gpu_new(host, sizeof(gpu_stream_own), "a stream", &own_memory, err);
  if (s != HEDDLE_OK) {
    host->free(host->ctx, stream_memory);
    return s;
  }
  heddle_pstream *stream = stream_memory;
  gpu_stream_own *own = own_memory;
  stream->dev = dev;
  stream->own = own;
  own->priority = priority;
  for (uint32_t i = 0; i < GPU_SIGNALS; i++) {
    own->slots[i].stream = stream;
    atomic_init(&own->slots[i].next, &own->slots[(i + 1) % GPU_SIGNALS]);
  }
  own->turn = &own->slots[0];
  own->last = &own->slots[GPU_SIGNALS - 1];
  const bool locked = pthread_mutex_init(&stream->lock, NULL) == 0;
  if (locked && pthread_mutex_init(&own->ask, NULL) == 0) {
    *out = stream;
    return HEDDLE_OK;
  }
  if (locked) pthread_mutex_destroy(&stream->lock);
  host->free(host->ctx, own);
  host->free(host->ctx, stream);
  return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no lock for a stream", dev->vendor->name, dev->index);
}

/* Pinned memory that the stream's signals count in; without it the driver's calls are all there is. Inside gpu_enter. */
static void make_counter(heddle_pstream *stream) {
  const heddle_pdevice *dev = stream->dev;
  const gpu_driver *d = dev->driver;
  gpu_stream_own *own = stream->own;
  void *memory = NULL;
  if (!dev->self->counters || !dev->info->maps_host || d->stream_write == NULL || d->host_address == NULL ||
      d->host_alloc(&memory, sizeof *own->counter, GPU_HOST_PORTABLE | GPU_HOST_MAPPED) != 0)
    return;
  if (d->host_address(&own->counter_at, memory, 0) != 0) {
    d->host_free(memory);
    return;
  }
  own->counter = memory;
  atomic_init(own->counter, 0);
  own->writes = true;
}

static void enlist(heddle_pstream *stream) {
  heddle_pdevice *dev = stream->dev;
  pthread_mutex_lock(&dev->lock);
  stream->number = dev->streams != NULL ? dev->streams->number + 1 : 1;
  stream->next = dev->streams;
  dev->streams = stream;
  pthread_mutex_unlock(&dev->lock);
}

/* Inside gpu_enter. */
static heddle_status make_new(heddle_pdevice *dev, int priority, heddle_pstream **out, heddle_error *err) {
  heddle_pstream *stream = NULL;
  heddle_status s = new_record(dev, priority, &stream, err);
  if (s != HEDDLE_OK) return s;
  const int code = dev->driver->stream_create(&stream->handle, GPU_STREAM_NON_BLOCKING, priority);
  if (code != 0) {
    stream->handle = NULL;
    s = gpu_check(dev, code, "make a stream", err);
    destroy(stream);
    return s;
  }
  make_counter(stream);
  enlist(stream);
  *out = stream;
  return HEDDLE_OK;
}

static heddle_status stream_create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                                   heddle_error *err) {
  gpu_scope scope;
  heddle_status s = gpu_health(dev, err);
  if (kind > HEDDLE_STREAM_COPY)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: no stream of kind %u", dev->vendor->name, dev->index, kind);
  if (s == HEDDLE_OK) s = gpu_enter(dev, &scope, err);
  if (s != HEDDLE_OK) return s;
  const int sooner = driver_priority(dev, priority);
  heddle_pstream *stream = take_closed(dev, sooner);
  if (stream == NULL) s = make_new(dev, sooner, &stream, err);
  gpu_leave(dev, &scope);
  if (s != HEDDLE_OK) return s;
  gpu_count(&dev->live_objects, 1);
  *out = stream;
  return HEDDLE_OK;
}

/* Whether a stream of others is of the device, as far as the driver can tell. Inside gpu_enter. */
static heddle_status check_owner(heddle_pdevice *dev, void *handle, heddle_error *err) {
  const char *name = dev->vendor->name;
  void *context = NULL;
  int device = dev->info->device;
  if (dev->driver->stream_device != NULL) {
    heddle_status s = gpu_check(dev, dev->driver->stream_device(handle, &device), "ask a stream for its device", err);
    if (s != HEDDLE_OK) return s;
  }
  if (device != dev->info->device)
    return p_fail(err, HEDDLE_EINVAL, 0,
                  "the stream is of device %d of the driver's, not of %s:%u, which is its device %d", device, name,
                  dev->index, dev->info->device);
  if (dev->driver->stream_context == NULL) return HEDDLE_OK;
  heddle_status s = gpu_check(dev, dev->driver->stream_context(handle, &context), "ask a stream for its context", err);
  if (s != HEDDLE_OK || context == dev->context) return s;
  device = dev->vendor->context_device != NULL ? dev->vendor->context_device(dev, context) : -1;
  if (device >= 0 && device != dev->info->device)
    return p_fail(err, HEDDLE_EINVAL, 0,
                  "the stream is of device %d of the driver's, not of %s:%u, which is its device %d", device, name,
                  dev->index, dev->info->device);
  return p_fail(err, HEDDLE_EINVAL, 0,
                "the stream of %s:%u is in another context than Heddle's%s, with which it shares no events: use the "
                "device's primary context",
                name, dev->index, dev->apart ? ", which is its own" : "");
}

static heddle_pstream *take_adopted(heddle_pdevice *dev) {
  for (heddle_pstream *x = gpu_streams_of(dev); x != NULL; x = x->next)
    if (claim(x, 0, true)) return x;
  return NULL;
}

static heddle_status stream_adopt(heddle_pdevice *dev, uint64_t handle, heddle_pstream **out, heddle_error *err) {
  gpu_scope scope;
  void *theirs = (void *)(uintptr_t)handle;
  if (dev->self->adopt_own) theirs = ((heddle_pstream *)theirs)->handle;
  heddle_status s = gpu_health(dev, err);
  if (s == HEDDLE_OK) s = gpu_enter(dev, &scope, err);
  if (s != HEDDLE_OK) return s;
  s = check_owner(dev, theirs, err);
  gpu_leave(dev, &scope);
  if (s != HEDDLE_OK) return s;
  heddle_pstream *stream = take_adopted(dev);
  if (stream == NULL) {
    s = new_record(dev, 0, &stream, err);
    if (s != HEDDLE_OK) return s;
    stream->own->adopted = true;
    enlist(stream);
  }
  stream->handle = theirs;
  kept_failure(stream, true, NULL);
  gpu_count(&dev->live_objects, 1);
  *out = stream;
  return HEDDLE_OK;
}

static void stream_close(heddle_pstream *stream) {
  gpu_scope scope;
  if (stream == NULL) return;
  heddle_pdevice *dev = stream->dev;
  if (stream->capturing) {
    const bool entered = gpu_enter(dev, &scope, NULL) == HEDDLE_OK;
    gpu_capture_abandon(stream);
    if (entered) gpu_leave(dev, &scope);
  }
  gpu_count(&dev->live_objects, -1);
  give_up(stream); /* what is in it goes on; device.idle waits for it */
}

/* ---------------------------------------------------------------- using */

static heddle_status stream_submit(heddle_pstream *stream, heddle_error *err) {
  heddle_status s = plain(stream, "submit", err); /* the driver has all work at once */
  return s == HEDDLE_OK ? gpu_health(stream->dev, err) : s;
}

static heddle_status stream_sync(heddle_pstream *stream, uint64_t timeout_ns, heddle_error *err) {
  heddle_error own;
  if (err == NULL) err = &own;
  heddle_status s = plain(stream, "sync", err);
  if (s == HEDDLE_OK) s = gpu_stream_wait(stream->dev, stream->handle, timeout_ns, err);
  if (s == HEDDLE_EINVAL || s == HEDDLE_ETIMEOUT || s == HEDDLE_EDEVICE) return s;
  gpu_watch_forget(stream);
  const heddle_status kept = kept_failure(stream, true, err);
  return kept != HEDDLE_OK ? kept : s;
}

static heddle_status stream_query(heddle_pstream *stream, heddle_error *err) {
  heddle_status s = gpu_health(stream->dev, err);
  if (s != HEDDLE_OK) return s;
  if (gpu_signals_poll(stream)) /* no need to ask the driver */
    return p_fail(err, HEDDLE_EBUSY, 0, "%s:%u: the stream has work left", stream->dev->vendor->name,
                  stream->dev->index);
  s = gpu_stream_ask(stream, err);
  return s == HEDDLE_OK ? kept_failure(stream, false, err) : s;
}

const heddle_stream_table gpu_stream_table = {
    .struct_size = sizeof gpu_stream_table,
    .close = stream_close,
    .create = stream_create,
    .submit = stream_submit,
    .sync = stream_sync,
    .query = stream_query,
    .adopt = stream_adopt,
};
