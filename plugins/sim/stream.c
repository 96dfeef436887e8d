/* Streams as the host sees them: making, closing, handing over, waiting, asking. What the thread of a stream does is in
 * worker.c. */
#include "stream.h"

#include <signal.h>

heddle_status sim_stream_enter(heddle_pstream *stream, sim_call call, sim_cmd *cmd, heddle_error *err) {
  if (stream == NULL || stream->magic != SIM_MAGIC_STREAM || !atomic_load_explicit(&stream->open, memory_order_relaxed))
    return p_fail(err, HEDDLE_EINVAL, 0, "%s: the handle is no open stream of sim", sim_call_word(call));
  heddle_pdevice *dev = stream->dev;
  if (atomic_load_explicit(&dev->faulted, memory_order_acquire)) return sim_device_check(dev, err);
  if (dev->settings.n_rules == 0) return HEDDLE_OK;
  const sim_rule *rule = sim_fault_hit(&dev->settings, dev->counts, dev->index, call);
  if (rule == NULL) return HEDDLE_OK;
  if (!rule->async || cmd == NULL) return sim_fault_answer(dev, rule, err);
  cmd->flags |= (uint16_t)(rule->fault ? SIM_FLAG_FAIL | SIM_FLAG_FAULT : SIM_FLAG_FAIL);
  cmd->call = (uint32_t)call;
  cmd->nth = rule->n;
  return HEDDLE_OK;
}

heddle_status sim_stream_no_capture(heddle_pstream *stream, const char *what, heddle_error *err) {
  if (stream->capture == NULL) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0,
                "%s is not allowed on a stream of sim:%u while a capture is open on it: end the capture first", what,
                stream->dev->index);
}

bool sim_stream_busy(heddle_pstream *stream) {
  return atomic_load(&stream->done) < atomic_load(&stream->tail);
}

heddle_status sim_stream_wait(heddle_pstream *stream, uint64_t position, uint64_t timeout_ns, bool give_up_hung) {
  heddle_status status = HEDDLE_OK;
  if (atomic_load(&stream->done) >= position) return HEDDLE_OK;
  struct timespec deadline = sim_deadline(timeout_ns);
  pthread_mutex_lock(&stream->lock);
  atomic_fetch_add(&stream->waiters, 1);
  while (status == HEDDLE_OK && atomic_load(&stream->done) < position) {
    if (give_up_hung && atomic_load(&stream->hung)) status = HEDDLE_ETIMEOUT;
    else if (pthread_cond_timedwait(&stream->finished, &stream->lock, &deadline) != 0) status = HEDDLE_ETIMEOUT;
  }
  atomic_fetch_sub(&stream->waiters, 1);
  pthread_mutex_unlock(&stream->lock);
  return atomic_load(&stream->done) >= position ? HEDDLE_OK : status;
}

heddle_status sim_stream_failure_at(heddle_pstream *stream, uint64_t position, sim_failure *out) {
  heddle_status status = HEDDLE_OK;
  if (atomic_load(&stream->n_bad) == 0) return HEDDLE_OK;
  pthread_mutex_lock(&stream->lock);
  uint32_t n = atomic_load(&stream->n_bad), kept = n < SIM_BAD_STRETCHES ? n : SIM_BAD_STRETCHES;
  for (uint32_t i = 1; i <= kept; i++) {
    const sim_bad_stretch *bad = &stream->bad[(n - i) % SIM_BAD_STRETCHES];
    if (position < bad->first || position > bad->last) continue;
    *out = bad->failure;
    status = out->status;
    break;
  }
  pthread_mutex_unlock(&stream->lock);
  return status;
}

/* The newest failure, where it is not reported yet; forgets it where forget is set, which needs an idle stream. */
static heddle_status newest_failure(heddle_pstream *stream, bool forget, heddle_error *err) {
  heddle_status status = HEDDLE_OK;
  if (!atomic_load(&stream->failed)) return HEDDLE_OK;
  pthread_mutex_lock(&stream->lock);
  if (atomic_load(&stream->failed)) {
    sim_bad_stretch *bad = &stream->bad[(atomic_load(&stream->n_bad) - 1) % SIM_BAD_STRETCHES];
    status = p_fail(err, bad->failure.status, bad->failure.api_code, "%s", bad->failure.text);
    if (forget) {
      bad->last = atomic_load(&stream->done) - 1;
      atomic_store(&stream->failed, false);
    }
  }
  pthread_mutex_unlock(&stream->lock);
  return status;
}

/* ---- making and closing ---- */

void sim_stream_destroy(const heddle_host *host, heddle_pstream *stream) {
  while (stream != NULL) {
    heddle_pstream *next = stream->next;
    sim_queue_finish(stream);
    pthread_cond_destroy(&stream->finished);
    pthread_cond_destroy(&stream->wake);
    pthread_mutex_destroy(&stream->lock);
    stream->magic = SIM_MAGIC_DEAD;
    host->free(host->ctx, stream);
    stream = next;
  }
}

static heddle_pstream *stream_new(heddle_pinstance *self, heddle_error *err) {
  const heddle_host *host = self->host;
  heddle_pstream *s = sim_alloc(host, sizeof *s);
  if (s == NULL) {
    p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a stream");
    return NULL;
  }
  s->self = self;
  if (pthread_mutex_init(&s->lock, NULL) != 0) goto no_lock;
  if (sim_cond_init(&s->wake) != 0) goto no_wake;
  if (sim_cond_init(&s->finished) != 0) goto no_finished;
  if (sim_queue_init(s, err) == HEDDLE_OK) {
    s->magic = SIM_MAGIC_STREAM;
    pthread_mutex_lock(&self->lock);
    s->next_made = self->all_streams;
    self->all_streams = s;
    pthread_mutex_unlock(&self->lock);
    return s;
  }
  sim_stream_destroy(host, s);
  return NULL;

no_finished:
  pthread_cond_destroy(&s->wake);
no_wake:
  pthread_mutex_destroy(&s->lock);
no_lock:
  host->free(host->ctx, s);
  p_fail(err, HEDDLE_ENOMEM, 0, "no lock for a stream");
  return NULL;
}

/* A stream of this device that was closed and has run dry, else one that the instance keeps, else a new one; on the
 * device's list afterwards. dev->lock is held. */
static heddle_pstream *stream_take(heddle_pdevice *dev, heddle_error *err) {
  heddle_pinstance *self = dev->self;
  for (heddle_pstream *s = dev->streams; s != NULL; s = s->next)
    if (!atomic_load(&s->open) && !sim_stream_busy(s)) return s;
  pthread_mutex_lock(&self->lock);
  heddle_pstream *s = self->idle_streams;
  if (s != NULL) self->idle_streams = s->next;
  pthread_mutex_unlock(&self->lock);
  if (s == NULL) s = stream_new(self, err);
  if (s == NULL) return NULL;
  s->dev = dev;
  s->next = dev->streams;
  dev->streams = s;
  return s;
}

/* Starts the worker, with all signals blocked: they are for the application's threads. dev->lock is held. */
static heddle_status start(heddle_pdevice *dev, heddle_pstream *s, heddle_error *err) {
  sigset_t all, before;
  if (s->has_thread) return HEDDLE_OK;
  atomic_store(&s->ended, false);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&s->thread, NULL, sim_worker, s);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed != 0) return p_fail(err, HEDDLE_EFAILED, failed, "sim:%u: no thread for a stream", dev->index);
  s->has_thread = true;
  dev->n_workers++;
  return HEDDLE_OK;
}

static heddle_status stream_create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                                   heddle_error *err) {
  heddle_status status = sim_enter(dev, SIM_CALL_STREAM, err);
  (void)priority; /* one thread a stream: the host's scheduler decides */
  if (status != HEDDLE_OK) return status;
  if (kind > HEDDLE_STREAM_COPY) return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: no stream of kind %u", dev->index, kind);

  pthread_mutex_lock(&dev->lock);
  heddle_pstream *s = stream_take(dev, err);
  status = s == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
  if (s != NULL && !s->has_thread) {
    s->random = sim_mix(dev->settings.seed ^ sim_mix(dev->index + (dev->n_streams << 8)));
    dev->n_streams++;
    status = start(dev, s, err);
  }
  if (status == HEDDLE_OK) {
    newest_failure(s, true, NULL);
    atomic_store(&s->open, true);
  }
  pthread_mutex_unlock(&dev->lock);
  if (status != HEDDLE_OK) return status;
  atomic_fetch_add(&dev->live_objects, 1);
  *out = s;
  return HEDDLE_OK;
}

/* The handle of a stream of sim is its address, which a caller has that uses the plugin directly. It is one stream with
 * one writer: the owner and the adopter take turns to enqueue. */
static heddle_status stream_adopt(heddle_pdevice *dev, uint64_t handle, heddle_pstream **out, heddle_error *err) {
  heddle_status status = sim_enter(dev, SIM_CALL_STREAM, err);
  if (status != HEDDLE_OK) return status;
  heddle_pinstance *self = dev->self;
  pthread_mutex_lock(&self->lock);
  heddle_pstream *s = self->all_streams;
  while (s != NULL && (uintptr_t)s != handle) s = s->next_made;
  pthread_mutex_unlock(&self->lock);
  if (s == NULL || !atomic_load(&s->open))
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: the handle is no open stream of sim", dev->index);
  if (s->dev != dev)
    return p_fail(err, HEDDLE_EINVAL, 0, "the stream is of sim:%u, not of sim:%u", s->dev->index, dev->index);
  atomic_fetch_add(&s->adopted, 1);
  atomic_fetch_add(&dev->live_objects, 1);
  *out = s;
  return HEDDLE_OK;
}

static void stream_close(heddle_pstream *stream) {
  if (stream == NULL || stream->magic != SIM_MAGIC_STREAM || !atomic_load(&stream->open)) return;
  heddle_pdevice *dev = stream->dev;
  unsigned adopted = atomic_load(&stream->adopted);
  while (adopted > 0 && !atomic_compare_exchange_weak(&stream->adopted, &adopted, adopted - 1)) continue;
  if (adopted > 0) {
    atomic_fetch_sub(&dev->live_objects, 1);
    return;
  }
  if (stream->capture != NULL) {
    heddle_pgraph *graph = stream->capture;
    stream->capture = NULL;
    sim_capture_table.free(graph);
  }
  sim_submit(stream);
  atomic_fetch_sub(&dev->live_objects, 1);
  pthread_mutex_lock(&dev->lock);
  atomic_store(&stream->open, false);
  pthread_mutex_unlock(&dev->lock);
}

/* ---- using ---- */

static heddle_status stream_submit(heddle_pstream *stream, heddle_error *err) {
  heddle_status status = sim_stream_enter(stream, SIM_CALL_SUBMIT, NULL, err);
  if (status == HEDDLE_OK) status = sim_stream_no_capture(stream, "submit", err);
  if (status == HEDDLE_OK) sim_submit(stream);
  return status;
}

static heddle_status stream_sync(heddle_pstream *stream, uint64_t timeout_ns, heddle_error *err) {
  heddle_status status = sim_stream_enter(stream, SIM_CALL_SYNC, NULL, err);
  if (status == HEDDLE_OK) status = sim_stream_no_capture(stream, "sync", err);
  if (status != HEDDLE_OK) return status;
  sim_submit(stream);
  status = sim_stream_wait(stream, stream->head, timeout_ns, false);
  if (status != HEDDLE_OK) {
    atomic_store(&stream->dev->detached, true);
    return p_fail(err, status, 0, "sim:%u: work on a stream did not finish within %llu ns", stream->dev->index,
                  (unsigned long long)timeout_ns);
  }
  status = newest_failure(stream, true, err);
  heddle_status device = atomic_load(&stream->dev->faulted) ? sim_device_check(stream->dev, err) : HEDDLE_OK;
  return device != HEDDLE_OK ? device : status;
}

static heddle_status stream_query(heddle_pstream *stream, heddle_error *err) {
  if (stream == NULL || stream->magic != SIM_MAGIC_STREAM || !atomic_load(&stream->open))
    return p_fail(err, HEDDLE_EINVAL, 0, "query: the handle is no open stream of sim");
  heddle_pdevice *dev = stream->dev;
  if (sim_stream_busy(stream)) {
    if (atomic_load(&dev->faulted)) return sim_device_check(dev, err);
    return p_fail(err, HEDDLE_EBUSY, 0, "sim:%u: the stream has work left", dev->index);
  }
  heddle_status status = newest_failure(stream, false, err);
  return atomic_load(&dev->faulted) ? sim_device_check(dev, err) : status;
}

const heddle_stream_table sim_stream_table = {
    .struct_size = sizeof(heddle_stream_table),
    .close = stream_close,
    .create = stream_create,
    .submit = stream_submit,
    .sync = stream_sync,
    .query = stream_query,
    .adopt = stream_adopt,
};
