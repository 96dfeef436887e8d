/* heddle/plugin.h: the ABI between Heddle and a device plugin. A plugin needs no other header.
 *
 * A plugin is a shared library that exports one symbol, heddle_plugin_entry. The host (libheddle) calls it once and
 * copies the table that it returns over a zeroed table of its own. From then on the host reaches the device only
 * through that table. docs/plugin-guide.md builds a working device from an empty plugin; docs/abi.md has the history by
 * version. An installation has docs/, examples/ and conformance/kit.h in share/heddle, and the sources that plugins share.
 *
 * These rules hold for everything below and are not repeated:
 *
 * Versions. Majors must match. Minors are information only and are never compared. New members are only appended to the
 *   end of their struct. Each struct that crosses the ABI begins with struct_size, which the side that compiled the
 *   struct sets with sizeof. The host zero-fills what a short plugin table lacks. A plugin checks HEDDLE_HAS before it
 *   reads or writes a member of a host struct that is newer than 1.0. No struct ends in padding. Three things are
 *   frozen for all majors: the signature of the entry, heddle_error, and the first 32 bytes of heddle_host and
 *   heddle_plugin.
 * Handles are pointers to types that only the plugin knows. Do not derive addresses from a handle; offsets are
 *   arguments.
 * Arrays are passed as (data, count, stride) where their element may grow, else as pointer and count. Five small
 *   structs have no struct_size and are fixed for the major: heddle_dtype, heddle_parray, heddle_pkeyvalue,
 *   heddle_pslice and heddle_pargument.
 * Errors. A function that can fail returns a status and takes a heddle_error as its last argument, which may be NULL.
 *   On failure the out-arguments are as if the call had not been made (unless said otherwise). The error text names the
 *   request, its object and the result of the vendor's API. HEDDLE_EDEVICE means that the device is lost until it is
 *   opened again. It is sticky: from then on the plugin returns it with the first error text. Every other failure
 *   leaves the device usable. Functions that free or close return nothing, accept NULL and succeed on a lost device
 *   too.
 * Ownership. An object returned through an out-argument belongs to the host, which frees it with the matching function.
 *   Strings, descriptors and arrays that are passed in are valid for the call only; copy what must outlive it.
 * Threads. "Any thread" means that several threads may call the function at the same time on the same handles. "One
 *   thread at a time" applies to the handle named first; different handles may be used concurrently. The host holds no
 *   lock during a call.
 * Blocking. "Does not block" means that the call never waits for work on the device to finish.
 * Optional. A function or a table marked optional may be NULL. It may also return HEDDLE_EUNSUPPORTED for a device that
 *   lacks the feature. The host then works without it.
 * Process. A plugin uses no process-wide state, and no per-thread state that affects a call: it sets and restores a
 *   vendor's current device within the call. It calls neither exit, abort nor atexit, installs no signal handler and
 *   does not use the environment; settings come through heddle_host.config. Its threads block all signals, its
 *   descriptors are close-on-exec, its processes end before close_instance returns. No libc objects cross the ABI: no
 *   FILE, and no memory that one side allocates with malloc and the other frees. A plugin keeps no mutable data at
 *   file scope.
 * Forks. A plugin that needs another process starts a program: posix_spawn, or fork followed at once by exec, with
 *   async-signal-safe calls only between them. It never continues in a forked copy of the host, where other threads'
 *   locks stay taken. It waits for each child that it started, by its process id. Where the host itself was forked after a
 *   device was opened, it calls no plugin in the child process. */
#ifndef HEDDLE_PLUGIN_H
#define HEDDLE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_ABI_MAJOR 1
#define HEDDLE_ABI_MINOR 2

/* True when the struct at p, of the given type, was compiled by a side that knew the member. */
#define HEDDLE_HAS(type, p, member) ((p) != NULL && (p)->struct_size >= offsetof(type, member) + sizeof((p)->member))

/* ---------------------------------------------------------------- status */

/* X(name, number, text): all statuses. Numbers never change; new ones are appended. */
#define HEDDLE_STATUS_LIST(X) \
  X(HEDDLE_OK, 0, "done") \
  X(HEDDLE_EINVAL, 1, "wrong argument") \
  X(HEDDLE_ENOMEM, 2, "out of memory") \
  X(HEDDLE_EIO, 3, "file could not be read or written") \
  X(HEDDLE_EFORMAT, 4, "malformed data") \
  X(HEDDLE_ENODEV, 5, "no such device") \
  X(HEDDLE_ENOTFOUND, 6, "no such name") \
  X(HEDDLE_EUNSUPPORTED, 7, "not supported") \
  X(HEDDLE_EBUSY, 8, "still in use") \
  X(HEDDLE_ETIMEOUT, 9, "time limit passed") \
  X(HEDDLE_ECANCELED, 10, "cancelled") \
  X(HEDDLE_EDEVICE, 11, "device lost") \
  X(HEDDLE_EFAILED, 12, "device call failed") \
  X(HEDDLE_ECOMPILE, 13, "device code did not compile") \
  X(HEDDLE_EABI, 14, "plugin does not fit this host") \
  X(HEDDLE_EFORK, 15, "used after fork") \
  X(HEDDLE_EPLAN, 16, "plan could not be proved") \
  X(HEDDLE_EINTERNAL, 17, "fault of Heddle's own") \
  X(HEDDLE_ENEEDSOPEN, 18, "answer needs an open device") \
  X(HEDDLE_ELIMIT, 19, "over a limit") \
  X(HEDDLE_EDENIED, 20, "not permitted")

enum {
#define HEDDLE_STATUS_ENUM(name, number, text) name = number,
  HEDDLE_STATUS_LIST(HEDDLE_STATUS_ENUM)
#undef HEDDLE_STATUS_ENUM
      HEDDLE_STATUS_COUNT
};

/* One of the constants above. A fixed-width type, because enums have no fixed size in C11. */
typedef int32_t heddle_status;

/* The details of a failed call. The caller owns the struct, for example on the stack; nothing in it needs freeing.
 * Frozen for all majors. status repeats the returned status. api_code is the vendor's number, or 0. text is one line,
 * always terminated, without a newline. A caller never overwrites the text of a lower layer; it only prepends to it. */
typedef struct heddle_error {
  int32_t status;
  int32_t api_code;
  char text[1016];
} heddle_error;

/* ---------------------------------------------------------------- handles */

typedef struct heddle_pinstance heddle_pinstance; /* one instance of the plugin, opened by one context of the host */
typedef struct heddle_pdevice heddle_pdevice;     /* an open device */
typedef struct heddle_pbuffer heddle_pbuffer;     /* a range of memory; not an address */
typedef struct heddle_pstream heddle_pstream;     /* a queue of work on one device, executed in order */
typedef struct heddle_pevent heddle_pevent;       /* a point in a stream, for streams of the same event domain */
typedef struct heddle_pmodule heddle_pmodule;     /* loaded device code */
typedef struct heddle_pkernel heddle_pkernel;     /* a function of a module */
typedef struct heddle_pop heddle_pop;             /* a prepared region of operators: immutable */
typedef struct heddle_plaunch heddle_plaunch;     /* a prepared region bound to its buffers and its stream */
typedef struct heddle_pgraph heddle_pgraph;       /* a captured sequence of launches and copies */
typedef struct heddle_ptimer heddle_ptimer;       /* an array of timestamp slots */

/* A fence of the host: a 64-bit timeline with a value and a failed state. The host keeps fences in a slab that is never
 * unmapped. The handle packs (slot, generation); a signal to a fence that no longer exists is ignored. 0 means no
 * fence. */
typedef uint64_t heddle_pfence;

/* ---------------------------------------------------------------- tensors as the ABI sees them */

/* The DLPack type codes that plugins receive. */
enum {
  HEDDLE_DTYPE_INT = 0,
  HEDDLE_DTYPE_UINT = 1,
  HEDDLE_DTYPE_FLOAT = 2,
  HEDDLE_DTYPE_HANDLE = 3,
  HEDDLE_DTYPE_BFLOAT = 4,
  HEDDLE_DTYPE_COMPLEX = 5,
  HEDDLE_DTYPE_BOOL = 6
};

/* Same four bytes as DLPack's DLDataType. bool is (6, 8, 1). */
typedef struct heddle_dtype {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} heddle_dtype;

/* The DLPack device types that plugins may report; any other DLPack number is valid too. A third-party device uses
 * HEDDLE_DEVICE_EXT and its own plugin name. */
enum {
  HEDDLE_DEVICE_CPU = 1,
  HEDDLE_DEVICE_CUDA = 2,
  HEDDLE_DEVICE_OPENCL = 4,
  HEDDLE_DEVICE_VULKAN = 7,
  HEDDLE_DEVICE_ROCM = 10,
  HEDDLE_DEVICE_EXT = 12
};

/* The layout of a tensor's elements in memory. 0 is plain row-major without gaps. Any other token is private to a
 * plugin and means the same on all devices of an instance and in every process, whatever the region. */
typedef uint64_t heddle_layout;

typedef struct heddle_parray {
  const void *data;
  uint64_t count;
  uint64_t stride; /* bytes from one element to the next */
} heddle_parray;

/* ---------------------------------------------------------------- what the host gives */

enum { HEDDLE_LOG_ERROR = 0, HEDDLE_LOG_WARN, HEDDLE_LOG_INFO, HEDDLE_LOG_DEBUG, HEDDLE_LOG_TRACE };

/* Since 1.2. The head of an extension: data or functions that this header does not define. Its name ("example.com/power")
 * and version are those of its author. A reader follows next and skips every name that it does not know. The
 * host refuses a plugin whose chain has more than 64 members or one without a name. */
typedef struct heddle_pextension {
  uint32_t struct_size; /* of the whole struct that begins with this head */
  uint32_t version;
  const char *name;
  const struct heddle_pextension *next; /* NULL: the last */
} heddle_pextension;

/* Bits of heddle_host.features and heddle_plugin.features. The sanitizer bits state what the library was built with. A
 * host refuses a plugin whose sanitizer runtime it lacks, because loading the plugin would end the process. */
#define HEDDLE_FEATURE_ASAN (UINT64_C(1) << 0)
#define HEDDLE_FEATURE_TSAN (UINT64_C(1) << 1)
#define HEDDLE_FEATURE_MSAN (UINT64_C(1) << 2)

/* A task of run_parallel, called with i in [0, n). */
typedef void (*heddle_task_fn)(void *arg, uint32_t i, uint32_t n);

/* run_parallel flag: all n tasks run at the same time, so they may wait for one another. Without it, the tasks may run
 * in any order on fewer threads. */
#define HEDDLE_PARALLEL_CONCURRENT UINT32_C(1)

/* The host's services. The table outlives the instance. Every function may be called from any thread, including a
 * vendor's own threads. None calls back into the plugin except run_parallel, which runs the caller's tasks. */
typedef struct heddle_host {
  uint32_t struct_size;
  uint16_t abi_major;
  uint16_t abi_minor;
  uint64_t features;
  const char *build; /* version and compiler of the host, for logs */
  void *ctx;         /* passed as the first argument of the functions below */
  /* 32 bytes: frozen up to here. */

  /* Writes one line to the host's log. level is HEDDLE_LOG_*, component a single word ("opencl"), text has no
   * newline. */
  void (*log)(void *ctx, int32_t level, const char *component, const char *text);

  /* Allocates memory for the plugin's own bookkeeping, aligned to align (a power of two, at least 1) and uninitialised;
   * NULL when memory is out. Allocations are counted, and tests make them fail: check every result. free accepts
   * NULL. */
  void *(*alloc)(void *ctx, uint64_t bytes, uint64_t align);
  void (*free)(void *ctx, void *p);

  /* Copies the value of a setting and its terminator into buf[0..bytes) and returns the full length without the
   * terminator, or -1 where the setting is not set. A length >= bytes means that buf holds a truncated value. key lacks
   * the plugin's name ("delay_us"), which the host adds. The host decides which of call, variable, file and default
   * wins. */
  int64_t (*config)(void *ctx, const char *key, char *buf, uint64_t bytes);

  /* fence_signal raises a fence to value; a smaller value than the current one changes nothing. fence_fail fails the
   * fence permanently: every present and later wait returns status and text. Both only record the state and wake
   * waiting threads. They never block for long and run no code of those threads. */
  void (*fence_signal)(void *ctx, heddle_pfence fence, uint64_t value);
  void (*fence_fail)(void *ctx, heddle_pfence fence, heddle_status status, const char *text);

  /* HEDDLE_OK when the fence has reached value, HEDDLE_EBUSY when not yet, else the status it failed with. */
  heddle_status (*fence_query)(void *ctx, heddle_pfence fence, uint64_t value);

  /* Reports, once, that an open device is lost. cookie is heddle_pdevice_options.cookie. */
  void (*device_fault)(void *ctx, uint64_t cookie, int32_t api_code, const char *text);

  /* Nanoseconds of the monotonic clock that all traces use. */
  uint64_t (*now_ns)(void *ctx);

  /* Adds a span to the trace if a trace is being recorded, else does nothing. track names the row that shows the
   * span. */
  void (*trace_span)(void *ctx, const char *track, const char *name, uint64_t t0_ns, uint64_t t1_ns);

  /* Runs task(arg, i, m) for all i in [0, m) on the host's thread pool and the calling thread, and returns when all are
   * done. m is n unless *granted returns another number. With HEDDLE_PARALLEL_CONCURRENT, m can be smaller than n: all
   * m tasks run at the same time, and such groups are admitted one at a time. In a nested call m is 1. granted may be
   * NULL. */
  void (*run_parallel)(void *ctx, uint32_t n, uint32_t flags, heddle_task_fn task, void *arg, uint32_t *granted);

  /* The most threads that run_parallel uses, the caller included. */
  uint32_t (*parallelism)(void *ctx);

  /* Since 1.2. Reports whether the host's current call on this thread should end early: op.run of an inline device, query
   * or prepare. A task of run_parallel counts as part of its caller's call. Returns HEDDLE_OK, or HEDDLE_ETIMEOUT or
   * HEDDLE_ECANCELED; in the latter cases the call returns that status, and what it has written does not matter. After
   * the first request to stop, every query returns the same until the call returns. Query it every few milliseconds of
   * work. On a thread that is in no call of the host, it returns HEDDLE_OK. */
  heddle_status (*stop_requested)(void *ctx);

  /* Since 1.2. Returns the highest level that log writes at present (HEDDLE_LOG_*), -1 where it writes nothing. A plugin
   * need not build a text that is above it. */
  int32_t (*log_level)(void *ctx);

  /* Since 1.2. The host's extensions, valid for the life of the table; NULL: none. */
  const heddle_pextension *extensions;
} heddle_host;

/* ---------------------------------------------------------------- devices */

/* Capabilities of a device, in heddle_pdevice_desc.caps. */
#define HEDDLE_CAP_INLINE (UINT64_C(1) << 0)      /* run and copies are complete on return, on the caller's thread */
#define HEDDLE_CAP_HOST_CORES (UINT64_C(1) << 1)  /* computes on the host's cores: selected only by name; waits sleep */
#define HEDDLE_CAP_UNIFIED (UINT64_C(1) << 2)     /* HEDDLE_MEMORY_UNIFIED is available and needs no copies */
#define HEDDLE_CAP_NONCOHERENT (UINT64_C(1) << 3) /* mapped memory needs flush and invalidate */
#define HEDDLE_CAP_WAIT_BEFORE_SIGNAL (UINT64_C(1) << 4) /* fence.wait may be submitted before the signal */
#define HEDDLE_CAP_VIEWS (UINT64_C(1) << 5)              /* memory.view works on this device */
#define HEDDLE_CAP_IMPORT_UNIFIED \
  (UINT64_C(1) << 6) /* operators can compute in memory from memory.import_host, as in kind UNIFIED */
#define HEDDLE_CAP_POLLED \
  (UINT64_C(1) << 7) /* stream.query costs little and signals the fences reached: the host calls it while it spins */
#define HEDDLE_CAP_LIBRARIES \
  (UINT64_C(1) << 8) /* since 1.2: operators of HEDDLE_DOMAIN_LIBRARY, functions of compiled libraries */

/* The properties of a device that are known without opening it. The host zeroes the struct and sets struct_size. The
 * plugin fills the members that HEDDLE_HAS reports as present. */
typedef struct heddle_pdevice_desc {
  uint32_t struct_size;
  int32_t type;     /* DLPack's device type */
  char name[128];   /* the vendor's name for the product */
  char driver[128]; /* driver and version; part of the key of caches of measurements and compiled code */
  uint8_t uuid[16]; /* all zero where there is none; equal for one physical device seen through two APIs */
  uint32_t pci_domain;
  uint32_t pci_bus;
  uint32_t pci_device;
  uint32_t pci_function;     /* all four 0xffffffff where there is none */
  uint64_t caps;             /* HEDDLE_CAP_* */
  uint64_t memory_bytes;     /* 0 where unknown */
  uint64_t max_buffer_bytes; /* of one allocation of kind DEVICE or UNIFIED; 0 means no limit but memory */
  uint64_t alignment;        /* required of every offset into a buffer that an operator or a view uses */
  uint64_t import_alignment; /* of address and size in memory.import_host; 0 where that is missing */
  /* Events order streams across devices of one instance that have the same number, 0 included; numbers of different
   * plugins are not compared. Such devices also accept each other's PINNED memory as the host side of copies. */
  uint64_t event_domain;
  uint32_t compute_units;
  uint32_t max_streams; /* number of streams that are useful; at least 1 */
  /* Since 1.2. The largest two-dimensional image that memory.alloc gives (HEDDLE_MEMORY_IMAGE), in pixels; both 0 where the
   * device has none. */
  uint32_t max_image_width;
  uint32_t max_image_height;
} heddle_pdevice_desc;

/* A setting for one device. Both strings are valid for the call. */
typedef struct heddle_pkeyvalue {
  const char *key;
  const char *value;
} heddle_pkeyvalue;

/* settings are those that the user gave for this device alone. Their keys lack the plugin's name and the device's index:
 * "npu.1.clock_mhz" arrives as "clock_mhz". They take precedence over the same keys of heddle_host.config. The plugin fails
 * with HEDDLE_EINVAL for a key that it does not know. Keys that the host itself reads (watchdog_ms) are not passed. */
typedef struct heddle_pdevice_options {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t cookie;        /* identifies this device in heddle_host.device_fault */
  heddle_parray settings; /* of heddle_pkeyvalue */
} heddle_pdevice_options;

/* Since 1.2. Types of settings. SWITCH: 1, on, yes, true, or 0, off, no, false. WORD: one of values. TEXT: anything that
 * help describes. */
enum {
  HEDDLE_SETTING_SWITCH = 1,
  HEDDLE_SETTING_NUMBER = 2,
  HEDDLE_SETTING_WORD = 3,
  HEDDLE_SETTING_TEXT = 4,
  HEDDLE_SETTING_PATH = 5
};

/* Bit of heddle_psetting.flags: the setting can also be given for one device, in heddle_pdevice_options.settings. */
#define HEDDLE_SETTING_DEVICE UINT32_C(1)

/* Since 1.2. The description of a setting, for the user and for warnings of unknown keys. The plugin still checks every
 * value itself. */
typedef struct heddle_psetting {
  uint32_t struct_size;
  uint32_t type; /* HEDDLE_SETTING_* */
  uint32_t flags;
  uint32_t reserved;
  const char *key;           /* without the plugin's name */
  const char *default_value; /* as a user would write it; "" where there is none */
  const char *values;        /* WORD: all of them, with commas between; else NULL */
  const char *help;          /* one line of plain text */
  uint64_t low;              /* NUMBER: the smallest and the largest value */
  uint64_t high;
} heddle_psetting;

/* Keys of device.query. For unknown keys it returns HEDDLE_EUNSUPPORTED. */
enum {
  HEDDLE_QUERY_LIVE_BUFFERS = 1, /* buffers and views not yet freed */
  HEDDLE_QUERY_LIVE_BYTES = 2,   /* bytes of allocations (not views) not yet freed */
  HEDDLE_QUERY_LIVE_OBJECTS = 3  /* streams, events, ops, launches, modules, graphs, timers not yet freed */
};

/* Required. */
typedef struct heddle_device_table {
  uint64_t struct_size;

  /* Closes a device. Everything created on it has been freed. Waits for its work for a limited time: a hung device is
   * abandoned. One thread at a time. */
  void (*close)(heddle_pdevice *dev);

  /* Opens device index of the instance and creates the vendor's context, if the API has one. May block for long, as it
   * may start a driver. Opening a device that is open returns a second, independent handle or HEDDLE_EBUSY. Any
   * thread. */
  heddle_status (*open)(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                        heddle_pdevice **out, heddle_error *err);

  /* Returns a number by key (HEDDLE_QUERY_*). Any thread; does not block. */
  heddle_status (*query)(heddle_pdevice *dev, uint32_t key, int64_t *out, heddle_error *err);

  /* HEDDLE_OK, or HEDDLE_EDEVICE with the text of the first fault. Any thread; does not block. */
  heddle_status (*health)(heddle_pdevice *dev, heddle_error *err);

  /* Waits until all work of the device has finished, or returns HEDDLE_ETIMEOUT after timeout_ns (UINT64_MAX: no
   * limit). After HEDDLE_OK no work accesses the device's memory. On a lost device it returns HEDDLE_EDEVICE once
   * nothing will access memory any more. Any thread. */
  heddle_status (*idle)(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err);

  /* Optional. The current free and total memory, in bytes. Any thread. */
  heddle_status (*memory_now)(heddle_pdevice *dev, uint64_t *free_bytes, uint64_t *total_bytes, heddle_error *err);

  /* Since 1.2. Optional. Ends the work of a device that hangs or is lost: discards what is enqueued in all streams, stops
   * what runs, and fails every pending fence. The device is lost from then on; the plugin reports that with device_fault
   * unless it was lost before. On HEDDLE_OK nothing accesses the device's memory any more: the host frees memory and
   * objects, closes the device, and may open it again. On a failure, among them HEDDLE_ETIMEOUT after timeout_ns,
   * work may still access memory: the host keeps all memory that the work may access. One thread at a time, while other
   * calls are in progress; the host calls it at most once for each open. */
  heddle_status (*reset)(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err);
} heddle_device_table;

/* ---------------------------------------------------------------- memory */

/* Kinds of memory. DEVICE is where operators compute. PINNED is host memory that the device's copies may still access
 * after the copy function has returned; it can be mapped. Every plugin that is not inline must provide PINNED. It is a
 * guarantee about copies, not about pages. UNIFIED is both at once (HEDDLE_CAP_UNIFIED).
 * A buffer belongs to the device that allocated it. The host passes it to no other device, except as an argument of
 * copy.peer, and PINNED memory as the host side of copies of devices with the same event domain. Where two devices share
 * a vendor's context, so that each could use the other's buffers, the plugin gives them one event domain and a peer path
 * that copies directly; the host still gives each device operands of its own.
 * Since 1.2: IMAGE is a two-dimensional image in the memory of a device with max_image_width, for kernels of modules that
 * take images (textures). Its bytes are those of a compact array of height x width pixels of four elements. It has no views;
 * each copy to it, from it and between it and a buffer moves the whole image; no operator of the plugin gets one. */
enum { HEDDLE_MEMORY_DEVICE = 0, HEDDLE_MEMORY_PINNED = 1, HEDDLE_MEMORY_UNIFIED = 2, HEDDLE_MEMORY_IMAGE = 3 };

typedef struct heddle_pmemory_desc {
  uint32_t struct_size;
  uint32_t kind; /* HEDDLE_MEMORY_* */
  uint64_t bytes;
  /* Guaranteed by the plugin for offset 0: a power of two of at most 4096, or desc.alignment if larger. 0 and 1 ask for
   * nothing: the plugin then gives what it needs itself. */
  uint64_t align;
  /* Since 1.2, for kind IMAGE: bytes is image_width * image_height * 4 * the bytes of dtype, an element's. HEDDLE_ELIMIT
   * where the image is too large, HEDDLE_EUNSUPPORTED for types that images do not have. */
  uint32_t image_width;
  uint32_t image_height;
  heddle_dtype dtype;
  uint32_t reserved;
} heddle_pmemory_desc;

/* Required: free and alloc; map and unmap unless the device has neither PINNED nor UNIFIED memory; flush and invalidate
 * where HEDDLE_CAP_NONCOHERENT is set. */
typedef struct heddle_memory_table {
  uint64_t struct_size;

  /* Frees a buffer, a view or an import. Either all work that uses it has finished, or the device is lost or idle has
   * failed; in those cases the plugin keeps the memory until freeing it is safe. Views are freed before their parent.
   * Any thread. */
  void (*free)(heddle_pdevice *dev, heddle_pbuffer *buffer);

  /* Allocates a buffer with undefined content. bytes 0 is valid and returns a buffer of which no byte may be accessed.
   * HEDDLE_ENOMEM when memory is out, HEDDLE_ELIMIT when bytes is over max_buffer_bytes. PINNED memory is limited by host
   * memory only; a plugin whose PINNED memory has a limit of its own returns HEDDLE_ELIMIT for it too. Any thread. */
  heddle_status (*alloc)(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out, heddle_error *err);

  /* Optional, with HEDDLE_CAP_VIEWS. Returns a handle for bytes [offset, offset + bytes) of a buffer that is not itself
   * a view. offset is a multiple of desc.alignment. The view shares the parent's bytes. Any thread. */
  heddle_status (*view)(heddle_pdevice *dev, heddle_pbuffer *parent, uint64_t offset, uint64_t bytes,
                        heddle_pbuffer **out, heddle_error *err);

  /* Optional. Creates a buffer over the caller's host memory. The caller keeps ownership, and the memory outlives the
   * buffer. Address and size are multiples of import_alignment. Such a buffer is coherent on every device, with or
   * without HEDDLE_CAP_NONCOHERENT. It may be the host side of copies, and an operand on inline devices and where
   * HEDDLE_CAP_IMPORT_UNIFIED is set. Any thread. */
  heddle_status (*import_host)(heddle_pdevice *dev, void *pointer, uint64_t bytes, heddle_pbuffer **out,
                               heddle_error *err);

  /* map makes a PINNED or UNIFIED buffer visible to the host and returns its address. The host maps a buffer once, for
   * its whole life. Where mappings are not coherent, flush and invalidate order the two sides. Any thread. */
  heddle_status (*map)(heddle_pdevice *dev, heddle_pbuffer *buffer, void **out, heddle_error *err);
  void (*unmap)(heddle_pdevice *dev, heddle_pbuffer *buffer);

  /* flush makes the host's writes to the range visible to work submitted later. invalidate makes the writes of finished
   * work visible to the host. The plugin may widen the range to its granularity only where that does not change bytes
   * outside the range. Any thread; neither blocks. */
  heddle_status (*flush)(heddle_pdevice *dev, heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes,
                         heddle_error *err);
  heddle_status (*invalidate)(heddle_pdevice *dev, heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes,
                              heddle_error *err);

  /* Optional. Returns the vendor's own handle of the buffer (a cl_mem, a device address), for DLPack and for foreign
   * code. A view has a handle of its own. The plugin keeps ownership. Any thread. */
  heddle_status (*native)(heddle_pdevice *dev, heddle_pbuffer *buffer, uint64_t *out, heddle_error *err);

  /* Since 1.1. Optional, with native; the reverse of it. Creates a buffer of kind DEVICE over bytes [offset, offset +
   * bytes) of existing memory on this device, from any allocator; handle is of the kind that native returns, and
   * bytes is at least 1. The owner keeps ownership and keeps the memory until the buffer is freed; freeing the buffer
   * frees none of the memory. If the handle is reference-counted, the plugin retains it meanwhile. The buffer counts as
   * a live buffer but not in the live bytes. Earlier work in streams that writes the memory must have finished: the
   * plugin does not order itself after work that it does not know. HEDDLE_EINVAL where the handle does not belong to
   * this device, as far as the vendor's API can tell, or has fewer bytes; HEDDLE_EUNSUPPORTED where the range does not
   * begin at a multiple that operators can use. Any thread. */
  heddle_status (*adopt)(heddle_pdevice *dev, uint64_t handle, uint64_t offset, uint64_t bytes, heddle_pbuffer **out,
                         heddle_error *err);
} heddle_memory_table;

/* ---------------------------------------------------------------- copies */

/* Required: h2d, d2h, write, read, d2d, fill. All are work of the stream: they start after the work enqueued before
 * them, and on an inline device they are complete on return. The ranges of one call do not overlap. One thread at a
 * time per stream. None blocks, except write and read as described below. */
typedef struct heddle_copy_table {
  uint64_t struct_size;

  /* Host to device and device to host. host is a PINNED or UNIFIED buffer or an import of this device (or of another
   * device with the same event domain). The call may return before the bytes have moved. Inside a capture, the copy is
   * recorded. */
  heddle_status (*h2d)(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *host,
                       uint64_t host_offset, uint64_t bytes, heddle_error *err);
  heddle_status (*d2h)(heddle_pstream *stream, heddle_pbuffer *host, uint64_t host_offset, heddle_pbuffer *src,
                       uint64_t src_offset, uint64_t bytes, heddle_error *err);

  /* The same with a plain pointer. The plugin no longer uses the pointer after the return (after read, the bytes have
   * arrived) and may block for that. Not allowed inside a capture. */
  heddle_status (*write)(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, const void *src,
                         uint64_t bytes, heddle_error *err);
  heddle_status (*read)(heddle_pstream *stream, void *dst, heddle_pbuffer *src, uint64_t src_offset, uint64_t bytes,
                        heddle_error *err);

  /* Copies within one device. */
  heddle_status (*d2d)(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *src,
                       uint64_t src_offset, uint64_t bytes, heddle_error *err);

  /* Sets each 4-byte word of the range to pattern. offset and bytes are multiples of 4. */
  heddle_status (*fill)(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, uint64_t bytes,
                        uint32_t pattern, heddle_error *err);

  /* Optional, both or neither: a direct path between two devices of one instance. can_peer is pure and takes device
   * indices: HEDDLE_OK, or HEDDLE_EUNSUPPORTED with the reason. peer is work of stream, which belongs to either
   * device. */
  heddle_status (*can_peer)(heddle_pinstance *self, uint32_t dst_index, uint32_t src_index, heddle_error *err);
  heddle_status (*peer)(heddle_pstream *stream, heddle_pdevice *dst_dev, heddle_pbuffer *dst, uint64_t dst_offset,
                        heddle_pdevice *src_dev, heddle_pbuffer *src, uint64_t src_offset, uint64_t bytes,
                        heddle_error *err);
} heddle_copy_table;

/* ---------------------------------------------------------------- streams, events, fences */

enum { HEDDLE_STREAM_COMPUTE = 0, HEDDLE_STREAM_COPY = 1 };

/* Required. Work in a stream runs in order. Without events or fences there is no other order.
 * Failed work. When a piece of work fails, later work of the stream need not run, and what it writes is undefined, until
 * a sync has returned the failure. From then on the stream works as before. Only sync clears a failure: query reports it
 * each time. Every fence.signal between the failed work and that sync fails its fence.
 * Full queues. A plugin whose queue is bounded reserves places in op.bind and lets the calls that may allocate (create,
 * copies, event and fence calls) enlarge it. A call that finds no place returns HEDDLE_ELIMIT and enqueues nothing; it never
 * waits for a place. The stream stays usable, and places become free as work ends. */
typedef struct heddle_stream_table {
  uint64_t struct_size;

  /* Closes a stream whose work has finished or whose device is lost. In any other case the plugin lets the work finish
   * without the host and keeps what it needs. One thread at a time. */
  void (*close)(heddle_pstream *stream);

  /* Creates a stream. kind is a hint. priority 0 is normal, higher is sooner; out-of-range values are clamped. Any
   * thread. */
  heddle_status (*create)(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                          heddle_error *err);

  /* Submits the work enqueued in the stream to the device; work is not guaranteed to start before that. Does not block.
   * One thread at a time. */
  heddle_status (*submit)(heddle_pstream *stream, heddle_error *err);

  /* Submits, and waits for all work in the stream; returns HEDDLE_ETIMEOUT after timeout_ns. Returns the first failure
   * of work in the stream since the last sync. One thread at a time. */
  heddle_status (*sync)(heddle_pstream *stream, uint64_t timeout_ns, heddle_error *err);

  /* HEDDLE_OK when all submitted work has finished, HEDDLE_EBUSY when not, or the failure of that work. Changes nothing: a
   * failure stays until sync has returned it. Any thread; does not block. */
  heddle_status (*query)(heddle_pstream *stream, heddle_error *err);

  /* Since 1.2. Optional. Creates a stream over one that exists on this device and belongs to others: handle is the vendor's
   * (a cl_command_queue, a CUstream, a hipStream_t). The host calls event.record, event.wait, submit, sync, query and
   * close on it, and nothing else; the plugin enqueues nothing but marks and waits. The owner enqueues work at any time, and
   * keeps the stream until close, which waits for nothing and ends nothing of the owner's. If the handle is
   * reference-counted, the plugin retains it meanwhile. One handle may be adopted several times at once. HEDDLE_EINVAL
   * where it belongs to another device, with the names of both, as far as the vendor's API can tell. Any thread. */
  heddle_status (*adopt)(heddle_pdevice *dev, uint64_t handle, heddle_pstream **out, heddle_error *err);
} heddle_stream_table;

/* Required, except for inline devices. Events order streams of one event domain without the host. record marks the
 * point after all work now in the stream. wait holds back later work of its stream until the device reaches the event's
 * last record that was made before the call to wait. The host submits the recording stream before it calls wait. An
 * event that was never recorded counts as reached. A wait on work that fails makes the waiting stream fail too. One
 * thread at a time per stream; one may wait for an event while another records it. */
typedef struct heddle_event_table {
  uint64_t struct_size;
  void (*free)(heddle_pevent *event);
  heddle_status (*create)(heddle_pdevice *dev, heddle_pevent **out, heddle_error *err);
  heddle_status (*record)(heddle_pevent *event, heddle_pstream *stream, heddle_error *err);
  heddle_status (*wait)(heddle_pstream *stream, heddle_pevent *event, heddle_error *err);
} heddle_event_table;

/* signal is required, except for inline devices. When the stream reaches this point, the plugin calls
 * heddle_host.fence_signal with fence and value, from any thread. If earlier work in the stream failed, or cannot be
 * submitted, it calls heddle_host.fence_fail instead, so that every wait on the fence reports the failure. signal also
 * submits the stream. A signal that cannot be submitted itself fails the fence with the status and text that signal
 * returns, before it returns; only for an argument that is no valid handle (HEDDLE_EINVAL) it leaves the fence alone.
 * wait is optional: later work of the stream starts when the fence has reached value; if the fence fails, the stream
 * fails. Without HEDDLE_CAP_WAIT_BEFORE_SIGNAL the host calls it only when the signal has been submitted. No host up to
 * 1.2 calls wait in a run: work that waits for another plugin's device is submitted only after the fence has reached its
 * value. The conformance kit calls it, and hosts of later minors may.
 * One thread at a time per stream; neither blocks. */
typedef struct heddle_fence_table {
  uint64_t struct_size;
  heddle_status (*signal)(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err);
  heddle_status (*wait)(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err);
} heddle_fence_table;

/* ---------------------------------------------------------------- operators */

/* Kinds of attributes. data points to count elements: int64_t, double or char (a string is count chars and a terminator
 * that is not counted), or, for STRINGS, const char pointers. */
enum {
  HEDDLE_ATTR_INT = 1,
  HEDDLE_ATTR_FLOAT = 2,
  HEDDLE_ATTR_STRING = 3,
  HEDDLE_ATTR_INTS = 4,
  HEDDLE_ATTR_FLOATS = 5,
  HEDDLE_ATTR_STRINGS = 6
};

typedef struct heddle_pattr {
  uint32_t struct_size;
  uint32_t kind; /* HEDDLE_ATTR_* */
  const char *name;
  const void *data;
  uint64_t count;
} heddle_pattr;

/* A value of a region: an operand, a result, or an intermediate between two of its nodes. */
typedef struct heddle_pvalue {
  uint32_t struct_size;
  heddle_dtype dtype;
  const int64_t *shape; /* ndim dimensions, all known and >= 0; their product times the element size fits int64_t */
  const void *data;     /* bytes of a constant (row-major, on the host), else NULL */
  uint64_t data_bytes;
  heddle_layout layout; /* the value's layout in prepare and for Reorder; elsewhere in query: 0 */
  int32_t ndim;
  uint32_t flags; /* 0 in 1.0 */
  /* Since 1.2. room > 0: the value lies in memory that has room for so many elements along dimension room_axis: dimensions
   * before that one have the strides of a row-major tensor of that size. In prepare and resize, of operands with
   * HEDDLE_INPUT_ROOM and of the two values of an entry of heddle_poffer.extends with that axis. */
  int64_t room;
  int32_t room_axis;
  /* Since 1.2, in a region with HEDDLE_REGION_OPEN: bit d is set where dimension d may be 1 to shape[d] in op.resize; other
   * dimensions stay as they are. Where no value of the region has a bit, any dimension may change. */
  uint32_t open_dims;
} heddle_pvalue;

/* Since 1.2. The domain of a node that calls a function of a compiled library, for devices with HEDDLE_CAP_LIBRARIES, which run
 * such code elsewhere than in this process. Its region has no other node. op is the function, which takes the node's inputs
 * and outputs as tensors: none is absent, and all are row-major. Attributes, each an INT: "library" is the index of a value
 * that is no operand, and whose data is the library's file; "flatten_data": 1 where tensors have one dimension;
 * "device_type": DLPack's device type that the graph names for the node, 0 where it names none. */
#define HEDDLE_DOMAIN_LIBRARY "heddle.library"

/* A node. Operators have the names and definitions of the ONNX operator specification. */
typedef struct heddle_pnode {
  uint32_t struct_size;
  uint32_t opset;     /* version of the domain's operator set */
  const char *domain; /* "" is ONNX's own; "heddle" has Reorder and FusedElementwise */
  const char *op;
  const char *name;       /* of the node in the graph, for error texts */
  heddle_parray attrs;    /* of heddle_pattr; only those in the graph: the specification has the defaults */
  const int32_t *inputs;  /* indices into the region's values; -1 is an absent input */
  const int32_t *outputs; /* likewise */
  uint32_t n_inputs;
  uint32_t n_outputs;
  /* Since 1.2. The oldest opset, from 13 on, with the definition of the operator that opset has: a plugin that knows the
   * operator as of this version reads the node so, however new opset is. Types that were added later do not count. 0 where
   * the host does not know the operator. */
  uint32_t since_version;
  uint32_t reserved;
} heddle_pnode;

/* heddle_pregion.flags: FAST allows results in reduced precision (bfloat16, TF32). Without it float32 is float32. */
#define HEDDLE_REGION_FAST UINT32_C(1)

/* Since 1.2, where the plugin has op.resize. OPEN: the shapes are bounds. Launches of an offer with HEDDLE_OFFER_RESIZES
 * will be resized to smaller ones, in the dimensions that heddle_pvalue.open_dims says. */
#define HEDDLE_REGION_OPEN UINT32_C(2)

/* One or more nodes on one device, connected and convex, in topological order. inputs are the values from outside the
 * region (constants among them), each once. outputs are the values used outside the region. */
typedef struct heddle_pregion {
  uint32_t struct_size;
  uint32_t flags;
  heddle_parray nodes;   /* of heddle_pnode */
  heddle_parray values;  /* of heddle_pvalue */
  const int32_t *inputs; /* indices into values */
  const int32_t *outputs;
  uint32_t n_inputs;
  uint32_t n_outputs;
} heddle_pregion;

/* Flags of an input in an offer. ABSORBED: the plugin reads the constant's bytes in prepare and needs no buffer; bind
 * receives an empty slice for it. Only for inputs with data. */
#define HEDDLE_INPUT_ABSORBED UINT32_C(1)

/* Since 1.2. ROOM: the operand may lie in memory with room along any dimension (heddle_pvalue.room), also where it gets
 * smaller in op.resize. */
#define HEDDLE_INPUT_ROOM UINT32_C(2)

/* Flag of an offer. BARE: the launch uses whole buffers; every slice has offset 0. */
#define HEDDLE_OFFER_BARE UINT32_C(1)

/* Since 1.2, for a region with HEDDLE_REGION_OPEN. RESIZES: op.resize serves launches of this offer for smaller shapes of
 * the region, with the layouts, flags and workspace of the offer. */
#define HEDDLE_OFFER_RESIZES UINT32_C(2)

/* One way in which a plugin can run a region. */
typedef struct heddle_poffer {
  uint32_t struct_size;
  uint32_t flags;                     /* HEDDLE_OFFER_* */
  const heddle_layout *input_layouts; /* one per region input; NULL: all 0 */
  const heddle_layout *output_layouts;
  const uint32_t *input_flags; /* one per region input; NULL: all 0 */
  const int32_t *in_place;     /* pairs (input, output) that may share the same bytes; NULL: none */
  uint64_t n_in_place;         /* pairs */
  uint64_t workspace_bytes;    /* scratch memory of kind DEVICE that the launch may use while it runs */
  uint64_t workspace_align;
  double cost_ns; /* estimated time; 0 where unknown */
  /* Since 1.2. Memory besides operands and workspace (docs/memory.md), in bytes of the device's memory, or of host
   * memory where the device computes there. kept_bytes: held by the prepared op until op_free. launch_bytes: held by
   * each launch until launch_free. */
  uint64_t kept_bytes;
  uint64_t launch_bytes;
  /* Since 1.2. Entries (input, output, axis) for values that grow from run to run (docs/state.md); NULL: none. The output is
   * the input with elements added, as of Concat, or the input with elements written that it did not use yet, as of a cache
   * with a length. Both may be bound to the same first byte, with the bytes of the output. The launch then leaves every
   * element that the input holds as it is, so that it can be run again after it was stopped or has failed. axis: the output's
   * elements lie where the input's do only where both have room along it (heddle_pvalue.room); -1: always. */
  const int32_t *extends;
  uint64_t n_extends; /* entries, of three numbers */
} heddle_poffer;

/* The callback by which query passes its offers: the host copies each offer and returns HEDDLE_OK, or a status that
 * query returns. */
typedef heddle_status (*heddle_offer_fn)(void *sink, const heddle_poffer *offer, heddle_error *err);

/* The callback by which partition passes a proposal: the indices of nodes of the region that the plugin wants as one
 * region. */
typedef heddle_status (*heddle_propose_fn)(void *sink, const uint32_t *nodes, uint32_t count, heddle_error *err);

/* The callback by which list passes an operator. opset_first and opset_last are both included. dtypes is a
 * comma-separated list for display. */
typedef heddle_status (*heddle_list_fn)(void *sink, const char *domain, const char *op, uint32_t opset_first,
                                        uint32_t opset_last, const char *dtypes, heddle_error *err);

/* A part of a buffer that a launch uses. buffer is NULL for an absent, absorbed or empty operand. */
typedef struct heddle_pslice {
  heddle_pbuffer *buffer;
  uint64_t offset;
  uint64_t bytes;
} heddle_pslice;

typedef struct heddle_pbind {
  uint32_t struct_size;
  uint32_t reserved;
  const heddle_pslice *inputs;  /* one per region input */
  const heddle_pslice *outputs; /* one per region output */
  uint32_t n_inputs;
  uint32_t n_outputs;
  heddle_pslice workspace;
} heddle_pbind;

/* Required, except for a plugin that has only modules. */
typedef struct heddle_op_table {
  uint64_t struct_size;

  /* launch_free frees a launch that is not running. op_free frees an op after all of its launches. Any thread. */
  void (*launch_free)(heddle_plaunch *launch);
  void (*op_free)(heddle_pop *op);

  /* Determines whether this region can run on device index. If so, passes one or more offers, best first, and returns
   * HEDDLE_OK; else returns HEDDLE_EUNSUPPORTED with the reason, which names node and operator. Pure: it opens nothing
   * and gives the same result each time. Where that is not possible it returns HEDDLE_ENEEDSOPEN; the host then opens
   * the device and calls again. The result is binding: prepare succeeds for each offer unless memory is out or the
   * device is lost. Any thread. */
  heddle_status (*query)(heddle_pinstance *self, uint32_t index, const heddle_pregion *region, heddle_offer_fn offer,
                         void *sink, heddle_error *err);

  /* Prepares the region: chooses kernels, compiles them or finds them in a cache, and reads absorbed constants. offer
   * is the index of the chosen offer; the values have the layouts of that offer. May block for long. The op does not
   * keep region. Any thread may call this, and any thread may use the op. */
  heddle_status (*prepare)(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                           heddle_error *err);

  /* Binds the operands of an op to a stream of its device. One thread at a time uses the launch. The buffers outlive
   * the launch. May allocate. Any thread. */
  heddle_status (*bind)(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands, heddle_plaunch **out,
                        heddle_error *err);

  /* Enqueues the launch in its stream. On an inline device it is complete on return, or it was stopped
   * (heddle_host.stop_requested) and returns the reason. Allocates nothing, holds no lock for long and does not block.
   * Inside a capture it is recorded. Where a ring is full, it returns HEDDLE_ELIMIT (stream table, full queues) and the
   * host's run fails with that. In a run each launch is pending once; only where the host measures an operator it
   * enqueues one launch repeatedly, and takes fewer after HEDDLE_ELIMIT. One thread at a time per stream. */
  heddle_status (*run)(heddle_plaunch *launch, heddle_error *err);

  /* Optional. Proposes which nodes of a region (all nodes that the plugin could run, not necessarily connected) the
   * plugin wants to run together. Pure, or HEDDLE_ENEEDSOPEN as in query. The host refuses a proposal that is not
   * connected, is not convex or overlaps another. */
  heddle_status (*partition)(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                             heddle_propose_fn propose, void *sink, heddle_error *err);

  /* Optional. Lists every operator that the plugin supports, for documents and tests. Pure. */
  heddle_status (*list)(heddle_pinstance *self, uint32_t index, heddle_list_fn list, void *sink, heddle_error *err);

  /* Optional, since 1.2. Gives a launch of an offer with HEDDLE_OFFER_RESIZES other shapes: region has the nodes that the
   * op was prepared for, with values whose shapes are no larger than there in any dimension, and possibly other bytes of
   * absorbed operands; operands are as for bind, with buffers that may be others. The launch then stays so until it is
   * resized again. A launch may be bound with operands that are too small for the op's own shapes; it is resized before
   * it runs. Allocates and compiles nothing. HEDDLE_EUNSUPPORTED where these shapes cannot be served: the host then
   * prepares the region for them. On failure the launch is as before. It is not running, and not recorded. One thread at
   * a time uses the launch. */
  heddle_status (*resize)(heddle_plaunch *launch, const heddle_pregion *region, const heddle_pbind *operands,
                          heddle_error *err);
} heddle_op_table;

/* Optional; needed by a plugin that offers layouts other than 0. All functions are pure, take (instance, device index)
 * and may be called from any thread. A plugin with layouts also supports the operator Reorder of domain "heddle": one
 * input and one output of equal dtype and shape, converted between their layouts in the region. A layout that only
 * operands have, such as that of transformed weights, may have no Reorder back to 0. */
typedef struct heddle_layout_table {
  uint64_t struct_size;

  /* Bytes and alignment of a tensor in a layout. tensor.layout is the token. */
  heddle_status (*bytes)(heddle_pinstance *self, uint32_t index, const heddle_pvalue *tensor, uint64_t *bytes,
                         uint64_t *align, heddle_error *err);

  /* Writes tensor.data (row-major) in tensor.layout to host memory dst, whose size is that from bytes. Writes every
   * byte, padding included. */
  heddle_status (*pack)(heddle_pinstance *self, uint32_t index, const heddle_pvalue *tensor, void *dst,
                        uint64_t dst_bytes, heddle_error *err);

  /* Writes a short name of the token ("nchw8c"), for plans, into buf, terminated. */
  heddle_status (*describe)(heddle_pinstance *self, uint32_t index, heddle_layout layout, char *buf, uint64_t bytes,
                            heddle_error *err);
} heddle_layout_table;

/* ---------------------------------------------------------------- modules: device code from outside */

/* One argument of a launch: a buffer at an offset, or size inline bytes. */
typedef struct heddle_pargument {
  heddle_pbuffer *buffer;
  uint64_t offset; /* into buffer; inline: the bytes themselves, lowest first */
  uint64_t size;   /* 0: a buffer; else 1, 2, 4 or 8 inline bytes */
} heddle_pargument;

typedef struct heddle_pkernel_info {
  uint32_t struct_size;
  uint32_t max_threads; /* per block; 0 where unknown */
} heddle_pkernel_info;

/* Optional. formats returns a comma-separated list of the formats that load accepts ("cubin,ptx"), valid for the life
 * of the plugin. load writes its build log to err on failure. kernel_get returns a kernel that belongs to its module
 * and is not freed. launch is work of the stream; grid and block have three members each. It allocates nothing that the
 * next launch does not reuse; one thread at a time per stream. */
typedef struct heddle_module_table {
  uint64_t struct_size;
  void (*unload)(heddle_pmodule *module);
  const char *(*formats)(heddle_pinstance *self, uint32_t index);
  heddle_status (*load)(heddle_pdevice *dev, const char *format, const void *data, uint64_t bytes, heddle_pmodule **out,
                        heddle_error *err);
  heddle_status (*kernel_get)(heddle_pmodule *module, const char *name, heddle_pkernel **out, heddle_pkernel_info *info,
                              heddle_error *err);
  heddle_status (*launch)(heddle_pstream *stream, heddle_pkernel *kernel, const uint32_t *grid, const uint32_t *block,
                          uint32_t shared_bytes, const heddle_pargument *args, uint32_t n_args, heddle_error *err);
} heddle_module_table;

/* ---------------------------------------------------------------- optional groups */

/* A sequence of launches and copies that is recorded once and replayed with one call. Between begin and end, the calls
 * run, h2d, d2h, d2d, fill and launch on that stream record instead of running. A plugin may refuse any other call on
 * it (event and fence calls, write, read, sync). Addresses are those of the recording; when one changes, the host
 * records again. end ends the recording whatever it returns. The host frees a graph before the launches that it
 * recorded. A replay is work of the given stream, which may be another stream of the same device. One thread at a time
 * per stream. */
typedef struct heddle_capture_table {
  uint64_t struct_size;
  void (*free)(heddle_pgraph *graph);
  heddle_status (*begin)(heddle_pstream *stream, heddle_error *err);
  heddle_status (*end)(heddle_pstream *stream, heddle_pgraph **out, heddle_error *err);
  heddle_status (*replay)(heddle_pgraph *graph, heddle_pstream *stream, heddle_error *err);
} heddle_capture_table;

/* Timestamps of the device. mark writes the device's clock to a slot when the stream reaches this point (in a capture
 * too). read returns slots whose work has finished, in nanoseconds of the device's clock. calibrate reads the device's
 * clock and the host's clock at the same moment. A device has one clock for all its streams. */
typedef struct heddle_timing_table {
  uint64_t struct_size;
  void (*free)(heddle_ptimer *timer);
  heddle_status (*create)(heddle_pdevice *dev, uint32_t slots, heddle_ptimer **out, heddle_error *err);
  heddle_status (*mark)(heddle_pstream *stream, heddle_ptimer *timer, uint32_t slot, heddle_error *err);
  heddle_status (*read)(heddle_ptimer *timer, uint32_t first, uint32_t count, uint64_t *out_ns, heddle_error *err);
  heddle_status (*calibrate)(heddle_pdevice *dev, uint64_t *device_ns, uint64_t *host_ns, heddle_error *err);
} heddle_timing_table;

/* Kinds of handles that are shared between APIs on one physical device. */
enum { HEDDLE_EXTERNAL_OPAQUE_FD = 1, HEDDLE_EXTERNAL_DMA_BUF = 2 };

/* Memory shared with another API by an operating system handle. A file descriptor from export_memory belongs to the
 * host; import_memory takes ownership of it on success. */
typedef struct heddle_external_table {
  uint64_t struct_size;
  heddle_status (*export_memory)(heddle_pdevice *dev, heddle_pbuffer *buffer, uint32_t kind, int64_t *out,
                                 heddle_error *err);
  heddle_status (*import_memory)(heddle_pdevice *dev, uint32_t kind, int64_t handle, uint64_t bytes,
                                 heddle_pbuffer **out, heddle_error *err);
} heddle_external_table;

/* ---------------------------------------------------------------- the root */

/* What heddle_plugin_entry returns: a static const table. It is valid while the library is mapped, and the library is
 * never unmapped. A NULL table pointer means that the plugin lacks that group. */
typedef struct heddle_plugin {
  uint32_t struct_size;
  uint16_t abi_major;
  uint16_t abi_minor;
  uint64_t features;
  const char *build; /* version and compiler, for logs */
  const char *name;  /* "opencl": lower case letters, digits and '_', the first a letter; names its devices */
  /* 32 bytes: frozen up to here. */

  /* Closes an instance whose devices are closed. Never called from a destructor or at exit. One thread at a time. */
  void (*close_instance)(heddle_pinstance *self);

  /* Starts the vendor's driver far enough to list devices. host is the table that the entry received, with a ctx of
   * this instance; it outlives the instance. HEDDLE_ENODEV with the reason where there is no driver. May block. Any
   * thread. */
  heddle_status (*open_instance)(const heddle_host *host, heddle_pinstance **out, heddle_error *err);

  /* Returns the number of devices, which is fixed for the instance. Any thread. Every function that takes an index
   * fails with an error text where there is no such device. */
  heddle_status (*device_count)(heddle_pinstance *self, uint32_t *out, heddle_error *err);

  /* Describes device index. Creates no context. Any thread. */
  heddle_status (*device_describe)(heddle_pinstance *self, uint32_t index, heddle_pdevice_desc *desc,
                                   heddle_error *err);

  const heddle_device_table *device;
  const heddle_memory_table *memory;
  const heddle_copy_table *copy;
  const heddle_stream_table *stream;
  const heddle_event_table *event;
  const heddle_fence_table *fence;
  const heddle_op_table *op;
  const heddle_layout_table *layout;
  const heddle_module_table *module;
  const heddle_capture_table *capture;
  const heddle_timing_table *timing;
  const heddle_external_table *external;

  /* Since 1.2. Descriptions of all settings of the plugin; constant, like the table. With count 0 the host takes the
   * settings that the plugin reads while it is loaded for all that it has. */
  heddle_parray settings; /* of heddle_psetting */

  /* Since 1.2. The plugin's extensions; NULL: none. */
  const heddle_pextension *extensions;
} heddle_plugin;

/* The one exported symbol. Opens nothing: no driver, no file, no thread. Returns the table, or NULL with the reason in
 * err; a plugin refuses a host whose abi_major differs from its own. host is valid for the call only; open_instance
 * receives a table that stays valid longer. During this call host.config reads the settings of the plugin that the file
 * is named after, so a setting can choose between several tables. */
#if defined(__GNUC__)
#define HEDDLE_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define HEDDLE_PLUGIN_EXPORT
#endif
HEDDLE_PLUGIN_EXPORT const heddle_plugin *heddle_plugin_entry(const heddle_host *host, heddle_error *err);
typedef const heddle_plugin *(*heddle_plugin_entry_fn)(const heddle_host *host, heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
