/* The rocm plugin: HIP behind the folder plugins/common/gpu. Here is what its own files share: HIP's calls that CUDA
 * has with other arguments, the calls' results, and where hiprtc's helper is. */
#ifndef HEDDLE_PLUGINS_ROCM_ROCM_H
#define HEDDLE_PLUGINS_ROCM_ROCM_H

#include "plugins/common/gpu/gpu.h"
#include "plugins/common/gpu/library.h"

/* HIP's results that are distinguished; the numbers are those of CUDA, and the same in HIP 5.2 to 6.3. */
enum {
  ROCM_SUCCESS = 0,
  ROCM_OUT_OF_MEMORY = 2,
  ROCM_DEINITIALIZED = 4,
  ROCM_NO_DEVICE = 100,
  ROCM_INVALID_DEVICE = 101,
  ROCM_INVALID_IMAGE = 200,
  ROCM_NO_BINARY = 209,
  ROCM_ECC = 214,
  ROCM_PEER_UNSUPPORTED = 217,
  ROCM_NOT_READY = 600,
  ROCM_ILLEGAL_ADDRESS = 700,
  ROCM_LAUNCH_TIMEOUT = 702,
  ROCM_PEER_ALREADY = 704,
  ROCM_CONTEXT_IS_DESTROYED = 709,
  ROCM_ASSERT = 710,
  ROCM_LAUNCH_FAILURE = 719,
  ROCM_NOT_SUPPORTED = 801,
  ROCM_RUNTIME_MEMORY = 1052,
  ROCM_RUNTIME_OTHER = 1053
};

/* hipMemAccessDesc: who may reach a pool's memory. */
typedef struct rocm_access {
  int place; /* 1: a device */
  int device;
  int how; /* 3: read and write */
} rocm_access;

/* What HIP has and the table of both drivers has not. */
typedef struct rocm_calls {
  int (*get_device)(int *out);
  int (*set_device)(int device);
  const char *(*error_name)(int code);
  const char *(*error_string)(int code);
  int (*properties)(void *out, int device);
  int (*enable_peer)(int peer, unsigned flags);
  int (*pool_access)(void *pool, const rocm_access *list, size_t count); /* NULL: HIP has it not */
  int (*copy_peer)(gpu_address dst, int dst_device, gpu_address src, int src_device, size_t bytes, void *stream);
  int (*instantiate)(void **exec, void *graph, void **error_node, char *log, size_t bytes);
} rocm_calls;

/* instance->own. calls, arch_at and the paths do not change after open; lock guards words. */
typedef struct rocm_own {
  rocm_calls calls;
  uint32_t arch_at; /* where the properties have the architecture's name */
  bool compiles;    /* false: the setting hiprtc is off */
  char *helper;     /* path of heddle-hiprtc; NULL: it is not there */
  char *hiprtc;     /* the setting: a library; NULL: where it is found */
  uint32_t limit_seconds;
  pthread_mutex_t lock;
  bool asked;      /* the helper was asked for the two that follow */
  char words[128]; /* "hiprtc 9.0 (libamdhip64.so.5)"; empty: there is no compiler */
  char why[400];   /* there is none */
} rocm_own;

static inline rocm_own *rocm_of(const heddle_pinstance *self) {
  return self->own;
}

extern const char *const rocm_symbols[];        /* symbols.c */
extern const gpu_library_vendor rocm_libraries; /* rocblas.c */

/* describe.c, context.c, status.c, hiprtc.c: members of gpu_vendor. */
heddle_status rocm_describe(heddle_pinstance *self, gpu_info *info, heddle_error *err);
int rocm_context_get(heddle_pdevice *dev);
void rocm_context_put(heddle_pdevice *dev);
int rocm_enter(const heddle_pdevice *dev, gpu_scope *scope);
void rocm_leave(const heddle_pdevice *dev, const gpu_scope *scope);
int rocm_peer_enable(heddle_pdevice *dev, heddle_pdevice *src);
int rocm_peer_copy(heddle_pdevice *dst_dev, gpu_address dst, heddle_pdevice *src_dev, gpu_address src, size_t bytes,
                   void *stream);
int rocm_instantiate(heddle_pinstance *self, void *graph, void **exec);
void rocm_code_words(const heddle_pinstance *self, int code, char *buf, size_t bytes);
gpu_fate rocm_fate(int code);

heddle_status rocm_compile(heddle_pinstance *self, const gpu_info *info, const char *what, const char *source,
                           void **image, uint64_t *bytes, heddle_error *err);
heddle_status rocm_can_compile(heddle_pinstance *self, const gpu_info *info, heddle_error *err);
void rocm_compiler_words(heddle_pinstance *self, char *buf, size_t bytes);

/* Has the rocBLAS that function is of kernels for an architecture ("gfx90a:sramecc+:xnack-")? True too where its folder
 * of them is not found; false with why. tensile.c. */
bool rocm_tensile_has(const heddle_host *host, const void *function, const char *features, char *why, size_t bytes);

/* Reads the settings of the compiler and finds the helper. In open. hiprtc.c. */
heddle_status rocm_hiprtc_open(heddle_pinstance *self, heddle_error *err);
void rocm_hiprtc_close(heddle_pinstance *self);

/* One run of a helper program: input goes to its standard input, which is then closed; what it writes to its
 * standard output comes back in *output (of host->alloc, a zero behind it; NULL only on failure), the end of its
 * standard error in complaint. Any signal handling of the process stays as it is; nothing forks (posix_spawn). */
typedef struct rocm_child {
  const heddle_host *host;
  const char *const *words; /* argv, NULL ends; words[0] is the program's path */
  const char *input;
  uint64_t input_bytes;
  uint32_t limit_seconds;
  char *output;
  uint64_t output_bytes;
  char complaint[256];
  int ended_by; /* a signal; 0: none */
  int status;   /* exit status; -1: other code has waited for the process */
  bool late;    /* it was ended because its time was up */
} rocm_child;

/* HEDDLE_OK where the program ran, however it ended; HEDDLE_EFAILED where it could not be started, HEDDLE_ENOMEM.
 * Blocks. Any thread. child.c. */
heddle_status rocm_child_run(rocm_child *child, heddle_error *err);

#endif
