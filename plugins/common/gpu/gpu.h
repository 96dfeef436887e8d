/* What the files of plugins/common/gpu share: the plugins cuda and rocm are this folder over two drivers. Here are the
 * instance, the device, buffers and streams, the services that all tables use, and gpu_vendor, which says what differs.
 * What is declared here is defined in the file that its heading names. */
#ifndef HEDDLE_PLUGINS_COMMON_GPU_GPU_H
#define HEDDLE_PLUGINS_COMMON_GPU_GPU_H

#include "plugins/common/filecache.h"
#include "plugins/common/gpu/driver.h"
#include "plugins/common/kernels/plan.h"
#include "plugins/common/perror.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

typedef struct gpu_info gpu_info;
typedef struct gpu_libraries gpu_libraries;
typedef struct gpu_blocks gpu_blocks;
typedef struct gpu_import gpu_import;

/* The registered ranges of an instance. The driver is not called with the lock held. */
typedef struct gpu_imports {
  pthread_mutex_t lock; /* guards the list and its members; a leaf */
  pthread_cond_t settled;
  gpu_import *first;
} gpu_imports;
typedef struct gpu_watch gpu_watch;
typedef struct gpu_weights gpu_weights;
typedef struct gpu_spares gpu_spares;

/* What a code of the driver means for us. NOT_READY: of the query calls. LOST: the device's context is gone. DOUBTFUL: the
 * code does not say; another call does (gpu_fate_of). */
typedef enum gpu_fate {
  GPU_FINE,
  GPU_NOT_READY,
  GPU_FAILED,
  GPU_NO_MEMORY,
  GPU_UNSUPPORTED,
  GPU_LOST,
  GPU_DOUBTFUL
} gpu_fate;

/* What the thread had before gpu_enter. */
typedef struct gpu_scope {
  int device;
  int manners; /* towards captures, as the driver counts them; -1: left as they were */
} gpu_scope;

/* ---------------------------------------------------------------- vendor (plugins/cuda, plugins/rocm) */

/* What differs between the two plugins. Static and const. */
typedef struct gpu_vendor {
  const char *name; /* "cuda", "rocm": of the plugin, in names of devices and settings */
  const char *api;  /* "CUDA", "HIP": in messages */
  int32_t device_type;
  const char *const
      *libraries; /* names to dlopen, best first; NULL ends. The setting "driver" goes before: a path, or off */
  const char *const *symbols; /* GPU_CALL_COUNT of them */
  const char *formats;        /* of modules: "cubin,ptx,fatbin,cuda" */
  uint32_t launch_limit_x;    /* of a grid */

  /* The vendor's further symbols and settings, once per instance, after the driver's table is filled and init was
   * called; kept in instance->own. close takes what open gave, NULL too. */
  heddle_status (*open)(heddle_pinstance *self, heddle_error *err);
  void (*close)(heddle_pinstance *self);

  /* "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered" into buf; before open too, as soon as
   * the driver's library is there. Any thread. */
  void (*code_words)(const heddle_pinstance *self, int code, char *buf, size_t bytes);
  gpu_fate (*fate)(int code);

  /* Fills what gpu_info does not get from calls that both have: arch, warp, alignment, limits, abilities; the driver's
   * words too where its version is no CUDA version. No context. */
  heddle_status (*describe)(heddle_pinstance *self, gpu_info *info, heddle_error *err);

  /* Makes and gives back the device's context. context_get gives a code whose fate is LOST where the process's context is
   * lost, and other code holds it, so that none can be made. enter makes it the calling thread's, leave restores what
   * was. */
  int (*context_get)(heddle_pdevice *dev);
  void (*context_put)(heddle_pdevice *dev);
  int (*enter)(const heddle_pdevice *dev, gpu_scope *scope);
  void (*leave)(const heddle_pdevice *dev, const gpu_scope *scope);

  /* The driver's number of the device of a context, -1 where that is unknown. NULL: the vendor has no contexts. */
  int (*context_device)(const heddle_pdevice *dev, void *context);

  /* Lets dev reach src's memory; 0 too where it could already. Inside enter(dev). */
  int (*peer_enable)(heddle_pdevice *dev, heddle_pdevice *src);
  int (*peer_copy)(heddle_pdevice *dst_dev, gpu_address dst, heddle_pdevice *src_dev, gpu_address src, size_t bytes,
                   void *stream);
  int (*instantiate)(heddle_pinstance *self, void *graph, void **exec);

  /* Compiles source (a whole program in the vendor's C++ dialect) for the arch of info into an image that module_load
   * takes; *image is of host->alloc. HEDDLE_ECOMPILE with the log, HEDDLE_EUNSUPPORTED where there is no compiler.
   * compiler_words names it with its version, for cache keys and for heddle devices; "" where there is none. Any
   * thread; blocks. */
  heddle_status (*compile)(heddle_pinstance *self, const gpu_info *info, const char *what, const char *source,
                           void **image, uint64_t *bytes, heddle_error *err);
  void (*compiler_words)(heddle_pinstance *self, char *buf, size_t bytes);

  /* The vendor's libraries of products and convolutions (gpu/library.h); NULL: it has none. */
  const struct gpu_library_vendor *library;

  /* HEDDLE_OK where compile can make images for the arch of info, else HEDDLE_EUNSUPPORTED with why not and what to do:
   * what query answers for every operator. Compiles nothing. NULL: where compiler_words says something. Any thread. */
  heddle_status (*can_compile)(heddle_pinstance *self, const gpu_info *info, heddle_error *err);

  const char *needs; /* the oldest driver that has every call that must be there: "CUDA 11.0 (driver 450)" */
} gpu_vendor;

/* ---------------------------------------------------------------- instance (instance.c) */

struct gpu_info {
  int device; /* the driver's number */
  uint32_t index;
  char name[128], driver[128]; /* driver: "CUDA 13.0, sm_90": keys caches */
  char arch[64];               /* "sm_90", "gfx90a:sramecc+:xnack-" */
  uint8_t uuid[16];
  uint32_t pci[4];
  uint64_t memory_bytes, alignment;
  uint32_t compute_units, warp, max_group, max_shared;
  uint32_t major, minor; /* compute capability; HIP: 0 */
  bool pools;            /* stream-ordered allocation works */
  bool integrated;       /* shares the host's memory */
  bool maps_host;        /* kernels reach mapped host memory */
  bool registers_host;
};

struct heddle_pinstance {
  const heddle_host *host;
  const gpu_vendor *vendor;
  gpu_driver driver;
  int driver_version;
  gpu_info *devices;
  uint32_t n_devices;
  /* Settings. */
  uint32_t max_streams;     /* 0: not given */
  bool peer;                /* copies between devices */
  bool unified;             /* memory that host and device share, where they are one */
  bool fuse;                /* chains of elementwise nodes become one */
  bool capture;             /* segments become graphs */
  bool pools;               /* stream-ordered allocation; else blocks of our own */
  bool counters;            /* streams write numbers that waiting threads look at */
  bool adopt_own;           /* the hook of the conformance kit: stream.adopt takes addresses of this plugin's streams */
  char *cache_dir;          /* absolute; NULL: no cache */
  filecache cache;          /* of compiled programs */
  char *source_dir;         /* where sources are written; NULL: nowhere */
  char *driver_path;        /* NULL: vendor->libraries */
  gpu_libraries *libraries; /* library.c; NULL: none */
  void *own;                /* the vendor's */
  atomic_bool left_behind;  /* a device was, with work that hangs: the instance stays */
  uint64_t page;            /* of the system: address and size of an import are multiples */
  pthread_mutex_t lock;     /* guards open; the driver is called with it held */
  heddle_pdevice *open;     /* devices, by next */
  gpu_imports imports;      /* host memory registered with the driver (import.c) */
};

/* The root table's calls, and its entry, for the vendor's plugin.c: open_instance is a static function there that calls
 * gpu_open_instance with its vendor. */
heddle_status gpu_open_instance(const gpu_vendor *vendor, const heddle_host *host, heddle_pinstance **out,
                                heddle_error *err);
void gpu_close_instance(heddle_pinstance *self);
heddle_status gpu_device_count(heddle_pinstance *self, uint32_t *out, heddle_error *err);
heddle_status gpu_device_describe(heddle_pinstance *self, uint32_t index, heddle_pdevice_desc *desc, heddle_error *err);

/* Loads the driver and its symbols and starts it: HEDDLE_ENODEV with a message where there is no library, no device, or
 * a symbol that must be there is missing (with its name, and that the driver is too old). driver.c. */
heddle_status gpu_driver_load(heddle_pinstance *self, heddle_error *err);

/* Zeroed bookkeeping, or fails with what it was for. */
heddle_status gpu_new(const heddle_host *host, uint64_t bytes, const char *what, void **out, heddle_error *err);

/* Whether a device has memory that host and device share, and takes host memory that it did not allocate. */
static inline bool gpu_unified(const heddle_pinstance *self, const gpu_info *info) {
  return self->unified && info->integrated && info->maps_host && self->driver.host_address != NULL;
}
static inline bool gpu_takes_imports(const heddle_pinstance *self, const gpu_info *info) {
  return info->registers_host && self->driver.host_register != NULL && self->driver.host_unregister != NULL;
}

/* Settings, for the vendor's own. text: the value as it is, false where it is not given. path: an absolute path of
 * host->alloc; NULL where it is not given or off (*off then true; off may be NULL). Any thread. */
bool gpu_setting(const heddle_host *host, const char *key, char *buf, uint64_t bytes);
heddle_status gpu_setting_path(const heddle_pinstance *self, const char *key, char **out, bool *off, heddle_error *err);

/* ---------------------------------------------------------------- device (device.c, status.c) */

struct heddle_pdevice {
  const heddle_host *host;
  heddle_pinstance *self;
  const gpu_vendor *vendor;
  const gpu_driver *driver; /* self's */
  const gpu_info *info;
  void *context; /* CUDA's: the primary one, or with apart one of the device's own */
  bool apart;    /* the context is shared with no other code of the process */
  void *service; /* a stream of the device's own: allocation, write and read without a stream */
  uint64_t cookie;
  uint32_t index;
  atomic_bool faulted;        /* fault is set, for good */
  pthread_mutex_t lock;       /* guards streams and fault; a leaf: no driver is called with it held */
  pthread_mutex_t build_lock; /* guards programs; the driver is called with it held */
  struct heddle_pstream *streams;
  heddle_error fault;
  struct k_program *programs; /* compile.c */
  gpu_weights *weights;       /* constants in bfloat16 (weights.c) */
  gpu_blocks *blocks;         /* memory's own blocks where there are no pools (blocks.c) */
  gpu_watch *watch;           /* fences under way (watch.c) */
  gpu_spares *spares;         /* graphs to be updated (capture.c) */
  void *library_state;        /* handles of the vendor's libraries on this device (library.c) */
  atomic_int_least64_t live_buffers, live_bytes, live_objects;
  void *pool;           /* of the driver's, made for this device; NULL: blocks */
  atomic_bool hung;     /* idle ended by its time limit: freed memory is kept until one has ended well */
  heddle_pbuffer *kept; /* that memory; lock guards it */
  struct heddle_pdevice *next;
};

static inline void gpu_count(atomic_int_least64_t *counter, int64_t by) {
  atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

/* Makes the device's context current, or fails with a message. Every call of the driver on a device stands between the
 * two calls. */
heddle_status gpu_enter(heddle_pdevice *dev, gpu_scope *scope, heddle_error *err);
static inline void gpu_leave(heddle_pdevice *dev, const gpu_scope *scope) {
  dev->vendor->leave(dev, scope);
}

/* HEDDLE_OK for 0, else fills err with "cuda:0: WHAT: CUDA_ERROR_... (700): words" and a status that fits:
 * HEDDLE_ENOMEM, HEDDLE_EUNSUPPORTED, HEDDLE_EDEVICE or HEDDLE_EFAILED; HEDDLE_EBUSY for "not ready". A code that says
 * that the device is lost makes its fault sticky, fails its fences under way, and tells the host once. Any thread. */
heddle_status gpu_check(heddle_pdevice *dev, int code, const char *what, heddle_error *err);

/* The vendor's fate of a code, but never DOUBTFUL: then the device is asked by a second call, and is LOST only if that
 * fails too. Not in a driver's call of ours. Any thread. */
gpu_fate gpu_fate_of(heddle_pdevice *dev, int code);

/* HEDDLE_OK, or the sticky fault. */
heddle_status gpu_health(heddle_pdevice *dev, heddle_error *err);

/* ---------------------------------------------------------------- memory (memory.c, blocks.c, import.c) */

enum { GPU_KIND_IMPORT = 3 }; /* beside HEDDLE_MEMORY_* */

/* A range of memory. Immutable. address: what kernels and copies of the device use; 0 where they cannot. host: of
 * PINNED, UNIFIED and imports; NULL for DEVICE. */
struct heddle_pbuffer {
  heddle_pdevice *dev;
  gpu_address address;
  char *host;
  uint64_t bytes;
  uint64_t granted; /* bytes that the driver gave for it */
  uint32_t kind;
  bool view;
  bool adopted;                /* of others, who free it */
  gpu_address base;            /* what the driver gave, which address and host lie in: DEVICE */
  void *host_base;             /* PINNED and UNIFIED */
  gpu_import *import;          /* imports */
  struct heddle_pbuffer *next; /* among those that a hung device may still touch */
};

/* Checks that bytes [offset, offset + bytes) lie in buffer. */
heddle_status gpu_range(heddle_pdevice *dev, const heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes,
                        const char *what, heddle_error *err);

/* Device memory of the plugin's own (tables, workspaces), aligned to 256 and counted in no live_bytes. Put: nothing on
 * the device uses it any more. Not inside a capture of this thread's. Any thread. */
heddle_status gpu_block_get(heddle_pdevice *dev, uint64_t bytes, gpu_address *out, heddle_error *err);
void gpu_block_put(heddle_pdevice *dev, gpu_address address);

/* The blocks of a device that has no pools. get and put are inside gpu_enter: get gives a code of the driver's. trim
 * gives what is kept of freed memory back to the driver, where memory is out; kept is how much that is. Any thread. */
heddle_status gpu_blocks_open(heddle_pdevice *dev, heddle_error *err);
int gpu_blocks_get(heddle_pdevice *dev, uint64_t bytes, gpu_address *out, uint64_t *granted);
void gpu_blocks_put(heddle_pdevice *dev, gpu_address address);
void gpu_blocks_trim(heddle_pdevice *dev);
uint64_t gpu_blocks_kept(heddle_pdevice *dev);
void gpu_blocks_close(heddle_pdevice *dev); /* in device.close, inside gpu_enter */

/* Host memory of others, for copies of all devices; get is not inside gpu_enter, put is. Any thread. open makes what an
 * instance needs for them; false: there is no lock. */
bool gpu_imports_open(heddle_pinstance *self);
void gpu_imports_close(heddle_pinstance *self);
heddle_status gpu_import_get(heddle_pdevice *dev, void *base, uint64_t bytes, gpu_import **out, heddle_error *err);
void gpu_import_put(heddle_pdevice *dev, gpu_import *import);

/* How many of these bytes of any host memory one copy may have: the driver refuses a range that is registered in part.
 * Any thread. */
uint64_t gpu_import_run(heddle_pinstance *self, const void *address, uint64_t bytes);

/* Whether the last wait for the device ended by its time limit and it is still not idle: freed memory is then kept until
 * it is. device.c. Not inside gpu_enter. */
bool gpu_hangs(heddle_pdevice *dev);

/* The buffers whose free came while the device hung go now. Inside gpu_enter. */
void gpu_memory_release(heddle_pdevice *dev);

/* Gives what is kept of freed memory back to the system. A pool gives what was freed in a stream only after the host has
 * waited for that. Inside gpu_enter. */
void gpu_memory_trim(heddle_pdevice *dev);

/* ---------------------------------------------------------------- streams (stream.c) */

/* A closed stream stays in dev->streams, and is used again once its work is done: a thread that found it may still read
 * it. So the list only grows, at its head (dev->lock), until the device is closed. */
struct heddle_pstream {
  heddle_pdevice *dev;
  void *handle;
  uint64_t number;
  pthread_mutex_t lock;   /* guards failure; a leaf */
  heddle_error failure;   /* the first one since the last sync; status 0: none */
  bool capturing;         /* the stream's thread only */
  heddle_pgraph *capture; /* what is being recorded */
  struct heddle_pstream *next;
  struct gpu_stream_own *own; /* further state (gpu/stream.h) */
};

/* Health, and the device's context: before each piece of work. gpu_stream_leave after it. */
heddle_status gpu_stream_enter(heddle_pstream *stream, gpu_scope *scope, heddle_error *err);
static inline void gpu_stream_leave(heddle_pstream *stream, const gpu_scope *scope) {
  gpu_leave(stream->dev, scope);
}

/* The same for calls that a capture cannot hold: HEDDLE_EINVAL while one is being recorded. */
heddle_status gpu_stream_enter_plain(heddle_pstream *stream, const char *what, gpu_scope *scope, heddle_error *err);

/* Ends a piece of work: leaves the context; a code that is not 0 is worded and kept for the next sync. */
heddle_status gpu_stream_done(heddle_pstream *stream, const gpu_scope *scope, int code, const char *what,
                              heddle_error *err);

/* The same of a call on two devices: a code that says that one is lost does not say which, so both are asked. Where it is
 * the other one this device goes on. */
heddle_status gpu_stream_done_with(heddle_pstream *stream, const gpu_scope *scope, heddle_pdevice *other, int code,
                                   const char *what, heddle_error *err);

/* Waits for a stream without a limit of the driver's: HEDDLE_OK, HEDDLE_ETIMEOUT, or the failure. Polls with growing
 * naps after a short spin. Inside gpu_enter or not. */
heddle_status gpu_stream_wait(heddle_pdevice *dev, void *handle, uint64_t timeout_ns, heddle_error *err);

/* The device is lost: fences under way fail with its words (watch.c). Called by gpu_check, once; takes no lock of the
 * device's that the caller may hold. Any thread. */
void gpu_watch_fault(heddle_pdevice *dev, const heddle_error *fault);
heddle_status gpu_watch_open(heddle_pdevice *dev, heddle_error *err); /* in device.open; starts no thread yet */

/* In device.close, before the context goes and after gpu_streams_idle succeeded (else the device is left behind): ends the
 * thread, and destroys the device's streams and its clock. Not inside gpu_enter. */
void gpu_watch_close(heddle_pdevice *dev);

/* Waits for the work of all streams, closed ones too, and of dev->service: HEDDLE_OK, HEDDLE_ETIMEOUT, or HEDDLE_EDEVICE.
 * Work that failed is finished too; its stream tells. For device.idle. Not inside gpu_enter. Any thread. */
heddle_status gpu_streams_idle(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err);

/* Waits, so long at most, until no call of the driver's about a fence is to come: before the device's memory goes. Drivers
 * without cuLaunchHostFunc make them after a fault too. False: some are. fence.c. Any thread. */
bool gpu_signals_over(heddle_pdevice *dev, uint64_t limit_ns);

/* Frees the graphs that are kept to be updated: before a module is unloaded, whose kernels they may still name. Inside
 * gpu_enter. Any thread. */
void gpu_spares_drop(heddle_pdevice *dev);
void gpu_spares_close(heddle_pdevice *dev); /* the same, for good; inside gpu_enter, before programs are unloaded */

/* The device's weights, in open and close of the device. weights.c. */
heddle_status gpu_weights_open(heddle_pdevice *dev, heddle_error *err);
void gpu_weights_close(heddle_pdevice *dev);

/* ---------------------------------------------------------------- programs (compile.c) */

/* The module of a code, with the chain that it computes (NULL: none), compiled for this device at its first use, or read from the
 * cache, and kept until the device is closed. Not inside gpu_enter. */
heddle_status gpu_program_get(heddle_pdevice *dev, const k_code *code, const struct heddle_chain *chain, void **module,
                              heddle_error *err);
void gpu_programs_close(heddle_pdevice *dev); /* inside gpu_enter */

/* A kernel of a module, loaded: a driver that loads code at its first use would do so at the first launch, which waits for
 * the device and may stand in a capture. A code of the driver's. Inside gpu_enter. */
int gpu_function_get(heddle_pdevice *dev, void *module, const char *name, void **out);

/* Compiles a whole program of the user's or reads it from the cache: what a module of format "cuda" or "hip" is. image
 * is of host->alloc. Not inside gpu_enter. */
heddle_status gpu_image_get(heddle_pdevice *dev, const char *what, const char *source, void **image, uint64_t *bytes,
                            heddle_error *err);

/* Gives an image to the driver. One that it refuses is HEDDLE_EFORMAT, or HEDDLE_EUNSUPPORTED where it is for other
 * devices or a newer driver, with the driver's log. Not inside gpu_enter. */
heddle_status gpu_image_load(heddle_pdevice *dev, const char *what, const void *image, void **module,
                             heddle_error *err);

/* ---------------------------------------------------------------- tables */

extern const heddle_device_table gpu_device_table;   /* device.c */
extern const heddle_memory_table gpu_memory_table;   /* memory.c */
extern const heddle_copy_table gpu_copy_table;       /* copy.c */
extern const heddle_stream_table gpu_stream_table;   /* stream.c */
extern const heddle_event_table gpu_event_table;     /* event.c */
extern const heddle_fence_table gpu_fence_table;     /* fence.c */
extern const heddle_op_table gpu_op_table;           /* ops.c */
extern const heddle_module_table gpu_module_table;   /* module.c */
extern const heddle_capture_table gpu_capture_table; /* capture.c */
extern const heddle_timing_table gpu_timing_table;   /* timing.c */

heddle_status gpu_partition(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                            heddle_propose_fn propose, void *sink, heddle_error *err); /* partition.c */

#endif
