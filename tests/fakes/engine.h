/* The engine under the doubles of GPU drivers: devices whose memory is the host's, streams that are threads, graphs,
 * and kernels that PoCL runs. The fronts (cuda_*.c, and HIP's) give it their vendor's names; it knows none of their
 * headers.
 *
 * Every function returns 0 or a code: the numbers of CUresult, which hipError_t shares. A handle is checked to be alive
 * before it is looked into. Misuse (a double free, a foreign handle, a copy past an allocation, a call that a capture
 * cannot hold) is written to stderr and counted, and answered as the real driver answers. Any thread. */
#ifndef HEDDLE_TESTS_FAKES_ENGINE_H
#define HEDDLE_TESTS_FAKES_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  ENG_OK = 0,
  ENG_INVALID_VALUE = 1,
  ENG_OUT_OF_MEMORY = 2,
  ENG_NOT_INITIALIZED = 3,
  ENG_NO_DEVICE = 100,
  ENG_INVALID_DEVICE = 101,
  ENG_INVALID_IMAGE = 200,
  ENG_INVALID_CONTEXT = 201,
  ENG_NO_BINARY = 209,
  ENG_NO_PEER = 217,
  ENG_INVALID_PTX = 218,
  ENG_INVALID_HANDLE = 400,
  ENG_NOT_FOUND = 500,
  ENG_NOT_READY = 600,
  ENG_ILLEGAL_ADDRESS = 700,
  ENG_OUT_OF_RESOURCES = 701,
  ENG_PEER_ALREADY = 704,
  ENG_PEER_NOT_ENABLED = 705,
  ENG_PRIMARY_ACTIVE = 708,
  ENG_CONTEXT_DESTROYED = 709,
  ENG_HOST_ALREADY = 712,
  ENG_HOST_NOT_REGISTERED = 713,
  ENG_LAUNCH_FAILED = 719,
  ENG_NOT_PERMITTED = 800,
  ENG_NOT_SUPPORTED = 801,
  ENG_CAPTURE_UNSUPPORTED = 900,
  ENG_CAPTURE_INVALIDATED = 901,
  ENG_CAPTURE_MERGE = 902,
  ENG_CAPTURE_UNMATCHED = 903,
  ENG_CAPTURE_UNJOINED = 904,
  ENG_CAPTURE_ISOLATION = 905,
  ENG_CAPTURE_IMPLICIT = 906,
  ENG_CAPTURED_EVENT = 907,
  ENG_CAPTURE_WRONG_THREAD = 908,
  ENG_GRAPH_UPDATE_FAILURE = 910,
  ENG_UNKNOWN = 999
};

typedef struct eng_context eng_context;
typedef struct eng_event eng_event;
typedef struct eng_module eng_module;
typedef struct eng_function eng_function;
typedef struct eng_node eng_node;
typedef struct eng_graph eng_graph;
typedef struct eng_exec eng_exec;
typedef struct eng_pool eng_pool;

/* A stream is the handle that the program passes: NULL is the device's default stream, else what eng_stream_create
 * gave. */
typedef void *eng_stream_handle;

/* ---------------------------------------------------------------- calls (engine_faults.c) */

/* What a front says of its vendor; static and const. name: "cuda", in reports. arch: of devices, where FAKE_GPU_ARCH is
 * not given, "sm_90"; NULL: a compiler alone, without a report. fits: whether an image made for one architecture runs
 * on another. */
typedef struct eng_flavour {
  const char *name, *arch;
  bool (*fits)(const char *image_arch, const char *device_arch);
} eng_flavour;
extern const eng_flavour eng_flavour_own; /* defined once, by the front */

/* A call of the driver's, for counts and for FAKE_GPU_FAIL. next, known: the engine's. */
typedef struct eng_call {
  const char *name;
  atomic_int count;
  struct eng_call *next;
  bool known;
} eng_call;

/* First in each call of a driver: counts it, and returns from the caller what is to be failed. _EARLY: before
 * eng_init too. */
#define ENG_CALL(name) ENG_CALL_(name, true)
#define ENG_CALL_EARLY(name) ENG_CALL_(name, false)
#define ENG_CALL_(name, needs_init) \
  static eng_call eng_call_here = {name, 0, NULL, false}; \
  do { \
    const int eng_code_here = eng_call_enter(&eng_call_here, needs_init); \
    if (eng_code_here != ENG_OK) return eng_code_here; \
  } while (0)

/* 0, a code that FAKE_GPU_FAIL orders, ENG_NOT_INITIALIZED, or (a host function is running on this thread)
 * ENG_NOT_PERMITTED. */
int eng_call_enter(eng_call *call, bool needs_init);

int eng_init(void); /* FAKE_GPU_INIT's code, ENG_NO_DEVICE, or 0 */

/* Writes words to stderr and counts them. */
void eng_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What tests of one process ask by dlsym (fake_gpu.h declares them): a front must keep them visible. */
#define ENG_VISIBLE __attribute__((visibility("default")))

/* ---------------------------------------------------------------- devices, contexts (engine_device.c) */

typedef struct eng_device {
  int ordinal;
  char name[64], arch[64], pci[16]; /* pci: "0000:01:00.0" */
  uint8_t uuid[16];
  size_t memory; /* bytes */
  int major, minor;
  bool pools;
} eng_device;

int eng_device_count(void);
const eng_device *eng_device_get(int ordinal); /* NULL: there is none */
bool eng_device_mig(void);                     /* they are parts of one card */
int eng_device_peer(int device, int peer);     /* 1: copies and kernels of device can reach peer's memory */

int eng_primary_retain(int device, eng_context **out);
int eng_primary_release(int device); /* the last one waits for all work and destroys it, with all that is left in it */
int eng_primary_reset(int device);
bool eng_primary_active(int device);
int eng_context_create(int device, eng_context **out); /* and pushes it */
int eng_context_destroy(eng_context *ctx);
int eng_context_device(int *out); /* of the current one */
int eng_context_sync(void);
eng_context *eng_current(void);        /* of this thread; NULL: none */
int eng_current_set(eng_context *ctx); /* replaces the top of the thread's stack; NULL pops it */
int eng_current_push(eng_context *ctx);
int eng_current_pop(eng_context **out);
int eng_peer_enable(eng_context *peer); /* lets the current context reach peer's memory */
int eng_peer_disable(eng_context *peer);

/* 0, ENG_INVALID_CONTEXT where none is current, or the context's sticky fault. For calls that do nothing else. */
int eng_healthy(void);

/* ---------------------------------------------------------------- memory (engine_memory.c) */

int eng_alloc(uint64_t *out, size_t bytes);
int eng_free(uint64_t address); /* waits for the context's work */
int eng_alloc_async(uint64_t *out, size_t bytes, eng_stream_handle stream);
int eng_free_async(uint64_t address, eng_stream_handle stream);
int eng_memory_info(size_t *free_bytes, size_t *all_bytes);
int eng_pool_default(int device, eng_pool **out);
int eng_pool_create(int device, eng_pool **out);
int eng_pool_destroy(eng_pool *pool); /* what is allocated from it lives on */
int eng_alloc_from(uint64_t *out, size_t bytes, eng_pool *pool, eng_stream_handle stream);
int eng_pool_set(eng_pool *pool, int attribute, const void *value); /* 4: the release threshold, uint64_t */
int eng_pool_get(eng_pool *pool, int attribute, void *value);
int eng_pool_access(eng_pool *pool, int device, bool open); /* whether device's kernels reach the pool's memory */
int eng_pool_trim(eng_pool *pool, size_t keep_bytes);
int eng_host_alloc(void **out, size_t bytes, unsigned flags);
int eng_host_free(void *address);
int eng_host_register(void *address, size_t bytes, unsigned flags);
int eng_host_unregister(void *address);
int eng_host_address(uint64_t *out, void *address); /* of pinned or registered memory, for kernels */

/* Where an address lies. kind: 0 nowhere, 1 host (pinned, registered), 2 device. */
typedef struct eng_place {
  int kind, device;
  uint64_t base;
  size_t bytes;
} eng_place;
int eng_memory_find(uint64_t address, eng_place *out);

/* ---------------------------------------------------------------- copies (engine_copy.c) */

typedef enum eng_copy_kind { ENG_H2D, ENG_D2H, ENG_D2D, ENG_H2H, ENG_COPY_ANY } eng_copy_kind;

/* ENG_COPY_ANY finds out from the addresses. wait: returns when it is done. Without it too where the host's side is
 * pageable: device to host then waits, host to device has read its source when it returns. */
int eng_copy(eng_copy_kind kind, void *dst, const void *src, size_t bytes, eng_stream_handle stream, bool wait);
/* Between the memory of two contexts, which need no peer access. */
int eng_copy_peer(eng_context *dst_ctx, void *dst, eng_context *src_ctx, const void *src, size_t bytes,
                  eng_stream_handle stream, bool wait);
/* count words of width (1, 2, 4) bytes. */
int eng_fill(uint64_t dst, uint32_t word, unsigned width, size_t count, eng_stream_handle stream, bool wait);

/* ---------------------------------------------------------------- streams (engine_stream.c) */

int eng_stream_create(eng_stream_handle *out, unsigned flags, int priority); /* flags 1: non-blocking */
int eng_stream_destroy(eng_stream_handle stream);                            /* returns at once; its work goes on */
int eng_stream_query(eng_stream_handle stream);
int eng_stream_sync(eng_stream_handle stream);
int eng_stream_wait(eng_stream_handle stream, eng_event *event);
/* Puts a number into memory, where the stream gets there. Not in captures. */
int eng_stream_write(eng_stream_handle stream, uint64_t address, uint64_t value);
int eng_stream_priority(eng_stream_handle stream, int *out);
int eng_stream_flags(eng_stream_handle stream, unsigned *out);
int eng_stream_context(eng_stream_handle stream, eng_context **out);
int eng_stream_device(eng_stream_handle stream, int *out);
void eng_priorities(int *least, int *greatest);

/* fn runs on the stream's thread in its turn; not after a fault. It must call nothing of the driver. */
int eng_host_func(eng_stream_handle stream, void (*fn)(void *arg), void *arg);
/* As cuStreamAddCallback and hipStreamAddCallback: also after a fault, with its code. No capture holds it. */
int eng_callback(eng_stream_handle stream, void (*fn)(void *stream, int code, void *arg), void *arg);

/* ---------------------------------------------------------------- events (engine_event.c) */

int eng_event_create(eng_event **out, unsigned flags); /* flags 2: without times */
int eng_event_destroy(eng_event *event);
int eng_event_record(eng_event *event, eng_stream_handle stream);
/* Also in a capture, whose graph then records it each time: it is no part of the capture. Outside one as above. */
int eng_event_record_external(eng_event *event, eng_stream_handle stream);
int eng_event_query(eng_event *event);
int eng_event_sync(eng_event *event);
int eng_event_elapsed(float *ms, eng_event *from, eng_event *to);

/* ---------------------------------------------------------------- graphs (engine_capture.c, engine_graph.c) */

typedef enum eng_node_kind {
  ENG_NODE_KERNEL,
  ENG_NODE_COPY,
  ENG_NODE_FILL,
  ENG_NODE_HOST,
  ENG_NODE_EMPTY,
  ENG_NODE_RECORD
} eng_node_kind;
enum { ENG_CAPTURE_GLOBAL, ENG_CAPTURE_THREAD, ENG_CAPTURE_RELAXED };

int eng_capture_begin(eng_stream_handle stream, int mode);
int eng_capture_end(eng_stream_handle stream, eng_graph **out); /* *out is NULL where it fails */
int eng_capture_exchange(int *mode); /* what this thread may do beside captures, for what it might so far */
int eng_capture_status(eng_stream_handle stream, int *out); /* 0 none, 1 active, 2 invalidated */
int eng_graph_create(eng_graph **out);
int eng_graph_nodes(eng_graph *graph, eng_node **nodes, size_t *count); /* as cuGraphGetNodes */
int eng_graph_edges(eng_graph *graph, size_t *count);
int eng_node_kind_of(eng_node *node, eng_node_kind *out);
int eng_graph_destroy(eng_graph *graph);
int eng_instantiate(eng_exec **out, eng_graph *graph);
/* result: of CUgraphExecUpdateResult: 0 success, 2 topology, 3 node type, 4 function, 5 parameters. */
int eng_exec_update(eng_exec *exec, eng_graph *graph, eng_node **error_node, int *result);
int eng_exec_upload(eng_exec *exec, eng_stream_handle stream);
int eng_exec_launch(eng_exec *exec, eng_stream_handle stream);
int eng_exec_destroy(eng_exec *exec);

/* ---------------------------------------------------------------- modules, kernels (engine_module.c, engine_run.c) */

typedef struct eng_function_info {
  int max_threads, shared_bytes, max_dynamic_shared, registers;
} eng_function_info;

/* image: what eng_compile made; or PTX, or an ELF of a GPU, whose kernels FAKE_GPU_KERNELS has. log: words where it is
 * refused, or NULL. */
int eng_module_load(eng_module **out, const void *image, char *log, size_t log_bytes);
int eng_module_unload(eng_module *module);
int eng_module_function(eng_function **out, eng_module *module, const char *name);
int eng_function_about(eng_function *function, eng_function_info *out);
int eng_function_load(eng_function *function);                  /* with FAKE_GPU_LAZY; else there is nothing to do */
int eng_function_set_shared(eng_function *function, int bytes); /* dynamic shared memory that launches may ask for */

/* args, or extra with its keys as CUDA has them (0 end, 1 buffer pointer, 2 buffer size); HIP's end is 3: its front
 * restates that. */
int eng_launch(eng_function *function, const unsigned grid[3], const unsigned block[3], unsigned shared_bytes,
               eng_stream_handle stream, void **args, void **extra);

/* Compiles a kernel source for an architecture, by PoCL, to find its errors. *image is 0-terminated text that carries
 * the source, the options and the architecture; bytes counts the 0. *log is "" or words. free() both. true: it
 * compiled. */
bool eng_compile(const char *source, const char *options, const char *arch, char **image, size_t *bytes, char **log);

#endif
