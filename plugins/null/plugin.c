/* The null plugin: the template of a plugin. It has one device that can be listed, described, opened and closed, and
 * that refuses everything else with a message. Whatever plugin.h requires is here, in the order of plugin.h, so that a
 * copy of this file compiles, loads and passes for a plugin before its first line is changed; docs/plugin-guide.md
 * starts from it. Grown-up plugins have a file for each table, named after it: device.c, memory.c, copy.c, stream.c,
 * ops.c.
 *
 * How to go on from here, a step at a time, each of which can be tested before the next:
 *   1. name and describe your device; list it with the tool
 *   2. memory: alloc, free, map of PINNED memory; then copy, with streams
 *   3. events and fences, or HEDDLE_CAP_INLINE and none of them
 *   4. operators: query, prepare, bind and run for one operator, then for more (plugins/common/ref has a kernel in
 *      plain C for each, to compare with or to fall back on)
 *   5. what is optional: views, import of host memory, layouts, capture, timing */
#include "heddle/plugin.h"

#include "plugins/common/options.h"
#include "plugins/common/pbuild.h"
#include "plugins/common/perror.h"

/* ---------------------------------------------------------------- objects
 *
 * plugin.h only declares the handles; each plugin completes those that it makes. The host sees pointers and nothing
 * else. All memory comes from the host's table, which lives longer than everything here. */

struct heddle_pinstance {
  const heddle_host *host;
};

struct heddle_pdevice {
  const heddle_host *host;
  uint64_t cookie; /* names this device when host->device_fault is called */
};

/* The one kind of refusal that this plugin has. A text says what was asked, of what, and, where there is something to
 * be done, what: "null:0: memory: this device does nothing; name another one". */
static heddle_status refuse(heddle_error *err, const char *what) {
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "null:0: %s: this device does nothing; name another one", what);
}

/* ---------------------------------------------------------------- device */

/* Ends a device. Functions that free or close take NULL, return nothing and succeed on a dead device too. */
static void device_close(heddle_pdevice *dev) {
  if (dev != NULL) dev->host->free(dev->host->ctx, dev);
}

/* A real plugin makes its context here, and reads its settings with host->config. On failure *out is left alone. */
static heddle_status device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  const heddle_host *host = self->host;
  if (index != 0) return p_fail(err, HEDDLE_ENODEV, 0, "null:%u: there is one null device, null:0", index);
  const heddle_status s = p_no_device_settings("null", index, options, err);
  if (s != HEDDLE_OK) return s;
  heddle_pdevice *dev = host->alloc(host->ctx, sizeof *dev, _Alignof(heddle_pdevice));
  if (dev == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "null:0: no memory to open the device");
  *dev = (heddle_pdevice){.host = host, .cookie = options != NULL ? options->cookie : 0};
  *out = dev;
  return HEDDLE_OK;
}

/* What is alive on the device: here, never anything. Unknown keys are refused, not guessed. */
static heddle_status device_query(heddle_pdevice *dev, uint32_t key, int64_t *out, heddle_error *err) {
  (void)dev;
  switch (key) {
  case HEDDLE_QUERY_LIVE_BUFFERS:
  case HEDDLE_QUERY_LIVE_BYTES:
  case HEDDLE_QUERY_LIVE_OBJECTS: *out = 0; return HEDDLE_OK;
  default: return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "null:0: query of key %u is not supported", key);
  }
}

/* HEDDLE_OK, or HEDDLE_EDEVICE with the words of the first fault, from then on. */
static heddle_status device_health(heddle_pdevice *dev, heddle_error *err) {
  (void)dev, (void)err;
  return HEDDLE_OK;
}

/* Waits until nothing of the device touches memory any more. */
static heddle_status device_idle(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  (void)dev, (void)timeout_ns, (void)err;
  return HEDDLE_OK;
}

static const heddle_device_table device_table = {
    .struct_size = sizeof device_table,
    .close = device_close,
    .open = device_open,
    .query = device_query,
    .health = device_health,
    .idle = device_idle,
};

/* ---------------------------------------------------------------- memory */

/* Nothing was ever allocated, so there is nothing to free. */
static void memory_free(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  (void)dev, (void)buffer;
}

/* DEVICE is where operators compute; PINNED is what copies of a device that is not inline go through. */
static heddle_status memory_alloc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                                  heddle_error *err) {
  (void)dev, (void)desc, (void)out;
  return refuse(err, "memory");
}

/* Gives the host address of a PINNED buffer, once and for its whole life. */
static heddle_status memory_map(heddle_pdevice *dev, heddle_pbuffer *buffer, void **out, heddle_error *err) {
  (void)dev, (void)buffer, (void)out;
  return refuse(err, "mapping memory");
}

static void memory_unmap(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  (void)dev, (void)buffer;
}

static const heddle_memory_table memory_table = {
    .struct_size = sizeof memory_table,
    .free = memory_free,
    .alloc = memory_alloc,
    .map = memory_map,
    .unmap = memory_unmap,
};

/* ---------------------------------------------------------------- copies
 *
 * All are work of their stream. h2d and d2h may return before the bytes have moved; write and read may not. */

static heddle_status copy_h2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *host,
                              uint64_t host_offset, uint64_t bytes, heddle_error *err) {
  (void)stream, (void)dst, (void)dst_offset, (void)host, (void)host_offset, (void)bytes;
  return refuse(err, "copy to the device");
}

static heddle_status copy_d2h(heddle_pstream *stream, heddle_pbuffer *host, uint64_t host_offset, heddle_pbuffer *src,
                              uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  (void)stream, (void)host, (void)host_offset, (void)src, (void)src_offset, (void)bytes;
  return refuse(err, "copy from the device");
}

static heddle_status copy_write(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, const void *src,
                                uint64_t bytes, heddle_error *err) {
  (void)stream, (void)dst, (void)dst_offset, (void)src, (void)bytes;
  return refuse(err, "write");
}

static heddle_status copy_read(heddle_pstream *stream, void *dst, heddle_pbuffer *src, uint64_t src_offset,
                               uint64_t bytes, heddle_error *err) {
  (void)stream, (void)dst, (void)src, (void)src_offset, (void)bytes;
  return refuse(err, "read");
}

static heddle_status copy_d2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *src,
                              uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  (void)stream, (void)dst, (void)dst_offset, (void)src, (void)src_offset, (void)bytes;
  return refuse(err, "copy within the device");
}

static heddle_status copy_fill(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, uint64_t bytes,
                               uint32_t pattern, heddle_error *err) {
  (void)stream, (void)dst, (void)dst_offset, (void)bytes, (void)pattern;
  return refuse(err, "fill");
}

static const heddle_copy_table copy_table = {
    .struct_size = sizeof copy_table,
    .h2d = copy_h2d,
    .d2h = copy_d2h,
    .write = copy_write,
    .read = copy_read,
    .d2d = copy_d2d,
    .fill = copy_fill,
};

/* ---------------------------------------------------------------- streams, events, fences */

static void stream_close(heddle_pstream *stream) {
  (void)stream;
}

static heddle_status stream_create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                                   heddle_error *err) {
  (void)dev, (void)kind, (void)priority, (void)out;
  return refuse(err, "stream");
}

static heddle_status stream_submit(heddle_pstream *stream, heddle_error *err) {
  (void)stream;
  return refuse(err, "submit");
}

static heddle_status stream_sync(heddle_pstream *stream, uint64_t timeout_ns, heddle_error *err) {
  (void)stream, (void)timeout_ns;
  return refuse(err, "sync");
}

static heddle_status stream_query(heddle_pstream *stream, heddle_error *err) {
  (void)stream;
  return refuse(err, "query of a stream");
}

static const heddle_stream_table stream_table = {
    .struct_size = sizeof stream_table,
    .close = stream_close,
    .create = stream_create,
    .submit = stream_submit,
    .sync = stream_sync,
    .query = stream_query,
};

/* Events order the streams of one plugin, without the host. An inline device has none. */

static void event_free(heddle_pevent *event) {
  (void)event;
}

static heddle_status event_create(heddle_pdevice *dev, heddle_pevent **out, heddle_error *err) {
  (void)dev, (void)out;
  return refuse(err, "event");
}

static heddle_status event_record(heddle_pevent *event, heddle_pstream *stream, heddle_error *err) {
  (void)event, (void)stream;
  return refuse(err, "event");
}

static heddle_status event_wait(heddle_pstream *stream, heddle_pevent *event, heddle_error *err) {
  (void)stream, (void)event;
  return refuse(err, "wait for an event");
}

static const heddle_event_table event_table = {
    .struct_size = sizeof event_table,
    .free = event_free,
    .create = event_create,
    .record = event_record,
    .wait = event_wait,
};

/* When the stream gets here, host->fence_signal(host->ctx, fence, value) is called, from any thread; or
 * host->fence_fail where work before it failed. wait on the device's side is optional, and left out. */
static heddle_status fence_signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  (void)stream, (void)fence, (void)value;
  return refuse(err, "signal of a fence");
}

static const heddle_fence_table fence_table = {
    .struct_size = sizeof fence_table,
    .signal = fence_signal,
};

/* ---------------------------------------------------------------- operators */

static void launch_free(heddle_plaunch *launch) {
  (void)launch;
}

static void op_free(heddle_pop *op) {
  (void)op;
}

/* The answer binds: an operator that is offered here must be prepared. A refusal names node and operator, because it
 * is shown to the user in a list of all nodes that nothing runs. */
static heddle_status op_query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                              heddle_offer_fn offer, void *sink, heddle_error *err) {
  const heddle_pnode *node = region->nodes.count > 0 ? region->nodes.data : NULL;
  (void)self, (void)index, (void)offer, (void)sink;
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%.200s': %.100s: the device null runs no operators",
                node != NULL && node->name != NULL ? node->name : "",
                node != NULL && node->op != NULL ? node->op : "no operator");
}

static heddle_status op_prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                                heddle_error *err) {
  (void)dev, (void)region, (void)offer, (void)out;
  return refuse(err, "operator");
}

static heddle_status op_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands, heddle_plaunch **out,
                             heddle_error *err) {
  (void)op, (void)stream, (void)operands, (void)out;
  return refuse(err, "operator");
}

/* On the path of a node in a run: no allocation, no string, no lock. */
static heddle_status op_run(heddle_plaunch *launch, heddle_error *err) {
  (void)launch;
  return refuse(err, "launch");
}

static const heddle_op_table op_table = {
    .struct_size = sizeof op_table,
    .launch_free = launch_free,
    .op_free = op_free,
    .query = op_query,
    .prepare = op_prepare,
    .bind = op_bind,
    .run = op_run,
};

/* ---------------------------------------------------------------- the root */

static void close_instance(heddle_pinstance *self) {
  if (self != NULL) self->host->free(self->host->ctx, self);
}

/* A real plugin loads its vendor's library here (dlopen, never a link), and answers HEDDLE_ENODEV with words where
 * there is none. */
static heddle_status open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  heddle_pinstance *self = host->alloc(host->ctx, sizeof *self, _Alignof(heddle_pinstance));
  if (self == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "null: no memory for an instance");
  self->host = host;
  *out = self;
  return HEDDLE_OK;
}

static heddle_status device_count(heddle_pinstance *self, uint32_t *out, heddle_error *err) {
  (void)self, (void)err;
  *out = 1;
  return HEDDLE_OK;
}

/* desc comes zeroed; what stays 0 means unknown or none. HEDDLE_CAP_HOST_CORES keeps this device out of every choice
 * that did not name it; a real accelerator leaves that bit out. */
static heddle_status device_describe(heddle_pinstance *self, uint32_t index, heddle_pdevice_desc *desc,
                                     heddle_error *err) {
  (void)self;
  if (index != 0) return p_fail(err, HEDDLE_ENODEV, 0, "null:%u: there is one null device, null:0", index);
  desc->type = HEDDLE_DEVICE_EXT;
  snprintf(desc->name, sizeof desc->name, "null");
  snprintf(desc->driver, sizeof desc->driver, "null 1");
  desc->pci_domain = desc->pci_bus = desc->pci_device = desc->pci_function = UINT32_MAX;
  desc->caps = HEDDLE_CAP_HOST_CORES;
  desc->alignment = 1;
  desc->max_streams = 1;
  return HEDDLE_OK;
}

/* A group that the plugin does not have is left out, which makes it NULL. */
static const heddle_plugin table = {
    .struct_size = sizeof table,
    .abi_major = HEDDLE_ABI_MAJOR,
    .abi_minor = HEDDLE_ABI_MINOR,
    .features = P_FEATURES,
    .build = P_BUILD,
    .name = "null",
    .close_instance = close_instance,
    .open_instance = open_instance,
    .device_count = device_count,
    .device_describe = device_describe,
    .device = &device_table,
    .memory = &memory_table,
    .copy = &copy_table,
    .stream = &stream_table,
    .event = &event_table,
    .fence = &fence_table,
    .op = &op_table,
};

/* The one symbol that is exported. It opens nothing, and refuses a host of another major. */
const heddle_plugin *heddle_plugin_entry(const heddle_host *host, heddle_error *err) {
  if (host == NULL || host->abi_major != HEDDLE_ABI_MAJOR) {
    p_fail(err, HEDDLE_EABI, 0, "plugin null is built for ABI %d, the host has %d", HEDDLE_ABI_MAJOR,
           host != NULL ? (int)host->abi_major : 0);
    return NULL;
  }
  return &table;
}
