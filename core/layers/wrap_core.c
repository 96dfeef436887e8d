/* core/layers/wrap_core.c: the wrapped tables for devices, memory, copies, streams, events and fences.
 * Each function looks its handles up, lets the layers see the call, and calls the plugin with its own handles. */
#include "core/layers/wrap.h"

/* ---- device */

static void device_close(heddle_pdevice *dev) {
  W *d = heddle__take(dev, HEDDLE__DEVICE, "device.close");
  if (d == NULL) return;
  d->layers->next->device.close(d->real);
  heddle__drop(d);
}

static heddle_status device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  BEGIN("device.open", HEDDLE__PURE);
  W *i = heddle__unwrap(&c, self, HEDDLE__INSTANCE);
  heddle_pdevice *real = NULL;
  c.index = index;
  CALL(NEXT->device.open(i->real, index, options, &real, err));
  GIVE(HEDDLE__DEVICE, heddle_pdevice, NULL, i, NEXT->device.close(real));
  if (w != NULL) w->index = index;
  return c.status;
}

static heddle_status device_query(heddle_pdevice *dev, uint32_t key, int64_t *out, heddle_error *err) {
  BEGIN("device.query", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE);
  CALL(NEXT->device.query(d->real, key, out, err));
  return c.status;
}

static heddle_status device_health(heddle_pdevice *dev, heddle_error *err) {
  BEGIN("device.health", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE);
  CALL(NEXT->device.health(d->real, err));
  return c.status;
}

static heddle_status device_idle(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  BEGIN("device.idle", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE);
  CALL(NEXT->device.idle(d->real, timeout_ns, err));
  return c.status;
}

static heddle_status device_memory_now(heddle_pdevice *dev, uint64_t *free_bytes, uint64_t *total, heddle_error *err) {
  BEGIN("device.memory_now", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE);
  CALL(NEXT->device.memory_now(d->real, free_bytes, total, err));
  return c.status;
}

#if HEDDLE_ABI_MINOR >= 2
static heddle_status device_reset(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  BEGIN("device.reset", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE);
  CALL(NEXT->device.reset(d->real, timeout_ns, err));
  return c.status;
}
#endif

/* ---- memory */

static void memory_free(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  W *b = heddle__take(buffer, HEDDLE__BUFFER, "memory.free");
  if (b == NULL) return;
  if (b->layers->checks && (void *)dev != (void *)b->device)
    heddle__broken_logged(b->layers, "memory.free was given a buffer of another device");
  b->layers->next->memory.free(b->device->real, b->real);
  heddle__drop(b);
}

#if HEDDLE_ABI_MINOR >= 2 /* tests/abi builds the layers with the header of 1.0 too */
enum { LAST_KIND = HEDDLE_MEMORY_IMAGE };
#else
enum { LAST_KIND = HEDDLE_MEMORY_UNIFIED };
#endif

static heddle_status memory_alloc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                                  heddle_error *err) {
  BEGIN("memory.alloc", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE);
  heddle_pbuffer *real = NULL;
  if (c.status == HEDDLE_OK && c.layers->checks &&
      (desc->kind > LAST_KIND || (desc->align & (desc->align - 1)) != 0 || desc->struct_size == 0))
    heddle__broken(&c, HEDDLE_EINTERNAL, "kind %u, align %llu", (unsigned)desc->kind, (unsigned long long)desc->align);
  CALL(NEXT->memory.alloc(d->real, desc, &real, err));
  GIVE(HEDDLE__BUFFER, heddle_pbuffer, d, NULL, NEXT->memory.free(d->real, real));
  if (w != NULL) {
    w->bytes = desc->bytes;
    w->memory = desc->kind;
  }
  return c.status;
}

static heddle_status memory_view(heddle_pdevice *dev, heddle_pbuffer *parent, uint64_t offset, uint64_t bytes,
                                 heddle_pbuffer **out, heddle_error *err) {
  BEGIN("memory.view", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE), *p = heddle__unwrap_range(&c, parent, offset, bytes, false);
  heddle_pbuffer *real = NULL;
  c.range[0].operand = true;
  if (c.status == HEDDLE_OK && p->memory == HEDDLE__VIEW && c.layers->checks)
    heddle__broken(&c, HEDDLE_EINTERNAL, "a view of a view");
  CALL(NEXT->memory.view(d->real, p->real, offset, bytes, &real, err));
  GIVE(HEDDLE__BUFFER, heddle_pbuffer, d, p, NEXT->memory.free(d->real, real));
  if (w != NULL) {
    w->bytes = bytes;
    w->memory = HEDDLE__VIEW;
  }
  return c.status;
}

static heddle_status memory_import_host(heddle_pdevice *dev, void *pointer, uint64_t bytes, heddle_pbuffer **out,
                                        heddle_error *err) {
  BEGIN("memory.import_host", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE);
  heddle_pbuffer *real = NULL;
  if (c.status == HEDDLE_OK && pointer == NULL && bytes > 0)
    heddle__broken(&c, HEDDLE_EINTERNAL, "%llu bytes at NULL", (unsigned long long)bytes);
  CALL(NEXT->memory.import_host(d->real, pointer, bytes, &real, err));
  GIVE(HEDDLE__BUFFER, heddle_pbuffer, d, NULL, NEXT->memory.free(d->real, real));
  if (w != NULL) {
    w->bytes = bytes;
    w->memory = HEDDLE__IMPORT;
  }
  return c.status;
}

static heddle_status memory_map(heddle_pdevice *dev, heddle_pbuffer *buffer, void **out, heddle_error *err) {
  BEGIN("memory.map", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE), *b = heddle__unwrap_range(&c, buffer, 0, 0, false);
  void *real = NULL;
  if (c.status == HEDDLE_OK && c.layers->checks &&
      ((b->memory != HEDDLE_MEMORY_PINNED && b->memory != HEDDLE_MEMORY_UNIFIED) || atomic_load(&b->mapped)))
    heddle__broken(&c, HEDDLE_EINTERNAL, "the buffer is %s",
                   atomic_load(&b->mapped) ? "mapped already" : "neither PINNED nor UNIFIED");
  CALL(NEXT->memory.map(d->real, b->real, &real, err));
  if (c.status == HEDDLE_OK && real == NULL && b->bytes > 0)
    heddle__broken(&c, HEDDLE_EABI, "it said yes and gave no address");
  if (c.status == HEDDLE_OK) {
    atomic_store(&b->mapped, true);
    *out = real;
  }
  return c.status;
}

static void memory_unmap(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  heddle_error *err = NULL;
  BEGIN("memory.unmap", HEDDLE__ANY_THREAD);
  if (buffer == NULL) return;
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE), *b = heddle__unwrap(&c, buffer, HEDDLE__BUFFER);
  if (c.status != HEDDLE_OK) return;
  if (!atomic_exchange(&b->mapped, false) && c.layers->checks)
    heddle__broken_logged(c.layers, "memory.unmap was given a buffer that is not mapped");
  NEXT->memory.unmap(d->real, b->real);
}

static heddle_status memory_flush(heddle_pdevice *dev, heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes,
                                  heddle_error *err) {
  BEGIN("memory.flush", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE), *b = heddle__unwrap_range(&c, buffer, offset, bytes, false);
  CALL(NEXT->memory.flush(d->real, b->real, offset, bytes, err));
  return c.status;
}

static heddle_status memory_invalidate(heddle_pdevice *dev, heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes,
                                       heddle_error *err) {
  BEGIN("memory.invalidate", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE), *b = heddle__unwrap_range(&c, buffer, offset, bytes, false);
  CALL(NEXT->memory.invalidate(d->real, b->real, offset, bytes, err));
  return c.status;
}

static heddle_status memory_native(heddle_pdevice *dev, heddle_pbuffer *buffer, uint64_t *out, heddle_error *err) {
  BEGIN("memory.native", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE), *b = heddle__unwrap(&c, buffer, HEDDLE__BUFFER);
  CALL(NEXT->memory.native(d->real, b->real, out, err));
  return c.status;
}

#if HEDDLE_ABI_MINOR >= 1 /* tests/abi builds the layers with the header of 1.0 too */
static heddle_status memory_adopt(heddle_pdevice *dev, uint64_t handle, uint64_t offset, uint64_t bytes,
                                  heddle_pbuffer **out, heddle_error *err) {
  BEGIN("memory.adopt", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE);
  heddle_pbuffer *real = NULL;
  if (c.status == HEDDLE_OK && bytes == 0) heddle__broken(&c, HEDDLE_EINTERNAL, "no bytes");
  CALL(NEXT->memory.adopt(d->real, handle, offset, bytes, &real, err));
  GIVE(HEDDLE__BUFFER, heddle_pbuffer, d, NULL, NEXT->memory.free(d->real, real));
  if (w != NULL) {
    w->bytes = bytes;
    w->memory = HEDDLE_MEMORY_DEVICE;
  }
  return c.status;
}
#endif

/* ---- copy */

static heddle_status copy_h2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *host,
                              uint64_t host_offset, uint64_t bytes, heddle_error *err) {
  BEGIN("copy.h2d", HEDDLE__RECORDS);
  W *s = heddle__unwrap_stream(&c, stream), *d = heddle__unwrap_range(&c, dst, dst_offset, bytes, false);
  W *h = heddle__unwrap_range(&c, host, host_offset, bytes, true);
  CALL(NEXT->copy.h2d(s->real, d->real, dst_offset, h->real, host_offset, bytes, err));
  return c.status;
}

static heddle_status copy_d2h(heddle_pstream *stream, heddle_pbuffer *host, uint64_t host_offset, heddle_pbuffer *src,
                              uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  BEGIN("copy.d2h", HEDDLE__RECORDS);
  W *s = heddle__unwrap_stream(&c, stream), *h = heddle__unwrap_range(&c, host, host_offset, bytes, true);
  W *d = heddle__unwrap_range(&c, src, src_offset, bytes, false);
  CALL(NEXT->copy.d2h(s->real, h->real, host_offset, d->real, src_offset, bytes, err));
  return c.status;
}

static heddle_status copy_write(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, const void *src,
                                uint64_t bytes, heddle_error *err) {
  BEGIN("copy.write", HEDDLE__NOT_CAPTURED);
  W *s = heddle__unwrap_stream(&c, stream), *d = heddle__unwrap_range(&c, dst, dst_offset, bytes, false);
  if (c.status == HEDDLE_OK && src == NULL && bytes > 0) heddle__broken(&c, HEDDLE_EINTERNAL, "the source is NULL");
  CALL(NEXT->copy.write(s->real, d->real, dst_offset, src, bytes, err));
  return c.status;
}

static heddle_status copy_read(heddle_pstream *stream, void *dst, heddle_pbuffer *src, uint64_t src_offset,
                               uint64_t bytes, heddle_error *err) {
  BEGIN("copy.read", HEDDLE__NOT_CAPTURED);
  W *s = heddle__unwrap_stream(&c, stream), *d = heddle__unwrap_range(&c, src, src_offset, bytes, false);
  if (c.status == HEDDLE_OK && dst == NULL && bytes > 0)
    heddle__broken(&c, HEDDLE_EINTERNAL, "the destination is NULL");
  CALL(NEXT->copy.read(s->real, dst, d->real, src_offset, bytes, err));
  return c.status;
}

static heddle_status copy_d2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *src,
                              uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  BEGIN("copy.d2d", HEDDLE__RECORDS);
  W *s = heddle__unwrap_stream(&c, stream), *d = heddle__unwrap_range(&c, dst, dst_offset, bytes, false);
  W *f = heddle__unwrap_range(&c, src, src_offset, bytes, false);
  CALL(NEXT->copy.d2d(s->real, d->real, dst_offset, f->real, src_offset, bytes, err));
  return c.status;
}

static heddle_status copy_fill(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, uint64_t bytes,
                               uint32_t pattern, heddle_error *err) {
  BEGIN("copy.fill", HEDDLE__RECORDS);
  W *s = heddle__unwrap_stream(&c, stream), *d = heddle__unwrap_range(&c, dst, dst_offset, bytes, false);
  if (c.status == HEDDLE_OK && (dst_offset % 4 != 0 || bytes % 4 != 0))
    heddle__broken(&c, HEDDLE_EINTERNAL, "offset and bytes are no multiples of 4");
  CALL(NEXT->copy.fill(s->real, d->real, dst_offset, bytes, pattern, err));
  return c.status;
}

static heddle_status copy_can_peer(heddle_pinstance *self, uint32_t dst_index, uint32_t src_index, heddle_error *err) {
  BEGIN("copy.can_peer", HEDDLE__PURE);
  W *i = heddle__unwrap(&c, self, HEDDLE__INSTANCE);
  c.index = dst_index;
  CALL(NEXT->copy.can_peer(i->real, dst_index, src_index, err));
  return c.status;
}

/* The two ranges are of two devices, so each is looked at with its own. */
static heddle_status copy_peer(heddle_pstream *stream, heddle_pdevice *dst_dev, heddle_pbuffer *dst,
                               uint64_t dst_offset, heddle_pdevice *src_dev, heddle_pbuffer *src, uint64_t src_offset,
                               uint64_t bytes, heddle_error *err) {
  BEGIN("copy.peer", HEDDLE__NOT_CAPTURED);
  W *s = heddle__unwrap_stream(&c, stream), *to = heddle__unwrap(&c, dst_dev, HEDDLE__DEVICE);
  W *from = heddle__unwrap(&c, src_dev, HEDDLE__DEVICE), *d = heddle__unwrap(&c, dst, HEDDLE__BUFFER);
  W *f = heddle__unwrap(&c, src, HEDDLE__BUFFER);
  if (c.status == HEDDLE_OK && c.layers->checks) {
    if (d->device != to || f->device != from || (s->device != to && s->device != from))
      heddle__broken(&c, HEDDLE_EINTERNAL, "stream, buffers and devices do not belong together");
    else if (dst_offset > d->bytes || bytes > d->bytes - dst_offset || src_offset > f->bytes ||
             bytes > f->bytes - src_offset)
      heddle__broken(&c, HEDDLE_EINTERNAL, "the range leaves its buffer");
  }
  CALL(NEXT->copy.peer(s->real, to->real, d->real, dst_offset, from->real, f->real, src_offset, bytes, err));
  return c.status;
}

/* ---- stream */

static void stream_close(heddle_pstream *stream) {
  W *s = heddle__take(stream, HEDDLE__STREAM, "stream.close");
  if (s == NULL) return;
  s->layers->next->stream.close(s->real);
  heddle__drop(s);
}

static heddle_status stream_create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                                   heddle_error *err) {
  BEGIN("stream.create", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE);
  heddle_pstream *real = NULL;
  CALL(NEXT->stream.create(d->real, kind, priority, &real, err));
  GIVE(HEDDLE__STREAM, heddle_pstream, d, NULL, NEXT->stream.close(real));
  return c.status;
}

static heddle_status stream_submit(heddle_pstream *stream, heddle_error *err) {
  BEGIN("stream.submit", HEDDLE__NOT_CAPTURED);
  W *s = heddle__unwrap_stream(&c, stream);
  CALL(NEXT->stream.submit(s->real, err));
  return c.status;
}

static heddle_status stream_sync(heddle_pstream *stream, uint64_t timeout_ns, heddle_error *err) {
  BEGIN("stream.sync", HEDDLE__NOT_CAPTURED);
  W *s = heddle__unwrap_stream(&c, stream);
  CALL(NEXT->stream.sync(s->real, timeout_ns, err));
  return c.status;
}

static heddle_status stream_query(heddle_pstream *stream, heddle_error *err) {
  BEGIN("stream.query", HEDDLE__ANY_THREAD);
  W *s = heddle__unwrap_stream(&c, stream);
  CALL(NEXT->stream.query(s->real, err));
  return c.status;
}

#if HEDDLE_ABI_MINOR >= 2
static heddle_status stream_adopt(heddle_pdevice *dev, uint64_t handle, heddle_pstream **out, heddle_error *err) {
  BEGIN("stream.adopt", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE);
  heddle_pstream *real = NULL;
  CALL(NEXT->stream.adopt(d->real, handle, &real, err));
  GIVE(HEDDLE__STREAM, heddle_pstream, d, NULL, NEXT->stream.close(real));
  return c.status;
}
#endif

/* ---- event, fence */

static void event_free(heddle_pevent *event) {
  W *e = heddle__take(event, HEDDLE__EVENT, "event.free");
  if (e == NULL) return;
  e->layers->next->event.free(e->real);
  heddle__drop(e);
}

static heddle_status event_create(heddle_pdevice *dev, heddle_pevent **out, heddle_error *err) {
  BEGIN("event.create", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE);
  heddle_pevent *real = NULL;
  CALL(NEXT->event.create(d->real, &real, err));
  GIVE(HEDDLE__EVENT, heddle_pevent, d, NULL, NEXT->event.free(real));
  return c.status;
}

/* Events cross streams of one domain; the device of an event may be another than the stream's. */
static bool same_domain(heddle__call *c, const W *event, const W *stream) {
  if (c->status != HEDDLE_OK || !c->layers->checks || event->device == stream->device) return true;
  const heddle__plugin *p = c->layers->plugin;
  uint64_t domain[2] = {0, 1};
  for (uint32_t i = 0; i < p->n_devices; i++) {
    const heddle_device *d = p->devices[i];
    if (d->index == event->device->index) domain[0] = d->desc.event_domain;
    if (d->index == stream->device->index) domain[1] = d->desc.event_domain;
  }
  if (domain[0] != domain[1]) heddle__broken(c, HEDDLE_EINTERNAL, "event and stream are of two event domains");
  return domain[0] == domain[1];
}

static heddle_status event_record(heddle_pevent *event, heddle_pstream *stream, heddle_error *err) {
  BEGIN("event.record", HEDDLE__NOT_CAPTURED);
  W *s = heddle__unwrap_stream(&c, stream), *e = heddle__unwrap(&c, event, HEDDLE__EVENT);
  same_domain(&c, e, s);
  CALL(NEXT->event.record(e->real, s->real, err));
  return c.status;
}

static heddle_status event_wait(heddle_pstream *stream, heddle_pevent *event, heddle_error *err) {
  BEGIN("event.wait", HEDDLE__NOT_CAPTURED);
  W *s = heddle__unwrap_stream(&c, stream), *e = heddle__unwrap(&c, event, HEDDLE__EVENT);
  same_domain(&c, e, s);
  CALL(NEXT->event.wait(s->real, e->real, err));
  return c.status;
}

static heddle_status fence_signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  BEGIN("fence.signal", HEDDLE__NOT_CAPTURED);
  W *s = heddle__unwrap_stream(&c, stream);
  c.fence = fence;
  c.value = value;
  CALL(NEXT->fence.signal(s->real, c.fence, value, err));
  return c.status;
}

static heddle_status fence_wait(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  BEGIN("fence.wait", HEDDLE__NOT_CAPTURED);
  W *s = heddle__unwrap_stream(&c, stream);
  c.fence = fence;
  c.value = value;
  CALL(NEXT->fence.wait(s->real, fence, value, err));
  return c.status;
}

void heddle__wrap_core_tables(struct heddle__layers *layers) {
  PUT(device, close);
  PUT(device, open);
  PUT(device, query);
  PUT(device, health);
  PUT(device, idle);
  PUT(device, memory_now);
#if HEDDLE_ABI_MINOR >= 2
  PUT(device, reset);
#endif
  PUT(memory, free);
  PUT(memory, alloc);
  PUT(memory, view);
  PUT(memory, import_host);
  PUT(memory, map);
  PUT(memory, unmap);
  PUT(memory, flush);
  PUT(memory, invalidate);
  PUT(memory, native);
#if HEDDLE_ABI_MINOR >= 1
  PUT(memory, adopt);
#endif
  PUT(copy, h2d);
  PUT(copy, d2h);
  PUT(copy, write);
  PUT(copy, read);
  PUT(copy, d2d);
  PUT(copy, fill);
  PUT(copy, can_peer);
  PUT(copy, peer);
  PUT(stream, close);
  PUT(stream, create);
  PUT(stream, submit);
  PUT(stream, sync);
  PUT(stream, query);
#if HEDDLE_ABI_MINOR >= 2
  PUT(stream, adopt);
#endif
  PUT(event, free);
  PUT(event, create);
  PUT(event, record);
  PUT(event, wait);
  PUT(fence, signal);
  PUT(fence, wait);
}
