/* tests/executor/vendor_memory.h: memory on a device that the test makes with the vendor's own calls, without Heddle:
 * OpenCL's, CUDA's or HIP's, found in the library that the plugin has open. What their values mean is in the vendors'
 * references; they are the same in all versions. */
#ifndef HEDDLE_TESTS_EXECUTOR_VENDOR_MEMORY_H
#define HEDDLE_TESTS_EXECUTOR_VENDOR_MEMORY_H

#include "executor/rig.h"

#include <dlfcn.h>

/* A call by its name: (ret, args) of the library. */
#define VENDOR(library, name, ret, args) \
  ret(*name) args; \
  do { \
    void *found_##name = dlsym((library), #name); \
    if (found_##name == NULL) fail_msg("%s is not in the vendor's library", #name); \
    memcpy(&name, &found_##name, sizeof name); \
  } while (0)

static inline void *vendor_library(const char *variable, const char *usual) {
  const char *name = variable != NULL ? getenv(variable) : NULL;
  void *library = dlopen(name != NULL ? name : usual, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fail_msg("%s", dlerror());
  return library;
}

#define DONE(call) \
  do { \
    const long vendor_code = (long)(call); \
    if (vendor_code != 0) fail_msg("%s: %ld", #call, vendor_code); \
  } while (0)

/* ---- OpenCL: a handle is a cl_mem, of the context of another, `like` */

enum { CL_CONTEXT_OF = 0x1106, CL_COUNT_OF = 0x1105, CL_DEVICES_OF = 0x1081, CL_READ_WRITE = 1, CL_REGION = 0x1220 };

static inline void *cl_library(void) {
  return vendor_library(NULL, "libOpenCL.so.1");
}

static inline void *cl_about(uint64_t mem, uint32_t what) {
  VENDOR(cl_library(), clGetMemObjectInfo, int32_t, (void *, uint32_t, size_t, void *, size_t *));
  void *out = NULL;
  DONE(clGetMemObjectInfo((void *)(uintptr_t)mem, what, what == CL_COUNT_OF ? 4 : sizeof out, &out, NULL));
  return out;
}

static inline uint32_t cl_count(uint64_t mem) {
  return (uint32_t)(uintptr_t)cl_about(mem, CL_COUNT_OF);
}

static inline void *cl_first_device(void *context) {
  VENDOR(cl_library(), clGetContextInfo, int32_t, (void *, uint32_t, size_t, void *, size_t *));
  void *devices[16] = {0};
  DONE(clGetContextInfo(context, CL_DEVICES_OF, sizeof devices, devices, NULL));
  return devices[0];
}

static inline uint64_t cl_make(void *context, size_t bytes) {
  VENDOR(cl_library(), clCreateBuffer, void *, (void *, uint64_t, size_t, void *, int32_t *));
  int32_t code = 0;
  void *mem = clCreateBuffer(context, CL_READ_WRITE, bytes, NULL, &code);
  DONE(code);
  return (uint64_t)(uintptr_t)mem;
}

static inline uint64_t cl_part(uint64_t mem, size_t offset, size_t bytes) {
  VENDOR(cl_library(), clCreateSubBuffer, void *, (void *, uint64_t, uint32_t, const void *, int32_t *));
  const size_t region[2] = {offset, bytes};
  int32_t code = 0;
  void *part = clCreateSubBuffer((void *)(uintptr_t)mem, 0, CL_REGION, region, &code);
  DONE(code);
  return (uint64_t)(uintptr_t)part;
}

static inline void cl_free(uint64_t mem) {
  VENDOR(cl_library(), clReleaseMemObject, int32_t, (void *));
  DONE(clReleaseMemObject((void *)(uintptr_t)mem));
}

static inline void cl_move(uint64_t mem, void *host, size_t bytes, bool in) {
  void *library = cl_library();
  VENDOR(library, clCreateCommandQueue, void *, (void *, void *, uint64_t, int32_t *));
  VENDOR(library, clReleaseCommandQueue, int32_t, (void *));
  VENDOR(library, clEnqueueWriteBuffer, int32_t,
         (void *, void *, uint32_t, size_t, size_t, const void *, uint32_t, const void *, void *));
  VENDOR(library, clEnqueueReadBuffer, int32_t,
         (void *, void *, uint32_t, size_t, size_t, void *, uint32_t, const void *, void *));
  void *context = cl_about(mem, CL_CONTEXT_OF), *m = (void *)(uintptr_t)mem;
  int32_t code = 0;
  void *queue = clCreateCommandQueue(context, cl_first_device(context), 0, &code);
  DONE(code);
  if (in) DONE(clEnqueueWriteBuffer(queue, m, 1, 0, bytes, host, 0, NULL, NULL));
  else DONE(clEnqueueReadBuffer(queue, m, 1, 0, bytes, host, 0, NULL, NULL));
  DONE(clReleaseCommandQueue(queue));
}

/* ---- CUDA and HIP: a handle is an address on device `device`, in its primary context */

static inline void cuda_enter(int device, bool leave) {
  void *library = vendor_library("HEDDLE_CUDA_DRIVER", "libcuda.so.1"), *ctx = NULL;
  VENDOR(library, cuDevicePrimaryCtxRetain, int, (void **, int));
  VENDOR(library, cuDevicePrimaryCtxRelease_v2, int, (int));
  VENDOR(library, cuCtxPushCurrent_v2, int, (void *));
  VENDOR(library, cuCtxPopCurrent_v2, int, (void **));
  if (leave) {
    DONE(cuCtxPopCurrent_v2(&ctx));
    DONE(cuDevicePrimaryCtxRelease_v2(device));
  } else {
    DONE(cuDevicePrimaryCtxRetain(&ctx, device));
    DONE(cuCtxPushCurrent_v2(ctx));
  }
}

/* Allocates (in and out NULL, *address 0), frees (both NULL), writes or reads. */
static inline void cuda_call(int device, uint64_t *address, const void *in, void *out, size_t bytes) {
  void *library = vendor_library("HEDDLE_CUDA_DRIVER", "libcuda.so.1");
  VENDOR(library, cuMemAlloc_v2, int, (uint64_t *, size_t));
  VENDOR(library, cuMemFree_v2, int, (uint64_t));
  VENDOR(library, cuMemcpyHtoD_v2, int, (uint64_t, const void *, size_t));
  VENDOR(library, cuMemcpyDtoH_v2, int, (void *, uint64_t, size_t));
  cuda_enter(device, false);
  if (in != NULL) DONE(cuMemcpyHtoD_v2(*address, in, bytes));
  else if (out != NULL) DONE(cuMemcpyDtoH_v2(out, *address, bytes));
  else if (*address == 0) DONE(cuMemAlloc_v2(address, bytes));
  else DONE(cuMemFree_v2(*address));
  cuda_enter(device, true);
}

static inline void hip_call(int device, uint64_t *address, const void *in, void *out, size_t bytes) {
  void *library = vendor_library("HEDDLE_ROCM_DRIVER", "libamdhip64.so"), *at = (void *)(uintptr_t)*address;
  VENDOR(library, hipSetDevice, int, (int));
  VENDOR(library, hipMalloc, int, (void **, size_t));
  VENDOR(library, hipFree, int, (void *));
  VENDOR(library, hipMemcpy, int, (void *, const void *, size_t, int));
  DONE(hipSetDevice(device));
  if (in != NULL) DONE(hipMemcpy(at, in, bytes, 1));
  else if (out != NULL) DONE(hipMemcpy(out, at, bytes, 2));
  else if (*address == 0) DONE(hipMalloc(&at, bytes));
  else DONE(hipFree(at));
  *address = (uint64_t)(uintptr_t)at;
}

/* ---- of whichever vendor's device 0 is used */

static inline bool is_opencl(void) {
  return strcmp(accelerator, "opencl") == 0;
}

static inline void vendor_call(int device, uint64_t *address, const void *in, void *out, size_t bytes) {
  if (strcmp(accelerator, "cuda") == 0) cuda_call(device, address, in, out, bytes);
  else hip_call(device, address, in, out, bytes);
}

/* Keeps a device's context, current on this thread, until the second call; its memory goes with the last of them. */
static inline void vendor_hold(int device, bool hold) {
  if (strcmp(accelerator, "cuda") == 0) cuda_enter(device, !hold);
}

/* like: a handle of Heddle's, whose OpenCL context the memory is made in. */
static inline uint64_t vendor_make(uint64_t like, size_t bytes) {
  uint64_t handle = 0;
  if (is_opencl()) return cl_make(cl_about(like, CL_CONTEXT_OF), bytes);
  vendor_call(0, &handle, NULL, NULL, bytes);
  return handle;
}

static inline void vendor_free(uint64_t handle) {
  if (is_opencl()) cl_free(handle);
  else vendor_call(0, &handle, NULL, NULL, 0);
}

static inline void vendor_write(uint64_t handle, const void *bytes, size_t count) {
  if (is_opencl()) cl_move(handle, (void *)(uintptr_t)bytes, count, true);
  else vendor_call(0, &handle, bytes, NULL, count);
}

static inline void vendor_read(uint64_t handle, void *bytes, size_t count) {
  if (is_opencl()) cl_move(handle, bytes, count, false);
  else vendor_call(0, &handle, NULL, bytes, count);
}

#endif
