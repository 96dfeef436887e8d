/* Times: a slot of a timer is an event with a time. The drivers only tell the difference between two events, as a float of
 * milliseconds, so a device's clock counts nanoseconds from an event of its own, and moves on to a newer one before the
 * difference becomes coarse. */
#include "plugins/common/gpu/stream.h"

#define FAR_MS 1000.0F                /* here a float of milliseconds is still exact to 60 ns */
#define START_NS UINT64_C(1000000000) /* of the clock's first event: marks of before are not negative */
#define WAIT_NS UINT64_C(10000000000)

/* Guarded by the lock of gpu_watch_clock. */
struct gpu_clock {
  void *stream; /* nothing else is in it */
  void *base;   /* an event at base_ns */
  void *probe;  /* recorded at each calibration */
  uint64_t base_ns;
};

struct heddle_ptimer {
  heddle_pdevice *dev;
  uint32_t slots, made; /* made: slots with an event */
  struct gpu_mark {
    void *event;
    atomic_bool marked;
    atomic_bool recorded; /* by a capture only: until a replay gets there the driver has no time for it */
  } marks[];
};

/* ---------------------------------------------------------------- the clock */

void gpu_clock_destroy(heddle_pdevice *dev, gpu_clock *clock) {
  if (clock == NULL) return;
  if (clock->base != NULL) dev->driver->event_destroy(clock->base);
  if (clock->probe != NULL) dev->driver->event_destroy(clock->probe);
  if (clock->stream != NULL) dev->driver->stream_destroy(clock->stream);
  dev->host->free(dev->host->ctx, clock);
}

/* Records an event in the clock's stream and waits for it; before and after are the host's times around. */
static heddle_status probe(heddle_pdevice *dev, gpu_clock *clock, void *event, uint64_t *before, uint64_t *after,
                           heddle_error *err) {
  const heddle_host *host = dev->host;
  *before = host->now_ns(host->ctx);
  heddle_status s = gpu_check(dev, dev->driver->event_record(event, clock->stream), "record a time", err);
  if (s == HEDDLE_OK) s = gpu_stream_wait(dev, clock->stream, WAIT_NS, err);
  *after = host->now_ns(host->ctx);
  return s;
}

static int make_parts(heddle_pdevice *dev, gpu_clock *clock) {
  const gpu_driver *d = dev->driver;
  int code = d->stream_create(&clock->stream, GPU_STREAM_NON_BLOCKING, 0);
  if (code != 0) {
    clock->stream = NULL;
    return code;
  }
  code = d->event_create(&clock->base, 0);
  if (code != 0) {
    clock->base = NULL;
    return code;
  }
  code = d->event_create(&clock->probe, 0);
  if (code != 0) clock->probe = NULL;
  return code;
}

/* The device's clock, made where there is none. Its lock is held; inside gpu_enter. */
static heddle_status clock_of(heddle_pdevice *dev, gpu_clock **at, heddle_error *err) {
  uint64_t before = 0, after = 0;
  void *memory = NULL;
  if (*at != NULL) return HEDDLE_OK;
  heddle_status s = gpu_new(dev->host, sizeof **at, "a clock", &memory, err);
  if (s != HEDDLE_OK) return s;
  gpu_clock *clock = memory;
  clock->base_ns = START_NS;
  s = gpu_check(dev, make_parts(dev, clock), "make a clock", err);
  if (s == HEDDLE_OK) s = probe(dev, clock, clock->base, &before, &after, err);
  if (s == HEDDLE_OK) *at = clock;
  else gpu_clock_destroy(dev, clock);
  return s;
}

/* Nanoseconds from a difference that may be negative. */
static uint64_t at_difference(uint64_t base_ns, float ms) {
  const double ns = (double)base_ns + (double)ms * 1e6;
  return ns > 0 ? (uint64_t)ns : 0;
}

/* The clock's time now, around which the host's were before and after; moves the base on where that is far away. */
static heddle_status now(heddle_pdevice *dev, gpu_clock *clock, uint64_t *before, uint64_t *after, uint64_t *ns,
                         heddle_error *err) {
  float ms = 0;
  heddle_status s = probe(dev, clock, clock->probe, before, after, err);
  if (s == HEDDLE_OK)
    s = gpu_check(dev, dev->driver->event_elapsed(&ms, clock->base, clock->probe), "read a time", err);
  if (s != HEDDLE_OK) return s;
  *ns = at_difference(clock->base_ns, ms);
  if (ms < FAR_MS) return HEDDLE_OK;
  void *old = clock->base;
  clock->base = clock->probe;
  clock->base_ns = *ns;
  clock->probe = old;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- timers */

static void times_free(heddle_ptimer *timer) {
  gpu_scope scope;
  if (timer == NULL) return;
  heddle_pdevice *dev = timer->dev;
  if (gpu_enter(dev, &scope, NULL) == HEDDLE_OK) {
    for (uint32_t i = 0; i < timer->made; i++) dev->driver->event_destroy(timer->marks[i].event);
    gpu_leave(dev, &scope);
  }
  gpu_count(&dev->live_objects, -1);
  dev->host->free(dev->host->ctx, timer);
}

static heddle_status times_create(heddle_pdevice *dev, uint32_t slots, heddle_ptimer **out, heddle_error *err) {
  pthread_mutex_t *lock = NULL;
  gpu_clock **clock = gpu_watch_clock(dev, &lock);
  gpu_scope scope;
  void *memory = NULL;
  heddle_status s = gpu_health(dev, err);
  if (s == HEDDLE_OK)
    s = gpu_new(dev->host, sizeof **out + slots * (uint64_t)sizeof(struct gpu_mark), "a timer", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_ptimer *timer = memory;
  timer->dev = dev;
  timer->slots = slots;
  gpu_count(&dev->live_objects, 1);
  s = gpu_enter(dev, &scope, err);
  if (s == HEDDLE_OK) {
    pthread_mutex_lock(lock);
    s = clock_of(dev, clock, err);
    pthread_mutex_unlock(lock);
    while (s == HEDDLE_OK && timer->made < slots) {
      s = gpu_check(dev, dev->driver->event_create(&timer->marks[timer->made].event, 0), "make a timer", err);
      if (s == HEDDLE_OK) timer->made++;
    }
    gpu_leave(dev, &scope);
  }
  if (s == HEDDLE_OK) *out = timer;
  else times_free(timer);
  return s;
}

/* In a capture an event that is to be read outside needs a call of its own, which not every driver has. */
static heddle_status can_mark(const heddle_pstream *stream, const heddle_ptimer *timer, uint32_t slot,
                              heddle_error *err) {
  const heddle_pdevice *dev = stream->dev;
  if (timer->dev != dev || slot >= timer->slots)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: mark of slot %u: no such slot, or no timer of this device",
                  dev->vendor->name, dev->index, slot);
  if (stream->capturing && dev->driver->event_record_flags == NULL)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s:%u: the driver takes no times inside a capture", dev->vendor->name,
                  dev->index);
  return HEDDLE_OK;
}

static heddle_status times_mark(heddle_pstream *stream, heddle_ptimer *timer, uint32_t slot, heddle_error *err) {
  const gpu_driver *driver = stream->dev->driver;
  gpu_scope scope;
  heddle_status s = can_mark(stream, timer, slot, err);
  if (s == HEDDLE_OK) s = gpu_stream_enter(stream, &scope, err);
  if (s != HEDDLE_OK) return s;
  void *event = timer->marks[slot].event;
  const int code = stream->capturing ? driver->event_record_flags(event, stream->handle, GPU_EVENT_EXTERNAL)
                                     : driver->event_record(event, stream->handle);
  if (code == 0) {
    const bool before = atomic_exchange(&timer->marks[slot].marked, true);
    atomic_store(&timer->marks[slot].recorded, stream->capturing && (!before || timer->marks[slot].recorded));
  }
  return gpu_stream_done(stream, &scope, code, "mark a time", err);
}

/* One slot. The clock's lock is held; inside gpu_enter. */
static heddle_status time_of(heddle_pdevice *dev, gpu_clock *clock, const heddle_ptimer *timer, uint32_t slot,
                             uint64_t *out, heddle_error *err) {
  void *event = timer->marks[slot].event;
  uint64_t before = 0, after = 0, ns = 0;
  float ms = 0;
  if (!atomic_load_explicit(&timer->marks[slot].marked, memory_order_relaxed))
    return p_fail(err, HEDDLE_EBUSY, 0, "%s:%u: slot %u was never marked", dev->vendor->name, dev->index, slot);
  int code = dev->driver->event_query(event);
  if (code != 0 && dev->vendor->fate(code) == GPU_NOT_READY)
    return p_fail(err, HEDDLE_EBUSY, code, "%s:%u: no stream has reached slot %u of the timer yet", dev->vendor->name,
                  dev->index, slot);
  if (code == 0) code = dev->driver->event_elapsed(&ms, clock->base, event);
  if (code != 0 && dev->vendor->fate(code) == GPU_FAILED && atomic_load(&timer->marks[slot].recorded))
    return p_fail(err, HEDDLE_EBUSY, code, "%s:%u: no replay has reached slot %u of the timer yet", dev->vendor->name,
                  dev->index, slot);
  heddle_status s = gpu_check(dev, code, "read a time", err);
  if (s == HEDDLE_OK && ms > FAR_MS) { /* coarse: from a base that is nearer */
    s = now(dev, clock, &before, &after, &ns, err);
    if (s == HEDDLE_OK) s = gpu_check(dev, dev->driver->event_elapsed(&ms, clock->base, event), "read a time", err);
  }
  if (s == HEDDLE_OK) *out = at_difference(clock->base_ns, ms);
  return s;
}

static heddle_status times_read(heddle_ptimer *timer, uint32_t first, uint32_t count, uint64_t *out_ns,
                                heddle_error *err) {
  heddle_pdevice *dev = timer->dev;
  pthread_mutex_t *lock = NULL;
  gpu_clock **clock = gpu_watch_clock(dev, &lock);
  gpu_scope scope;
  heddle_status s = gpu_health(dev, err);
  if (s != HEDDLE_OK) return s;
  if (first > timer->slots || count > timer->slots - first)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: times %u and %u more asked of a timer with %u", dev->vendor->name,
                  dev->index, first, count, timer->slots);
  s = gpu_enter(dev, &scope, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(lock);
  for (uint32_t i = 0; i < count && s == HEDDLE_OK; i++) s = time_of(dev, *clock, timer, first + i, &out_ns[i], err);
  pthread_mutex_unlock(lock);
  gpu_leave(dev, &scope);
  return s;
}

static heddle_status times_calibrate(heddle_pdevice *dev, uint64_t *device_ns, uint64_t *host_ns, heddle_error *err) {
  pthread_mutex_t *lock = NULL;
  gpu_clock **clock = gpu_watch_clock(dev, &lock);
  gpu_scope scope;
  uint64_t before = 0, after = 0, ns = 0;
  heddle_status s = gpu_health(dev, err);
  if (s == HEDDLE_OK) s = gpu_enter(dev, &scope, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(lock);
  s = clock_of(dev, clock, err);
  if (s == HEDDLE_OK) s = now(dev, *clock, &before, &after, &ns, err);
  pthread_mutex_unlock(lock);
  gpu_leave(dev, &scope);
  if (s != HEDDLE_OK) return s;
  *device_ns = ns;
  *host_ns = before + (after - before) / 2;
  return HEDDLE_OK;
}

const heddle_timing_table gpu_timing_table = {
    .struct_size = sizeof gpu_timing_table,
    .free = times_free,
    .create = times_create,
    .mark = times_mark,
    .read = times_read,
    .calibrate = times_calibrate,
};
