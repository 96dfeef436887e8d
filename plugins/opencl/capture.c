/* Commands and captures. A capture is a row of commands in the order of their stream. What stays on the device (kernels,
 * copies, fills) lies in command buffers of cl_khr_command_buffer, one for each stretch between commands that it has no
 * form for (copies from and to the host, marks), which a replay enqueues as they are. A stretch that the driver does not
 * take on the queue of a replay is enqueued command by command too, so a replay means the same everywhere. */
#include "opencl.h"

enum { FIRST_ROOM = 32, FEW_COMMANDS = 8 };

#ifndef CL_MAKE_VERSION
#define CL_MAKE_VERSION(major, minor, patch) (((major) << 22) | ((minor) << 12) | (patch))
#endif

/* Commands [first, first + count) of the row. */
typedef struct stretch {
  uint32_t first, count;
  cl_command_buffer_khr buffer; /* NULL: one by one */
} stretch;

struct heddle_pgraph {
  heddle_pdevice *dev;
  ocl_command *row;
  stretch *stretches;
  heddle_pkernel *kernels; /* that only this capture uses */
  uint32_t count, room, n_stretches, reserved;
};

/* ---------------------------------------------------------------- the extension's calls */

typedef cl_command_buffer_khr(CL_API_CALL *create_fn)(cl_uint, const cl_command_queue *,
                                                      const cl_command_buffer_properties_khr *, cl_int *);
typedef cl_int(CL_API_CALL *one_fn)(cl_command_buffer_khr);
typedef cl_int(CL_API_CALL *enqueue_fn)(cl_uint, cl_command_queue *, cl_command_buffer_khr, cl_uint, const cl_event *,
                                        cl_event *);
typedef cl_int(CL_API_CALL *kernel_fn)(cl_command_buffer_khr, cl_command_queue, const void *, cl_kernel, cl_uint,
                                       const size_t *, const size_t *, const size_t *, cl_uint,
                                       const cl_sync_point_khr *, cl_sync_point_khr *, void *);
typedef cl_int(CL_API_CALL *copy_fn)(cl_command_buffer_khr, cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t,
                                     cl_uint, const cl_sync_point_khr *, cl_sync_point_khr *, void *);
typedef cl_int(CL_API_CALL *fill_fn)(cl_command_buffer_khr, cl_command_queue, cl_mem, const void *, size_t, size_t,
                                     size_t, cl_uint, const cl_sync_point_khr *, cl_sync_point_khr *, void *);
/* Since 0.9.5: with properties before the operands. */
typedef cl_int(CL_API_CALL *copy2_fn)(cl_command_buffer_khr, cl_command_queue, const void *, cl_mem, cl_mem, size_t,
                                      size_t, size_t, cl_uint, const cl_sync_point_khr *, cl_sync_point_khr *, void *);
typedef cl_int(CL_API_CALL *fill2_fn)(cl_command_buffer_khr, cl_command_queue, const void *, cl_mem, const void *,
                                      size_t, size_t, size_t, cl_uint, const cl_sync_point_khr *, cl_sync_point_khr *,
                                      void *);

/* A function from an address, which ISO C casts only by way of an integer. */
#define CALL(type, address) ((type)(uintptr_t)(address))

void ocl_commands_find(cl_platform_id platform, ocl_command_buffers *out) {
  static const char *const names[] = {"clCreateCommandBufferKHR",  "clFinalizeCommandBufferKHR",
                                      "clReleaseCommandBufferKHR", "clEnqueueCommandBufferKHR",
                                      "clCommandNDRangeKernelKHR", "clCommandCopyBufferKHR",
                                      "clCommandFillBufferKHR"};
  void **const members[] = {&out->create, &out->finalize, &out->release, &out->enqueue,
                            &out->kernel, &out->copy,     &out->fill};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    *members[i] = clGetExtensionFunctionAddressForPlatform(platform, names[i]);
}

void ocl_commands_describe(const ocl_command_buffers *c, uint32_t version, ocl_info *info) {
  cl_command_queue_properties needed = 0;
  cl_device_command_buffer_capabilities_khr can = 0;
  info->captures_version = version;
  if (version == 0 || c->create == NULL || c->finalize == NULL || c->release == NULL || c->enqueue == NULL ||
      c->kernel == NULL || c->copy == NULL || c->fill == NULL)
    return;
  if (clGetDeviceInfo(info->id, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, sizeof can, &can, NULL) != CL_SUCCESS ||
      clGetDeviceInfo(info->id, CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR, sizeof needed, &needed, NULL) !=
          CL_SUCCESS)
    return;
  info->captures = needed == 0;
  info->captures_again = (can & CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR) != 0;
}

static const ocl_command_buffers *calls_of(const heddle_pdevice *dev) {
  return &dev->self->platforms[dev->info->platform].commands;
}

/* ---------------------------------------------------------------- commands */

void ocl_stream_forget_last(heddle_pstream *stream) {
  if (stream->last != NULL) clReleaseEvent(stream->last);
  stream->last = NULL;
}

cl_int ocl_stream_tail(heddle_pstream *stream, cl_event *out) {
  stream->n_kept = 0;
  if (stream->last == NULL) return clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, out);
  const cl_int code = clRetainEvent(stream->last);
  if (code == CL_SUCCESS) *out = stream->last;
  return code;
}

static bool on_host_cores(const heddle_pstream *stream) {
  return (stream->dev->info->type & CL_DEVICE_TYPE_CPU) != 0;
}

/* Where a command's event goes: kept where times are taken, and on the host's cores, where a marker behind a few
 * commands costs as much as one of them; behind many it costs less than keeping the event of each. */
static cl_event *keep_event(heddle_pstream *stream) {
  ocl_stream_forget_last(stream);
  if (ocl_stream_timed(stream)) return &stream->last;
  if (!on_host_cores(stream) || stream->n_kept >= FEW_COMMANDS) return NULL;
  stream->n_kept++;
  return &stream->last;
}

static cl_int put_done(heddle_pstream *stream, cl_int code) {
  if (code == CL_SUCCESS && ocl_stream_timed(stream)) ocl_timer_saw(stream);
  return code;
}

/* On the host's cores the first command wakes the driver's threads, which takes longer than to enqueue a kernel. So a
 * marker, which is enqueued sooner, goes before a kernel that would be the first: they wake meanwhile. */
static cl_int enqueue_kernel(heddle_pstream *stream, cl_kernel kernel, cl_uint dims, const size_t *global,
                             const size_t *local) {
  if (stream->n_kept == 0 && on_host_cores(stream) && !ocl_stream_timed(stream)) {
    const cl_int code = clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, NULL);
    if (code != CL_SUCCESS) return code;
  }
  return put_done(
      stream, clEnqueueNDRangeKernel(stream->queue, kernel, dims, NULL, global, local, 0, NULL, keep_event(stream)));
}

/* A product is several commands; where times are taken, markers before and behind stand for them. */
static cl_int enqueue_product(heddle_pstream *stream, const ocl_product *product) {
  const bool timed = ocl_stream_timed(stream);
  cl_int code = CL_SUCCESS;
  ocl_stream_forget_last(stream);
  if (timed) code = clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, keep_event(stream));
  if (code == CL_SUCCESS) code = put_done(stream, code);
  ocl_stream_forget_last(stream);
  if (code == CL_SUCCESS) code = ocl_blas_run(stream->dev->self->blas, product, stream->queue);
  if (timed && code == CL_SUCCESS) code = clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, keep_event(stream));
  return put_done(stream, code);
}

static cl_int enqueue(heddle_pstream *stream, const ocl_command *c) {
  cl_command_queue q = stream->queue;
  cl_int code = CL_SUCCESS;
  if (c->kind == OCL_KERNEL) return enqueue_kernel(stream, c->kernel, c->number, c->global, c->local);
  if (c->kind == OCL_MARK) {
    ocl_stream_forget_last(stream);
    return ocl_timer_mark(stream, c->host, c->number);
  }
  if (c->kind == OCL_PRODUCT) return enqueue_product(stream, c->product);
  cl_event *e = keep_event(stream);
  switch (c->kind) {
  case OCL_COPY: code = clEnqueueCopyBuffer(q, c->src, c->dst, c->src_at, c->dst_at, c->bytes, 0, NULL, e); break;
  case OCL_FILL:
    code = clEnqueueFillBuffer(q, c->dst, &c->number, sizeof c->number, c->dst_at, c->bytes, 0, NULL, e);
    break;
  case OCL_IMAGE: code = ocl_image_enqueue(q, c, false, e); break;
  case OCL_WRITE: code = clEnqueueWriteBuffer(q, c->dst, CL_FALSE, c->dst_at, c->bytes, c->host, 0, NULL, e); break;
  default: code = clEnqueueReadBuffer(q, c->src, CL_FALSE, c->src_at, c->bytes, c->host, 0, NULL, e); break;
  }
  return put_done(stream, code);
}

static cl_int add(heddle_pgraph *graph, const ocl_command *command) {
  const heddle_host *host = graph->dev->host;
  if (graph->count == graph->room) {
    const uint32_t room = graph->room == 0 ? FIRST_ROOM : 2 * graph->room;
    ocl_command *row = host->alloc(host->ctx, room * (uint64_t)sizeof *row, _Alignof(ocl_command));
    if (row == NULL) return CL_OUT_OF_HOST_MEMORY;
    if (graph->count > 0) memcpy(row, graph->row, graph->count * sizeof *row);
    host->free(host->ctx, graph->row);
    graph->row = row;
    graph->room = room;
  }
  graph->row[graph->count++] = *command;
  return CL_SUCCESS;
}

cl_int ocl_put(heddle_pstream *stream, const ocl_command *command) {
  return stream->capture != NULL ? add(stream->capture, command) : enqueue(stream, command);
}

cl_int ocl_put_kernel(heddle_pstream *stream, cl_kernel kernel, cl_uint dims, const size_t *global,
                      const size_t *local) {
  if (stream->capture == NULL) return enqueue_kernel(stream, kernel, dims, global, local);
  ocl_command c = {.kind = OCL_KERNEL, .number = dims, .kernel = kernel};
  memcpy(c.global, global, dims * sizeof *global);
  memcpy(c.local, local, dims * sizeof *local);
  return add(stream->capture, &c);
}

cl_int ocl_put_copy(heddle_pstream *stream, cl_mem src, cl_mem dst, size_t src_at, size_t dst_at, size_t bytes) {
  return ocl_put(
      stream,
      &(ocl_command){.kind = OCL_COPY, .src = src, .dst = dst, .src_at = src_at, .dst_at = dst_at, .bytes = bytes});
}

heddle_pkernel **ocl_capture_kernels(heddle_pgraph *graph) {
  return &graph->kernels;
}

/* ---------------------------------------------------------------- recording */

void ocl_graph_free(heddle_pgraph *graph) {
  if (graph == NULL) return;
  heddle_pdevice *dev = graph->dev;
  const heddle_host *host = dev->host;
  for (uint32_t i = 0; i < graph->n_stretches; i++) {
    if (graph->stretches[i].buffer != NULL) CALL(one_fn, calls_of(dev)->release)(graph->stretches[i].buffer);
  }
  ocl_kernels_free(host, graph->kernels);
  ocl_count(&dev->live_objects, -1);
  host->free(host->ctx, graph->stretches);
  host->free(host->ctx, graph->row);
  host->free(host->ctx, graph);
}

static heddle_status capture_begin(heddle_pstream *stream, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  const ocl_info *info = dev->info;
  const uint32_t setting = dev->self->capture;
  void *memory = NULL;
  heddle_status s = ocl_stream_enter_plain(stream, "begin of a capture", err);
  if (s != HEDDLE_OK) return s;
  if (setting == OCL_CAPTURE_NEVER)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "opencl:%u: the setting capture is 0", dev->index);
  if (!info->captures)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "opencl:%u: the driver has no cl_khr_command_buffer for plain queues",
                  dev->index);
  if (setting == OCL_CAPTURE_AUTO && (info->type & CL_DEVICE_TYPE_CPU) != 0)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                  "opencl:%u: on the host's cores command buffers are no faster than calls; the setting capture=1 asks "
                  "for them",
                  dev->index);
  s = ocl_new(dev->host, sizeof *stream->capture, "a capture", &memory, err);
  if (s != HEDDLE_OK) return s;
  stream->capture = memory;
  stream->capture->dev = dev;
  ocl_count(&dev->live_objects, 1);
  return HEDDLE_OK;
}

static cl_int record(const heddle_pdevice *dev, cl_command_buffer_khr buffer, const ocl_command *c) {
  const ocl_command_buffers *calls = calls_of(dev);
  const bool old = dev->info->captures_version < CL_MAKE_VERSION(0, 9, 5);
  switch (c->kind) {
  case OCL_KERNEL:
    return CALL(kernel_fn, calls->kernel)(buffer, NULL, NULL, c->kernel, c->number, NULL, c->global, c->local, 0, NULL,
                                          NULL, NULL);
  case OCL_COPY:
    if (old)
      return CALL(copy_fn, calls->copy)(buffer, NULL, c->src, c->dst, c->src_at, c->dst_at, c->bytes, 0, NULL, NULL,
                                        NULL);
    return CALL(copy2_fn, calls->copy)(buffer, NULL, NULL, c->src, c->dst, c->src_at, c->dst_at, c->bytes, 0, NULL,
                                       NULL, NULL);
  default:
    if (old)
      return CALL(fill_fn, calls->fill)(buffer, NULL, c->dst, &c->number, sizeof c->number, c->dst_at, c->bytes, 0,
                                        NULL, NULL, NULL);
    return CALL(fill2_fn, calls->fill)(buffer, NULL, NULL, c->dst, &c->number, sizeof c->number, c->dst_at, c->bytes, 0,
                                       NULL, NULL, NULL);
  }
}

static heddle_status make_buffer(heddle_pstream *stream, heddle_pgraph *graph, stretch *x, heddle_error *err) {
  static const cl_command_buffer_properties_khr again[] = {CL_COMMAND_BUFFER_FLAGS_KHR,
                                                           CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0};
  heddle_pdevice *dev = graph->dev;
  const ocl_command_buffers *calls = calls_of(dev);
  cl_int code = CL_SUCCESS;
  x->buffer = CALL(create_fn, calls->create)(1, &stream->queue, dev->info->captures_again ? again : NULL, &code);
  if (code != CL_SUCCESS) x->buffer = NULL;
  for (uint32_t i = 0; i < x->count && code == CL_SUCCESS; i++)
    code = record(dev, x->buffer, &graph->row[x->first + i]);
  if (code == CL_SUCCESS) code = CALL(one_fn, calls->finalize)(x->buffer);
  return ocl_check(dev, code, "record a command buffer", err);
}

/* Stretches of at least two commands that stay on the device are worth a command buffer. */
static heddle_status divide(heddle_pstream *stream, heddle_pgraph *graph, heddle_error *err) {
  void *memory = NULL;
  heddle_status s =
      ocl_new(graph->dev->host, ((uint64_t)graph->count + 1) * sizeof(stretch), "a capture", &memory, err);
  if (s != HEDDLE_OK) return s;
  graph->stretches = memory;
  for (uint32_t i = 0; i < graph->count && s == HEDDLE_OK;) {
    stretch *x = &graph->stretches[graph->n_stretches++];
    const bool inside = graph->row[i].kind <= OCL_FILL; /* kernels, copies of buffers, fills */
    x->first = i;
    while (i < graph->count && (graph->row[i].kind <= OCL_FILL) == inside) i++;
    x->count = i - x->first;
    if (inside && x->count > 1) s = make_buffer(stream, graph, x, err);
  }
  return s;
}

static heddle_status capture_end(heddle_pstream *stream, heddle_pgraph **out, heddle_error *err) {
  heddle_pgraph *graph = stream->capture;
  stream->capture = NULL; /* whatever comes */
  if (graph == NULL)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: end of a capture on a stream where none was begun",
                  stream->dev->index);
  heddle_status s = ocl_health(stream->dev, err);
  if (s == HEDDLE_OK) s = divide(stream, graph, err);
  if (s != HEDDLE_OK) ocl_graph_free(graph);
  else *out = graph;
  return s;
}

/* ---------------------------------------------------------------- replay */

static heddle_status capture_replay(heddle_pgraph *graph, heddle_pstream *stream, heddle_error *err) {
  heddle_status s = ocl_stream_enter_plain(stream, "replay", err);
  if (s != HEDDLE_OK) return s;
  if (graph->dev != stream->dev)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: replay: the handle is no capture of this device",
                  stream->dev->index);
  const enqueue_fn put = CALL(enqueue_fn, calls_of(graph->dev)->enqueue);
  cl_int code = CL_SUCCESS;
  for (uint32_t i = 0; i < graph->n_stretches && code == CL_SUCCESS; i++) {
    const stretch *x = &graph->stretches[i];
    if (x->buffer != NULL) {
      ocl_stream_forget_last(stream);
      code =
          put_done(stream, put(1, &stream->queue, x->buffer, 0, NULL, ocl_stream_timed(stream) ? &stream->last : NULL));
      /* One that is still under way and may not be twice, or a queue that takes times: the same without it. */
      if (code != CL_INVALID_OPERATION && code != CL_INCOMPATIBLE_COMMAND_QUEUE_KHR) continue;
    }
    code = CL_SUCCESS;
    for (uint32_t k = 0; k < x->count && code == CL_SUCCESS; k++) code = enqueue(stream, &graph->row[x->first + k]);
  }
  return ocl_stream_done(stream, code, "replay", err);
}

const heddle_capture_table ocl_capture_table = {
    .struct_size = sizeof ocl_capture_table,
    .free = ocl_graph_free,
    .begin = capture_begin,
    .end = capture_end,
    .replay = capture_replay,
};
