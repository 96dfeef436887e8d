/* The sound plugin's streams: a queue and a thread each, under one lock of the instance. */
#include "base.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

#define CHUNK 256                     /* tasks that are allocated together */
#define CLOSE_NS UINT64_C(2000000000) /* how long close waits for streams that were closed at work */

typedef struct chunk {
  void *next;
  base_task tasks[CHUNK];
} chunk;

static struct timespec deadline(uint64_t timeout_ns) {
  struct timespec at;
  const uint64_t far = UINT64_C(1000000000) * 86400 * 365;
  if (timeout_ns > far) timeout_ns = far;
  clock_gettime(CLOCK_MONOTONIC, &at);
  uint64_t ns = (uint64_t)at.tv_nsec + timeout_ns;
  at.tv_sec += (time_t)(ns / 1000000000u);
  at.tv_nsec = (long)(ns % 1000000000u);
  return at;
}

static bool working(const heddle_pstream *s) {
  return s->first != NULL || s->busy;
}

/* The lock is held. False when the time is over. */
static bool wait_rest(heddle_pstream *s, const struct timespec *until) {
  heddle_pinstance *self = s->dev->self;
  while (working(s))
    if (pthread_cond_timedwait(&self->changed, &self->lock, until) != 0 && working(s)) return false;
  return true;
}

/* ---- the thread ---- */

static void *work(void *arg) {
  heddle_pstream *s = arg;
  heddle_pinstance *self = s->dev->self;
  pthread_mutex_lock(&self->lock);
  for (;;) {
    while (s->first == NULL && !s->ending) pthread_cond_wait(&self->changed, &self->lock);
    base_task *task = s->first;
    if (task == NULL) break;
    s->first = task->next;
    if (s->first == NULL) s->last = &s->first;
    s->busy = true;
    bool failed = s->failure.status != HEDDLE_OK || atomic_load(&s->dev->lost);
    pthread_mutex_unlock(&self->lock);
    heddle_error err = {0};
    heddle_status status = failed && !task->always ? HEDDLE_OK : task->run(s, task, &err);
    pthread_mutex_lock(&self->lock);
    if (status != HEDDLE_OK && s->failure.status == HEDDLE_OK) s->failure = err;
    s->busy = false;
    task->next = s->spare;
    s->spare = task;
    pthread_cond_broadcast(&self->changed);
  }
  pthread_mutex_unlock(&self->lock);
  return NULL;
}

heddle_status base_failed(heddle_pstream *stream, heddle_error *err) {
  heddle_pinstance *self = stream->dev->self;
  if (atomic_load(&stream->dev->lost)) return base_check(stream->dev, err);
  pthread_mutex_lock(&self->lock);
  heddle_error failure = stream->failure;
  pthread_mutex_unlock(&self->lock);
  if (failure.status != HEDDLE_OK && err != NULL) *err = failure;
  return failure.status;
}

/* ---- the queue ---- */

static bool more_tasks(heddle_pstream *s) {
  chunk *new = base_zeroed(s->dev->host, sizeof *new);
  if (new == NULL) return false;
  new->next = s->chunks;
  s->chunks = new;
  for (int i = 0; i < CHUNK; i++) {
    new->tasks[i].next = s->spare;
    s->spare = &new->tasks[i];
  }
  return true;
}

heddle_status base_push(heddle_pstream *stream, const base_task *task, heddle_error *err) {
  heddle_pinstance *self = stream->dev->self;
  heddle_status status = base_check(stream->dev, err);
  if (status != HEDDLE_OK) return status;
  pthread_mutex_lock(&self->lock);
  if (stream->spare != NULL || more_tasks(stream)) {
    base_task *mine = stream->spare;
    stream->spare = mine->next;
    *mine = *task;
    mine->next = NULL;
    *stream->last = mine;
    stream->last = &mine->next;
    pthread_cond_broadcast(&self->changed);
  } else {
    status = p_fail(err, HEDDLE_ENOMEM, 0, "device %u: no memory for more work in a stream", stream->dev->index);
  }
  pthread_mutex_unlock(&self->lock);
  return status;
}

/* ---- create and close ---- */

static void free_stream(heddle_pstream *s) {
  const heddle_host *host = s->dev->host;
  while (s->chunks != NULL) {
    chunk *next = ((chunk *)s->chunks)->next;
    host->free(host->ctx, s->chunks);
    s->chunks = next;
  }
  host->free(host->ctx, s);
}

static bool start(heddle_pstream *s) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = pthread_create(&s->thread, NULL, work, s) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return started;
}

heddle_status base_stream_create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                                 heddle_error *err) {
  (void)priority;
  if (atomic_load(&dev->lost)) return base_check(dev, err);
  heddle_pstream *s = base_zeroed(dev->host, sizeof *s);
  if (s == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "device %u: no memory for a stream", dev->index);
  s->dev = dev;
  s->kind = kind;
  s->last = &s->first;
  if (!more_tasks(s) || !start(s)) {
    free_stream(s);
    return p_fail(err, HEDDLE_ENOMEM, 0, "device %u: no memory or no thread for a stream", dev->index);
  }
  pthread_mutex_lock(&dev->self->lock);
  s->next = dev->streams;
  dev->streams = s;
  pthread_mutex_unlock(&dev->self->lock);
  atomic_fetch_add(&dev->live_objects, 1);
  *out = s;
  return HEDDLE_OK;
}

/* There is no driver: the streams of others are those of this plugin, by their address. An adopted one is the same stream. */
heddle_status base_stream_adopt(heddle_pdevice *dev, uint64_t handle, heddle_pstream **out, heddle_error *err) {
  heddle_pstream *s = (heddle_pstream *)(uintptr_t)handle;
  if (atomic_load(&dev->lost)) return base_check(dev, err);
  if (!dev->self->adopt_own)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "device %u: there are no streams of others", dev->index);
  if (s->dev != dev)
    return p_fail(err, HEDDLE_EINVAL, 0, "the stream is of device %u, not of device %u", s->dev->index, dev->index);
  pthread_mutex_lock(&dev->self->lock);
  s->adopted++;
  pthread_mutex_unlock(&dev->self->lock);
  atomic_fetch_add(&dev->live_objects, 1);
  *out = s;
  return HEDDLE_OK;
}

static void unlist(heddle_pstream *s) {
  heddle_pstream **at = &s->dev->streams;
  while (*at != s) at = &(*at)->next;
  *at = s->next;
}

/* A stream with work left stays in the device's list until the device is closed. */
void base_stream_close(heddle_pstream *stream) {
  if (stream == NULL) return;
  heddle_pinstance *self = stream->dev->self;
  atomic_fetch_sub(&stream->dev->live_objects, 1);
  pthread_mutex_lock(&self->lock);
  if (stream->adopted > 0) {
    stream->adopted--;
    pthread_mutex_unlock(&self->lock);
    return;
  }
  stream->ending = true;
  bool left = working(stream);
  if (!left) unlist(stream);
  pthread_cond_broadcast(&self->changed);
  pthread_mutex_unlock(&self->lock);
  if (left) return;
  pthread_join(stream->thread, NULL);
  free_stream(stream);
}

heddle_status base_device_idle(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  struct timespec until = deadline(timeout_ns);
  bool done = true;
  pthread_mutex_lock(&dev->self->lock);
  for (heddle_pstream *s = dev->streams; s != NULL && done; s = s->next) done = wait_rest(s, &until);
  pthread_mutex_unlock(&dev->self->lock);
  if (!done) return p_fail(err, HEDDLE_ETIMEOUT, 0, "device %u: its work did not end in time", dev->index);
  return base_check(dev, err);
}

/* What hangs is left behind with all that it has. */
void base_device_close(heddle_pdevice *dev) {
  if (dev == NULL) return;
  if (base_device_idle(dev, CLOSE_NS, NULL) == HEDDLE_ETIMEOUT) return;
  while (dev->streams != NULL) {
    heddle_pstream *s = dev->streams;
    dev->streams = s->next;
    pthread_join(s->thread, NULL);
    free_stream(s);
  }
  dev->host->free(dev->host->ctx, dev);
}

heddle_status base_stream_submit(heddle_pstream *stream, heddle_error *err) {
  return base_check(stream->dev, err);
}

heddle_status base_stream_sync(heddle_pstream *stream, uint64_t timeout_ns, heddle_error *err) {
  heddle_pinstance *self = stream->dev->self;
  struct timespec until = deadline(timeout_ns);
  heddle_error failure = {0};
  pthread_mutex_lock(&self->lock);
  bool done = wait_rest(stream, &until);
  if (done) {
    failure = stream->failure;
    memset(&stream->failure, 0, sizeof stream->failure);
  }
  pthread_mutex_unlock(&self->lock);
  if (!done)
    return p_fail(err, HEDDLE_ETIMEOUT, 0, "device %u: a stream's work did not end in time", stream->dev->index);
  if (atomic_load(&stream->dev->lost)) return base_check(stream->dev, err);
  if (failure.status != HEDDLE_OK && err != NULL) *err = failure;
  return failure.status;
}

heddle_status base_stream_wait(heddle_pstream *stream, heddle_error *err) {
  heddle_pinstance *self = stream->dev->self;
  pthread_mutex_lock(&self->lock);
  while (working(stream)) pthread_cond_wait(&self->changed, &self->lock);
  pthread_mutex_unlock(&self->lock);
  return base_failed(stream, err);
}

heddle_status base_stream_query(heddle_pstream *stream, heddle_error *err) {
  heddle_pinstance *self = stream->dev->self;
  pthread_mutex_lock(&self->lock);
  bool left = working(stream);
  pthread_mutex_unlock(&self->lock);
  if (!left) return base_failed(stream, err);
  return p_fail(err, HEDDLE_EBUSY, 0, "device %u: a stream is at work", stream->dev->index);
}
