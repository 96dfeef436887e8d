/* tests/broken-plugins/base.h: the sound plugin that each broken one is but for one thing. Two devices of host memory;
 * a stream is a queue with one thread; Add, Relu and MatMul of float32. Events and fences, views, no capture, no layouts.
 *
 * A source of a broken plugin includes this file, writes the function that it spoils (which may call the sound one), puts
 * it in the place of the sound one with "#define base_memory_alloc spoilt_alloc", and includes tables.h last. */
#ifndef HEDDLE_TESTS_BROKEN_BASE_H
#define HEDDLE_TESTS_BROKEN_BASE_H

#include "heddle/plugin.h"
#include "plugins/common/perror.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define BASE_DEVICES 2
#define BASE_ALIGNMENT UINT64_C(64)
#define BASE_MAX_BUFFER (UINT64_C(256) << 20)
#define BASE_MEMORY (UINT64_C(1) << 30)

struct heddle_pinstance {
  const heddle_host *host;
  uint64_t lose_word;   /* setting lose_on_fill: a fill with it loses the device; UINT64_MAX: none */
  uint64_t fail_word;   /* setting fail_on_fill: a fill with it fails */
  bool adopt_own;       /* setting: stream.adopt takes the address of a stream of this plugin */
  pthread_mutex_t lock; /* of the queues of all streams, and of points */
  pthread_cond_t changed;
};

struct heddle_pdevice {
  heddle_pinstance *self;
  const heddle_host *host;
  uint32_t index;
  uint64_t cookie;
  atomic_bool lost; /* fault is written */
  heddle_error fault;
  heddle_pstream *streams; /* open ones, and closed ones that had work left; under the lock */
  _Atomic int64_t live_buffers, live_bytes, live_objects;
};

struct heddle_pbuffer {
  char *bytes;
  void *block; /* of the host; NULL: a view */
  uint64_t size;
  uint32_t kind;
  bool adopted;
};

/* What an event recorded: a place in a stream. */
typedef struct base_point {
  uint32_t references;
  bool reached;
  heddle_error failure;
} base_point;

struct heddle_pevent {
  heddle_pdevice *dev;
  base_point *point;
};

/* One piece of work. run is called on the stream's thread without the lock; what it returns but HEDDLE_OK fails the
 * stream. always: it is called for a failed stream too, which it asks with base_failed. */
typedef struct base_task {
  struct base_task *next;
  heddle_status (*run)(heddle_pstream *stream, struct base_task *task, heddle_error *err);
  bool always;
  uint32_t pattern;
  char *dst;
  const char *src;
  uint64_t bytes;
  uint64_t value;
  heddle_pfence fence;
  base_point *point;
  heddle_plaunch *launch;
} base_task;

struct heddle_pstream {
  heddle_pdevice *dev;
  heddle_pstream *next;
  pthread_t thread;
  base_task *first, **last; /* waiting */
  base_task *spare;
  void *chunks; /* of tasks */
  bool busy, ending;
  uint32_t kind;        /* HEDDLE_STREAM_* */
  uint32_t more;        /* for spoilt functions */
  uint32_t adopted;     /* times that it was, less the closes of these */
  heddle_error failure; /* status 0: none */
};

struct heddle_pop {
  heddle_pdevice *dev;
  int kind;         /* BASE_ADD and so on */
  uint64_t m, k, n; /* MatMul; elementwise: n elements */
  uint32_t slot[2]; /* which of the region's inputs are its operands */
  uint32_t n_inputs;
  bool open;        /* launches are resized; operands may be too small when they are bound */
  const void *more; /* for spoilt functions */
};

struct heddle_plaunch {
  heddle_pop *op;
  heddle_pstream *stream;
  uint64_t m, k, n; /* as the op's, of the present shapes */
  const float *a, *b;
  float *out;
  const void *more; /* for spoilt functions */
};

enum { BASE_ADD, BASE_RELU, BASE_MATMUL };

/* ---- for the spoilt functions ---- */

/* Puts a copy of task into the stream. Any thread. */
heddle_status base_push(heddle_pstream *stream, const base_task *task, heddle_error *err);
/* Is the device lost? Its text in err then. */
heddle_status base_check(heddle_pdevice *dev, heddle_error *err);
/* Has the stream failed? Words in err then. For tasks, on the stream's thread. */
heddle_status base_failed(heddle_pstream *stream, heddle_error *err);
/* Waits until the stream has nothing left to do; HEDDLE_OK or its failure, which it keeps. */
heddle_status base_stream_wait(heddle_pstream *stream, heddle_error *err);
/* HEDDLE_ENODEV with words where there is no such device. */
heddle_status base_index(uint32_t index, heddle_error *err);
/* HEDDLE_EINVAL with words where the range is not within the buffer. */
heddle_status base_range(const heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes, heddle_error *err);
heddle_status base_run_copy(heddle_pstream *stream, base_task *task, heddle_error *err);
heddle_status base_run_fill(heddle_pstream *stream, base_task *task, heddle_error *err);
heddle_status base_run_launch(heddle_pstream *stream, base_task *task, heddle_error *err);
heddle_status base_run_signal(heddle_pstream *stream, base_task *task, heddle_error *err);
/* fence.signal with another task than base_run_signal; run has the fence and its value. */
heddle_status base_push_signal(heddle_pstream *stream,
                               heddle_status (*run)(heddle_pstream *stream, base_task *task, heddle_error *err),
                               heddle_pfence fence, uint64_t value, heddle_error *err);
void base_sleep_ms(uint32_t ms);
void *base_zeroed(const heddle_host *host, uint64_t bytes);

/* ---- the sound functions, by table ---- */

void base_close_instance(heddle_pinstance *self);
heddle_status base_open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err);
heddle_status base_device_count(heddle_pinstance *self, uint32_t *out, heddle_error *err);
heddle_status base_device_describe(heddle_pinstance *self, uint32_t index, heddle_pdevice_desc *desc,
                                   heddle_error *err);

void base_device_close(heddle_pdevice *dev);
heddle_status base_device_reset(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err);
heddle_status base_device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                               heddle_pdevice **out, heddle_error *err);
heddle_status base_device_query(heddle_pdevice *dev, uint32_t key, int64_t *out, heddle_error *err);
heddle_status base_device_health(heddle_pdevice *dev, heddle_error *err);
heddle_status base_device_idle(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err);

void base_memory_free(heddle_pdevice *dev, heddle_pbuffer *buffer);
heddle_status base_memory_alloc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                                heddle_error *err);
heddle_status base_memory_view(heddle_pdevice *dev, heddle_pbuffer *parent, uint64_t offset, uint64_t bytes,
                               heddle_pbuffer **out, heddle_error *err);
heddle_status base_memory_map(heddle_pdevice *dev, heddle_pbuffer *buffer, void **out, heddle_error *err);
void base_memory_unmap(heddle_pdevice *dev, heddle_pbuffer *buffer);
heddle_status base_memory_native(heddle_pdevice *dev, heddle_pbuffer *buffer, uint64_t *out, heddle_error *err);
heddle_status base_memory_adopt(heddle_pdevice *dev, uint64_t handle, uint64_t offset, uint64_t bytes,
                                heddle_pbuffer **out, heddle_error *err);

heddle_status base_copy_h2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *host,
                            uint64_t host_offset, uint64_t bytes, heddle_error *err);
heddle_status base_copy_d2h(heddle_pstream *stream, heddle_pbuffer *host, uint64_t host_offset, heddle_pbuffer *src,
                            uint64_t src_offset, uint64_t bytes, heddle_error *err);
heddle_status base_copy_write(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, const void *src,
                              uint64_t bytes, heddle_error *err);
heddle_status base_copy_read(heddle_pstream *stream, void *dst, heddle_pbuffer *src, uint64_t src_offset,
                             uint64_t bytes, heddle_error *err);
heddle_status base_copy_d2d(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *src,
                            uint64_t src_offset, uint64_t bytes, heddle_error *err);
heddle_status base_copy_fill(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, uint64_t bytes,
                             uint32_t pattern, heddle_error *err);

void base_stream_close(heddle_pstream *stream);
heddle_status base_stream_create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                                 heddle_error *err);
heddle_status base_stream_submit(heddle_pstream *stream, heddle_error *err);
heddle_status base_stream_sync(heddle_pstream *stream, uint64_t timeout_ns, heddle_error *err);
heddle_status base_stream_query(heddle_pstream *stream, heddle_error *err);
heddle_status base_stream_adopt(heddle_pdevice *dev, uint64_t handle, heddle_pstream **out, heddle_error *err);

void base_event_free(heddle_pevent *event);
heddle_status base_event_create(heddle_pdevice *dev, heddle_pevent **out, heddle_error *err);
heddle_status base_event_record(heddle_pevent *event, heddle_pstream *stream, heddle_error *err);
heddle_status base_event_wait(heddle_pstream *stream, heddle_pevent *event, heddle_error *err);

heddle_status base_fence_signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err);
heddle_status base_fence_wait(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err);

void base_launch_free(heddle_plaunch *launch);
void base_op_free(heddle_pop *op);
heddle_status base_op_query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region, heddle_offer_fn offer,
                            void *sink, heddle_error *err);
heddle_status base_op_prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                              heddle_error *err);
heddle_status base_op_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands, heddle_plaunch **out,
                           heddle_error *err);
heddle_status base_op_resize(heddle_plaunch *launch, const heddle_pregion *region, const heddle_pbind *operands,
                             heddle_error *err);
heddle_status base_op_run(heddle_plaunch *launch, heddle_error *err);
heddle_status base_op_list(heddle_pinstance *self, uint32_t index, heddle_list_fn list, void *sink, heddle_error *err);

#endif
