/* bench/hand_cuda_driver.h: the calls of CUDA's driver and of its compiler that the programs by hand make, with
 * prototypes of our own, so that they are built where no toolkit is. Source: NVIDIA's CUDA Driver API and NVRTC
 * references. */
#ifndef BENCH_HAND_CUDA_DRIVER_H
#define BENCH_HAND_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t cuda_address;

#define HAND_CUDA_CALLS(X) \
  X(init, "cuInit", (unsigned flags)) \
  X(driver_version, "cuDriverGetVersion", (int *out)) \
  X(device_get, "cuDeviceGet", (int *out, int ordinal)) \
  X(device_attribute, "cuDeviceGetAttribute", (int *out, int attribute, int device)) \
  X(context_retain, "cuDevicePrimaryCtxRetain", (void **out, int device)) \
  X(context_set, "cuCtxSetCurrent", (void *context)) \
  X(error_name, "cuGetErrorName", (int code, const char **out)) \
  X(alloc, "cuMemAlloc_v2", (cuda_address * out, size_t bytes)) \
  X(host_alloc, "cuMemHostAlloc", (void **out, size_t bytes, unsigned flags)) \
  X(copy_h2d, "cuMemcpyHtoDAsync_v2", (cuda_address dst, const void *src, size_t bytes, void *stream)) \
  X(copy_d2h, "cuMemcpyDtoHAsync_v2", (void *dst, cuda_address src, size_t bytes, void *stream)) \
  X(fill, "cuMemsetD32Async", (cuda_address dst, unsigned word, size_t words, void *stream)) \
  X(stream_create, "cuStreamCreateWithPriority", (void **out, unsigned flags, int priority)) \
  X(stream_sync, "cuStreamSynchronize", (void *stream)) \
  X(stream_wait, "cuStreamWaitEvent", (void *stream, void *event, unsigned flags)) \
  X(event_create, "cuEventCreate", (void **out, unsigned flags)) \
  X(event_record, "cuEventRecord", (void *event, void *stream)) \
  X(host_func, "cuLaunchHostFunc", (void *stream, void (*fn)(void *arg), void *arg)) \
  X(module_load, "cuModuleLoadData", (void **out, const void *image)) \
  X(module_function, "cuModuleGetFunction", (void **out, void *module, const char *name)) \
  X(launch, "cuLaunchKernel", \
    (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, \
     void *stream, void **args, void **extra)) \
  X(capture_begin, "cuStreamBeginCapture_v2", (void *stream, int mode)) \
  X(capture_end, "cuStreamEndCapture", (void *stream, void **graph)) \
  X(instantiate, "cuGraphInstantiateWithFlags", (void **exec, void *graph, unsigned long long flags)) \
  X(graph_launch, "cuGraphLaunch", (void *exec, void *stream))

#define HAND_NVRTC_CALLS(X) \
  X(create, "nvrtcCreateProgram", \
    (void **out, const char *source, const char *name, int n, const char *const *headers, const char *const *names)) \
  X(compile, "nvrtcCompileProgram", (void *program, int n, const char *const *options)) \
  X(code_bytes, "nvrtcGetCUBINSize", (void *program, size_t *out)) \
  X(code, "nvrtcGetCUBIN", (void *program, char *out)) \
  X(log_bytes, "nvrtcGetProgramLogSize", (void *program, size_t *out)) \
  X(log, "nvrtcGetProgramLog", (void *program, char *out))

#define HAND_CUDA_MEMBER(member, symbol, args) int(*member) args;
typedef struct hand_cuda_calls {
  HAND_CUDA_CALLS(HAND_CUDA_MEMBER)
} hand_cuda_calls;
typedef struct hand_nvrtc_calls {
  HAND_NVRTC_CALLS(HAND_CUDA_MEMBER)
} hand_nvrtc_calls;
#undef HAND_CUDA_MEMBER

enum { HAND_CUDA_SM_COUNT = 16, HAND_CUDA_CLOCK_KHZ = 13, HAND_CUDA_MAJOR = 75, HAND_CUDA_MINOR = 76 };

/* Loads both and makes the first device's primary context the thread's. */
void hand_cuda_load(void);
extern hand_cuda_calls cu;

/* Ends the program with words unless code is 0. */
void hand_cu(int code, const char *what);
int hand_cu_attribute(int attribute);

/* A kernel of a source in CUDA C, compiled for the device. */
void *hand_cu_kernel(const char *source, const char *name);
cuda_address hand_cu_alloc(size_t bytes);
void *hand_cu_pinned(size_t bytes);
void *hand_cu_stream(void);
void *hand_cu_event(void);

#endif
