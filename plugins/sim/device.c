/* Devices: open, close, the sticky fault, waiting until all is quiet, and the memory that is kept until then. */
#include "stream.h"

#include <time.h>

#define CLOSE_FINISH_NS UINT64_C(500000000) /* how long close lets work finish */
#define CLOSE_END_NS UINT64_C(500000000)    /* and how long threads may take to end after that */

int sim_cond_init(pthread_cond_t *cond) {
  pthread_condattr_t attr;
  int failed = pthread_condattr_init(&attr);
  if (failed != 0) return failed;
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  failed = pthread_cond_init(cond, &attr);
  pthread_condattr_destroy(&attr);
  return failed;
}

struct timespec sim_deadline(uint64_t timeout_ns) {
  struct timespec now;
  const uint64_t far = UINT64_C(3600000000000) * 24 * 365 * 100;
  if (timeout_ns > far) timeout_ns = far;
  clock_gettime(CLOCK_MONOTONIC, &now);
  uint64_t ns = (uint64_t)now.tv_nsec + timeout_ns;
  now.tv_sec += (time_t)(ns / 1000000000u);
  now.tv_nsec = (long)(ns % 1000000000u);
  return now;
}

/* ---- the fault ---- */

heddle_status sim_device_check(heddle_pdevice *dev, heddle_error *err) {
  if (dev == NULL || dev->magic != SIM_MAGIC_DEVICE)
    return p_fail(err, HEDDLE_EINVAL, 0, "the handle is no open device of sim");
  if (!atomic_load_explicit(&dev->faulted, memory_order_acquire)) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EDEVICE, dev->fault.api_code, "%s", dev->fault.text);
}

void sim_device_fault(heddle_pdevice *dev, int32_t api_code, const char *text) {
  pthread_mutex_lock(&dev->lock);
  bool first = !atomic_load(&dev->faulted);
  if (first) {
    dev->fault.status = HEDDLE_EDEVICE;
    dev->fault.api_code = api_code;
    snprintf(dev->fault.text, sizeof dev->fault.text, "%s", text);
    atomic_store_explicit(&dev->faulted, true, memory_order_release);
    pthread_cond_broadcast(&dev->changed);
  }
  pthread_mutex_unlock(&dev->lock);
  if (first) dev->host->device_fault(dev->host->ctx, dev->cookie, api_code, dev->fault.text);
}

/* ---- memory that is kept ---- */

/* dev->lock is held. */
static bool busy(heddle_pdevice *dev) {
  for (heddle_pstream *s = dev->streams; s != NULL; s = s->next)
    if (sim_stream_busy(s)) return true;
  return false;
}

static void destroy_all(const heddle_host *host, sim_retired *item) {
  while (item != NULL) {
    sim_retired *next = item->next;
    item->destroy(host, item);
    item = next;
  }
}

void sim_retire(heddle_pdevice *dev, sim_retired *item) {
  bool trouble = atomic_load(&dev->hung) || atomic_load(&dev->detached) || atomic_load(&dev->faulted);
  if (trouble) {
    pthread_mutex_lock(&dev->lock);
    trouble = busy(dev);
    if (trouble) {
      item->next = dev->retired;
      dev->retired = item;
    }
    pthread_mutex_unlock(&dev->lock);
  }
  if (!trouble) item->destroy(dev->host, item);
}

static void destroy_retired(heddle_pdevice *dev) {
  pthread_mutex_lock(&dev->lock);
  sim_retired *items = dev->retired;
  dev->retired = NULL;
  pthread_mutex_unlock(&dev->lock);
  destroy_all(dev->host, items);
}

/* ---- open ---- */

static heddle_status device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  heddle_status status = sim_index_check(self, index, err);
  if (status == HEDDLE_OK) status = sim_enter_pure(self, index, SIM_CALL_OPEN, err);
  if (status != HEDDLE_OK) return status;
  const heddle_host *host = self->host;
  heddle_pdevice *dev = sim_alloc(host, sizeof *dev);
  if (dev == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "sim:%u: no memory to open it", index);
  dev->index = index;
  dev->self = self;
  dev->host = host;
  dev->settings = self->settings;
  dev->counts = &self->counts;
  status = sim_settings_override(&dev->settings, options, err);
  if (status == HEDDLE_OK && pthread_mutex_init(&dev->lock, NULL) != 0)
    status = p_fail(err, HEDDLE_ENOMEM, 0, "sim:%u: no lock", index);
  if (status != HEDDLE_OK) {
    host->free(host->ctx, dev);
    return status;
  }
  if (sim_cond_init(&dev->changed) != 0) {
    pthread_mutex_destroy(&dev->lock);
    host->free(host->ctx, dev);
    return p_fail(err, HEDDLE_ENOMEM, 0, "sim:%u: no condition", index);
  }
  if (memcmp(dev->settings.rules, self->settings.rules, sizeof dev->settings.rules) != 0)
    dev->counts = &dev->own_counts;
  if (HEDDLE_HAS(heddle_pdevice_options, options, cookie)) dev->cookie = options->cookie;
  dev->clock_offset_ns = sim_mix(dev->settings.seed * SIM_MAX_DEVICES + index) >> 16;
  dev->event_domain = self->settings.event_domains ? index + 1 : 1;
  dev->magic = SIM_MAGIC_DEVICE;
  atomic_fetch_add(&self->open_devices[index], 1);
  *out = dev;
  return HEDDLE_OK;
}

/* ---- idle and close ---- */

/* Waits for all streams; the deadline is one for all. HEDDLE_ETIMEOUT when it passes. */
static heddle_status wait_streams(heddle_pdevice *dev, uint64_t timeout_ns, bool give_up_hung) {
  const heddle_host *host = dev->host;
  uint64_t start = host->now_ns(host->ctx);
  heddle_status status = HEDDLE_OK;
  pthread_mutex_lock(&dev->lock);
  heddle_pstream *s = dev->streams; /* streams are put in front and none leaves the list before close */
  pthread_mutex_unlock(&dev->lock);
  for (; s != NULL && status == HEDDLE_OK; s = s->next) {
    uint64_t gone = host->now_ns(host->ctx) - start, left = timeout_ns > gone ? timeout_ns - gone : 0;
    if (timeout_ns == UINT64_MAX) left = UINT64_MAX;
    status = sim_stream_wait(s, atomic_load(&s->tail), left, give_up_hung);
  }
  return status;
}

static heddle_status device_idle(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  heddle_error ignored;
  if (sim_device_check(dev, &ignored) == HEDDLE_EINVAL) return sim_device_check(dev, err);
  heddle_status status = wait_streams(dev, timeout_ns, false);
  if (status != HEDDLE_OK) {
    atomic_store(&dev->detached, true);
    return p_fail(err, HEDDLE_ETIMEOUT, 0, "sim:%u: work is left after %llu ns", dev->index,
                  (unsigned long long)timeout_ns);
  }
  atomic_store(&dev->detached, false);
  destroy_retired(dev);
  return sim_device_check(dev, err);
}

/* What hangs, waits or is delayed gives up on a lost device, and the rest of the commands is passed over. */
static heddle_status device_reset(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  heddle_error ignored;
  char text[80];
  if (sim_device_check(dev, &ignored) == HEDDLE_EINVAL) return sim_device_check(dev, err);
  snprintf(text, sizeof text, "sim:%u was reset: its work did not end", dev->index);
  sim_device_fault(dev, 0, text);
  if (wait_streams(dev, timeout_ns, false) != HEDDLE_OK) {
    atomic_store(&dev->detached, true);
    return p_fail(err, HEDDLE_ETIMEOUT, 0, "sim:%u: work is left %llu ns after a reset", dev->index,
                  (unsigned long long)timeout_ns);
  }
  atomic_store(&dev->detached, false);
  atomic_store(&dev->hung, false);
  destroy_retired(dev);
  return HEDDLE_OK;
}

/* Ends the workers; false when one did not end in time. */
static bool end_workers(heddle_pdevice *dev) {
  struct timespec deadline = sim_deadline(CLOSE_END_NS);
  pthread_mutex_lock(&dev->lock);
  atomic_store(&dev->stop, true);
  pthread_cond_broadcast(&dev->changed);
  for (heddle_pstream *s = dev->streams; s != NULL; s = s->next) {
    pthread_mutex_lock(&s->lock);
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
  }
  while (dev->n_workers != 0 && pthread_cond_timedwait(&dev->changed, &dev->lock, &deadline) == 0) {}
  bool ended = dev->n_workers == 0;
  if (!ended) atomic_store(&dev->abandoned, true);
  pthread_mutex_unlock(&dev->lock);
  for (heddle_pstream *s = dev->streams; s != NULL; s = s->next) {
    if (ended || atomic_load(&s->ended)) pthread_join(s->thread, NULL);
    else pthread_detach(s->thread);
    s->has_thread = false;
  }
  return ended;
}

static void device_close(heddle_pdevice *dev) {
  if (dev == NULL || dev->magic != SIM_MAGIC_DEVICE) return;
  heddle_pinstance *self = dev->self;
  const heddle_host *host = dev->host;
  wait_streams(dev, CLOSE_FINISH_NS, true);
  bool ended = end_workers(dev);
  atomic_fetch_sub(&self->open_devices[dev->index], 1);
  if (!ended) { /* a thread may still touch any of it, so all of it stays */
    sim_log(host, HEDDLE_LOG_WARN, "a device was closed with work that does not end; its memory is left behind");
    pthread_mutex_lock(&self->lock);
    self->left_behind = true;
    pthread_mutex_unlock(&self->lock);
    return;
  }
  if (sim_memory_forget(dev) != 0)
    sim_log(host, HEDDLE_LOG_WARN, "a device was closed with buffers that were not freed");
  destroy_retired(dev);
  pthread_mutex_lock(&self->lock);
  while (dev->streams != NULL) {
    heddle_pstream *s = dev->streams;
    dev->streams = s->next;
    atomic_store(&s->open, false);
    s->dev = NULL;
    s->next = self->idle_streams;
    self->idle_streams = s;
  }
  pthread_mutex_unlock(&self->lock);
  dev->magic = SIM_MAGIC_DEAD;
  pthread_cond_destroy(&dev->changed);
  pthread_mutex_destroy(&dev->lock);
  host->free(host->ctx, dev);
}

/* ---- questions ---- */

static heddle_status device_query(heddle_pdevice *dev, uint32_t key, int64_t *out, heddle_error *err) {
  heddle_error ignored;
  if (sim_device_check(dev, &ignored) == HEDDLE_EINVAL) return sim_device_check(dev, err);
  switch (key) {
  case HEDDLE_QUERY_LIVE_BUFFERS: *out = (int64_t)atomic_load(&dev->live_buffers); return HEDDLE_OK;
  case HEDDLE_QUERY_LIVE_BYTES: *out = (int64_t)atomic_load(&dev->live_bytes); return HEDDLE_OK;
  case HEDDLE_QUERY_LIVE_OBJECTS: *out = (int64_t)atomic_load(&dev->live_objects); return HEDDLE_OK;
  default: return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "sim:%u: no number with key %u", dev->index, key);
  }
}

static heddle_status memory_now(heddle_pdevice *dev, uint64_t *free_bytes, uint64_t *total_bytes, heddle_error *err) {
  heddle_status status = sim_device_check(dev, err);
  if (status != HEDDLE_OK) return status;
  uint64_t used = atomic_load(&dev->live_bytes), total = dev->settings.memory_bytes;
  if (total == 0) total = UINT64_C(1) << 34;
  *total_bytes = total;
  *free_bytes = used < total ? total - used : 0;
  return HEDDLE_OK;
}

const heddle_device_table sim_device_table = {
    .struct_size = sizeof(heddle_device_table),
    .close = device_close,
    .open = device_open,
    .query = device_query,
    .health = sim_device_check,
    .idle = device_idle,
    .memory_now = memory_now,
    .reset = device_reset,
};
