/* A small plugin for the tests of the loader, the layers and the ABI. It has two devices that compute nothing: index 0
 * is inline, index 1 signals its fences from the call. It compiles against any minor of plugin.h, and PROBE_* make it
 * break a rule. */
#ifdef PROBE_ENTERS
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#endif
#include "heddle/plugin.h"

#ifdef PROBE_LOADS_AND
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#endif
#ifdef PROBE_ENTERS
#include "probe_troubles.h"
#endif
#include <string.h>

#ifndef PROBE_DRIVER
#define PROBE_DRIVER 0
#endif
#ifndef PROBE_NAME
#define PROBE_NAME "probe"
#endif
#ifndef PROBE_MAJOR
#define PROBE_MAJOR HEDDLE_ABI_MAJOR
#endif
#ifndef PROBE_FEATURES
#define PROBE_FEATURES 0
#endif
#ifndef PROBE_NO_DRIVER
#define PROBE_NO_DRIVER 0
#endif
#ifndef PROBE_REFUSES
#define PROBE_REFUSES 0
#endif
#ifndef PROBE_NO_ALLOC
#define PROBE_NO_ALLOC 0
#endif
#ifndef PROBE_NO_SIGNAL
#define PROBE_NO_SIGNAL 0
#endif
#ifndef PROBE_GIVES_NOTHING
#define PROBE_GIVES_NOTHING 0
#endif

struct heddle_pinstance {
  const heddle_host *host;
};
struct heddle_pdevice {
  heddle_pinstance *self;
  uint32_t index;
  uint64_t cookie;
};
struct heddle_pbuffer {
  heddle_pdevice *dev;
  char *bytes;
  int owns;
};
struct heddle_pstream {
  heddle_pdevice *dev;
  int recording;
};
struct heddle_pevent {
  heddle_pdevice *dev;
};
struct heddle_pop {
  heddle_pdevice *dev;
};
struct heddle_plaunch {
  heddle_pop *op;
  uint64_t bytes;
  heddle_pbuffer *from, *to;
  uint64_t from_offset, to_offset;
};
struct heddle_pgraph {
  heddle_pdevice *dev;
};

static heddle_status fail(heddle_error *err, heddle_status s, const char *text) {
  if (err != NULL) {
    err->status = s;
    err->api_code = 0;
    strncpy(err->text, text, sizeof err->text - 1);
    err->text[sizeof err->text - 1] = '\0';
  }
  return s;
}

static void *take(heddle_pinstance *self, size_t bytes, heddle_error *err) {
  void *p = self->host->alloc(self->host->ctx, bytes, 16);
  if (p != NULL) memset(p, 0, bytes);
  else fail(err, HEDDLE_ENOMEM, "probe: out of memory");
  return p;
}

static void give(heddle_pinstance *self, void *p) {
  self->host->free(self->host->ctx, p);
}

/* ---- root, device */

static void close_instance(heddle_pinstance *self) {
  const heddle_host *host = self->host;
  host->free(host->ctx, self);
}

static heddle_status open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  if (PROBE_NO_DRIVER) return fail(err, HEDDLE_ENODEV, "libprobe.so.1 is not installed");
  heddle_pinstance *self = host->alloc(host->ctx, sizeof *self, 16);
  if (self == NULL) return fail(err, HEDDLE_ENOMEM, "probe: out of memory");
  self->host = host;
#ifdef HEDDLE_NEXT /* the generated 1.1: its host's new member is asked for before it is read */
  if (HEDDLE_HAS(heddle_host, host, next_1_1) && host->next_1_1 != NULL) {
    uint64_t answer = 0;
    if (host->next_1_1(&answer) != HEDDLE_OK || answer != 11) return fail(err, HEDDLE_EABI, "next_1_1 of the host");
  }
#endif
  *out = self;
  return HEDDLE_OK;
}

static heddle_status device_count(heddle_pinstance *self, uint32_t *out, heddle_error *err) {
  (void)self;
  (void)err;
  *out = 2;
  return HEDDLE_OK;
}

static heddle_status device_describe(heddle_pinstance *self, uint32_t index, heddle_pdevice_desc *desc,
                                     heddle_error *err) {
  (void)self;
  (void)err;
  if (!HEDDLE_HAS(heddle_pdevice_desc, desc, max_streams)) return fail(err, HEDDLE_EABI, "an old description");
  desc->type = HEDDLE_DEVICE_EXT;
  strcpy(desc->name, "Probe");
  static const char *const drivers[] = {"probe 1", "", "driver \xff"};
  strcpy(desc->driver, drivers[PROBE_DRIVER]);
  desc->caps = HEDDLE_CAP_HOST_CORES | (index == 0 ? HEDDLE_CAP_INLINE : 0);
  desc->memory_bytes = 1 << 20;
#ifdef PROBE_ALIGNMENT
  desc->alignment = PROBE_ALIGNMENT;
#else
  desc->alignment = 64;
#endif
  desc->event_domain = 1;
  desc->compute_units = 1;
  desc->max_streams = 1;
#ifdef HEDDLE_NEXT
  desc->caps |= HEDDLE_CAP_NEXT;
  if (HEDDLE_HAS(heddle_pdevice_desc, desc, next_1_1)) desc->next_1_1 = 11;
#endif
  return HEDDLE_OK;
}

static void device_close(heddle_pdevice *dev) {
  if (dev != NULL) give(dev->self, dev);
}

static heddle_status device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  char text[32];
  if (self->host->config(self->host->ctx, "refuse_open", text, sizeof text) > 0)
    return fail(err, HEDDLE_EFAILED, "probe: open was refused");
  heddle_pdevice *dev = take(self, sizeof *dev, err);
  if (dev == NULL) return HEDDLE_ENOMEM;
  dev->self = self;
  dev->index = index;
  dev->cookie = options->cookie;
  if (self->host->config(self->host->ctx, "fault", text, sizeof text) > 0)
    self->host->device_fault(self->host->ctx, dev->cookie, 719, text);
  *out = dev;
  return HEDDLE_OK;
}

static heddle_status device_query(heddle_pdevice *dev, uint32_t key, int64_t *out, heddle_error *err) {
  (void)dev;
  if (key != HEDDLE_QUERY_LIVE_BUFFERS) return fail(err, HEDDLE_EUNSUPPORTED, "probe: no such key");
  *out = 0;
  return HEDDLE_OK;
}

static heddle_status device_health(heddle_pdevice *dev, heddle_error *err) {
  (void)dev;
  (void)err;
  return HEDDLE_OK;
}

static heddle_status device_idle(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  char text[8];
  (void)timeout_ns;
  if (dev->self->host->config(dev->self->host->ctx, "hang", text, sizeof text) > 0)
    return fail(err, HEDDLE_ETIMEOUT, "probe: work does not end");
  return HEDDLE_OK;
}

/* ---- memory, copies */

static void memory_free(heddle_pdevice *dev, heddle_pbuffer *b) {
  if (b == NULL) return;
  if (b->owns) give(dev->self, b->bytes);
  give(dev->self, b);
}

static heddle_status new_buffer(heddle_pdevice *dev, char *bytes, uint64_t size, heddle_pbuffer **out,
                                heddle_error *err) {
  heddle_pbuffer *b = take(dev->self, sizeof *b, err);
  if (b == NULL) return HEDDLE_ENOMEM;
  b->dev = dev;
  b->owns = bytes == NULL;
  b->bytes = bytes != NULL ? bytes : dev->self->host->alloc(dev->self->host->ctx, size, 64);
  if (b->bytes == NULL) {
    give(dev->self, b);
    return fail(err, HEDDLE_ENOMEM, "probe: out of memory");
  }
  *out = b;
  return HEDDLE_OK;
}

static heddle_status memory_alloc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                                  heddle_error *err) {
  return new_buffer(dev, NULL, desc->bytes, out, err);
}

static heddle_status memory_view(heddle_pdevice *dev, heddle_pbuffer *parent, uint64_t offset, uint64_t bytes,
                                 heddle_pbuffer **out, heddle_error *err) {
  return new_buffer(dev, parent->bytes + offset, bytes, out, err);
}

static heddle_status memory_map(heddle_pdevice *dev, heddle_pbuffer *b, void **out, heddle_error *err) {
  (void)dev;
  (void)err;
  *out = b->bytes;
  return HEDDLE_OK;
}

static void memory_unmap(heddle_pdevice *dev, heddle_pbuffer *b) {
  (void)dev;
  (void)b;
}

static heddle_status copy_any(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *src,
                              uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  (void)err;
  if (!stream->recording && bytes > 0) memcpy(dst->bytes + dst_offset, src->bytes + src_offset, bytes);
  return HEDDLE_OK;
}

static heddle_status copy_write(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, const void *src,
                                uint64_t bytes, heddle_error *err) {
  (void)stream;
  (void)err;
  if (bytes > 0) memcpy(dst->bytes + dst_offset, src, bytes);
  return HEDDLE_OK;
}

static heddle_status copy_read(heddle_pstream *stream, void *dst, heddle_pbuffer *src, uint64_t src_offset,
                               uint64_t bytes, heddle_error *err) {
  (void)stream;
  (void)err;
  if (bytes > 0) memcpy(dst, src->bytes + src_offset, bytes);
  return HEDDLE_OK;
}

static heddle_status copy_fill(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, uint64_t bytes,
                               uint32_t pattern, heddle_error *err) {
  (void)stream;
  (void)err;
  for (uint64_t i = 0; i + 4 <= bytes; i += 4) memcpy(dst->bytes + dst_offset + i, &pattern, 4);
  return HEDDLE_OK;
}

/* ---- streams, events, fences, capture */

static void stream_close(heddle_pstream *stream) {
  if (stream != NULL) give(stream->dev->self, stream);
}

static heddle_status stream_create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                                   heddle_error *err) {
  (void)kind;
  (void)priority;
  heddle_pstream *s = take(dev->self, sizeof *s, err);
  if (s == NULL) return HEDDLE_ENOMEM;
  s->dev = dev;
  *out = PROBE_GIVES_NOTHING ? NULL : s;
  if (PROBE_GIVES_NOTHING) give(dev->self, s);
  return HEDDLE_OK;
}

static heddle_status stream_submit(heddle_pstream *stream, heddle_error *err) {
  (void)stream;
  (void)err;
  return HEDDLE_OK;
}

static heddle_status stream_sync(heddle_pstream *stream, uint64_t timeout_ns, heddle_error *err) {
  (void)stream;
  (void)timeout_ns;
  (void)err;
  return HEDDLE_OK;
}

static void event_free(heddle_pevent *event) {
  if (event != NULL) give(event->dev->self, event);
}

static heddle_status event_create(heddle_pdevice *dev, heddle_pevent **out, heddle_error *err) {
  heddle_pevent *e = take(dev->self, sizeof *e, err);
  if (e == NULL) return HEDDLE_ENOMEM;
  e->dev = dev;
  *out = e;
  return HEDDLE_OK;
}

static heddle_status event_record(heddle_pevent *event, heddle_pstream *stream, heddle_error *err) {
  (void)event;
  (void)stream;
  (void)err;
  return HEDDLE_OK;
}

static heddle_status event_wait(heddle_pstream *stream, heddle_pevent *event, heddle_error *err) {
  (void)stream;
  (void)event;
  (void)err;
  return HEDDLE_OK;
}

static heddle_status fence_signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  const heddle_host *host = stream->dev->self->host;
  (void)err;
  host->fence_signal(host->ctx, fence, value);
  return HEDDLE_OK;
}

static void capture_free(heddle_pgraph *graph) {
  if (graph != NULL) give(graph->dev->self, graph);
}

static heddle_status capture_begin(heddle_pstream *stream, heddle_error *err) {
  (void)err;
  stream->recording = 1;
  return HEDDLE_OK;
}

static heddle_status capture_end(heddle_pstream *stream, heddle_pgraph **out, heddle_error *err) {
  stream->recording = 0;
  heddle_pgraph *g = take(stream->dev->self, sizeof *g, err);
  if (g == NULL) return HEDDLE_ENOMEM;
  g->dev = stream->dev;
  *out = g;
  return HEDDLE_OK;
}

static heddle_status capture_replay(heddle_pgraph *graph, heddle_pstream *stream, heddle_error *err) {
  (void)graph;
  (void)stream;
  (void)err;
  return HEDDLE_OK;
}

/* ---- operators: Identity, which copies its first input to its first output */

static heddle_status op_query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                              heddle_offer_fn offer, void *sink, heddle_error *err) {
  (void)self;
  (void)index;
  const heddle_pnode *node = region->nodes.data;
  if (region->nodes.count != 1 || strcmp(node->op, "Identity") != 0)
    return fail(err, HEDDLE_EUNSUPPORTED, "probe: only Identity");
  heddle_poffer o = {.struct_size = sizeof o, .cost_ns = 1};
#ifdef PROBE_BAD_OFFER
  o.workspace_bytes = 8;
  o.workspace_align = 3;
#endif
#ifdef HEDDLE_NEXT
  o.next_1_1 = 11;
#endif
  return offer(sink, &o, err);
}

static heddle_status op_prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                                heddle_error *err) {
  (void)region;
  (void)offer;
  heddle_pop *op = take(dev->self, sizeof *op, err);
  if (op == NULL) return HEDDLE_ENOMEM;
  op->dev = dev;
  *out = op;
  return HEDDLE_OK;
}

static void op_free(heddle_pop *op) {
  if (op != NULL) give(op->dev->self, op);
}

static heddle_status op_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands, heddle_plaunch **out,
                             heddle_error *err) {
  (void)stream;
  heddle_plaunch *l = take(op->dev->self, sizeof *l, err);
  if (l == NULL) return HEDDLE_ENOMEM;
  *l = (heddle_plaunch){op,
                        operands->outputs[0].bytes,
                        operands->inputs[0].buffer,
                        operands->outputs[0].buffer,
                        operands->inputs[0].offset,
                        operands->outputs[0].offset};
  *out = l;
  return HEDDLE_OK;
}

static void launch_free(heddle_plaunch *launch) {
  if (launch != NULL) give(launch->op->dev->self, launch);
}

static heddle_status op_run(heddle_plaunch *l, heddle_error *err) {
  (void)err;
  memcpy(l->to->bytes + l->to_offset, l->from->bytes + l->from_offset, l->bytes);
  return HEDDLE_OK;
}

#ifdef HEDDLE_NEXT
static heddle_status next_1_1(uint64_t *out) {
  *out = 11;
  return HEDDLE_OK;
}
#define ALSO , .next_1_1 = next_1_1
#else
#define ALSO
#endif

/* ---- tables */

static heddle_status stream_query(heddle_pstream *stream, heddle_error *err) {
  return stream_submit(stream, err);
}

static const heddle_device_table device = {.struct_size = sizeof device,
                                           .close = device_close,
                                           .open = device_open,
                                           .query = device_query,
                                           .health = device_health,
                                           .idle = device_idle ALSO};
static const heddle_memory_table memory = {.struct_size = sizeof memory,
                                           .free = memory_free,
                                           .alloc = PROBE_NO_ALLOC ? NULL : memory_alloc,
                                           .view = memory_view,
                                           .map = memory_map,
                                           .unmap = memory_unmap ALSO};
static const heddle_copy_table copy = {.struct_size = sizeof copy,
                                       .h2d = copy_any,
                                       .d2h = copy_any,
                                       .write = copy_write,
                                       .read = copy_read,
                                       .d2d = copy_any,
                                       .fill = copy_fill ALSO};
static const heddle_stream_table stream = {.struct_size = sizeof stream,
                                           .close = stream_close,
                                           .create = stream_create,
                                           .submit = stream_submit,
                                           .sync = stream_sync,
                                           .query = stream_query ALSO};
static const heddle_event_table event = {.struct_size = sizeof event,
                                         .free = event_free,
                                         .create = event_create,
                                         .record = event_record,
                                         .wait = event_wait ALSO};
static const heddle_fence_table fence = {.struct_size = sizeof fence,
                                         .signal = PROBE_NO_SIGNAL ? NULL : fence_signal ALSO};
static const heddle_op_table op = {.struct_size = sizeof op,
                                   .launch_free = launch_free,
                                   .op_free = op_free,
                                   .query = op_query,
                                   .prepare = op_prepare,
                                   .bind = op_bind,
                                   .run = op_run ALSO};
static const heddle_capture_table capture = {.struct_size = sizeof capture,
                                             .free = capture_free,
                                             .begin = capture_begin,
                                             .end = capture_end,
                                             .replay = capture_replay ALSO};

/* PROBE_SETTING: the members of a setting; PROBE_EXTENSION: those of an extension. */
#ifdef PROBE_SETTING
static const heddle_psetting setting[] = {{PROBE_SETTING}};
#define SETTINGS , .settings = {setting, 1, sizeof setting[0]}
#else
#define SETTINGS
#endif
#ifdef PROBE_EXTENSION
static const heddle_pextension extension = {PROBE_EXTENSION};
#define EXTENSIONS , .extensions = &extension
#else
#define EXTENSIONS
#endif

static const heddle_plugin root = {
    .struct_size = sizeof root,
    .abi_major = PROBE_MAJOR,
    .abi_minor = HEDDLE_ABI_MINOR,
    .features = PROBE_FEATURES,
    .build = "probe 1.0",
    .name = PROBE_NAME,
    .close_instance = close_instance,
    .open_instance = open_instance,
    .device_count = device_count,
    .device_describe = device_describe,
    .device = &device,
    .memory = &memory,
    .copy = &copy,
    .stream = &stream,
    .event = &event,
    .fence = &fence,
    .op = &op,
    .capture = &capture ALSO SETTINGS EXTENSIONS,
};

const heddle_plugin *heddle_plugin_entry(const heddle_host *host, heddle_error *err) {
#ifdef PROBE_LOADS_AND
  const char *driver = getenv("PROBE_LOADS");
  if (driver != NULL && dlopen(driver, RTLD_NOW) != NULL) PROBE_LOADS_AND;
#endif
#ifdef PROBE_ENTERS
  PROBE_ENTERS();
#endif
  if (PROBE_REFUSES) {
    fail(err, HEDDLE_EABI, "the probe does not like this host");
    return NULL;
  }
  if (host->abi_major != HEDDLE_ABI_MAJOR && PROBE_MAJOR == HEDDLE_ABI_MAJOR) {
    fail(err, HEDDLE_EABI, "a host of another major");
    return NULL;
  }
  return &root;
}
