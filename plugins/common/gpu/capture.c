/* Captures: between begin and end the driver records what is put into a stream, and a replay launches the graph that came
 * of it. A graph that was freed is kept for a while: when a segment is recorded again because an address changed, the old
 * graph is updated to the new addresses, which takes the driver much less than to instantiate one anew. */
#include "plugins/common/gpu/stream.h"

enum {
  SPARES = 8,   /* kept per device; each holds some of its memory */
  UPDATES = 64, /* of one graph: HIP takes new memory for arguments with each, until the graph is destroyed */
};

struct heddle_pgraph {
  heddle_pdevice *dev;
  void *exec;   /* NULL: nothing was recorded */
  size_t nodes; /* of exec */
  uint32_t updates, reserved;
  heddle_pstream *last; /* in which exec was uploaded or launched last */
  void *event;          /* of a spare that was still running: behind its last launch */
  heddle_error failed;  /* of a call that was recorded; status 0: none */
  heddle_pgraph *next;  /* of the spares */
};

/* Freed graphs, oldest first, and what became of captures. */
struct gpu_spares {
  pthread_mutex_t lock; /* guards all; the driver is called with it held */
  heddle_pgraph *first;
  uint32_t n, reserved;
  uint64_t made, updated, refused;
};

/* ---------------------------------------------------------------- spares */

/* Inside gpu_enter. */
static void destroy(heddle_pgraph *graph) {
  heddle_pdevice *dev = graph->dev;
  if (graph->exec != NULL) dev->driver->exec_destroy(graph->exec); /* the driver waits until it has run */
  if (graph->event != NULL) dev->driver->event_destroy(graph->event);
  dev->host->free(dev->host->ctx, graph);
}

static heddle_status open_spares(heddle_pdevice *dev, heddle_error *err) {
  void *memory = NULL;
  pthread_mutex_lock(&dev->lock);
  gpu_spares *spares = dev->spares;
  pthread_mutex_unlock(&dev->lock);
  if (spares != NULL) return HEDDLE_OK;
  heddle_status s = gpu_new(dev->host, sizeof *spares, "spare graphs", &memory, err);
  if (s != HEDDLE_OK) return s;
  spares = memory;
  if (pthread_mutex_init(&spares->lock, NULL) != 0) {
    dev->host->free(dev->host->ctx, spares);
    return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no lock for spare graphs", dev->vendor->name, dev->index);
  }
  pthread_mutex_lock(&dev->lock);
  const bool first = dev->spares == NULL;
  if (first) dev->spares = spares;
  pthread_mutex_unlock(&dev->lock);
  if (first) return HEDDLE_OK;
  pthread_mutex_destroy(&spares->lock); /* another thread was faster */
  dev->host->free(dev->host->ctx, spares);
  return HEDDLE_OK;
}

/* Whether the graph has run to its end, or an event was put behind it that says when; the lock ask of the stream where it
 * was launched last is held. */
static bool mark_locked(heddle_pgraph *graph) {
  const gpu_driver *driver = graph->dev->driver;
  if (graph->last->own->recording) return false;
  const int code = driver->stream_query(graph->last->handle);
  if (code == 0 || graph->dev->vendor->fate(code) != GPU_NOT_READY) return code == 0;
  if (driver->event_create(&graph->event, GPU_EVENT_NO_TIMES) == 0)
    return driver->event_record(graph->event, graph->last->handle) == 0;
  graph->event = NULL;
  return false;
}

static bool mark_end(heddle_pgraph *graph) {
  pthread_mutex_lock(&graph->last->own->ask);
  const bool marked = mark_locked(graph);
  pthread_mutex_unlock(&graph->last->own->ask);
  return marked;
}

static void keep(gpu_spares *spares, heddle_pgraph *graph) {
  heddle_pgraph *oldest = NULL;
  pthread_mutex_lock(&spares->lock);
  if (spares->n == SPARES) {
    oldest = spares->first;
    spares->first = oldest->next;
    spares->n--;
  }
  heddle_pgraph **link = &spares->first;
  while (*link != NULL) link = &(*link)->next;
  graph->next = NULL;
  *link = graph;
  spares->n++;
  pthread_mutex_unlock(&spares->lock);
  if (oldest != NULL) destroy(oldest);
}

/* The oldest with that many nodes that has run to its end; NULL: none. The host frees and records segments in the same
 * order, so it is most likely the same segment's. */
static heddle_pgraph *take(heddle_pdevice *dev, size_t nodes) {
  gpu_spares *spares = dev->spares;
  heddle_pgraph *found = NULL;
  pthread_mutex_lock(&spares->lock);
  for (heddle_pgraph **link = &spares->first; *link != NULL; link = &(*link)->next) {
    void *event = (*link)->event;
    if ((*link)->nodes != nodes || (event != NULL && dev->driver->event_query(event) != 0)) continue;
    found = *link;
    *link = found->next;
    spares->n--;
    break;
  }
  pthread_mutex_unlock(&spares->lock);
  return found;
}

void gpu_spares_drop(heddle_pdevice *dev) {
  pthread_mutex_lock(&dev->lock);
  gpu_spares *spares = dev->spares;
  pthread_mutex_unlock(&dev->lock);
  if (spares == NULL) return;
  pthread_mutex_lock(&spares->lock);
  heddle_pgraph *x = spares->first;
  spares->first = NULL;
  spares->n = 0;
  pthread_mutex_unlock(&spares->lock);
  while (x != NULL) {
    heddle_pgraph *next = x->next;
    destroy(x);
    x = next;
  }
}

void gpu_spares_close(heddle_pdevice *dev) {
  gpu_spares *spares = dev->spares;
  if (spares == NULL) return;
  gpu_spares_drop(dev);
  pthread_mutex_destroy(&spares->lock);
  dev->host->free(dev->host->ctx, spares);
  dev->spares = NULL;
}

static void graph_free(heddle_pgraph *graph) {
  gpu_scope scope;
  if (graph == NULL) return;
  heddle_pdevice *dev = graph->dev;
  gpu_count(&dev->live_objects, -1);
  const bool entered = gpu_enter(dev, &scope, NULL) == HEDDLE_OK;
  const bool of_use = entered && graph->exec != NULL && graph->updates < UPDATES && dev->driver->graph_update != NULL &&
                      dev->spares != NULL && !atomic_load(&dev->faulted);
  if (of_use && mark_end(graph)) keep(dev->spares, graph);
  else destroy(graph);
  if (entered) gpu_leave(dev, &scope);
}

/* ---------------------------------------------------------------- recording */

static heddle_status can_capture(heddle_pdevice *dev, heddle_error *err) {
  const gpu_driver *d = dev->driver;
  if (!dev->self->capture)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s:%u: the setting capture is 0", dev->vendor->name, dev->index);
  if (d->capture_begin != NULL && d->capture_end != NULL && d->graph_nodes != NULL && d->graph_destroy != NULL &&
      d->graph_launch != NULL && d->exec_destroy != NULL)
    return HEDDLE_OK;
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s:%u: the driver has no graphs", dev->vendor->name, dev->index);
}

static heddle_status capture_begin(heddle_pstream *stream, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  gpu_scope scope;
  void *memory = NULL;
  heddle_status s = gpu_stream_enter_plain(stream, "begin of a capture", &scope, err);
  if (s != HEDDLE_OK) return s;
  s = can_capture(dev, err);
  if (s == HEDDLE_OK) s = open_spares(dev, err);
  if (s == HEDDLE_OK) s = gpu_new(dev->host, sizeof *stream->capture, "a capture", &memory, err);
  if (s == HEDDLE_OK) {
    pthread_mutex_lock(&stream->own->ask);
    const int code = dev->driver->capture_begin(stream->handle, GPU_CAPTURE_THREAD_LOCAL);
    stream->own->recording = code == 0;
    pthread_mutex_unlock(&stream->own->ask);
    s = gpu_check(dev, code, "begin a capture", err);
  }
  gpu_stream_leave(stream, &scope);
  if (s != HEDDLE_OK) {
    dev->host->free(dev->host->ctx, memory);
    return s;
  }
  stream->capture = memory;
  stream->capture->dev = dev;
  stream->capturing = true;
  gpu_count(&dev->live_objects, 1);
  return HEDDLE_OK;
}

void gpu_capture_broken(heddle_pgraph *graph, const heddle_error *failure) {
  if (graph->failed.status == HEDDLE_OK) graph->failed = *failure;
}

/* Ends the driver's recording, whatever came of it. */
static int stop_recording(heddle_pstream *stream, void **recorded) {
  pthread_mutex_lock(&stream->own->ask);
  const int code = stream->dev->driver->capture_end(stream->handle, recorded);
  stream->own->recording = false;
  pthread_mutex_unlock(&stream->own->ask);
  stream->capture = NULL;
  stream->capturing = false;
  if (code != 0) *recorded = NULL;
  return code;
}

void gpu_capture_abandon(heddle_pstream *stream) {
  heddle_pgraph *graph = stream->capture;
  void *recorded = NULL;
  stop_recording(stream, &recorded);
  if (recorded != NULL) stream->dev->driver->graph_destroy(recorded);
  gpu_count(&stream->dev->live_objects, -1);
  destroy(graph);
}

/* ---------------------------------------------------------------- from what was recorded to what can be launched */

static void tell(heddle_pdevice *dev, const heddle_pgraph *graph, const char *became, uint64_t *count) {
  gpu_spares *spares = dev->spares;
  char text[200];
  pthread_mutex_lock(&spares->lock);
  ++*count;
  snprintf(text, sizeof text, "%s:%u: a capture of %zu nodes %s (%llu made, %llu updated, %llu refused)",
           dev->vendor->name, dev->index, graph->nodes, became, (unsigned long long)spares->made,
           (unsigned long long)spares->updated, (unsigned long long)spares->refused);
  pthread_mutex_unlock(&spares->lock);
  dev->host->log(dev->host->ctx, HEDDLE_LOG_DEBUG, dev->vendor->name, text);
}

/* Brings a spare up to what was recorded, where there is one that the driver takes. */
static void update_spare(heddle_pdevice *dev, heddle_pgraph *graph, void *recorded) {
  void *where = NULL;
  int result = 0;
  if (dev->driver->graph_update == NULL) return;
  heddle_pgraph *spare = take(dev, graph->nodes);
  if (spare == NULL) return;
  if (dev->driver->graph_update(spare->exec, recorded, &where, &result) == 0 && result == 0) {
    graph->exec = spare->exec;
    graph->updates = spare->updates + 1;
    spare->exec = NULL;
    tell(dev, graph, "updated one that was freed", &dev->spares->updated);
  } else {
    tell(dev, graph, "did not fit one that was freed", &dev->spares->refused);
  }
  destroy(spare);
}

static heddle_status make_exec(heddle_pstream *stream, heddle_pgraph *graph, void *recorded, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  int code = dev->driver->graph_nodes(recorded, NULL, &graph->nodes);
  heddle_status s = gpu_check(dev, code, "count the nodes of a graph", err);
  if (s != HEDDLE_OK || graph->nodes == 0) return s;
  update_spare(dev, graph, recorded);
  if (graph->exec == NULL) {
    code = dev->vendor->instantiate(dev->self, recorded, &graph->exec);
    if (code != 0 && dev->vendor->fate(code) == GPU_NO_MEMORY) {
      gpu_spares_drop(dev);
      code = dev->vendor->instantiate(dev->self, recorded, &graph->exec);
    }
    if (code != 0) graph->exec = NULL;
    s = gpu_check(dev, code, "instantiate a graph", err);
    if (s != HEDDLE_OK) return s;
    tell(dev, graph, "was made anew", &dev->spares->made);
  }
  graph->last = stream;
  if (dev->driver->graph_upload == NULL) return HEDDLE_OK; /* the first launch does it */
  return gpu_check(dev, dev->driver->graph_upload(graph->exec, stream->handle), "upload a graph", err);
}

static heddle_status capture_end(heddle_pstream *stream, heddle_pgraph **out, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  heddle_pgraph *graph = stream->capture;
  gpu_scope scope;
  void *recorded = NULL;
  if (graph == NULL)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: end of a capture on a stream where none was begun", dev->vendor->name,
                  dev->index);
  const bool entered = gpu_enter(dev, &scope, NULL) == HEDDLE_OK;
  heddle_status s = gpu_check(dev, stop_recording(stream, &recorded), "end a capture", err);
  if (s != HEDDLE_EDEVICE && graph->failed.status != HEDDLE_OK) { /* the cause, not what came of it */
    s = graph->failed.status;
    if (err != NULL) *err = graph->failed;
  }
  if (s == HEDDLE_OK) s = gpu_health(dev, err);
  if (s == HEDDLE_OK) s = make_exec(stream, graph, recorded, err);
  if (recorded != NULL) dev->driver->graph_destroy(recorded);
  if (s == HEDDLE_OK) {
    *out = graph;
  } else {
    gpu_count(&dev->live_objects, -1);
    destroy(graph);
  }
  if (entered) gpu_leave(dev, &scope);
  return s;
}

/* ---------------------------------------------------------------- replay */

static heddle_status capture_replay(heddle_pgraph *graph, heddle_pstream *stream, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  gpu_scope scope;
  int code = 0;
  if (graph->dev != dev)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: replay: the handle is no capture of this device", dev->vendor->name,
                  dev->index);
  heddle_status s = gpu_stream_enter_plain(stream, "replay", &scope, err);
  if (s != HEDDLE_OK) return s;
  if (graph->exec != NULL) code = dev->driver->graph_launch(graph->exec, stream->handle);
  if (code == 0) graph->last = stream;
  return gpu_stream_done(stream, &scope, code, "replay", err);
}

const heddle_capture_table gpu_capture_table = {
    .struct_size = sizeof gpu_capture_table,
    .free = graph_free,
    .begin = capture_begin,
    .end = capture_end,
    .replay = capture_replay,
};
