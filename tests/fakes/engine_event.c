/* Events: the fence of what was put before them, with a time; or, in a capture, the nodes before them. */
#include "engine_inside.h"

struct eng_event {
  eng_object o;
  unsigned flags;
  eng_fence *fence;     /* NULL: never recorded outside a capture */
  eng_capture *capture; /* that it was recorded in */
  eng_node **nodes;
  size_t n_nodes;
};

int eng_event_create(eng_event **out, unsigned flags) {
  eng_context *ctx = NULL;
  eng_enter();
  int code = eng_context_need(&ctx);
  if (code == ENG_OK && (flags & ~7u) != 0) code = ENG_INVALID_VALUE;
  if (code != ENG_OK) return eng_leave_with(code);
  eng_event *event = calloc(1, sizeof *event);
  if (event == NULL) return eng_leave_with(ENG_OUT_OF_MEMORY);
  event->flags = flags;
  eng_object_add(&event->o, ENG_EVENT, ctx);
  *out = event;
  return eng_leave_with(ENG_OK);
}

static void forget(eng_event *event) {
  eng_fence_drop(event->fence);
  eng_capture_drop(event->capture);
  free(event->nodes);
  event->fence = NULL;
  event->capture = NULL;
  event->nodes = NULL;
  event->n_nodes = 0;
}

void eng_event_free(eng_event *event) {
  forget(event);
  eng_object_retire(&event->o);
}

int eng_event_destroy(eng_event *event) {
  eng_context *ctx = NULL;
  eng_enter();
  const int code = eng_context_need(&ctx);
  if (code == ENG_INVALID_CONTEXT || code == ENG_CONTEXT_DESTROYED) return eng_leave_with(code);
  const int found = eng_object_check(event, ENG_EVENT, "an event is destroyed");
  if (found != ENG_OK) return eng_leave_with(found);
  eng_event_free(event);
  return eng_leave_with(code);
}

static bool copy_leaves(eng_event *event, const eng_stream *stream) {
  event->nodes = malloc((stream->n_leaves + 1) * sizeof *event->nodes);
  if (event->nodes == NULL) return false;
  if (stream->n_leaves > 0) memcpy(event->nodes, stream->leaves, stream->n_leaves * sizeof *event->nodes);
  event->n_nodes = stream->n_leaves;
  return true;
}

int eng_event_record(eng_event *event, eng_stream_handle handle) {
  eng_stream *stream = NULL;
  eng_enter();
  int code = eng_stream_find(handle, &stream);
  if (code == ENG_OK) code = eng_object_check(event, ENG_EVENT, "an event is recorded");
  if (code == ENG_OK && event->o.ctx != stream->o.ctx) {
    eng_misuse("an event of device %d is recorded in a stream of device %d", event->o.ctx->device,
               stream->o.ctx->device);
    code = ENG_INVALID_HANDLE;
  }
  if (code == ENG_OK && stream->capture != NULL && stream->capture->invalid) code = ENG_CAPTURE_INVALIDATED;
  if (code != ENG_OK) return eng_leave_with(code);
  forget(event);
  if (stream->capture == NULL)
    return eng_leave_with(eng_stream_put(stream, eng_work_new(ENG_WORK_EMPTY), NULL, 0, &event->fence));
  if (!copy_leaves(event, stream)) return eng_leave_with(ENG_OUT_OF_MEMORY);
  event->capture = stream->capture;
  event->capture->refs++;
  return eng_leave_with(ENG_OK);
}

int eng_event_record_external(eng_event *event, eng_stream_handle handle) {
  eng_stream *stream = NULL;
  eng_enter();
  int code = eng_stream_find(handle, &stream);
  if (code == ENG_OK) code = eng_object_check(event, ENG_EVENT, "an event is recorded");
  const bool captured = code == ENG_OK && stream->capture != NULL;
  eng_leave();
  if (code != ENG_OK || !captured) return code != ENG_OK ? code : eng_event_record(event, handle);
  eng_work *work = eng_work_new(ENG_WORK_RECORD);
  work->event = event;
  return eng_put(handle, work, false);
}

void eng_event_reached(eng_event *event) {
  if (!eng_object_is(event, ENG_EVENT)) {
    eng_misuse("a graph records an event that is destroyed");
    return;
  }
  forget(event);
  event->fence = eng_fence_new();
  event->fence->time = eng_now();
  event->fence->done = true;
}

/* A stream that captures, or is drawn into a capture by the event. */
static int join_capture(eng_event *event, eng_stream *stream) {
  eng_capture *capture = event->capture;
  if (capture == NULL) {
    if (event->fence == NULL) return ENG_OK;
    eng_capture_break(stream, "a wait for an event from outside");
    return ENG_CAPTURE_ISOLATION;
  }
  if (capture->ended || capture->invalid) {
    if (stream->capture != NULL) eng_capture_break(stream, "a wait for an event of a capture that is over");
    else eng_misuse("a stream is to wait for an event of a capture that is over");
    return capture->invalid ? ENG_CAPTURE_INVALIDATED : ENG_CAPTURED_EVENT;
  }
  if (stream->capture != NULL && stream->capture != capture) {
    eng_capture_break(stream, "a wait for an event of another capture");
    capture->invalid = true;
    return ENG_CAPTURE_MERGE;
  }
  eng_node **more = realloc(stream->leaves, (stream->n_leaves + event->n_nodes + 1) * sizeof *more);
  if (more == NULL) return ENG_OUT_OF_MEMORY;
  stream->leaves = more;
  for (size_t i = 0; i < event->n_nodes; i++) {
    bool there = false;
    for (size_t k = 0; k < stream->n_leaves; k++) there = there || stream->leaves[k] == event->nodes[i];
    if (!there) stream->leaves[stream->n_leaves++] = event->nodes[i];
  }
  if (stream->capture == NULL) capture->refs++;
  stream->capture = capture;
  return ENG_OK;
}

int eng_event_join(eng_event *event, eng_stream *stream) {
  if (stream->capture != NULL || event->capture != NULL) return join_capture(event, stream);
  if (event->fence == NULL || event->fence->done) return ENG_OK;
  eng_fence **waits = malloc(sizeof *waits);
  if (waits == NULL) return ENG_OUT_OF_MEMORY;
  waits[0] = eng_fence_hold(event->fence);
  return eng_stream_put(stream, eng_work_new(ENG_WORK_EMPTY), waits, 1, NULL);
}

/* The event, of a context without a fault, and outside any capture. */
static int find(eng_event *event, const char *what) {
  eng_context *ctx = NULL;
  int code = eng_context_need(&ctx);
  if (code == ENG_OK) code = eng_object_check(event, ENG_EVENT, what);
  if (code == ENG_OK) code = event->o.ctx->fault;
  if (code != ENG_OK) return code;
  if (event->capture == NULL) return eng_capture_unsafe(what);
  eng_misuse("%s: it was recorded in a capture", what);
  event->capture->invalid = true;
  return ENG_CAPTURED_EVENT;
}

int eng_event_query(eng_event *event) {
  eng_enter();
  int code = find(event, "a query of an event");
  if (code == ENG_OK && event->fence != NULL) code = event->fence->done ? event->fence->code : ENG_NOT_READY;
  return eng_leave_with(code);
}

int eng_event_sync(eng_event *event) {
  eng_enter();
  int code = find(event, "a wait for an event");
  if (code != ENG_OK || event->fence == NULL) return eng_leave_with(code);
  eng_fence *fence = eng_fence_hold(event->fence);
  eng_fence_await(fence);
  code = fence->code;
  eng_fence_drop(fence);
  return eng_leave_with(code);
}

int eng_event_elapsed(float *ms, eng_event *from, eng_event *to) {
  eng_enter();
  int code = find(from, "the time of an event");
  if (code == ENG_OK) code = find(to, "the time of an event");
  if (code == ENG_OK &&
      (from->o.ctx != to->o.ctx || ((from->flags | to->flags) & 2u) != 0 || from->fence == NULL || to->fence == NULL)) {
    eng_misuse("two events have no time between them: of two contexts, without times, or never recorded");
    code = ENG_INVALID_HANDLE;
  }
  if (code == ENG_OK && !(from->fence->done && to->fence->done)) code = ENG_NOT_READY;
  if (code == ENG_OK) *ms = (float)((double)(int64_t)(to->fence->time - from->fence->time) * 1e-6);
  return eng_leave_with(code);
}
