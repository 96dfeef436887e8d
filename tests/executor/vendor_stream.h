/* tests/executor/vendor_stream.h: streams that the test makes with the vendor's own calls, and work in them: copies, and a
 * gate, which holds back what is behind it until the test opens it. */
#ifndef HEDDLE_TESTS_EXECUTOR_VENDOR_STREAM_H
#define HEDDLE_TESTS_EXECUTOR_VENDOR_STREAM_H

#include <pthread.h>

#include "core/device.h"
#include "core/tensor.h"
#include "executor/vendor_memory.h"

/* Of the memory of a tensor on a device. */
static inline uint64_t native_of(const heddle_tensor *t) {
  uint64_t handle = 0;
  OK(t->dev->t->memory.native(t->dev->handle, t->buffer, &handle, &err));
  return handle;
}

typedef struct gate {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool open;
  void *event; /* OpenCL's */
} gate;

static inline void gate_wait(void *arg) {
  gate *g = arg;
  pthread_mutex_lock(&g->lock);
  while (!g->open) pthread_cond_wait(&g->changed, &g->lock);
  pthread_mutex_unlock(&g->lock);
}

/* ---- OpenCL */

static inline void *cl_queue(void *context, int device) {
  VENDOR(cl_library(), clGetContextInfo, int32_t, (void *, uint32_t, size_t, void *, size_t *));
  VENDOR(cl_library(), clCreateCommandQueue, void *, (void *, void *, uint64_t, int32_t *));
  void *devices[16] = {0};
  int32_t code = 0;
  DONE(clGetContextInfo(context, CL_DEVICES_OF, sizeof devices, devices, NULL));
  void *queue = clCreateCommandQueue(context, devices[device], 0, &code);
  DONE(code);
  return queue;
}

static inline void cl_gate(void *queue, gate *g) {
  VENDOR(cl_library(), clGetCommandQueueInfo, int32_t, (void *, uint32_t, size_t, void *, size_t *));
  VENDOR(cl_library(), clCreateUserEvent, void *, (void *, int32_t *));
  VENDOR(cl_library(), clEnqueueBarrierWithWaitList, int32_t, (void *, uint32_t, void *const *, void **));
  void *context = NULL;
  int32_t code = 0;
  DONE(clGetCommandQueueInfo(queue, 0x1090, sizeof context, &context, NULL));
  g->event = clCreateUserEvent(context, &code);
  DONE(code);
  DONE(clEnqueueBarrierWithWaitList(queue, 1, &g->event, NULL));
}

static inline void cl_copy(void *queue, uint64_t mem, void *host, size_t bytes, bool in) {
  VENDOR(cl_library(), clEnqueueWriteBuffer, int32_t,
         (void *, void *, uint32_t, size_t, size_t, const void *, uint32_t, const void *, void *));
  VENDOR(cl_library(), clEnqueueReadBuffer, int32_t,
         (void *, void *, uint32_t, size_t, size_t, void *, uint32_t, const void *, void *));
  VENDOR(cl_library(), clFlush, int32_t, (void *));
  void *m = (void *)(uintptr_t)mem;
  if (in) DONE(clEnqueueWriteBuffer(queue, m, 0, 0, bytes, host, 0, NULL, NULL));
  else DONE(clEnqueueReadBuffer(queue, m, 0, 0, bytes, host, 0, NULL, NULL));
  DONE(clFlush(queue));
}

/* ---- whichever it is; like: a tensor of Heddle's on device 0 */

static inline uint64_t stream_make(const heddle_tensor *like, int device) {
  void *stream = NULL;
  if (is_opencl()) {
    stream = cl_queue(cl_about(native_of(like), CL_CONTEXT_OF), device);
  } else if (strcmp(accelerator, "cuda") == 0) {
    VENDOR(vendor_library("HEDDLE_CUDA_DRIVER", "libcuda.so.1"), cuStreamCreate, int, (void **, unsigned));
    cuda_enter(device, false);
    DONE(cuStreamCreate(&stream, 1));
    cuda_enter(device, true);
  } else {
    VENDOR(vendor_library("HEDDLE_ROCM_DRIVER", "libamdhip64.so"), hipSetDevice, int, (int));
    VENDOR(vendor_library("HEDDLE_ROCM_DRIVER", "libamdhip64.so"), hipStreamCreateWithFlags, int, (void **, unsigned));
    DONE(hipSetDevice(device));
    DONE(hipStreamCreateWithFlags(&stream, 1));
    DONE(hipSetDevice(0));
  }
  return (uint64_t)(uintptr_t)stream;
}

static inline void stream_gate(uint64_t stream, gate *g) {
  void *s = (void *)(uintptr_t)stream;
  *g = (gate){.open = false};
  pthread_mutex_init(&g->lock, NULL);
  pthread_cond_init(&g->changed, NULL);
  if (is_opencl()) {
    cl_gate(s, g);
  } else if (strcmp(accelerator, "cuda") == 0) {
    VENDOR(vendor_library("HEDDLE_CUDA_DRIVER", "libcuda.so.1"), cuLaunchHostFunc, int,
           (void *, void (*)(void *), void *));
    cuda_enter(0, false);
    DONE(cuLaunchHostFunc(s, gate_wait, g));
    cuda_enter(0, true);
  } else {
    VENDOR(vendor_library("HEDDLE_ROCM_DRIVER", "libamdhip64.so"), hipLaunchHostFunc, int,
           (void *, void (*)(void *), void *));
    DONE(hipLaunchHostFunc(s, gate_wait, g));
  }
}

static inline void gate_open(gate *g) {
  if (g->event != NULL) {
    VENDOR(cl_library(), clSetUserEventStatus, int32_t, (void *, int32_t));
    VENDOR(cl_library(), clReleaseEvent, int32_t, (void *));
    DONE(clSetUserEventStatus(g->event, 0));
    DONE(clReleaseEvent(g->event));
  }
  pthread_mutex_lock(&g->lock);
  g->open = true;
  pthread_cond_broadcast(&g->changed);
  pthread_mutex_unlock(&g->lock);
}

/* Memory of the host that copies in a stream do not wait for. */
static inline float *host_make(size_t bytes) {
  void *at = NULL;
  if (is_opencl()) {
    at = malloc(bytes);
    assert_non_null(at);
  } else if (strcmp(accelerator, "cuda") == 0) {
    VENDOR(vendor_library("HEDDLE_CUDA_DRIVER", "libcuda.so.1"), cuMemHostAlloc, int, (void **, size_t, unsigned));
    cuda_enter(0, false);
    DONE(cuMemHostAlloc(&at, bytes, 1));
    cuda_enter(0, true);
  } else {
    VENDOR(vendor_library("HEDDLE_ROCM_DRIVER", "libamdhip64.so"), hipHostMalloc, int, (void **, size_t, unsigned));
    DONE(hipHostMalloc(&at, bytes, 1));
  }
  return at;
}

static inline void host_free(void *at) {
  if (is_opencl()) {
    free(at);
  } else if (strcmp(accelerator, "cuda") == 0) {
    VENDOR(vendor_library("HEDDLE_CUDA_DRIVER", "libcuda.so.1"), cuMemFreeHost, int, (void *));
    cuda_enter(0, false);
    DONE(cuMemFreeHost(at));
    cuda_enter(0, true);
  } else {
    VENDOR(vendor_library("HEDDLE_ROCM_DRIVER", "libamdhip64.so"), hipHostFree, int, (void *));
    DONE(hipHostFree(at));
  }
}

/* The host's memory is used until the stream has finished. */
static inline void stream_copy(uint64_t stream, const heddle_tensor *t, void *host, bool in) {
  void *s = (void *)(uintptr_t)stream;
  const uint64_t mem = native_of(t);
  const size_t bytes = (size_t)t->bytes;
  if (is_opencl()) {
    cl_copy(s, mem, host, bytes, in);
  } else if (strcmp(accelerator, "cuda") == 0) {
    void *library = vendor_library("HEDDLE_CUDA_DRIVER", "libcuda.so.1");
    VENDOR(library, cuMemcpyHtoDAsync_v2, int, (uint64_t, const void *, size_t, void *));
    VENDOR(library, cuMemcpyDtoHAsync_v2, int, (void *, uint64_t, size_t, void *));
    cuda_enter(0, false);
    DONE(in ? cuMemcpyHtoDAsync_v2(mem, host, bytes, s) : cuMemcpyDtoHAsync_v2(host, mem, bytes, s));
    cuda_enter(0, true);
  } else {
    void *library = vendor_library("HEDDLE_ROCM_DRIVER", "libamdhip64.so");
    VENDOR(library, hipMemcpyHtoDAsync, int, (void *, const void *, size_t, void *));
    VENDOR(library, hipMemcpyDtoHAsync, int, (void *, const void *, size_t, void *));
    void *at = (void *)(uintptr_t)mem;
    DONE(in ? hipMemcpyHtoDAsync(at, host, bytes, s) : hipMemcpyDtoHAsync(host, at, bytes, s));
  }
}

static inline void stream_end(uint64_t stream, int device, bool release) {
  void *s = (void *)(uintptr_t)stream;
  if (is_opencl()) {
    VENDOR(cl_library(), clFinish, int32_t, (void *));
    VENDOR(cl_library(), clReleaseCommandQueue, int32_t, (void *));
    DONE(clFinish(s));
    if (release) DONE(clReleaseCommandQueue(s));
  } else if (strcmp(accelerator, "cuda") == 0) {
    void *library = vendor_library("HEDDLE_CUDA_DRIVER", "libcuda.so.1");
    VENDOR(library, cuStreamSynchronize, int, (void *));
    VENDOR(library, cuStreamDestroy_v2, int, (void *));
    cuda_enter(device, false);
    DONE(cuStreamSynchronize(s));
    if (release) DONE(cuStreamDestroy_v2(s));
    cuda_enter(device, true);
  } else {
    void *library = vendor_library("HEDDLE_ROCM_DRIVER", "libamdhip64.so");
    VENDOR(library, hipStreamSynchronize, int, (void *));
    VENDOR(library, hipStreamDestroy, int, (void *));
    DONE(hipStreamSynchronize(s));
    if (release) DONE(hipStreamDestroy(s));
  }
}

#endif
