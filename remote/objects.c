/* remote/objects.c: what a session holds for its client, and its limit of memory. */
#include <stdlib.h>
#include <string.h>

#include "plugins/common/perror.h"
#include "remote/session.h"

/* ---- the limit */

bool remote_hold(remote_session *s, uint64_t bytes, heddle_error *err) {
  if (bytes <= s->limits->memory - s->held) {
    s->held += bytes;
    return true;
  }
  (void)p_fail(err, HEDDLE_ENOMEM, 0, "%llu more bytes are over the session's limit of %llu, of which %llu are held",
               (unsigned long long)bytes, (unsigned long long)s->limits->memory, (unsigned long long)s->held);
  return false;
}

void remote_unhold(remote_session *s, uint64_t bytes) {
  s->held -= bytes;
}

/* ---- numbers */

bool remote_add(remote_session *s, remote_object *o, remote_kind kind, remote_device *device, heddle_error *err) {
  o->kind = kind;
  o->device = device;
  o->users = 0;
  o->is_freed = false;
  o->handle = rpc_handles_add(&s->handles, (rpc_held){.kind = RPC_HELD_OWN, .index = (uint32_t)kind, .pointer = o});
  if (o->handle != 0) return true;
  (void)p_fail(err, HEDDLE_ELIMIT, 0, "the session holds too many objects, or memory is out");
  return false;
}

heddle_status remote_get(remote_session *s, uint64_t handle, remote_kind kind, const remote_device *device, void *out,
                         heddle_error *err) {
  const rpc_held *held = rpc_handles_find(&s->handles, handle);
  remote_object *o = held != NULL ? held->pointer : NULL;
  if (o == NULL || o->kind != kind || (device != NULL && o->device != device))
    return p_fail(err, HEDDLE_EINVAL, 0, "the number 0x%llx is of nothing that the session holds for that",
                  (unsigned long long)handle);
  memcpy(out, &o, sizeof o);
  return HEDDLE_OK;
}

remote_stream *remote_find_stream(remote_session *s, uint32_t id) {
  return id > 0 && id <= s->n_streams && s->streams[id - 1].id == id ? &s->streams[id - 1] : NULL;
}

heddle_status remote_range(const remote_buffer *b, uint64_t offset, uint64_t bytes, heddle_error *err) {
  if (offset <= b->bytes && bytes <= b->bytes - offset) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "%llu bytes at %llu are outside a buffer of %llu", (unsigned long long)bytes,
                (unsigned long long)offset, (unsigned long long)b->bytes);
}

/* ---- waiting */

heddle_status remote_settle(remote_stream *stream) {
  if (stream->is_dirty && stream->failure.status == HEDDLE_OK && !heddle__device_inline(stream->device->dev)) {
    heddle_error err = {0};
    const heddle_status status = stream->device->dev->t->stream.sync(stream->stream, UINT64_MAX, &err);
    if (status != HEDDLE_OK) {
      stream->failure = err;
      stream->failure.status = status;
    }
  }
  stream->is_dirty = false;
  return stream->failure.status;
}

void remote_settle_all(remote_session *s, const remote_device *d) {
  for (uint32_t i = 0; i < s->n_streams; i++)
    if (s->streams[i].id != 0 && s->streams[i].device == d) (void)remote_settle(&s->streams[i]);
}

/* ---- freeing */

static void destroy(remote_session *s, remote_object *o);

void remote_let_go(remote_session *s, remote_object *o) {
  if (o != NULL && --o->users == 0 && o->is_freed) destroy(s, o);
}

static void destroy(remote_session *s, remote_object *o) {
  const heddle__tables *t = o->device->dev->t;
  heddle_pdevice *device = o->device->dev->handle;
  if (o->kind == REMOTE_BUFFER) {
    remote_buffer *b = (remote_buffer *)o;
    t->memory.free(device, b->buffer);
    free(b->address);
    remote_unhold(s, b->bytes);
  } else if (o->kind == REMOTE_OP) {
    remote_op_free(s, (remote_op *)o);
    return;
  } else if (o->kind == REMOTE_LAUNCH) {
    remote_launch *l = (remote_launch *)o;
    l->op->table->launch_free(l->launch);
    remote_let_go(s, &l->op->head);
    for (uint32_t i = 0; i < l->n_buffers; i++)
      if (l->buffers[i] != NULL) remote_let_go(s, &l->buffers[i]->head);
  } else {
    remote_graph *g = (remote_graph *)o;
    for (uint32_t i = 0; i < g->count; i++) {
      remote_let_go(s, g->steps[i].to);
      remote_let_go(s, g->steps[i].from);
    }
    free(g->out);
    remote_unhold(s, g->out_early);
  }
  free(o);
}

static void release_object(remote_session *s, uint64_t handle) {
  const rpc_held *held = rpc_handles_find(&s->handles, handle);
  remote_object *o = held != NULL ? held->pointer : NULL;
  if (o == NULL || o->is_freed) return;
  remote_settle_all(s, o->device);
  o->is_freed = true;
  (void)rpc_handles_remove(&s->handles, handle);
  if (o->users == 0) destroy(s, o);
}

static void release_stream(remote_stream *stream) {
  (void)remote_settle(stream);
  stream->device->dev->t->stream.close(stream->stream);
  *stream = (remote_stream){0};
}

void remote_drop_blobs(remote_session *s) {
  for (uint32_t i = 0; i < s->n_blobs; i++) {
    remote_unhold(s, s->blobs[i].id.bytes);
    free(s->blobs[i].data);
  }
  s->n_blobs = 0;
}

const void *remote_find_blob(void *session, const wire_blob_id *id) {
  const remote_session *s = session;
  for (uint32_t i = 0; i < s->n_blobs; i++)
    if (memcmp(&s->blobs[i].id, id, sizeof *id) == 0) return s->blobs[i].data;
  return NULL;
}

/* A stream that launches are bound to stays until its device is closed. */
static bool is_bound(const remote_session *s, uint32_t id) {
  for (uint32_t i = 0; i < s->handles.count; i++) {
    const rpc_held *held = &s->handles.data[i];
    if (held->kind == RPC_HELD_OWN && held->index == REMOTE_LAUNCH && ((remote_launch *)held->pointer)->stream == id)
      return true;
  }
  return false;
}

void remote_release(remote_session *s, uint64_t handle) {
  if (handle == WIRE_ALL_BLOBS) {
    remote_drop_blobs(s);
  } else if ((handle & WIRE_EVENT) != 0) {
    for (uint32_t i = 0; i < s->n_events; i++)
      if (s->events[i].id == handle) s->events[i] = s->events[--s->n_events];
  } else if (handle <= UINT32_MAX) {
    remote_stream *stream = remote_find_stream(s, (uint32_t)handle);
    if (stream != NULL && !is_bound(s, stream->id)) release_stream(stream);
  } else {
    release_object(s, handle);
  }
}

/* Users first: graphs, launches, then what they use, then streams. */
void remote_close_device(remote_session *s, remote_device *d) {
  static const remote_kind order[] = {REMOTE_GRAPH, REMOTE_LAUNCH, REMOTE_OP, REMOTE_BUFFER};
  if (!d->is_open) return;
  remote_settle_all(s, d);
  for (size_t k = 0; k < sizeof order / sizeof order[0]; k++) {
    for (uint32_t i = 0; i < s->handles.count; i++) {
      const rpc_held *held = &s->handles.data[i];
      if (held->kind != RPC_HELD_OWN || held->index != (uint32_t)order[k]) continue;
      remote_object *o = held->pointer;
      if (o->device == d) release_object(s, o->handle);
    }
  }
  for (uint32_t i = 0; i < s->n_streams; i++)
    if (s->streams[i].id != 0 && s->streams[i].device == d) release_stream(&s->streams[i]);
  remote_libraries_leave(s, d);
  d->dev->t->stream.close(d->util);
  d->util = NULL;
  d->is_open = false;
  heddle__device_close(d->dev);
}
