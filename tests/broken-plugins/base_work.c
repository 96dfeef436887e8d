/* What the sound plugin puts into streams: copies, events, fences. */
#include "base.h"

/* ---- copies ---- */

heddle_status base_run_copy(heddle_pstream *stream, base_task *task, heddle_error *err) {
  (void)stream, (void)err;
  if (task->bytes != 0) memcpy(task->dst, task->src, task->bytes);
  return HEDDLE_OK;
}

/* What runs has ended, what waits ends now, and fences fail with the same text. */
static heddle_status lose(heddle_pdevice *dev, const char *words, heddle_error *err) {
  pthread_mutex_lock(&dev->self->lock);
  const bool first = !atomic_load(&dev->lost);
  if (first) p_fail(&dev->fault, HEDDLE_EDEVICE, 9, "device %u is lost: %s", dev->index, words);
  atomic_store(&dev->lost, true);
  pthread_cond_broadcast(&dev->self->changed);
  pthread_mutex_unlock(&dev->self->lock);
  if (first) dev->host->device_fault(dev->host->ctx, dev->cookie, 9, dev->fault.text);
  return base_check(dev, err);
}

heddle_status base_device_reset(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  (void)lose(dev, "it was reset", NULL);
  const heddle_status status = base_device_idle(dev, timeout_ns, err);
  return status == HEDDLE_EDEVICE ? HEDDLE_OK : status;
}

heddle_status base_run_fill(heddle_pstream *stream, base_task *task, heddle_error *err) {
  if (task->pattern == stream->dev->self->lose_word) /* as the conformance kit asks for it */
    return lose(stream->dev, "a fill with the word of lose_on_fill", err);
  if (task->pattern == stream->dev->self->fail_word)
    return p_fail(err, HEDDLE_EFAILED, 0, "device %u: a fill with the word of fail_on_fill", stream->dev->index);
  for (uint64_t i = 0; i < task->bytes; i += 4) memcpy(task->dst + i, &task->pattern, 4);
  return HEDDLE_OK;
}

static heddle_status push_copy(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *src,
                               uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  heddle_status status = base_range(dst, dst_offset, bytes, err);
  if (status == HEDDLE_OK) status = base_range(src, src_offset, bytes, err);
  if (status != HEDDLE_OK) return status;
  base_task task = {
      .run = base_run_copy, .dst = dst->bytes + dst_offset, .src = src->bytes + src_offset, .bytes = bytes};
  return base_push(stream, &task, err);
}

static heddle_status check_host_side(const heddle_pbuffer *host, heddle_error *err) {
  if (host != NULL && host->kind == HEDDLE_MEMORY_PINNED) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "the host side of a copy is a buffer of pinned memory");
}

heddle_status base_copy_h2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *host,
                            uint64_t host_offset, uint64_t bytes, heddle_error *err) {
  heddle_status status = check_host_side(host, err);
  return status != HEDDLE_OK ? status : push_copy(stream, dst, dst_offset, host, host_offset, bytes, err);
}

heddle_status base_copy_d2h(heddle_pstream *stream, heddle_pbuffer *host, uint64_t host_offset, heddle_pbuffer *src,
                            uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  heddle_status status = check_host_side(host, err);
  return status != HEDDLE_OK ? status : push_copy(stream, host, host_offset, src, src_offset, bytes, err);
}

heddle_status base_copy_d2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *src,
                            uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  return push_copy(stream, dst, dst_offset, src, src_offset, bytes, err);
}

/* A failure of earlier work stays for the host's own sync. */
static heddle_status push_and_wait(heddle_pstream *stream, const base_task *task, heddle_error *err) {
  heddle_status status = base_push(stream, task, err);
  return status != HEDDLE_OK ? status : base_stream_wait(stream, err);
}

heddle_status base_copy_write(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, const void *src,
                              uint64_t bytes, heddle_error *err) {
  heddle_status status = base_range(dst, dst_offset, bytes, err);
  if (status == HEDDLE_OK && src == NULL && bytes != 0)
    status = p_fail(err, HEDDLE_EINVAL, 0, "a write of %llu bytes from nowhere", (unsigned long long)bytes);
  if (status != HEDDLE_OK) return status;
  base_task task = {.run = base_run_copy, .dst = dst->bytes + dst_offset, .src = src, .bytes = bytes};
  return push_and_wait(stream, &task, err);
}

heddle_status base_copy_read(heddle_pstream *stream, void *dst, heddle_pbuffer *src, uint64_t src_offset,
                             uint64_t bytes, heddle_error *err) {
  heddle_status status = base_range(src, src_offset, bytes, err);
  if (status == HEDDLE_OK && dst == NULL && bytes != 0)
    status = p_fail(err, HEDDLE_EINVAL, 0, "a read of %llu bytes to nowhere", (unsigned long long)bytes);
  if (status != HEDDLE_OK) return status;
  base_task task = {.run = base_run_copy, .dst = dst, .src = src->bytes + src_offset, .bytes = bytes};
  return push_and_wait(stream, &task, err);
}

heddle_status base_copy_fill(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, uint64_t bytes,
                             uint32_t pattern, heddle_error *err) {
  heddle_status status = base_range(dst, dst_offset, bytes, err);
  if (status == HEDDLE_OK && (dst_offset % 4 != 0 || bytes % 4 != 0))
    status = p_fail(err, HEDDLE_EINVAL, 0, "a fill of %llu bytes from %llu on; both are multiples of 4",
                    (unsigned long long)bytes, (unsigned long long)dst_offset);
  if (status != HEDDLE_OK) return status;
  base_task task = {.run = base_run_fill, .dst = dst->bytes + dst_offset, .bytes = bytes, .pattern = pattern};
  return base_push(stream, &task, err);
}

/* ---- events ---- */

static void drop(heddle_pinstance *self, base_point *point) {
  if (point == NULL) return;
  pthread_mutex_lock(&self->lock);
  bool last = --point->references == 0;
  pthread_mutex_unlock(&self->lock);
  if (last) self->host->free(self->host->ctx, point);
}

heddle_status base_event_create(heddle_pdevice *dev, heddle_pevent **out, heddle_error *err) {
  if (atomic_load(&dev->lost)) return base_check(dev, err);
  heddle_pevent *event = base_zeroed(dev->host, sizeof *event);
  if (event == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "device %u: no memory for an event", dev->index);
  event->dev = dev;
  atomic_fetch_add(&dev->live_objects, 1);
  *out = event;
  return HEDDLE_OK;
}

void base_event_free(heddle_pevent *event) {
  if (event == NULL) return;
  const heddle_host *host = event->dev->host;
  atomic_fetch_sub(&event->dev->live_objects, 1);
  drop(event->dev->self, event->point);
  host->free(host->ctx, event);
}

static heddle_status run_record(heddle_pstream *stream, base_task *task, heddle_error *err) {
  heddle_pinstance *self = stream->dev->self;
  heddle_error failure = {0};
  (void)err;
  base_failed(stream, &failure);
  pthread_mutex_lock(&self->lock);
  task->point->failure = failure;
  task->point->reached = true;
  pthread_cond_broadcast(&self->changed);
  pthread_mutex_unlock(&self->lock);
  drop(self, task->point);
  return HEDDLE_OK;
}

heddle_status base_event_record(heddle_pevent *event, heddle_pstream *stream, heddle_error *err) {
  heddle_pinstance *self = stream->dev->self;
  base_point *point = base_zeroed(self->host, sizeof *point);
  if (point == NULL)
    return p_fail(err, HEDDLE_ENOMEM, 0, "device %u: no memory to record an event", stream->dev->index);
  point->references = 2; /* the event's and the task's */
  base_task task = {.run = run_record, .always = true, .point = point};
  heddle_status status = base_push(stream, &task, err);
  if (status != HEDDLE_OK) {
    self->host->free(self->host->ctx, point);
    return status;
  }
  pthread_mutex_lock(&self->lock);
  base_point *old = event->point;
  event->point = point;
  pthread_mutex_unlock(&self->lock);
  drop(self, old);
  return HEDDLE_OK;
}

static heddle_status run_wait(heddle_pstream *stream, base_task *task, heddle_error *err) {
  heddle_pinstance *self = stream->dev->self;
  pthread_mutex_lock(&self->lock);
  while (!task->point->reached && !atomic_load(&stream->dev->lost)) pthread_cond_wait(&self->changed, &self->lock);
  heddle_status status = task->point->failure.status;
  if (status != HEDDLE_OK) *err = task->point->failure;
  pthread_mutex_unlock(&self->lock);
  drop(self, task->point);
  return status;
}

heddle_status base_event_wait(heddle_pstream *stream, heddle_pevent *event, heddle_error *err) {
  heddle_pinstance *self = stream->dev->self;
  pthread_mutex_lock(&self->lock);
  base_point *point = event->point;
  if (point != NULL) point->references++;
  pthread_mutex_unlock(&self->lock);
  if (point == NULL) return HEDDLE_OK;
  base_task task = {.run = run_wait, .always = true, .point = point};
  heddle_status status = base_push(stream, &task, err);
  if (status != HEDDLE_OK) drop(self, point);
  return status;
}

/* ---- fences ---- */

heddle_status base_run_signal(heddle_pstream *stream, base_task *task, heddle_error *err) {
  const heddle_host *host = stream->dev->host;
  heddle_error failure = {0};
  (void)err;
  if (base_failed(stream, &failure) == HEDDLE_OK) host->fence_signal(host->ctx, task->fence, task->value);
  else host->fence_fail(host->ctx, task->fence, failure.status, failure.text);
  return HEDDLE_OK;
}

heddle_status base_push_signal(heddle_pstream *stream,
                               heddle_status (*run)(heddle_pstream *stream, base_task *task, heddle_error *err),
                               heddle_pfence fence, uint64_t value, heddle_error *err) {
  const heddle_host *host = stream->dev->host;
  base_task task = {.run = run, .always = true, .fence = fence, .value = value};
  heddle_error own;
  if (err == NULL) err = &own;
  heddle_status status = base_push(stream, &task, err);
  if (status != HEDDLE_OK) host->fence_fail(host->ctx, fence, status, err->text);
  return status;
}

heddle_status base_fence_signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  return base_push_signal(stream, base_run_signal, fence, value, err);
}

/* The host has no call that waits, so the stream's thread asks again and again. */
static heddle_status run_fence_wait(heddle_pstream *stream, base_task *task, heddle_error *err) {
  const heddle_host *host = stream->dev->host;
  heddle_status status;
  while ((status = host->fence_query(host->ctx, task->fence, task->value)) == HEDDLE_EBUSY &&
         !atomic_load(&stream->dev->lost))
    base_sleep_ms(1);
  if (status == HEDDLE_EBUSY) return base_check(stream->dev, err);
  if (status == HEDDLE_OK) return HEDDLE_OK;
  return p_fail(err, status, 0, "device %u: a fence that a stream waited for failed", stream->dev->index);
}

heddle_status base_fence_wait(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  base_task task = {.run = run_fence_wait, .fence = fence, .value = value};
  return base_push(stream, &task, err);
}
