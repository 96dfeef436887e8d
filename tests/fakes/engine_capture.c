/* Captures: what is put into a stream becomes nodes of a graph, events carry the capture to other streams and back, and
 * a call that no graph can hold breaks it. */
#include "engine_inside.h"

static eng_capture *captures;                          /* those under way */
static _Thread_local int manners = ENG_CAPTURE_GLOBAL; /* of this thread, beside captures */

void eng_capture_drop(eng_capture *capture) {
  if (capture != NULL && --capture->refs == 0) free(capture);
}

static void leave(eng_stream *stream) {
  eng_capture_drop(stream->capture);
  free(stream->leaves);
  stream->capture = NULL;
  stream->leaves = NULL;
  stream->n_leaves = 0;
}

/* The capture is over: its streams are free, and its graph is the caller's. */
static eng_graph *finish(eng_capture *capture) {
  eng_graph *graph = capture->graph;
  for (eng_capture **p = &captures; *p != NULL; p = &(*p)->next) {
    if (*p != capture) continue;
    *p = capture->next;
    break;
  }
  capture->ended = true;
  capture->graph = NULL;
  capture->refs++;
  for (eng_stream *s = eng_streams_all(); s != NULL; s = s->next)
    if (s->capture == capture) leave(s);
  eng_capture_drop(capture);
  return graph;
}

int eng_capture_begin(eng_stream_handle handle, int mode) {
  eng_stream *stream = NULL;
  eng_enter();
  int code = eng_stream_find(handle, &stream);
  if (code == ENG_OK && (mode < ENG_CAPTURE_GLOBAL || mode > ENG_CAPTURE_RELAXED)) code = ENG_INVALID_VALUE;
  if (code == ENG_OK && (stream->is_default || stream->capture != NULL)) {
    eng_misuse("a capture is begun in a stream that %s",
               stream->is_default ? "is the default stream" : "captures already");
    code = stream->is_default ? ENG_CAPTURE_UNSUPPORTED : ENG_INVALID_VALUE;
  }
  if (code != ENG_OK) return eng_leave_with(code);
  eng_capture *capture = calloc(1, sizeof *capture);
  eng_graph *graph = capture != NULL ? eng_graph_new(stream->o.ctx) : NULL;
  if (graph == NULL) {
    free(capture);
    return eng_leave_with(ENG_OUT_OF_MEMORY);
  }
  *capture = (eng_capture){
      .refs = 1, .mode = mode, .thread = pthread_self(), .origin = stream, .graph = graph, .next = captures};
  captures = capture;
  stream->capture = capture;
  return eng_leave_with(ENG_OK);
}

int eng_capture_add(eng_stream *stream, eng_work *work) {
  eng_capture *capture = stream->capture;
  if (capture->invalid) {
    eng_work_drop(work);
    return ENG_CAPTURE_INVALIDATED;
  }
  if (work->ctx == NULL) work->ctx = stream->o.ctx;
  eng_node **leaves = malloc(sizeof *leaves);
  eng_node *node = eng_graph_add(capture->graph, work, stream->leaves, stream->n_leaves);
  if (leaves == NULL || node == NULL) {
    free(leaves);
    return ENG_OUT_OF_MEMORY;
  }
  free(stream->leaves);
  stream->leaves = leaves;
  stream->leaves[0] = node;
  stream->n_leaves = 1;
  return ENG_OK;
}

int eng_capture_break(eng_stream *stream, const char *what) {
  eng_misuse("%s, in a stream that captures", what);
  stream->capture->invalid = true;
  return ENG_CAPTURE_UNSUPPORTED;
}

int eng_capture_unsafe(const char *what) {
  bool broken = false;
  for (eng_capture *c = captures; c != NULL && manners != ENG_CAPTURE_RELAXED; c = c->next) {
    const bool foreign = !pthread_equal(c->thread, pthread_self());
    if (c->mode == ENG_CAPTURE_RELAXED) continue;
    if (foreign && (c->mode == ENG_CAPTURE_THREAD || manners == ENG_CAPTURE_THREAD)) continue;
    c->invalid = true;
    broken = true;
  }
  if (!broken) return ENG_OK;
  eng_misuse("%s, while a capture is under way that does not allow it", what);
  return ENG_CAPTURE_UNSUPPORTED;
}

int eng_capture_exchange(int *mode) {
  const int before = manners;
  if (*mode < ENG_CAPTURE_GLOBAL || *mode > ENG_CAPTURE_RELAXED) return ENG_INVALID_VALUE;
  manners = *mode;
  *mode = before;
  return ENG_OK;
}

/* All nodes lead to what the first stream has last. */
static bool is_joined(const eng_capture *capture, const eng_stream *origin) {
  const eng_graph *graph = capture->graph;
  bool *leads = calloc(graph->n_nodes + 1, sizeof *leads), all = true;
  if (leads == NULL) return false;
  for (size_t i = 0; i < origin->n_leaves; i++) leads[origin->leaves[i]->index] = true;
  for (size_t i = graph->n_nodes; i-- > 0;) {
    for (size_t k = 0; leads[i] && k < graph->nodes[i]->n_deps; k++) leads[graph->nodes[i]->deps[k]->index] = true;
    all = all && leads[i];
  }
  free(leads);
  return all;
}

int eng_capture_end(eng_stream_handle handle, eng_graph **out) {
  enum { ILLEGAL_STATE = 401 };
  eng_stream *stream = NULL;
  *out = NULL;
  eng_enter();
  int code = eng_stream_find(handle, &stream);
  if (code != ENG_OK) return eng_leave_with(code);
  eng_capture *capture = stream->capture;
  if (capture == NULL) {
    eng_misuse("a capture is ended in a stream that does not capture");
    return eng_leave_with(ILLEGAL_STATE);
  }
  if (capture->origin != stream) {
    eng_capture_break(stream, "the end of a capture that began in another stream");
    return eng_leave_with(ENG_CAPTURE_UNMATCHED);
  }
  if (capture->mode != ENG_CAPTURE_RELAXED && !pthread_equal(capture->thread, pthread_self())) {
    eng_misuse("a capture is ended by another thread than began it");
    return eng_leave_with(ENG_CAPTURE_WRONG_THREAD);
  }
  if (capture->invalid) code = ENG_CAPTURE_INVALIDATED;
  else if (!is_joined(capture, stream)) {
    eng_misuse("a capture is ended while work of another stream is not joined to it");
    code = ENG_CAPTURE_UNJOINED;
  }
  eng_context *ctx = stream->o.ctx;
  eng_graph *graph = finish(capture);
  if (code == ENG_OK) {
    eng_object_add(&graph->o, ENG_GRAPH, ctx);
    *out = graph;
  } else {
    eng_graph_free(graph);
  }
  return eng_leave_with(code);
}

int eng_capture_status(eng_stream_handle handle, int *out) {
  eng_stream *stream = NULL;
  eng_enter();
  const int code = eng_stream_find(handle, &stream);
  if (code == ENG_OK) *out = stream->capture == NULL ? 0 : stream->capture->invalid ? 2 : 1;
  return eng_leave_with(code);
}

void eng_capture_forget(eng_stream *stream) {
  eng_capture *capture = stream->capture;
  if (capture == NULL) return;
  eng_misuse("a stream goes while it captures");
  if (capture->origin == stream) {
    eng_graph_free(finish(capture));
    return;
  }
  capture->invalid = true;
  leave(stream);
}
