/* remote/requests.c: requests about devices, memory, streams, operators' names and layouts. */
#include <stdlib.h>
#include <string.h>

#include "plugins/common/perror.h"
#include "remote/session.h"

static heddle_status malformed(heddle_error *err) {
  return p_fail(err, HEDDLE_EFORMAT, 0, "a request is malformed");
}

heddle_status remote_device_of(remote_session *s, byte_reader *r, bool is_open, remote_device **out,
                               heddle_error *err) {
  const uint32_t index = byte_take_u32(r);
  if (r->bad) return malformed(err);
  if (index >= s->n_devices)
    return p_fail(err, HEDDLE_ENODEV, 0, "the server has %u devices, and no device %u", s->n_devices, index);
  *out = &s->devices[index];
  if (!is_open || (*out)->is_open) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "%s is not open", (*out)->dev->name);
}

/* ---- devices */

static heddle_status do_open(remote_session *s, byte_reader *r, byte_buffer *out, heddle_error *err) {
  remote_device *d;
  heddle_status status = remote_device_of(s, r, false, &d, err);
  if (status != HEDDLE_OK) return status;
  if (d->is_open) return p_fail(err, HEDDLE_EBUSY, 0, "%s is open already", d->dev->name);
  status = heddle__device_check(d->dev, NULL) == HEDDLE_OK ? HEDDLE_OK : heddle_device_reopen(d->dev, err);
  if (status == HEDDLE_OK) status = heddle__device_open(d->dev, err);
  if (status != HEDDLE_OK) return status;
  status = d->dev->t->stream.create(d->dev->handle, HEDDLE_STREAM_COMPUTE, 0, &d->util, err);
  if (status != HEDDLE_OK) {
    heddle__device_close(d->dev);
    return status;
  }
  d->is_open = true;
  byte_put_u64(out, 0);
  return HEDDLE_OK;
}

static heddle_status do_memory_now(remote_session *s, byte_reader *r, byte_buffer *out, heddle_error *err) {
  remote_device *d;
  uint64_t free_bytes = 0, total = 0;
  heddle_status status = remote_device_of(s, r, true, &d, err);
  if (status != HEDDLE_OK) return status;
  if (d->dev->t->device.memory_now == NULL)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s does not report its memory", d->dev->name);
  status = d->dev->t->device.memory_now(d->dev->handle, &free_bytes, &total, err);
  if (status != HEDDLE_OK) return status;
  const uint64_t left = s->limits->memory - s->held; /* what others hold is not for this client to see */
  byte_put_u64(out, free_bytes < left ? free_bytes : left);
  byte_put_u64(out, total < s->limits->memory ? total : s->limits->memory);
  return HEDDLE_OK;
}

/* ---- memory: a client never sees what was there before */

static heddle_status clear(remote_device *d, heddle_pbuffer *buffer, uint64_t bytes, heddle_error *err) {
  static const char zeros[4];
  const heddle__tables *t = d->dev->t;
  const uint64_t words = bytes / 4 * 4;
  heddle_status s = HEDDLE_OK;
  if (words > 0) s = t->copy.fill(d->util, buffer, 0, words, 0, err);
  if (s == HEDDLE_OK && bytes > words) s = t->copy.write(d->util, buffer, words, zeros, bytes - words, err);
  return s == HEDDLE_OK ? t->stream.sync(d->util, UINT64_MAX, err) : s;
}

static heddle_status get_memory(remote_device *d, remote_buffer *b, uint64_t align, heddle_error *err) {
  const heddle__tables *t = d->dev->t;
  if (heddle__device_inline(d->dev) && t->memory.import_host != NULL) {
    const uint64_t grain = d->dev->desc.import_alignment > align ? d->dev->desc.import_alignment : align;
    const uint64_t room = (b->bytes + grain) / grain * grain;
    if (posix_memalign((void **)&b->address, grain < sizeof(void *) ? sizeof(void *) : grain, room) != 0) {
      b->address = NULL;
      return p_fail(err, HEDDLE_ENOMEM, 0, "no memory for %llu bytes", (unsigned long long)b->bytes);
    }
    memset(b->address, 0, room);
    return t->memory.import_host(d->dev->handle, b->address, room, &b->buffer, err);
  }
  const heddle_pmemory_desc desc = {
      .struct_size = sizeof desc, .kind = HEDDLE_MEMORY_DEVICE, .bytes = b->bytes, .align = align};
  heddle_status s = t->memory.alloc(d->dev->handle, &desc, &b->buffer, err);
  if (s == HEDDLE_OK && b->bytes > 0) s = clear(d, b->buffer, b->bytes, err);
  return s;
}

static heddle_status do_alloc(remote_session *s, byte_reader *r, byte_buffer *out, heddle_error *err) {
  remote_device *d;
  heddle_status status = remote_device_of(s, r, true, &d, err);
  const uint64_t bytes = byte_take_u64(r), align = byte_take_u64(r);
  if (status != HEDDLE_OK) return status;
  if (!wire_is_done(r) || align > 4096 || align == 0 || (align & (align - 1)) != 0) return malformed(err);
  if (d->dev->desc.max_buffer_bytes != 0 && bytes > d->dev->desc.max_buffer_bytes)
    return p_fail(err, HEDDLE_ELIMIT, 0, "a buffer of %llu bytes is over the limit of %s", (unsigned long long)bytes,
                  d->dev->name);
  if (!remote_hold(s, bytes, err)) return HEDDLE_ENOMEM;
  remote_buffer *b = calloc(1, sizeof *b);
  status = b != NULL ? HEDDLE_OK : p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a buffer");
  if (status == HEDDLE_OK) {
    b->bytes = bytes;
    status = get_memory(d, b, align, err);
  }
  if (status == HEDDLE_OK && !remote_add(s, &b->head, REMOTE_BUFFER, d, err)) status = HEDDLE_ELIMIT;
  if (status == HEDDLE_OK) {
    byte_put_u64(out, b->head.handle);
    return HEDDLE_OK;
  }
  if (b != NULL) {
    d->dev->t->memory.free(d->dev->handle, b->buffer);
    free(b->address);
  }
  free(b);
  remote_unhold(s, bytes);
  return status;
}

static heddle_status do_stream(remote_session *s, byte_reader *r, byte_buffer *out, heddle_error *err) {
  remote_device *d;
  heddle_status status = remote_device_of(s, r, true, &d, err);
  const uint32_t kind = byte_take_u32(r);
  const int32_t priority = (int32_t)byte_take_u32(r);
  uint32_t at = 0;
  if (status != HEDDLE_OK) return status;
  if (!wire_is_done(r) || kind > HEDDLE_STREAM_COPY) return malformed(err);
  while (at < s->n_streams && s->streams[at].id != 0) at++;
  if (at == REMOTE_MOST_STREAMS) return p_fail(err, HEDDLE_ELIMIT, 0, "a session has at most %u streams", at);
  remote_stream *stream = &s->streams[at];
  status = d->dev->t->stream.create(d->dev->handle, kind, priority, &stream->stream, err);
  if (status != HEDDLE_OK) return status;
  if (at == s->n_streams) s->n_streams++;
  stream->id = at + 1;
  stream->device = d;
  stream->is_dirty = false;
  stream->failure.status = HEDDLE_OK;
  byte_put_u64(out, stream->id);
  return HEDDLE_OK;
}

/* ---- operators and layouts */

static heddle_status put_operator(void *sink, const char *domain, const char *op, uint32_t first, uint32_t last,
                                  const char *dtypes, heddle_error *err) {
  byte_buffer *out = sink;
  wire_put_text(out, domain);
  wire_put_text(out, op);
  byte_put_u32(out, first);
  byte_put_u32(out, last);
  wire_put_text(out, dtypes);
  return out->failed ? p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a list of operators") : HEDDLE_OK;
}

static heddle_status do_list(remote_session *s, byte_reader *r, byte_buffer *out, heddle_error *err) {
  remote_device *d;
  heddle_status status = remote_device_of(s, r, false, &d, err);
  if (status != HEDDLE_OK) return status;
  if (!wire_is_done(r)) return malformed(err);
  if (!d->dev->t->has_op || d->dev->t->op.list == NULL)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s lists no operators", d->dev->name);
  return d->dev->t->op.list(d->dev->instance, d->dev->index, put_operator, out, err);
}

static heddle_status take_tensor(remote_session *s, byte_reader *r, remote_device **d, heddle_pvalue *v,
                                 int64_t shape[WIRE_MOST_DIMS], heddle_error *err) {
  heddle_status status = remote_device_of(s, r, false, d, err);
  if (status != HEDDLE_OK) return status;
  wire_take_value(r, v, shape);
  if (r->bad) return malformed(err);
  if (!(*d)->dev->t->has_layout) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s has no layouts", (*d)->dev->name);
  return HEDDLE_OK;
}

static heddle_status do_layout_bytes(remote_session *s, byte_reader *r, byte_buffer *out, heddle_error *err) {
  remote_device *d;
  heddle_pvalue v;
  int64_t shape[WIRE_MOST_DIMS];
  uint64_t bytes = 0, align = 0;
  heddle_status status = take_tensor(s, r, &d, &v, shape, err);
  if (status == HEDDLE_OK && !wire_is_done(r)) status = malformed(err);
  if (status == HEDDLE_OK) status = d->dev->t->layout.bytes(d->dev->instance, d->dev->index, &v, &bytes, &align, err);
  if (status != HEDDLE_OK) return status;
  byte_put_u64(out, bytes);
  byte_put_u64(out, align);
  return HEDDLE_OK;
}

static uint64_t dense_bytes(const heddle_pvalue *v) {
  uint64_t n = 1;
  for (int32_t i = 0; i < v->ndim; i++) n *= (uint64_t)v->shape[i];
  return (n * v->dtype.bits * v->dtype.lanes + 7) / 8;
}

static heddle_status do_layout_pack(remote_session *s, byte_reader *r, byte_buffer *out, heddle_error *err) {
  remote_device *d;
  heddle_pvalue v;
  int64_t shape[WIRE_MOST_DIMS];
  uint64_t bytes = 0, align = 0;
  heddle_status status = take_tensor(s, r, &d, &v, shape, err);
  if (status != HEDDLE_OK) return status;
  const uint64_t wanted = byte_take_u64(r);
  v.data_bytes = dense_bytes(&v);
  v.data = byte_take(r, v.data_bytes);
  if (!wire_is_done(r)) return malformed(err);
  status = d->dev->t->layout.bytes(d->dev->instance, d->dev->index, &v, &bytes, &align, err);
  if (status != HEDDLE_OK) return status;
  if (bytes != wanted) return malformed(err);
  if (!remote_hold(s, bytes, err)) return HEDDLE_ENOMEM;
  void *packed = NULL, *aligned_data = NULL;
  if (posix_memalign(&packed, 64, (size_t)bytes + 1) != 0) packed = NULL;
  if (posix_memalign(&aligned_data, 64, (size_t)v.data_bytes + 1) != 0) aligned_data = NULL;
  if (packed == NULL || aligned_data == NULL) status = p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a tensor");
  if (status == HEDDLE_OK) {
    memcpy(aligned_data, v.data, (size_t)v.data_bytes);
    v.data = aligned_data;
    status = d->dev->t->layout.pack(d->dev->instance, d->dev->index, &v, packed, bytes, err);
  }
  if (status == HEDDLE_OK) byte_put(out, packed, (size_t)bytes);
  free(aligned_data);
  free(packed);
  remote_unhold(s, bytes);
  return status;
}

static heddle_status do_layout_name(remote_session *s, byte_reader *r, byte_buffer *out, heddle_error *err) {
  remote_device *d;
  heddle_pvalue v;
  int64_t shape[WIRE_MOST_DIMS];
  char text[200] = "";
  heddle_status status = take_tensor(s, r, &d, &v, shape, err);
  if (status == HEDDLE_OK && !wire_is_done(r)) status = malformed(err);
  if (status == HEDDLE_OK && d->dev->t->layout.describe == NULL)
    status = p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s does not name its layouts", d->dev->name);
  if (status == HEDDLE_OK)
    status = d->dev->t->layout.describe(d->dev->instance, d->dev->index, v.layout, text, sizeof text, err);
  if (status == HEDDLE_OK) wire_put_text(out, text);
  return status;
}

/* ---- all of them */

heddle_status remote_request(remote_session *s, uint32_t kind, byte_reader *r, byte_buffer *out, heddle_error *err) {
  switch (kind) {
  case WIRE_OPEN: return do_open(s, r, out, err);
  case WIRE_MEMORY_NOW: return do_memory_now(s, r, out, err);
  case WIRE_ALLOC: return do_alloc(s, r, out, err);
  case WIRE_STREAM: return do_stream(s, r, out, err);
  case WIRE_QUERY: return remote_query(s, r, out, err);
  case WIRE_PARTITION: return remote_partition(s, r, out, err);
  case WIRE_LIST: return do_list(s, r, out, err);
  case WIRE_PREPARE: return remote_prepare(s, r, out, err);
  case WIRE_BIND: return remote_bind(s, r, out, err);
  case WIRE_RESIZE: return remote_resize(s, r, err);
  case WIRE_GRAPH: return remote_graph_make(s, r, out, err);
  case WIRE_LAYOUT_BYTES: return do_layout_bytes(s, r, out, err);
  case WIRE_LAYOUT_PACK: return do_layout_pack(s, r, out, err);
  case WIRE_LAYOUT_NAME: return do_layout_name(s, r, out, err);
  default: return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "the server does not know requests of kind %u", kind);
  }
}
