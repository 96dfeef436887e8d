/* Streams: each is a thread of its own that does what was put into it, in order, behind the fences that a piece of work
 * waits for. A device's default stream waits for its blocking streams, and they for it. */
#include "engine_inside.h"

static eng_stream *streams; /* all of them */

/* ---------------------------------------------------------------- the thread */

static void nap(unsigned limit_us, unsigned *seed) {
  if (limit_us == 0) return;
  const long us = (long)((unsigned)rand_r(seed) % limit_us);
  const struct timespec t = {us / 1000000, us % 1000000 * 1000};
  nanosleep(&t, NULL);
}

static void op_free(eng_op *op) {
  eng_fence_drop(op->fence);
  for (size_t i = 0; i < op->n_waits; i++) eng_fence_drop(op->waits[i]);
  free(op->waits);
  eng_work_drop(op->work);
  free(op);
}

/* The stream is empty and its handle is not in use. */
static void stream_end(eng_stream *stream) {
  for (eng_stream **p = &streams; *p != NULL; p = &(*p)->next) {
    if (*p != stream) continue;
    *p = stream->next;
    break;
  }
  eng_fence_drop(stream->last);
  pthread_cond_destroy(&stream->arrived);
  eng_object_keep(stream);
  pthread_cond_broadcast(&eng_done);
}

/* The next piece of work is kernels, which PoCL's queue keeps in order by itself. */
static bool kernels_follow(const eng_stream *stream) {
  const eng_op *op = stream->head;
  if (eng_setting()->orders || op == NULL || (op->work->kind != ENG_WORK_KERNEL && op->work->kind != ENG_WORK_PLAN))
    return false;
  for (size_t i = 0; i < op->n_waits; i++) {
    if (!op->waits[i]->done) return false;
  }
  return true;
}

/* Says of operations that they are done. Locked. */
static void complete(eng_op **batch) {
  const uint64_t now = eng_now();
  while (*batch != NULL) {
    eng_op *op = *batch;
    *batch = op->next;
    op->fence->time = now;
    op->fence->done = true;
    op_free(op);
  }
  pthread_cond_broadcast(&eng_done);
}

static void *stream_main(void *arg) {
  eng_stream *stream = arg;
  eng_queue queue = {NULL, false};
  eng_op *batch = NULL; /* operations that have begun */
  unsigned seed = (unsigned)(uintptr_t)stream;
  eng_enter();
  while (!stream->closing || stream->head != NULL) {
    eng_op *op = stream->head;
    if (op == NULL) {
      pthread_cond_wait(&stream->arrived, &eng_lock);
      continue;
    }
    stream->head = op->next;
    if (stream->head == NULL) stream->tail = NULL;
    stream->busy = true;
    for (size_t i = 0; i < op->n_waits; i++) eng_fence_await(op->waits[i]);
    eng_leave();
    if (op->work->kind != ENG_WORK_EMPTY) nap(eng_setting()->delay_us, &seed);
    op->fence->code = eng_work_run(op->work, &queue);
    op->next = batch;
    batch = op;
    eng_enter();
    if (queue.pending && kernels_follow(stream)) continue;
    eng_leave();
    const int code = eng_queue_finish(&queue);
    eng_enter();
    if (code != ENG_OK) eng_context_fault(stream->o.ctx, code);
    complete(&batch);
    stream->busy = false;
  }
  stream_end(stream);
  eng_leave();
  eng_queue_close(&queue);
  return NULL;
}

static int start_thread(eng_stream *stream) {
  pthread_t thread;
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  const int failed = pthread_create(&thread, &attr, stream_main, stream);
  pthread_attr_destroy(&attr);
  stream->threaded = failed == 0;
  return failed == 0 ? ENG_OK : ENG_OUT_OF_MEMORY;
}

/* ---------------------------------------------------------------- making */

static eng_stream *stream_new(eng_context *ctx, unsigned flags, int priority) {
  eng_stream *stream = calloc(1, sizeof *stream);
  if (stream == NULL) return NULL;
  stream->flags = flags;
  stream->priority = priority;
  stream->o.ctx = ctx;
  stream->o.kind = ENG_STREAM;
  pthread_cond_init(&stream->arrived, NULL);
  stream->next = streams;
  streams = stream;
  return stream;
}

void eng_priorities(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
}

int eng_stream_create(eng_stream_handle *out, unsigned flags, int priority) {
  eng_context *ctx = NULL;
  eng_enter();
  int code = eng_context_need(&ctx);
  if (code == ENG_OK && (flags & ~1u) != 0) code = ENG_INVALID_VALUE;
  if (code != ENG_OK) return eng_leave_with(code);
  eng_stream *stream = stream_new(ctx, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
  if (stream == NULL) return eng_leave_with(ENG_OUT_OF_MEMORY);
  eng_object_add(&stream->o, ENG_STREAM, ctx);
  *out = stream;
  return eng_leave_with(ENG_OK);
}

void eng_stream_close(eng_stream *stream) {
  eng_capture_forget(stream);
  if (!stream->is_default) eng_object_unlink(&stream->o);
  stream->closing = true;
  if (stream->threaded) pthread_cond_signal(&stream->arrived);
  else stream_end(stream);
}

int eng_stream_find(eng_stream_handle handle, eng_stream **out) {
  eng_context *ctx = NULL;
  const int code = eng_context_need(&ctx);
  if (code != ENG_OK) return code;
  if ((uintptr_t)handle > 2) {
    if (eng_object_check(handle, ENG_STREAM, "a stream") != ENG_OK) return ENG_INVALID_HANDLE;
    *out = handle;
    return (*out)->o.ctx->fault;
  }
  if (ctx->fallback == NULL) {
    ctx->fallback = stream_new(ctx, 0, 0);
    if (ctx->fallback == NULL) return ENG_OUT_OF_MEMORY;
    ctx->fallback->is_default = true;
  }
  *out = ctx->fallback;
  return ENG_OK;
}

int eng_stream_destroy(eng_stream_handle handle) {
  eng_context *ctx = NULL;
  eng_enter();
  int code = eng_context_need(&ctx);
  if (code == ENG_INVALID_CONTEXT || code == ENG_CONTEXT_DESTROYED) return eng_leave_with(code);
  const int found = eng_object_check(handle, ENG_STREAM, "a stream is destroyed");
  if (found != ENG_OK) return eng_leave_with(found);
  eng_stream_close(handle);
  return eng_leave_with(code);
}

/* ---------------------------------------------------------------- putting */

static void wait_for(eng_op *op, eng_fence *fence) {
  if (fence == NULL || fence->done) return;
  eng_fence **more = realloc(op->waits, (op->n_waits + 1) * sizeof *more);
  if (more == NULL) abort(); /* a double of a test: there is nothing to be done */
  op->waits = more;
  op->waits[op->n_waits++] = eng_fence_hold(fence);
}

/* The default stream is in order with all that block. */
static void wait_for_blocking(const eng_stream *stream, eng_op *op) {
  const eng_context *ctx = stream->o.ctx;
  if (stream->is_default) {
    for (const eng_stream *s = streams; s != NULL; s = s->next)
      if (s != stream && s->o.ctx == ctx && (s->flags & 1u) == 0) wait_for(op, s->last);
  } else if ((stream->flags & 1u) == 0 && ctx->fallback != NULL) {
    wait_for(op, ctx->fallback->last);
  }
}

int eng_stream_put(eng_stream *stream, eng_work *work, eng_fence **waits, size_t n_waits, eng_fence **out) {
  eng_op *op = calloc(1, sizeof *op);
  if (op == NULL) abort(); /* as above */
  if (work->ctx == NULL) work->ctx = stream->o.ctx;
  *op = (eng_op){.work = work, .fence = eng_fence_new(), .waits = waits, .n_waits = n_waits};
  wait_for_blocking(stream, op);
  if (!stream->threaded) {
    const int code = start_thread(stream);
    if (code != ENG_OK) {
      op_free(op);
      return code;
    }
  }
  if (stream->tail != NULL) stream->tail->next = op;
  else stream->head = op;
  stream->tail = op;
  eng_fence_drop(stream->last);
  stream->last = eng_fence_hold(op->fence);
  if (out != NULL) *out = eng_fence_hold(op->fence);
  pthread_cond_signal(&stream->arrived);
  return ENG_OK;
}

static int captures_nearby(eng_stream *stream) {
  if (!stream->is_default) return ENG_OK;
  for (eng_stream *s = streams; s != NULL; s = s->next) {
    if (s->o.ctx != stream->o.ctx || s->capture == NULL || (s->flags & 1u) != 0) continue;
    eng_capture_break(s, "work in the default stream");
    return ENG_CAPTURE_IMPLICIT;
  }
  return ENG_OK;
}

int eng_put(eng_stream_handle handle, eng_work *work, bool wait) {
  eng_stream *stream = NULL;
  eng_fence *fence = NULL;
  eng_enter();
  int code = eng_stream_find(handle, &stream);
  if (code == ENG_OK) code = captures_nearby(stream);
  if (code != ENG_OK) {
    eng_leave();
    eng_work_drop(work);
    return code;
  }
  if (stream->capture != NULL) {
    if (!wait) return eng_leave_with(eng_capture_add(stream, work));
    code = eng_capture_break(stream, "a call that waits");
    eng_leave();
    eng_work_drop(work);
    return code;
  }
  code = eng_stream_put(stream, work, NULL, 0, wait ? &fence : NULL);
  if (code == ENG_OK && wait) {
    eng_fence_await(fence);
    code = fence->code;
    eng_fence_drop(fence);
  }
  return eng_leave_with(code);
}

/* ---------------------------------------------------------------- asking, waiting */

int eng_stream_query(eng_stream_handle handle) {
  eng_stream *stream = NULL;
  eng_enter();
  int code = eng_stream_find(handle, &stream);
  if (code == ENG_OK && stream->capture != NULL) code = eng_capture_break(stream, "a query of the stream");
  if (code == ENG_OK) code = eng_capture_unsafe("a query of a stream");
  if (code == ENG_OK && stream->last != NULL && !stream->last->done) code = ENG_NOT_READY;
  return eng_leave_with(code);
}

int eng_stream_sync(eng_stream_handle handle) {
  eng_stream *stream = NULL;
  eng_enter();
  int code = eng_stream_find(handle, &stream);
  if (code == ENG_OK && stream->capture != NULL) code = eng_capture_break(stream, "a wait for the stream");
  if (code == ENG_OK) code = eng_capture_unsafe("a wait for a stream");
  if (code != ENG_OK || stream->last == NULL) return eng_leave_with(code);
  eng_context *ctx = stream->o.ctx;
  eng_fence *fence = eng_fence_hold(stream->last);
  eng_fence_await(fence);
  code = fence->code != ENG_OK ? fence->code : ctx->fault;
  eng_fence_drop(fence);
  return eng_leave_with(code);
}

int eng_stream_wait(eng_stream_handle handle, eng_event *event) {
  eng_stream *stream = NULL;
  eng_enter();
  int code = eng_stream_find(handle, &stream);
  if (code == ENG_OK) code = eng_object_check(event, ENG_EVENT, "an event that a stream is to wait for");
  if (code == ENG_OK) code = eng_event_join(event, stream);
  return eng_leave_with(code);
}

int eng_stream_write(eng_stream_handle handle, uint64_t address, uint64_t value) {
  eng_stream *stream = NULL;
  eng_enter();
  int code = eng_stream_find(handle, &stream);
  if (code == ENG_OK && stream->capture != NULL) code = eng_capture_break(stream, "a write of a number");
  const eng_allocation *a = eng_allocation_at(address);
  if (code == ENG_OK && (address % 8 != 0 || a == NULL || a->bytes - (address - a->base) < 8)) code = ENG_INVALID_VALUE;
  if (code != ENG_OK) return eng_leave_with(code);
  eng_work *work = eng_work_new(ENG_WORK_WRITE);
  work->address = address;
  work->value = value;
  return eng_leave_with(eng_stream_put(stream, work, NULL, 0, NULL));
}

int eng_stream_priority(eng_stream_handle handle, int *out) {
  eng_stream *stream = NULL;
  eng_enter();
  const int code = eng_stream_find(handle, &stream);
  if (code == ENG_OK) *out = stream->priority;
  return eng_leave_with(code);
}

int eng_stream_flags(eng_stream_handle handle, unsigned *out) {
  eng_stream *stream = NULL;
  eng_enter();
  const int code = eng_stream_find(handle, &stream);
  if (code == ENG_OK) *out = stream->flags;
  return eng_leave_with(code);
}

int eng_stream_context(eng_stream_handle handle, eng_context **out) {
  eng_stream *stream = NULL;
  eng_enter();
  const int code = eng_stream_find(handle, &stream);
  if (code == ENG_OK) *out = stream->o.ctx;
  return eng_leave_with(code);
}

int eng_stream_device(eng_stream_handle handle, int *out) {
  eng_stream *stream = NULL;
  eng_enter();
  const int code = eng_stream_find(handle, &stream);
  if (code == ENG_OK) *out = stream->o.ctx->device;
  return eng_leave_with(code);
}

static eng_stream *busy_one(const eng_context *ctx) {
  for (eng_stream *s = streams; s != NULL; s = s->next) {
    if ((ctx == NULL || s->o.ctx == ctx) && (s->head != NULL || s->busy)) return s;
  }
  return NULL;
}

eng_stream *eng_streams_all(void) {
  return streams;
}

void eng_streams_await(eng_context *ctx) {
  while (busy_one(ctx) != NULL) pthread_cond_wait(&eng_done, &eng_lock);
}

bool eng_streams_idle(uint64_t limit_ns) {
  const uint64_t end = eng_now() + limit_ns;
  while (busy_one(NULL) != NULL) {
    if (eng_now() > end) return false;
    eng_leave();
    nanosleep(&(struct timespec){0, 1000000}, NULL);
    eng_enter();
  }
  return true;
}

/* ---------------------------------------------------------------- host functions */

int eng_host_func(eng_stream_handle stream, void (*fn)(void *arg), void *arg) {
  if (fn == NULL) return ENG_INVALID_VALUE;
  eng_work *work = eng_work_new(ENG_WORK_HOST);
  work->host.fn = fn;
  work->host.arg = arg;
  return eng_put(stream, work, false);
}

int eng_callback(eng_stream_handle handle, void (*fn)(void *stream, int code, void *arg), void *arg) {
  eng_stream *stream = NULL;
  if (fn == NULL) return ENG_INVALID_VALUE;
  eng_enter();
  int code = eng_stream_find(handle, &stream);
  if (code == ENG_OK && stream->capture != NULL) code = eng_capture_break(stream, "a callback");
  eng_leave();
  if (code != ENG_OK) return code;
  eng_work *work = eng_work_new(ENG_WORK_CALLBACK);
  work->host.callback = fn;
  work->host.arg = arg;
  work->host.stream = handle;
  return eng_put(handle, work, false);
}
