/* The opencl plugin's own types, shared by its files: the instance with its platforms and devices, the device, buffers,
 * streams, and the small services that all tables use. What is here is in the file of its noun. */
#ifndef HEDDLE_PLUGINS_OPENCL_OPENCL_H
#define HEDDLE_PLUGINS_OPENCL_OPENCL_H

#include "plugins/common/filecache.h"
#include "plugins/common/kernels/plan.h"
#include "plugins/common/perror.h"

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct ocl_blas ocl_blas;

/* ---------------------------------------------------------------- instance (plugin.c, platform.c) */

/* What cl_khr_command_buffer offers on a platform. Its calls that record copies and fills took one more argument from
 * version 0.9.5 on, so capture.c gives them their types. */
typedef struct ocl_command_buffers {
  void *create, *finalize, *release, *enqueue, *kernel, *copy, *fill;
} ocl_command_buffers;

/* One context a platform, made when its first device is opened: events and copies cross its devices. */
typedef struct ocl_platform {
  cl_platform_id id;
  cl_context context;
  uint32_t users; /* open devices */
  uint32_t n_devices;
  cl_device_id *devices; /* in the instance's memory */
  ocl_command_buffers commands;
} ocl_platform;

/* What is known of a device; immutable. */
typedef struct ocl_info {
  cl_device_id id;
  uint32_t platform;
  cl_device_type type;
  char name[128], driver[128];
  uint8_t uuid[16];
  uint32_t pci[4];
  uint64_t memory_bytes, max_buffer_bytes, alignment, max_group;
  size_t image[2]; /* the largest image, width and height; 0, 0: it has none */
  uint32_t compute_units;
  bool sub;                  /* made by clCreateSubDevices, and released */
  bool unified;              /* fine-grained shared memory, where nothing is gained by copies */
  bool rounded;              /* divides and takes roots correctly rounded, where a program asks for it */
  bool doubles;              /* computes in float64 */
  bool writes;               /* its compiler is PoCL's, which writes what it reads and makes into files */
  bool captures;             /* has command buffers that queues like ours can take */
  bool captures_again;       /* one may be enqueued while it is still under way */
  uint32_t captures_version; /* of the extension, as CL_MAKE_VERSION */
} ocl_info;

enum { OCL_CAPTURE_AUTO, OCL_CAPTURE_NEVER, OCL_CAPTURE_ALWAYS };

struct heddle_pinstance {
  const heddle_host *host;
  pthread_mutex_t lock; /* guards context and users of the platforms; the driver is called with it held */
  ocl_platform *platforms;
  ocl_info *devices;
  uint32_t n_platforms, n_devices;
  uint32_t max_streams; /* setting; 0: not given */
  bool peer;            /* setting: copies between devices of a platform */
  bool unified;         /* setting: shared memory where a device has it */
  bool images;          /* setting: images where a device has them */
  uint32_t sub_units;   /* setting; 0: devices are not split */
  uint32_t capture;     /* setting: OCL_CAPTURE_* */
  bool fuse;            /* setting: chains of elementwise nodes become one */
  bool gpu_kernels;     /* setting: kernels as on a GPU, on host cores too */
  bool adopt_own;       /* the hook of the conformance kit: stream.adopt takes addresses of this plugin's streams */
  char *cache_dir;      /* setting, absolute; NULL: no cache */
  bool cache_always;    /* setting: programs of drivers with a cache of their own are stored too */
  filecache cache;      /* of built programs, in cache_dir */
  ocl_blas *blas;       /* NULL: no CLBlast */
  char *source_dir;     /* where sources are written; NULL: nowhere */
};

/* Fills platforms and devices. HEDDLE_ENODEV with a message where there are none. */
heddle_status ocl_find_devices(heddle_pinstance *self, heddle_error *err);
void ocl_forget_devices(heddle_pinstance *self);

/* The platform's context, made where there is none; put gives it back. Any thread. */
heddle_status ocl_context_get(heddle_pinstance *self, const ocl_info *info, cl_context *out, heddle_error *err);
void ocl_context_put(heddle_pinstance *self, const ocl_info *info);
/* The same for a device that is left behind at work: the context stays, for its objects; the next open makes another, unless
 * other devices of the platform are open in this one. */
void ocl_context_abandon(heddle_pinstance *self, const ocl_info *info);

/* A setting of the instance into buf; false where it is not given. */
bool ocl_setting(const heddle_host *host, const char *key, char *buf, uint64_t bytes);

/* Zeroed bookkeeping, or fails with what it was for. */
heddle_status ocl_new(const heddle_host *host, uint64_t bytes, const char *what, void **out, heddle_error *err);

/* ---------------------------------------------------------------- device (device.c, status.c) */

struct heddle_pdevice {
  const heddle_host *host;
  heddle_pinstance *self;
  const ocl_info *info;
  cl_context context;
  cl_command_queue service; /* for calibrating, with times; made with the device's first timer */
  uint64_t cookie;
  uint32_t index;
  atomic_bool faulted;        /* fault is set, for good */
  atomic_bool timed;          /* a timer was made: queues take times */
  atomic_uint timers;         /* that are alive: streams keep the events of their work */
  pthread_mutex_t lock;       /* guards streams, what they have opened, and fault; a leaf, no driver is called with it
                                 held */
  pthread_mutex_t build_lock; /* guards programs and the making of service; the driver is called with it held */
  bool hangs;                 /* a reset has waited for its work in vain */
  bool declares_not;          /* under build_lock: programs are built with the driver's own declarations */
  struct heddle_pstream *streams;
  struct heddle_pstream *gone; /* whose last use ended in a callback: the next call of the host's frees them */
  struct k_program *programs;  /* build.c */
  heddle_error fault;
  atomic_int_least64_t live_buffers, live_bytes, live_objects;
  atomic_int_least64_t callbacks; /* that the driver has still to make */
  atomic_uint_least64_t next_stream;
};

static inline void ocl_count(atomic_int_least64_t *counter, int64_t by) {
  atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

/* The constant's name of an OpenCL code. */
const char *ocl_code_name(cl_int code);

/* HEDDLE_OK for CL_SUCCESS, else fills err with "opencl:0: WHAT: CL_... (-5)" and a status that fits. A code that says
 * that the device is gone makes its fault sticky, and tells the host. dev may be NULL. Any thread. */
heddle_status ocl_check(heddle_pdevice *dev, cl_int code, const char *what, heddle_error *err);

/* Keeps the fault, which the host hears of, unless there is one already. Any thread. */
void ocl_fault(heddle_pdevice *dev, const heddle_error *fault);

/* HEDDLE_OK, or the sticky fault. */
heddle_status ocl_health(heddle_pdevice *dev, heddle_error *err);

/* ---------------------------------------------------------------- memory (memory.c) */

enum { OCL_KIND_IMPORT = 100 }; /* beside HEDDLE_MEMORY_*: the caller's memory, which copies use by its address */

/* A range of a memory object; of an import only host is set. Immutable. */
struct heddle_pbuffer {
  heddle_pdevice *dev;
  cl_mem mem;    /* the object that the range is in; a view shares its parent's */
  cl_mem own;    /* a view's own sub-buffer, or mem */
  uint64_t base; /* of the range in mem */
  uint64_t bytes;
  char *host;      /* address of the range on the host; NULL where it has none */
  void *svm;       /* the shared memory under a UNIFIED buffer */
  void *mapped;    /* what clEnqueueMapBuffer gave for a PINNED one */
  size_t image[2]; /* width and height; 0, 0: it is no image */
  uint32_t kind;
  bool view;
  bool adopted; /* a reference of ours on mem and one on own, which others made */
};

/* Checks that bytes [offset, offset + bytes) lie in buffer. */
heddle_status ocl_range(heddle_pdevice *dev, const heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes,
                        const char *what, heddle_error *err);

/* ---------------------------------------------------------------- streams (stream.c) */

enum { OCL_SIGNALS = 16 };

/* A fence to be signalled by a callback; one of a stream's own, or allocated where those are all under way. pending: the
 * host has not heard of it; who takes that back, under the stream's lock, is the one that tells the host. */
typedef struct ocl_signal {
  struct heddle_pstream *stream;
  heddle_pfence fence;
  uint64_t value;
  atomic_bool busy;
  bool allocated, pending;
  struct ocl_signal *next; /* of those that were allocated */
} ocl_signal;

struct heddle_pstream {
  heddle_pdevice *dev;
  cl_command_queue queue; /* replaced, with lock held, by the stream's thread when the device's times are first asked */
  cl_command_queue before; /* the one until then */
  uint64_t number;         /* of the device's streams ever made */
  bool profiles;
  bool adopted; /* the queue is another's: it is never replaced, and the device is idle without it */
  pthread_mutex_t
      lock;      /* guards mark, marked, failure, pending of signals and more; a leaf, the driver is called with it
                           held */
  cl_event mark; /* behind the first marked pieces of work */
  uint64_t marked;
  heddle_error failure;           /* the first one since the last sync; status 0: none */
  atomic_uint_least64_t enqueued; /* pieces of work; written by the stream's thread */
  atomic_int_least64_t users;     /* the host until it closes the stream, and each callback under way */
  struct heddle_pstream *next;
  heddle_pgraph *capture; /* what is being recorded, else NULL; the stream's thread only */
  cl_event last;          /* of the last command, where it is known; the stream's thread only */
  uint32_t n_kept;        /* commands since the last signal whose events were kept */
  /* Times (timing.c): the first and the last of the work since the last mark, and a mark that needs the time when
   * that began. */
  uint32_t opened_slot;
  cl_event since_first, since_last;
  heddle_ptimer *opened; /* device's lock */
  ocl_signal signals[OCL_SIGNALS];
  ocl_signal *more; /* that were allocated */
};

/* Fails every fence of the device whose signal is pending, with its fault's text. */
void ocl_signals_fail(heddle_pdevice *dev);

/* Health, and a queue that takes times where the device's are asked: before each piece of work that is not run. */
heddle_status ocl_stream_enter(heddle_pstream *stream, heddle_error *err);

/* The same for calls that a capture cannot hold: HEDDLE_EINVAL while one is being recorded. */
heddle_status ocl_stream_enter_plain(heddle_pstream *stream, const char *what, heddle_error *err);

/* A piece of work went into the stream, or did not: counts it, or keeps and words the failure. */
static inline void ocl_stream_count(heddle_pstream *stream) {
  atomic_store_explicit(&stream->enqueued, atomic_load_explicit(&stream->enqueued, memory_order_relaxed) + 1,
                        memory_order_release);
}
heddle_status ocl_stream_done(heddle_pstream *stream, cl_int code, const char *what, heddle_error *err);

/* Keeps the failure of work in the stream for the next sync. Any thread. */
void ocl_stream_failed(heddle_pstream *stream, const heddle_error *failure);

/* A marker behind all work in the stream, which is handed to the device. The caller releases the event. Any thread. */
heddle_status ocl_stream_mark(heddle_pstream *stream, cl_event *out, heddle_error *err);

/* Keeps a marker that was reached, so that a query knows that the first enqueued pieces of work are done. Takes the mark
 * over. Any thread. */
void ocl_stream_reached(heddle_pstream *stream, cl_event mark, uint64_t enqueued);

void ocl_stream_drop(heddle_pstream *stream); /* gives up one use */

/* The same in a callback of the driver's, where a queue may not be released: ocl_streams_reap does that, on a thread of the
 * host's. */
void ocl_stream_drop_late(heddle_pstream *stream);
void ocl_streams_reap(heddle_pdevice *dev);

/* Waits until the event is reached: HEDDLE_OK, HEDDLE_ETIMEOUT, or the failure of the work before it. */
heddle_status ocl_wait(heddle_pdevice *dev, cl_event event, uint64_t timeout_ns, heddle_error *err);

/* The streams of a device, each with a use for the caller, who gives it up with ocl_stream_drop: next gives the one that was
 * made before number *last (UINT64_MAX: the newest) and puts its number there; NULL at the end. Any thread. */
heddle_pstream *ocl_stream_next(heddle_pdevice *dev, uint64_t *last);

/* ---------------------------------------------------------------- commands and captures (capture.c) */

enum { OCL_KERNEL, OCL_COPY, OCL_FILL, OCL_WRITE, OCL_READ, OCL_MARK, OCL_PRODUCT, OCL_IMAGE };

/* ocl_command.number of OCL_IMAGE. */
enum { OCL_IMAGE_WRITE, OCL_IMAGE_READ, OCL_IMAGE_FROM_BUFFER, OCL_IMAGE_TO_BUFFER, OCL_IMAGE_TO_IMAGE };

/* One piece of work: enqueued at once, or kept by the capture that is being recorded. */
typedef struct ocl_command {
  uint32_t kind;
  uint32_t number; /* dimensions of a kernel, pattern of a fill, slot of a mark, OCL_IMAGE_* */
  cl_kernel kernel;
  size_t global[3], local[3]; /* global: also the size of an image */
  cl_mem src, dst;
  size_t src_at, dst_at, bytes;
  void *host;                        /* of OCL_WRITE and OCL_READ; the timer of a mark */
  const struct ocl_product *product; /* the launch's */
} ocl_command;

/* Enqueues or records; CL_SUCCESS or the driver's code. */
cl_int ocl_put(heddle_pstream *stream, const ocl_command *command);
cl_int ocl_put_kernel(heddle_pstream *stream, cl_kernel kernel, cl_uint dims, const size_t *global,
                      const size_t *local);
cl_int ocl_put_copy(heddle_pstream *stream, cl_mem src, cl_mem dst, size_t src_at, size_t dst_at, size_t bytes);

/* An event behind all that is in the stream: the last command's own, else a marker's. The caller releases it. */
cl_int ocl_stream_tail(heddle_pstream *stream, cl_event *out);

/* For what goes into the queue by another way than ocl_put. */
void ocl_stream_forget_last(heddle_pstream *stream);

/* The list of kernels that only this capture uses, and that go with it. */
heddle_pkernel **ocl_capture_kernels(heddle_pgraph *graph);
void ocl_kernels_free(const heddle_host *host, heddle_pkernel *kernels);

/* Whether times are taken of the stream's work; and that a command was put whose event is the stream's last. */
static inline bool ocl_stream_timed(const heddle_pstream *stream) {
  return stream->profiles && atomic_load_explicit(&stream->dev->timers, memory_order_relaxed) > 0;
}
void ocl_timer_saw(heddle_pstream *stream);

/* What is in the stream was put there before a wait, a record or a signal: no later mark is the end of it. */
void ocl_timer_past(heddle_pstream *stream);

/* The time at which the stream gets here, into a slot of the timer. */
cl_int ocl_timer_mark(heddle_pstream *stream, heddle_ptimer *timer, uint32_t slot);

/* Finds the calls of the extension, and whether a device's command buffers can be used. */
void ocl_commands_find(cl_platform_id platform, ocl_command_buffers *out);
void ocl_commands_describe(const ocl_command_buffers *commands, uint32_t version, ocl_info *info);

void ocl_graph_free(heddle_pgraph *graph);

/* ---------------------------------------------------------------- images (image.c) */

/* Whether an image can be had: HEDDLE_EUNSUPPORTED, HEDDLE_ELIMIT, HEDDLE_EINVAL. */
heddle_status ocl_image_check(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_error *err);
cl_int ocl_image_alloc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer *b);

/* HEDDLE_EINVAL where b is an image and the range is not all of it. */
heddle_status ocl_image_whole(heddle_pdevice *dev, const heddle_pbuffer *b, uint64_t offset, uint64_t bytes,
                              const char *what, heddle_error *err);

/* A copy of which one side is an image. dst or src NULL: the host's memory is that side; at: where the buffer begins. */
cl_int ocl_image_put(heddle_pstream *stream, const heddle_pbuffer *dst, const heddle_pbuffer *src, const void *host,
                     uint64_t at);
cl_int ocl_image_enqueue(cl_command_queue queue, const ocl_command *command, bool blocks, cl_event *event);

/* ---------------------------------------------------------------- programs (build.c, cache.c) */

/* The program of a code, with the chain that it computes (NULL: none), built on this device at its first use and kept until it
 * is closed. */
heddle_status ocl_program_get(heddle_pdevice *dev, const k_code *code, const struct heddle_chain *chain,
                              cl_program *out, heddle_error *err);
void ocl_programs_release(heddle_pdevice *dev);

/* Builds a program made from source or a binary; a failure has the log in err. what names it. */
heddle_status ocl_build(heddle_pdevice *dev, cl_program program, const char *options, const char *what,
                        heddle_error *err);

/* What the persistent cache of built programs names one after. */
filecache_key ocl_cache_key_of(const heddle_pdevice *dev, const char *const *sources, const size_t *lengths, uint32_t n,
                               const char *options);

/* Writes a program's source to source_dir, behind a line with its options. A failure is a warning. */
void ocl_source_write(heddle_pdevice *dev, filecache_key key, const char *const *sources, const size_t *lengths,
                      uint32_t n, const char *options);

/* ---------------------------------------------------------------- CLBlast (clblast.c) */

/* A product, or count of them at equal distances; counts of elements. */
typedef struct ocl_product {
  size_t m, n, k, a_ld, b_ld, a_stride, b_stride, count;
  int trans_a, trans_b;
  float alpha, beta;
  cl_mem a, b, out;
} ocl_product;

/* Reads the setting clblast and loads the library where it asks for that; HEDDLE_EINVAL where it insists in vain. */
heddle_status ocl_blas_open(heddle_pinstance *self, heddle_error *err);

/* Lets CLBlast give up what it keeps of contexts. */
void ocl_blas_forget(heddle_pinstance *self);

/* Whether a step is a product that CLBlast is to do on this device; fills all but a, b and out. With a third operand,
 * that has to be spread over the result first. */
bool ocl_blas_takes(const heddle_pdevice *dev, const k_step *step, ocl_product *out);

/* Compiles what a product needs, by running it once: false, and a warning, where CLBlast cannot do it. Blocks. */
bool ocl_blas_warm(heddle_pdevice *dev, const ocl_product *product);

/* Puts it into a queue: an OpenCL code, or one of CLBlast's. */
cl_int ocl_blas_run(const ocl_blas *blas, const ocl_product *p, cl_command_queue queue);

/* ---------------------------------------------------------------- partition.c */

heddle_status ocl_partition(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                            heddle_propose_fn propose, void *sink, heddle_error *err);

/* ---------------------------------------------------------------- tables */

extern const heddle_device_table ocl_device_table;
extern const heddle_memory_table ocl_memory_table;
extern const heddle_copy_table ocl_copy_table;
extern const heddle_stream_table ocl_stream_table;
extern const heddle_event_table ocl_event_table;
extern const heddle_fence_table ocl_fence_table;
extern const heddle_op_table ocl_op_table;
extern const heddle_module_table ocl_module_table;
extern const heddle_capture_table ocl_capture_table;
extern const heddle_timing_table ocl_timing_table;

#endif
